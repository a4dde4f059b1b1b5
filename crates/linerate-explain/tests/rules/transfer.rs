//! Transfers of files: which stage is named, by the times of its rings alone.

use linerate_model::record::{Outcome, RunRecord};
use linerate_model::transfer::{Medium, RingRecord, StagePlace, StageRecord, StageRole};
use linerate_model::units::{Bytes, Nanos};
use linerate_testing::fixture;

use super::{explain, ids, quiet, tcp};

/// A transfer whose source and target were the slowest stage so many per cent of the time, and whose fsync took that
/// much of it after the last byte.
fn transfer(source: u64, target: u64, fsync: u64) -> RunRecord {
    let mut record = fixture::run(&tcp(), &quiet());
    let server = record.server.as_mut().unwrap();
    let start = server.start_ns;
    let last = server.streams[0].last_byte_ns.unwrap();
    let whole = last.since(start).0 * 100 / (100 - fsync);
    let share = |percent: u64| Nanos(whole * percent / 100);
    // The rest of the time the threads of each end wait.
    let rest = |part: Nanos| last.since(start).since(part);
    let stage = |role, empty, full, on_disk| StageRecord {
        medium: Medium::Disk(StagePlace {
            path: "/data".into(),
            direct: true,
            ..StagePlace::default()
        }),
        bytes: Bytes(1 << 30),
        began: start,
        handed_over: last,
        on_disk,
        ring: RingRecord {
            empty,
            full,
            ..RingRecord::default()
        },
        ..fixture::stage(role)
    };
    let end = Nanos(start.0 + whole);
    server.stage = Some(stage(
        StageRole::Target,
        rest(share(target)),
        share(target),
        Some(end),
    ));
    let client = record.client.as_mut().unwrap();
    client.stage = Some(stage(
        StageRole::Source,
        share(source),
        rest(share(source)),
        None,
    ));
    record
}

fn source(record: &mut RunRecord) -> &mut StageRecord {
    record.client.as_mut().unwrap().stage.as_mut().unwrap()
}

fn by_cache(stage: &mut StageRecord) -> &mut StagePlace {
    let Medium::Disk(place) = &mut stage.medium else {
        panic!("no disk");
    };
    place.direct = false;
    place
}

#[test]
fn the_stage_that_was_waited_for_is_named_and_what_follows_from_it_is_not() {
    for ((read, written, fsync), id) in [
        ((90, 0, 0), "disk-read"),
        ((35, 25, 0), "disk-read"),
        ((0, 90, 5), "disk-write"),
        ((30, 50, 0), "disk-write"),
        ((10, 0, 60), "disk-write"),
    ] {
        let record = transfer(read, written, fsync);
        let findings = explain(&record);
        assert_eq!(
            findings[0].id, id,
            "{read} {written} {fsync}: {findings:#?}"
        );
        let others = [
            "receiver-application",
            "receive-window",
            "sender-application",
            "path-full",
        ];
        assert!(
            !ids(&record).iter().any(|id| others.contains(&id.as_str())),
            "{findings:#?}"
        );
    }
    let mut serial = transfer(10, 0, 60);
    let target = serial.server.as_mut().unwrap().stage.as_mut().unwrap();
    by_cache(target);
    assert_eq!(explain(&serial)[0].id, "serial-copy");
    // The network's case is that of a test without files.
    let without = fixture::run(&tcp(), &quiet());
    assert_eq!(ids(&transfer(20, 10, 5)), ids(&without));
}

#[test]
fn what_cannot_be_trusted_comes_first() {
    let mut differs = transfer(90, 0, 0);
    source(&mut differs).checksum = "6".into();
    assert_eq!(explain(&differs)[0].id, "checksum");
    let mut cached = transfer(0, 0, 0);
    by_cache(source(&mut cached)).still_cached = Some(Bytes(1 << 30));
    assert_eq!(explain(&cached)[0].id, "source-cached");
}

#[test]
fn a_stage_that_failed_is_told_unless_the_user_stopped_it() {
    let mut failed = transfer(90, 0, 0);
    let target = failed.server.as_mut().unwrap().stage.as_mut().unwrap();
    target.error = Some("writing x: No space left on device".into());
    failed.outcome = Outcome::Failed {
        error: "the target: …".into(),
    };
    let findings = explain(&failed);
    assert_eq!(findings[0].id, "disk-write");
    assert!(
        findings[0].sentence.contains("No space left"),
        "{findings:#?}"
    );
    failed.outcome = Outcome::Interrupted;
    let found = ids(&failed);
    assert!(!found.iter().any(|id| id.starts_with("disk-")), "{found:?}");
}
