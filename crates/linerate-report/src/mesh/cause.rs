//! A cause in plain sentences: what is slow, the evidence, what its hosts have in common, and what to run next.

use linerate_model::mesh::{Mesh, MeshCause, MeshCauseKind, MeshDirection, MeshGroupKind};

use super::fold::folded;
use super::view::{Source, bit_rate, counted, grouped};
use crate::words;

/// So many source ports are listed.
const MOST_PORTS: usize = 12;

/// A cause as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct CauseView {
    /// What kind of thing it is.
    pub kind: MeshCauseKind,
    /// Its name, with arrows for directions.
    pub name: String,
    /// What is slow, by how much, in which tests.
    pub sentence: String,
    /// The share of all slow and failed tests that it explains, what findings its tests have, what they do alone.
    pub evidence: Vec<String>,
    /// What its hosts have and the others do not.
    pub in_common: Vec<String>,
    /// Who has that: `Only node07 has`, `Only its hosts have`.
    pub only: String,
    /// What to run next.
    pub next: Vec<Step>,
    /// Share of all slow and failed tests that it explains, 0 to 1.
    pub share: f64,
    /// Its rate as a share of that of the others, 0 to 1; absent = all of its tests failed.
    pub left: Option<f64>,
}

/// A command to run next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it shows.
    pub what: &'static str,
    /// The command line, quoted for a shell.
    pub command: String,
}

impl CauseView {
    pub(super) fn of(cause: &MeshCause, source: &Source<'_>) -> Self {
        Self {
            kind: cause.kind,
            name: match cause.kind {
                MeshCauseKind::Port => port_ends(cause, source),
                _ => arrow(&cause.name),
            },
            sentence: sentence(cause, source),
            evidence: evidence(cause),
            only: match cause.from.as_slice() {
                [_] if cause.to.is_empty() => format!("Only {} has", folded(source, &cause.from)),
                _ => "Only its hosts have".to_owned(),
            },
            in_common: cause.in_common.iter().map(ToString::to_string).collect(),
            next: next(cause, source),
            share: cause.share,
            left: cause.left,
        }
    }
}

/// The name of a kind: `receiving host`, `link between groups`.
pub(super) const fn kind(kind: MeshCauseKind) -> &'static str {
    match kind {
        MeshCauseKind::HostOut => "sending host",
        MeshCauseKind::HostIn => "receiving host",
        MeshCauseKind::Host => "host",
        MeshCauseKind::Group => "group",
        MeshCauseKind::Trunk => "link between groups",
        MeshCauseKind::Pair => "pair",
        MeshCauseKind::Port => "source ports",
    }
}

fn sentence(cause: &MeshCause, source: &Source<'_>) -> String {
    if cause.kind == MeshCauseKind::Port {
        return of_ports(cause, source);
    }
    let name = &cause.name;
    let tests = tests(cause);
    match cause.left {
        None => {
            let why = cause.from.iter().find_map(|host| {
                let host = source.mesh.hosts.get(*host)?;
                host.unreachable.as_ref()
            });
            let why = words::with(why, |why| format!(" ({why})"));
            format!("{}{why}: {}.", dead(cause), slow(cause, &tests))
        }
        Some(left) => {
            let rate = words::percent(left);
            let does = match cause.kind {
                MeshCauseKind::Group if is_fact(cause, source) => {
                    format!("The hosts with {name} {}", verb(cause, true))
                }
                MeshCauseKind::Group => format!("The hosts of {name} {}", verb(cause, true)),
                MeshCauseKind::Trunk => format!("The link {} keeps its tests", arrow(name)),
                MeshCauseKind::Pair => format!("{} runs", arrow(name)),
                _ => format!("{name} {}", verb(cause, false)),
            };
            format!(
                "{does} at {rate} of the rate of the others: {}.",
                slow(cause, &tests)
            )
        }
    }
}

/// Whether a group is what its hosts have, not where they are.
fn is_fact(cause: &MeshCause, source: &Source<'_>) -> bool {
    let mut groups = source.mesh.groups.iter();
    let same = groups.find(|group| group.members == cause.from);
    same.is_some_and(|group| group.kind == MeshGroupKind::Fact)
}

/// Whether a cause touches what one host sends to another.
pub(super) fn touches(cause: &MeshCause, from: usize, to: usize) -> bool {
    let within = |from: &usize, to: &usize| {
        cause.from.contains(from) && (cause.to.is_empty() || cause.to.contains(to))
    };
    match cause.direction {
        MeshDirection::Both => within(&from, &to) || within(&to, &from),
        MeshDirection::In if cause.to.is_empty() => within(&to, &from),
        MeshDirection::Out | MeshDirection::In => within(&from, &to),
    }
}

