//! libFuzzer's inputs for [`linerate_fuzz::iperf2`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::iperf2::run(data));
