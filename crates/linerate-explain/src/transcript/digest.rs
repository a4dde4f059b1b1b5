//! A test's rows in the order that rules want them: rates of all streams, totals, ramp and plateau.

use std::collections::HashMap;
use std::ops::Range;

use linerate_analysis::statistics::{deviation, mean};
use linerate_model::plan::Protocol;
use linerate_model::transcript::{
    End, Layout, Part, Row, Side, Span, Stream, TestOutput, Tool, Transcript, Way,
};
use linerate_model::units::{BitRate, whole};

use super::ethernet;

/// A first interval belongs to the ramp when it lies this far below what follows.
const RAMP_BELOW: f64 = 0.98;

/// Two intervals are one when their ends differ by less, s.
const SAME_END: f64 = 0.05;
/// Tests within another one's log that are looked at.
pub(super) const MOST_GUESTS: usize = 64;

/// The rate of all streams in an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub(super) start_s: f64,
    pub(super) end_s: f64,
    pub(super) bps: f64,
}

/// A test as rules see it.
pub(super) struct Digest<'a> {
    pub(super) test: &'a TestOutput,
    pub(super) name: &'a str,
    /// Rates of all streams, interval by interval.
    pub(super) rates: Vec<Interval>,
    /// How many of them are ramp.
    pub(super) ramp: usize,
    /// The total that the sender, or an unnamed end, printed.
    pub(super) total: Option<&'a Row>,
    /// The total that the receiver measured.
    pub(super) received: Option<&'a Row>,
    /// The streams' numbers.
    pub(super) streams: Vec<u32>,
    /// Rows of one interval, stream by stream.
    pub(super) intervals: HashMap<Stream, Vec<&'a Row>>,
    /// Other tests in the same log, while this one ran: from and to, s; [`MOST_GUESTS`] at most.
    pub(super) beside: &'a [[f64; 2]],
    /// Half of the last digit of the rates, bit/s.
    half: f64,
}

impl<'a> Digest<'a> {
    /// Of a test that is part number `part` of a log, in which `guests` ran within others.
    pub(super) fn of(
        test: &'a TestOutput,
        transcript: &'a Transcript,
        part: usize,
        guests: &'a Guests,
    ) -> Self {
        let streams = streams(test);
        let intervals = intervals(test);
        let rates = rates(&intervals, &streams);
        let half = test.rows.iter().map(|row| row.bps.half).fold(0.0, f64::max);
        Self {
            test,
            name: &transcript.name,
            ramp: ramp(&rates),
            total: total(test, &streams, |row| row.end != Some(End::Receiver)),
            received: total(test, &streams, |row| row.end == Some(End::Receiver)),
            beside: guests.get(&part).map_or(&[], Vec::as_slice),
            intervals,
            rates,
            streams,
            half,
        }
    }

    pub(super) fn is_udp(&self) -> bool {
        self.test.protocol == Some(Protocol::Udp)
    }

    pub(super) fn is_sctp(&self) -> bool {
        self.test.protocol == Some(Protocol::Sctp)
    }

    /// Whether an iperf3 that sent printed no retransmits: it used SCTP, or a kernel that does not report TCP's.
    pub(super) fn may_be_sctp(&self) -> bool {
        let test = self.test;
        let totals = || test.rows.iter().filter(|row| row.span == Span::Total);
        test.tool == Tool::Iperf3
            && test.side == Some(Side::Client)
            && test.protocol == Some(Protocol::Tcp)
            && test.layout == Layout::Text
            && test.way.is_none()
            && self.printed_by_the_sender()
            && totals().any(|row| row.end == Some(End::Sender))
            && test.rows.iter().all(|row| row.retransmits.is_none())
    }

    /// Whether the end that printed it sent the data.
    pub(super) fn printed_by_the_sender(&self) -> bool {
        let test = self.test;
        match (test.way, test.side) {
            (Some(way), _) => way == Way::Out,
            // A server's text does not say that a test is reversed; its rows have a sender's columns then.
            (None, Some(Side::Server)) => {
                test.asked.reverse || test.rows.iter().any(|row| row.window_bytes.is_some())
            }
            (None, Some(Side::Client) | None) => !test.asked.reverse,
        }
    }

    /// Rates after the ramp, bit/s.
    pub(super) fn plateau(&self) -> Vec<f64> {
        self.rates[self.ramp..]
            .iter()
            .map(|each| each.bps)
            .collect()
    }

