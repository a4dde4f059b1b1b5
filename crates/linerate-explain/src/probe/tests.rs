use linerate_model::block::{BlockKind, DeviceNumber};
use linerate_model::latency::Latencies;
use linerate_model::probe::{
    BusyProcess, DeviceWork, Engine, ProbePlace, Raid, SCHEMA_VERSION, Spindles, Wear,
};

use super::*;

/// Twelve seconds, of which two are the ramp.
fn run(pattern: Pattern, by_second: [u64; 12], latency: Nanos) -> PatternRun {
    let ticks = by_second
        .iter()
        .flat_map(|count| (0..20).map(move |tick| count / 20 + u64::from(tick < count % 20)));
    let requests = by_second[2..].iter().sum();
    let mut latencies = Latencies::default();
    (0..requests).for_each(|_| latencies.add(latency));
    PatternRun {
        pattern,
        direct: pattern.direct(),
        engine: Engine::IoUring,
        ticks: ticks.collect(),
        ramp_ticks: 40,
        measured_ns: Nanos::from_millis(10_000),
        requests,
        latency: latencies,
        bytes: Bytes(by_second.iter().sum::<u64>() * pattern.block()),
        sync_ns: None,
        device: None,
        busy: Vec::new(),
        cached: None,
        ended: None,
    }
}

fn probe(runs: Vec<PatternRun>) -> Probe {
    Probe {
        schema_version: SCHEMA_VERSION,
        started_at_unix_ms: 0,
        kernel: None,
        place: ProbePlace {
            folder: "/data".into(),
            file_system: Some("ext4".into()),
            mounted_at: Some("/".into()),
            size: Bytes(1 << 40),
            free: Bytes(1 << 39),
            network: false,
            device: Some(BlockDevice {
                name: "sda".into(),
                number: DeviceNumber { major: 8, minor: 0 },
                kind: BlockKind::Disk,
                below: Vec::new(),
                size: None,
                model: None,
                rotational: Some(true),
                queue_requests: None,
                hardware_queues: None,
                counted: Some(true),
                hidden: false,
            }),
            disk: None,
        },
        direct: Direct::Yes {
            memory: 512,
            offset: 512,
        },
        file: Bytes(1 << 30),
        layout: None,
        precision: None,
        spindles: None,
        runs,
        ended: None,
        fio: None,
        wear: Wear::default(),
    }
}

const MS: Nanos = Nanos::from_millis(1);
const WAVERING: [u64; 12] = [
    2000, 2100, 1900, 2050, 2000, 1800, 2100, 1950, 2060, 2000, 1890, 2100,
];

const SPINDLES: Spindles = Spindles {
    count: 36,
    rpm: 7200,
    seek_ms: 8.5,
    raid: Raid::Raid10,
};

/// The same on a disk that reports not to rotate.
fn still(mut probe: Probe) -> Probe {
    if let Some(device) = &mut probe.place.device {
        device.rotational = Some(false);
    }
    probe
}

fn ids(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.id.as_str()).collect()
}

#[test]
fn a_capped_volume_is_named_with_its_cap() {
    let runs = vec![
        run(Pattern::RandomRead, [120; 12], MS),
        run(Pattern::RandomReadDeep, [121; 12], MS),
        run(Pattern::RandomWriteDeep, [120; 12], MS),
    ];
    let findings = explain(&probe(runs));
    assert_eq!(ids(&findings), ["disk-cap"]);
    let sentence = &findings[0].sentence;
    assert!(sentence.starts_with("A cap of 121 IOPS") || sentence.starts_with("A cap of 120 IOPS"));
    assert_eq!(findings[0].severity, Severity::Limit);
    let runs = vec![
        run(Pattern::SequentialWrite, [119; 12], MS),
        run(Pattern::SequentialRead, [119; 12], MS),
    ];
    let flash = still(probe(runs.clone()));
    let findings = explain(&flash);
    assert!(findings[0].sentence.contains("125 MB/s"), "{findings:?}");
    // A disk that rotates has one rate for both.
    assert_eq!(ids(&explain(&probe(runs))), ["disk-speed"]);
    let mut told = flash;
    told.spindles = Some(SPINDLES);
    assert_eq!(ids(&explain(&told)), ["disk-speed"]);
}

