//! libFuzzer's inputs for [`linerate_fuzz::transcript`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::transcript::run(data));
