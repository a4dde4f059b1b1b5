//! libFuzzer's inputs for [`linerate_fuzz::results`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::results::run(data));
