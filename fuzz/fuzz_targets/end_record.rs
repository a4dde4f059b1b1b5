//! libFuzzer's inputs for [`linerate_fuzz::end_record`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::end_record::run(data));
