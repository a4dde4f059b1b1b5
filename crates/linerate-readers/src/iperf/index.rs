//! What a test's rows say so far, stream by stream, so that a log of thousands of streams is read in the order of
//! its length.

use std::collections::{HashMap, HashSet};

use linerate_model::transcript::{End, Row, Span, Stream, TestOutput, Way};

use super::SAME_INSTANT;

/// The rows of a test, looked at once each.
#[derive(Default)]
pub(super) struct Index {
    /// Intervals were asked for, so a stream's only row need not be its total.
    has_intervals: bool,
    connections: HashSet<u32>,
    /// Connections whose streams are not done.
    pending: usize,
    ways: HashMap<(Stream, Option<Way>), OneWay>,
    streams: HashMap<Stream, Whole>,
    latest_s: f64,
}

/// Of one stream, one way.
#[derive(Default)]
struct OneWay {
    last_s: f64,
    latest_s: f64,
    /// It has a row that is not left out of the totals.
    counted: bool,
    totals: Vec<Option<End>>,
}

/// Of one stream.
#[derive(Default)]
struct Whole {
    rows: usize,
    total: bool,
    /// Its first row is an interval from 0 on.
    alone: bool,
}

impl Index {
    pub(super) fn of(has_intervals: bool) -> Self {
        Self {
            has_intervals,
            ..Self::default()
        }
    }

    pub(super) fn connection(&mut self, id: u32) {
        if self.connections.insert(id) && !self.has_total(Stream::One(id)) {
            self.pending += 1;
        }
    }

    /// Whether a stream has its total; without intervals its only row is that.
    fn has_total(&self, stream: Stream) -> bool {
        self.streams
            .get(&stream)
            .is_some_and(|one| one.total || (!self.has_intervals && one.alone && one.rows == 1))
    }

    pub(super) fn row(&mut self, row: &Row) {
        let end_s = row.end_s.value;
        self.latest_s = self.latest_s.max(end_s);
        let way = self.ways.entry((row.stream, row.way)).or_default();
        way.last_s = end_s;
        way.latest_s = way.latest_s.max(end_s);
        way.counted |= row.span != Span::Omitted;
        if row.span == Span::Total && !way.totals.contains(&row.end) {
            way.totals.push(row.end);
        }
        let before = self.has_total(row.stream);
        let stream = self.streams.entry(row.stream).or_default();
        if stream.rows == 0 {
            stream.alone = row.start_s.value < SAME_INSTANT && row.span == Span::Interval;
        }
        stream.rows += 1;
        stream.total |= row.span == Span::Total;
        let now = self.has_total(row.stream);
        if matches!(row.stream, Stream::One(id) if self.connections.contains(&id)) {
            self.pending += usize::from(before);
            self.pending -= usize::from(now);
        }
    }

    /// The end of the latest row, s.
    pub(super) fn latest_s(&self) -> f64 {
        self.latest_s
    }

    pub(super) fn has_stream(&self, stream: Stream) -> bool {
        match stream {
            Stream::Sum => true,
            Stream::One(id) => self.connections.contains(&id),
        }
    }

    /// Whether a row can be the next of a test: it begins where the stream's last one ended, or at 0 and is
    /// a first or a total row.
    pub(super) fn goes_on(&self, test: &TestOutput, row: &Row) -> bool {
        let known = self.has_stream(row.stream) || self.connections.is_empty();
        if !known || self.is_done(test) && row.end.is_none() && row.datagrams.is_none() {
            return false;
        }
        let before = self.ways.get(&(row.stream, row.way));
        if row.start_s.value < SAME_INSTANT {
            let clock = before.map_or(0.0, |before| before.latest_s);
            let again = row.datagrams.is_none()
                && before.is_some_and(|before| before.totals.contains(&row.end));
            return !again && row.end_s.value + SAME_INSTANT >= clock.min(self.latest_s - 0.5);
        }
        match before {
            Some(before) => (before.last_s - row.start_s.value).abs() < SAME_INSTANT,
            None => test.rows.is_empty(),
        }
    }

    /// Interval or total: a total begins at 0 and is not the stream's first row, or says whose it is.
    pub(super) fn span(&self, row: &Row) -> Span {
        let before = self.ways.get(&(row.stream, row.way));
        let later = before.is_some_and(|before| before.counted);
        if row.start_s.value < SAME_INSTANT && later || row.end.is_some() {
            Span::Total
        } else {
            Span::Interval
        }
    }

    /// Whether each stream has its total, and several streams their sum.
    pub(super) fn is_done(&self, test: &TestOutput) -> bool {
        // Asked of every row: an interval on the way answers at once.
        let on_the_way = |row: &Row| row.start_s.value > SAME_INSTANT;
        if test.rows.last().is_none_or(on_the_way) {
            return false;
        }
        self.pending == 0 && (test.connections.len() < 2 || self.has_total(Stream::Sum))
    }
}
