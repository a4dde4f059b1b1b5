//! The journal of a change to a host, as it is found in the state folder.

use linerate_model::units::Nanos;
use linerate_report::host;
use linerate_tune::journal::ChangeSet;

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(set) = ChangeSet::parse(text) else {
        return;
    };
    let _ = (set.begun(), set.to_restore(), set.left(Nanos(1)));
    let view = set.view(Nanos(1));
    assert!(!host::set_report(&view, &[]).is_empty());
    assert!(!host::set_document(&view, &[]).is_empty());
}
