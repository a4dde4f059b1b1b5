//! Parquet files, read back by the crate that wrote them and by other programs.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_archive::{Archive, ArchiveError, RunFilter};
use linerate_model::calendar::rfc3339;
use linerate_model::watch::{UnixMillis, WatchFigures, WatchOutcome, WatchRun};
use linerate_testing::{Need, skipped};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::output::cells;
use crate::runs::{START, failed, invalid, measured, not_run, run};

/// One of each outcome, and one that measured the least that there is.
fn runs() -> Vec<WatchRun> {
    let bare = WatchOutcome::Measured(WatchFigures {
        goodput_bps: 1.25,
        ..WatchFigures::default()
    });
    let outcomes = [measured(1.5e9), failed(), not_run(), invalid(), bare];
    let runs = (0..).zip(outcomes);
    runs.map(|(at, outcome)| run(START + at, 1, outcome))
        .collect()
}

fn filled(folder: &Path) -> Archive {
    let archive = Archive::open(folder).unwrap().with_figures_of(3);
    for run in runs() {
        archive.append(&run, Some(b"{}")).unwrap();
    }
    archive
}

/// A value as the CSV has it.
fn as_csv(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::TimestampMillis(at) => rfc3339(UnixMillis(u64::try_from(*at).unwrap())),
        Field::Double(value) => value.to_string(),
        Field::Long(value) => value.to_string(),
        Field::Bool(value) => value.to_string(),
        Field::ListInternal(list) => {
            let texts: Vec<String> = list.elements().iter().map(as_csv).collect();
            texts.join(" ")
        }
        other => panic!("{other:?}"),
    }
}

fn rows(file: &Path) -> Vec<Vec<(String, Field)>> {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().into_columns()).collect()
}

#[test]
fn a_parquet_file_has_the_columns_and_the_values_of_the_csv() {
    let folder = tempdir().unwrap();
    let archive = filled(&folder.path().join("archive"));
    let path = folder.path().join("runs.parquet");
    let mut file = File::create(&path).unwrap();
    let all = RunFilter::default();
    assert_eq!(archive.export_parquet(&all, &mut file).unwrap(), 5);
    let mut csv = Vec::new();
    archive.export_csv(&all, &mut csv).unwrap();
    let csv = cells(&String::from_utf8(csv).unwrap());
    let rows = rows(&path);
    assert_eq!(rows.len() + 1, csv.len());
    for (row, expected) in rows.iter().zip(&csv[1..]) {
        let names: Vec<&String> = row.iter().map(|(name, _)| name).collect();
        assert_eq!(names, csv[0].iter().collect::<Vec<_>>());
        let values: Vec<String> = row.iter().map(|(_, field)| as_csv(field)).collect();
        assert_eq!(&values, expected);
    }
    // The CSV has no way to say that a list is empty.
    let findings = |row: usize| {
        &rows[row]
            .iter()
            .find(|(name, _)| name == "findings")
            .unwrap()
            .1
    };
    assert!(matches!(findings(0), Field::ListInternal(list) if list.len() == 2));
    assert_eq!(findings(1), &Field::Null);
    assert!(matches!(findings(4), Field::ListInternal(list) if list.len() == 0));
}

#[test]
fn rows_beyond_one_group_are_all_there_and_none_is_a_file_too() {
    let folder = tempdir().unwrap();
    let database = folder.path().join("archive");
    let archive = Archive::open(&database).unwrap();
    archive.append(&run(START, 1, measured(1e9)), None).unwrap();
    // Faster than to append each of them.
    let connection = rusqlite::Connection::open(database.join("archive.sqlite3")).unwrap();
    let copies = connection.execute(
        "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 39999)
         INSERT INTO run (pair, id, class, due, deadline, started, ended, outcome, goodput, with_traffic, computed_by)
         SELECT pair, printf('%s-%04x-7000-8000-000000000000', substr(id, 1, 8), n), class, due, deadline, started, ended,
             outcome, n, 0, 0 FROM run, number",
        [],
    );
    assert_eq!(copies.unwrap(), 39_999);
    let path = folder.path().join("runs.parquet");
    let all = RunFilter::default();
    let rows_of = |filter: &RunFilter| {
        let written = archive.export_parquet(filter, &mut File::create(&path).unwrap());
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let rows = reader.metadata().file_metadata().num_rows();
        assert_eq!(written.unwrap(), u64::try_from(rows).unwrap());
        (rows, reader.metadata().num_row_groups())
    };
    assert_eq!(rows_of(&all), (40_000, 3));
    let sum: f64 = rows(&path)
        .iter()
        .filter_map(
            |row| match row.iter().find(|(name, _)| name == "goodput_bps") {
                Some((_, Field::Double(bps))) if *bps < 1e9 => Some(*bps),
                _ => None,
            },
        )
        .sum();
    assert!((sum - 39_999.0 * 20_000.0).abs() < 0.5, "{sum}");
    let none = RunFilter {
        task: Some("other".into()),
        ..all
    };
    assert_eq!(rows_of(&none), (0, 0));
}

/// A disk that is full after so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_that_says_so() {
    let folder = tempdir().unwrap();
    let archive = filled(folder.path());
    let all = RunFilter::default();
    for room in [0, 100, 2_000] {
        for written in [
            archive.export_parquet(&all, &mut Full(room)),
            archive.export_csv(&all, &mut Full(room.min(1_000))),
        ] {
            let error = written.unwrap_err();
            assert!(matches!(error, ArchiveError::Output(_)), "{error:?}");
            let text = error.to_string();
            assert!(text.contains("no storage space"), "{room}: {text}");
        }
    }
}

