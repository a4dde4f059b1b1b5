//! libFuzzer's inputs for [`linerate_fuzz::extension`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::extension::run(data));
