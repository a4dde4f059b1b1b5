//! libFuzzer's inputs for [`linerate_fuzz::control_server`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::control_server::run(data));
