//! A row of figures, word by word.

use linerate_model::transcript::{Datagrams, End, Printed, Row, Span, Stream, Way};

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
    Text(&'a str),
}

/// `[  3]`, `[SUM]`, `[ *1]`, `[  5][TX-C]`: whose, which way, and what follows.
pub(crate) fn bracket(line: &str) -> Option<(Stream, Option<Way>, &str)> {
    let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
    let inside = inside.trim().trim_start_matches('*').trim();
    let stream = if inside.eq_ignore_ascii_case("sum") || inside.starts_with("SUM") {
        Stream::Sum
    } else {
        Stream::One(inside.parse().ok()?)
    };
    let mut rest = rest.trim_start();
    let mut way = None;
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
    (inside.trim() == "ID" && rest.trim_start().starts_with("Interval")).then(|| Columns {
        datagrams: rest.contains("Datagrams"),
    })
}

pub(crate) fn behind(stream: Stream, text: &str, line: usize, columns: Columns) -> Behind<'_> {
    row(stream, text, line, columns).unwrap_or(Behind::Text(text))
}

fn row(stream: Stream, text: &str, line: usize, columns: Columns) -> Option<Behind<'static>> {
    let (start_s, end_s, rest) = interval(text)?;
    let mut words = rest.split_whitespace();
    let number = words.next()?;
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
    if let Some(at) = rest.iter().position(|word| *word == "ms") {
        let jitter = at.checked_sub(1).and_then(|at| printed(rest[at]));
        row.datagrams = datagrams(&rest[at + 1..]).map(|counts| Datagrams {
            jitter_ms: jitter,
            ..counts
        });
        return;
    }
    // iperf 2.1: `Write/Err Rtry Cwnd/RTT(var) NetPwr`, as `80/0 2 1526K/12033(118) us 1234`.
    if let [_, again, window, "us", ..] = rest {
        row.retransmits = again.parse().ok();
        let (size, rtt) = window.split_once('/').unwrap_or((window, ""));
        row.window_bytes = size
            .strip_suffix('K')
            .and_then(printed)
            .map(|number| number.times(1024.0));
        row.rtt_us = rtt.split('(').next().and_then(printed);
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
