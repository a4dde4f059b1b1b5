//! Competing traffic: clients of our own on hosts of their own.

use std::process::Stdio;

use linerate_kernel::process::ChildSettings;
use linerate_lab::runner::Lab;
use linerate_lab::scenario::{Cross, CrossKind, Scenario, Way};
use linerate_model::units::{BitRate, Nanos};

use super::programs::{Program, Serving, linerate};
use crate::action::Failure;

/// A client without an end of its own goes on for this long at most, seconds.
const LONGEST: u64 = 3600;

/// All of a scenario's competing traffic.
#[derive(Debug)]
pub(super) struct CrossTraffic<'a> {
    lab: &'a Lab,
    scenario: &'a Scenario,
    servers: Vec<Serving>,
    waiting: Vec<&'a Cross>,
    clients: Vec<Program>,
}

impl<'a> CrossTraffic<'a> {
    /// Starts the servers that it needs.
    pub(super) fn prepare(lab: &'a Lab, scenario: &'a Scenario) -> Result<Self, Failure> {
        let cross = &scenario.path.cross;
        let mut servers = Vec::new();
        for way in [Way::Forward, Way::Back] {
            if cross.iter().any(|each| each.way == way) {
                servers.push(Serving::start(
                    lab.host(ends(way)[1])?,
                    &[],
                    &ChildSettings::default(),
                )?);
            }
        }
        let mut waiting: Vec<&Cross> = cross.iter().collect();
        waiting.sort_by_key(|each| each.from);
        Ok(Self {
            lab,
            scenario,
            servers,
            waiting,
            clients: Vec::new(),
        })
    }

    /// When the next one begins, after the test's beginning.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.waiting.first().map(|each| each.from)
    }

    /// Starts those whose time has come.
    pub(super) fn start_due(&mut self, since_begin: Nanos) -> Result<(), Failure> {
        while let Some(due) = self
            .waiting
            .first()
            .copied()
            .filter(|each| each.from <= since_begin)
        {
            self.waiting.remove(0);
            let [from, to] = ends(due.way);
            let address = self.lab.host(to)?.address(self.scenario.family).to_string();
            let mut command = linerate(arguments(due, address));
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let host = self.lab.host(from)?;
            self.clients.push(Program::start(
                host,
                &mut command,
                &ChildSettings::default(),
            )?);
        }
        Ok(())
    }

    /// Ends it all.
    pub(super) fn stop(&mut self) {
        self.waiting.clear();
        self.clients.clear();
        self.servers.clear();
    }
}

const fn ends(way: Way) -> [&'static str; 2] {
    match way {
        Way::Forward => ["cross-sender", "cross-receiver"],
        Way::Back => ["cross-receiver", "cross-sender"],
    }
}

/// A client's arguments; few samples, since nobody reads them.
fn arguments(cross: &Cross, address: String) -> Vec<String> {
    let length = cross
        .to
        .map_or(LONGEST as f64, |to| to.since(cross.from).as_secs_f64());
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut all = words("test --json --sample 1s");
    all.push(address);
    all.extend(words(&format!("-t {length}")));
    match cross.kind {
        CrossKind::Udp { rate } => all.extend(words(&format!("-u -b {}", rate.0))),
        CrossKind::Tcp { streams, rate } => {
            all.extend(words(&format!("-P {streams}")));
            // `-b` is each stream's.
            if let Some(BitRate(rate)) = rate {
                all.extend(words(&format!("-b {}", (rate / u64::from(streams)).max(1))));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_split_between_streams() {
        let cross = Cross {
            kind: CrossKind::Tcp {
                streams: 4,
                rate: Some(BitRate(400_000_000)),
            },
            way: Way::Forward,
            from: Nanos::from_millis(2000),
            to: Some(Nanos::from_millis(8500)),
        };
        let line = arguments(&cross, "192.0.2.14".to_owned()).join(" ");
        assert!(
            line.ends_with("192.0.2.14 -t 6.5 -P 4 -b 100000000"),
            "{line}"
        );
    }
}
