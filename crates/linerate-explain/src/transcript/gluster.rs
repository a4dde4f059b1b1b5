//! gluster: locks that are stuck and locks of commands that met, states of bricks and peers.
//!
//! From 3.6 on a volume's lock is freed by a timer after 180 s (`gd_mgmt_v3_unlock_timer_cbk` in glusterd-locks.c); before,
//! the lock of the cluster stayed until the frame timeout of 30 min. Measured with 10.3: a peer that is stopped and still
//! `Connected` leaves the lock with the node that asked.

use std::collections::HashMap;

use linerate_model::finding::{Finding, Severity};
use linerate_model::plain_text::PlainText;
use linerate_model::storage::{GlusterEvent, GlusterHeal, GlusterKind, GlusterLock, GlusterState};

use crate::draft::Draft;

/// A lock that is held for so long without a command that succeeds is stuck, s.
const STUCK_S: f64 = 60.0;
/// After so long a lock is another one: the timer has freed it, s.
const TIMER_S: f64 = 180.0;

/// Lines about one lock and one holder, with no command that succeeded between them.
struct Run<'a> {
    lock: &'a GlusterLock,
    first: &'a GlusterEvent,
    last: &'a GlusterEvent,
    lines: usize,
    freed: Option<&'a GlusterEvent>,
    /// Commands and their outcome are in the input.
    has_history: bool,
}

impl Run<'_> {
    /// From the first line to the last, s; to the timer where that freed it.
    fn seconds(&self) -> Option<f64> {
        let end = self.freed.unwrap_or(self.last);
        Some(end.at_s? - self.first.at_s?)
    }
}

pub(super) fn log(events: &[GlusterEvent]) -> (String, Vec<Finding>) {
    let title = format!("glusterd's log: {} line(s)", events.len());
    let mut findings: Vec<Finding> = runs(events).iter().map(held).collect();
    findings.sort_by_key(|finding| finding.severity != Severity::Limit);
    let lock = |event: &&GlusterEvent| matches!(event.kind, GlusterKind::OfLock);
    let errors = events
        .iter()
        .filter(|event| event.level == "E" && !lock(event));
    let other = errors
        .filter(|event| !matches!(event.kind, GlusterKind::Held(_)))
        .count();
    if other > 0 {
        findings.push(Finding::new(
            "log-errors",
            Severity::Note,
            format!("{other} other lines of the log are errors"),
        ));
    }
    let failed = |lock: bool| {
        let of = |event: &&GlusterEvent| event.kind == GlusterKind::Failed { for_lock: lock };
        events.iter().filter(of).count()
    };
    let (for_lock, else_failed) = (failed(true), failed(false));
    if for_lock + else_failed > 0 {
        findings.push(Finding::new(
            "log-errors",
            Severity::Note,
            format!(
                "cmd_history.log: {for_lock} commands failed for another transaction, {else_failed} for other reasons"
            ),
        ));
    }
    (title, findings)
}

/// A line of `cmd_history.log`.
fn is_command(event: &GlusterEvent) -> bool {
    matches!(
        event.kind,
        GlusterKind::Succeeded(_) | GlusterKind::Failed { .. }
    )
}

/// Whether the timer has freed a lock between two lines.
fn far(from: &GlusterEvent, to: &GlusterEvent) -> bool {
    let times = from.at_s.zip(to.at_s);
    times.is_some_and(|(from, to)| to - from > TIMER_S)
}

