//! `watch.toml`: what is read of it, what is refused, and what it costs.

use linerate_model::units::{BitRate, Bytes};
use linerate_watch::plan::cost::{Refusal, cost};
use linerate_watch::plan::{Groups, parse};
use linerate_watch::watched::{ChannelKind, Duplex, Expected, Reach, Sampling, Watched};

/// Sets of names with commas between them, and groups of the file.
fn nodes(text: &str, groups: &Groups) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.strip_prefix('@') {
            Some(group) => {
                let group = groups.get(group).ok_or(format!("no group '{group}'"))?;
                names.extend(group.iter().cloned());
            }
            None => names.push(part.to_owned()),
        }
    }
    Ok(names)
}

fn read(text: &str) -> Result<Watched, String> {
    parse("watch.toml", text, &nodes).map_err(|error| error.to_string())
}

const HOSTS: &str =
    "[[host]]\nnames = \"a,b,c\"\nlink = \"10G\"\ngroups = [\"left\"]\n[[host]]\nnames = \"d\"\n";

fn pairs(task: &str) -> Vec<(usize, usize)> {
    let watched = read(&format!("{HOSTS}[[task]]\nname = \"t\"\n{task}")).unwrap();
    let pairs = watched.tasks[0].pairs.iter();
    pairs.map(|pair| (pair.from, pair.to)).collect()
}

#[test]
fn every_key_is_read() {
    let watched = read(
        r#"
[[segment]]
name = "uplink"
capacity = "20G"
budget = { bytes = "1T" }

[[host]]
names = "a,b"
reach = "ssh"
listens = false
ports = "5300-5309"
link = "10G"
duplex = "independent"
segments = ["uplink"]
groups = ["left", "old"]
budget = { bytes = "2T", seconds = 3600 }

[[host]]
names = "c"
address = "192.0.2.3"
reach = "iperf3:5210"

[[task]]
name = "night"
test = ["-P", "4", "-t", "20", "-O", "2", "-b", "1G"]
from = "@left"
to = "c"
both_ways = false
exclude = [["b", "@*"]]
every = "1d"
slip = "2h"
sampling = "poisson"
hours = ["22:00-06:00", "12:00-13:00"]
expect = ">= 80% of baseline"
quiet = "20%"

[[maintenance]]
hosts = "@old"
from = 2026-12-01T22:00:00Z
until = "2026-12-02T02:00:00+01:00"
why = "new cables"
"#,
    )
    .unwrap();
    let host = &watched.hosts[1];
    assert_eq!(host.ports, Some((5300, 5309)));
    assert_eq!((host.name.as_str(), host.address.as_str()), ("b", "b"));
    assert_eq!((&host.reach, host.listens), (&Reach::Ssh, false));
    assert_eq!(host.link, Some(BitRate(10_000_000_000)));
    assert_eq!(
        (host.duplex, &host.segments[..]),
        (Duplex::Independent, &[0][..])
    );
    assert_eq!(host.groups, ["left", "old"]);
    assert_eq!(host.budget.bytes_a_day, Some(Bytes(2_000_000_000_000)));
    assert_eq!(host.budget.seconds_a_day, Some(3600.0));
    let server = &watched.hosts[2];
    assert_eq!(
        (server.address.as_str(), &server.reach),
        ("192.0.2.3", &Reach::Iperf3(5210))
    );
    let task = &watched.tasks[0];
    assert_eq!(
        (task.load_millis, task.rate),
        (22_000, Some(BitRate(4_000_000_000)))
    );
    assert_eq!(
        (task.pairs.len(), task.pairs[0].from, task.pairs[0].to),
        (1, 0, 2)
    );
    let schedule = &task.schedule;
    assert_eq!(
        (schedule.period_millis, schedule.slip_millis),
        (86_400_000, Some(7_200_000))
    );
    assert_eq!(schedule.sampling, Sampling::Poisson);
    assert_eq!(schedule.hours, [(1320, 360), (720, 780)]);
    assert_eq!(
        (task.expected, task.quiet),
        (Some(Expected::OfBaseline(0.8)), Some(0.2))
    );
    let window = &watched.maintenance[0];
    assert_eq!(
        (&window.hosts[..], window.why.as_str()),
        (&[0, 1][..], "new cables")
    );
    assert_eq!(window.until_unix_s - window.from_unix_s, 3 * 3600);
}

