//! libFuzzer's inputs for [`linerate_fuzz::interfaces`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::interfaces::run(data));
