//! The search for the largest packet that arrives uncut: usual sizes from the largest down, then those between.

use linerate_analysis::evidence::Evidence;
use linerate_model::record::Outcome;

use super::{Found, Gave};

/// Sizes of IP packets to try where the interface's own does not pass, bytes: Ethernet, `PPPoE`, tunnels, IPv6's
/// least, IPv4's.
const SIZES: [u32; 12] = [
    9000, 1500, 1492, 1480, 1476, 1460, 1450, 1420, 1400, 1350, 1280, 576,
];
/// The largest IP packet, bytes.
pub(crate) const LARGEST: u32 = 65_535;

/// The usual sizes below one, falling.
pub(super) fn below(largest: u32) -> impl DoubleEndedIterator<Item = u32> {
    SIZES.into_iter().filter(move |size| *size < largest)
}

/// What is known of sizes, bytes of IP.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Search {
    /// The largest that arrived.
    pub(super) arrived: Option<u32>,
    /// The smallest that did not.
    pub(super) vanished: Option<u32>,
}

impl Search {
    /// What to try next, once one arrived: half-way to the one that did not.
    pub(super) fn between(self) -> Option<u32> {
        let (arrived, vanished) = (self.arrived?, self.vanished?);
        (vanished.saturating_sub(arrived) > 1).then(|| arrived.midpoint(vanished))
    }

    /// The largest that arrived, where there is nothing left [`between`](Self::between).
    pub(super) fn found(self) -> Option<Found<u32>> {
        let value = self.arrived?;
        let how = self.vanished.map_or_else(
            || "datagrams as large as the interface's MTU arrived unfragmented".to_owned(),
            |vanished| {
                format!(
                    "the largest size that arrived unfragmented; packets of {vanished} bytes did not"
                )
            },
        );
        Some(Found { value, how })
    }
}

/// What became of datagrams of one size.
pub(super) enum Fate {
    Arrived,
    Vanished,
    /// Why they were not sent, or not all.
    NotRun(String),
}

pub(super) fn fate(gave: &Gave) -> Fate {
    let record = match gave {
        Err(why) => return Fate::NotRun(why.clone()),
        Ok(record) => record,
    };
    let ends = [&record.client, &record.server].into_iter().flatten();
    let mut streams = ends.flat_map(|end| &end.streams);
    let evidence = Evidence::of(record);
    let arrived = evidence.directions.iter().any(|direction| {
        let counts = direction.ledger.total.datagrams.as_ref();
        let delivered = counts.and_then(|counts| counts.delivered);
        delivered.map_or(direction.bytes > 0, |count| count > 0)
    });
    match &record.outcome {
        _ if arrived => Fate::Arrived,
        Outcome::Completed => Fate::Vanished,
        // The sender's kernel knows that the path does not carry it.
        Outcome::Failed { .. } if streams.any(|stream| stream.too_long) => Fate::Vanished,
        Outcome::Failed { error } => {
            let said = std::iter::once(error).chain(streams.filter_map(|one| one.error.as_ref()));
            let said: Vec<&str> = said.map(|text| &**text).collect();
            Fate::NotRun(said.join("; "))
        }
        Outcome::Interrupted | Outcome::PeerInterrupted => {
            Fate::NotRun("the run was stopped".to_owned())
        }
    }
}
