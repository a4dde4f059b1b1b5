use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use linerate_archive::{Archive, Keep, Retention};
use linerate_model::watch::UnixMillis;
use tempfile::tempdir;

use crate::runs::{START, failed, invalid, measured, not_run, run};

const DAY: u64 = 24 * 60 * 60 * 1000;

fn objects(folder: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(folder.join("raw")).unwrap();
    let files = folders.flat_map(|one| fs::read_dir(one.unwrap().path()).unwrap());
    let mut files: Vec<_> = files.map(|one| one.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn old_records_go_and_those_that_explain_something_stay() {
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap();
    let append = |at, hash, outcome, record: &str| {
        let run = run(at, hash, outcome);
        archive.append(&run, Some(record.as_bytes())).unwrap();
        run.id
    };
    let old = append(START, 1, measured(1e9), "old");
    let pinned = append(START, 2, measured(1e9), "pinned");
    let alert = append(START, 3, measured(1e9), "alert");
    let broken = append(START, 4, failed(), "failed");
    let shared = append(START, 5, measured(1e9), "shared");
    let doubtful = append(START, 6, invalid(), "invalid");
    let young = append(START + DAY, 7, measured(1e9), "shared");
    assert!(archive.keep(pinned, Keep::Pinned).unwrap());
    assert!(archive.keep(pinned, Keep::Regime).unwrap());
    assert!(archive.keep(alert, Keep::Alert).unwrap());
    assert!(archive.let_go(pinned, Keep::Pinned).unwrap());
    let rules = Retention::default();
    let now = UnixMillis(START + rules.raw_millis + 1);
    let retained = archive.retain(now, &rules).unwrap();
    assert_eq!(retained.records, 3);
    assert!(retained.record_bytes > 0);
    for gone in [old, shared, doubtful] {
        let stored = archive.run(gone).unwrap().unwrap();
        assert_eq!((stored.record, stored.record_gone), (None, Some(now)));
        assert_eq!(archive.record(gone).unwrap(), None);
    }
    for (stays, record) in [
        (pinned, "pinned"),
        (alert, "alert"),
        (broken, "failed"),
        (young, "shared"),
    ] {
        assert_eq!(archive.record(stays).unwrap().unwrap(), record.as_bytes());
    }
    let found = archive.verify().unwrap();
    assert!(found.is_sound(), "{found:?}");
    assert_eq!(
        (found.tests, found.records, found.gone, found.orphans),
        (7, 4, 3, 0)
    );
    // A test that is told of again does not bring back what was removed.
    append(START, 1, measured(1e9), "old");
    assert_eq!(archive.record(old).unwrap(), None);
}

#[test]
fn files_that_no_test_names_are_swept_after_a_day() {
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap();
    let named = run(START, 1, measured(1e9));
    archive.append(&named, Some(b"named")).unwrap();
    let [file] = objects(folder.path()).try_into().unwrap();
    let part = file.with_extension("12.0.part");
    let orphan = file
        .parent()
        .unwrap()
        .join(format!("{}.json.zst", "ab".repeat(32)));
    let young = file
        .parent()
        .unwrap()
        .join(format!("{}.json.zst", "cd".repeat(32)));
    for path in [&part, &orphan, &young] {
        fs::write(path, "left").unwrap();
    }
    let long_ago = SystemTime::now() - Duration::from_secs(3 * 24 * 3600);
    for path in [&file, &part, &orphan] {
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
    }
    let found = archive.verify().unwrap();
    assert_eq!(
        (found.orphans, found.orphan_bytes, found.is_sound()),
        (3, 12, true)
    );
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let now = UnixMillis(u64::try_from(now.as_millis()).unwrap());
    // The record of the run is young enough for these rules.
    let rules = Retention {
        raw_millis: u64::MAX,
        ..Retention::default()
    };
    let retained = archive.retain(now, &rules).unwrap();
    assert_eq!((retained.orphans, retained.orphan_bytes), (2, 8));
    assert_eq!(objects(folder.path()).len(), 2);
    assert!(young.exists() && file.exists());
    assert_eq!(archive.record(named.id).unwrap().unwrap(), b"named");
}

#[test]
fn an_old_day_becomes_a_row_and_a_late_result_changes_it() {
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap();
    let midnight = START / DAY * DAY;
    for at in 1..=8_u32 {
        let run = run(midnight + u64::from(at), 1, measured(f64::from(at) * 1e9));
        archive.append(&run, None).unwrap();
    }
    archive
        .append(&run(midnight + 20, 1, failed()), None)
        .unwrap();
    archive
        .append(&run(midnight + 21, 1, not_run()), None)
        .unwrap();
    archive
        .append(&run(midnight + DAY, 1, not_run()), None)
        .unwrap();
    archive
        .append(&run(midnight + 2 * DAY, 1, measured(1e9)), None)
        .unwrap();
    let rules = Retention::default();
    let now = UnixMillis(midnight + 2 * DAY + rules.day_millis);
    assert_eq!(archive.retain(now, &rules).unwrap().days, 2);
    assert_eq!(archive.retain(now, &rules).unwrap().days, 0);
    let days = || {
        archive
            .days(&"uplink".into(), &"a".into(), &"b".into())
            .unwrap()
    };
    let [first, second] = days().try_into().unwrap();
    assert_eq!(first.begins, UnixMillis(midnight));
    assert_eq!(
        (first.measured, first.failed, first.not_run, first.invalid),
        (8, 1, 1, 0)
    );
    assert_eq!(first.goodput_bps, Some([1e9, 2e9, 4e9, 6e9, 8e9]));
    // A day on which nothing was measured has no rate.
    assert_eq!((second.not_run, second.goodput_bps), (1, None));
    archive
        .append(&run(midnight + DAY, 1, measured(3e9)), None)
        .unwrap();
    assert_eq!(archive.retain(now, &rules).unwrap().days, 1);
    assert_eq!(days()[1].goodput_bps, Some([3e9; 5]));
}

#[test]
fn the_forecast_follows_from_the_growth() {
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap();
    let rules = Retention::default();
    let nothing = archive.forecast(UnixMillis(START), &rules).unwrap();
    assert_eq!((nothing.over_days, nothing.full_at), (None, None));
    let mut bytes = 0;
    for hour in 0..48 {
        let run = run(START + hour * 3_600_000, 1, measured(1e9));
        let record = format!("{hour}").repeat(500);
        archive.append(&run, Some(record.as_bytes())).unwrap();
    }
    for file in objects(folder.path()) {
        bytes += fs::metadata(file).unwrap().len();
    }
    let forecast = archive
        .forecast(UnixMillis(START + 2 * DAY), &rules)
        .unwrap();
    assert_eq!((forecast.tests, forecast.record_bytes), (48, bytes));
    assert_eq!(
        (forecast.over_days, forecast.tests_a_day),
        (Some(2.0), 24.0)
    );
    assert!((forecast.records_a_day - bytes as f64 / 2.0).abs() < 1e-6);
}
