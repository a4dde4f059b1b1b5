//! How fast results come in, for people to read: `cargo test -p linerate-archive rate -- --ignored --nocapture`.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use linerate_archive::{Archive, RunFilter};
use linerate_model::watch::UnixMillis;
use tempfile::tempdir;

use crate::runs::{START, bytes, measured, run};

/// 82 KB that compress to 22 KB, as the record of a test of 10 s does.
fn record(number: u64) -> Vec<u8> {
    let mut record = bytes(number, 21_500);
    record.resize(82_000, b' ');
    record
}

#[test]
#[ignore = "a measurement, not a test"]
fn ingest() {
    let mut error = std::io::stderr();
    for threads in [1, 4, 16] {
        let folder = tempdir().unwrap();
        let archive = Archive::open(folder.path()).unwrap();
        let (next, count) = (AtomicU64::new(0), 2000);
        let records: Vec<_> = (0..64).map(record).collect();
        let began = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return;
                        }
                        let mut run = run(START + number * 1000, 1, measured(1e9));
                        run.from = format!("host{}", number % 71).into();
                        let mut json = records[usize::try_from(number % 64).unwrap()].clone();
                        json.extend(number.to_le_bytes());
                        archive.append(&run, Some(&json)).unwrap();
                    }
                });
            }
        });
        let rate = count as f64 / began.elapsed().as_secs_f64();
        writeln!(
            error,
            "{threads} threads: {rate:.0} results a second, records of 82 KB"
        )
        .unwrap();
    }
}

#[test]
#[ignore = "a measurement, not a test"]
fn a_year_of_a_pair_and_a_grid_of_5040_pairs() {
    let mut error = std::io::stderr();
    let folder = tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap();
    let (pairs, each) = (5040_u64, 40_u64);
    let next = AtomicU64::new(0);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    // One pair has a year of four tests a day.
                    if number >= pairs * each + 1460 {
                        return;
                    }
                    let pair = if number < pairs * each {
                        number % pairs
                    } else {
                        0
                    };
                    let mut run = run(START + number * 100, 1, measured(1e9));
                    (run.from, run.to) = (
                        format!("host{}", pair / 71).into(),
                        format!("host{}", 100 + pair % 71).into(),
                    );
                    archive.append(&run, None).unwrap();
                }
            });
        }
    });
    let rows = pairs * each + 1460;
    let rate = rows as f64 / began.elapsed().as_secs_f64();
    let size = archive.forecast(UnixMillis(START), &linerate_archive::Retention::default());
    let size = size.unwrap().database_bytes / rows;
    writeln!(
        error,
        "{rows} rows without records: {rate:.0} a second, {size} bytes a row"
    )
    .unwrap();
    let mut timed = |what: &str, work: &dyn Fn() -> usize| {
        let began = Instant::now();
        let found = work();
        let ms = began.elapsed().as_secs_f64() * 1e3;
        writeln!(error, "{what}: {found} in {ms:.1} ms").unwrap();
    };
    timed("all pairs", &|| archive.pairs().unwrap().len());
    let pair = RunFilter {
        task: Some("uplink".into()),
        from: Some("host0".into()),
        to: Some("host100".into()),
        ..RunFilter::default()
    };
    timed("a year of a pair", &|| archive.runs(&pair).unwrap().len());
    let from = RunFilter {
        from: Some("host3".into()),
        limit: 50,
        ..RunFilter::default()
    };
    timed("the newest from a host", &|| {
        archive.runs(&from).unwrap().len()
    });
    let newest = RunFilter {
        limit: 50,
        ..RunFilter::default()
    };
    timed("the newest", &|| archive.runs(&newest).unwrap().len());
}
