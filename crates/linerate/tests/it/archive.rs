//! `linerate archive` on an archive that another process has open.

use linerate_archive::{Archive, RunFilter};
use linerate_model::plan::Plan;
use linerate_model::watch::{
    NotRun, RunClass, RunId, UnixMillis, WatchFigures, WatchOutcome, WatchRun,
};
use linerate_report::record;
use linerate_testing::fixture;

use crate::harness::{Done, Folder, LONG, beside, linerate, run};

const START: u64 = 1_764_038_400_000;

fn test(number: u64, outcome: WatchOutcome) -> WatchRun {
    let due = UnixMillis(START + number * 3_600_000);
    WatchRun {
        id: RunId::of(due, 1),
        task: "uplink".into(),
        from: "a".into(),
        to: "b".into(),
        class: RunClass::Regular,
        due,
        deadline: due.plus_millis(60_000),
        started: None,
        ended: due.plus_millis(11_000),
        outcome,
    }
}

/// Two tests that measured, of an older version of the figures, one that failed and one that did not run.
fn fill(archive: &Archive) -> Vec<WatchRun> {
    let wrong = WatchOutcome::Measured(WatchFigures {
        goodput_bps: 1.0,
        ..WatchFigures::default()
    });
    let failed = WatchOutcome::Failed {
        stage: "connecting".into(),
        why: "refused, twice".into(),
    };
    let not_run = WatchOutcome::NotRun {
        reason: NotRun::AgentAway,
        why: "b is away".into(),
        held: Vec::new(),
    };
    let outcomes = [wrong.clone(), wrong, failed, not_run];
    let runs: Vec<_> = (0..).zip(outcomes).map(|(at, one)| test(at, one)).collect();
    let made = fixture::run(&Plan::new("server"), &fixture::Traffic::default());
    let json = record::to_json(&made);
    for (at, one) in runs.iter().enumerate() {
        let json = (at == 0).then_some(json.as_slice());
        archive.append(one, json).unwrap();
    }
    runs
}

fn archive(words: &str, folder: &Folder) -> Done {
    let words: Vec<_> = words.split_whitespace().collect();
    let (verb, rest) = words.split_first().unwrap();
    let mut command = linerate(&format!("archive {verb}"));
    command.arg(folder.file("archive")).args(rest);
    run(&mut command, LONG)
}

#[test]
fn an_archive_in_use_is_verified_exported_recomputed_and_copied() {
    let _beside = beside();
    let folder = Folder::new();
    let open = Archive::open(&folder.file("archive")).unwrap();
    let runs = fill(&open);

    let text = archive("verify", &folder).expect(0).out;
    assert!(text.contains("4, 1 with a record"), "{text}");
    let csv = archive("export --csv --from a", &folder).expect(0).out;
    let rows: Vec<_> = csv.split("\r\n").collect();
    // The last line has its end as well.
    assert_eq!((rows.len(), rows[5]), (6, ""), "{csv}");
    assert!(rows[0].starts_with("id,task,from,to,class,due,"), "{csv}");
    assert!(
        rows[1].contains(",regular,2025-11-25T02:40:00.000Z,"),
        "{csv}"
    );
    assert!(rows[1].contains(",measured,,,,1,"), "{csv}");
    assert!(
        rows[3].ends_with(",failed,connecting,,\"refused, twice\",,,,,,,,,,,,,,"),
        "{csv}"
    );
    assert!(
        rows[4].ends_with(",not_run,,agent-away,b is away,,,,,,,,,,,,,,"),
        "{csv}"
    );
    let file = folder.file("out.csv");
    let words = format!("export --csv --task other -o {}", file.display());
    archive(&words, &folder).expect(0);
    assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 1);

    let file = folder.file("out.parquet");
    let words = format!("export --parquet {}", file.display());
    let done = archive(&words, &folder).expect(0);
    assert!(done.error.contains("4 tests are in"), "{}", done.error);
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    // Neither a folder nor a file of before is lost where the export cannot be made.
    let done = archive("export --parquet .", &folder).expect(5);
    assert!(done.error.contains("is a directory"), "{}", done.error);
    let words = format!("export --csv --parquet {}", file.display());
    archive(&words, &folder).expect(2);
    let left = std::fs::read_dir(file.parent().unwrap()).unwrap();
    let parts = left.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().ends_with(".part")
    });
    assert_eq!(parts.count(), 0);

    let done = archive("recompute --json", &folder).expect(0).json();
    assert_eq!(
        (&done["kind"], &done["computed"]),
        (&"archive-recompute".into(), &1.into())
    );
    assert_eq!(
        (&done["changed"], &done["without_record"]),
        (&1.into(), &1.into())
    );
    // The process that has it open sees the new figures.
    let stored = open.run(runs[0].id).unwrap().unwrap();
    let WatchOutcome::Measured(figures) = stored.run.outcome else {
        panic!("it measured");
    };
    assert!(figures.goodput_bps > 1e6, "{figures:?}");

    let copy = folder.file("copy");
    archive(&format!("backup --to {}", copy.display()), &folder).expect(0);
    let copied = Archive::open_existing(&copy).unwrap();
    let all = RunFilter::default();
    assert_eq!(copied.runs(&all).unwrap(), open.runs(&all).unwrap());
    archive(&format!("backup --to {}", copy.display()), &folder).expect(5);

    let forecast = archive("forecast --json", &folder).expect(0).json();
    assert_eq!(forecast["tests"], 4);
}

#[test]
fn damage_is_named_and_no_archive_is_no_archive() {
    let _beside = beside();
    let folder = Folder::new();
    let runs = fill(&Archive::open(&folder.file("archive")).unwrap());
    let raw = folder.file("archive").join("raw");
    let inner = std::fs::read_dir(raw)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let file = std::fs::read_dir(inner)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    std::fs::write(&file, b"no zstd").unwrap();
    let done = archive("verify", &folder).expect(1);
    assert!(done.out.contains("0 missing, 1 damaged"), "{}", done.out);
    assert!(done.out.contains(&runs[0].id.to_string()), "{}", done.out);
    std::fs::remove_file(file).unwrap();
    let found = archive("verify --json", &folder).expect(1).json();
    assert_eq!(found["missing"][0], runs[0].id.to_string());
    archive("recompute", &folder).expect(1);

    let empty = Folder::new();
    let done = archive("verify", &empty).expect(5);
    assert!(
        done.error.contains("there is no archive in"),
        "{}",
        done.error
    );
    archive("export", &empty).expect(2);
}
