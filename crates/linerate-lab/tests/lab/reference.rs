//! docs/reference/scenario.md is made from the definition of the keys, and checked against it.
#![expect(
    clippy::disallowed_methods,
    reason = "tests read and write the repository's files"
)]

use std::fmt::Write as _;
use std::path::PathBuf;

use linerate_document::Section;
use linerate_lab::scenario::keys::SECTIONS;
use linerate_lab::scenario::{PACKET_MODE_LIMIT, PRESETS};
use linerate_lab::star;

const HEAD: &str = "# Scenarios

A scenario is a TOML file that describes a lab: a path between two hosts, the test on it, and what is expected of it.
This page is made from the program's own definition (`cargo test -p linerate-lab -- --ignored write_the_scenario_reference`).
How to use one: [the guide](../guides/lab.md). More than sixty of them: [scenarios/](../../scenarios).

A key that is not listed here is refused, with its line and the nearest key that is.

Amounts name their unit. Rates are bits per second, with k, M, G of 1000, alone or before `bit/s`: `\"1G\"`, `\"2.5 Gbit/s\"`.
Sizes are bytes, with kB, MB, GB of 1000 or KiB, MiB, GiB of 1024. Times end in ns, us, ms, s or min. What could
mean two things, such as `1Gb` or `64K`, is refused. A number without quotation marks is bit/s or bytes.
";

const STARS: &str = "
# Stars

A file with a table `[star]` describes many hosts on switches, with trunks between these: what a mesh of tests is run
over. `linerate lab up NAME --scenario FILE` brings it up ([the guide](../guides/lab.md#many-hosts)). Stars with one
planted cause each: [scenarios/star/](../../scenarios/star).

A switch is a router: hosts have addresses out of 192.0.2.0/24 and 2001:db8::/48, members of trunks out of
198.51.100.0/24. A packet takes the fewest trunks to its destination. Rates count IP bytes and 38 bytes a packet, and a
rest lets 2 ms of the rate (at least two packets) pass at once. UDP batches count their 38 bytes once on the way out of
the sending host. `delay` needs packet queues (NFQUEUE); nothing else does. A star has 2 to 60 hosts, and its trunks up to
60 members together.
";

fn section(out: &mut String, section: &Section) {
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

fn markdown() -> String {
    let mut out = HEAD.to_owned();
    for each in SECTIONS {
        section(&mut out, each);
    }
    let _ = write!(
        out,
        "
## Modes

In packet mode the hosts' segmentation offload is off and every packet is decided on its own; that carries about
{PACKET_MODE_LIMIT} on two cores. In bulk mode super-segments of up to 64 KiB are decided whole, which carries tens of
Gbit/s. `auto` chooses packet mode where the path has a policer, reordering, duplication, a largest packet, an ECN
threshold or CoDel; where it has a queue of less than 2 MiB and its rate is no more than packet mode carries; where it
has loss and its rate is no more than that, or unlimited; and bulk mode otherwise. Bulk mode together with one of the
former is refused. With loss in bulk mode the odds are those of each segment, and a super-segment is lost whole when
one of its segments is. A path without a rate that is decided packet by packet may be as fast as the lab and no faster:
where the lab was late then, the report says so.

## Engines

`auto` takes packet queues where they are to be had, else netem where it can do all that the scenario asks, else it says
what is missing and which keys stand in the way. netem, with tbf for the rate, is always in packet mode and leaves every
packet to the kernel. It cannot do `policer`, `codel`, `ecn_threshold`, `max_packet`, `loss = {{ every = n }}`, competing
traffic, `mode = \"bulk\"`, `reorder` together with `jitter`, or a reordered fraction below 1/16384. What it does
otherwise than packet queues: losses come before the bottleneck, a rest lets 2 ms of the rate (at least two packets)
pass at once, as does a change of `rate` or `queue`, and `jitter` is drawn for each packet and held in order, so that a
dense flow sees mostly the longest. With `reorder` nothing keeps the order: after a change to a shorter `rtt`, packets
overtake those sent before it. ARP, neighbour discovery and what the router itself sends are delayed, lost and doubled
too. A packet that is drawn for both `loss` and `duplicate` arrives once, and counts as lost. What comes while 700,000
packets are under way in a direction is dropped, and counts as lost too. A change of anything but `rate` and `queue`
throws the dice anew, from the seed and the change's number. How late packets left is not known: a run counts as
disturbed only where the path's rate is above
{PACKET_MODE_LIMIT}, or where the machine dropped packets between two interfaces.
`rate` and `queue` count IP bytes and `overhead` of each packet, as with packet queues.

## Presets

| name | about |
|---|---|
"
    );
    for preset in PRESETS {
        let about = preset.scenario().map(|scenario| scenario.about);
        let _ = writeln!(out, "| `{}` | {} |", preset.name, about.unwrap_or_default());
    }
    let _ = writeln!(
        out,
        "\nThe findings that `[expect]` may name are those of [docs/findings](../findings/README.md)."
    );
    out += STARS;
    for each in star::keys::SECTIONS {
        section(&mut out, each);
    }
    out
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/scenario.md")
}

#[test]
fn the_scenario_reference_is_up_to_date() {
    let written = std::fs::read_to_string(path()).expect("docs/reference/scenario.md");
    assert_eq!(
        written,
        markdown(),
        "run `cargo test -p linerate-lab -- --ignored write_the_scenario_reference`"
    );
}

#[test]
#[ignore = "writes docs/reference/scenario.md"]
fn write_the_scenario_reference() {
    std::fs::write(path(), markdown()).expect("docs/reference");
}

/// Whatever the code's limits are, the reference says the same: the defaults are read from an empty path.
#[test]
fn the_defaults_that_are_written_are_those_that_hold() {
    use linerate_lab::scenario::Scenario;
    let scenario = Scenario::parse("x", "name = \"x\"\n[path]\nrate = \"1M\"").expect("it reads");
    let settings = scenario.path.forward.settings;
    let default = |section: usize, name: &str| SECTIONS[section].key(name).expect("a key").default;
    assert_eq!(default(1, "overhead"), settings.overhead.to_string());
    let queue = settings.bottleneck.expect("a rate").queue.count();
    assert!(default(1, "queue").contains(&format!("{:.1} kB", queue as f64 / 1000.0)));
    assert_eq!(default(0, "seed"), scenario.seed.to_string());
    assert_eq!(default(5, "congestion"), scenario.sender.congestion);
    assert_eq!(default(5, "mtu"), scenario.sender.mtu.to_string());
    let text =
        "name = \"x\"\n[star]\nrate = \"1M\"\n[[star.switch]]\nname = \"s\"\nhosts = \"a,b\"\n";
    let star = star::Star::parse("x", text).expect("it reads");
    let default = |name: &str| star::keys::SECTIONS[1].key(name).expect("a key").default;
    assert_eq!(default("mtu"), star.hosts[0].spec.mtu.to_string());
    assert_eq!(default("congestion"), star.hosts[0].spec.congestion);
    assert_eq!(
        default("queue"),
        format!("{}ms", star.hosts[0].queue.0 / 1_000_000)
    );
    assert!(STARS.contains(&format!("2 to {} hosts", star::MOST_HOSTS)));
    assert!(
        STARS
            .replace('\n', " ")
            .contains(&format!("to {} members", star::MOST_LINKS))
    );
}
