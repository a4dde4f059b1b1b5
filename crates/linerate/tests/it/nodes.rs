//! `linerate nodes`, and that `ClusterShell` itself expands and folds 10,000 sets drawn at random as it does.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use linerate_fleet::nodes::{NodeSet, Sources};
use linerate_testing::{Need, skipped};
use serde_json::{Value, json};

use crate::harness::{LINERATE, beside};

/// Reads a set a line, writes its names and how it is folded.
const ORACLE: &str = "
import json, sys
from ClusterShell.NodeSet import NodeSet
for line in sys.stdin:
    s = NodeSet(line.rstrip('\\n'), resolver=None)
    print(json.dumps([list(s), str(s)]))
";

/// Knuth's MMIX generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, many: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % many
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    /// A range; of numbers of one width where digits stand beside the bracket, since `ClusterShell` joins those to the
    /// range's ends instead of its numbers.
    fn range(&mut self, one_width: bool) -> String {
        let from = if one_width {
            10 + self.below(60)
        } else {
            self.below(140)
        };
        let to = from + self.below(if one_width { 20 } else { 40 });
        let width = *[0, 0, 2, 3, 4]
            .get(usize::try_from(self.below(5)).unwrap())
            .unwrap();
        let width = if to.to_string().len() > width || one_width {
            0
        } else {
            width
        };
        match self.below(4) {
            0 => format!("{from:0width$}"),
            1 => format!("{from:0width$}-{to:0width$}/{}", 1 + self.below(5)),
            _ => format!("{from:0width$}-{to:0width$}"),
        }
    }

    fn ranges(&mut self, one_width: bool) -> String {
        let count = 1 + self.below(3);
        let all: Vec<String> = (0..count).map(|_| self.range(one_width)).collect();
        all.join(",")
    }

    fn name(&mut self) -> String {
        let text = self.of(&["n", "node", "n-", "rack.a", "x_"]);
        let tail = self.of(&["", "", "", "-ib", ".example.org", "-eth2"]);
        match self.below(10) {
            0 => format!("{text}{tail}"),
            1 => format!("{text}{}{tail}", self.below(50)),
            2 => format!("{text}{:03}{tail}", self.below(50)),
            3 => format!("{text}[{}]sw[{}]", self.ranges(false), self.ranges(false)),
            4 => format!("{text}{}sw[{}]{tail}", self.below(4), self.ranges(false)),
            5 => format!("{text}{}[{}]{tail}", 1 + self.below(9), self.ranges(true)),
            6 => {
                // Digits after a bracket that has steps are an error there.
                let ranges = self.ranges(true);
                let plain = if ranges.contains('/') { "1-9" } else { &ranges };
                format!("{text}[{plain}]{}{tail}", self.below(10))
            }
            _ => format!("{text}[{}]{tail}", self.ranges(false)),
        }
    }

    fn set(&mut self) -> String {
        let mut text = self.name();
        for _ in 0..self.below(6) {
            let sign = self.of(&[",", ",", ",", "!", "&", "^", " , ", " ! "]);
            // Operators on unlike patterns mostly give nothing: take the same one again half of the time.
            let name = if self.below(2) == 0 {
                self.name()
            } else {
                format!("n[{}]", self.ranges(false))
            };
            let _ = write!(text, "{sign}{name}");
        }
        text
    }
}