#[test]
fn pairs_are_a_mesh_two_sides_or_a_list_without_what_is_excluded() {
    assert_eq!(pairs("mesh = \"a,b\""), [(0, 1), (1, 0)]);
    assert_eq!(pairs("from = \"a\"\nto = \"a,b\""), [(0, 1), (1, 0)]);
    assert_eq!(
        pairs("from = \"@left\"\nto = \"d\"\nboth_ways = false"),
        [(0, 3), (1, 3), (2, 3)]
    );
    assert_eq!(
        pairs("pairs = [[\"d\", \"a,b\"], [\"d\", \"a\"]]"),
        [(3, 0), (3, 1)]
    );
    assert_eq!(pairs("mesh = \"@*\"").len(), 12);
    assert_eq!(
        pairs("mesh = \"a,b,c\"\nexclude = [[\"a\", \"@*\"], [\"@*\", \"a\"]]"),
        [(1, 2), (2, 1)]
    );
    assert_eq!(
        pairs("mesh = \"a,b\"\npairs = [[\"c\", \"d\"]]"),
        [(0, 1), (1, 0), (2, 3)]
    );
}

#[test]
fn what_is_wrong_is_said_with_line_key_and_what_is_expected() {
    let task = |lines: &str| format!("{HOSTS}[[task]]\nname = \"t\"\nmesh = \"a,b\"\n{lines}");
    for (text, said) in [
        (
            String::new(),
            "watch.toml:1: the file needs the key 'host': [[host]]",
        ),
        (
            "[[host]]\nname = \"a\"".into(),
            "watch.toml:2: unknown key 'name' in [[host]]: ",
        ),
        (
            "[[host]]\nnames = \"a,a\"".into(),
            "watch.toml:2: names = \"a,a\": another host has the name 'a' (expected: set of host names",
        ),
        (
            "[[host]]\nnames = \"@z\"".into(),
            "watch.toml:2: names = \"@z\": no group 'z'",
        ),
        (
            "[[host]]\nnames = \"a,b\"\naddress = \"x\"".into(),
            "watch.toml:3: address = \"x\": several hosts cannot have one address",
        ),
        (
            "[[host]]\nnames = \"a\"\nreach = \"agnt\"".into(),
            "watch.toml:3: reach = \"agnt\": unknown word; did you mean 'agent'?",
        ),
        (
            "[[host]]\nnames = \"a\"\nreach = \"ssh:22\"".into(),
            "watch.toml:3: reach = \"ssh:22\": no port belongs here",
        ),
        (
            "[[host]]\nnames = \"a\"\nreach = \"iperf3:0\"".into(),
            "watch.toml:3: reach = \"iperf3:0\": the port is not a number from 1",
        ),
        (
            "[[host]]\nnames = \"a\"\nlink = \"fast\"".into(),
            "watch.toml:3: link = \"fast\": 'fast' is not a rate",
        ),
        (
            "[[host]]\nnames = \"a\"\nsegments = [\"up\"]".into(),
            "watch.toml:3: segments = \"up\": the file has no [[segment]]",
        ),
        (
            "[[host]]\nnames = \"a\"\nbudget = { bytes = 0 }".into(),
            "watch.toml:3: bytes = 0: a budget of 0",
        ),
        (
            "[[host]]\nnames = \"a\"\nbudget = { seconds = 90000 }".into(),
            "watch.toml:3: seconds = 90000: not a number above 0",
        ),
        (
            "[[segment]]\nname = \"x\"\n[[segment]]\nname = \"x\"\n[[host]]\nnames = \"a\"".into(),
            "watch.toml:3: segment = ",
        ),
        (
            task("test = \"-R\""),
            "watch.toml:10: test = \"-R\": -R: not possible in a task: the pairs say who sends",
        ),
        (
            task("test = \"-P many\""),
            "watch.toml:10: test = \"-P many\": -P: expected a number of streams",
        ),
        (
            task("test = \"--title 'x\""),
            "watch.toml:10: test = \"--title 'x\": a quotation mark is not closed",
        ),
        (
            task("every = \"20\""),
            "watch.toml:10: every = \"20\": it has no unit: s, m, h or d",
        ),
        (
            task("every = \"5s\""),
            "watch.toml:10: every = \"5s\": it is outside of the range (expected: time from",
        ),
        (
            task("test = \"-t 90\"\nevery = \"1m\""),
            "watch.toml:11: every = \"1m\": a test takes 90 s, longer than the period",
        ),
        (
            task("slip = \"10s\""),
            "watch.toml:10: slip = \"10s\": a test takes 10 s and could never end in time",
        ),
        (
            task("hours = [\"22-6\"]"),
            "watch.toml:10: hours = \"22-6\": not hours such as",
        ),
        (
            task("expect = \"> 8G\""),
            "watch.toml:10: expect = \"> 8G\": not understood (expected: \"auto\"",
        ),
        (
            "[[host]]\nnames = \"a\"\nports = \"5310-5300\"".into(),
            "watch.toml:3: ports = \"5310-5300\": neither a port from 1 to 65535 nor a range",
        ),
        (
            mail("http://mail", "to = [\"a@b\"]"),
            "watch.toml:9: url = \"http://mail\": it does not begin with smtp:// or smtps://",
        ),
        (
            mail("smtp://mail:70000", "to = [\"a@b\"]"),
            "watch.toml:9: url = \"smtp://mail:70000\": its port is not one of 1 to 65535",
        ),
        (
            mail("smtp://u:secret@mail", "to = [\"a@b\"]"),
            "watch.toml:9: url = \"smtp://u:secret@mail\": the password belongs into a file",
        ),
        (
            mail("smtps://u@mail", "to = [\"a@b\"]"),
            "watch.toml:9: url = \"smtps://u@mail\": a user needs a secret_file",
        ),
        (
            mail("smtp://mail", "to = [\"nobody\"]"),
            "watch.toml:11: to = \"nobody\": it is not a mail address",
        ),
        (
            mail("smtp://mail", "to = []"),
            "watch.toml:11: to = []: nobody gets the mails",
        ),
        (
            format!("{HOSTS}[[channel]]\nkind = \"webhook\"\nurl = \"http://x\"\nto = [\"a@b\"]"),
            "watch.toml:10: to = ",
        ),
        (
            task("quiet = \"200%\""),
            "watch.toml:10: quiet = \"200%\": not a percentage",
        ),
        (
            task("from = \"a\""),
            "watch.toml:10: from = \"a\": from and to are given together",
        ),
        (
            task("both_ways = true"),
            "watch.toml:10: both_ways = true: it has a meaning only with",
        ),
        (
            task("exclude = [[\"a\"]]"),
            "watch.toml:10: exclude = [\"a\"]: not two sets",
        ),
        (
            task("exclude = [[\"@*\", \"@*\"]]"),
            "watch.toml:7: task = ",
        ),
        (
            task("pairs = [[\"a\", \"e\"]]"),
            "watch.toml:10: pairs = \"e\": no [[host]] has the name 'e'",
        ),
        (
            format!("{HOSTS}[[task]]\nname = \"t\""),
            "watch.toml:7: task = ",
        ),
        (
            task("[[task]]\nname = \"t\"\nmesh = \"a,b\""),
            "watch.toml:11: name = \"t\": another task has the name 't'",
        ),
        (
            format!("{HOSTS}[[maintenance]]\nfrom = \"2026-12-01\"\nuntil = \"2026-12-02\""),
            "watch.toml:8: from = \"2026-12-01\": not a date and time",
        ),
        (
            format!(
                "{HOSTS}[[maintenance]]\nfrom = 2026-12-01T00:00:00Z\nuntil = 2026-12-01T00:00:00Z"
            ),
            "watch.toml:9: until = 2026-12-01T00:00:00Z: it ends before it begins",
        ),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.starts_with(said), "{text}\n{error}");
    }
}