/// Lines about locks, parted where a command on the volume succeeded or the timer freed it, or another holds it.
fn runs(events: &[GlusterEvent]) -> Vec<Run<'_>> {
    let mut succeeded: HashMap<&str, Vec<f64>> = HashMap::new();
    for event in events {
        if let (GlusterKind::Succeeded(Some(volume)), Some(at)) = (&event.kind, event.at_s) {
            succeeded.entry(volume).or_default().push(at);
        }
    }
    for times in succeeded.values_mut() {
        times.sort_by(f64::total_cmp);
    }
    let between = |volume: &str, from: &GlusterEvent, to: &GlusterEvent| {
        let (Some(times), Some((from, to))) = (succeeded.get(volume), from.at_s.zip(to.at_s))
        else {
            return false;
        };
        let at = times.partition_point(|time| *time <= from);
        times.get(at).is_some_and(|time| *time < to)
    };
    let has_history = events.iter().any(is_command);
    let mut all: Vec<Run<'_>> = Vec::new();
    // The run of each lock that may go on; of the old lock by its asker as well.
    let mut open: HashMap<(&str, &str), usize> = HashMap::new();
    for event in events {
        match &event.kind {
            GlusterKind::Held(lock) => {
                let volume = lock.volume.as_ref().map_or("", |name| name.as_str());
                let asker = lock.asker.as_ref().map_or("", |name| name.as_str());
                let going = open.get(&(volume, asker)).copied().filter(|at| {
                    let run = &all[*at];
                    run.lock == lock && !far(run.last, event) && !between(volume, run.last, event)
                });
                if let Some(run) = going.and_then(|at| all.get_mut(at)) {
                    run.last = event;
                    run.lines += 1;
                } else {
                    open.insert((volume, asker), all.len());
                    all.push(Run {
                        lock,
                        first: event,
                        last: event,
                        lines: 1,
                        freed: None,
                        has_history,
                    });
                }
            }
            GlusterKind::Freed(volume) => {
                if let Some(at) = open.remove(&(volume.as_str(), "")) {
                    all[at].freed = Some(event);
                }
            }
            _ => {}
        }
    }
    all
}

/// What a run of lines says.
fn held(run: &Run<'_>) -> Finding {
    let lock = run.lock;
    let often = if run.lines > 1 {
        format!(" ({} lines)", run.lines)
    } else {
        String::new()
    };
    let seconds = run.seconds();
    // The cluster's lock that the asker holds itself was left behind: no second command holds it.
    let own = lock.volume.is_none() && lock.asker.as_ref() == Some(&lock.holder);
    let met = seconds.is_some_and(|seconds| seconds < STUCK_S)
        && run.lines > 1
        && run.freed.is_none()
        && !own;
    let what = match &lock.volume {
        Some(volume) => format!("the lock of volume {volume}"),
        None => "glusterd's cluster lock".to_owned(),
    };
    let whose = match (&lock.asker, &lock.volume) {
        (Some(asker), _) if *asker == lock.holder => {
            format!("held by the requesting node itself ({asker})")
        }
        (Some(asker), _) => format!(
            "held by another node: {} holds it, {asker} asks",
            lock.holder
        ),
        (None, _) => format!(
            "held by node {} (this node's own UUID is in /var/lib/glusterd/glusterd.info)",
            lock.holder
        ),
    };
    let at = &run.first.at;
    let (severity, text) = match seconds {
        Some(seconds) if seconds >= STUCK_S => {
            let end = if run.freed.is_some() {
                ", until glusterd's timer freed it"
            } else {
                ""
            };
            let history = if run.has_history {
                ", with no command that succeeded"
            } else {
                "; the history of commands (cmd_history.log) is not in the input"
            };
            (
                Severity::Limit,
                format!(
                    "{at}: {what} is {whose}{often}: stuck for {seconds:.0} s{end}{history}. {}",
                    steps(lock)
                ),
            )
        }
        Some(seconds) if met => (
            Severity::Note,
            format!(
                "{at}: {what} is {whose}{often}, all within {}: two commands met, which is normal. Find what runs gluster at the same \
                 time (cron, monitoring on several nodes); there is nothing to free",
                span(seconds)
            ),
        ),
        _ if lock.volume.is_some() => (
            Severity::Note,
            format!(
                "{at}: {what} is {whose}{often}: two commands met, or the beginning of a lock that is stuck; look again after \
                 {STUCK_S:.0} s"
            ),
        ),
        _ if lock.asker.as_ref() == Some(&lock.holder) => (
            Severity::Limit,
            format!(
                "{at}: {what} is {whose}: a command that did not finish left it behind{often}. {}",
                steps(lock)
            ),
        ),
        _ => (
            Severity::Limit,
            format!(
                "{at}: {what} is {whose}{often}. Find the node by `gluster pool list`, look for a gluster command that still runs there and \
                 wait for it before anything else. linerate changed nothing"
            ),
        ),
    };
    Draft::new("cluster-lock", severity, text)
        .figure("held, s", seconds, format!("line {}", run.first.line))
        .figure("lines", run.lines, format!("line {}", run.first.line))
        .finding
}

/// A short time.
fn span(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1000.0)
    } else {
        format!("{seconds:.0} s")
    }
}

