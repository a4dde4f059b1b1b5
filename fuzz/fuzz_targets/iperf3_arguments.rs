//! libFuzzer's inputs for [`linerate_fuzz::iperf3_arguments`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::iperf3_arguments::run(data));
