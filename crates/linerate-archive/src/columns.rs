//! The columns of a table of runs: one list for every form in which runs leave the archive.

use linerate_model::watch::{UnixMillis, WatchFigures, WatchOutcome};

use crate::row;
use crate::runs::Stored;

/// What the cells of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CellKind {
    Text,
    /// A moment, to the millisecond.
    Moment,
    /// A rate, a share or a load.
    Real,
    /// A whole number.
    Count,
    /// Yes or no.
    Flag,
    /// Several texts.
    Texts,
}

/// One cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    /// It is not known, or there is no such thing: a test that did not measure has no figure.
    Absent,
    Text(String),
    Moment(UnixMillis),
    Real(f64),
    Count(u64),
    Flag(bool),
    Texts(Vec<String>),
}

/// A column: its name, what its cells are, whether each run has one, and how it is taken from a run.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: CellKind,
    pub(crate) always: bool,
    pub(crate) of: fn(&Stored) -> Cell,
}

const fn always(name: &'static str, kind: CellKind, of: fn(&Stored) -> Cell) -> Column {
    Column {
        name,
        kind,
        always: true,
        of,
    }
}

const fn column(name: &'static str, kind: CellKind, of: fn(&Stored) -> Cell) -> Column {
    Column {
        name,
        kind,
        always: false,
        of,
    }
}

/// Every column, in order. Names are those of the API's JSON where that has the same; a rate's name ends in `_bps`, a
/// duration's in `_ns`.
pub(crate) static COLUMNS: [Column; 27] = {
    use CellKind::{Count, Flag, Moment, Real, Text, Texts};
    [
        always("id", Text, |one| text(&one.run.id)),
        always("task", Text, |one| text(&one.run.task)),
        always("from", Text, |one| text(&one.run.from)),
        always("to", Text, |one| text(&one.run.to)),
        always("class", Text, |one| text(row::class_word(one.run.class))),
        always("due", Moment, |one| Cell::Moment(one.run.due)),
        always("deadline", Moment, |one| Cell::Moment(one.run.deadline)),
        column("started", Moment, |one| {
            one.run.started.map_or(Cell::Absent, Cell::Moment)
        }),
        always("ended", Moment, |one| Cell::Moment(one.run.ended)),
        always("outcome", Text, |one| text(row::word(&one.run.outcome))),
        column("stage", Text, stage),
        column("reason", Text, reason),
        column("why", Text, why),
        column("goodput_bps", Real, |one| {
            real(one, |figures| Some(figures.goodput_bps))
        }),
        column("low_bps", Real, |one| {
            real(one, |figures| figures.interval_bps.map(|(low, _)| low))
        }),
        column("high_bps", Real, |one| {
            real(one, |figures| figures.interval_bps.map(|(_, high)| high))
        }),
        column("whole_bps", Real, |one| {
            real(one, |figures| figures.whole_bps)
        }),
        column("ramp_ns", Count, |one| {
            figure(one, |figures| Some(Cell::Count(figures.ramp?.0)))
        }),
        column("retransmitted", Real, |one| {
            real(one, |figures| figures.retransmitted)
        }),
        column("lost", Real, |one| real(one, |figures| figures.lost)),
        column("rtt_ns", Count, |one| {
            figure(one, |figures| Some(Cell::Count(figures.rtt?.0)))
        }),
        column("sender_cpu", Real, |one| {
            real(one, |figures| figures.sender_cpu)
        }),
        column("receiver_cpu", Real, |one| {
            real(one, |figures| figures.receiver_cpu)
        }),
        column("with_traffic", Flag, |one| {
            figure(one, |figures| Some(Cell::Flag(figures.with_traffic)))
        }),
        column("findings", Texts, |one| {
            figure(one, |figures| Some(Cell::Texts(figures.findings.clone())))
        }),
        column("computed_by", Count, |one| {
            figure(one, |_| Some(Cell::Count(one.computed_by.into())))
        }),
        column("record_sha256", Text, |one| {
            one.record.as_ref().map_or(Cell::Absent, text)
        }),
    ]
};

fn text(value: &(impl ToString + ?Sized)) -> Cell {
    Cell::Text(value.to_string())
}

fn stage(one: &Stored) -> Cell {
    match &one.run.outcome {
        WatchOutcome::Failed { stage, .. } => text(stage),
        _ => Cell::Absent,
    }
}

fn reason(one: &Stored) -> Cell {
    match &one.run.outcome {
        WatchOutcome::NotRun { reason, .. } => text(reason.word()),
        _ => Cell::Absent,
    }
}

fn why(one: &Stored) -> Cell {
    match &one.run.outcome {
        WatchOutcome::Measured(_) => Cell::Absent,
        WatchOutcome::Failed { why, .. }
        | WatchOutcome::NotRun { why, .. }
        | WatchOutcome::Invalid { why } => text(why),
    }
}

fn figure(one: &Stored, of: impl FnOnce(&WatchFigures) -> Option<Cell>) -> Cell {
    match &one.run.outcome {
        WatchOutcome::Measured(figures) => of(figures).unwrap_or(Cell::Absent),
        _ => Cell::Absent,
    }
}

fn real(one: &Stored, of: impl FnOnce(&WatchFigures) -> Option<f64>) -> Cell {
    figure(one, |figures| of(figures).map(Cell::Real))
}
