//! `watch.toml`, and what it costs.

use linerate_watch::plan::cost::cost;
use linerate_watch::plan::{Groups, MOST_PAIRS, parse};

/// Larger plans take so long to add up that the inputs would be few.
const ADDED_UP: usize = 20_000;

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let nodes = |set: &str, groups: &Groups| match set.strip_prefix('@') {
        Some(group) => groups.get(group).cloned().ok_or("no such group".to_owned()),
        None => Ok(set.split(',').map(str::to_owned).collect()),
    };
    match parse("fuzz.toml", text, &nodes) {
        Ok(plan) => {
            let pairs = plan.tasks.iter().flat_map(|task| &task.pairs);
            let mut count = 0;
            for pair in pairs {
                count += 1;
                assert!(pair.from != pair.to);
                assert!(pair.from.max(pair.to) < plan.hosts.len());
            }
            assert!(count <= MOST_PAIRS);
            if count <= ADDED_UP {
                let cost = cost(&plan);
                assert_eq!(cost.pairs, count);
                assert!(cost.tests_a_day.is_finite() && cost.bytes_a_day.is_finite());
                assert!(cost.refused.iter().all(|why| !why.to_string().is_empty()));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
