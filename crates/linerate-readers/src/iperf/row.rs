//! A row of figures, word by word.

use linerate_model::transcript::{
    Bounces, Datagrams, End, Histogram, Printed, Row, Span, Stream, Way,
};

use crate::number::{printed, rate, size, size_factor};

/// What the heading above a row says of its columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    /// A single whole number counts datagrams, not retransmits.
    pub(crate) datagrams: bool,
}

/// What stands behind `[ 3]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Behind<'a> {
    Row(Box<Row>),
    OutOfOrder(u64),
    /// A histogram; absent where it is that of an interval.
    Histogram(Option<Histogram>),
    Text(&'a str),
}

/// `[  3]`, `[SUM]`, `[ *1]`, `[  5][TX-C]`: whose, which way, and what follows.
pub(crate) fn bracket(line: &str) -> Option<(Stream, Option<Way>, &str)> {
    let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
    let starred = inside.trim_start().starts_with('*');
    let inside = inside.trim().trim_start_matches('*').trim();
    let stream = if inside.eq_ignore_ascii_case("sum") || inside.starts_with("SUM") {
        Stream::Sum
    } else {
        Stream::One(inside.parse().ok()?)
    };
    let mut rest = rest.trim_start();
    // What that means depends on the end that printed it: see `ways::of_iperf2`.
    let mut way = starred.then_some(Way::In);
    while let Some((role, behind)) = rest.strip_prefix('[').and_then(|text| text.split_once(']')) {
        if role.contains(' ') {
            break;
        }
        // `TX-C`, `RX-S`: the client or the server prints.
        way = match role.split('-').next() {
            Some("TX") => Some(Way::Out),
            Some("RX") => Some(Way::In),
            _ => way,
        };
        rest = behind.trim_start();
    }
    Some((stream, way, rest))
}

/// Whether the line is the heading of rows, and what it says.
pub(crate) fn heading(line: &str) -> Option<Columns> {
    let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
    let rest = rest
        .split_once(']')
        .filter(|(role, _)| role.starts_with('['))
        .map_or(rest, |(_, rest)| rest);
    let known = inside.trim() == "ID" || inside.trim().starts_with("SUM-cnt");
    (known && rest.trim_start().starts_with("Interval")).then(|| Columns {
        datagrams: rest.contains("Datagrams"),
    })
}

/// `[FD1] 0.00-1.00 sec …`: both directions of a full-duplex stream added up, each of which has its own row.
pub(crate) fn is_both_ways(line: &str) -> bool {
    line.starts_with("[FD") && line.contains(']')
}

pub(crate) fn behind(stream: Stream, text: &str, line: usize, columns: Columns) -> Behind<'_> {
    row(stream, text, line, columns).unwrap_or(Behind::Text(text))
}

fn row(stream: Stream, text: &str, line: usize, columns: Columns) -> Option<Behind<'static>> {
    let (start_s, end_s, rest) = interval(text)?;
    let mut words = rest.split_whitespace();
    let number = words.next()?;
    if let Some(what) = number.strip_suffix("-PDF:") {
        return Some(Behind::Histogram(histogram(what, words.next()?, rest)));
    }
    let unit = words.next()?;
    if unit == "datagrams" {
        return Some(Behind::OutOfOrder(number.parse().ok()?));
    }
    let bytes = size(number, unit)?;
    let bps = rate(words.next()?, words.next()?)?;
    let mut row = Row {
        line,
        stream,
        span: Span::Interval,
        start_s,
        end_s,
        bytes,
        bps,
        end: None,
        retransmits: None,
        window_bytes: None,
        receive_window_bytes: None,
        rtt_us: None,
        datagrams: None,
        way: None,
        bounces: None,
    };
    let mut rest: Vec<&str> = words.collect();
    rest.retain(|word| match *word {
        "sender" => {
            row.end = Some(End::Sender);
            false
        }
        "receiver" => {
            row.end = Some(End::Receiver);
            false
        }
        "(omitted)" => {
            row.span = Span::Omitted;
            false
        }
        _ => true,
    });
    columns_behind(&mut row, &rest, columns);
    Some(Behind::Row(Box::new(row)))
}

