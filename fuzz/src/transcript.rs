//! Another tool's output, or a packet capture: whatever is pasted, it is read, explained and printed.

use linerate_model::transcript::{Given, Transcript};

/// Feeds one input.
pub fn run(data: &[u8]) {
    if let Ok(read) = linerate_readers::read("fuzz", data) {
        show(read);
    }
}

/// Explains a transcript and prints the reading in both formats.
pub(crate) fn show(read: Transcript) {
    let reading = linerate_explain::transcript::explain(vec![read], Given::default());
    assert!(!linerate_report::transcript::report(&reading).is_empty());
    let document = linerate_report::transcript::document(&reading);
    assert!(serde_json::from_str::<serde_json::Value>(&document).is_ok());
}
