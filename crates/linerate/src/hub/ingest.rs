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
