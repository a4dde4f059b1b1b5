//! What hosts are like, and what of it changed.

use linerate_archive::Facts;
use linerate_model::alert::HostChange;
use linerate_model::host::{HostFacts, Weight};
use linerate_model::watch::UnixMillis;
use linerate_tune::difference::compare;

/// A host with more changes at once is another host: these are kept.
const MOST_CHANGES: usize = 100;

/// The changes from one state of a host to the next; counters, names and addresses are none. `seen` is when the host was
/// last seen as it was.
pub(super) fn changes(before: &Facts, after: &Facts, seen: UnixMillis) -> Vec<HostChange> {
    let read = |facts: &Facts| serde_json::from_slice::<HostFacts>(&facts.json).ok();
    let (Some(old), Some(new)) = (read(before), read(after)) else {
        return Vec::new();
    };
    let differences = compare(&old, &new).differences.into_iter();
    let told =
        differences.filter(|one| matches!(one.weight, Weight::Matters { .. } | Weight::Other));
    let change = |one: linerate_model::host::Difference| HostChange {
        host: after.host.as_str().into(),
        fact: one.path.into(),
        before: one.a.map(Into::into),
        after: one.b.map(Into::into),
        last_before: seen,
        first_after: after.since,
    };
    told.take(MOST_CHANGES).map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(kernel: &str, at: u64) -> Facts {
        let mut facts = HostFacts::default();
        facts.system.kernel = linerate_model::host::Fact::Known(kernel.to_owned());
        Facts {
            host: "a".to_owned(),
            since: UnixMillis(at),
            json: serde_json::to_vec(&facts).unwrap(),
        }
    }

    #[test]
    fn a_new_kernel_is_a_change_and_the_same_one_is_none() {
        let (old, new) = (facts("5.14.0", 1), facts("6.1.0", 9));
        let found = changes(&old, &new, UnixMillis(7));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].fact.contains("kernel"), "{found:?}");
        assert_eq!(found[0].before.as_deref(), Some("5.14.0"));
        assert_eq!(
            (found[0].last_before, found[0].first_after),
            (UnixMillis(7), UnixMillis(9))
        );
        assert!(changes(&old, &facts("5.14.0", 9), UnixMillis(7)).is_empty());
    }
}
