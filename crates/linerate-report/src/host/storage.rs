//! A host's storage as text: the audit of it, where many disks share one verdict, and its facts.

use linerate_model::audit::{Audit, Outcome, Verdict};
use linerate_model::host::{HostFacts, StorageDevice};

use super::audit;
use crate::text::layout::Page;
use crate::words::{self, plain};

/// The head of an audit of storage.
pub(super) fn head(page: &mut Page, audit: &Audit) {
    page.line(&format!(
        "linerate host audit --storage: {}",
        plain(&audit.host)
    ));
    let target = &audit.target;
    let rate = match target.disk_rate {
        Some(rate) => format!("disks that write {rate}/s (given)"),
        None => "disks whose rate is not known (--disk-rate)".to_owned(),
    };
    page.entry("Task", &format!("role {}, {rate}", target.role));
}

/// What is said alike of several things is said once, with all of them.
fn alike<'a, T: PartialEq>(
    verdicts: impl IntoIterator<Item = (&'a Verdict, T)>,
) -> Vec<(T, Vec<&'a Verdict>)> {
    let mut groups: Vec<(T, Vec<&'a Verdict>)> = Vec::new();
    for (verdict, said) in verdicts {
        let same = |(other, of): &(T, Vec<&Verdict>)| {
            *other == said && of.first().is_some_and(|one| one.check == verdict.check)
        };
        match groups.iter_mut().find(|group| same(group)) {
            Some((_, of)) => of.push(verdict),
            None => groups.push((said, vec![verdict])),
        }
    }
    groups
}

/// More names than these are the first, the last and their number; a document has them all.
pub(super) const MOST_NAMES: usize = 16;

fn subjects<'a>(of: &[&'a Verdict]) -> Vec<&'a str> {
    of.iter().filter_map(|one| one.subject.as_deref()).collect()
}

pub(super) fn brief_names(names: &[&str]) -> String {
    match names {
        [first, .., last] if names.len() > MOST_NAMES => {
            format!("{first} … {last} ({} of them)", names.len())
        }
        _ => names.join(", "),
    }
}

/// All verdicts that fire, the worst first.
pub(super) fn fires(page: &mut Page, firing: &[&Verdict]) {
    let said = firing.iter().filter_map(|verdict| match &verdict.outcome {
        Outcome::Fires {
            sentence, severity, ..
        } => Some((*verdict, (sentence, severity))),
        _ => None,
    });
    for (_, of) in alike(said) {
        let names = subjects(&of);
        let shown = match names.as_slice() {
            [] => String::new(),
            [one] => format!("{one}: "),
            [first, .., last] => format!("{first} … {last} ({} of them): ", names.len()),
        };
        let others = names.get(1..).unwrap_or_default();
        audit::fires(page, of[0], &shown, &brief_names(others));
    }
}

/// Verdicts with one text each, those of one text together.
pub(super) fn list(page: &mut Page, title: &str, verdicts: &[(&Verdict, &String)]) {
    page.gap();
    page.line(title);
    for (text, of) in alike(verdicts.iter().copied()) {
        let names = brief_names(&subjects(&of));
        let names = words::with(Some(names).filter(|names| !names.is_empty()), |names| {
            format!("{names}: ")
        });
        let head = format!("  {:<4} ", of[0].check);
        page.wrapped(&head, &plain(&format!("{names}{text}")));
    }
}

/// The facts for people: disks and arrays, with `all` each device and mount.
pub(super) fn facts(page: &mut Page, facts: &HostFacts, all: bool) {
    let storage = &facts.storage;
    // Facts of an older version have none.
    let Some(devices) = storage.devices.known().filter(|all| !all.is_empty()) else {
        return;
    };
    page.gap();
    if !all {
        let whole = devices.iter().filter(|one| !one.is_partition());
        let named: Vec<String> = whole.map(brief).collect();
        // As many as one screen holds.
        let most = 8;
        let more = named.len().saturating_sub(most);
        let more = words::with(Some(more).filter(|more| *more > 0), |more| {
            format!(" and {more} more (--all lists them)")
        });
        let shown = named[..named.len().min(most)].join(", ");
        return page.entry("Storage", &plain(&format!("{shown}{more}")));
    }
    for one in devices {
        page.entry(&plain(&one.device.name), &plain(&device(one)));
    }
    for mount in storage.mounts.known().into_iter().flatten() {
        let options: Vec<&str> = mount.options.iter().map(|option| &**option).collect();
        let devices: Vec<&str> = mount.devices.iter().map(|name| &**name).collect();
        page.entry(
            &plain(&mount.place),
            &plain(&format!(
                "{} on {} ({})",
                &*mount.file_system,
                devices.join(" "),
                options.join(",")
            )),
        );
    }
}

