//! libFuzzer's inputs for [`linerate_fuzz::watch_plan`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::watch_plan::run(data));