    /// The rate that the test settled at: the plateau where there is a ramp, else the printed total, else
    /// the mean of the intervals.
    pub(super) fn settled(&self) -> Option<f64> {
        if self.ramp > 0 {
            let mut plateau = self.plateau();
            plateau.sort_by(f64::total_cmp);
            return plateau.get(plateau.len() / 2).copied();
        }
        self.average()
    }

    /// The rate of the whole test.
    pub(super) fn average(&self) -> Option<f64> {
        let printed = self.total.or(self.received).map(|row| row.bps.value);
        printed.or_else(|| {
            let seconds: f64 = self
                .rates
                .iter()
                .map(|each| each.end_s - each.start_s)
                .sum();
            let bits: f64 = self
                .rates
                .iter()
                .map(|each| each.bps * (each.end_s - each.start_s))
                .sum();
            (seconds > 0.0).then(|| bits / seconds)
        })
    }

    /// Standard deviation of the plateau's rates, as a share of their mean; at least three rates.
    pub(super) fn variation(&self) -> Option<f64> {
        variation(&self.plateau())
    }

    /// Bytes of IP and TCP headers without options: IPv6 where a connection has such an address, else IPv4.
    pub(super) fn headers(&self) -> f64 {
        let six = self
            .test
            .connections
            .iter()
            .any(|one| one.local.contains(':') && !one.local.starts_with("::ffff:"));
        if six { ethernet::IPV6 } else { ethernet::IPV4 }
    }

    /// Both addresses are this machine's.
    pub(super) fn is_loopback(&self) -> bool {
        let connections = &self.test.connections;
        !connections.is_empty()
            && connections.iter().all(|one| {
                one.local == one.remote || one.remote.starts_with("127.") || one.remote == "::1"
            })
    }

    /// The peer's name for a command, where it is a plain word, and `-R` where that sent.
    pub(super) fn host(&self) -> String {
        let reverse = self.test.asked.reverse && self.test.side != Some(Side::Server);
        let way = if reverse { " -R" } else { "" };
        let protocol = if self.is_sctp() { " --sctp" } else { "" };
        format!("{}{protocol}{way}", self.peer())
    }

    /// The peer's name, where it is a plain word; else `HOST`.
    pub(super) fn peer(&self) -> &str {
        let asked = self.test.asked.host.as_deref();
        let known = asked.or_else(|| self.test.connections.first().map(|one| one.remote.as_str()));
        known
            .filter(|name| {
                !name.is_empty()
                    && !name.starts_with('-')
                    && name
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || ".:-_%".contains(c))
            })
            .unwrap_or("HOST")
    }

    /// The test's length, s.
    pub(super) fn seconds(&self) -> Option<f64> {
        let row = self.total.or(self.received);
        row.map(Row::seconds)
            .or_else(|| Some(self.rates.last()?.end_s - self.rates.first()?.start_s))
    }

    /// A rate with as many digits as the tool printed: `4466 Mbit/s`, `1.54 Gbit/s`.
    pub(super) fn rate(&self, bps: f64) -> String {
        rate(bps, self.half)
    }

    /// Two rates, or one where they read the same: `4466 to 4473 Mbit/s`.
    pub(super) fn rates_between(&self, rates: &[f64]) -> String {
        let low = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let high = rates.iter().copied().fold(0.0, f64::max);
        let (low, high) = (in_unit(low, self.half), in_unit(high, self.half));
        if low == high {
            format!("{} {}", high.0, high.1)
        } else if low.1 == high.1 {
            format!("{} to {} {}", low.0, high.0, high.1)
        } else {
            format!("{} {} to {} {}", low.0, low.1, high.0, high.1)
        }
    }
}

/// A rate, to the digit where `half` is half of it.
pub(super) fn rate(bps: f64, half: f64) -> String {
    let (number, unit) = in_unit(bps, half);
    format!("{number} {unit}")
}

/// Its number and its unit.
fn in_unit(bps: f64, half: f64) -> (String, &'static str) {
    if half > 0.0 && half <= 0.6e6 && (1e9..1e11).contains(&bps) {
        return (format!("{:.0}", bps / 1e6), "Mbit/s");
    }
    BitRate(whole(bps)).in_unit()
}

/// Standard deviation over mean of at least three numbers.
pub(super) fn variation(rates: &[f64]) -> Option<f64> {
    let middle = mean(rates);
    if rates.len() < 3 || middle <= 0.0 {
        return None;
    }
    Some(deviation(rates) / middle)
}

