//! gluster: locks that are stuck and locks of commands that met, states of bricks and peers.
//!
//! From 3.6 on a volume's lock is freed by a timer after 180 s (`gd_mgmt_v3_unlock_timer_cbk` in glusterd-locks.c); before,
//! the lock of the cluster stayed until the frame timeout of 30 min. Measured with 10.3: a peer that is stopped and still
//! `Connected` leaves the lock with the node that asked.

use std::collections::HashMap;

use linerate_model::finding::{Finding, Severity};
use linerate_model::plain_text::PlainText;
use linerate_model::storage::{GlusterEvent, GlusterKind, GlusterLock, GlusterState};

use crate::draft::Draft;

/// A lock that is held for so long without a command that succeeds is stuck, s.
const STUCK_S: f64 = 60.0;

/// Lines about one lock and one holder, with no command that succeeded between them.
struct Run<'a> {
    lock: &'a GlusterLock,
    first: &'a GlusterEvent,
    last: &'a GlusterEvent,
    lines: usize,
    freed: Option<&'a GlusterEvent>,
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
                    run.lock == lock && !between(volume, run.last, event)
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
    let met =
        seconds.is_some_and(|seconds| seconds < STUCK_S) && run.lines > 1 && run.freed.is_none();
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
            (
                Severity::Limit,
                format!(
                    "{at}: {what} is {whose}{often}: stuck for {seconds:.0} s{end}, with no command that succeeded. {}",
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
    let mut wrong = Vec::new();
    let offline = held.bricks.iter().filter(|one| one.online == Some(false));
    wrong.extend(offline.map(|one| format!("{} does not run", one.name)));
    let apart = held.peers.iter().filter(|one| one.connected == Some(false));
    wrong.extend(apart.map(|one| format!("peer {} is not connected", one.name)));
    let split = held
        .heals
        .iter()
        .filter(|one| one.split_brain.is_some_and(|count| count > 0));
    wrong.extend(split.map(|one| {
        format!(
            "{} has {} entries in split brain",
            one.brick,
            one.split_brain.unwrap_or(0)
        )
    }));
    let unknown = held.heals.iter().filter(|one| one.entries.is_none());
    wrong.extend(unknown.map(|one| {
        format!(
            "what {} has to heal is not known ({})",
            one.brick, one.status
        )
    }));
    let mut findings = Vec::new();
    if !wrong.is_empty() {
        wrong.truncate(16);
        findings.push(Finding::new(
            "cluster-state",
            Severity::Limit,
            wrong.join("; "),
        ));
    }
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
    let heal: u64 = held
        .heals
        .iter()
        .filter_map(|one| one.entries)
        .fold(0, u64::saturating_add);
    if wrong.is_empty() && held.bricks.len() + held.peers.len() + held.heals.len() > 0 {
        let (severity, heals) = if heal > 0 {
            (Severity::Note, format!("{heal} entries are to be healed"))
        } else {
            (Severity::Healthy, "nothing is to be healed".to_owned())
        };
        let runs = format!(
            "All {} bricks and daemons run, no peer is disconnected",
            held.bricks.len()
        );
        let said = if held.heals.is_empty() {
            runs
        } else {
            format!("{runs}; {heals}")
        };
        findings.insert(0, Finding::new("cluster-state", severity, said));
    }
    (title, findings)
}
