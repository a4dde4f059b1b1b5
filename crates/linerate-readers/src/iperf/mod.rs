//! The text of iperf 1, 2 and 3: which row belongs to which of the tests in a log.

mod header;
mod index;
mod row;
pub(crate) mod ways;

use std::collections::{HashMap, HashSet};

use linerate_model::plain_text::PlainText;
use linerate_model::plan::Protocol;
use linerate_model::transcript::{
    Asked, Connection, End, Ending, Inside, Layout, Part, Row, Side, Span, Stream, TestOutput,
    Tool, Way,
};

use crate::Input;
use crate::command::Typed;
use index::Index;
use row::{Behind, Columns};

/// Two instants are one when they differ by no more than iperf's own rounding, s.
const SAME_INSTANT: f64 = 0.06;

/// The tests of a log; those that may still get rows are open.
#[derive(Default)]
pub(crate) struct Tests {
    open: Vec<Open>,
    columns: Columns,
    typed: Option<(Option<bool>, Asked)>,
    version: Option<PlainText>,
    listening: bool,
    closed: Vec<usize>,
}

struct Open {
    part: usize,
    /// What its rows and connections say, stream by stream.
    index: Index,
    /// Streams below iperf 2's `Server Report:` until its row comes.
    report: Option<Stream>,
    stopped: bool,
}

impl Tests {
    /// A prompt ends what was open; a test's command line begins another.
    pub(crate) fn typed(&mut self, input: &Input<'_>, typed: Typed, parts: &mut [Part]) {
        if input.stopped
            && let Some(open) = self.open.last_mut()
        {
            open.stopped = true;
        }
        self.close(parts);
        self.listening = false;
        self.columns = Columns::default();
        self.typed = match typed {
            Typed::Test(newer, asked) => Some((newer, *asked)),
            Typed::Other => None,
        };
    }

    /// A line that holds nothing but `^C`.
    pub(crate) fn stopped(&mut self, input: &Input<'_>) {
        if input.stopped
            && let Some(open) = self.open.first_mut()
        {
            open.stopped = true;
        }
    }

    /// Takes a line that is iperf's.
    pub(crate) fn take(&mut self, input: &Input<'_>, parts: &mut Vec<Part>) -> bool {
        match with_points(input.text) {
            Some(text) => self.take_line(
                &Input {
                    text: &text,
                    ..*input
                },
                parts,
            ),
            None => self.take_line(input, parts),
        }
    }

    fn take_line(&mut self, input: &Input<'_>, parts: &mut Vec<Part>) -> bool {
        if let Some(columns) = row::heading(input.text) {
            self.columns = columns;
            return true;
        }
        if row::is_both_ways(input.text) {
            return true;
        }
        let Some((stream, way, rest)) = row::bracket(input.text) else {
            return self.header(input, parts);
        };
        if input.stopped {
            self.stopped(input);
        }
        if let Stream::One(id) = stream
            && let Some(connection) = header::connection(id, rest)
        {
            let marks = header::Marks::of(rest);
            let newer = rest.contains(" connected to ");
            marks.put_into(self.connect(input, connection, newer, parts));
            return true;
        }
        match row::behind(stream, rest, input.number, self.columns) {
            Behind::Row(mut row) => {
                row.way = way;
                self.place(*row, parts);
                true
            }
            Behind::OutOfOrder(count) => {
                self.note(stream, input, parts, |test| {
                    test.out_of_order = Some(test.out_of_order.unwrap_or(0).saturating_add(count));
                });
                true
            }
            Behind::Histogram(histogram) => {
                self.note(stream, input, parts, |test| {
                    test.histograms.extend(histogram);
                });
                true
            }
            Behind::Text(text) => self.remark(stream, text, input, parts),
        }
    }