/// What cannot be used at all.
fn dead(cause: &MeshCause) -> String {
    let name = &cause.name;
    match (cause.kind, cause.direction) {
        (MeshCauseKind::Trunk | MeshCauseKind::Pair, _) => {
            format!("No test of {} succeeds", arrow(name))
        }
        (_, MeshDirection::Out) => format!("{name} cannot send to any host"),
        (_, MeshDirection::In) => format!("No host can send to {name}"),
        (_, MeshDirection::Both) => format!("No test with {name} succeeds"),
    }
}

const fn verb(cause: &MeshCause, plural: bool) -> &'static str {
    match (cause.direction, plural) {
        (MeshDirection::Out, false) => "sends",
        (MeshDirection::Out, true) => "send",
        (MeshDirection::In, false) => "receives",
        (MeshDirection::In, true) => "receive",
        (MeshDirection::Both, false) => "sends and receives",
        (MeshDirection::Both, true) => "send and receive",
    }
}

/// `node17 → node20`, as people draw it.
fn arrow(name: &str) -> String {
    name.replace(" <> ", " ↔ ").replace(" > ", " → ")
}

/// `tests to it`, `tests across it`.
fn tests(cause: &MeshCause) -> String {
    let it = if cause.kind == MeshCauseKind::Group {
        "them"
    } else {
        "it"
    };
    match (cause.kind, cause.direction) {
        (MeshCauseKind::Trunk, _) => "tests across it".to_owned(),
        (MeshCauseKind::Pair, _) => "tests of it".to_owned(),
        (_, MeshDirection::Out) => format!("tests from {it}"),
        (_, MeshDirection::In) => format!("tests to {it}"),
        (_, MeshDirection::Both) => format!("tests with {it}"),
    }
}

/// `17 of the 18 tests to it are slow and 1 failed`.
fn slow(cause: &MeshCause, tests: &str) -> String {
    let slow = cause.explained.saturating_sub(cause.failed);
    let (of, failed) = (grouped(cause.touched), grouped(cause.failed));
    let be = if slow == 1 { "is" } else { "are" };
    match (slow, cause.failed) {
        _ if cause.touched == 1 && slow == 0 => "its only test failed or did not begin".to_owned(),
        _ if cause.touched == 1 => "its only test is slow".to_owned(),
        (0, _) => format!("{failed} of {of} {tests} failed or did not begin"),
        (_, 0) => format!("{} of {of} {tests} {be} slow", grouped(slow)),
        _ => format!(
            "{} of {of} {tests} {be} slow, {failed} failed or did not begin",
            grouped(slow)
        ),
    }
}

/// `from node01 to node02`, `from node01`, `to node01`.
fn port_ends(cause: &MeshCause, source: &Source<'_>) -> String {
    let [host, far] = [&cause.from, &cause.to].map(|set| folded(source, set));
    let host = words::plain(&host);
    match cause.direction {
        _ if !far.is_empty() => format!("from {host} to {}", words::plain(&far)),
        MeshDirection::Out => format!("from {host}"),
        MeshDirection::In => format!("to {host}"),
        MeshDirection::Both => format!("from and to {host}"),
    }
}

fn of_ports(cause: &MeshCause, source: &Source<'_>) -> String {
    let does = match cause.left {
        Some(left) => format!("run at {} of the rate of the others", words::percent(left)),
        None => "carry nothing".to_owned(),
    };
    let ports = cause.ports.iter().take(MOST_PORTS);
    let ports: Vec<String> = ports.map(u16::to_string).collect();
    let more = words::when(cause.ports.len() > MOST_PORTS, ", …");
    let ports = words::with((!ports.is_empty()).then(|| ports.join(", ")), |ports| {
        format!(" ({ports}{more})")
    });
    format!(
        "{} of {} {} {does}{ports}: one member of a bond is bad, or a hash spreads unevenly.",
        grouped(cause.explained),
        counted(cause.touched, "source port"),
        port_ends(cause, source),
    )
}

fn evidence(cause: &MeshCause) -> Vec<String> {
    let mut all = Vec::new();
    let slow = cause.explained.saturating_sub(cause.failed);
    for (id, count) in &cause.findings {
        let report = if *count == 1 { "reports" } else { "report" };
        let slow = counted(slow.max(*count), "slow test");
        let who = if *count >= cause.explained.saturating_sub(cause.failed) {
            words::when(*count > 1, "all ").to_owned()
        } else {
            format!("{} of the ", grouped(*count))
        };
        all.push(format!("{who}{slow} {report} {}", words::plain(id)));
    }
    if cause.kind != MeshCauseKind::Port {
        let share = words::time_share(cause.share);
        all.push(format!("it explains {share} of all slow and failed tests"));
    }
    if let Some(capacity) = cause.capacity_bps {
        all.push(format!("together its tests reach {}", bit_rate(capacity)));
    }
    match cause.slow_alone {
        Some(true) => all.push("each is slow alone as well".to_owned()),
        Some(false) if cause.kind == MeshCauseKind::Trunk => {
            all.push("alone, its tests reach the full rate, so they share the link".to_owned());
        }
        Some(false) => all.push("alone, they reach the full rate".to_owned()),
        None => {}
    }
    all
}