/// What another program reads of a file: its types, and each row.
const READ: &str = r#"
import json, sys, duckdb, pyarrow, pyarrow.parquet
path, moments = sys.argv[1], ["due", "deadline", "started", "ended"]
db = duckdb.connect()
db.execute("SET TimeZone = 'UTC'")
whole = ", ".join(f"epoch_ms({name}) AS {name}" for name in moments)
types = {row[0]: row[1] for row in db.execute("DESCRIBE SELECT * FROM read_parquet(?)", [path]).fetchall()}
db.execute(f"SELECT * REPLACE ({whole}) FROM read_parquet(?)", [path])
names = [column[0] for column in db.description]
duck = {"types": types, "rows": [dict(zip(names, row)) for row in db.fetchall()]}
table = pyarrow.parquet.read_table(path)
types = {field.name: str(field.type) for field in table.schema}
for name in moments:
    at = table.schema.get_field_index(name)
    table = table.set_column(at, name, table.column(name).cast(pyarrow.int64()))
print(json.dumps({"duckdb": duck, "pyarrow": {"types": types, "rows": table.to_pylist()}}))
"#;

/// A Python that has `DuckDB` and pyarrow.
fn readers() -> Result<PathBuf, String> {
    let python = std::env::var_os("LINERATE_PARQUET_READERS").map_or_else(
        || {
            let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
            let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            let cache = cache.unwrap_or_else(|| home.join(".cache"));
            cache.join("linerate-test/parquet-readers/bin/python")
        },
        PathBuf::from,
    );
    let import = ["-c", "import duckdb, pyarrow.parquet"];
    match Command::new(&python).args(import).output() {
        Ok(done) if done.status.success() => Ok(python),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        Err(error) => Err(format!("{}: {error}", python.display())),
    }
}

#[test]
fn duckdb_and_pyarrow_read_types_values_and_nulls() {
    let what = "Parquet files read by DuckDB and pyarrow";
    let python = match readers() {
        Ok(python) => python,
        Err(why) => {
            let why = format!("{why} (scripts/test-deps.sh installs them)");
            return skipped(Need::ParquetReaders, what, &why);
        }
    };
    let folder = tempdir().unwrap();
    let archive = filled(&folder.path().join("archive"));
    let path = folder.path().join("runs.parquet");
    let mut file = File::create(&path).unwrap();
    archive
        .export_parquet(&RunFilter::default(), &mut file)
        .unwrap();
    let script = folder.path().join("read.py");
    fs::write(&script, READ).unwrap();
    let done = Command::new(python)
        .args([&script, &path])
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{complaint}");
    let read: Value = serde_json::from_slice(&done.stdout).unwrap();
    let types = |program: &str, columns: [&str; 6]| {
        columns.map(|column| read[program]["types"][column].as_str().unwrap().to_owned())
    };
    let columns = [
        "due",
        "goodput_bps",
        "rtt_ns",
        "with_traffic",
        "findings",
        "why",
    ];
    assert_eq!(
        types("duckdb", columns),
        [
            "TIMESTAMP WITH TIME ZONE",
            "DOUBLE",
            "BIGINT",
            "BOOLEAN",
            "VARCHAR[]",
            "VARCHAR"
        ]
    );
    assert_eq!(
        types("pyarrow", columns),
        [
            "timestamp[ms, tz=UTC]",
            "double",
            "int64",
            "bool",
            "list<element: string not null>",
            "string"
        ]
    );
    for program in ["duckdb", "pyarrow"] {
        let rows = read[program]["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 5, "{program}");
        for (row, run) in rows.iter().zip(runs()) {
            let started = run.started.map(|at| at.0);
            assert_eq!(row["id"], run.id.to_string(), "{program}");
            assert_eq!(
                (&row["due"], &row["started"], &row["ended"]),
                (&json!(run.due.0), &json!(started), &json!(run.ended.0)),
                "{program}"
            );
            let WatchOutcome::Measured(figures) = &run.outcome else {
                for figure in [
                    "goodput_bps",
                    "low_bps",
                    "high_bps",
                    "whole_bps",
                    "ramp_ns",
                    "retransmitted",
                    "lost",
                    "rtt_ns",
                    "sender_cpu",
                    "receiver_cpu",
                    "with_traffic",
                    "findings",
                    "computed_by",
                ] {
                    assert_eq!(row[figure], Value::Null, "{figure} of {row} by {program}");
                }
                assert_ne!(row["why"], Value::Null, "{row} by {program}");
                continue;
            };
            assert_eq!(row["goodput_bps"], figures.goodput_bps, "{program}");
            assert_eq!(
                row["retransmitted"],
                json!(figures.retransmitted),
                "{program}"
            );
            assert_eq!(
                row["rtt_ns"],
                json!(figures.rtt.map(|rtt| rtt.0)),
                "{program}"
            );
            assert_eq!(row["with_traffic"], figures.with_traffic, "{program}");
            assert_eq!(row["findings"], json!(figures.findings), "{program}");
            assert_eq!(row["computed_by"], 3, "{program}");
        }
    }
}