/// `0.0-10.0 sec`, `0.0- 5.0 sec`, `0.00-10.00  sec`.
fn interval(text: &str) -> Option<(Printed, Printed, &str)> {
    let (start, rest) = text.split_once('-')?;
    let rest = rest.trim_start();
    let (end, rest) = rest.split_once(char::is_whitespace)?;
    let rest = rest.trim_start().strip_prefix("sec")?;
    let (start, end) = (printed(start.trim())?, printed(end)?);
    (start.value >= 0.0 && end.value >= start.value && end.value < 1e9)
        .then_some((start, end, rest))
}

fn columns_behind(row: &mut Row, rest: &[&str], columns: Columns) {
    if let [first, "ms", ..] = rest {
        row.bounces = bounces(first);
    }
    // iperf 2: `Write/Err Rtry Cwnd/RTT(var) NetPwr`, as `80/0 2 1526K/12033(118) us 1234`; since 2.2
    // `InF(pkts)/Cwnd(pkts)/RTT(var)`, as `22K(16)/24K(17)/56167(15843) us`.
    if let Some(at) = rest.iter().position(|word| *word == "us")
        && at >= 2
        && let Some((windows, rtt)) = rest[at - 1].rsplit_once('/')
    {
        let number = |text: &str| text.split('(').next().and_then(printed);
        let window = windows
            .rsplit('/')
            .next()
            .and_then(|text| text.split_once('K'));
        row.retransmits = rest[at - 2].parse().ok();
        row.window_bytes = window
            .and_then(|(text, _)| number(text))
            .map(|one| one.times(1024.0));
        row.rtt_us = number(rtt);
        return;
    }
    if let Some(at) = rest.iter().position(|word| *word == "ms") {
        let jitter = at.checked_sub(1).and_then(|at| printed(rest[at]));
        row.datagrams = datagrams(&rest[at + 1..]).map(|counts| Datagrams {
            jitter_ms: jitter,
            ..counts
        });
        return;
    }
    let whole = rest.first().and_then(|word| word.parse::<u64>().ok());
    match (whole, rest.len()) {
        (Some(total), 1) if columns.datagrams => {
            row.datagrams = Some(Datagrams {
                total,
                lost: None,
                lost_percent: None,
                jitter_ms: None,
            });
        }
        (Some(again), _) => {
            row.retransmits = Some(again);
            if let [_, number, unit, ..] = rest
                && size_factor(unit).is_some()
            {
                row.window_bytes = size(number, unit);
            }
        }
        _ => {}
    }
}

/// `41=0.063/0.008/0.936/0.146`: count, mean, least, most, deviation.
fn bounces(text: &str) -> Option<Bounces> {
    let (count, times) = text.split_once('=')?;
    let mut times = times.split('/').map(|time| time.parse::<f64>().ok());
    Some(Bounces {
        count: count.parse().ok()?,
        mean_ms: times.next()??,
        least_ms: times.next()??,
        most_ms: times.next()??,
    })
}

/// `BB8(f)-PDF: bin(w=100us):cnt(41)=1:36,2:4 (5.00/95.00/99.7%=1/2/10,Outliers=1,obl/obu=0/0)`, of which the bins are
/// counted from 1.
fn histogram(what: &str, bins: &str, rest: &str) -> Option<Histogram> {
    let what = what
        .strip_suffix("(f)")?
        .trim_end_matches(|c: char| c.is_ascii_digit());
    let width = bins.strip_prefix("bin(w=")?.split(')').next()?;
    let (digits, unit_ms) = match width.strip_suffix("us") {
        Some(digits) => (digits, 1e-3),
        None => (width.strip_suffix("ms")?, 1.0),
    };
    let width_ms = digits.parse::<f64>().ok()? * unit_ms;
    let (percents, values) = rest.rsplit_once('(')?.1.split_once("%=")?;
    let values = values.split(',').next()?;
    let pairs = percents.split('/').zip(values.split('/'));
    let percentile = |(percent, bin): (&str, &str)| {
        let bin: f64 = bin.parse().ok()?;
        Some((percent.parse().ok()?, bin * width_ms))
    };
    Some(Histogram {
        what: what.into(),
        percentiles: pairs.map(percentile).collect::<Option<_>>()?,
    })
}

