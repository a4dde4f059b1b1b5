//! libFuzzer's inputs for [`linerate_fuzz::journal`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::journal::run(data));
