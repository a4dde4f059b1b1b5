//! libFuzzer's inputs for [`linerate_fuzz::record`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::record::run(data));
