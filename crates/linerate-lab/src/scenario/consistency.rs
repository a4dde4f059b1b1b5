//! What cannot go together in a scenario, and what follows from what goes together.

use linerate_model::units::{BitRate, Bytes};

use super::types::{EngineWish, Family, Mode, ModeWish, Scenario, Way};
use crate::path::{Discipline, Loss, Probability, Settings};

/// The most that packet mode carries in one direction without becoming the bottleneck itself on two cores.
pub const PACKET_MODE_LIMIT: BitRate = BitRate(2_000_000_000);
/// A queue below this holds so few super-segments of 64 KiB that dropping one whole is a different path.
const FEW_SUPER_SEGMENTS: Bytes = Bytes(32 * 65_536);

type Verdict = Result<(), String>;

impl Scenario {
    /// How packets are to be decided: as asked, or where `auto`, packet by packet where the scenario needs
    /// that and in bulk otherwise.
    pub fn resolved_mode(&self) -> Mode {
        match self.mode {
            ModeWish::Packet => Mode::Packet,
            ModeWish::Bulk => Mode::Bulk,
            ModeWish::Auto => {
                let mut all = self.all_settings();
                if all.any(|(_, settings)| wants_packets(settings)) {
                    Mode::Packet
                } else {
                    Mode::Bulk
                }
            }
        }
    }

    /// The settings of both directions, at the start and after each change.
    pub fn all_settings(&self) -> impl Iterator<Item = (Way, &Settings)> {
        [Way::Forward, Way::Back].into_iter().flat_map(|way| {
            let all = self.path.direction(way).all_settings();
            all.map(move |settings| (way, settings))
        })
    }
}

/// Whether a path decides packet by packet.
fn wants_packets(settings: &Settings) -> bool {
    let slow_enough = settings
        .bottleneck
        .is_none_or(|bottleneck| bottleneck.rate <= PACKET_MODE_LIMIT);
    let short_queue = settings
        .bottleneck
        .is_some_and(|bottleneck| bottleneck.queue < FEW_SUPER_SEGMENTS && slow_enough);
    packets_needed(settings).is_some()
        || short_queue
        || (settings.loss != Loss::None && slow_enough)
}

/// What of a path cannot be done with super-segments, and why.
fn packets_needed(settings: &Settings) -> Option<(&'static str, &'static str)> {
    if settings.policer.is_some() {
        return Some((
            "policer",
            "a token bucket decides packet by packet; a super-segment of 64 KiB would pass or fail whole",
        ));
    }
    if settings.reorder.is_some() {
        return Some(("reorder", "a super-segment would be overtaken whole"));
    }
    if settings.duplicate > Probability::NEVER {
        return Some(("duplicate", "a super-segment would arrive twice whole"));
    }
    if settings.max_packet.is_some() {
        return Some((
            "max_packet",
            "a super-segment does not show the size of its packets",
        ));
    }
    let bottleneck = settings.bottleneck?;
    if bottleneck.ecn_threshold.is_some() {
        return Some(("ecn_threshold", "a super-segment would be marked whole"));
    }
    match bottleneck.discipline {
        Discipline::Codel(_) => Some((
            "codel",
            "it drops single packets; a super-segment would be dropped whole",
        )),
        Discipline::DropTail => None,
    }
}

/// What contradicts what.
pub(super) fn check(scenario: &Scenario) -> Verdict {
    for (_, settings) in scenario.all_settings() {
        mode(scenario, settings)?;
        policer(scenario, settings)?;
        marks(settings)?;
    }
    engine(scenario)?;
    sizes(scenario)?;
    times(scenario)
}

fn mode(scenario: &Scenario, settings: &Settings) -> Verdict {
    match packets_needed(settings) {
        Some((key, why)) if scenario.mode == ModeWish::Bulk => Err(format!(
            "mode = \"bulk\" and '{key}' cannot go together: {why}. Say mode = \"packet\" or \"auto\""
        )),
        _ => Ok(()),
    }
}

fn engine(scenario: &Scenario) -> Verdict {
    let beyond = match scenario.engine {
        EngineWish::Netem => scenario.beyond_netem(),
        EngineWish::Auto | EngineWish::Nfqueue => Vec::new(),
    };
    if beyond.is_empty() {
        return Ok(());
    }
    Err(format!(
        "engine = \"netem\" cannot do: {}. Say engine = \"nfqueue\" or \"auto\"",
        beyond.join("; ")
    ))
}

fn policer(scenario: &Scenario, settings: &Settings) -> Verdict {
    let Some(policer) = settings.policer else {
        return Ok(());
    };
    let mtu = scenario.sender.mtu.max(scenario.receiver.mtu);
    let (packets, bytes) = settings
        .max_packet
        .map_or((1, u64::from(mtu)), |limit| limit.cut(u64::from(mtu)));
    let packet = bytes + u64::from(packets) * u64::from(settings.overhead);
    if policer.burst.0 < packet {
        return Err(format!(
            "policer: a burst of {} bytes is less than one packet ({packet} bytes with overhead), so no full packet would ever pass. Set burst to {packet} or more",
            policer.burst.0
        ));
    }
    Ok(())
}

fn marks(settings: &Settings) -> Verdict {
    if let Some(link) = &settings.bottleneck
        && let Some(threshold) = link.ecn_threshold
        && link.queue <= threshold
    {
        return Err(format!(
            "ecn_threshold: more than {} bytes never wait in a queue of {} bytes, so nothing would ever be marked. Set ecn_threshold below it, or a longer queue",
            threshold.0, link.queue.0
        ));
    }
    Ok(())
}

/// Every IPv6 link carries packets of 1280 bytes.
fn sizes(scenario: &Scenario) -> Verdict {
    if scenario.family != Family::Ipv6 {
        return Ok(());
    }
    let limits = scenario.all_settings();
    let limits = limits.filter_map(|(_, settings)| settings.max_packet);
    let limits = limits.map(|limit| ("max_packet: bytes", limit.bytes));
    let mtus = [
        ("[sender] mtu", scenario.sender.mtu),
        ("[receiver] mtu", scenario.receiver.mtu),
    ];
    let small = limits.chain(mtus).find(|(_, bytes)| *bytes < 1280);
    small.map_or(Ok(()), |(key, bytes)| {
        Err(format!(
            "{key} = {bytes}: IPv6 needs at least 1280 (RFC 8200, section 5)"
        ))
    })
}

/// Whatever shall happen after the test is a mistake.
fn times(scenario: &Scenario) -> Verdict {
    let Some(end) = scenario.test.duration() else {
        return Ok(());
    };
    let changes = [Way::Forward, Way::Back].into_iter().flat_map(|way| {
        let changes = &scenario.path.direction(way).changes;
        changes
            .iter()
            .map(|change| ("[[path.change]] at", change.at))
    });
    let crosses = scenario
        .path
        .cross
        .iter()
        .map(|cross| ("[[path.cross]] from", cross.from));
    let late = changes.chain(crosses).find(|(_, at)| *at >= end);
    late.map_or(Ok(()), |(key, at)| {
        Err(format!(
            "{key} = {at}: the test has ended by then (it takes {end}, see [test] args)"
        ))
    })
}
