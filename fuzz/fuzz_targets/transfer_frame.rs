//! libFuzzer's inputs for [`linerate_fuzz::transfer_frame`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::transfer_frame::run(data));
