//! docs/reference/watch.md is made from the definition of the keys, and checked against it.
#![expect(
    clippy::disallowed_methods,
    reason = "tests read and write the repository's files"
)]

use std::fmt::Write as _;
use std::path::PathBuf;

use linerate_watch::dispatch::{LOOK_MILLIS, OVERHEAD_MILLIS};
use linerate_watch::plan::cost::{ASSUMED_RATE, LIGHT, RAW_DAYS, cost};
use linerate_watch::plan::keys::SECTIONS;
use linerate_watch::plan::{Groups, MOST_HOSTS, MOST_PAIRS, parse};

const EXAMPLE: &str = r#"[[segment]]
name = "site-b uplink"
capacity = "40G"

[[host]]
names = "a[1-2]"
link = "25G"
groups = ["site-a"]

[[host]]
names = "b[1-2]"
link = "100G"
groups = ["site-b"]
segments = ["site-b uplink"]
budget = { bytes = "20T" }

[[host]]
names = "laptop"
listens = false

[[host]]
names = "archive"
address = "192.0.2.20"
reach = "iperf3"

[[task]]
name = "between the sites"
test = "-t 10 -P 4"
from = "@site-a"
to = "@site-b"
every = "6h"
expect = ">= 18G"

[[task]]
name = "everything, lightly"
test = "-t 5 -b 100M"
mesh = "@*"
exclude = [["archive", "laptop"], ["laptop", "archive"]]
every = "1h"
expect = "auto"

[[task]]
name = "archive at night"
test = "-t 20"
from = "a1"
to = "archive"
both_ways = false
every = "1d"
hours = ["22:00-06:00"]
quiet = "10%"

[[maintenance]]
hosts = "@site-b"
from = "2026-12-01T22:00:00Z"
until = "2026-12-02T02:00:00Z"
why = "new switch"
"#;

fn markdown() -> String {
    let mut out = format!(
        "# watch.toml

A file that says what is tested regularly: between which hosts, how, and when. `linerate watch plan FILE` reads it and
says what it costs before anything runs. The tables below are made from the program's own definition
(`cargo test -p linerate-watch -- --ignored write_the_watch_reference`).

A key that is not listed here is refused, with its line and the nearest key that is.

```toml
{EXAMPLE}```

Rates are bit/s and amounts bytes, both with K, M, G, T of 1000: `\"25G\"`. Times have a unit: `\"30s\"`,
`\"10m\"`, `\"6h\"`, `\"7d\"`. A plan has at most {MOST_HOSTS} hosts and {MOST_PAIRS} pairs.

A set of hosts is written as for [`linerate nodes`](options.md): `node[01-16]`, `a1,a2`, `@site-a!a1`. `@NAME` is a group
of this file, else one of the files of groups that `linerate nodes` reads; `@*` alone is every host of this file.
"
    );
    for section in SECTIONS {
        let _ = write!(
            out,
            "\n## {}\n\n{}\n\n| key | holds | default | meaning |\n|---|---|---|---|\n",
            section.title, section.about
        );
        for key in section.keys() {
            let cell = |text: &str| text.replace('|', "\\|");
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {} |",
                key.name,
                cell(key.holds),
                cell(key.default),
                cell(key.about)
            );
        }
    }
    let _ = write!(
        out,
        "
## What a plan costs

`linerate watch plan` prints pairs and tests a day, how busy hosts and segments get, bytes and disk; with `--json` the same
as one document. It ends with code 1 where the plan cannot be carried out, and names the host or segment and the numbers.

- A test books its hosts for its load, the omitted part included, and {overhead} s beside it, with `quiet` {look} s more. `--precision` books the
  longest time (`-t`, 120 s unless given).
- A host is busy while it takes part in a test; with `duplex = \"independent\"`, sending and receiving count apart and the
  greater one is shown. A test paced to at most {light} % of the slower link takes no turn.
- A segment is busy while a test passes it whose one host is in the segment and whose other is not: for the share of the
  capacity that the test's rate is, and wholly where either is not known.
- `bound` is the least time that the longest period needs at the busiest host or segment. No order of the tests is
  shorter.
- The rate of a test is the least of `-b`, `--fq-rate` (times `-P`) and both links; where none is known, {assumed} is
  assumed, and the plan says for how many tests.
- A record of 10 s takes 22.6 kB on the disk and 20.8 kB for each stream but the first, one of 1 s 0.39 times as much (8.7 kB
  measured, mean of 18); a row takes 0.6 kB. Records are
  kept for {RAW_DAYS:.0} days, rows for ever.
- With `hours`, periods that leave no time for a test have none.
- Pairs of which no test can run are named: both hosts behind a NAT (`listens = false`), or no agent on either.

## pSConfig templates

`linerate watch plan` takes a template of perfSONAR's pSConfig (JSON) in the place of `watch.toml`, and reads its tasks with
throughput tests as pSConfig 5.2.4 does: mesh, disjoint and list groups, `excludes`, `excludes-self`, labels and remote
addresses, address classes, `disabled`, and the variables of specifications. An entry of `hosts` becomes a host, its tags
become its groups, and `repeat` the period; a test's moment is drawn evenly within the period. What is not read is named
under \"Not read\" (`ignored` in JSON).

- A host with `no-agent` is reached as `iperf3` at port 5201; all others need an agent of linerate.
- Pairs of which neither end has an agent are in the plan, and named: pSConfig's agents schedule them nowhere.
- Not read: tests of other types, jq, `includes`, `contexts`, `archives`, `subtasks`. No names are resolved: a class that
  asks for the IP address of a name (`ip-version`, `netmask`) selects nothing, and is named.
",
        overhead = OVERHEAD_MILLIS as f64 / 1000.0,
        look = LOOK_MILLIS / 1000,
        light = LIGHT * 100.0,
        assumed = ASSUMED_RATE,
    );
    out
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/watch.md")
}

#[test]
fn the_watch_reference_is_up_to_date() {
    let written = std::fs::read_to_string(path()).unwrap_or_default();
    assert_eq!(
        written,
        markdown(),
        "run `cargo test -p linerate-watch -- --ignored write_the_watch_reference`"
    );
}

#[test]
#[ignore = "writes docs/reference/watch.md"]
fn write_the_watch_reference() {
    std::fs::write(path(), markdown()).unwrap();
}

#[test]
fn the_example_of_the_reference_is_a_plan_that_can_be_carried_out() {
    let nodes = |set: &str, groups: &Groups| -> Result<Vec<String>, String> {
        let names = |text: &str| text.split(',').map(str::to_owned).collect();
        Ok(match (set.strip_prefix('@'), set.split_once("[1-2]")) {
            (Some(group), _) => groups.get(group).cloned().ok_or("no such group")?,
            (None, Some((head, _))) => vec![format!("{head}1"), format!("{head}2")],
            (None, None) => names(set),
        })
    };
    let plan = parse("watch.toml", EXAMPLE, &nodes).unwrap();
    let cost = cost(&plan);
    let pairs: Vec<usize> = cost.tasks.iter().map(|task| task.pairs).collect();
    assert_eq!(pairs, [8, 28, 1]);
    assert_eq!(
        (&cost.refused[..], &cost.unreachable[..]),
        (&[][..], &[][..])
    );
}
