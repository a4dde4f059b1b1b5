//! Another tool's output, or a packet capture: whatever is pasted, it is read, explained and printed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_model::transcript::Given;

fuzz_target!(|data: &[u8]| {
    let Ok(read) = linerate_readers::read("fuzz", data) else {
        return;
    };
    let reading = linerate_explain::transcript::explain(vec![read], Given::default());
    let _ = linerate_report::transcript::report(&reading);
    let _ = linerate_report::transcript::document(&reading);
});
