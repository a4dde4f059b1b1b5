//! libFuzzer's inputs for [`linerate_fuzz::capture`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::capture::run(data));
