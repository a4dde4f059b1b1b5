//! UDP: `udp-sender-short`, `udp-path-loss`, `rate-capped`. Sent, arrived and lost, each from its own end.

use std::fmt::Write as _;

use linerate_model::finding::{Finding, Severity};
use linerate_model::transcript::{End, Given, Printed, Row, Tool};
use linerate_model::units::{BitRate, Bytes, grouped, whole};

use super::digest::Digest;
use crate::draft::{Draft, limit_if};
use crate::words::percent;

/// iperf's and iperf3's own request where none is typed, bit/s: 1024 × 1024.
const DEFAULT_RATE: f64 = 1_048_576.0;
/// A sender below this share of the request fell short.
const SHORT: f64 = 0.95;
/// Below this share a loss leaves the run clean.
const CLEAN: f64 = 1e-4;
/// From this share on it limits; below, TCP-like use still works.
const LIMITS: f64 = 0.01;
/// From this share on the two ends' rates are different.
const MATTERS: f64 = 1e-3;
/// The largest payload that one packet of MTU 1500 carries over IPv4, bytes.
const ONE_PACKET: f64 = 1472.0;
/// Payloads that tools and people use, bytes.
const USUAL: [f64; 8] = [
    8192.0, 1470.0, 1460.0, 1450.0, 1448.0, 1472.0, 8972.0, 8948.0,
];

struct Case<'a> {
    digest: &'a Digest<'a>,
    sent_bps: f64,
    seconds: f64,
    /// Lost and all, and the loss as printed, %.
    counts: Option<(u64, u64, Option<Printed>)>,
    payload: Option<f64>,
    received_bps: Option<f64>,
}

pub(super) fn explain(digest: &Digest<'_>, given: &Given) -> Vec<Finding> {
    let Some(case) = Case::of(digest) else {
        return super::cannot_tell::judge(digest, given)
            .into_iter()
            .collect();
    };
    let mut findings: Vec<Finding> = asked(&case, given).into_iter().collect();
    // A clean run has said its counts already.
    let said = !findings.is_empty();
    findings.extend(loss(&case).filter(|_| !said || !case.is_clean()));
    findings.extend(disorder(&case));
    if findings.is_empty() {
        findings.extend(super::cannot_tell::judge(digest, given));
    }
    findings
}

impl<'a> Case<'a> {
    fn of(digest: &'a Digest<'a>) -> Option<Self> {
        let sender = digest.total.or(digest.received)?;
        let seconds = sender.seconds();
        let counted = counted(digest);
        let counts = counted.and_then(|row| {
            let datagrams = row.datagrams?;
            Some((datagrams.lost?, datagrams.total, datagrams.lost_percent))
        });
        let payload = payload(digest, sender, counts.map(|(_, total, _)| total));
        // A receiver's own row tells what arrived; else the datagrams that were not lost do.
        let own = counted
            .filter(|row| row.end == Some(End::Receiver))
            .map(|row| row.bps.value);
        let received_bps = own.or_else(|| {
            let (lost, total, _) = counts?;
            Some((total - lost) as f64 * payload? * 8.0 / seconds)
        });
        (seconds > 0.0).then_some(Self {
            digest,
            sent_bps: sender.bps.value,
            seconds,
            counts,
            payload,
            received_bps,
        })
    }

    fn is_clean(&self) -> bool {
        let lost = self.counts.map(|(lost, total, _)| lost_much(lost, total));
        lost == Some(false)
    }

    fn rate(&self, bps: f64) -> String {
        self.digest.rate(bps)
    }
}

/// The row that counts lost datagrams: the receiver's; old versions print one for both ends. A row of the
/// sender alone counts nothing that was lost.
fn counted<'a>(digest: &'a Digest<'_>) -> Option<&'a Row> {
    let lossy = |row: &&Row| row.datagrams.is_some_and(|counts| counts.lost.is_some());
    digest
        .received
        .filter(|row| lossy(row))
        .or_else(|| digest.total.filter(|row| row.end.is_none() && lossy(row)))
}

/// The datagrams' payload, bytes: printed, asked for, or from amount and count.
fn payload(digest: &Digest<'_>, sender: &Row, total: Option<u64>) -> Option<f64> {
    let printed = digest
        .test
        .datagram_bytes
        .or(digest.test.asked.length_bytes);
    if printed.is_some() {
        return printed;
    }
    let total = digest
        .test
        .datagrams_sent
        .or(total)
        .filter(|total| *total > 0)? as f64;
    let (low, high) = (sender.bytes.low() / total, sender.bytes.high() / total);
    let usual = USUAL
        .iter()
        .copied()
        .find(|size| (low..=high).contains(size));
    Some(usual.unwrap_or(f64::midpoint(low, high).round()))
}

