//! iperf 2's `-y C`: `YYYYMMDDHHMMSS,lip,lport,rip,rport,id,start-end,bytes,bits/s[,jitter,lost,total,%,ooo]`.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use linerate_model::plan::Protocol;
use linerate_model::transcript::{
    Asked, Connection, Datagrams, Ending, Layout, Part, Printed, Row, Span, Stream, TestOutput,
};

use crate::Input;
use crate::iperf;
use crate::number::printed;

/// What is known of the last test of that layout, so that its rows are not searched for each of them.
#[derive(Default)]
pub(crate) struct Lines {
    /// The first row of each stream.
    first: HashMap<Stream, usize>,
    connections: HashSet<u32>,
}

impl Lines {
    /// Takes a line of that layout.
    pub(crate) fn take(&mut self, input: &Input<'_>, parts: &mut Vec<Part>) -> bool {
        let Some((row, connection)) = row(input) else {
            return false;
        };
        let goes_on = matches!(parts.last(), Some(Part::Test(test)) if test.layout == Layout::Csv && continues(test, &row));
        if !goes_on {
            let mut test = iperf::empty(input.number, Asked::default());
            test.layout = Layout::Csv;
            parts.push(Part::Test(Box::new(test)));
            *self = Self::default();
        }
        if let Some(Part::Test(test)) = parts.last_mut() {
            self.add(test, row, connection);
        }
        true
    }

    fn add(&mut self, test: &mut TestOutput, mut row: Row, connection: Option<Connection>) {
        test.lines[1] = row.line;
        test.protocol = Some(if row.datagrams.is_some() {
            Protocol::Udp
        } else {
            test.protocol.unwrap_or(Protocol::Tcp)
        });
        test.connections
            .extend(connection.filter(|one| self.connections.insert(one.id)));
        // A stream's only row from 0 is all of its test; a second one makes the first an interval.
        let from_0 = row.start_s.value == 0.0;
        match self.first.entry(row.stream) {
            Entry::Occupied(first) => {
                test.rows[*first.get()].span = Span::Interval;
                if from_0 {
                    row.span = Span::Total;
                }
            }
            Entry::Vacant(place) => {
                place.insert(test.rows.len());
                if from_0 {
                    row.span = Span::Total;
                }
            }
        }
        test.rows.push(row);
        let total = latest(test).any(|row| row.span == Span::Total);
        test.ending = if total { Ending::Whole } else { Ending::Cut };
    }
}

/// The stamp's time orders tests, but has a granularity of a second: rows tell by their intervals.
fn continues(test: &TestOutput, row: &Row) -> bool {
    let clock = latest(test).map(|row| row.end_s.value).fold(0.0, f64::max);
    let done = latest(test).any(|other| other.span == Span::Total && other.stream == row.stream);
    row.start_s.value > 0.0 || row.end_s.value + 0.06 >= clock && !(done && row.datagrams.is_none())
}

/// The rows of the last interval and more: iperf has at most 128 streams and their sum. A file of a hundred thousand
/// rows is not searched for each of them.
fn latest(test: &TestOutput) -> impl Iterator<Item = &Row> {
    test.rows.iter().rev().take(512)
}

fn row(input: &Input<'_>) -> Option<(Row, Option<Connection>)> {
    let cells: Vec<&str> = input.text.split(',').collect();
    if !(9..=14).contains(&cells.len())
        || cells[0].len() < 14
        || !cells[0].starts_with(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    let (start, end) = cells[6].split_once('-')?;
    let (start_s, end_s) = (printed(start)?, printed(end)?);
    let id: i64 = cells[5].parse().ok()?;
    let bytes: f64 = cells[7].parse::<u64>().ok()? as f64;
    let bps = printed(cells[8]).filter(|rate| rate.value >= 0.0)?;
    if end_s.value < start_s.value {
        return None;
    }
    let id = u32::try_from(id).ok();
    let connection = id.and_then(|id| {
        Some(Connection {
            id,
            local: cells[1].into(),
            local_port: cells[2].parse().ok()?,
            remote: cells[3].into(),
            remote_port: cells[4].parse().ok()?,
        })
    });
    let cell = |at: usize| cells.get(at).and_then(|text| text.parse::<u64>().ok());
    let datagrams = cell(11).map(|total| Datagrams {
        total,
        lost: cell(10).filter(|lost| *lost <= total),
        lost_percent: cells.get(12).and_then(|text| printed(text)),
        jitter_ms: cells.get(9).and_then(|text| printed(text)),
    });
    let row = Row {
        line: input.number,
        stream: id.map_or(Stream::Sum, Stream::One),
        span: Span::Interval,
        start_s,
        end_s,
        bytes: Printed::exact(bytes),
        bps,
        end: None,
        retransmits: None,
        window_bytes: None,
        receive_window_bytes: None,
        rtt_us: None,
        datagrams,
        way: None,
        bounces: None,
    };
    Some((row, connection))
}
