//! A process that writes is killed at random moments: what it acknowledged is there, and no row is without its record.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use linerate_archive::{Archive, RunFilter};
use linerate_model::watch::WatchRun;
use tempfile::tempdir;

use crate::runs::{START, bytes, failed, measured, run};

/// Environment variables of the child: the folder, and the number of its first test.
const FOLDER: &str = "LINERATE_ARCHIVE_FOLDER";
const FIRST: &str = "LINERATE_ARCHIVE_FIRST";
const KILLS: u64 = 30;
/// Tests that a child has for itself; it is killed long before it is through.
const EACH: u64 = 100_000;

fn the_run(number: u64) -> WatchRun {
    let outcome = if number.is_multiple_of(5) {
        failed()
    } else {
        measured(1e9)
    };
    let mut run = run(START + number, 1, outcome);
    run.from = ["a", "b", "c"][usize::try_from(number % 3).unwrap()].into();
    run
}

/// Writes until it is killed, from several threads, and names each acknowledged test. Without the variables it is no
/// test at all.
#[test]
fn a_child_that_writes() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let archive = Archive::open(Path::new(&folder)).unwrap();
    let next = AtomicU64::new(first);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= first + EACH {
                        return;
                    }
                    archive
                        .append(&the_run(number), Some(&bytes(number, 4000)))
                        .unwrap();
                    writeln!(std::io::stdout(), "ack {number}").unwrap();
                }
            });
        }
    });
}

#[test]
fn what_was_acknowledged_survives_a_process_that_is_killed() {
    let folder = tempdir().unwrap();
    let mut acknowledged = HashSet::new();
    let mut orphans = 0;
    for kill in 0..KILLS {
        // An odd multiplier spreads the moments; the machine's own timing does the rest.
        let moment = kill.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        let of_this = write_and_kill(folder.path(), kill * EACH, moment);
        assert!(of_this.len() as u64 > moment, "the child ended by itself");
        acknowledged.extend(of_this);

        let archive = Archive::open_existing(folder.path()).unwrap();
        let found = archive.verify().unwrap();
        assert!(found.is_sound(), "after kill {kill}: {found:?}");
        orphans = found.orphans;
        let stored = archive.runs(&RunFilter::default()).unwrap();
        let there: HashSet<u64> = stored.iter().map(|one| one.run.due.0 - START).collect();
        assert_eq!(there.len(), stored.len(), "a test is there twice");
        let lost: Vec<_> = acknowledged.difference(&there).collect();
        assert!(lost.is_empty(), "after kill {kill}: {lost:?} are lost");
        for one in &stored {
            assert_eq!(one.run, the_run(one.run.due.0 - START));
        }
    }
    let mut error = std::io::stderr();
    let count = acknowledged.len();
    writeln!(
        error,
        "{KILLS} kills: {count} acknowledged, {orphans} files left over"
    )
    .unwrap();
}

/// The tests that a child acknowledged until it was killed, `moment` acknowledgements after its first.
fn write_and_kill(folder: &Path, first: u64, moment: u64) -> Vec<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "durable::a_child_that_writes", "--nocapture"])
        .env(FOLDER, folder)
        .env(FIRST, first.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = Vec::new();
    let mut line = String::new();
    while acknowledged.len() as u64 <= moment {
        line.clear();
        assert!(
            output.read_line(&mut line).unwrap() > 0,
            "the child ended by itself"
        );
        acknowledged.extend(number(&line));
    }
    child.kill().unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    child.wait().unwrap();
    // The last line may be cut off.
    let whole = rest.rfind('\n').map_or("", |end| &rest[..end]);
    acknowledged.extend(whole.lines().filter_map(number));
    acknowledged
}

fn number(line: &str) -> Option<u64> {
    line.strip_prefix("ack ")?.trim().parse().ok()
}