/// `25208/95844 (26%)`, `14/ 5351 (0.26%)`.
fn datagrams(words: &[&str]) -> Option<Datagrams> {
    let text = words.concat();
    let (counts, rest) = text.split_once('(').unwrap_or((&text, ""));
    let (lost, total) = counts.split_once('/')?;
    let (lost, total): (u64, u64) = (lost.parse().ok()?, total.parse().ok()?);
    Some(Datagrams {
        total,
        lost: Some(lost).filter(|lost| *lost <= total),
        lost_percent: rest.split_once('%').and_then(|(number, _)| printed(number)),
        jitter_ms: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str, datagrams: bool) -> Row {
        let (stream, _, rest) = bracket(line).unwrap();
        match behind(stream, rest, 1, Columns { datagrams }) {
            Behind::Row(row) => *row,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn rows_of_all_versions_are_read() {
        let old = parsed("[ 3] 5.0-10.0 sec 910 MBytes 1.53 Gbits/sec", false);
        assert_eq!((old.start_s.value, old.bps.value), (5.0, 1.53e9));
        let tcp = parsed(
            "[  5]   0.00-1.00   sec   114 MBytes   957 Mbits/sec   12   3.05 MBytes",
            false,
        );
        assert_eq!(tcp.retransmits, Some(12));
        assert_eq!(tcp.window_bytes, size("3.05", "MBytes"));
        let sum = parsed(
            "[SUM]  0.00-10.00 sec 7.43 GBytes 6380 Mbits/sec 0 sender",
            false,
        );
        assert_eq!((sum.stream, sum.end), (Stream::Sum, Some(End::Sender)));
        let udp = parsed(
            "[ 3] 0.0-59.8 sec 7.48 MBytes 1.05 Mbits/sec 0.023 ms 14/ 5351 (0.26%)",
            false,
        );
        assert_eq!(udp.datagrams.unwrap().lost, Some(14));
        let sent = parsed(
            "[ 4] 0.00-10.00 sec 8.52 GBytes 7.32 Gbits/sec 1116849",
            true,
        );
        assert_eq!(sent.datagrams.unwrap().total, 1_116_849);
        let new = parsed(
            "[  1] 0.0000-1.0000 sec  1.10 GBytes  9.42 Gbits/sec  9022/0          3     1526K/1234(18) us  9540",
            false,
        );
        assert_eq!(
            (new.retransmits, new.rtt_us.unwrap().value),
            (Some(3), 1234.0)
        );
        let newest = parsed(
            "[  1] 10.00-20.00 sec  5.88 MBytes  4.93 Mbits/sec  47/0        38      178K(126)/180K(127)/160367(26844) us  3",
            false,
        );
        assert_eq!(newest.window_bytes, size("180", "KBytes"));
        assert_eq!(
            (newest.retransmits, newest.rtt_us.unwrap().value),
            (Some(38), 160_367.0)
        );
        let timed = parsed(
            "[  1] 0.0000-1.0000 sec  1.06 GBytes  9.07 Gbits/sec  8649/0       6835      125K/49 us  23135547  0.113/0.004/33.719/0.520 ms (8649)",
            false,
        );
        assert_eq!(
            (timed.retransmits, timed.rtt_us.unwrap().value),
            (Some(6835), 49.0)
        );
        assert_eq!(
            parsed(
                "[  5][TX-C]   0.00-1.00   sec   114 MBytes   957 Mbits/sec  (omitted)",
                false
            )
            .span,
            Span::Omitted
        );
    }

    #[test]
    fn a_histogram_has_times_and_that_of_an_interval_is_left_out() {
        let of = |text: &str| match behind(Stream::One(1), text, 1, Columns::default()) {
            Behind::Histogram(histogram) => histogram,
            other => panic!("{text}: {other:?}"),
        };
        let text = "0.0000-4.0244 sec BB8(f)-PDF: bin(w=100us):cnt(41)=1:36,2:4,10:1 (5.00/95.00/99.7%=1/2/10,Outliers=1,obl/obu=0/0)";
        let whole = of(text).unwrap();
        assert_eq!(whole.what.as_str(), "BB");
        assert_eq!(whole.percentiles.len(), 3);
        assert!((whole.percentiles[2].1 - 1.0).abs() < 1e-9, "{whole:?}");
        let of_interval = text.replace("(f)", "");
        assert_eq!(of(&of_interval), None);
        assert_eq!(of("0.0-1.0 sec T8(f)-PDF: bin(w=x):"), None);
    }

    #[test]
    fn what_is_no_row_is_text() {
        for text in [
            "0.0-",
            "x-1 sec",
            "5.0-1.0 sec 1 MBytes 1 Mbits/sec",
            "Sent 12 datagrams",
            "",
        ] {
            assert_eq!(
                behind(Stream::One(3), text, 1, Columns::default()),
                Behind::Text(text)
            );
        }
    }
}
