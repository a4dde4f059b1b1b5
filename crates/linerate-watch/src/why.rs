//! Why a pair has no result: its rows and what comes next, put into spans.

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{Holding, NotRun, UnixMillis, WatchOutcome, WatchRun};

use crate::dispatch::Outlook;

/// Why a pair has no result, or that it has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Why {
    /// The latest test that measured; absent = none of the rows did.
    pub measured: Option<WatchRun>,
    /// What became of the tests after that one, the earliest first; those that ended alike in a row are one.
    pub since: Vec<Stretch>,
    /// What comes next; absent = the plan does not have the pair.
    pub next: Option<Outlook>,
}

/// Tests in a row that ended alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// How they ended.
    pub ending: StretchEnding,
    /// How many they are.
    pub tests: usize,
    /// When the first one was due.
    pub from: UnixMillis,
    /// When the last one ended.
    pub until: UnixMillis,
    /// The last one's reason, as a sentence.
    pub why: PlainText,
    /// Who held what they needed, all of them together; the longest first.
    pub held: Vec<Holding>,
}

/// How tests ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StretchEnding {
    /// They failed at this stage.
    Failed(PlainText),
    /// They did not begin.
    NotRun(NotRun),
    /// What they measured does not count.
    Invalid,
}

/// Why a pair has no result: `rows` are those of the pair in any order, `next` is [`crate::dispatch::Dispatcher::outlook`].
pub fn why(rows: &[WatchRun], next: Option<Outlook>) -> Why {
    let mut rows: Vec<&WatchRun> = rows.iter().collect();
    rows.sort_by_key(|row| (row.due, row.id));
    let measures = |row: &&&WatchRun| matches!(row.outcome, WatchOutcome::Measured(_));
    let measured = rows.iter().rfind(measures).map(|row| (*row).clone());
    let after = |row: &&WatchRun| {
        let last = measured.as_ref().map(|row| (row.due, row.id));
        last.is_none_or(|last| (row.due, row.id) > last)
    };
    let mut since: Vec<Stretch> = Vec::new();
    for row in rows.into_iter().filter(after) {
        let Some((ending, why, held)) = ending(row) else {
            continue;
        };
        match since.last_mut().filter(|last| last.ending == ending) {
            Some(last) => last.extend(row, why, held),
            None => since.push(Stretch {
                ending,
                tests: 1,
                from: row.due,
                until: row.ended,
                why,
                held: held.to_vec(),
            }),
        }
    }
    Why {
        measured,
        since,
        next,
    }
}

impl Stretch {
    fn extend(&mut self, row: &WatchRun, why: PlainText, held: &[Holding]) {
        self.tests += 1;
        self.until = self.until.max(row.ended);
        self.why = why;
        for more in held {
            let same =
                |known: &&mut Holding| (&known.resource, &known.by) == (&more.resource, &more.by);
            match self.held.iter_mut().find(same) {
                Some(known) => known.millis += more.millis,
                None => self.held.push(more.clone()),
            }
        }
        self.held.sort_by_key(|held| std::cmp::Reverse(held.millis));
    }
}

fn ending(row: &WatchRun) -> Option<(StretchEnding, PlainText, &[Holding])> {
    match &row.outcome {
        WatchOutcome::Measured(_) => None,
        WatchOutcome::Failed { stage, why } => {
            Some((StretchEnding::Failed(stage.clone()), why.clone(), &[]))
        }
        WatchOutcome::NotRun { reason, why, held } => {
            Some((StretchEnding::NotRun(*reason), why.clone(), held))
        }
        WatchOutcome::Invalid { why } => Some((StretchEnding::Invalid, why.clone(), &[])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::watch::{RunClass, RunId, WatchFigures};

    fn row(due: u64, outcome: WatchOutcome) -> WatchRun {
        WatchRun {
            id: RunId::of(UnixMillis(due), u128::from(due)),
            task: "t".into(),
            from: "a".into(),
            to: "b".into(),
            class: RunClass::Regular,
            due: UnixMillis(due),
            deadline: UnixMillis(due + 9),
            started: None,
            ended: UnixMillis(due + 5),
            outcome,
        }
    }

    fn missed(due: u64, by: &str, millis: u64) -> WatchRun {
        let outcome = WatchOutcome::NotRun {
            reason: NotRun::Missed,
            why: format!("by {by}").into(),
            held: vec![Holding {
                resource: "b".into(),
                by: by.into(),
                millis,
            }],
        };
        row(due, outcome)
    }

    #[test]
    fn tests_after_the_last_result_are_put_into_stretches() {
        let failed = WatchOutcome::Failed {
            stage: "connect".into(),
            why: "refused".into(),
        };
        let rows = [
            missed(50, "x", 4),
            row(10, failed.clone()),
            row(20, WatchOutcome::Measured(WatchFigures::default())),
            row(30, failed.clone()),
            missed(40, "y", 3),
            missed(60, "y", 3),
            row(70, failed),
        ];
        let why = super::why(&rows, None);
        assert_eq!(why.measured.map(|row| row.due), Some(UnixMillis(20)));
        let stretches: Vec<_> = why
            .since
            .iter()
            .map(|s| (s.tests, s.from.0, s.until.0))
            .collect();
        assert_eq!(stretches, [(1, 30, 35), (3, 40, 65), (1, 70, 75)]);
        let missed = &why.since[1];
        assert_eq!(missed.ending, StretchEnding::NotRun(NotRun::Missed));
        assert_eq!(missed.why, "by y");
        let held: Vec<_> = missed
            .held
            .iter()
            .map(|h| (h.by.as_str(), h.millis))
            .collect();
        assert_eq!(held, [("y", 6), ("x", 4)]);
    }

    #[test]
    fn a_pair_that_never_measured_says_everything() {
        let why = super::why(&[missed(40, "y", 3)], None);
        assert_eq!((why.measured, why.since.len()), (None, 1));
        assert!(super::why(&[], None).since.is_empty());
    }
}