#[test]
fn a_disk_s_own_rates_are_no_cap() {
    // Flat, but not the same; the same, but not flat.
    let unlike = vec![
        run(Pattern::RandomReadDeep, [9000; 12], MS),
        run(Pattern::RandomWriteDeep, [5000; 12], MS),
    ];
    assert_eq!(ids(&explain(&probe(unlike))), ["disk-speed"]);
    let wavering = vec![
        run(Pattern::RandomReadDeep, WAVERING, MS),
        run(Pattern::RandomWriteDeep, WAVERING, MS),
    ];
    let findings = explain(&probe(wavering));
    assert_eq!(ids(&findings), ["disk-speed"]);
    assert_eq!(findings[0].severity, Severity::Healthy);
}

#[test]
fn an_empty_bucket_is_a_step() {
    let mut fell = [3000; 12];
    fell[6..].fill(500);
    let mut read = run(Pattern::RandomRead, fell, MS);
    let findings = explain(&probe(vec![read.clone()]));
    assert_eq!(ids(&findings), ["disk-cap"]);
    let sentence = &findings[0].sentence;
    for part in [
        "from 3,000 to 500 IOPS after 6 s",
        "a burst allowance, heat, or load that began elsewhere",
    ] {
        assert!(sentence.contains(part), "{sentence}");
    }
    // Others are the cause that is known.
    read.device = Some(DeviceWork {
        read: Bytes(read.bytes.0),
        written: Bytes(read.bytes.0 / 10),
    });
    assert_eq!(ids(&explain(&probe(vec![read]))), ["disk-shared"]);
}

#[test]
fn a_probe_that_is_too_short_says_so_first() {
    let mut short = run(Pattern::RandomReadDeep, WAVERING, MS);
    short.ticks.truncate(140);
    short.measured_ns = Nanos::from_millis(5000);
    let findings = explain(&probe(vec![
        short.clone(),
        run(Pattern::Sync, WAVERING, MS),
    ]));
    assert_eq!(ids(&findings), ["disk-speed", "write-cache", "fsync-cost"]);
    assert_eq!(findings[0].severity, Severity::Note);
    let sentence = &findings[0].sentence;
    assert!(
        sentence.contains("too short to tell a cap: 10 s needed"),
        "{sentence}"
    );
    // One that lasts long enough shows what there is.
    let long = run(Pattern::RandomRead, WAVERING, MS);
    let findings = explain(&probe(vec![short, long]));
    assert_eq!(findings[0].severity, Severity::Healthy);
}

#[test]
fn there_is_always_a_verdict() {
    let mut unmeasured = run(Pattern::RandomRead, WAVERING, MS);
    unmeasured.requests = 0;
    let cached = run(Pattern::Buffered, WAVERING, MS);
    for (runs, part) in [
        (Vec::new(), "Nothing was measured"),
        (vec![unmeasured], "Nothing was measured"),
        (vec![cached], "no fsync ended"),
    ] {
        let findings = explain(&probe(runs));
        assert_eq!(ids(&findings), ["disk-speed"]);
        assert!(findings[0].sentence.contains(part), "{findings:?}");
    }
}

