//! Stars: many hosts, switches and trunks, for `up`, `exec` and meshes of tests.

use linerate_fleet::nodes::{NodeSet, Sources};
use linerate_lab::runner::{self, StarLab};
pub(super) use linerate_lab::star::is_star;
use linerate_lab::star::{Down, Star};

use super::standing::found;
use super::state::{Folder, Held, HeldHost};
use crate::action::Failure;
use crate::printer::Printer;

/// A star where a path between two hosts is wanted.
pub(super) fn no_path(file: &str) -> Failure {
    Failure::Usage(format!(
        "{file} is a star of many hosts, and this command takes a path between two: `linerate lab up NAME --scenario \
         {file}` brings the star up, `linerate lab exec NAME HOST -- COMMAND` runs a command on one of its hosts, and \
         `linerate mesh` tests between them"
    ))
}

/// Makes it; the process holds it from then on.
pub(super) fn made(name: &str, text: &str, seed: Option<u64>) -> Result<(StarLab, Held), Failure> {
    let mut star = Star::parse(name, text)?;
    star.seed = seed.unwrap_or(star.seed);
    runner::isolate()?;
    let lab = StarLab::up(&star)?;
    let held = Held::star_by_us(name, &star, &lab);
    Ok((lab, held))
}

/// Prints the switches of a star as groups.
pub(super) fn groups(name: &str, printer: &Printer) -> Result<(), Failure> {
    let held = found(&Folder::open()?, name)?;
    if held.switches.is_empty() {
        return Err(Failure::Usage(format!(
            "{name} is a path between two hosts and has no switches"
        )));
    }
    for switch in &held.switches {
        let on_it = |host: &&HeldHost| host.switch.as_ref() == Some(&switch.name);
        let hosts = held.hosts.iter().filter(on_it);
        let names: Vec<&str> = hosts.map(|host| host.name.as_str()).collect();
        if !names.is_empty() {
            printer.line(&format!("{}: {}", switch.name, folded(&names)))?;
        }
    }
    Ok(())
}

/// Names as one text.
pub(super) fn folded(names: &[&str]) -> String {
    let all = names.join(",");
    NodeSet::read(&all, &Sources::none()).map_or(all, |set| set.to_string())
}

/// Refuses a host that is dead as a whole.
pub(super) fn refuse_dead(held: &Held, host: &HeldHost) -> Result<(), Failure> {
    if host.down == Some(Down::Host) {
        return Err(Failure::Lab(format!(
            "{} of {} is down, as its file says",
            host.name, held.name
        )));
    }
    Ok(())
}
