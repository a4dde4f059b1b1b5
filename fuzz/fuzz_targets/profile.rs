//! libFuzzer's inputs for [`linerate_fuzz::profile`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::profile::run(data));