    /// How many tests may still get rows.
    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }

    /// All that is left open ends.
    pub(crate) fn finish(&mut self, parts: &mut Vec<Part>) {
        self.close(parts);
        let closed: HashSet<usize> = self.closed.drain(..).collect();
        // Where each part stands once tests that ran both ways are two.
        let mut places = Vec::with_capacity(parts.len());
        let mut all = Vec::with_capacity(parts.len());
        for (place, mut part) in std::mem::take(parts).into_iter().enumerate() {
            places.push(all.len());
            let other = match &mut part {
                Part::Test(test) if closed.contains(&place) => {
                    ways::of_iperf2(test);
                    finished(test);
                    ways::apart(test)
                }
                _ => None,
            };
            all.push(part);
            all.extend(other.map(|other| Part::Test(Box::new(other))));
        }
        for part in &mut all {
            if let Part::Test(test) = part
                && let Some(inside) = &mut test.inside
            {
                inside.part = places[inside.part];
            }
        }
        *parts = all;
    }

    fn close(&mut self, parts: &mut [Part]) {
        for open in self.open.drain(..) {
            if let Some(Part::Test(test)) = parts.get_mut(open.part) {
                if open.stopped {
                    test.ending = Ending::Stopped;
                }
                self.closed.push(open.part);
            }
        }
    }

    fn header(&mut self, input: &Input<'_>, parts: &mut Vec<Part>) -> bool {
        let Some(said) = header::line(input.text) else {
            return false;
        };
        match said {
            header::Said::Version(text) => {
                self.version = Some(text.into());
                return true;
            }
            header::Said::Listening => {
                self.close(parts);
                self.listening = true;
                return true;
            }
            header::Said::Nothing => return true,
            header::Said::Begins { .. } if self.has_rows(parts) => self.close(parts),
            _ => {}
        }
        let listening = self.listening;
        let test = self.current(input, parts);
        match said {
            header::Said::Begins { newer, udp, host } => {
                test.tool = if newer { Tool::Iperf3 } else { Tool::Iperf2 };
                test.protocol = test
                    .protocol
                    .or(udp.map(|udp| if udp { Protocol::Udp } else { Protocol::Tcp }));
                test.asked.host = test.asked.host.take().or(host.map(Into::into));
                test.side = Some(if listening {
                    Side::Server
                } else {
                    Side::Client
                });
            }
            header::Said::Protocol(protocol) => test.protocol = Some(protocol),
            header::Said::Window(window) => test.window = Some(window),
            header::Said::Datagrams(bytes) => {
                test.datagram_bytes = Some(bytes);
                test.protocol = Some(Protocol::Udp);
            }
            header::Said::Segment(bytes) => test.mss_bytes = Some(bytes),
            header::Said::Reverse => test.asked.reverse = true,
            header::Said::Connects { least_ms, failed } => {
                test.connect_ms = Some(least_ms);
                if failed {
                    test.errors.push(input.quoted());
                }
            }
            header::Said::Error { newer } => {
                if newer {
                    test.tool = Tool::Iperf3;
                }
                test.errors.push(input.quoted());
            }
            header::Said::Version(_) | header::Said::Listening | header::Said::Nothing => {}
        }
        true
    }

    fn has_rows(&self, parts: &[Part]) -> bool {
        self.open.iter().any(|open| match parts.get(open.part) {
            Some(Part::Test(test)) => !test.rows.is_empty() || !test.connections.is_empty(),
            _ => false,
        })
    }

    /// The test that was opened last, or a new one.
    fn current<'a>(&mut self, input: &Input<'_>, parts: &'a mut Vec<Part>) -> &'a mut TestOutput {
        let last = self.open.last().map(|open| open.part);
        let part = last.unwrap_or_else(|| self.begin(input.number, parts));
        test_at(parts, part, input.number)
    }

    fn begin(&mut self, line: usize, parts: &mut Vec<Part>) -> usize {
        let (newer, asked) = self.typed.take().unwrap_or_default();
        let protocol = asked.protocol();
        let index = Index::of(asked.interval_s.is_some());
        let mut test = empty(line, asked);
        test.tool = if newer == Some(true) {
            Tool::Iperf3
        } else {
            Tool::Iperf2
        };
        test.protocol = protocol;
        test.version.clone_from(&self.version);
        test.side = self.listening.then_some(Side::Server);
        parts.push(Part::Test(Box::new(test)));
        self.open.push(Open {
            part: parts.len() - 1,
            index,
            report: None,
            stopped: false,
        });
        parts.len() - 1
    }

    /// A connection after rows is another test; where the one before goes on, it stands inside it.
    fn connect<'a>(
        &mut self,
        input: &Input<'_>,
        connection: Connection,
        newer: bool,
        parts: &'a mut Vec<Part>,
    ) -> &'a mut TestOutput {
        let last = self.open.last().map(|open| open.part);
        let mut inside = None;
        let fresh = self.open.last().is_some_and(|open| {
            let part = open.part;
            let test = test_at(parts, part, input.number);
            if test.rows.is_empty() {
                return false;
            }
            if !open.index.is_done(test) {
                let from_s = open.index.latest_s();
                inside = Some(Inside { part, from_s });
            }
            true
        }) || last.is_none();
        if fresh && inside.is_none() {
            self.close(parts);
        }
        let part = match last {
            Some(part) if !fresh => part,
            _ => self.begin(input.number, parts),
        };
        let listening = self.listening;
        let test = test_at(parts, part, input.number);
        test.inside = test.inside.or(inside);
        if newer {
            test.tool = Tool::Iperf3;
        }
        // iperf's and iperf3's own ports: the end that uses them listens.
        let own = |port| (5001..=5003).contains(&port) || port == 5201;
        test.side = match (own(connection.local_port), own(connection.remote_port)) {
            (true, false) => Some(Side::Server),
            (false, true) => Some(Side::Client),
            _ if listening => Some(Side::Server),
            _ => test.side,
        };
        if let Some(open) = self.open.iter_mut().find(|open| open.part == part) {
            open.index.connection(connection.id);
        }
        test.connections.push(connection);
        test
    }

    /// Gives a row to the test whose rows it goes on with.
    fn place(&mut self, mut row: Row, parts: &mut Vec<Part>) {
        let fits = |open: &&mut Open| matches!(parts.get(open.part), Some(Part::Test(test)) if open.index.goes_on(test, &row));
        let found = self.open.iter_mut().find(fits);
        let mut reported = false;
        let part = if let Some(open) = found {
            if open.report == Some(row.stream) {
                open.report = None;
                reported = true;
            }
            Some(open.part)
        } else {
            self.open.last().map(|open| open.part)
        };
        let part = part.unwrap_or_else(|| self.begin(row.line, parts));
        let test = test_at(parts, part, row.line);
        if reported {
            row.end = Some(End::Receiver);
            row.span = Span::Total;
        } else if row.span != Span::Omitted {
            row.span = self
                .open
                .iter()
                .find(|open| open.part == part)
                .map_or(row.span, |open| open.index.span(&row));
        }
        if row.end.is_some() && !reported || row.window_bytes.is_some() && row.rtt_us.is_none() {
            test.tool = Tool::Iperf3;
        }
        if row.datagrams.is_some() {
            test.protocol = Some(Protocol::Udp);
        }
        if let Some(open) = self.open.iter_mut().find(|open| open.part == part) {
            open.index.row(&row);
        }
        test.rows.push(row);
    }

    fn note(
        &mut self,
        stream: Stream,
        input: &Input<'_>,
        parts: &mut Vec<Part>,
        tell: impl FnOnce(&mut TestOutput),
    ) {
        let has = |open: &&mut Open| open.index.has_stream(stream);
        let part = self.open.iter_mut().find(has).map(|open| open.part);
        let test = match part {
            Some(part) => test_at(parts, part, input.number),
            None => self.current(input, parts),
        };
        tell(test);
    }

    /// `[ 3] Sent 5351 datagrams` and its like.
    fn remark(
        &mut self,
        stream: Stream,
        text: &str,
        input: &Input<'_>,
        parts: &mut Vec<Part>,
    ) -> bool {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["Sent", count, "datagrams", ..] => {
                let Ok(count) = count.parse::<u64>() else {
                    return false;
                };
                self.note(stream, input, parts, |test| {
                    test.datagrams_sent =
                        Some(test.datagrams_sent.unwrap_or(0).saturating_add(count));
                    test.protocol = Some(Protocol::Udp);
                });
            }
            ["Server", "Report:", ..] => {
                let of = |open: &&mut Open| open.index.has_stream(stream);
                if let Some(open) = self.open.iter_mut().find(of) {
                    open.report = Some(stream);
                }
            }
            ["MSS", "size", bytes, "bytes", ..] => {
                let bytes = bytes.parse::<f64>().ok();
                self.note(stream, input, parts, |test| {
                    test.mss_bytes = bytes.filter(|bytes| *bytes > 0.0);
                });
            }
            ["WARNING:", ..] => {
                let line = input.quoted();
                self.note(stream, input, parts, |test| test.errors.push(line));
            }
            _ => return false,
        }
        true
    }
}

