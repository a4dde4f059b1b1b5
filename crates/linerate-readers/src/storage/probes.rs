//! fio's JSON, iozone's table, and power cuts as one JSON object a line.

use linerate_model::plain_text::PlainText;
use linerate_model::storage::{CrashRun, FioJob, FioWay, Iozone};
use linerate_model::transcript::Part;
use linerate_model::units::Nanos;
use serde_json::Value;

use crate::number::printed;

/// Lines of iozone.
#[derive(Default)]
pub(super) struct Lines {
    open: bool,
    direct: Option<bool>,
}

impl Lines {
    pub(super) fn take(&mut self, line: usize, words: &[&str], parts: &mut Vec<Part>) -> bool {
        match words {
            ["Iozone:", ..] => self.open = true,
            ["Command", "line", "used:", command @ ..] if self.open => {
                self.direct = Some(command.contains(&"-I"));
            }
            ["kB" | "KB", "reclen", columns @ ..] => {
                self.open = true;
                parts.push(Part::Iozone(Iozone {
                    direct: self.direct,
                    columns: columns.iter().map(|name| (*name).into()).collect(),
                    rows: Vec::new(),
                }));
            }
            [size, record, rates @ ..] if self.open && !rates.is_empty() => {
                return row(line, size, record, rates, parts) || banner(words);
            }
            _ => return self.open && banner(words),
        }
        true
    }
}

/// `65536  1024  1193046 …`: fewer rates than columns where tests were left out.
fn row(line: usize, size: &str, record: &str, rates: &[&str], parts: &mut [Part]) -> bool {
    let Some(Part::Iozone(held)) = parts.last_mut() else {
        return false;
    };
    let sizes = size.parse().ok().zip(record.parse().ok());
    let rates: Option<Vec<f64>> = rates
        .iter()
        .map(|rate| printed(rate).map(|number| number.value))
        .collect();
    let Some((sizes, rates)) = sizes
        .zip(rates)
        .filter(|(_, rates)| rates.len() <= held.columns.len())
    else {
        return false;
    };
    held.rows.push((line, sizes.into(), rates));
    true
}

/// What iozone prints around its table.
fn banner(words: &[&str]) -> bool {
    matches!(
        words[0],
        "Version"
            | "Compiled"
            | "Build:"
            | "Contributors:"
            | "Run"
            | "Auto"
            | "Output"
            | "Time"
            | "Processor"
            | "File"
            | "Record"
            | "O_DIRECT"
            | "iozone"
            | "random"
            | "Include"
            | "Setting"
            | "Using"
            | "Excel"
            | "Max"
            | "Min"
    )
}

/// A JSON document of fio, or a power cut.
pub(super) fn take_json(value: &Value, line: usize, parts: &mut Vec<Part>) -> bool {
    if let Some(run) = crash(value, line) {
        match parts.last_mut() {
            Some(Part::Crashes(runs)) => runs.push(run),
            _ => parts.push(Part::Crashes(vec![run])),
        }
        return true;
    }
    let jobs = value["jobs"].as_array();
    let Some(jobs) = jobs.filter(|_| value["fio version"].is_string()) else {
        return false;
    };
    let global = options(&value["global options"]);
    let jobs = jobs.iter().map(|job| FioJob {
        line,
        name: job["jobname"].as_str().unwrap_or_default().into(),
        error: job["error"].as_i64().map_or(0, i64::unsigned_abs),
        options: [global.clone(), options(&job["job options"])].concat(),
        ways: ["read", "write", "trim", "sync"]
            .iter()
            .filter_map(|name| way(name, &job[*name]))
            .collect(),
    });
    parts.push(Part::Fio(jobs.collect()));
    true
}

/// Options that bear on what was measured: few, as a job has the global ones as well.
fn options(value: &Value) -> Vec<(PlainText, PlainText)> {
    let known = [
        "rw",
        "bs",
        "iodepth",
        "ioengine",
        "direct",
        "end_fsync",
        "fsync",
        "fdatasync",
        "size",
        "numjobs",
    ];
    let present = |key: &&str| Some(((*key).into(), value[*key].as_str()?.into()));
    known.iter().filter_map(present).collect()
}

/// Requests of one kind; `None` where there were none. fio counts syncs in `lat_ns` alone.
fn way(name: &str, value: &Value) -> Option<FioWay> {
    let latency = [&value["clat_ns"], &value["lat_ns"]]
        .into_iter()
        .find(|one| one["N"].as_u64().is_some_and(|count| count > 0));
    let counted = latency.and_then(|one| one["N"].as_u64());
    let requests = value["total_ios"]
        .as_u64()
        .filter(|count| *count > 0)
        .or(counted)?;
    Some(FioWay {
        name: name.into(),
        requests,
        bytes_per_second: value["bw_bytes"]
            .as_f64()
            .or_else(|| value["bw"].as_f64().map(|kib| kib * 1024.0))
            .unwrap_or(0.0),
        iops: value["iops"].as_f64().unwrap_or(0.0),
        mean_ns: latency.and_then(|one| one["mean"].as_f64()),
        p99_ns: latency.and_then(|one| one["percentile"]["99.000000"].as_f64()),
    })
}

/// Keys of a power cut that are not the names of files.
const CRASH_KEYS: [&str; 7] = ["fs", "opts", "cut", "before", "s", "kernel", "error"];

/// `{"fs": "ext4", "opts": "", "cut": "nolog", "before": "none", "new": "EMPTY", …}`.
fn crash(value: &Value, line: usize) -> Option<CrashRun> {
    let object = value.as_object()?;
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let (file_system, cut) = (text("fs")?, text("cut")?);
    let results = object
        .iter()
        .filter(|(key, _)| !CRASH_KEYS.contains(&key.as_str()))
        .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())));
    Some(CrashRun {
        line,
        file_system: file_system.into(),
        options: text("opts").unwrap_or_default().into(),
        cut: cut.into(),
        before: text("before").unwrap_or_default().into(),
        took_ns: object
            .get("s")
            .and_then(Value::as_f64)
            .map(Nanos::from_secs_f64),
        kernel: text("kernel").map(Into::into),
        error: text("error").map(Into::into),
        results: results.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_cut_that_failed_has_a_reason_and_no_results() {
        let value = serde_json::json!({
            "fs": "xfs", "opts": "", "cut": "nolog", "before": "none", "kernel": "6.18.1",
            "error": "it is not installed", "s": 0.07,
        });
        let run = crash(&value, 3).unwrap();
        assert_eq!((run.line, run.results.len()), (3, 0));
        assert_eq!(run.error.as_deref(), Some("it is not installed"));
        assert_eq!(run.kernel.as_deref(), Some("6.18.1"));
        assert_eq!(run.took_ns, Some(Nanos(70_000_000)));
    }
}
