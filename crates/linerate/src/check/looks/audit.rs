//! Settings that were confirmed or persisted, as `linerate tune verify` looks at them.

use linerate_model::check::{Found, Item, State};

use super::{cannot_tell, nothing};
use crate::tune;

pub(super) fn look() -> Vec<Item> {
    let verification = match tune::verification(&tune::PlaceArguments::default()) {
        Ok(verification) => verification,
        Err(error) => return vec![cannot_tell("", error.to_string())],
    };
    let count = verification.settings.len() as u64;
    if count == 0 && verification.holds() {
        return nothing();
    }
    let drifted = verification
        .settings
        .iter()
        .filter(|one| one.has_drifted())
        .count() as u64;
    let state = if verification.holds() {
        State::Ok
    } else {
        State::Warn
    };
    vec![Item::new("", state, Found::Settings { drifted, count })]
}
