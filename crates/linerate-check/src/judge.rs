//! What findings are worth: figures of one object, held against what a check asks for.

use linerate_model::check::{Found, Item, State};
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::{Interface, LinkCounters};
use linerate_model::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::settings::{LinkCheck, MountCheck, PathCheck, Room};

/// Fewer files may still be made: per cent that are a warning, and that are a failure. No key changes them: a file system that runs
/// out of inodes does so at once.
const FILES: [f64; 2] = [5.0, 1.0];
/// So many times the bad packets of a warning are a failure.
const FAILS: f64 = 100.0;
/// Fewer packets than this tell nothing about a rate of a millionth.
const ENOUGH_PACKETS: u64 = 100_000;
/// Fewer bad packets are not reported: some come whenever a cable is plugged in.
const FEW: u64 = 10;
/// Exit codes of a plugin: <https://www.monitoring-plugins.org/doc/guidelines.html>, "Plugin Return Codes".
const CODES: [State; 3] = [State::Ok, State::Warn, State::Fail];

/// The items with the state of the worst.
pub fn state(items: &[Item]) -> State {
    State::of_all(items.iter().map(|item| item.state))
}

/// A file that was written, synced, read back and removed.
pub fn written(check: &MountCheck, took: Nanos) -> Item {
    let state = if took > check.slow {
        State::Warn
    } else {
        State::Ok
    };
    let limit = check.slow;
    Item::new(check.path.as_str(), state, Found::Written { took, limit })
}

/// Room on a file system: bytes that a user may still write, of its size; files that may still be made, of all.
pub fn room(on: &str, [free, size]: [Bytes; 2], files: Option<[u64; 2]>, wanted: Room) -> Item {
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    let files = files
        .filter(|[_, all]| *all > 0)
        .map(|[free, all]| 100.0 * free as f64 / all as f64);
    let below = |least: crate::settings::Least, of_files: f64| {
        free < least.of(size) || files.is_some_and(|files| files < of_files)
    };
    let state = if below(wanted.fail, FILES[1]) {
        State::Fail
    } else if below(wanted.warn, FILES[0]) {
        State::Warn
    } else {
        State::Ok
    };
    let found = Found::Room {
        free,
        size,
        free_files_percent: files,
    };
    Item::new(on, state, found)
}

/// What a link's counters were at a moment, of the clock that runs since boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkBefore {
    /// When.
    pub at: Nanos,
    /// The interface, so that another one with the same name is not taken for it.
    pub index: u32,
    /// Its counters.
    pub counters: LinkCounters,
    /// Whether it had a carrier at any run of this boot.
    #[serde(default)]
    pub carrier: bool,
}

/// An interface. `members` are those of a bond, with whether each is up.
pub fn link(
    check: &LinkCheck,
    interface: &Interface,
    members: &[bool],
    now: Nanos,
    before: Option<&LinkBefore>,
) -> Vec<Item> {
    let item = |state, found| Item::new(interface.name.as_str(), state, found);
    if !interface.up {
        return vec![item(State::Fail, Found::SetDown)];
    }
    if has_no_carrier(interface) {
        // A port that nobody named, and that never had a cable, is none that is missed.
        let is_missed = check.name.is_some() || before.is_some_and(|before| before.carrier);
        let state = if is_missed { State::Fail } else { State::Ok };
        return vec![item(state, Found::NoCarrier)];
    }
    let known = interface.link.known();
    let mbps = known.and_then(|link| link.speed_mbps);
    let half_duplex = known.is_some_and(|link| link.duplex.as_deref() == Some("half"));
    let slow = check
        .mbps
        .map(|wanted| mbps.map_or(State::Unknown, |mbps| worst_if(mbps < wanted)));
    let speed = [slow.unwrap_or(State::Ok), worst_if(half_duplex)];
    let found = Found::Link {
        mbps,
        wanted_mbps: check.mbps,
        half_duplex,
    };
    let mut items = vec![item(State::of_all(speed), found)];
    if !members.is_empty() || check.members.is_some() {
        let up = members.iter().filter(|up| **up).count() as u64;
        let wanted = check.members.unwrap_or(members.len() as u64);
        let state = match up {
            0 => State::Fail,
            up if up < wanted => State::Warn,
            _ => State::Ok,
        };
        items.push(item(state, Found::Members { up, wanted }));
    }
    let counters = interface.counters.known();
    if let (Some(counters), Some(before)) = (counters, before)
        && before.index == interface.index
    {
        items.extend(errors(check, counters, before, now).map(|(state, found)| item(state, found)));
    }
    items
}

