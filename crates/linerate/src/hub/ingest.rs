//! Rows on their way to the archive: in order for each pair, kept until it takes them.

use std::collections::BTreeMap;

use linerate_archive::{Archive, ArchiveError};
use linerate_model::alert::AlertFinding;
use linerate_model::plain_text::PlainText;
use linerate_model::watch::WatchRun;

/// So many threads append at once: the archive takes what waits into one transaction.
const THREADS: usize = 16;
/// Fewer rows are appended one after the other.
const FEW: usize = 4;

/// A test that has ended, and what came of it.
pub(super) struct Row {
    pub(super) run: WatchRun,
    /// The JSON of its record.
    pub(super) record: Option<Vec<u8>>,
    /// What limits it.
    pub(super) finding: Option<AlertFinding>,
}

/// Appends rows. Those that the archive did not take come back, in their order, with the first error.
///
/// A row that the archive can never take is dropped, and is part of the error.
pub(super) fn append(
    archive: &Archive,
    rows: Vec<Row>,
) -> (Vec<Row>, Vec<Row>, Option<ArchiveError>) {
    if rows.len() <= FEW {
        return one_after_the_other(archive, rows);
    }
    // Rows of one pair stay in order.
    let mut pairs: BTreeMap<[PlainText; 3], Vec<Row>> = BTreeMap::new();
    for row in rows {
        let run = &row.run;
        let pair = [run.task.clone(), run.from.clone(), run.to.clone()];
        pairs.entry(pair).or_default().push(row);
    }
    let mut shares: Vec<Vec<Row>> = Vec::new();
    shares.resize_with(THREADS.min(pairs.len()).max(1), Vec::new);
    for (at, rows) in pairs.into_values().enumerate() {
        let count = shares.len();
        shares[at % count].extend(rows);
    }
    let (mut kept, mut left, mut error) = (Vec::new(), Vec::new(), None);
    std::thread::scope(|scope| {
        let start = |rows| scope.spawn(move || one_after_the_other(archive, rows));
        let threads: Vec<_> = shares.into_iter().map(start).collect();
        for thread in threads {
            if let Ok((more, rest, why)) = thread.join() {
                kept.extend(more);
                left.extend(rest);
                error = error.take().or(why);
            }
        }
    });
    (kept, left, error)
}

fn one_after_the_other(
    archive: &Archive,
    rows: Vec<Row>,
) -> (Vec<Row>, Vec<Row>, Option<ArchiveError>) {
    let mut kept = Vec::new();
    let mut error = None;
    let mut rows = rows.into_iter();
    while let Some(row) = rows.next() {
        match archive.append(&row.run, row.record.as_deref()) {
            Ok(_) => kept.push(row),
            Err(why @ ArchiveError::Unfit { .. }) => error = Some(why),
            Err(why) => {
                let left = std::iter::once(row).chain(rows).collect();
                return (kept, left, Some(why));
            }
        }
    }
    (kept, Vec::new(), error)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Instant;

    use linerate_model::watch::{RunClass, RunId, UnixMillis, WatchOutcome};

    use super::*;

    /// A test that failed, with a record of 82 KB that compress to 22 KB, as one of 10 s does.
    fn row(number: u64) -> Row {
        let due = UnixMillis(1_764_000_000_000 + number);
        let mut state = number + 1;
        let mut record: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            state.to_be_bytes()[0]
        })
        .take(21_500)
        .collect();
        record.resize(82_000, b' ');
        Row {
            run: WatchRun {
                id: RunId::of(due, u128::from(number)),
                task: "mesh".into(),
                from: format!("host{}", number % 1_000).into(),
                to: "host".into(),
                class: RunClass::Regular,
                due,
                deadline: due.plus_millis(60_000),
                started: Some(due),
                ended: due.plus_millis(10_000),
                outcome: WatchOutcome::Failed {
                    stage: "connect".into(),
                    why: "it is made up".into(),
                },
            },
            record: Some(record),
            finding: None,
        }
    }

    #[test]
    fn all_rows_of_a_crowd_are_kept_and_none_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path()).unwrap();
        let rows: Vec<Row> = (0..50).map(row).collect();
        let (kept, left, error) = append(&archive, rows);
        assert_eq!((kept.len(), left.len()), (50, 0));
        assert!(error.is_none(), "{error:?}");
        let stored = archive
            .runs(&linerate_archive::RunFilter::default())
            .unwrap();
        assert_eq!(stored.len(), 50);
    }

    /// How fast the hub's own path to the archive is, for people to read:
    /// `cargo test -p linerate --profile fast --bins ingest -- --ignored --nocapture`.
    #[test]
    #[ignore = "a measurement, not a test"]
    fn results_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path()).unwrap();
        let count = 2_000_u64;
        let mut passed = 0.0;
        for hundred in 0..count / 100 {
            let rows: Vec<Row> = (hundred * 100..(hundred + 1) * 100).map(row).collect();
            let began = Instant::now();
            let (kept, ..) = append(&archive, rows);
            passed += began.elapsed().as_secs_f64();
            assert_eq!(kept.len(), 100);
        }
        let rate = count as f64 / passed;
        writeln!(std::io::stderr(), "{rate:.0} results a second").unwrap();
    }
}
