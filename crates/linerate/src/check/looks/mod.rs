//! What a child does for a check: it looks at one thing, and may hang there.

mod audit;
mod hardware;
mod link;
mod local;
mod mount;
mod path;
mod volumes;

use std::ffi::OsStr;
use std::process::Output;

use linerate_check::judge;
use linerate_check::settings::{CommandCheck, What};
use linerate_model::check::{Found, Item, State};

use super::order::{Answer, program};

/// Looks; `before` is what the last look wanted to be remembered.
pub(super) fn look(what: &What, before: Option<serde_json::Value>) -> Answer {
    let mut next = None;
    let items = match what {
        What::Mount(check) => mount::look(check),
        What::Space(room) => local::space(*room),
        What::ReadOnly => local::read_only(),
        What::Link(check) => {
            let (items, counters) = link::look(check, before);
            next = Some(counters);
            items
        }
        What::Path(check) => path::look(check),
        What::Md => volumes::md(),
        What::Drbd => volumes::drbd(),
        What::Lvm => volumes::lvm(),
        What::Smart => hardware::smart(),
        What::Clock { error } => hardware::clock(*error),
        What::Ecc => {
            let (items, corrected) = hardware::ecc(before.and_then(|before| before.as_u64()));
            next = Some(corrected.into());
            items
        }
        What::Audit => audit::look(),
        What::Command(check) => command(check),
    };
    Answer::Looked { items, next }
}

/// What could not be found out.
fn cannot_tell(on: &str, why: impl Into<String>) -> Item {
    let why = why.into().into();
    Item::new(on, State::Unknown, Found::CannotTell { why })
}

fn nothing() -> Vec<Item> {
    vec![Item::new("", State::Ok, Found::Nothing)]
}

/// Runs a program to its end.
fn run(words: &[impl AsRef<OsStr>]) -> std::io::Result<Output> {
    program(words)?.output()
}

fn command(check: &CommandCheck) -> Vec<Item> {
    vec![match run(&check.run) {
        Ok(done) => judge::command(done.status.code(), &String::from_utf8_lossy(&done.stdout)),
        Err(error) => cannot_tell("", format!("cannot run {}: {error}", check.run[0])),
    }]
}