#[test]
fn ten_thousand_sets_are_what_clustershell_makes_of_them() {
    let _machine = beside();
    let python = "/usr/bin/python3";
    let has = Command::new(python)
        .args(["-c", "import ClusterShell.NodeSet"])
        .output();
    if !has.is_ok_and(|output| output.status.success()) {
        let why = "python3 has no ClusterShell; apt-get install clustershell";
        skipped(
            Need::Programs,
            "10,000 sets of hosts against ClusterShell",
            why,
        );
        return;
    }
    let mut dice = Dice(20_261_124);
    let sets: Vec<String> = (0..10_000).map(|_| dice.set()).collect();
    let mut child = Command::new(python)
        .args(["-c", ORACLE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = sets.join("\n") + "\n";
    let writes = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    // Python may have ended before it read all; then what it said follows.
    drop(writes.join().unwrap());
    let said = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = std::str::from_utf8(&output.stdout)
        .unwrap()
        .lines()
        .collect();
    assert_eq!(
        lines.len(),
        sets.len(),
        "after {:?}: {said}",
        sets.get(lines.len())
    );
    let mut differing = Vec::new();
    let (mut empty, mut several) = (0, 0);
    for (text, line) in sets.iter().zip(lines) {
        let (names, folded): (Vec<String>, String) = serde_json::from_str(line).unwrap();
        let ours =
            NodeSet::read(text, &Sources::none()).unwrap_or_else(|error| panic!("{text}: {error}"));
        empty += usize::from(names.is_empty());
        several += usize::from(folded.contains("],"));
        if ours.names().collect::<Vec<_>>() != names || ours.to_string() != folded {
            differing.push(format!("{text}\n  ours   {ours}\n  theirs {folded}"));
        }
    }
    assert!(
        empty < 2_500 && several > 2_500,
        "{empty} empty, {several} of several parts"
    );
    let shown: Vec<&str> = differing.iter().take(10).map(String::as_str).collect();
    assert!(
        differing.is_empty(),
        "{} of {} differ:\n{}",
        differing.len(),
        sets.len(),
        shown.join("\n")
    );
}

/// `linerate nodes` with a home that has no files of groups, reading `input`.
fn nodes(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(LINERATE)
        .arg("nodes")
        .args(arguments)
        .env("HOME", "/nonexistent")
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads no input may be gone.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn sets_are_expanded_folded_and_counted() {
    let _machine = beside();
    let (code, out, _) = nodes(&["expand", "node[8-10]!node9", "gpu1"], "");
    assert_eq!((code, out.as_str()), (0, "gpu1\nnode8\nnode10\n"));
    let input = "node3\nnode1 node2 # two\n\nnode[08-09]\nnode1\n";
    let (code, out, _) = nodes(&["fold"], input);
    assert_eq!((code, out.as_str()), (0, "node[1-3,08-09]\n"));
    let (code, out, _) = nodes(&["count", "-", "x[1-10]"], input);
    assert_eq!((code, out.as_str()), (0, "15\n"));
    let (code, out, _) = nodes(&["count", "n1!n1"], "");
    assert_eq!((code, out.as_str()), (0, "0\n"));
    let (_, out, _) = nodes(&["expand", "n[1-2]", "--json"], "");
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        document,
        json!({"set": "n[1-2]", "count": 2, "names": ["n1", "n2"]})
    );
}

#[test]
fn what_is_no_set_ends_with_its_reason() {
    let _machine = beside();
    for (arguments, why) in [
        (&["expand"][..], "no set of hosts was given"),
        (&["expand", "n[1-"], "a bracket is missing"),
        (&["count", "@no_such"], "no group 'no_such'"),
        (
            &["expand", "^/nonexistent"],
            "cannot read the hosts in /nonexistent: No such file",
        ),
        (
            &["expand", "n[0-99999999]"],
            "more than 1,000,000 host names",
        ),
        (&["expand", "--", "-oProxyCommand=x"], "begins with '-'"),
    ] {
        let (code, out, said) = nodes(arguments, "");
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(said.contains(why), "{arguments:?}: {said}");
    }
    let (code, _, said) = nodes(&["fold"], "n1\nn[2-\n");
    assert!(code == 2 && said.contains("'n[2-'"), "{said}");
}

#[test]
fn groups_come_from_files() {
    let _machine = beside();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("groups"), "compute: n[1-64]\nbroken: n7\n").unwrap();
    std::fs::write(path("hosts.ini"), "[web]\nweb[01:03]\n").unwrap();
    let (code, out, said) = nodes(
        &["fold", "@compute!@broken", "--groups", &path("groups")],
        "",
    );
    assert_eq!((code, out.as_str()), (0, "n[1-6,8-64]\n"), "{said}");
    let (code, out, said) = nodes(&["fold", "@web", "--inventory", &path("hosts.ini")], "");
    assert_eq!((code, out.as_str()), (0, "web[01-03]\n"), "{said}");
    let (code, _, said) = nodes(&["fold", "@web", "--groups", &path("none")], "");
    assert!(code == 5 && said.contains("cannot read"), "{code} {said}");
}