/// A row or a window with decimal commas, as some languages print them, with points; `None` where there is no comma
/// between two digits.
fn with_points(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let decimal = |at: usize| {
        let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        bytes[at] == b',' && at > 0 && digit(at - 1) && digit(at + 1)
    };
    let ours = text.starts_with('[') || text.starts_with("TCP window size");
    // With a point beside it, a comma parts thousands.
    let points = bytes
        .windows(3)
        .any(|at| at[1] == b'.' && at[0].is_ascii_digit() && at[2].is_ascii_digit());
    let any = ours && !points && (0..bytes.len()).any(decimal);
    any.then(|| {
        text.char_indices()
            .map(|(at, letter)| if decimal(at) { '.' } else { letter })
            .collect()
    })
}

pub(crate) use header::protocol;

/// Whether a line is one of iperf's own, rows apart.
pub(crate) fn is_header(text: &str) -> bool {
    header::line(text).is_some()
}

/// The test at that place; parts are never taken away, so it is there.
fn test_at(parts: &mut Vec<Part>, part: usize, line: usize) -> &mut TestOutput {
    let part = match parts.get(part) {
        Some(Part::Test(_)) => part,
        _ => parts.len(),
    };
    if part == parts.len() {
        parts.push(Part::Test(Box::new(empty(line, Asked::default()))));
    }
    let Part::Test(test) = &mut parts[part] else {
        unreachable!("it was looked at above");
    };
    test.lines[1] = test.lines[1].max(line);
    test
}

