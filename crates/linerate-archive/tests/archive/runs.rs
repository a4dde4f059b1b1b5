//! Runs that never were.

use linerate_model::units::Nanos;
use linerate_model::watch::{
    Holding, NotRun, RunClass, RunId, UnixMillis, WatchFigures, WatchOutcome, WatchRun,
};

/// 2025-11-25 02:40 UTC.
pub(crate) const START: u64 = 1_764_038_400_000;

pub(crate) fn run(due: u64, hash: u128, outcome: WatchOutcome) -> WatchRun {
    let due = UnixMillis(due);
    let ran = !matches!(outcome, WatchOutcome::NotRun { .. });
    WatchRun {
        id: RunId::of(due, hash),
        task: "uplink".into(),
        from: "a".into(),
        to: "b".into(),
        class: RunClass::Regular,
        due,
        deadline: due.plus_millis(60_000),
        started: ran.then(|| due.plus_millis(1_500)),
        ended: due.plus_millis(12_000),
        outcome,
    }
}

pub(crate) fn measured(bps: f64) -> WatchOutcome {
    WatchOutcome::Measured(WatchFigures {
        goodput_bps: bps,
        interval_bps: Some((bps * 0.97, bps * 1.03)),
        whole_bps: Some(bps * 0.9),
        ramp: Some(Nanos(1_250_000_001)),
        retransmitted: Some(0.1 + 0.2),
        lost: None,
        rtt: Some(Nanos(40_000_123)),
        sender_cpu: Some(0.25),
        receiver_cpu: None,
        findings: vec!["window.receive".to_owned(), "loss.random".to_owned()],
        with_traffic: true,
    })
}

pub(crate) fn failed() -> WatchOutcome {
    WatchOutcome::Failed {
        stage: "connecting".into(),
        why: "b said \"no\", twice".into(),
    }
}

pub(crate) fn not_run() -> WatchOutcome {
    WatchOutcome::NotRun {
        reason: NotRun::Missed,
        why: "a was busy".into(),
        held: vec![Holding {
            resource: "a sends".into(),
            by: "other a > c".into(),
            millis: 59_000,
        }],
    }
}

pub(crate) fn invalid() -> WatchOutcome {
    WatchOutcome::Invalid {
        why: "the clock jumped".into(),
    }
}

/// Bytes that do not compress, always the same for a number.
pub(crate) fn bytes(number: u64, length: usize) -> Vec<u8> {
    let mut state = number.wrapping_add(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = std::iter::repeat_with(next)
        .flatten()
        .take(length)
        .collect();
    // Two numbers never share a record.
    bytes.extend(number.to_le_bytes());
    bytes
}
