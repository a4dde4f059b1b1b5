//! A profile as TOML and as lines of sysctl.conf(5), and the plan that it makes for a host of which nothing is known.

use linerate_model::host::HostFacts;
use linerate_tune::{plan, profile};

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let facts = HostFacts::default();
    for name in ["fuzz.toml", "fuzz.conf"] {
        match profile::read(name, text) {
            Ok(wishes) => {
                let plan = plan::plan(&facts, &wishes);
                assert!(!linerate_report::json::of_kind("tune_plan", &plan).is_empty());
                assert!(!linerate_report::host::plan_report(&plan).is_empty());
            }
            Err(error) => assert!(error.to_string().starts_with(name)),
        }
    }
}