pub(crate) fn empty(line: usize, asked: Asked) -> TestOutput {
    TestOutput {
        tool: Tool::Iperf2,
        version: None,
        layout: Layout::Text,
        lines: [line, line],
        asked,
        side: None,
        way: None,
        protocol: None,
        window: None,
        datagram_bytes: None,
        mss_bytes: None,
        path_mtu_bytes: None,
        congestion: None,
        cpu_percent: None,
        connections: Vec::new(),
        rows: Vec::new(),
        histograms: Vec::new(),
        is_bounceback: false,
        connect_ms: None,
        datagrams_sent: None,
        out_of_order: None,
        ending: Ending::Cut,
        inside: None,
        errors: Vec::new(),
    }
}

/// What can be told only at the end: single rows that are totals, and how the transcript ends.
fn finished(test: &mut TestOutput) {
    // Another stream's intervals show that this one has some too.
    let split = test.rows.iter().any(|row| row.start_s.value > SAME_INSTANT);
    let asked = test.asked.interval_s;
    let mut count: HashMap<(Stream, Option<Way>), usize> = HashMap::new();
    for row in test.rows.iter().filter(|_| !split) {
        *count.entry((row.stream, row.way)).or_default() += 1;
    }
    // At most a row of each stream begins at 0 where there are no other intervals.
    for row in test.rows.iter_mut().filter(|_| !split) {
        let an_interval = asked.is_some_and(|asked| (row.seconds() - asked).abs() < 0.1 * asked)
            && test
                .asked
                .time_s
                .is_none_or(|time| time > 1.5 * row.seconds());
        let only = count.get(&(row.stream, row.way)) == Some(&1);
        if only && row.span == Span::Interval && !an_interval {
            row.span = Span::Total;
        }
    }
    let total = test.rows.iter().any(|row| row.span == Span::Total);
    test.ending = match (total, test.ending) {
        (true, Ending::Stopped) => Ending::Stopped,
        (true, _) => Ending::Whole,
        (false, _) => Ending::Cut,
    };
    if test.protocol.is_none() && !test.rows.is_empty() {
        test.protocol = Some(Protocol::Tcp);
    }
}