fn next(cause: &MeshCause, source: &Source<'_>) -> Vec<Step> {
    let everybody: Vec<usize> = (0..source.mesh.hosts.len()).collect();
    let [hosts, far, all] = [&cause.from, &cause.to, &everybody].map(|set| folded(source, set));
    let audit = || {
        let what = "what is wrong with its settings";
        step(what, "host audit", &[("--on", Some(&hosts))], source.mesh)
    };
    let facts = |what| step(what, "host", &[("--on", Some(&hosts))], source.mesh);
    let steps = match cause.kind {
        MeshCauseKind::Host if cause.left.is_none() => vec![facts("whether it answers")],
        MeshCauseKind::HostOut | MeshCauseKind::HostIn | MeshCauseKind::Host => {
            vec![audit(), test(cause, source)]
        }
        MeshCauseKind::Group => {
            let what = "what its hosts have and the others do not";
            let differ = step(what, "host diff", &[("--on", Some(&all))], source.mesh);
            vec![differ, audit(), test(cause, source)]
        }
        MeshCauseKind::Trunk => vec![step(
            "what the link carries, and who loses",
            "mesh trunk",
            &[("--from", Some(&hosts)), ("--to", Some(&far))],
            source.mesh,
        )],
        MeshCauseKind::Pair => vec![test(cause, source)],
        MeshCauseKind::Port => vec![facts("the state of each member")],
    };
    steps.into_iter().flatten().collect()
}

/// A test that shows the cause: between its two ends, else with a host that no cause is about.
fn test(cause: &MeshCause, source: &Source<'_>) -> Option<Step> {
    let name = |hosts: &[usize]| {
        let host = source.mesh.hosts.get(*hosts.first()?)?;
        Some(host.name.as_str().to_owned())
    };
    let host = name(&cause.from);
    let (from, to) = match cause.direction {
        _ if cause.kind == MeshCauseKind::Pair => (host, name(&cause.to)),
        MeshDirection::Out => (host, innocent(source)),
        MeshDirection::In | MeshDirection::Both => (innocent(source), host),
    };
    let ends = [("--from", from.as_ref()), ("--to", to.as_ref())];
    let mut test = step("why this test is slow", "test", &ends, source.mesh)?;
    test.command.push_str(" --diagnose");
    Some(test)
}

/// The first host that was reached and that no cause is about.
fn innocent(source: &Source<'_>) -> Option<String> {
    let guilty = |host: &usize| {
        let causes = source.causes.iter();
        let mut hosts = causes.flat_map(|cause| cause.from.iter().chain(&cause.to));
        hosts.any(|other| other == host)
    };
    let mut hosts = source.mesh.hosts.iter().enumerate();
    let free = hosts.find(|(at, host)| host.unreachable.is_none() && !guilty(at));
    free.map(|(_, host)| host.name.as_str().to_owned())
}

/// A command of linerate with options, by which the hosts are reached as before; `None` where a value is missing or cannot
/// be typed.
fn step(
    what: &'static str,
    command: &str,
    options: &[(&str, Option<&String>)],
    mesh: &Mesh,
) -> Option<Step> {
    let mut line = format!("linerate {command}");
    let via = mesh.via.as_ref().map(ToString::to_string);
    let via = via.as_ref().map(|via| ("--via", Some(via)));
    for (option, value) in options.iter().copied().chain(via) {
        let value = shell_word(value?)?;
        line.extend([" ", option, " ", &value]);
    }
    Some(Step {
        what,
        command: line,
    })
}

/// A word as a shell reads it; `None` of what would be taken for an option, or is nothing.
fn shell_word(word: &str) -> Option<String> {
    if word.is_empty() || word.starts_with('-') {
        return None;
    }
    let safe = |c: char| c.is_ascii_alphanumeric() || "._:@%+=,/-".contains(c);
    Some(if word.chars().all(safe) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    })
}

#[cfg(test)]
mod tests {
    use linerate_model::mesh::{Mesh, MeshHost};

    use super::*;

