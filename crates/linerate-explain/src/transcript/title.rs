//! What a part is, in words, and whether its figures agree with each other.

use std::collections::HashMap;

use linerate_model::finding::{Finding, Severity};
use linerate_model::plan::Protocol;
use linerate_model::transcript::{
    End, Ending, Histogram, Layout, Line, RateTable, Row, Side, Span, Stream, Way,
};
use linerate_model::units::{Bytes, Nanos, whole};

use super::digest::{Digest, same_end};
use crate::draft::Draft;

/// Two instants are one when they differ by no more than iperf's own rounding, s.
const SAME_INSTANT: f64 = 0.06;
/// What a program writes at a time where that is not printed, bytes.
pub(super) const USUAL_BLOCK: f64 = 131_072.0;
/// The part of an interval that may be left out at the end.
const LEFT_OUT: f64 = 0.1;

/// The test, in a line or two.
pub(super) fn test(digest: &Digest<'_>) -> String {
    let test = digest.test;
    let layout = match test.layout {
        Layout::Text => "text",
        Layout::Csv => "CSV",
        Layout::Json => "JSON",
        Layout::JsonStream => "JSON stream",
    };
    let version = test
        .version
        .as_ref()
        .map_or_else(String::new, |version| format!(" {version}"));
    let lines = match test.lines {
        [first, last] if first == last => format!("line {first}"),
        [first, last] => format!("lines {first} to {last}"),
    };
    let head = format!("{}{version} {layout}, {lines}", test.tool.name());
    if test.rows.is_empty() && test.connections.is_empty() && !test.errors.is_empty() {
        let errors = test.errors.iter().map(error);
        let errors = errors.collect::<Vec<_>>().join("; ");
        return format!("{head}: no test ran, only errors were printed; {errors}");
    }
    let mut words = vec![format!(
        "{head}: {}",
        match test.protocol {
            Some(Protocol::Udp) => "UDP",
            Some(Protocol::Sctp) => "SCTP",
            _ if digest.may_be_sctp() => "TCP, or SCTP: no retransmits are printed",
            _ => "TCP",
        },
    )];
    let sends = digest.printed_by_the_sender();
    let one = test.connections.first();
    words.extend(one.map(|one| {
        if sends {
            format!("{} to {}", one.local, one.remote)
        } else {
            format!("{} to {}", one.remote, one.local)
        }
    }));
    words.extend(test.way.map(|way| {
        let way = match way {
            Way::Out => "what was sent",
            Way::In => "what was received",
        };
        format!("{way} of a bidirectional test")
    }));
    let streams = digest.streams.len();
    let intervals = digest.rates.len();
    words.push(format!(
        "{} stream{}, {} interval{}",
        streams,
        if streams == 1 { "" } else { "s" },
        intervals,
        if intervals == 1 { "" } else { "s" }
    ));
    words.extend(digest.seconds().map(|seconds| format!("{seconds:.1} s")));
    words.extend(view(digest).map(str::to_owned));
    words.extend(window(digest));
    words.extend(test.histograms.iter().filter_map(histogram));
    words.extend(ending(digest));
    if let Some(inside) = test.inside {
        words.push(format!(
            "in the log of another test, started about {} s after it",
            inside.from_s
        ));
    }
    words.extend(test.errors.iter().map(error));
    words.join("; ")
}

/// `write times: 95 % within 200 µs, 99.7 % within 2.90 ms`.
fn histogram(histogram: &Histogram) -> Option<String> {
    let what = match histogram.what.as_str() {
        "T" => "one-way delays",
        "W" => "write times",
        "F" => "times of bursts",
        "BB" => "response times",
        _ => return None,
    };
    let within = |(percent, ms): &(f64, f64)| {
        let time = Nanos::from_secs_f64(ms / 1e3);
        (*percent > 50.0).then(|| format!("{percent} % within {time}"))
    };
    let high: Vec<String> = histogram.percentiles.iter().filter_map(within).collect();
    (!high.is_empty()).then(|| format!("{what}: {}", high.join(", ")))
}

fn error(line: &Line) -> String {
    format!("line {} says '{}'", line.number, line.text)
}

