//! libFuzzer's inputs for [`linerate_fuzz::udp_header`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::udp_header::run(data));
