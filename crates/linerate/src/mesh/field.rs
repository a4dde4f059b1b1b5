//! The hosts of a mesh: sessions that stand, their addresses, and the groups that they form.

use std::collections::BTreeMap;

use linerate_fleet::{Ask, Event, FleetError, Reach, Session, each};
use linerate_kernel::process::raise_descriptor_limit;
use linerate_kernel::thread::SignalFd;
use linerate_model::host::HostFacts;
use linerate_model::mesh::{MeshGroup, MeshGroupKind, MeshHost};
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;
use linerate_report::host as report;
use linerate_wire::agent::Word;

use super::arguments::CommonArguments;
use crate::action::Failure;
use crate::between::far;
use crate::between::reach::Surroundings;
use crate::printer::Printer;

/// A host says what it is within this time.
const SOON: Nanos = Nanos::from_millis(20_000);

/// Facts are no longer than this, bytes.
const MOST_FACTS: usize = 8 << 20;

/// A host that answers.
pub(super) struct Standing {
    pub(super) session: Session,
    pub(super) surroundings: Surroundings,
    /// What it has; absent = it does not say.
    facts: Option<HostFacts>,
}

/// The hosts of a mesh, each in its place.
pub(super) struct Field {
    names: Vec<String>,
    reached: Vec<Result<Standing, String>>,
    reach: Reach,
    fan_out: usize,
}

impl Field {
    /// Connects to all of them. One that cannot be reached keeps its place, with the reason.
    pub(super) fn open(
        names: Vec<String>,
        common: &CommonArguments,
        stop: &SignalFd,
        printer: &Printer,
    ) -> Result<Self, Failure> {
        // Three pipes a host; where the limit stays, some hosts say so.
        drop(raise_descriptor_limit());
        let reach = common.reach.reach()?;
        // The output may be gone; the last write says so.
        drop(printer.status(&format!("connecting to {} hosts …", names.len())));
        let reached = each(&names, common.reach.fan_out, |name| {
            if crate::between::asked(stop) {
                return Err("stopped".to_owned());
            }
            standing(name, &reach, stop)
        });
        Ok(Self {
            names,
            reached,
            reach,
            fan_out: common.reach.fan_out,
        })
    }

    pub(super) fn name(&self, host: usize) -> &str {
        &self.names[host]
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// A host, or why it does not answer.
    pub(super) fn at(&self, host: usize) -> Result<&Standing, &str> {
        self.reached[host].as_ref().map_err(String::as_str)
    }

    /// The places of those that answer.
    pub(super) fn standing(&self) -> Vec<usize> {
        let places = 0..self.len();
        places.filter(|host| self.reached[*host].is_ok()).collect()
    }

    /// Connects once more to hosts whose session has ended, and with `also_lost` to those that were not reached before.
    pub(super) fn mend(&mut self, stop: &SignalFd, also_lost: bool) {
        let ended = |host: &usize| match &self.reached[*host] {
            Ok(standing) => !standing.session.is_open(),
            Err(_) => also_lost,
        };
        let places: Vec<usize> = (0..self.len()).filter(ended).collect();
        if places.is_empty() || crate::between::asked(stop) {
            return;
        }
        let names: Vec<String> = places
            .iter()
            .map(|host| self.names[*host].clone())
            .collect();
        let again = each(&names, self.fan_out, |name| {
            standing(name, &self.reach, stop)
        });
        for (host, reached) in places.into_iter().zip(again) {
            self.reached[host] = reached;
        }
    }

    pub(super) fn hosts(&self) -> Vec<MeshHost> {
        let hosts = self.names.iter().zip(&self.reached);
        hosts
            .map(|(name, reached)| MeshHost {
                name: name.as_str().into(),
                unreachable: reached.as_ref().err().map(|why| why.as_str().into()),
            })
            .collect()
    }

    /// The groups of files (`named`), and those that facts make. One that holds no host or all of them says nothing and
    /// is left out.
    pub(super) fn groups(&self, named: &BTreeMap<String, Vec<String>>) -> Vec<MeshGroup> {
        let mut groups: BTreeMap<(MeshGroupKind, PlainText, PlainText), Vec<usize>> =
            BTreeMap::new();
        for (host, name) in self.names.iter().enumerate() {
            let places = named.iter().filter(|(_, members)| members.contains(name));
            for (group, _) in places {
                let key = (MeshGroupKind::Place, "group".into(), group.as_str().into());
                groups.entry(key).or_default().push(host);
            }
            let facts = self.at(host).ok().and_then(|host| host.facts.as_ref());
            for (of, value) in facts.map(telling).unwrap_or_default() {
                let key = (MeshGroupKind::Fact, of.into(), value.as_str().into());
                groups.entry(key).or_default().push(host);
            }
        }
        let all = self.len();
        groups
            .into_iter()
            .filter(|(_, members)| members.len() < all)
            .map(|((kind, of, name), members)| MeshGroup {
                of,
                kind,
                name,
                members,
            })
            .collect()
    }
}

fn standing(name: &str, reach: &Reach, stop: &SignalFd) -> Result<Standing, String> {
    let session = Session::open(name, reach).map_err(|error| error.trouble.to_string())?;
    let stopped = || crate::between::asked(stop);
    let surroundings =
        far::surroundings(&session, &stopped).map_err(|failure| failure.why.to_string())?;
    let facts = facts(&session).ok().flatten();
    Ok(Standing {
        session,
        surroundings,
        facts,
    })
}

/// What a host says of itself; `None` where that cannot be read.
fn facts(session: &Session) -> Result<Option<HostFacts>, FleetError> {
    let words = ["host", "--json"].map(Word::from).to_vec();
    let mut asked = session.ask(Ask {
        words,
        ..Ask::default()
    })?;
    let mut out = Vec::new();
    loop {
        match asked.next(Some(SOON))? {
            // What is longer is not the facts of a host.
            Event::Out(bytes) if out.len() + bytes.len() <= MOST_FACTS => {
                out.extend_from_slice(&bytes);
            }
            Event::Out(_) => return Ok(None),
            Event::Ended(_) => return Ok(report::from_json(&out).ok()),
            Event::Err(_) | Event::File(..) => {}
        }
    }
}

/// What may make some hosts slower than others: their kernel, the driver and speed of their links.
fn telling(facts: &HostFacts) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if let Some(kernel) = facts.system.kernel.known() {
        found.push(("kernel", kernel.clone()));
    }
    let mut drivers: Vec<String> = Vec::new();
    let interfaces = facts.interfaces.known().map_or(&[][..], Vec::as_slice);
    for interface in interfaces.iter().filter(|interface| interface.up) {
        let has_address = interface
            .addresses
            .known()
            .is_some_and(|all| !all.is_empty());
        if let Some(driver) = interface.driver.known().filter(|_| has_address) {
            drivers.push(driver.name.clone());
        }
    }
    drivers.sort();
    drivers.dedup();
    if !drivers.is_empty() {
        found.push(("driver", drivers.join(" and ")));
    }
    found
}
