//! What was found, in words.

use linerate_model::check::{Act, FileStep, Found, Held, Idle, Item, Outcome, Told};
use linerate_model::units::{Bytes, Nanos};

use crate::words::{count, percent, plain};

/// What was found, without the object.
pub fn words(item: &Item) -> String {
    match &item.found {
        Found::Written { took, limit } => {
            let slow = if took > limit {
                format!(", more than {limit}")
            } else {
                String::new()
            };
            format!("written, synced and read back in {took}{slow}")
        }
        Found::Mounted => "mounted".to_owned(),
        Found::NotMounted => "nothing is mounted there".to_owned(),
        Found::OtherFileSystem { expected, found } => {
            format!("a file system {found} is mounted there, and {expected} is expected")
        }
        Found::ReadOnly => "it is mounted read-only".to_owned(),
        Found::TurnedReadOnly { device } => {
            format!("the kernel made it read-only, as after an error: look for {device} in dmesg")
        }
        Found::Refused { step, error, .. } => format!("{}: {error}", step_words(*step)),
        Found::Differs => "what was read back is not what was written".to_owned(),
        Found::Room {
            free,
            size,
            free_files_percent,
        } => room(*free, *size, *free_files_percent),
        Found::AllWell { count: 0 } => "no local file system".to_owned(),
        Found::AllWell { count: 1 } => "the one local file system takes writes".to_owned(),
        Found::AllWell { count: all } => format!(
            "all {} local file systems are as they were mounted",
            count(*all)
        ),
        Found::Link { .. }
        | Found::NoInterface
        | Found::SetDown
        | Found::NoCarrier
        | Found::LinkErrors { .. }
        | Found::Members { .. } => link(&item.found),
        Found::Replies {
            sent,
            received,
            round_trip,
            wanted,
        } => replies(*sent, *received, *round_trip, *wanted),
        Found::PathTooSmall { mtu } => format!(
            "packets of {} bytes do not pass, while small ones do: a smaller MTU on the way",
            count(u64::from(*mtu))
        ),
        Found::Finding(finding) => plain(&finding.sentence),
        Found::DiskHealth { passed: true } => "the disk calls itself healthy".to_owned(),
        Found::DiskHealth { passed: false } => {
            "the disk expects to fail (SMART): replace it".to_owned()
        }
        Found::Clock {
            synchronised,
            largest_error,
        } => {
            if *synchronised {
                format!("follows another clock, at most {largest_error} off")
            } else {
                "follows no other clock: is chronyd, ntpd or systemd-timesyncd running?".to_owned()
            }
        }
        Found::Memory {
            corrected,
            uncorrected,
            machine_checks,
        } => memory(*corrected, *uncorrected, *machine_checks),
        Found::Settings {
            drifted: 0,
            count: all,
        } => format!("{} settings as they were set", count(*all)),
        Found::Settings {
            drifted,
            count: all,
        } => format!(
            "{} of {} settings are no longer as they were set: linerate tune verify",
            count(*drifted),
            count(*all)
        ),
        Found::Said { code, text } => match (code, text.is_empty()) {
            (Some(0) | None, false) => plain(text),
            (Some(code), true) => format!("it ended with {code} and said nothing"),
            (Some(code), false) => format!("{} (code {code})", plain(text)),
            (None, true) => "a signal ended it".to_owned(),
        },
        Found::NoAnswer { after, stuck: None } => format!("no answer within {after}"),
        Found::NoAnswer {
            after,
            stuck: Some(pid),
        } => format!(
            "no answer for {after}: process {pid} waits in the kernel, and the check is not begun again before it is gone"
        ),
        Found::Nothing => "none here".to_owned(),
        Found::CannotTell { why } => plain(why),
    }
}

/// The same behind its object, where it has one that the check's name does not say already.
pub(super) fn with_object(outcome: &Outcome, item: &Item) -> String {
    let is_named = outcome.check.ends_with(&*item.on);
    if item.on.is_empty() || is_named {
        words(item)
    } else {
        format!("{}: {}", item.on, words(item))
    }
}

const fn step_words(step: FileStep) -> &'static str {
    match step {
        FileStep::Open => "cannot open it",
        FileStep::Make => "cannot make a file in .linerate-check",
        FileStep::Write => "cannot write",
        FileStep::Sync => "cannot sync",
        FileStep::Read => "cannot read back",
        FileStep::Remove => "cannot remove a file",
    }
}

fn room(free: Bytes, size: Bytes, files: Option<f64>) -> String {
    let share = percent(free.0 as f64 / size.0.max(1) as f64);
    let few = match files {
        Some(files) if files < 10.0 => format!(", and {files:.1} % of its files (inodes)"),
        _ => String::new(),
    };
    format!("{free} of {size} are free ({share}){few}")
}

