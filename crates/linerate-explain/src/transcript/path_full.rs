//! `path-full`: the rate is all that a line carries; also what loopback shows, and how far below a given
//! link a run stays.

use linerate_model::finding::{Finding, Severity};
use linerate_model::transcript::{Given, Row, Span, Stream};
use linerate_model::units::BitRate;

use super::digest::Digest;
use super::ethernet;
use crate::draft::Draft;

/// A printed rate is a line's when it is this near.
const NEAR: f64 = 0.006;
/// A link is full from this share on.
/// More than this share of a link cannot have passed it.
const MORE: f64 = 1.02;
const FULL: f64 = 0.985;
/// Below this share it is well below its link.
const WELL: f64 = 0.9;
/// From this share of the segments on, sent again, a full line is worth a word.
const REPEATED: f64 = 0.005;
/// A rate that moves more than this is no line's.
const STEADY: f64 = 0.03;

pub(super) fn judge(digest: &Digest<'_>, given: &Given) -> Option<Finding> {
    let bps = digest.settled()?;
    if digest.is_loopback() {
        return Some(loopback(digest, bps));
    }
    if digest.variation().is_some_and(|share| share > STEADY) {
        return given.link.map(|link| against(digest, bps, link));
    }
    if let Some(link) = given.link {
        return Some(against(digest, bps, link));
    }
    let line = ethernet::filled(bps, digest.test.mss_bytes, digest.headers(), NEAR)?;
    Draft::new(
        "path-full",
        Severity::Healthy,
        format!(
            "{} is the full payload rate of {} {} ({}){}{}: {}",
            digest.rate(bps),
            line.line,
            line.how,
            exact(line.bps),
            stable(digest),
            equal(digest),
            to_fix(digest)
        ),
    )
    .figure("rate, bit/s", bps, "all streams")
    .figure("payload that the line carries, bit/s", line.bps, line.line)
    .done()
}

/// One decimal below 1 Gbit/s.
fn exact(bps: f64) -> String {
    if bps < 1e9 {
        format!("{:.1} Mbit/s", bps / 1e6)
    } else {
        format!("{:.2} Gbit/s", bps / 1e9)
    }
}

fn loopback(digest: &Digest<'_>, bps: f64) -> Finding {
    let shown = digest.average().unwrap_or(bps);
    let sentence = format!(
        "This host reaches {} over loopback: both ends have its address, so no network was measured",
        digest.rate(shown)
    );
    Draft::new("path-full", Severity::Healthy, sentence)
        .figure("rate through loopback, bit/s", shown, "all streams")
        .finding
}

/// Against the link's rate that was given.
fn against(digest: &Digest<'_>, bps: f64, link: BitRate) -> Finding {
    let shares = ethernet::shares(digest.test.mss_bytes, digest.headers());
    let (share, how) = shares
        .into_iter()
        .min_by(|a, b| {
            let off = |share: f64| (bps / (link.0 as f64 * share) - 1.0).abs();
            off(a.0).total_cmp(&off(b.0))
        })
        .unwrap_or((1.0, String::new()));
    let carries = link.0 as f64 * share;
    let part = bps / carries.max(1.0);
    if part > MORE {
        let sentence = format!(
            "{} is more than a {link} link carries ({}): the given link rate is not this path's",
            digest.rate(bps),
            exact(carries),
        );
        return Finding::new("cannot-tell", Severity::Note, sentence);
    }
    let full = part >= FULL;
    Draft::new(
        if full { "path-full" } else { "cannot-tell" },
        if full {
            Severity::Healthy
        } else {
            Severity::Note
        },
        if full {
            format!(
                "{} fills the link of {link} {how}{}: {}",
                digest.rate(bps),
                stable(digest),
                to_fix(digest)
            )
        } else {
            format!(
                "{} is {:.0} % of what a link of {link} carries ({}): {} below the link",
                digest.rate(bps),
                part * 100.0,
                exact(carries),
                if part < WELL { "well" } else { "a little" }
            )
        },
    )
    .figure("rate, bit/s", bps, "all streams")
    .figure("payload that the link carries, bit/s", carries, "given")
    .finding
}

/// What a full line leaves to do. A segment is taken for 1448 bytes where its size is not printed.
fn to_fix(digest: &Digest<'_>) -> String {
    let again = digest.total.and_then(|row| row.retransmits).unwrap_or(0);
    let segments = digest.total.map_or(0.0, |row| {
        row.bytes.value / digest.test.mss_bytes.unwrap_or(1448.0)
    });
    let share = again as f64 / segments.max(1.0);
    if share < REPEATED {
        "nothing to fix".to_owned()
    } else {
        format!(
            "full, but {} segments (about {:.1} %) were retransmitted: the queue at the bottleneck is short, or \
             there is other loss",
            linerate_model::units::grouped(again),
            share * 100.0
        )
    }
}

fn stable(digest: &Digest<'_>) -> &'static str {
    match digest.variation() {
        Some(share) if share < 0.01 => ", stable (variation under 1 %)",
        _ => "",
    }
}

/// Whether several streams have the same share.
fn equal(digest: &Digest<'_>) -> String {
    let totals: Vec<f64> = digest
        .test
        .rows
        .iter()
        .filter(|row: &&Row| {
            row.span == Span::Total
                && row.stream != Stream::Sum
                && row
                    .end
                    .is_none_or(|end| end == linerate_model::transcript::End::Sender)
        })
        .map(|row| row.bps.value)
        .collect();
    let low = totals.iter().copied().fold(f64::INFINITY, f64::min);
    let high = totals.iter().copied().fold(0.0, f64::max);
    if totals.len() > 1 && totals.len() == digest.streams.len() && low > 0.98 * high {
        format!(", {} equal streams of {}", totals.len(), digest.rate(high))
    } else {
        String::new()
    }
}