const fn worst_if(case: bool) -> State {
    if case { State::Fail } else { State::Ok }
}

/// Whether it is in a state of RFC 2863 in which nothing passes. `unknown` is that of devices which do not tell.
pub fn has_no_carrier(interface: &Interface) -> bool {
    let down = ["down", "lowerlayerdown", "dormant", "notpresent"];
    let state = interface.operstate.known();
    state.is_some_and(|state| down.contains(&state.as_str()))
}

/// Bad packets since the last run, where they are more than few.
fn errors(
    check: &LinkCheck,
    now: &LinkCounters,
    before: &LinkBefore,
    at: Nanos,
) -> Option<(State, Found)> {
    let bad =
        |counters: &LinkCounters| counters.rx_errors + counters.tx_errors + counters.rx_missed;
    let all = |counters: &LinkCounters| counters.rx_packets + counters.tx_packets;
    // Counters that went back are another device's, or were reset.
    let bad = bad(now).checked_sub(bad(&before.counters))?;
    let packets = all(now).checked_sub(all(&before.counters))?;
    if bad < FEW {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let per_million = 1e6 * bad as f64 / (packets + bad) as f64;
    let state = if per_million <= check.warn_per_million {
        State::Ok
    } else if per_million > FAILS * check.warn_per_million && packets >= ENOUGH_PACKETS {
        State::Fail
    } else {
        State::Warn
    };
    let over = Nanos(at.0.saturating_sub(before.at.0));
    Some((state, Found::LinkErrors { bad, packets, over }))
}

/// Round trips of the answers to so many echo requests; `passes` says whether packets of the wanted size arrive.
pub fn path(
    check: &PathCheck,
    sent: u64,
    round_trips: &mut [Nanos],
    passes: Option<bool>,
) -> Vec<Item> {
    round_trips.sort_unstable();
    let received = round_trips.len() as u64;
    let median = round_trips.get(round_trips.len() / 2).copied();
    let late = match (median, check.round_trip) {
        (Some(median), Some(wanted)) => median > wanted,
        _ => false,
    };
    let state = if received == 0 {
        State::Fail
    } else if received < sent || late {
        State::Warn
    } else {
        State::Ok
    };
    let found = Found::Replies {
        sent,
        received,
        round_trip: median,
        wanted: check.round_trip,
    };
    let mut items = vec![Item::new(check.to.as_str(), state, found)];
    if let (Some(false), Some(mtu)) = (passes, check.mtu)
        && received > 0
    {
        let found = Found::PathTooSmall { mtu };
        items.push(Item::new(check.to.as_str(), State::Fail, found));
    }
    items
}

/// What the rules of `linerate explain` say of arrays, DRBD or volumes. A node with one that works although something is missing
/// goes on: `fails` tells the findings after which it does not.
pub fn findings(findings: Vec<Finding>, fails: impl Fn(&Finding) -> bool) -> Vec<Item> {
    let item = |finding: Finding| {
        let state = match finding.severity {
            Severity::Healthy | Severity::Note => State::Ok,
            Severity::Limit | Severity::Fault if fails(&finding) => State::Fail,
            Severity::Limit | Severity::Fault => State::Warn,
        };
        Item::new("", state, Found::Finding(Box::new(finding)))
    };
    findings.into_iter().map(item).collect()
}

/// Memory controllers and machine checks: errors that were corrected since boot and at the last run, those that were not, and
/// machine-check exceptions.
pub fn memory(corrected: u64, before: Option<u64>, uncorrected: u64, machine_checks: u64) -> Item {
    let since = before.map_or(0, |before| corrected.saturating_sub(before));
    let state = if uncorrected > 0 {
        State::Fail
    } else if since > 0 || machine_checks > 0 {
        State::Warn
    } else {
        State::Ok
    };
    let found = Found::Memory {
        corrected: since,
        uncorrected,
        machine_checks,
    };
    Item::new("", state, found)
}

/// A clock that follows another, or does not.
pub fn clock(synchronised: bool, largest_error: Nanos, wanted: Nanos) -> Item {
    let state = if synchronised && largest_error <= wanted {
        State::Ok
    } else {
        State::Warn
    };
    let found = Found::Clock {
        synchronised,
        largest_error,
    };
    Item::new("", state, found)
}

/// The exit code of a command and the first line that it printed.
pub fn command(code: Option<i32>, text: &str) -> Item {
    let place = code.and_then(|code| usize::try_from(code).ok());
    let state = place.and_then(|place| CODES.get(place)).copied();
    let text = text.lines().next().unwrap_or_default();
    // Figures for graphs stand behind a bar.
    let text = text.split('|').next().unwrap_or_default().trim();
    let found = Found::Said {
        code,
        text: text.into(),
    };
    Item::new("", state.unwrap_or_default(), found)
}

/// Whether a check that has no answer is a failure: what cannot write or read hangs; a program's silence tells nothing of the node.
pub const fn silence(what: &crate::settings::What) -> State {
    use crate::settings::What;
    match what {
        What::Mount(_) | What::Space(_) => State::Fail,
        What::Command(command) if command.silence_fails => State::Fail,
        _ => State::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::host::{Fact, Link};

    use super::*;
    use crate::settings::Least;

    fn link_check() -> LinkCheck {
        LinkCheck {
            name: Some("eth0".to_owned()),
            mbps: Some(10_000),
            members: None,
            warn_per_million: 1.0,
        }
    }

    fn interface(mbps: Option<u32>, duplex: &str) -> Interface {
        Interface {
            name: "eth0".to_owned(),
            index: 2,
            up: true,
            operstate: Fact::Known("up".to_owned()),
            link: Fact::Known(Link {
                speed_mbps: mbps,
                duplex: Some(duplex.to_owned()),
                ..Link::default()
            }),
            ..Interface::default()
        }
    }

    fn judged(interface: &Interface, before: Option<&LinkBefore>) -> State {
        state(&link(&link_check(), interface, &[], Nanos(1), before))
    }

    #[test]
    fn a_link_has_its_speed_its_duplex_and_a_carrier() {
        assert_eq!(judged(&interface(Some(10_000), "full"), None), State::Ok);
        assert_eq!(judged(&interface(Some(1_000), "full"), None), State::Fail);
        assert_eq!(judged(&interface(Some(10_000), "half"), None), State::Fail);
        assert_eq!(judged(&interface(None, "full"), None), State::Unknown);
        let mut down = interface(Some(10_000), "full");
        down.operstate = Fact::Known("down".to_owned());
        assert_eq!(judged(&down, None), State::Fail);
        let unnamed = LinkCheck {
            name: None,
            ..link_check()
        };
        let of_unnamed = |carrier| {
            let before = LinkBefore {
                at: Nanos(0),
                index: 2,
                counters: LinkCounters::default(),
                carrier,
            };
            state(&link(&unnamed, &down, &[], Nanos(1), Some(&before)))
        };
        assert_eq!(of_unnamed(false), State::Ok, "a port without a cable");
        assert_eq!(of_unnamed(true), State::Fail, "one that has lost it");
        down.up = false;
        assert_eq!(judged(&down, None), State::Fail);
    }

    #[test]
    fn members_of_a_bond_that_are_down_are_a_warning_until_none_is_left() {
        let members = |up: &[bool]| {
            let bond = interface(Some(20_000), "full");
            state(&link(&link_check(), &bond, up, Nanos(1), None))
        };
        assert_eq!(members(&[true, true]), State::Ok);
        assert_eq!(members(&[true, false]), State::Warn);
        assert_eq!(members(&[false, false]), State::Fail);
    }

    #[test]
    fn errors_count_from_the_last_run_on() {
        let counters = |packets, errors| LinkCounters {
            rx_packets: packets,
            rx_errors: errors,
            ..LinkCounters::default()
        };
        let before = |index| LinkBefore {
            at: Nanos(0),
            index,
            counters: counters(1_000_000, 5_000),
            carrier: true,
        };
        let with = |packets, errors, index| {
            let mut eth0 = interface(Some(10_000), "full");
            eth0.counters = Fact::Known(counters(packets, errors));
            judged(&eth0, Some(&before(index)))
        };
        assert_eq!(with(2_000_000, 5_000, 2), State::Ok);
        assert_eq!(with(2_000_000, 5_009, 2), State::Ok, "few");
        assert_eq!(with(2_000_000, 5_050, 2), State::Warn);
        assert_eq!(with(2_000_000, 6_000, 2), State::Fail);
        assert_eq!(
            with(1_000_100, 5_050, 2),
            State::Warn,
            "too few packets to fail"
        );
        assert_eq!(with(2_000_000, 6_000, 3), State::Ok, "another interface");
        assert_eq!(with(500, 6_000, 2), State::Ok, "counters went back");
    }

    #[test]
    fn room_is_bytes_and_files() {
        let wanted = Room {
            warn: Least::Percent(5.0),
            fail: Least::Bytes(Bytes(100)),
        };
        let with = |free, files| room("/", [Bytes(free), Bytes(10_000)], files, wanted).state;
        assert_eq!(with(500, None), State::Ok);
        assert_eq!(with(499, None), State::Warn);
        assert_eq!(with(99, None), State::Fail);
        assert_eq!(with(5_000, Some([4, 100])), State::Warn);
        assert_eq!(with(5_000, Some([0, 100])), State::Fail);
        assert_eq!(
            with(5_000, Some([0, 0])),
            State::Ok,
            "btrfs has no inodes to count"
        );
    }

    #[test]
    fn a_path_answers_in_time_and_passes_large_packets() {
        let check = PathCheck {
            to: "peer".to_owned(),
            round_trip: Some(Nanos(1_000)),
            mtu: Some(9_000),
        };
        let with = |trips: &[u64], passes| {
            let mut trips: Vec<Nanos> = trips.iter().copied().map(Nanos).collect();
            state(&path(&check, 5, &mut trips, passes))
        };
        assert_eq!(with(&[900; 5], Some(true)), State::Ok);
        assert_eq!(with(&[900; 5], Some(false)), State::Fail);
        assert_eq!(with(&[900, 900, 1_100, 1_100, 1_100], None), State::Warn);
        assert_eq!(with(&[900; 4], None), State::Warn);
        assert_eq!(with(&[], Some(false)), State::Fail);
    }

    #[test]
    fn exit_codes_are_those_of_plugins() {
        assert_eq!(command(Some(0), "").state, State::Ok);
        assert_eq!(command(Some(2), "").state, State::Fail);
        assert_eq!(command(Some(3), "").state, State::Unknown);
        assert_eq!(command(Some(127), "").state, State::Unknown);
        assert_eq!(command(None, "").state, State::Unknown);
        let Found::Said { text, .. } = command(Some(1), "GPU warm | t=80;70\nmore").found else {
            panic!()
        };
        assert_eq!(&*text, "GPU warm");
    }

    #[test]
    fn errors_of_memory_fail_only_where_they_were_not_corrected() {
        assert_eq!(memory(5, Some(5), 0, 0).state, State::Ok);
        assert_eq!(memory(5, None, 0, 0).state, State::Ok);
        assert_eq!(memory(6, Some(5), 0, 0).state, State::Warn);
        assert_eq!(memory(0, None, 1, 0).state, State::Fail);
    }
}
