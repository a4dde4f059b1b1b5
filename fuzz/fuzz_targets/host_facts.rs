//! libFuzzer's inputs for [`linerate_fuzz::host_facts`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::host_facts::run(data));
