//! What firing pairs have in common: [`crate::cause`] over the results since the fault began.

use linerate_model::alert::{AlertCause, AlertId, AlertKind, AlertState, RunShows};
use linerate_model::mesh::{
    Mesh, MeshCause, MeshCauseKind, MeshDirection, MeshFigures, MeshGroup, MeshGroupKind, MeshHost,
    MeshOutcome, MeshTest, SCHEMA_VERSION,
};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;

use super::pair::Watch;
use super::{Action, Alerts, PairName};
use crate::cause;
use crate::watched::Watched;

/// Pairs that have to fire for one cause.
const FEWEST: usize = 2;
/// What a pair that shows its baseline has in the mesh, bit/s: pairs of different links become comparable.
const LEVEL: f64 = 1e9;

/// A group of hosts of the plan.
#[derive(Debug, Clone)]
pub(super) struct Place {
    name: PlainText,
    members: Vec<PlainText>,
}

/// The groups of a plan with two hosts or more.
pub(super) fn places(watched: &Watched) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for host in &watched.hosts {
        for group in &host.groups {
            match places.iter_mut().find(|place| place.name == *group) {
                Some(place) => place.members.push(host.name.clone()),
                None => places.push(Place {
                    name: group.clone(),
                    members: vec![host.name.clone()],
                }),
            }
        }
    }
    places.retain(|place| place.members.len() > 1);
    places
}

/// A cause, and the firing pairs that it explains.
struct Explained {
    cause: AlertCause,
    pairs: Vec<PairName>,
}

impl Alerts {
    /// Puts the firing pairs of a task that have one cause into one alert.
    pub(super) fn group(&mut self, now: UnixMillis, task: &PlainText) {
        for explained in self.explained(now, task) {
            let ids = explained
                .pairs
                .iter()
                .filter_map(|name| self.pairs.get(name)?.alert);
            let mut ids: Vec<AlertId> = ids.collect();
            ids.sort_unstable();
            ids.dedup();
            // The alert that began first is the one that goes on.
            let Some((&kept, others)) = ids.split_first() else {
                continue;
            };
            for &other in others {
                self.merge(now, other, kept);
            }
            let inside = self
                .pairs
                .iter()
                .filter(|(_, watch)| watch.alert == Some(kept));
            let all = inside
                .clone()
                .all(|(name, _)| explained.pairs.contains(name));
            let alert = self.open.iter_mut().find(|alert| alert.id == kept);
            let Some(alert) = alert else { continue };
            if others.is_empty() && (!all || alert.cause == explained.cause) {
                continue;
            }
            alert.cause = explained.cause;
            self.refresh(now, kept, true);
        }
    }

    /// Moves the pairs of an alert into another one.
    fn merge(&mut self, now: UnixMillis, from: AlertId, into: AlertId) {
        for watch in self
            .pairs
            .values_mut()
            .filter(|watch| watch.alert == Some(from))
        {
            watch.alert = Some(into);
        }
        let Some(place) = self.open.iter().position(|alert| alert.id == from) else {
            return;
        };
        let mut merged = self.open.remove(place);
        (merged.state, merged.changed) = (AlertState::Resolved, now);
        (merged.until, merged.merged_into) = (Some(now), Some(into));
        if let Some(alert) = self.open.iter_mut().find(|alert| alert.id == into) {
            let new = merged
                .pairs
                .iter()
                .filter(|pair| pair.state == AlertState::Resolved);
            alert.pairs.extend(new.cloned());
        }
        self.actions.push_back(Action::AlertChanged(merged));
    }

    /// The causes of two firing pairs or more, each pair in one of them.
    fn explained(&self, now: UnixMillis, task: &PlainText) -> Vec<Explained> {
        let of_task = || self.pairs.iter().filter(|(name, _)| name.task == *task);
        let firing = of_task().filter(|(_, watch)| watch.state() == AlertState::Firing);
        let mut firing: Vec<&PairName> = firing.map(|(name, _)| name).collect();
        let watches: Vec<&Watch> = of_task().map(|(_, watch)| watch).collect();
        let mut found = away(&watches, &mut firing);
        if firing.len() < FEWEST {
            return found;
        }
        let mesh = self.mesh(&watches, onset(now, &watches));
        for cause in cause::causes(&mesh) {
            let is_single = matches!(cause.kind, MeshCauseKind::Pair | MeshCauseKind::Port);
            let (inside, rest): (Vec<&PairName>, Vec<&PairName>) = firing
                .iter()
                .copied()
                .partition(|name| !is_single && covers(&cause, &mesh, name));
            if inside.len() < FEWEST {
                continue;
            }
            firing = rest;
            found.push(Explained {
                cause: named(&cause, &mesh),
                pairs: inside.into_iter().cloned().collect(),
            });
        }
        found.extend(host_in_common(&watches, &firing));
        found
    }

