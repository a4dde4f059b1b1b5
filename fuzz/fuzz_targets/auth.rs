//! libFuzzer's inputs for [`linerate_fuzz::auth`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::auth::run(data));
