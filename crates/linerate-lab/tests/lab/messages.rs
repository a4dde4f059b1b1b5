//! What is said about scenario files that are wrong.

use linerate_lab::scenario::Scenario;
use proptest::prelude::*;

/// The message for a file of these lines behind the name.
fn message(text: &str) -> String {
    match Scenario::parse("x.toml", &format!("name = \"x\"\n{text}")) {
        Ok(_) => "understood".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn wrong_keys_name_their_line_and_the_nearest_right_one() {
    for (text, expected) in [
        (
            "[path]\n\nrtae = \"1G\"",
            "x.toml:4: unknown key 'rtae' in [path]: did you mean 'rate'?",
        ),
        (
            "[pth]",
            "x.toml:2: unknown key 'pth' in the file: did you mean 'path'?",
        ),
        (
            "rtt = \"60ms\"",
            "x.toml:2: unknown key 'rtt' in the file: it belongs to [path]",
        ),
        (
            "[path]\ntcp_rmem = \"1 2 3\"",
            "x.toml:3: unknown key 'tcp_rmem' in [path]: it belongs to [sender], [receiver]",
        ),
        (
            "[path]\npolicer = { rate = \"1M\", bust = \"9kB\" }",
            "x.toml:3: unknown key 'bust' in policer: did you mean 'burst'?",
        ),
        (
            "[path.forward]\nforward = 1",
            "x.toml:3: unknown key 'forward' in [path.forward], [path.back]: it belongs to [path]",
        ),
        (
            "[test]\ncolour = 1",
            "x.toml:3: unknown key 'colour' in [test]: known here: args",
        ),
        (
            "[[path.change]]\nrtt = \"1ms\"",
            "x.toml:2: [[path.change]] needs the key 'at': time, above 0, before the test ends",
        ),
        (
            "[path]\nrate = ",
            "x.toml:3: invalid TOML: string values must be quoted, expected literal string",
        ),
    ] {
        assert_eq!(message(text), expected);
    }
    let nameless = Scenario::parse("x.toml", "seed = 1")
        .unwrap_err()
        .to_string();
    assert!(nameless.contains("needs the key 'name'"), "{nameless}");
}

/// Texts with a wrong value, and what their messages say.
const WRONG_VALUES: &[(&str, &[&str])] = &[
    (
        "[path]\nrate = \"1Gb\"",
        &[
            "x.toml:3: rate = \"1Gb\": ",
            "say 1G or 1Gbit/s",
            "expected: bit/s",
        ],
    ),
    ("[path]\nrate = 12", &["rate = 12:", "at least 1 kbit/s"]),
    ("[path]\nrtt = 60", &["rtt = 60:", "say 60ms"]),
    ("[path]\nrtt = \"11s\"", &["longer than 10.0 s"]),
    (
        "[path]\nrtt = \"1ms\"\ndelay = \"1ms\"",
        &["x.toml:4: delay", "'rtt' says it already"],
    ),
    ("[path]\nrate = \"1M\"\nqueue = \"64K\"", &["kB or KiB"]),
    (
        "[path]\nloss = 1.5",
        &["loss = 1.5:", "not between 0 and 1"],
    ),
    ("[path]\nloss = nan", &["loss = nan:", "not a number"]),
    (
        "[path]\nloss = { every = 0 }",
        &["every = 0:", "not a whole number from 1"],
    ),
    (
        "[path]\nloss = { model = \"gilbret\", p = 1, r = 1 }",
        &["did you mean 'gilbert'?"],
    ),
    (
        "[path]\nloss = { model = \"gilbert\", p = 0.1 }",
        &["loss needs the key 'r'"],
    ),
    ("[path]\nmax_packet = { bytes = 20 }", &["from 68 to 65535"]),
    ("[path]\nreorder = 0.1", &["reorder = 0.1:", "not a table"]),
    ("[path.change]\nat = \"1s\"", &["two brackets"]),
    ("[path.cross]\nkind = \"udp\"", &["two brackets"]),
    ("[[path.cross]]\nkind = \"udp\"", &["needs the key 'rate'"]),
    (
        "[[path.cross]]\nkind = \"udp\"\nrate = \"1M\"\nstreams = 4",
        &["udp is one flow"],
    ),
    (
        "[[path.cross]]\nkind = \"tcp\"\nfrom = \"5s\"\nto = \"4s\"",
        &["ends before it begins"],
    ),
    ("[sender]\ncpu = 1", &["shares from 0.02 to 0.98"]),
    (
        "[sender]\ntcp_wmem = \"4096 16384\"",
        &["not three whole numbers"],
    ),
    ("[receiver]\ntcp_rmem = \"4096 1024 9\"", &["must not fall"]),
    (
        "[receiver]\nsysctl = { \"kernel.hostname\" = \"x\" }",
        &["begin with net."],
    ),
    (
        "[receiver]\nsysctl = { \"net.ipv4/../../x\" = \"x\" }",
        &["begin with net."],
    ),
    (
        "[receiver]\nsysctl = { \"net.ipv4.tcp_ecn\" = 1 }",
        &["sysctl.\"net.ipv4.tcp_ecn\" = 1:", "not a text"],
    ),
    (
        "[sender]\ncongestion = \"a b\"",
        &["not the name of a congestion control"],
    ),
    (
        "[test]\nargs = \"-t 5 -o x.json\"",
        &["the lab sets -o itself"],
    ),
    ("[test]\nargs = \"--title 'x\"", &["not closed"]),
    (
        "[expect]\ntop = \"policer\"\nnever = [\"policer\"]",
        &["'policer' is expected elsewhere"],
    ),
    ("[expect]\ngoodput = \"9M..1M\"", &["begins above its end"]),
    ("[expect]\ngoodput = \"9M\"", &["not a range"]),
    ("mode = \"bulky\"", &["did you mean 'bulk'?"]),
    ("seed = -1", &["seed = -1:", "not a whole number"]),
];

#[test]
fn wrong_values_name_what_was_typed_why_not_and_what_fits() {
    for (text, parts) in WRONG_VALUES {
        let message = message(text);
        for part in *parts {
            assert!(message.contains(part), "{text}: '{message}' lacks '{part}'");
        }
    }
}

#[test]
fn contradictions_are_refused_with_their_reason() {
    for (text, part) in [
        (
            "mode = \"bulk\"\n[path]\npolicer = { rate = \"1M\", burst = \"9kB\" }",
            "mode = \"bulk\" and 'policer'",
        ),
        (
            "mode = \"bulk\"\n[path]\nrate = \"1M\"\n[[path.back.change]]\nat = \"1s\"\ncodel = true",
            "'codel'",
        ),
        (
            "[path]\nqueue = \"1x\"",
            "'queue' is about the queue before a bottleneck",
        ),
        (
            "[path]\npolicer = { rate = \"1M\", burst = \"1kB\" }",
            "less than one packet (1538 bytes",
        ),
        (
            "[path]\nrate = \"10M\"\nqueue = \"20kB\"\necn_threshold = \"30kB\"",
            "more than 30000 bytes never wait in a queue of 20000 bytes",
        ),
        (
            "family = \"ipv6\"\n[path]\nmax_packet = { bytes = 1000 }",
            "1280",
        ),
        ("family = \"ipv6\"\n[sender]\nmtu = 1000", "1280"),
        (
            "[[path.change]]\nat = \"12s\"\nrtt = \"1ms\"",
            "has ended by then",
        ),
        (
            "[test]\nargs = \"-t 5\"\n[[path.cross]]\nkind = \"tcp\"\nfrom = \"5s\"",
            "has ended by then",
        ),
    ] {
        let message = message(text);
        assert!(message.contains(part), "{text}: '{message}' lacks '{part}'");
    }
}

proptest! {
    /// Whatever a file holds, it is read or refused.
    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = Scenario::parse("x.toml", &text);
    }

    /// The same for texts that come close.
    #[test]
    fn no_value_panics(
        key in proptest::sample::select(vec![
            "rate", "rtt", "jitter", "queue", "codel", "policer", "loss", "reorder", "duplicate", "max_packet",
            "ecn_threshold", "overhead", "forward", "change", "cross",
        ]),
        value in proptest::sample::select(vec![
            "\"1G\"", "\"-1\"", "-1", "0", "18446744073709551616", "1e400", "nan", "\"999999999999G\"", "\"1x\"",
            "{}", "[]", "[[]]", "{ rate = 1 }", "{ every = 1 }", "true", "\"10s\"", "1979-05-27", "\"1000x\"",
        ]),
    ) {
        let _ = Scenario::parse("x.toml", &format!("name = \"x\"\n[path]\nrate = \"400G\"\nrtt = \"10s\"\n[path.back]\n{key} = {value}"));
    }
}
