//! `linerate mesh trunk`: what a link between two sets of hosts carries.

use linerate_kernel::clock;
use linerate_model::mesh::{MeshHost, TrunkEnd, TrunkRamp};
use linerate_model::units::Nanos;
use linerate_report::mesh as report;
use linerate_watch::trunk::Ramp;

use super::arguments::TrunkArguments;
use super::field::Field;
use super::folder::{Folder, TRUNK};
use super::measure::{Test, default_folder, owner, test, unix_s};
use super::rounds::Tests;
use crate::action::Failure;
use crate::printer::Printer;
use crate::signals;

pub(super) fn run(arguments: &TrunkArguments, printer: &Printer) -> Result<(), Failure> {
    let common = &arguments.common;
    let sets = [&arguments.from, &arguments.to].map(|set| common.reach.hosts(set));
    let [from, to] = sets;
    let (from, to) = (from?, to?);
    if let Some(both) = from.iter().find(|host| to.contains(host)) {
        return Err(Failure::Usage(format!(
            "{both} is in --from and in --to; a link lies between two sets of different hosts"
        )));
    }
    let Test { plan, words, port } = test(common, None)?;
    let path = common.output.clone().unwrap_or_else(default_folder);
    let folder = Folder::take(&path, true)?;
    let stop = signals::take_stops()?;
    let names: Vec<String> = from.iter().chain(&to).cloned().collect();
    let field = Field::open(names, common, &stop, printer)?;
    let owner = owner();
    let tests = Tests {
        plan: &plan,
        words: &words,
        both: false,
        wave: true,
        first_port: None,
        owner: &owner,
        port,
        begun: clock::monotonic(),
        offset: Nanos::ZERO,
        stop: &stop,
    };
    let standing = field.standing();
    let side = |range: std::ops::Range<usize>| -> Vec<usize> {
        range.filter(|host| standing.contains(host)).collect()
    };
    let senders = side(0..from.len());
    let receivers = side(from.len()..field.len());
    let lost = lost(&field);
    if senders.is_empty() || receivers.is_empty() {
        return Err(Failure::Unreachable(lost));
    }
    let started = unix_s();
    let options = words.join(" ");
    let mut ramp =
        Ramp::new(&senders, &receivers).map_err(|error| Failure::Usage(error.to_string()))?;
    let hosts: Vec<MeshHost> = field.hosts();
    let mut number = 0;
    // Ends: the ramp doubles its pairs until there are no more.
    while let Some(pairs) = ramp.poll_step() {
        if crate::between::asked(&stop) {
            break;
        }
        drop(printer.status(&format!("{} of {} pairs at once", pairs.len(), ramp.most())));
        let pairs = pairs.to_vec();
        let made = tests.round(&field, &pairs, number, false, &folder)?;
        for test in &made {
            let (from, to) = (field.name(test.from), field.name(test.to));
            printer.tell(&report::ended_line(from, to, test));
        }
        ramp.handle_tests(made);
        number += 1;
        // Whatever becomes of the next step, this one is kept.
        let so_far = ramp
            .clone()
            .finish(started, hosts.clone(), options.as_str().into());
        folder.write(TRUNK, report::trunk_json(&so_far).as_bytes())?;
    }
    let stopped = crate::between::asked(&stop);
    let ramp = ramp.finish(started, hosts, options.as_str().into());
    folder.write(TRUNK, report::trunk_json(&ramp).as_bytes())?;
    print(&ramp, common.json, printer)?;
    if stopped {
        return Err(Failure::Incomplete(
            "the ramp was stopped: more pairs might have brought more".to_owned(),
        ));
    }
    if !lost.is_empty() {
        return Err(Failure::Unreachable(lost));
    }
    if ramp.ended == TrunkEnd::Failed {
        return Err(Failure::Incomplete(
            "most tests of a step failed; the report says why".to_owned(),
        ));
    }
    Ok(())
}

/// Prints a ramp.
pub(super) fn print(ramp: &TrunkRamp, json: bool, printer: &Printer) -> Result<(), Failure> {
    if json {
        printer.json(&report::trunk_json(ramp))?;
    } else {
        printer.print(&report::trunk_text(ramp, printer.style()))?;
    }
    Ok(())
}

/// The hosts that were not reached, with the reasons; empty where all were.
fn lost(field: &Field) -> String {
    let hosts = 0..field.len();
    let lost = hosts.filter_map(|host| {
        let why = field.at(host).err()?;
        Some(format!("{} was not reached: {why}", field.name(host)))
    });
    lost.collect::<Vec<_>>().join("; ")
}
