//! libFuzzer's inputs for [`linerate_fuzz::sweep`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::sweep::run(data));