/// Whose view the intervals are, where it is not the usual one.
fn view(digest: &Digest<'_>) -> Option<&'static str> {
    let test = digest.test;
    match (test.side, digest.printed_by_the_sender()) {
        (Some(Side::Server), false) => Some("the server's output: the receiver's view"),
        (Some(Side::Server), true) => Some("the server's output, reversed (-R): the sender's view"),
        (_, false) if test.way.is_none() => {
            Some("reversed (-R), the server sent: the intervals are the receiver's view")
        }
        (_, true) if digest.received.is_none() && !digest.is_udp() => {
            Some("the sender's view only")
        }
        _ => None,
    }
}

fn window(digest: &Digest<'_>) -> Option<String> {
    let window = digest.test.window?;
    let size = |bytes: f64| match whole(bytes) {
        exact if window.bytes.half == 0.0 => format!("{exact} bytes"),
        rounded => Bytes(rounded).to_string(),
    };
    let given = size(window.bytes.value);
    Some(match window.asked_bytes {
        _ if window.is_default => format!("window {given} at the start (default)"),
        Some(asked) if (asked.value - window.bytes.value).abs() > asked.half => {
            format!("window {given}, requested {}", size(asked.value))
        }
        _ => format!("window {given}"),
    })
}

fn ending(digest: &Digest<'_>) -> Option<String> {
    match digest.test.ending {
        Ending::Whole => None,
        Ending::Cut => Some("cut short: the total is missing".to_owned()),
        Ending::Stopped => Some(match digest.seconds() {
            Some(seconds) => format!("interrupted at {seconds:.1} s, the total is valid"),
            None => "stopped by hand".to_owned(),
        }),
    }
}

/// The table, in a line.
pub(super) fn table(table: &RateTable) -> String {
    format!(
        "a table of transfers, lines {} to {}: {} rows, {} columns",
        table.lines[0],
        table.lines[1],
        table.rows.len(),
        table.columns.len()
    )
}

/// Amount, time and rate of each row from each other, within the printed digits; sums of streams.
pub(super) fn recomputed(digest: &Digest<'_>) -> (Option<String>, Vec<Finding>) {
    let rows: Vec<&Row> = digest
        .test
        .rows
        .iter()
        .filter(|row| row.seconds() > 0.0)
        .collect();
    if rows.is_empty() {
        return (None, Vec::new());
    }
    let totals = totals(digest);
    let wrong: Vec<&&Row> = rows.iter().filter(|row| !agrees(row)).collect();
    let Some(first) = wrong.first() else {
        let text = format!(
            "{} row{}: amount, time and rate agree within the printed digits{}",
            rows.len(),
            if rows.len() == 1 { "" } else { "s" },
            sums(digest)
        );
        return (Some(text), totals);
    };
    let bps = first.bytes.value * 8.0 / first.seconds();
    let text = format!(
        "{} of {} rows: amount, time and rate disagree",
        wrong.len(),
        rows.len()
    );
    let place = format!("line {}", first.line);
    let fault = Draft::new(
        "figures-disagree",
        Severity::Fault,
        format!(
            "Line {}: {} in {:.2} s is {}, but {} is printed; in {} of {} rows the figures disagree beyond rounding",
            first.line,
            Bytes(whole(first.bytes.value)),
            first.seconds(),
            digest.rate(bps),
            digest.rate(first.bps.value),
            wrong.len(),
            rows.len()
        ),
    )
    .figure("rate from amount and time, bit/s", bps, &place)
    .figure("rate printed, bit/s", first.bps.value, &place)
    .finding;
    (Some(text), std::iter::once(fault).chain(totals).collect())
}

/// Totals that cannot be true: a sum that is not its streams', more received than sent, more lost than sent.
fn totals(digest: &Digest<'_>) -> Vec<Finding> {
    let fault = |row: &Row, words: String| {
        Finding::new(
            "figures-disagree",
            Severity::Fault,
            format!("Line {}: {words}", row.line),
        )
    };
    let rows = || {
        digest
            .test
            .rows
            .iter()
            .filter(|row| row.span == Span::Total)
    };
    let mut faults = Vec::new();
    let mut streams: HashMap<Option<End>, Sum> = HashMap::new();
    for row in rows().filter(|row| row.stream != Stream::Sum) {
        streams.entry(row.end).or_default().add(row);
    }
    for sum in rows().filter(|row| row.stream == Stream::Sum) {
        let Some(parts) = streams.get(&sum.end) else {
            continue;
        };
        if parts.rows < digest.streams.len().max(2) {
            continue;
        }
        if !sum.bytes.meets(parts.low, parts.high) {
            faults.push(fault(
                sum,
                format!(
                    "the sum is {}, but its {} streams add up to {}",
                    Bytes(whole(sum.bytes.value)),
                    parts.rows,
                    Bytes(whole(parts.bytes))
                ),
            ));
        }
        if let (Some(told), Some(again)) = (sum.retransmits, parts.retransmits)
            && told != again
        {
            faults.push(fault(
                sum,
                format!("{told} retransmits in the sum, {again} in its streams"),
            ));
        }
    }
    faults.extend(against_intervals(digest).map(|(total, words)| fault(total, words)));
    // iperf3's sender does not count the block that it writes when the test ends, nor one at the end of `-O`.
    let block = digest.test.asked.length_bytes.unwrap_or(USUAL_BLOCK);
    let uncounted = 2.0 * block * digest.streams.len() as f64;
    if let (Some(sent), Some(received)) = (digest.total, digest.received)
        && received.bytes.low() > sent.bytes.high() + uncounted
    {
        faults.push(fault(
            received,
            format!(
                "{} received of {} sent",
                Bytes(whole(received.bytes.value)),
                Bytes(whole(sent.bytes.value))
            ),
        ));
    }
    let lost = |row: &&Row| {
        let counts = row.datagrams.as_ref();
        counts
            .and_then(|counts| counts.lost_percent)
            .is_some_and(|percent| percent.low() > 100.0)
    };
    faults.extend(
        rows()
            .filter(lost)
            .map(|row| fault(row, "more datagrams lost than were sent".to_owned())),
    );
    faults
}

/// Rows of several streams, or of several intervals, added up.
struct Sum {
    rows: usize,
    /// Bytes, and what they can be within the printed digits.
    bytes: f64,
    low: f64,
    high: f64,
    /// `None` where a row has none.
    retransmits: Option<u64>,
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            rows: 0,
            bytes: 0.0,
            low: 0.0,
            high: 0.0,
            retransmits: Some(0),
        }
    }
}