fn streams(test: &TestOutput) -> Vec<u32> {
    let mut streams: Vec<u32> = test.connections.iter().map(|one| one.id).collect();
    streams.extend(test.rows.iter().filter_map(|row| match row.stream {
        Stream::One(id) => Some(id),
        Stream::Sum => None,
    }));
    streams.sort_unstable();
    streams.dedup();
    streams
}

fn intervals(test: &TestOutput) -> HashMap<Stream, Vec<&Row>> {
    let mut intervals: HashMap<Stream, Vec<&Row>> = HashMap::new();
    for row in test.rows.iter().filter(|row| row.span == Span::Interval) {
        intervals.entry(row.stream).or_default().push(row);
    }
    intervals
}

/// Sums where they are printed, else the only stream's rows, else rows of one interval added up.
fn rates(intervals: &HashMap<Stream, Vec<&Row>>, streams: &[u32]) -> Vec<Interval> {
    let of = |whose: Stream| {
        let rows = intervals.get(&whose).into_iter().flatten();
        rows.map(|row| Interval {
            start_s: row.start_s.value,
            end_s: row.end_s.value,
            bps: row.bps.value,
        })
    };
    if intervals.contains_key(&Stream::Sum) {
        return of(Stream::Sum).collect();
    }
    let Some((first, others)) = streams.split_first() else {
        return Vec::new();
    };
    let mut rates: Vec<Interval> = of(Stream::One(*first)).collect();
    for other in others {
        let mut theirs: Vec<Interval> = of(Stream::One(*other)).collect();
        theirs.sort_by(|a, b| a.end_s.total_cmp(&b.end_s));
        rates.retain_mut(|each| {
            let same = same_end(&theirs, each.end_s, |one| one.end_s);
            let found = theirs[same].first();
            found.map(|one| each.bps += one.bps).is_some()
        });
        if rates.is_empty() {
            break;
        }
    }
    rates
}

/// Which of `sorted`, in the order of their ends, end when an interval does, to half of iperf's coarsest digit.
pub(super) fn same_end<T>(sorted: &[T], end_s: f64, end_of: impl Fn(&T) -> f64) -> Range<usize> {
    let from = sorted.partition_point(|one| end_of(one) <= end_s - SAME_END);
    let length = sorted[from..].partition_point(|one| end_of(one) < end_s + SAME_END);
    from..from + length
}

fn total<'a>(test: &'a TestOutput, streams: &[u32], of: impl Fn(&Row) -> bool) -> Option<&'a Row> {
    let rows = || {
        test.rows
            .iter()
            .filter(|row| row.span == Span::Total && of(row))
    };
    let sum = rows().find(|row| row.stream == Stream::Sum);
    sum.or_else(|| rows().next().filter(|_| streams.len() < 2))
}

/// The number of intervals at the beginning that lie clearly below all that follow; never more than half.
fn ramp(rates: &[Interval]) -> usize {
    // Lowest, highest and sum of the rates from each place on.
    let mut behind = vec![(f64::INFINITY, 0.0_f64, 0.0_f64)];
    for each in rates.iter().rev() {
        let (low, high, sum) = behind[behind.len() - 1];
        behind.push((low.min(each.bps), high.max(each.bps), sum + each.bps));
    }
    let below = |at: usize| {
        let rest = rates.len() - at - 1;
        let (low, high, sum) = behind[rest];
        rest >= 2 && {
            let bound = (RAMP_BELOW * sum / rest as f64).min(low - 0.5 * (high - low));
            rates[at].bps < bound
        }
    };
    (0..rates.len() / 2).take_while(|at| below(*at)).count()
}

/// When other tests of a log ran, by the place of the test within whose log they ran and on its clock.
pub(super) type Guests = HashMap<usize, Vec<[f64; 2]>>;

/// The tests of a log that ran within another one's.
pub(super) fn guests(transcript: &Transcript) -> Guests {
    let mut guests = Guests::new();
    for part in &transcript.parts {
        if let Part::Test(test) = part
            && let Some(inside) = test.inside
        {
            let spans = guests.entry(inside.part).or_default();
            if spans.len() < MOST_GUESTS {
                let ends = test.rows.iter().map(|row| row.end_s.value);
                let to_s = inside.from_s + ends.fold(0.0, f64::max);
                spans.push([inside.from_s, to_s]);
            }
        }
    }
    guests
}