fn link(found: &Found) -> String {
    match found {
        Found::Link {
            mbps,
            wanted_mbps,
            half_duplex,
        } => {
            let speed = mbps.map_or_else(
                || "speed not known".to_owned(),
                |mbps| format!("{} Mbit/s", count(u64::from(mbps))),
            );
            let wanted = match (mbps, wanted_mbps) {
                (Some(mbps), Some(wanted)) if mbps >= wanted => String::new(),
                (_, Some(wanted)) => {
                    format!(", {} Mbit/s expected", count(u64::from(*wanted)))
                }
                _ => String::new(),
            };
            let duplex = if *half_duplex { ", half duplex" } else { "" };
            format!("{speed}{wanted}{duplex}")
        }
        Found::NoInterface => "there is no such interface".to_owned(),
        Found::SetDown => "it is set down".to_owned(),
        Found::NoCarrier => "no carrier (cable, module or switch)".to_owned(),
        Found::LinkErrors { bad, packets, over } => format!(
            "{} bad packets beside {} good ones in {over}",
            count(*bad),
            count(*packets)
        ),
        Found::Members { up, wanted } => {
            format!("{} of {} members carry traffic", count(*up), count(*wanted))
        }
        _ => String::new(),
    }
}

fn replies(sent: u64, received: u64, round_trip: Option<Nanos>, wanted: Option<Nanos>) -> String {
    let Some(round_trip) = round_trip else {
        return format!("no answer to {} echo requests", count(sent));
    };
    let lost = match sent - received.min(sent) {
        0 => String::new(),
        lost => format!(", {lost} of {sent} without an answer"),
    };
    let late = match wanted {
        Some(wanted) if round_trip > wanted => format!(", {wanted} expected"),
        _ => String::new(),
    };
    format!("round trip {round_trip}{late}{lost}")
}

fn memory(corrected: u64, uncorrected: u64, machine_checks: u64) -> String {
    let mut parts = Vec::new();
    if uncorrected > 0 {
        parts.push(format!(
            "{} memory errors since boot that could not be corrected",
            count(uncorrected)
        ));
    }
    if machine_checks > 0 {
        parts.push(format!(
            "{} machine-check exceptions since boot",
            count(machine_checks)
        ));
    }
    if corrected > 0 {
        parts.push(format!(
            "{} corrected memory errors since the last run",
            count(corrected)
        ));
    }
    if parts.is_empty() {
        return "no memory errors, no machine checks".to_owned();
    }
    parts.join(", ")
}

/// What is told to the controller.
pub(super) fn told(told: &Told) -> String {
    let node = &told.node;
    let done = |done: &str, would: &str| {
        if told.done {
            format!("{node} was {done}")
        } else {
            format!("{node} would be {would}")
        }
    };
    let text = match &told.act {
        Act::Nothing { why } => format!("{node} is left alone: {}", idle(*why)),
        Act::Drain { reason } => format!("{}: {reason}", done("drained", "drained")),
        Act::Hold { held, reason } => {
            format!("{} is not drained ({reason}): {}", node, held_words(*held))
        }
        Act::TakeBack { held, reason } => format!(
            "the drain of {node} ({reason}) {}: {}",
            if told.done {
                "was taken back"
            } else {
                "is to be taken back"
            },
            held_words(*held)
        ),
        Act::Resume => done(
            "resumed: its checks are well again",
            "resumed: its checks are well again",
        ),
        Act::Unknown { why } => format!("nothing is done about {node}: {why}"),
    };
    match &told.trouble {
        None => text,
        Some(trouble) if told.done => format!("{text}. It was not confirmed: {trouble}"),
        Some(trouble) => format!("{text}. It failed: {trouble}"),
    }
}

fn held_words(held: Held) -> String {
    match held {
        Held::Cap { drained, most, of } => format!(
            "{} of {} nodes of its partition are drained by checks, and {} may be",
            count(drained),
            count(of),
            count(most)
        ),
        Held::Shared { others } => format!(
            "{} other nodes failed the same check at about the same time: look for the cause that they share",
            count(others)
        ),
    }
}

/// The comment that a node shows at the controller while it is held back.
pub fn held_comment(held: Held, reason: &str) -> String {
    let why = match held {
        Held::Cap { drained, of, .. } => format!("{drained} of {of} nodes are drained by checks"),
        Held::Shared { others } => format!("{others} other nodes failed the same check"),
    };
    format!("{reason} - not drained, {why}")
}

const fn idle(why: Idle) -> &'static str {
    match why {
        Idle::Well => "no check fails that would drain it",
        Idle::StillFailing => "it is drained, and a check still fails",
        Idle::NotYetWell => "it is drained, and its checks were not well for long enough",
        Idle::ResumedByHand => "it is drained and well again; after this check a person resumes it",
        Idle::RebootPending => "it is drained and well again, and a reboot is pending",
        Idle::Foreign => {
            "it is drained or has a reason, and no run that this node remembers has set that"
        }
        Idle::NotOftenEnough => "a check has failed, and not often enough yet",
        Idle::OtherState => "its state takes no drain",
        Idle::TakenOver => "somebody changed what was set, and it is theirs now",
    }
}