impl Sum {
    fn add(&mut self, row: &Row) {
        self.rows += 1;
        self.bytes += row.bytes.value;
        self.low += row.bytes.low();
        self.high += row.bytes.high();
        let both = self.retransmits.zip(row.retransmits);
        self.retransmits = both.map(|(sum, more)| sum.saturating_add(more));
    }
}

/// The intervals of a stream, one way.
#[derive(Default)]
struct Intervals {
    sum: Sum,
    /// They begin at 0, and each where the one before ended.
    complete: bool,
    end_s: f64,
    most_bytes: f64,
    longest_s: f64,
}

impl Intervals {
    fn add(&mut self, row: &Row) {
        let begins = (row.start_s.value - self.end_s).abs() < SAME_INSTANT;
        self.complete = begins && (self.complete || self.sum.rows == 0);
        self.end_s = row.end_s.value;
        self.most_bytes = self.most_bytes.max(row.bytes.high());
        self.longest_s = self.longest_s.max(row.seconds());
        self.sum.add(row);
    }
}

/// The first total that says what its own intervals do not, beyond their digits: an iperf leaves out a last interval of
/// less than a tenth of the others, and writes that end after the last one count in the total alone.
fn against_intervals<'a>(digest: &Digest<'a>) -> Option<(&'a Row, String)> {
    let test = digest.test;
    if test.layout != Layout::Text {
        return None;
    }
    let here = if digest.printed_by_the_sender() {
        End::Sender
    } else {
        End::Receiver
    };
    let mut intervals: HashMap<(Stream, Option<Way>), Intervals> = HashMap::new();
    for row in test.rows.iter().filter(|row| row.span == Span::Interval) {
        let of = intervals.entry((row.stream, row.way)).or_default();
        of.add(row);
    }
    let totals = || test.rows.iter().filter(|row| row.span == Span::Total);
    // A sum stands for its streams, which were held against it.
    let summed = totals().any(|row| row.stream == Stream::Sum);
    let held = totals().filter(|row| !summed || row.stream == Stream::Sum);
    held.filter(|row| row.end.is_none_or(|end| end == here))
        .find_map(|total| {
            let of = intervals.get(&(total.stream, total.way))?;
            let beyond = (total.end_s.value - of.end_s).abs();
            if !of.complete || of.longest_s <= 0.0 || beyond > of.longest_s {
                return None;
            }
            let left_out = of.most_bytes * (LEFT_OUT + beyond / of.longest_s);
            let (low, high) = (of.sum.low - left_out, of.sum.high + left_out);
            (!total.bytes.meets(low, high)).then(|| {
                let words = format!(
                    "the total is {}, but its {} intervals add up to {}",
                    Bytes(whole(total.bytes.value)),
                    of.sum.rows,
                    Bytes(whole(of.sum.bytes))
                );
                (total, words)
            })
        })
}

/// Whether the three figures of a row can be those of one transfer.
pub(super) fn agrees(row: &Row) -> bool {
    let slack = row.start_s.half + row.end_s.half;
    let (short, long) = ((row.seconds() - slack).max(1e-9), row.seconds() + slack);
    row.bps.meets(
        row.bytes.low().max(0.0) * 8.0 / long,
        row.bytes.high() * 8.0 / short,
    )
}

/// Whether the streams of each interval add up to its sum.
fn sums(digest: &Digest<'_>) -> String {
    let intervals = || {
        digest
            .test
            .rows
            .iter()
            .filter(|row| row.span == Span::Interval)
    };
    let mut parts: Vec<&Row> = intervals()
        .filter(|row| row.stream != Stream::Sum)
        .collect();
    parts.sort_by(|a, b| a.end_s.value.total_cmp(&b.end_s.value));
    // The sums of all rates before each, at the least and at the most.
    let mut before = vec![(0.0, 0.0)];
    for row in &parts {
        let (low, high) = before[before.len() - 1];
        before.push((low + row.bps.low(), high + row.bps.high()));
    }
    let (mut right, mut wrong) = (0, 0);
    for sum in intervals().filter(|row| row.stream == Stream::Sum) {
        let same = same_end(&parts, sum.end_s.value, |row| row.end_s.value);
        if same.len() < digest.streams.len().max(2) {
            continue;
        }
        let ((low, high), (to_low, to_high)) = (before[same.start], before[same.end]);
        if sum.bps.meets(to_low - low, to_high - high) {
            right += 1;
        } else {
            wrong += 1;
        }
    }
    match (right, wrong) {
        (0, 0) => String::new(),
        (_, 0) => "; the streams add up to their sums".to_owned(),
        _ => format!("; in {wrong} intervals the streams do not add up to their sum"),
    }
}
