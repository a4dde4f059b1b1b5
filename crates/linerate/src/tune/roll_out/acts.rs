//! The actions of a roll-out: each does one thing with a host and says what came of it.

use std::time::Duration;

use linerate_kernel::clock;
use linerate_model::change_set::{SetState, SetView};
use linerate_model::mesh::MeshOutcome;
use linerate_model::plan::{Direction, Family};
use linerate_model::record::Flow;
use linerate_model::units::Nanos;
use linerate_watch::roll_out::{Action, BothWays, Entry, Found};
use serde::Deserialize;

use super::hosts::Hosts;
use crate::between::far::{self, MARGIN, Order, Party, Progress};
use crate::between::roles::End;
use crate::mesh::figures;

/// A change has been made by then.
const CHANGE: Nanos = Nanos::from_millis(120_000);
/// A change that proves itself has been made by then.
const PROOF: Nanos = Nanos::from_millis(3_600_000);
/// A host whose link went down for a moment is back by then.
const BACK: Nanos = Nanos::from_millis(20_000);
/// Between two tries to reach a host.
const PAUSE: Duration = Duration::from_secs(1);
/// The test with each neighbour, both ways at once.
const TEST: [&str; 2] = ["-t", "2"];
const TEST_TIME: Nanos = Nanos::from_millis(2000);
/// How often a host is asked to put its old values back.
const TRIES: usize = 3;
/// Whose tests they are, for others who want the hosts.
const OWNER: &str = "a roll-out (linerate tune apply --on)";

/// An action, and what the roll-out knows of its node.
pub(super) struct Task {
    pub(super) action: Action,
    /// The node's set of changes, where it is known.
    pub(super) set: Option<String>,
    /// Goodput before the change.
    pub(super) before: Vec<BothWays>,
    /// Share of it that may be lost.
    pub(super) tolerance: f64,
}

/// Acts, and returns the answer.
pub(super) fn act(hosts: &Hosts, task: &Task) -> Entry {
    let answer = match &task.action {
        Action::Batch { .. } => Err("a batch is no action".to_owned()),
        Action::Measure { node, neighbours } => {
            measure(hosts, *node, neighbours, None).map(|goodput| Entry::Measured {
                node: *node,
                goodput,
            })
        }
        Action::Apply { node, prove } => apply(hosts, *node, *prove),
        Action::Reconnect { node } => reconnect(hosts, *node),
        Action::Test { node, neighbours } => {
            measure(hosts, *node, neighbours, Some(task)).map(|goodput| Entry::Tested {
                node: *node,
                goodput,
            })
        }
        Action::Confirm { node } => confirm(hosts, *node, task.set.as_deref()),
        Action::Check { node } => check(hosts, *node, task.set.as_deref()),
        Action::RollBack { node } => roll_back(hosts, *node, task.set.as_deref()),
    };
    answer.unwrap_or_else(|why| Entry::Lost {
        node: task.action.node().unwrap_or_default(),
        why: why.into(),
    })
}

/// Tests with each neighbour, after a change until one is worse. What is worse than before, or did not work, is tried
/// once more.
fn measure(
    hosts: &Hosts,
    node: usize,
    neighbours: &[usize],
    after: Option<&Task>,
) -> Result<Vec<BothWays>, String> {
    hosts.at(node)?;
    let mut all: Vec<BothWays> = Vec::new();
    for (place, &neighbour) in neighbours.iter().enumerate() {
        let enough = |one: BothWays| match after {
            None => one.out_bps.is_some() && one.in_bps.is_some(),
            Some(task) => {
                let before = task.before.get(place).copied().unwrap_or_default();
                let holds = |before: Option<f64>, now: Option<f64>| {
                    before.is_none_or(|before| {
                        now.is_some_and(|now| now >= (1.0 - task.tolerance) * before)
                    })
                };
                holds(before.out_bps, one.out_bps) && holds(before.in_bps, one.in_bps)
            }
        };
        let first = pair(hosts, node, neighbour);
        let result = if enough(first) {
            first
        } else {
            std::thread::sleep(PAUSE);
            best(first, pair(hosts, node, neighbour))
        };
        all.push(result);
        if after.is_some() && !enough(result) {
            // It goes back: no further test changes that.
            break;
        }
    }
    Ok(all)
}

fn best(one: BothWays, other: BothWays) -> BothWays {
    let most = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    };
    BothWays {
        out_bps: most(one.out_bps, other.out_bps),
        in_bps: most(one.in_bps, other.in_bps),
    }
}

/// A test both ways.
fn pair(hosts: &Hosts, node: usize, neighbour: usize) -> BothWays {
    let (Ok(from), Ok(to)) = (hosts.at(node), hosts.at(neighbour)) else {
        return BothWays::default();
    };
    let [from, to] = [(node, &from), (neighbour, &to)].map(|(host, standing)| Party {
        name: hosts.name(host),
        session: &standing.session,
        surroundings: &standing.surroundings,
    });
    let words = TEST.map(str::to_owned);
    let order = Order {
        words: &words,
        direction: Direction::Both,
        family: Family::Any,
        of_the_client: None,
        addresses: [None; 2],
        first: End::From,
        ports: [None; 2],
        owner: OWNER,
        several: false,
        recorded: true,
        bounds: far::Bounds::default(),
        within: Some(TEST_TIME.plus(MARGIN)),
        stop: &|| false,
    };
    let mut client = None;
    let run = far::run(from, to, &order, &mut |progress| {
        if let Progress::Ready(roles, _) = progress {
            client = Some(roles.client);
        }
    });
    let Some((record, client)) = run.ok().and_then(|run| run.record).zip(client) else {
        return BothWays::default();
    };
    let goodput = |flow| match figures::of(&record, flow, false) {
        MeshOutcome::Measured(figures) => Some(figures.goodput_bps),
        _ => None,
    };
    let (out, back) = match client {
        End::From => (Flow::ClientToServer, Flow::ServerToClient),
        End::To => (Flow::ServerToClient, Flow::ClientToServer),
    };
    BothWays {
        out_bps: goodput(out),
        in_bps: goodput(back),
    }
}