/// A TCP test that was asked for a rate and reached it.
pub(super) fn tcp_capped(digest: &Digest<'_>, given: &Given) -> Option<Finding> {
    let asked = &digest.test.asked;
    let streams = f64::from(asked.streams.unwrap_or(1).max(1));
    let typed = given.asked.map(|rate| rate.0 as f64);
    let bps = digest.average()?;
    let reached = [typed.or(asked.rate_bps), asked.rate_binary_bps]
        .into_iter()
        .flatten()
        .map(|rate| rate * streams)
        .find(|rate| *rate > 0.0 && (bps / rate - 1.0).abs() < 1.0 - SHORT)?;
    Draft::new(
        "rate-capped",
        Severity::Healthy,
        format!(
            "{} is the requested rate ({}); this run says nothing about higher rates",
            digest.rate(bps),
            BitRate(whole(reached))
        ),
    )
    .figure("requested rate, bit/s", reached, "command")
    .next(format!("linerate test {}", digest.host()))
    .done()
}

/// What was asked for, against what was sent.
fn asked(case: &Case<'_>, given: &Given) -> Option<Finding> {
    let asked = &case.digest.test.asked;
    let typed = !asked.command.is_empty();
    let own = |bps: f64| (case.sent_bps / bps - 1.0).abs() < 0.01;
    let streams = f64::from(asked.streams.unwrap_or(1).max(1));
    let default = asked.rate_bps.is_none() && given.asked.is_none();
    if default && (typed || own(DEFAULT_RATE)) && own(DEFAULT_RATE * streams) {
        return Some(capped(
            case,
            DEFAULT_RATE * streams,
            format!(
                "{} is {}'s default rate (1024 × 1024 bit/s, no -b), not a limit of the path; the test did not try \
                 more",
                case.rate(case.sent_bps),
                tool(case)
            ),
        ));
    }
    let decimal = given.asked.map(|rate| rate.0 as f64).or(asked.rate_bps)? * streams;
    let binary = asked
        .rate_binary_bps
        .filter(|_| given.asked.is_none())
        .map(|bps| bps * streams);
    if case.sent_bps < SHORT * decimal {
        return Some(short(case, decimal));
    }
    let of_1024 = binary
        .filter(|bps| (case.sent_bps / bps - 1.0).abs() < (case.sent_bps / decimal - 1.0).abs());
    let letters = match of_1024 {
        Some(bps) if bps > decimal => format!(
            " (this version's suffixes are powers of 1024: {:.2} Mbit/s)",
            bps / 1e6
        ),
        _ => String::new(),
    };
    let lost = case
        .counts
        .is_some_and(|(lost, total, _)| lost as f64 >= CLEAN * total as f64);
    let clean = match case.counts {
        Some((lost, total, printed)) if !lost_much(lost, total) => format!(
            "clean at this rate: {} of {} datagrams lost{}; ",
            grouped(lost),
            grouped(total),
            printed
                .filter(|_| lost > 0)
                .map_or_else(String::new, |printed| check(printed, lost, total))
        ),
        _ => String::new(),
    };
    if lost {
        return None;
    }
    Some(capped(
        case,
        of_1024.unwrap_or(decimal),
        format!(
            "{clean}{} is the requested rate{letters}; this run says nothing about higher rates",
            case.rate(case.sent_bps)
        ),
    ))
}

fn lost_much(lost: u64, total: u64) -> bool {
    lost as f64 >= CLEAN * total.max(1) as f64
}

fn tool(case: &Case<'_>) -> &'static str {
    match case.digest.test.tool {
        Tool::Iperf2 => "iperf",
        other => other.name(),
    }
}

/// The two rates that such a finding compares.
fn asked_and_sent(draft: Draft, case: &Case<'_>, asked: f64) -> Draft {
    draft
        .figure("requested rate, bit/s", asked, "command")
        .figure("rate sent, bit/s", case.sent_bps, "sender")
}

fn capped(case: &Case<'_>, asked: f64, sentence: String) -> Finding {
    let mut sentence = sentence;
    if let Some(first) = sentence.get(..1) {
        let capital = first.to_uppercase();
        sentence.replace_range(..1, &capital);
    }
    asked_and_sent(
        Draft::new("rate-capped", Severity::Healthy, sentence),
        case,
        asked,
    )
    .next(format!(
        "linerate test {} -u -b {}M",
        case.digest.host(),
        whole(asked * 2.0 / 1e6).max(1)
    ))
    .finding
}

fn short(case: &Case<'_>, asked: f64) -> Finding {
    let share = case.sent_bps / asked;
    let size = case.payload.map_or_else(String::new, |bytes| {
        format!(", in datagrams of {bytes:.0} bytes")
    });
    let sentence = format!(
        "The sender reached {} of the requested {} ({}{}){size}; the test did not try {} on the network: the \
             sending host or the tool's pacing was the limit, the output does not show which",
        case.rate(case.sent_bps),
        BitRate(whole(asked)),
        percent(share),
        fraction(share),
        BitRate(whole(asked))
    );
    asked_and_sent(
        Draft::new("udp-sender-short", Severity::Limit, sentence),
        case,
        asked,
    )
    .next(format!(
        "linerate test {} -u -b {:.0}M -P 4",
        case.digest.host(),
        asked / 4e6
    ))
    .finding
}

/// `, about a fifth`.
fn fraction(share: f64) -> &'static str {
    let near = |of: f64| (share * of - 1.0).abs() < 0.05;
    match () {
        () if near(2.0) => ", about half",
        () if near(3.0) => ", about a third",
        () if near(4.0) => ", about a quarter",
        () if near(5.0) => ", about a fifth",
        () if near(10.0) => ", about a tenth",
        () => "",
    }
}