    fn view(kind: MeshCauseKind, direction: MeshDirection, left: Option<f64>) -> CauseView {
        let host = |name: &str| MeshHost {
            name: name.into(),
            unreachable: None,
        };
        let mesh = Mesh {
            schema_version: 1,
            started_unix_s: 0,
            hosts: ["a1", "a2", "b1", "b2", "c"].map(host).to_vec(),
            groups: Vec::new(),
            rounds: 1,
            bound: 1,
            options: "".into(),
            both: false,
            wave: false,
            expected_bps: None,
            via: None,
            tests: Vec::new(),
        };
        let (name, from, to) = match kind {
            MeshCauseKind::Group => ("rack1", vec![0, 1], vec![]),
            MeshCauseKind::Trunk => ("rack1 > rack2", vec![0, 1], vec![2, 3]),
            MeshCauseKind::Pair | MeshCauseKind::Port => ("a1 > b1", vec![0], vec![2]),
            _ => ("a1", vec![0], vec![]),
        };
        let cause = MeshCause {
            kind,
            name: name.into(),
            direction,
            from,
            to,
            ports: vec![5201, 5205],
            share: 0.8,
            explained: 7,
            touched: 8,
            failed: if left.is_some() { 2 } else { 7 },
            left,
            capacity_bps: None,
            slow_alone: Some(true),
            findings: vec![("receiver-cpu".to_owned(), 4)],
            in_common: Vec::new(),
        };
        CauseView::of(
            &cause,
            &Source {
                mesh: &mesh,
                causes: std::slice::from_ref(&cause),
                fold: &|names| names.join(","),
            },
        )
    }

    #[test]
    fn each_kind_says_what_is_slow_and_what_to_run() {
        use MeshCauseKind::{Group, Host, HostIn, HostOut, Pair, Port, Trunk};
        use MeshDirection::{Both, In, Out};
        let slow = "are slow, 2 failed or did not begin.";
        let lost = "7 of 8 tests";
        let cases = [
            (HostOut, Out, Some(0.31), format!("a1 sends at 31 % of the rate of the others: 5 of 8 tests from it {slow}"), "linerate test --from a1 --to b1 --diagnose"),
            (HostIn, In, Some(0.31), format!("a1 receives at 31 % of the rate of the others: 5 of 8 tests to it {slow}"), "linerate test --from b1 --to a1 --diagnose"),
            (Host, Both, Some(0.5), format!("a1 sends and receives at 50 % of the rate of the others: 5 of 8 tests with it {slow}"), "linerate host audit --on a1"),
            (Host, Both, None, format!("No test with a1 succeeds: {lost} with it failed or did not begin."), "linerate host --on a1"),
            (HostIn, In, None, format!("No host can send to a1: {lost} to it failed or did not begin."), "linerate host audit --on a1"),
            (Group, In, Some(0.5), format!("The hosts of rack1 receive at 50 % of the rate of the others: 5 of 8 tests to them {slow}"), "linerate host diff --on a1,a2,b1,b2,c"),
            (Trunk, Out, Some(0.25), format!("The link rack1 → rack2 keeps its tests at 25 % of the rate of the others: 5 of 8 tests across it {slow}"), "linerate mesh trunk --from a1,a2 --to b1,b2"),
            (Trunk, Out, None, format!("No test of rack1 → rack2 succeeds: {lost} across it failed or did not begin."), "linerate mesh trunk --from a1,a2 --to b1,b2"),
            (Pair, Out, Some(0.4), format!("a1 → b1 runs at 40 % of the rate of the others: 5 of 8 tests of it {slow}"), "linerate test --from a1 --to b1 --diagnose"),
            (Port, Out, Some(0.12), "7 of 8 source ports from a1 to b1 run at 12 % of the rate of the others (5201, 5205): one member of a bond is bad, or a hash spreads unevenly.".to_owned(), "linerate host --on a1"),
        ];
        for (kind, direction, left, sentence, command) in cases {
            let view = view(kind, direction, left);
            // The innocent host is the first that no cause names.
            let command = if kind == Pair {
                command.to_owned()
            } else {
                command
                    .replace("b1 --d", "a2 --d")
                    .replace("from b1", "from a2")
            };
            assert_eq!(view.sentence, sentence);
            let commands: Vec<&str> = view.next.iter().map(|step| step.command.as_str()).collect();
            assert!(commands.contains(&command.as_str()), "{commands:?}");
        }
        let evidence = view(HostIn, In, Some(0.3)).evidence;
        assert_eq!(
            evidence,
            [
                "4 of the 5 slow tests report receiver-cpu",
                "it explains 80 % of all slow and failed tests",
                "each is slow alone as well"
            ]
        );
    }

    #[test]
    fn a_name_cannot_leave_its_word() {
        assert_eq!(
            shell_word("node01.example").as_deref(),
            Some("node01.example")
        );
        assert_eq!(shell_word("node[01-16]").as_deref(), Some("'node[01-16]'"));
        assert_eq!(
            shell_word("a'; rm -r /").as_deref(),
            Some(r"'a'\''; rm -r /'")
        );
        assert_eq!(shell_word("--via=sh"), None);
        assert_eq!(shell_word(""), None);
    }
}
