//! What of the confirmed changes runs, is persisted, has drifted, and who did it.

use std::collections::BTreeMap;

use linerate_model::change_set::{SCHEMA_VERSION, SetState, Verification, VerifiedSetting};
use linerate_model::host::{Fact, HostFacts};
use linerate_model::tuning::Object;

use crate::apply::same;
use crate::journal::ChangeSet;
use crate::persist::{self, Confirmed, Kept, Others};
use crate::plan::{owners, running_owners};
use crate::settings::Settings;

const NOBODY: &str =
    "no file and no program that is known sets it: by hand, or by a program that is not known";

/// Holds what was confirmed against what runs and what files say. `texts` are the files that were written, as they are
/// now; `None` for one that is gone. `beside` are the files of others.
pub fn verify(
    sets: &[ChangeSet],
    facts: &HostFacts,
    settings: &mut dyn Settings,
    texts: &BTreeMap<String, Option<String>>,
    beside: &Others,
) -> Verification {
    let confirmed = persist::confirmed(sets);
    let kept = persist::files(&confirmed, facts, beside, "");
    let settings = confirmed
        .into_iter()
        .map(|one| verified(one, facts, settings, &kept, texts))
        .collect();
    Verification {
        schema_version: SCHEMA_VERSION,
        settings,
        files: changed_files(sets, texts),
        open: sets.iter().filter_map(open).collect(),
    }
}

fn verified(
    one: Confirmed,
    facts: &HostFacts,
    settings: &mut dyn Settings,
    kept: &Kept,
    texts: &BTreeMap<String, Option<String>>,
) -> VerifiedSetting {
    let read = settings
        .read(&one.object)
        .map_err(|error| error.to_string());
    // The kernel's tabs are no drift.
    let read = read.map(|read| {
        if same(&read, &one.value) {
            one.value.clone()
        } else {
            read
        }
    });
    let runs: Fact<String> = read.into();
    let holds = runs.known() == Some(&one.value);
    let mut others = if holds {
        running_owners(facts, &one.object)
    } else {
        owners(facts, &one.object)
    };
    others.retain(|other| !other.starts_with(persist::SYSCTLS));
    if !holds && others.is_empty() {
        others.push(NOBODY.to_owned());
    }
    let persisted = kept
        .lines
        .iter()
        .filter(|(object, ..)| *object == one.object)
        .find(|(_, path, line)| {
            let text = texts.get(path).and_then(Option::as_deref);
            text.is_some_and(|text| text.contains(line.as_str()))
        })
        .map(|(_, path, _)| path.clone());
    VerifiedSetting {
        at_boot: at_boot(&one, facts),
        object: one.object,
        set: one.set,
        confirmed: one.value,
        runs,
        persisted,
        others,
    }
}

/// A line that sets something else at boot.
fn at_boot(one: &Confirmed, facts: &HostFacts) -> Option<String> {
    let Object::Sysctl { key } = &one.object else {
        return None;
    };
    let winner = persist::winner(facts, key)?;
    (!same(&winner.value, &one.value)).then(|| format!("{} sets {}", winner.place(), winner.value))
}

fn changed_files(sets: &[ChangeSet], texts: &BTreeMap<String, Option<String>>) -> Vec<String> {
    let written = sets.iter().flat_map(|set| &set.files);
    written
        .filter_map(|file| match texts.get(&file.path) {
            Some(None) | None => Some(format!("{} is gone", file.path)),
            Some(Some(text)) if *text != file.text => {
                Some(format!("{} was changed since it was written", file.path))
            }
            Some(Some(_)) => None,
        })
        .collect()
}

fn open(set: &ChangeSet) -> Option<String> {
    let is_open = set.state.is_pending() || set.state == SetState::Unfinished;
    is_open.then(|| format!("{} is {}", set.snapshot.id, set.state.words()))
}
