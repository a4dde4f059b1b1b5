//! libFuzzer's inputs for [`linerate_fuzz::node_set`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::node_set::run(data));
