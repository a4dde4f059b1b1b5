//! A run as a row of the table `run`.

use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;
use linerate_model::watch::{
    Holding, NotRun, RunClass, RunId, UnixMillis, WatchFigures, WatchOutcome, WatchRun,
};
use rusqlite::types::{FromSql, Value};
use rusqlite::{Row, ToSql};

use crate::error::ArchiveError;
use crate::objects::RecordHash;
use crate::runs::Stored;

/// What is read of a run and its pair. [`stored`] takes the columns in this order.
pub(crate) const COLUMNS: &str = "run.id, task, sender, receiver, class, due, deadline, started, ended, outcome, stage, reason, why,
    held, goodput, low, high, whole, ramp, retransmitted, lost, rtt, sender_cpu, receiver_cpu, with_traffic, computed_by, record,
    record_gone,
    (SELECT json_group_array(id) FROM (SELECT id FROM finding WHERE finding.run = run.run ORDER BY place)) AS findings";

/// Writes a run of a pair. Parameters are those of [`values`]; the pair is `?1`, the id `?2`.
pub(crate) const UPSERT: &str = "INSERT INTO run (pair, id, class, due, deadline, started, ended, outcome, stage, reason, why, held,
        goodput, low, high, whole, ramp, retransmitted, lost, rtt, sender_cpu, receiver_cpu, with_traffic, computed_by, record,
        record_bytes)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26)
    ON CONFLICT (id) DO UPDATE SET class = excluded.class, due = excluded.due, deadline = excluded.deadline,
        started = excluded.started, ended = excluded.ended, outcome = excluded.outcome, stage = excluded.stage,
        reason = excluded.reason, why = excluded.why, held = excluded.held, goodput = excluded.goodput, low = excluded.low,
        high = excluded.high, whole = excluded.whole, ramp = excluded.ramp, retransmitted = excluded.retransmitted,
        lost = excluded.lost, rtt = excluded.rtt, sender_cpu = excluded.sender_cpu, receiver_cpu = excluded.receiver_cpu,
        with_traffic = excluded.with_traffic, computed_by = excluded.computed_by, record = excluded.record,
        record_bytes = excluded.record_bytes, record_gone = NULL
    RETURNING run";

/// The word for what became of a run.
pub(crate) const fn word(outcome: &WatchOutcome) -> &'static str {
    match outcome {
        WatchOutcome::Measured(_) => "measured",
        WatchOutcome::Failed { .. } => "failed",
        WatchOutcome::NotRun { .. } => "not_run",
        WatchOutcome::Invalid { .. } => "invalid",
    }
}

pub(crate) const fn class_word(class: RunClass) -> &'static str {
    match class {
        RunClass::OnDemand => "on-demand",
        RunClass::Confirm => "confirm",
        RunClass::Regular => "regular",
    }
}

/// Values of columns, in order.
#[derive(Default)]
pub(crate) struct Values(pub(crate) Vec<Value>);

impl Values {
    fn text(&mut self, text: Option<&str>) {
        let value = text.map_or(Value::Null, |text| Value::Text(text.to_owned()));
        self.0.push(value);
    }

    fn real(&mut self, value: Option<f64>) {
        self.0.push(value.map_or(Value::Null, Value::Real));
    }

    fn count(&mut self, id: RunId, value: Option<u64>) -> Result<(), ArchiveError> {
        let value = value.map(|value| {
            i64::try_from(value).map_err(|_| ArchiveError::Unfit {
                id,
                why: "a time or duration in it is above 2^63",
            })
        });
        let value = value.transpose()?;
        self.0.push(value.map_or(Value::Null, Value::Integer));
        Ok(())
    }

    pub(crate) fn parameters(&self) -> impl Iterator<Item = &dyn ToSql> {
        self.0.iter().map(|value| value as &dyn ToSql)
    }
}

/// The values of a run's own columns, from `id` to `with_traffic`.
pub(crate) fn values(run: &WatchRun) -> Result<Values, ArchiveError> {
    let mut values = Values::default();
    let id = run.id;
    values.text(Some(&id.to_string()));
    values.text(Some(class_word(run.class)));
    values.count(id, Some(run.due.0))?;
    values.count(id, Some(run.deadline.0))?;
    values.count(id, run.started.map(|at| at.0))?;
    values.count(id, Some(run.ended.0))?;
    values.text(Some(word(&run.outcome)));
    let (stage, reason, why, held) = reasons(&run.outcome);
    values.text(stage);
    values.text(reason);
    values.text(why);
    let held = held.map(serde_json::to_string).transpose();
    values.text(held.unwrap_or_default().as_deref());
    let nothing = WatchFigures::default();
    let (measured, figures) = match &run.outcome {
        WatchOutcome::Measured(figures) => (true, figures),
        _ => (false, &nothing),
    };
    let mut own = self::figures(id, figures)?;
    if !measured && let Some(goodput) = own.0.first_mut() {
        *goodput = Value::Null;
    }
    values.0.append(&mut own.0);
    Ok(values)
}

/// The values of the columns of figures, from `goodput` to `with_traffic`.
pub(crate) fn figures(id: RunId, figures: &WatchFigures) -> Result<Values, ArchiveError> {
    let mut values = Values::default();
    values.real(Some(figures.goodput_bps));
    values.real(figures.interval_bps.map(|(low, _)| low));
    values.real(figures.interval_bps.map(|(_, high)| high));
    values.real(figures.whole_bps);
    values.count(id, figures.ramp.map(|ramp| ramp.0))?;
    values.real(figures.retransmitted);
    values.real(figures.lost);
    values.count(id, figures.rtt.map(|rtt| rtt.0))?;
    values.real(figures.sender_cpu);
    values.real(figures.receiver_cpu);
    values.count(id, Some(u64::from(figures.with_traffic)))?;
    if values.0.iter().any(is_not_finite) {
        let why = "a figure of it is not a finite number";
        return Err(ArchiveError::Unfit { id, why });
    }
    Ok(values)
}