/// A channel that sends mail.
fn mail(url: &str, more: &str) -> String {
    format!("{HOSTS}[[channel]]\nkind = \"mail\"\nurl = \"{url}\"\nfrom = \"hub@x\"\n{more}")
}

#[test]
fn a_mail_channel_has_its_server_user_and_receivers() {
    let of = |url: &str, more: &str| {
        let text = mail(url, &format!("to = [\"a@b\", \"c@d\"]\n{more}"));
        let channel = read(&text).unwrap().channels.remove(0);
        let ChannelKind::Mail(mail) = channel.kind else {
            panic!("{channel:?}");
        };
        assert_eq!(
            (mail.from.as_str(), &mail.to[..]),
            ("hub@x", &["a@b", "c@d"].map(String::from)[..])
        );
        (mail.server, mail.port, mail.wrapped, mail.user)
    };
    let plain = ("mail.x".to_owned(), None, false, None);
    assert_eq!(of("smtp://mail.x", ""), plain);
    let secret = "secret_file = \"/s\"";
    let full = (
        "2001:db8::1".to_owned(),
        Some(2525),
        true,
        Some("u@x".to_owned()),
    );
    assert_eq!(of("smtps://u@x@[2001:db8::1]:2525/", secret), full);
}

fn near(value: f64, expected: f64) {
    assert!(
        (value - expected).abs() < expected.abs() * 1e-9 + 1e-9,
        "{value} and not {expected}"
    );
}

