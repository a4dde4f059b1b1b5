//! What the archive of a hub has that ran for a while.

use std::collections::BTreeSet;
use std::path::Path;

use linerate_archive::Archive;
use linerate_model::watch::{RunClass, RunId, UnixMillis, WatchFigures, WatchOutcome, WatchRun};

/// One test of a pair in this time, ms.
const PERIOD: u64 = 7_200_000;
/// So many threads append at once, of which the archive makes few transactions.
const THREADS: usize = 32;

/// Archives so many tests of each pair, the last of them some minutes ago.
pub(super) fn write(folder: &Path, pairs: &BTreeSet<[String; 2]>, each: u64, now: UnixMillis) {
    let archive = Archive::open(folder).unwrap();
    let pairs: Vec<&[String; 2]> = pairs.iter().collect();
    std::thread::scope(|scope| {
        for some in pairs.chunks(pairs.len().div_ceil(THREADS)) {
            let archive = &archive;
            scope.spawn(move || {
                for number in (1..=each).rev() {
                    for (place, pair) in (0..).zip(some) {
                        let due = UnixMillis(now.0 - number * PERIOD + place);
                        archive.append(&run(pair, due, number), None).unwrap();
                    }
                }
            });
        }
    });
}

fn run([from, to]: &[String; 2], due: UnixMillis, number: u64) -> WatchRun {
    // A percent around the level, as tests do.
    let around = (number * 7_919 % 201) as f64 / 100.0 - 1.0;
    let figures = WatchFigures {
        goodput_bps: 100e6 * (1.0 + around / 100.0),
        interval_bps: Some((98e6, 102e6)),
        whole_bps: Some(99e6),
        ramp: None,
        retransmitted: Some(0.0),
        lost: None,
        rtt: None,
        sender_cpu: Some(0.1),
        receiver_cpu: Some(0.1),
        findings: Vec::new(),
        with_traffic: false,
    };
    let hash = from.bytes().chain(to.bytes());
    let hash = hash.fold(0_u128, |hash, byte| {
        (hash * 257 + u128::from(byte)) % (1 << 100)
    });
    WatchRun {
        id: RunId::of(due, hash),
        task: "ring".into(),
        from: from.as_str().into(),
        to: to.as_str().into(),
        class: RunClass::Regular,
        due,
        deadline: due.plus_millis(PERIOD / 2),
        started: Some(due),
        ended: due.plus_millis(10_000),
        outcome: WatchOutcome::Measured(figures),
    }
}
