//! A template of pSConfig: its tests, the plan and what it costs.

use linerate_model::plain_text::PlainText;
use linerate_watch::plan::cost::cost;
use linerate_watch::psconfig::{read, tests};
use linerate_watch::watched::Reach;

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let plan = match read("fuzz.json", text, &Reach::Agent) {
        Ok(plan) => plan,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let Ok(found) = tests("fuzz.json", text) else {
        panic!("a template that was read has tests");
    };
    for task in &plan.tasks {
        let named = |name: &String| PlainText::from(name).as_str() == task.name.as_str();
        let tests = found.iter().find(|(name, _)| named(name));
        let many = tests.map_or(0, |(_, tests)| tests.len());
        assert!(task.pairs.len() <= many);
        for pair in &task.pairs {
            assert!(pair.from != pair.to);
            assert!(pair.from.max(pair.to) < plan.hosts.len());
        }
    }
    let cost = cost(&plan);
    assert!(cost.tests_a_day.is_finite() && cost.bytes_a_day.is_finite());
}