    /// The latest results since the fault began, each as a share of its pair's baseline.
    fn mesh(&self, watches: &[&Watch], onset: UnixMillis) -> Mesh {
        let names = watches.iter().flat_map(|watch| [&watch.from, &watch.to]);
        let mut hosts: Vec<PlainText> = names.cloned().collect();
        hosts.sort_unstable();
        hosts.dedup();
        let place = |name: &PlainText| hosts.binary_search(name).ok();
        let test = |watch: &&Watch| {
            Some(MeshTest {
                from: place(&watch.from)?,
                to: place(&watch.to)?,
                round: 0,
                alone: false,
                source_port: None,
                span: None,
                outcome: outcome(watch, onset)?,
                record: None,
            })
        };
        let group = |one: &Place| {
            let members: Vec<usize> = one.members.iter().filter_map(place).collect();
            (members.len() > 1).then(|| MeshGroup {
                of: "group".into(),
                kind: MeshGroupKind::Place,
                name: one.name.clone(),
                members,
            })
        };
        Mesh {
            schema_version: SCHEMA_VERSION,
            started_unix_s: onset.0 / 1000,
            groups: self.places.iter().filter_map(group).collect(),
            rounds: 1,
            bound: 1,
            options: PlainText::default(),
            both: false,
            wave: false,
            expected_bps: None,
            via: None,
            tests: watches.iter().filter_map(test).collect(),
            hosts: hosts
                .iter()
                .map(|name| MeshHost {
                    name: name.clone(),
                    unreachable: None,
                })
                .collect(),
        }
    }
}

/// Whether the data of a host goes through a pair.
fn touches(from: &PlainText, to: &PlainText, host: &PlainText, direction: MeshDirection) -> bool {
    match direction {
        MeshDirection::Out => from == host,
        MeshDirection::In => to == host,
        MeshDirection::Both => from == host || to == host,
    }
}

fn of_host(host: &PlainText, direction: MeshDirection) -> AlertCause {
    AlertCause {
        kind: match direction {
            MeshDirection::Out => MeshCauseKind::HostOut,
            MeshDirection::In => MeshCauseKind::HostIn,
            MeshDirection::Both => MeshCauseKind::Host,
        },
        name: host.clone(),
        direction,
        from: vec![host.clone()],
        to: Vec::new(),
        in_common: Vec::new(),
    }
}

/// Hosts whose agents are away, and the firing pairs that wait for them, which leave `firing`. The hub knows it of these
/// hosts, so one firing pair is enough.
fn away(watches: &[&Watch], firing: &mut Vec<&PairName>) -> Vec<Explained> {
    let named = watches.iter().filter_map(|watch| watch.away.as_ref());
    let mut hosts: Vec<(&PlainText, usize)> = Vec::new();
    for host in named.filter(|host| !host.is_empty()) {
        match hosts.iter_mut().find(|(known, _)| *known == host) {
            Some((_, pairs)) => *pairs += 1,
            None => hosts.push((host, 1)),
        }
    }
    hosts.retain(|(_, pairs)| *pairs >= FEWEST);
    let mut found = Vec::new();
    for (host, _) in hosts {
        let waits = |name: &&PairName| {
            let same = |watch: &&&Watch| (&watch.from, &watch.to) == (&name.from, &name.to);
            let its = watches.iter().find(same);
            touches(&name.from, &name.to, host, MeshDirection::Both)
                && its.is_some_and(|watch| watch.away.is_some())
        };
        let (inside, rest): (Vec<&PairName>, Vec<&PairName>) =
            firing.iter().copied().partition(waits);
        if inside.is_empty() {
            continue;
        }
        *firing = rest;
        found.push(Explained {
            cause: of_host(host, MeshDirection::Both),
            pairs: inside.into_iter().cloned().collect(),
        });
    }
    found
}

