//! The facts of a host as JSON: audited, compared with themselves and shown.

use linerate_model::audit::Target;
use linerate_report::{host, json};
use linerate_tune::difference;

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Ok(facts) = host::from_json(data) else {
        return;
    };
    assert!(host::from_json(json::of_kind("host", &facts).as_bytes()).is_ok());
    assert!(!host::facts_report(&facts, true).is_empty());
    if let Ok(audit) = linerate_tune::audit(&facts, Some(&facts), &Target::default()) {
        assert!(!host::audit_report(&audit, true).is_empty());
        assert!(!json::of_kind("host_audit", &audit).is_empty());
    }
    let differences = difference::compare(&facts, &facts);
    assert!(!json::of_kind("host_diff", &differences).is_empty());
    assert!(!host::difference_report(&differences, ("a", "b"), true).is_empty());
}
