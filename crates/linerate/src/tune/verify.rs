//! `linerate tune verify`.

use std::collections::BTreeMap;

use linerate_model::change_set::Verification;
use linerate_model::host::HostFacts;
use linerate_report::host as report;
use linerate_tune::journal::ChangeSet;
use linerate_tune::{kept_file, verify};

use super::arguments::{PlaceArguments, ShowArguments};
use super::persist::others;
use super::place::Place;
use crate::action::Failure;
use crate::printer::Printer;

/// Settings that were confirmed or persisted, held against what is in force.
pub(crate) fn verification(arguments: &PlaceArguments) -> Result<Verification, Failure> {
    let place = Place::of(arguments)?;
    let sets = place.own_sets()?;
    let texts = texts(&place, &sets)?;
    // All of the host is read only where something is to be held against it.
    let facts = if sets.is_empty() {
        HostFacts::default()
    } else {
        place.facts()
    };
    let beside = others(&place, &facts)?;
    Ok(verify::verify(
        &sets,
        &facts,
        &mut *place.settings(),
        &texts,
        &beside,
    ))
}

pub(super) fn run(arguments: &ShowArguments, printer: &Printer) -> Result<(), Failure> {
    let verification = verification(&arguments.place)?;
    let text = || report::verification_report(&verification);
    printer.outcome(arguments.json, ("tune_verify", &verification), text)?;
    if verification.holds() {
        Ok(())
    } else {
        // The report has said what.
        Err(Failure::Said)
    }
}

/// The files that were written, as they are now.
fn texts(place: &Place, sets: &[ChangeSet]) -> Result<BTreeMap<String, Option<String>>, Failure> {
    let mut texts = BTreeMap::new();
    for file in sets.iter().flat_map(|set| &set.files) {
        let text = kept_file::read(&place.files, &file.path)?;
        texts.insert(file.path.clone(), text);
    }
    Ok(texts)
}