/// The host that all firing pairs and no good one have in common: among three hosts no statistics say so.
fn host_in_common(watches: &[&Watch], firing: &[&PairName]) -> Option<Explained> {
    let mut hosts: Vec<&PlainText> = watches
        .iter()
        .flat_map(|watch| [&watch.from, &watch.to])
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    // Of two hosts either may be the one.
    if hosts.len() < 3 || firing.len() < FEWEST {
        return None;
    }
    let fires = |watch: &Watch| {
        let pair = (&watch.from, &watch.to);
        firing.iter().any(|name| (&name.from, &name.to) == pair)
    };
    let explains = |host: &PlainText, direction: MeshDirection| {
        watches.iter().all(|watch| {
            if touches(&watch.from, &watch.to, host, direction) {
                fires(watch)
            } else {
                watch.state() == AlertState::Resolved
            }
        })
    };
    let directions = [MeshDirection::Both, MeshDirection::Out, MeshDirection::In];
    let all = directions
        .iter()
        .flat_map(|&direction| hosts.iter().map(move |&host| (host, direction)));
    let mut causes = all.filter(|&(host, direction)| explains(host, direction));
    let (host, direction) = causes.next()?;
    // A mesh without the other pairs of some hosts leaves it open which one it is.
    causes.next().is_none().then(|| Explained {
        cause: of_host(host, direction),
        pairs: firing.iter().copied().cloned().collect(),
    })
}

/// When what is wrong now began: of faults that are older than a period, only the latest results say anything.
fn onset(now: UnixMillis, watches: &[&Watch]) -> UnixMillis {
    let period = watches
        .iter()
        .filter_map(|watch| Some(watch.rules.as_ref()?.period_millis))
        .max();
    let earliest = UnixMillis(now.0.saturating_sub(period.unwrap_or(0)));
    let begun = watches
        .iter()
        .filter_map(|watch| Some(watch.trouble.as_ref()?.since));
    begun.min().unwrap_or(now).max(earliest)
}

/// What the pair shows since then; absent = nothing, or nothing to compare it with.
fn outcome(watch: &Watch, onset: UnixMillis) -> Option<MeshOutcome> {
    let failed = |why: &str| {
        Some(MeshOutcome::Failed {
            stage: PlainText::default(),
            why: why.into(),
        })
    };
    if watch
        .trouble
        .as_ref()
        .is_some_and(|trouble| trouble.kind == AlertKind::Silent)
    {
        return failed("no result");
    }
    let decides = |shows: RunShows| shows != RunShows::Inconclusive;
    let run = watch
        .recent()
        .find(|run| decides(run.shows) && run.ended >= onset)?;
    let Some(goodput_bps) = run.goodput_bps else {
        return failed("it failed");
    };
    let level = watch
        .baseline()
        .map(|baseline| baseline.median_bps)
        .or_else(|| Some(watch.floor()?.bps))?;
    let finding = watch
        .trouble
        .as_ref()
        .and_then(|trouble| trouble.finding.as_ref());
    Some(MeshOutcome::Measured(MeshFigures {
        goodput_bps: goodput_bps / level * LEVEL,
        interval_bps: None,
        retransmitted: None,
        rtt: None,
        finding: finding.map(|finding| finding.id.clone()),
        streams: Vec::new(),
    }))
}

/// Whether a pair is among those that a cause is about.
fn covers(cause: &MeshCause, mesh: &Mesh, name: &PairName) -> bool {
    let among = |places: &[usize], host: &PlainText| {
        places.iter().any(|&place| mesh.hosts[place].name == *host)
    };
    let (sends, receives) = (among(&cause.from, &name.from), among(&cause.from, &name.to));
    if !cause.to.is_empty() {
        let back = cause.direction == MeshDirection::Both;
        return sends && among(&cause.to, &name.to)
            || back && receives && among(&cause.to, &name.from);
    }
    match cause.direction {
        MeshDirection::Out => sends,
        MeshDirection::In => receives,
        MeshDirection::Both => sends || receives,
    }
}

/// A cause by names instead of places.
fn named(cause: &MeshCause, mesh: &Mesh) -> AlertCause {
    let names = |places: &[usize]| {
        places
            .iter()
            .map(|&place| mesh.hosts[place].name.clone())
            .collect()
    };
    AlertCause {
        kind: cause.kind,
        name: cause.name.clone(),
        direction: cause.direction,
        from: names(&cause.from),
        to: names(&cause.to),
        in_common: cause.in_common.clone(),
    }
}
