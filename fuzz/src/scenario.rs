//! A scenario of the lab, and what its path claims to do.

use linerate_lab::path::Counters;
use linerate_lab::scenario::Scenario;

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Scenario::parse("fuzz.toml", text) {
        Ok(scenario) => {
            let _ = (scenario.resolved_mode(), scenario.beyond_netem());
            let _ = (scenario.test.duration(), scenario.test.ways());
            let counters = Counters::default();
            let _ = scenario.check_claims(&counters, &counters);
        }
        Err(error) => assert!(error.to_string().starts_with("fuzz.toml")),
    }
}
