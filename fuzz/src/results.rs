//! A peer's results: what is read can be written and read again.

use linerate_wire::results::Results;

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Ok(results) = Results::from_json(data) else {
        return;
    };
    let again = Results::from_json(&results.to_json()).expect("ours are readable");
    assert_eq!(again, results);
}