/// What to do about a lock that is stuck.
fn steps(lock: &GlusterLock) -> String {
    let timer = if lock.volume.is_some() {
        ""
    } else {
        " (3.5 and before have no timer: it stays up to the frame timeout of 30 min)"
    };
    format!(
        "The likely cause is a peer that does not answer although it is \"Connected\"{timer}: run `timeout 5 gluster pool list` on each \
         node, look where a gluster command still runs, and restart glusterd where it hangs (bricks and mounts keep running); only then \
         on the holder. linerate changed nothing"
    )
}

/// States of bricks, peers and heals.
pub(super) fn state(held: &GlusterState) -> (String, Vec<Finding>) {
    let title = format!(
        "gluster: {} brick(s) and daemon(s), {} peer(s), {} heal count(s)",
        held.bricks.len(),
        held.peers.len(),
        held.heals.len()
    );
    let mut findings = Vec::new();
    findings.extend(split_brain(held));
    findings.extend(health(held));
    if held.refused > 0 {
        findings.push(Finding::new(
            "cluster-lock",
            Severity::Note,
            format!(
                "{} answers say that another transaction is in progress, and {} commands succeeded: look into glusterd.log whether the \
                 same lock is held for {STUCK_S:.0} s or more; if not, two commands met",
                held.refused, held.answers
            ),
        ));
    }
    if !held.errors.is_empty() {
        let errors: Vec<&str> = held.errors.iter().map(PlainText::as_str).collect();
        findings.push(Finding::new(
            "log-errors",
            Severity::Note,
            format!("gluster answers: {}", errors.join("; ")),
        ));
    }
    (title, findings)
}

/// Names that are said at most.
const NAMES: usize = 16;

/// Copies of which none is known to be the good one.
fn split_brain(held: &GlusterState) -> Option<Finding> {
    let split = |heal: &&GlusterHeal| heal.split_brain.is_some_and(|count| count > 0);
    let of = |heal: &GlusterHeal| {
        let count = heal.split_brain.unwrap_or(0);
        format!("{} has {count} entries in split brain", heal.brick)
    };
    let bricks = held.heals.iter().filter(split);
    let said: Vec<String> = bricks.take(NAMES).map(of).collect();
    (!said.is_empty()).then(|| {
        Finding::new(
            "cluster-state",
            Severity::Limit,
            format!(
                "{}: they are not healed by themselves. Look which copy is the good one before `gluster volume heal VOLUME \
                 split-brain` is told; delete nothing on a brick. linerate changed nothing",
                said.join("; ")
            ),
        )
    })
}

/// What does not run or is not reached, and what is to be healed.
fn health(held: &GlusterState) -> Option<Finding> {
    let mut wrong = Vec::new();
    let offline = held.bricks.iter().filter(|one| one.online == Some(false));
    wrong.extend(offline.map(|one| format!("{} does not run", one.name)));
    let apart = held.peers.iter().filter(|one| one.connected == Some(false));
    wrong.extend(apart.map(|one| format!("peer {} is not connected", one.name)));
    let unknown = |one: &&GlusterHeal| one.entries.is_none() && one.split_brain.is_none();
    let unknown = held.heals.iter().filter(unknown);
    wrong.extend(unknown.map(|one| {
        format!(
            "what {} has to heal is not known ({})",
            one.brick, one.status
        )
    }));
    wrong.truncate(NAMES);
    let entries = held.heals.iter().filter_map(|one| one.entries);
    let heal = entries.reduce(u64::saturating_add);
    let severity = match heal {
        _ if !wrong.is_empty() => Severity::Limit,
        None | Some(0) => Severity::Healthy,
        Some(_) => Severity::Note,
    };
    let mut said = wrong;
    if said.is_empty() {
        said.extend(well(held));
    }
    said.extend(heal.map(|count| match count {
        0 => "nothing is to be healed".to_owned(),
        count => format!("{count} entries are to be healed"),
    }));
    (!said.is_empty()).then(|| Finding::new("cluster-state", severity, said.join("; ")))
}

/// What runs and is connected, of what was read.
fn well(held: &GlusterState) -> Option<String> {
    let bricks = held.bricks.len();
    let runs = (bricks > 0).then(|| format!("All {bricks} bricks and daemons run"));
    let reached = (!held.peers.is_empty()).then_some(match &runs {
        Some(_) => "no peer is disconnected",
        None => "No peer is disconnected",
    });
    let said: Vec<&str> = runs.as_deref().into_iter().chain(reached).collect();
    (!said.is_empty()).then(|| said.join(", "))
}
