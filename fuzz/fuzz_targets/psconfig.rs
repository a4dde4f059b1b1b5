//! libFuzzer's inputs for [`linerate_fuzz::psconfig`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::psconfig::run(data));