/// What did not arrive, and what did.
fn loss(case: &Case<'_>) -> Option<Finding> {
    let (lost, total, printed) = case
        .counts
        .filter(|(lost, total, _)| *lost > 0 && *total > 0)?;
    let share = lost as f64 / total as f64;
    let mut sentence = format!(
        "{} of {} datagrams were lost ({}){}, on the path or in a buffer of either host; the output does not show \
         where",
        grouped(lost),
        grouped(total),
        precise(share),
        printed.map_or_else(String::new, |printed| check(printed, lost, total)),
    );
    if let Some(bps) = case.received_bps.filter(|_| share >= MATTERS) {
        let _ = write!(
            sentence,
            "; the receiver got {}; {} is the sender's rate, not throughput",
            BitRate(whole(bps)),
            case.rate(case.sent_bps)
        );
    }
    if let Some(bytes) = case.payload.filter(|bytes| *bytes > ONE_PACKET) {
        let sent = total as f64 * bytes;
        let _ = write!(
            sentence,
            "; datagrams of {bytes:.0} bytes ({} × {bytes:.0} = {}) are fragmented at MTU 1500, and one lost \
             fragment loses the whole datagram",
            grouped(total),
            Bytes(whole(sent))
        );
    }
    let severity = limit_if(share >= LIMITS);
    let arrived = case.received_bps.unwrap_or(case.sent_bps) * 0.9;
    let next = (severity == Severity::Limit).then(|| {
        format!(
            "linerate test {} -u -b {:.0}M -l 1460",
            case.digest.host(),
            (arrived / 1e6).max(1.0)
        )
    });
    Draft::new("udp-path-loss", severity, sentence)
        .figure("datagrams lost", lost, "receiver")
        .figure("datagrams", total, "receiver")
        .figure("lost, %", share * 100.0, "receiver")
        .figure("rate sent, bit/s", case.sent_bps, "sender")
        .figure("rate received, bit/s", case.received_bps, "receiver")
        .figure("payload of a datagram, bytes", case.payload, "sender")
        .figure("time, s", case.seconds, "sender")
        .next(next)
        .done()
}

/// Three digits of a loss.
fn precise(share: f64) -> String {
    let value = share * 100.0;
    if value >= 10.0 {
        format!("{value:.1} %")
    } else if value >= 0.1 {
        format!("{value:.3} %")
    } else {
        percent(share)
    }
}

/// The printed percentage against the counts.
fn check(printed: Printed, lost: u64, total: u64) -> String {
    let value = lost as f64 / total.max(1) as f64 * 100.0;
    let text = if printed.value >= 0.01 {
        format!("{}", printed.value)
    } else {
        format!("{:e}", printed.value)
    };
    // Older versions cut digits instead of rounding.
    if printed.meets(value - 2.0 * printed.half, value + 2.0 * printed.half) {
        format!("; the printed {text} is a percentage and is correct")
    } else {
        format!(", the printed {text} % is wrong")
    }
}

fn disorder(case: &Case<'_>) -> Option<Finding> {
    let count = case.digest.test.out_of_order.filter(|count| *count > 0)?;
    let total = case
        .counts
        .map(|(_, total, _)| total)
        .filter(|total| *total > 0)?;
    Draft::new(
        "reordering",
        Severity::Note,
        format!(
            "{} of {} datagrams arrived out of order ({})",
            grouped(count),
            grouped(total),
            percent(count as f64 / total as f64)
        ),
    )
    .figure("datagrams out of order", count, "receiver")
    .done()
}

/// The payload of a test's datagrams, for comparisons.
pub(super) fn payload_of(digest: &Digest<'_>) -> Option<f64> {
    Case::of(digest)?.payload
}

/// Lost share, for comparisons.
pub(super) fn lost_share(digest: &Digest<'_>) -> Option<f64> {
    let (lost, total, _) = Case::of(digest)?.counts?;
    (total > 0).then(|| lost as f64 / total as f64)
}
