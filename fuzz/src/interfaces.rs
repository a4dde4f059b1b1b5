//! A declaration of a guest's interfaces, as TOML and as the INI request, and the plan that it makes.

use linerate_tune::guest::{self, Situation, declaration};

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for name in ["fuzz.toml", "fuzz.ini"] {
        match declaration::parse(name, text) {
            Ok(declared) => {
                let plan = guest::plan(&declared, &Situation::default());
                for action in &plan.actions {
                    assert!(!action.to_string().is_empty());
                }
            }
            Err(error) => assert!(error.to_string().starts_with(name)),
        }
    }
}
