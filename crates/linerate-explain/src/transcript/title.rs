//! What a part is, in words, and whether its figures agree with each other.

use linerate_model::finding::{Finding, Severity};
use linerate_model::transcript::{
    End, Ending, Layout, Line, RateTable, Row, Side, Span, Stream, Way,
};
use linerate_model::units::{Bytes, whole};

use super::digest::Digest;
use super::{figure, finding};

/// Two instants are one when they differ by no more than iperf's own rounding, s.
const SAME_INSTANT: f64 = 0.06;
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
        if digest.is_udp() { "UDP" } else { "TCP" },
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
        format!("{way} of a test both ways at once")
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
    words.extend(ending(digest));
    if let Some(inside) = test.inside {
        words.push(format!(
            "in the log of another test, which had run for about {} s when this one came in",
            inside.from_s
        ));
    }
    words.extend(test.errors.iter().map(error));
    words.join("; ")
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
            format!("window {given} where {} was asked for", size(asked.value))
        }
        _ => format!("window {given}"),
    })
}

fn ending(digest: &Digest<'_>) -> Option<String> {
    match digest.test.ending {
        Ending::Whole => None,
        Ending::Cut => Some("cut short: the total is missing".to_owned()),
        Ending::Stopped => Some(match digest.seconds() {
            Some(seconds) => format!("stopped by hand at {seconds:.1} s, the total stands"),
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
    let fault = finding(
        "figures-disagree",
        Severity::Fault,
        format!(
            "Line {}: {} in {:.2} s are {}, but {} is printed; {} of {} rows disagree beyond their digits",
            first.line,
            Bytes(whole(first.bytes.value)),
            first.seconds(),
            digest.rate(bps),
            digest.rate(first.bps.value),
            wrong.len(),
            rows.len()
        ),
    );
    let fault = Finding {
        figures: vec![
            figure(
                "rate from amount and time, bit/s",
                bps,
                format!("line {}", first.line),
            ),
            figure(
                "rate printed, bit/s",
                first.bps.value,
                format!("line {}", first.line),
            ),
        ],
        ..fault
    };
    (Some(text), std::iter::once(fault).chain(totals).collect())
}

/// Totals that cannot be true: a sum that is not its streams', more received than sent, more lost than sent.
fn totals(digest: &Digest<'_>) -> Vec<Finding> {
    let fault = |row: &Row, words: String| {
        finding(
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
    for sum in rows().filter(|row| row.stream == Stream::Sum) {
        let parts: Vec<&Row> = rows()
            .filter(|row| row.stream != Stream::Sum && row.end == sum.end)
            .collect();
        if parts.len() < digest.streams.len().max(2) {
            continue;
        }
        let low: f64 = parts.iter().map(|row| row.bytes.low()).sum();
        let high: f64 = parts.iter().map(|row| row.bytes.high()).sum();
        if !sum.bytes.meets(low, high) {
            let all: f64 = parts.iter().map(|row| row.bytes.value).sum();
            faults.push(fault(
                sum,
                format!(
                    "the sum is {}, and its {} streams are {} together",
                    Bytes(whole(sum.bytes.value)),
                    parts.len(),
                    Bytes(whole(all))
                ),
            ));
        }
        let again: Option<u64> = parts.iter().map(|row| row.retransmits).sum();
        if let (Some(told), Some(again)) = (sum.retransmits, again)
            && told != again
        {
            faults.push(fault(
                sum,
                format!("{told} repeats in the sum, {again} in its streams"),
            ));
        }
    }
    // A sum stands for its streams, which were held against it.
    let summed = rows().any(|row| row.stream == Stream::Sum);
    let found = rows()
        .filter(|row| !summed || row.stream == Stream::Sum)
        .find_map(|total| Some(fault(total, against_intervals(digest, total)?)));
    faults.extend(found);
    if let (Some(sent), Some(received)) = (digest.total, digest.received)
        && received.bytes.low() > sent.bytes.high()
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

/// What a total says that its own intervals do not, beyond their digits: an iperf leaves out a last interval of less
/// than a tenth of the others, and writes that end after the last one count in the total alone.
fn against_intervals(digest: &Digest<'_>, total: &Row) -> Option<String> {
    let here = if digest.printed_by_the_sender() {
        End::Sender
    } else {
        End::Receiver
    };
    let mine = total.end.is_none_or(|end| end == here);
    let intervals = || {
        let rows = digest.test.rows.iter();
        rows.filter(|row| {
            row.span == Span::Interval && row.stream == total.stream && row.way == total.way
        })
    };
    let (first, last) = (intervals().next()?, intervals().next_back()?);
    let complete = first.start_s.value < SAME_INSTANT
        && intervals()
            .zip(intervals().skip(1))
            .all(|(one, next)| (one.end_s.value - next.start_s.value).abs() < SAME_INSTANT);
    let most = intervals().map(|row| row.bytes.high()).fold(0.0, f64::max);
    let longest = intervals().map(Row::seconds).fold(0.0, f64::max);
    let beyond = (total.end_s.value - last.end_s.value).abs();
    if !mine
        || !complete
        || longest <= 0.0
        || beyond > longest
        || digest.test.layout != Layout::Text
    {
        return None;
    }
    let left_out = most * (LEFT_OUT + beyond / longest);
    let low: f64 = intervals().map(|row| row.bytes.low()).sum();
    let high: f64 = intervals().map(|row| row.bytes.high()).sum();
    (!total.bytes.meets(low - left_out, high + left_out)).then(|| {
        let all: f64 = intervals().map(|row| row.bytes.value).sum();
        format!(
            "the total is {}, and its {} intervals are {} together",
            Bytes(whole(total.bytes.value)),
            intervals().count(),
            Bytes(whole(all))
        )
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
    let (mut right, mut wrong) = (0, 0);
    for sum in intervals().filter(|row| row.stream == Stream::Sum) {
        let parts: Vec<&Row> = intervals()
            .filter(|row| {
                row.stream != Stream::Sum && (row.end_s.value - sum.end_s.value).abs() < 0.05
            })
            .collect();
        if parts.len() < digest.streams.len().max(2) {
            continue;
        }
        let low: f64 = parts.iter().map(|row| row.bps.low()).sum();
        let high: f64 = parts.iter().map(|row| row.bps.high()).sum();
        if sum.bps.meets(low, high) {
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