#[test]
fn a_sync_faster_than_a_rotation_is_a_cache() {
    let synced = |latency| probe(vec![run(Pattern::Sync, WAVERING, latency)]);
    let fast = explain(&synced(Nanos(300_000)));
    assert_eq!(ids(&fast), ["write-cache", "fsync-cost"]);
    assert!(
        fast[0]
            .sentence
            .contains("a battery or flash. In a virtual machine this may mean nothing"),
        "{fast:?}"
    );
    let slow = explain(&synced(Nanos(8_000_000)));
    assert_eq!(ids(&slow), ["fsync-cost"]);
    // 3 ms is slower than half a rotation at 15,000 rpm and faster than at 7200.
    let three = synced(Nanos(3_000_000));
    assert!(!ids(&explain(&three)).contains(&"write-cache"));
    let mut told = three;
    told.spindles = Some(Spindles {
        count: 1,
        rpm: 7200,
        seek_ms: 8.5,
        raid: Raid::Raid0,
    });
    assert!(ids(&explain(&told)).contains(&"write-cache"));
    let flash = still(synced(Nanos(300_000)));
    assert!(!ids(&explain(&flash)).contains(&"write-cache"));
}

#[test]
fn without_direct_io_the_page_cache_is_not_called_a_disk() {
    let mut cached = probe(vec![
        run(Pattern::RandomReadDeep, [9000; 12], MS),
        run(Pattern::RandomWriteDeep, [9000; 12], MS),
    ]);
    cached.direct = Direct::Kept;
    let findings = explain(&cached);
    assert_eq!(ids(&findings), ["page-cache"]);
    assert_eq!(findings[0].severity, Severity::Fault);
}

#[test]
fn others_on_the_disk_come_first() {
    let mut read = run(Pattern::RandomReadDeep, WAVERING, MS);
    let work = |others: u64| DeviceWork {
        read: Bytes(read.bytes.0),
        written: Bytes(others),
    };
    let (few, many) = (work(read.bytes.0 / 21), work(read.bytes.0 / 4));
    read.device = Some(few);
    assert_eq!(ids(&explain(&probe(vec![read.clone()]))), ["disk-speed"]);
    read.device = Some(many);
    let anonymous = read.clone();
    read.busy = vec![BusyProcess {
        pid: 7,
        program: "rsync".into(),
        read: Bytes(29 << 20),
        written: Bytes(1 << 20),
    }];
    let findings = explain(&probe(vec![read]));
    assert_eq!(findings[0].id, "disk-shared");
    let written_before = explain(&probe(vec![anonymous]));
    assert!(written_before[0].sentence.contains("data written before"));
    let sentence = &findings[0].sentence;
    assert!(sentence.contains("25 %"), "{sentence}");
    assert!(
        sentence.contains("by rsync (pid 7, 30.0 MiB)"),
        "{sentence}"
    );
}

#[test]
fn disks_that_the_user_names_are_held_against_the_formula() {
    let with = |by_second| {
        let mut probe = probe(vec![run(Pattern::RandomReadDeep, by_second, MS)]);
        probe.spindles = Some(SPINDLES);
        explain(&probe).remove(0)
    };
    // 36 disks with 32 requests: 1357 to 5130.
    let few = with([1000; 12]);
    assert_eq!(
        (few.id.as_str(), few.severity),
        ("spindles", Severity::Limit)
    );
    assert!(few.sentence.contains("26.5 of them"), "{}", few.sentence);
    assert_eq!(with(WAVERING).severity, Severity::Healthy);
    let cache = with([40_000; 12]);
    assert_eq!(cache.severity, Severity::Note);
    assert!(
        cache.sentence.contains("a cache answered"),
        "{}",
        cache.sentence
    );
}

#[test]
fn the_fsync_is_named_with_both_rates() {
    let mut once = run(
        Pattern::Buffered,
        [0, 0, 1024, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        MS,
    );
    once.sync_ns = Some(Nanos::from_millis(9000));
    let findings = explain(&probe(vec![once]));
    let cost = findings.iter().find(|one| one.id == "fsync-cost").unwrap();
    assert!(
        cost.sentence.contains("took a file at 1074 MB/s") && cost.sentence.contains("at 107 MB/s"),
        "{}",
        cost.sentence
    );
}
