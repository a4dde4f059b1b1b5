//! libFuzzer's inputs for [`linerate_fuzz::scenario`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::scenario::run(data));