fn is_not_finite(value: &Value) -> bool {
    matches!(value, Value::Real(value) if !value.is_finite())
}

type Reasons<'a> = (
    Option<&'a str>,
    Option<&'a str>,
    Option<&'a str>,
    Option<&'a [Holding]>,
);

fn reasons(outcome: &WatchOutcome) -> Reasons<'_> {
    match outcome {
        WatchOutcome::Measured(_) => (None, None, None, None),
        WatchOutcome::Failed { stage, why } => (Some(stage), None, Some(why), None),
        WatchOutcome::NotRun { reason, why, held } => {
            let held = (!held.is_empty()).then_some(held.as_slice());
            (None, Some(reason.word()), Some(why), held)
        }
        WatchOutcome::Invalid { why } => (None, None, Some(why), None),
    }
}

/// The columns of a row, from left to right.
struct Columns<'r> {
    row: &'r Row<'r>,
    next: usize,
}

impl Columns<'_> {
    fn take<T: FromSql>(&mut self) -> Result<T, ArchiveError> {
        let value = self.row.get(self.next);
        self.next += 1;
        value.map_err(ArchiveError::database("read a test"))
    }

    fn text(&mut self) -> Result<PlainText, ArchiveError> {
        Ok(self.take::<String>()?.into())
    }

    fn some_text(&mut self) -> Result<PlainText, ArchiveError> {
        Ok(self.take::<Option<String>>()?.unwrap_or_default().into())
    }

    fn at(&mut self) -> Result<UnixMillis, ArchiveError> {
        self.take().map(UnixMillis)
    }
}

/// A run, from a row of [`COLUMNS`].
pub(crate) fn stored(row: &Row<'_>) -> Result<Stored, ArchiveError> {
    let mut columns = Columns { row, next: 0 };
    let id = columns.take::<String>()?;
    let damaged = |what: &str| ArchiveError::Damaged(format!("test {id} has {what}"));
    let run_id: RunId = id.parse().map_err(|_| damaged("no id"))?;
    let (task, from, to) = (columns.text()?, columns.text()?, columns.text()?);
    let class = class(&columns.take::<String>()?).ok_or_else(|| damaged("an unknown class"))?;
    let (due, deadline) = (columns.at()?, columns.at()?);
    let started = columns.take::<Option<u64>>()?.map(UnixMillis);
    let ended = columns.at()?;
    let word = columns.take::<String>()?;
    let stage = columns.some_text()?;
    let reason = columns.take::<Option<String>>()?;
    let why = columns.some_text()?;
    let held = columns.take::<Option<String>>()?;
    let mut figures = read_figures(&mut columns)?;
    let computed_by = columns.take()?;
    let record = columns.take::<Option<String>>()?;
    let record = record.map(|hash| hash.parse::<RecordHash>()).transpose()?;
    let record_gone = columns.take::<Option<u64>>()?.map(UnixMillis);
    figures.findings = serde_json::from_str(&columns.take::<String>()?)
        .map_err(|_| damaged("unreadable findings"))?;
    let outcome = match word.as_str() {
        "measured" => WatchOutcome::Measured(figures),
        "failed" => WatchOutcome::Failed { stage, why },
        "invalid" => WatchOutcome::Invalid { why },
        "not_run" => WatchOutcome::NotRun {
            reason: not_run(reason.as_deref()).ok_or_else(|| damaged("an unknown reason"))?,
            why,
            held: held
                .map_or(Ok(Vec::new()), |json| serde_json::from_str(&json))
                .map_err(|_| damaged("an unreadable list of what held it up"))?,
        },
        _ => return Err(damaged("an unknown outcome")),
    };
    Ok(Stored {
        run: WatchRun {
            id: run_id,
            task,
            from,
            to,
            class,
            due,
            deadline,
            started,
            ended,
            outcome,
        },
        record,
        record_gone,
        computed_by,
    })
}

fn read_figures(columns: &mut Columns<'_>) -> Result<WatchFigures, ArchiveError> {
    let goodput: Option<f64> = columns.take()?;
    let (low, high): (Option<f64>, Option<f64>) = (columns.take()?, columns.take()?);
    Ok(WatchFigures {
        goodput_bps: goodput.unwrap_or_default(),
        interval_bps: low.zip(high),
        whole_bps: columns.take()?,
        ramp: columns.take::<Option<u64>>()?.map(Nanos),
        retransmitted: columns.take()?,
        lost: columns.take()?,
        rtt: columns.take::<Option<u64>>()?.map(Nanos),
        sender_cpu: columns.take()?,
        receiver_cpu: columns.take()?,
        with_traffic: columns.take()?,
        findings: Vec::new(),
    })
}

fn class(word: &str) -> Option<RunClass> {
    let all = [RunClass::OnDemand, RunClass::Confirm, RunClass::Regular];
    all.into_iter().find(|class| class_word(*class) == word)
}

fn not_run(word: Option<&str>) -> Option<NotRun> {
    let word = word?;
    NotRun::ALL.into_iter().find(|reason| reason.word() == word)
}