#[derive(Deserialize)]
struct Applied {
    set: SetView,
}

fn apply(hosts: &Hosts, node: usize, prove: bool) -> Result<Entry, String> {
    let (words, within) = if prove {
        (&hosts.change().prove[..], PROOF)
    } else {
        (&[][..], CHANGE)
    };
    let said = hosts.apply(node, words, within)?;
    let why = match said.code {
        0 => match serde_json::from_slice::<Applied>(&said.out) {
            Ok(applied) => {
                return Ok(Entry::Applied {
                    node,
                    set: applied.set.id.into(),
                });
            }
            Err(_) => "it has nothing to change any more".to_owned(),
        },
        // Refused, no gain shown, or taken back: the old values are there.
        1 | 2 | 4 | 7 | 8 | 9 => said.why(),
        // What it has is asked for.
        _ => return Err(said.why()),
    };
    Ok(Entry::NotApplied {
        node,
        why: why.into(),
    })
}

fn reconnect(hosts: &Hosts, node: usize) -> Result<Entry, String> {
    let until = clock::monotonic().plus(BACK);
    loop {
        match hosts.open(node) {
            Ok(_) => return Ok(Entry::Reconnected { node }),
            Err(why) if clock::monotonic() >= until => {
                return Err(format!("no new connection: {why}"));
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn confirm(hosts: &Hosts, node: usize, set: Option<&str>) -> Result<Entry, String> {
    let mut words = vec!["--json"];
    words.extend(set);
    let said = hosts.tune(node, "confirm", &words)?;
    Ok(if said.code == 0 {
        Entry::Confirmed { node }
    } else {
        Entry::NotConfirmed {
            node,
            why: said.why().into(),
        }
    })
}

/// Finds out which settings a node has. One in the middle of a change is brought back to its old ones.
fn check(hosts: &Hosts, node: usize, set: Option<&str>) -> Result<Entry, String> {
    let mut reverts = Reverts::default();
    let settings = patiently(hosts, node, |hosts| {
        let Some(view) = view(hosts, node, set)? else {
            return Ok(Some(Found::Old));
        };
        Ok(match view.state {
            SetState::Confirmed => Some(Found::Confirmed),
            // What nobody knows by its name is not confirmed.
            SetState::Applied if set.is_some() => Some(Found::Waiting),
            _ => reverts.go_on(hosts, node, &view)?.then_some(Found::Old),
        })
    })?;
    Ok(Entry::Found { node, settings })
}

/// Sees to it that a node has its old settings.
fn roll_back(hosts: &Hosts, node: usize, set: Option<&str>) -> Result<Entry, String> {
    let mut reverts = Reverts::default();
    patiently(hosts, node, |hosts| {
        let Some(view) = view(hosts, node, set)? else {
            return Ok(Some(()));
        };
        Ok(reverts.go_on(hosts, node, &view)?.then_some(()))
    })?;
    Ok(Entry::RolledBack { node })
}

/// The node's set: by its name, else the one that waits.
fn view(hosts: &Hosts, node: usize, set: Option<&str>) -> Result<Option<SetView>, String> {
    let mut sets = hosts.sets(node)?.into_iter();
    Ok(match set {
        Some(id) => sets.find(|view| view.id == id),
        None => sets.rfind(|view| view.state.is_pending() || view.state == SetState::Unfinished),
    })
}

/// Tries until there is a result, or until the rollback that waits on the node must have run.
fn patiently<T>(
    hosts: &Hosts,
    node: usize,
    mut look: impl FnMut(&Hosts) -> Result<Option<T>, String>,
) -> Result<T, String> {
    let until = clock::monotonic()
        .plus(hosts.change().confirm_within)
        .plus(BACK);
    loop {
        let why = match hosts.at(node).and_then(|_| look(hosts)) {
            Ok(Some(result)) => return Ok(result),
            Ok(None) => "its old values are not back".to_owned(),
            Err(why) => why,
        };
        if clock::monotonic() >= until {
            return Err(why);
        }
        std::thread::sleep(PAUSE);
    }
}

/// What was tried to bring old values back.
#[derive(Default)]
struct Reverts {
    tries: usize,
    /// Confirmed values that something else has changed since are not overwritten.
    was_confirmed: bool,
}

impl Reverts {
    /// Whether the old values are back; asks for them where they are not.
    fn go_on(&mut self, hosts: &Hosts, node: usize, view: &SetView) -> Result<bool, String> {
        self.was_confirmed |= view.state == SetState::Confirmed;
        if matches!(
            view.state,
            SetState::Reverted | SetState::Ended | SetState::Prepared
        ) {
            return Ok(true);
        }
        if self.tries < TRIES {
            self.tries += 1;
            let mut words = vec!["--json", &view.id];
            if view.state == SetState::Unfinished && !self.was_confirmed {
                words.push("--force");
            }
            let said = hosts.tune(node, "revert", &words)?;
            if said.code != 0 {
                return Err(said.why());
            }
        }
        // The next look reads them.
        Ok(false)
    }
}
