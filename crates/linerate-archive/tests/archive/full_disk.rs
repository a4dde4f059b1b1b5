//! A disk that is full: records that may go are removed, and counted; what was acknowledged stays.

use std::fs;
use std::path::Path;

use linerate_archive::{Archive, ArchiveError, RunFilter};
use linerate_testing::in_namespaces;

use crate::runs::{START, bytes, failed, measured, run};

const APART: [&str; 3] = ["--user", "--map-root-user", "--mount"];
const SMALL_DISK: &str = "mount -t tmpfs -o size=8m tmpfs /mnt";
const RECORD: usize = 50_000;

#[test]
fn records_go_first_when_the_disk_is_full() {
    let test = "full_disk::records_go_first_when_the_disk_is_full";
    in_namespaces(&APART, test, SMALL_DISK, || {
        let archive = Archive::open(Path::new("/mnt/archive")).unwrap();
        // Three times what the disk has.
        for number in 0..500 {
            let run = run(START + number, 1, measured(1e9));
            archive.append(&run, Some(&bytes(number, RECORD))).unwrap();
        }
        let found = archive.verify().unwrap();
        assert!(found.is_sound(), "{found:?}");
        assert_eq!(found.tests, 500);
        assert_eq!(found.records + found.removed_from_full_disk, 500);
        assert!(found.removed_from_full_disk > 250, "{found:?}");
        assert_eq!(found.gone, found.removed_from_full_disk);
        // The oldest went.
        let newest = archive.runs(&RunFilter::default()).unwrap();
        let there: Vec<bool> = newest.iter().map(|one| one.record.is_some()).collect();
        assert!(
            there.is_sorted_by(|newer, older| newer >= older),
            "{there:?}"
        );
        assert!(there[0]);
    });
}

#[test]
fn a_disk_that_stays_full_is_an_error_and_loses_nothing() {
    let test = "full_disk::a_disk_that_stays_full_is_an_error_and_loses_nothing";
    in_namespaces(&APART, test, SMALL_DISK, || {
        let ballast = Path::new("/mnt/ballast");
        fs::write(ballast, vec![0; 2 << 20]).unwrap();
        let archive = Archive::open(Path::new("/mnt/archive")).unwrap();
        // Records of failures are kept for ever.
        let mut acknowledged = Vec::new();
        let error = loop {
            let number = acknowledged.len() as u64;
            let run = run(START + number, 1, failed());
            match archive.append(&run, Some(&bytes(number, RECORD))) {
                Ok(_) => acknowledged.push(run),
                Err(error) => break error,
            }
            assert!(number < 1000, "the disk is never full");
        };
        assert!(matches!(error, ArchiveError::Full { .. }), "{error:?}");
        assert!(error.to_string().contains("Free some space"), "{error}");
        assert!(acknowledged.len() > 50);
        // Rows fit no longer either, at some time; that loses nothing as well.
        for number in 0..20_000 {
            let run = run(START + 10_000 + number, 1, failed());
            match archive.append(&run, None) {
                Ok(_) => acknowledged.push(run),
                Err(error) => {
                    assert!(matches!(error, ArchiveError::Full { .. }), "{error:?}");
                    break;
                }
            }
        }
        let all = |archive: &Archive| {
            let found = archive.verify().unwrap();
            assert!(found.is_sound(), "{found:?}");
            let mut runs: Vec<_> = archive
                .runs(&RunFilter::default())
                .unwrap()
                .into_iter()
                .map(|one| one.run)
                .collect();
            runs.reverse();
            runs
        };
        assert_eq!(all(&archive), acknowledged);
        drop(archive);
        // With some room it goes on, also after it was opened anew.
        fs::remove_file(ballast).unwrap();
        let archive = Archive::open(Path::new("/mnt/archive")).unwrap();
        let run = run(START + 100_000, 1, failed());
        archive.append(&run, Some(&bytes(7_777, RECORD))).unwrap();
        acknowledged.push(run);
        assert_eq!(all(&archive), acknowledged);
    });
}
