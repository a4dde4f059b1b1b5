//! libFuzzer's inputs for [`linerate_fuzz::parameters`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::parameters::run(data));