fn brief(one: &StorageDevice) -> String {
    let size = words::with(one.device.size, |size| format!(" {size}"));
    let level = words::with(one.level(), |level| format!(" {level}"));
    format!("{}{level}{size}", &*one.device.name)
}

fn device(one: &StorageDevice) -> String {
    let queue = &one.queue;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(one.level().map(str::to_owned));
    parts.extend(one.device.size.map(|size| size.to_string()));
    parts.extend(one.device.model.as_ref().map(ToString::to_string));
    let below: Vec<&str> = one.device.below.iter().map(|name| &**name).collect();
    if !below.is_empty() {
        parts.push(format!("on {}", below.join(" ")));
    }
    let scheduler = queue.scheduler.as_ref();
    parts.extend(scheduler.map(|one| format!("scheduler {}", &*one.chosen)));
    let requests = one.device.queue_requests;
    parts.extend(requests.map(|number| format!("{number} requests")));
    parts.extend(queue.depth.map(|depth| format!("depth {depth}")));
    parts.extend(
        queue
            .read_ahead_kib
            .map(|kib| format!("read-ahead {kib} KiB")),
    );
    parts.extend(
        one.stripe()
            .map(|(chunk, stripe)| format!("chunk {chunk}, stripe {stripe}")),
    );
    parts.extend(one.start.map(|start| format!("starts at byte {}", start.0)));
    if let Some(array) = &one.array {
        parts.extend(array.degraded.map(|missing| format!("{missing} missing")));
        parts.extend(array.sync_action.as_ref().map(ToString::to_string));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use linerate_model::audit::{Advised, Area, Change, Risk, Target};
    use linerate_model::tuning::BlockSetting;

    use super::*;

    fn verdict(check: &str, subject: &str, outcome: Outcome) -> Verdict {
        Verdict {
            check: check.to_owned(),
            title: String::new(),
            subject: Some(subject.to_owned()),
            outcome,
            source: "sysfs-block".to_owned(),
        }
    }

    fn bfq(disk: &str) -> Verdict {
        let change = Change {
            advised: Advised::block(disk, BlockSetting::Scheduler, "mq-deadline"),
            now: Some("bfq".to_owned()),
            why: "throughput".to_owned(),
        };
        let outcome = Outcome::Fires {
            sentence: "bfq favours latency".to_owned(),
            changes: vec![change],
            severity: 3,
            risk: Risk::Data,
            set_by: Vec::new(),
        };
        verdict("S01", disk, outcome)
    }

    #[test]
    fn what_many_disks_share_is_said_once() {
        let holds = |disk: &str| {
            let read = "depth 32".to_owned();
            verdict("S03", disk, Outcome::Holds { read })
        };
        let names: Vec<String> = (0..40).map(|number| format!("sd{number}")).collect();
        let mut verdicts = vec![bfq("sda"), bfq("sdb"), bfq("sdc")];
        verdicts.extend(names.iter().map(|name| holds(name)));
        let audit = Audit {
            schema_version: 1,
            host: "a".to_owned(),
            target: Target {
                area: Area::Storage,
                ..Target::default()
            },
            interfaces: Vec::new(),
            verdicts,
        };
        let text = super::audit::report(&audit, true);
        assert_eq!(text.matches("bfq favours latency").count(), 1, "{text}");
        for part in [
            "host audit --storage: a",
            "S01  sda … sdc (3 of them): bfq favours latency",
            "set  scheduler of sda = mq-deadline (now: bfq): throughput",
            "also  on sdb, sdc",
            "risk  data (back up first)",
            "S03  sd0 … sd39 (40 of them): depth 32",
            "3 to look at",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("Interfaces"), "{text}");
    }
}