#[test]
fn what_a_plan_costs_is_its_arithmetic() {
    // Three hosts, six pairs, four tests a day each, 15 s of load and 1.5 s beside it, 2 × 1 Gbit/s.
    let text = r#"
[[segment]]
name = "uplink"
capacity = "4G"
[[host]]
names = "a,b"
link = "10G"
segments = ["uplink"]
[[host]]
names = "c"
duplex = "independent"
[[task]]
name = "t"
test = "-t 10 -O 5 -P 2 -b 1G"
mesh = "@*"
every = "6h"
"#;
    let cost = cost(&read(text).unwrap());
    assert_eq!((cost.pairs, cost.tasks[0].pairs), (6, 6));
    near(cost.tests_a_day, 24.0);
    near(cost.hosts[0].busy, 16.0 * 16.5 / 86_400.0);
    // It sends in one test and receives in another: eight of each.
    near(cost.hosts[2].busy, 8.0 * 16.5 / 86_400.0);
    // Four pairs pass it, with half of its capacity.
    near(cost.segments[0].busy, 16.0 * 16.5 * 0.5 / 86_400.0);
    let bytes = 2e9 / 8.0 * 15.0;
    near(cost.bytes_a_day, 24.0 * bytes);
    near(cost.hosts[0].bytes_a_day, 16.0 * bytes);
    near(
        cost.raw_a_day,
        24.0 * (22_600.0 + 20_800.0) * (0.32 + 0.68 * 1.5),
    );
    near(cost.assumed_a_day, 0.0);
    near(cost.cycle_seconds, 21_600.0);
    assert!(cost.refused.is_empty() && cost.unreachable.is_empty());
}

#[test]
fn what_cannot_fit_is_refused_with_the_resource_and_the_numbers() {
    let refused = |hosts: &str, task: &str| {
        let text = format!("{hosts}\n[[task]]\nname = \"t\"\n{task}");
        cost(&read(&text).unwrap()).refused
    };
    let four = "[[host]]\nnames = \"a,b,c,d\"\n";
    // Each host takes part in six tests of 21.5 s, and 2 minutes have 120 s.
    let found = refused(four, "mesh = \"@*\"\ntest = \"-t 20\"\nevery = \"2m\"");
    assert_eq!(found.len(), 4);
    let Refusal::Busy {
        resource,
        needed,
        available,
        in_hours,
    } = &found[0]
    else {
        panic!("{found:?}");
    };
    assert_eq!((resource.as_str(), *in_hours), ("host a", false));
    near(*needed, 720.0 * 6.0 * 21.5);
    near(*available, 86_400.0);
    assert_eq!(
        found[0].to_string(),
        "host a: its tests need 92880 s a day, 108 % of the day (86400 s): test fewer pairs, for less time or less often"
    );
    assert!(refused(four, "mesh = \"@*\"\ntest = \"-t 20\"\nevery = \"130s\"").is_empty());
    // The same fits into a day, and not into two hours of it.
    let hours = "mesh = \"@*\"\ntest = \"-t 20\"\nevery = \"10m\"\n";
    assert!(refused(four, hours).is_empty());
    assert!(refused(four, &format!("{hours}hours = [\"01:00-03:00\"]")).is_empty());
    let found = refused(
        four,
        "mesh = \"@*\"\ntest = \"-t 900\"\nevery = \"1d\"\nhours = [\"01:00-02:00\"]",
    );
    assert!(
        matches!(&found[0], Refusal::Busy { in_hours: true, .. }),
        "{found:?}"
    );
    assert!(
        found[0]
            .to_string()
            .contains("of the hours of its tasks (3600 s)")
    );
    let budget =
        "[[host]]\nnames = \"a,b\"\nlink = \"1G\"\nbudget = { bytes = \"1G\", seconds = 60 }\n";
    let found = refused(budget, "mesh = \"a,b\"");
    let said: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(
        said[0].starts_with("host a: its tests move 10.0 GB a day, and its budget is 1.00 GB"),
        "{said:?}"
    );
    assert!(
        said[1].starts_with("host a: its tests run 80 s a day, and its budget is 60 s"),
        "{said:?}"
    );
    let found = refused(four, "mesh = \"@*\"\ntest = \"-t 19\"\nevery = \"20s\"");
    assert!(matches!(&found[0], Refusal::Period { .. }), "{found:?}");
}

#[test]
fn pairs_of_which_no_test_can_run_are_named() {
    let text = "[[host]]\nnames = \"a,b\"\nlistens = false\n[[host]]\nnames = \"c,d\"\nreach = \"iperf3\"\n[[task]]\nname = \"t\"\nmesh = \"@*\"";
    let cost = cost(&read(text).unwrap());
    let unreachable: Vec<_> = cost
        .unreachable
        .iter()
        .map(|one| (one.pairs, one.why))
        .collect();
    assert_eq!(
        unreachable,
        [
            (2, "neither host can be connected to"),
            (2, "neither host can run an agent")
        ]
    );
    near(cost.assumed_a_day, 48.0);
}
