//! Real power cuts, compared with those that were measured before, and scanned.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use linerate_kernel::loop_device::LoopDevice;
use linerate_kernel::namespace::is_root;
use linerate_model::storage::{CrashRun, SuspectKind};
use linerate_model::watch::UnixMillis;
use linerate_testing::{Need, skipped};
use serde_json::Value;

use super::{Bench, Cut, FileSystemKind, Results, plan};
use crate::crash::scan::{ScanOptions, Since, scan};

/// Linux 6.18, one run each (no kernel is named in it).
const MEASURED: &str =
    include_str!("../../../../linerate-readers/tests/cases/crash-matrix/input.txt");
const MEASURED_ON: &str = "6.18.";

const ALL_TIMES: ScanOptions = ScanOptions {
    since: Since::Given(UnixMillis(0), UnixMillis(u64::MAX)),
    read: false,
    cross_mounts: false,
    any_file_system: true,
    limit: None,
    most_listed: 1000,
};

fn lacks_loop_devices(what: &str) -> bool {
    let why = if is_root() {
        let image = tempfile::tempfile().unwrap();
        image.set_len(1 << 20).unwrap();
        LoopDevice::attach(&image)
            .err()
            .map(|error| error.to_string())
    } else {
        Some("not root".to_owned())
    };
    if let Some(why) = &why {
        skipped(Need::LoopDevices, what, why);
    }
    why.is_some()
}

/// What the same cut left when it was measured.
fn measured(run: &CrashRun) -> Option<Value> {
    let rows = MEASURED
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut rows = rows.filter(|row| {
        row["fs"] == run.file_system.as_str()
            && row["opts"] == run.options.as_str()
            && row["cut"] == run.cut.as_str()
            && row["before"] == run.before.as_str()
    });
    rows.next()
}

/// A cut right behind the writes catches data that are on their way, which ext4 and XFS send when a file is truncated or
/// replaced: what these files have is a matter of microseconds.
fn is_a_race(run: &CrashRun, name: &str, result: &str) -> bool {
    let sends_early = ["rename-over", "truncate-rewrite"].contains(&name);
    let may_be = ["old", "new", "EMPTY", "NUL×65536"].contains(&result);
    run.before == "none" && sends_early && may_be
}

fn is_lost(result: &str) -> bool {
    result == "EMPTY" || result.starts_with("NUL")
}

/// What a scan of a folder calls empty or without data.
fn suspects(folder: &Path) -> BTreeSet<(String, SuspectKind)> {
    let found = scan(folder, &ALL_TIMES, &mut |_| ()).unwrap();
    assert_eq!(found.found.all(), found.files.len() as u64);
    let files = found.files.iter();
    files
        .map(|file| (file.path.as_str().to_owned(), file.kind))
        .collect()
}

fn expected(results: &Results) -> BTreeSet<(String, SuspectKind)> {
    let lost = results.iter().filter(|(_, result)| is_lost(result));
    lost.map(|(name, result)| {
        let kind = match result.as_str() {
            "EMPTY" => SuspectKind::Empty,
            _ => SuspectKind::NoData,
        };
        ((*name).to_owned(), kind)
    })
    .collect()
}

#[test]
fn cuts_leave_what_was_measured_and_the_scan_finds_exactly_what_is_lost() {
    let what = "power cuts on an image";
    if lacks_loop_devices(what) {
        return;
    }
    let cuts: Vec<Cut> = plan(&FileSystemKind::ALL, false);
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::set_up(folder.path(), &cuts).unwrap();
    let (mut runs, mut looks) = (Vec::new(), 0);
    bench.run_and_look(
        &cuts,
        &mut |run| {
            runs.push(run);
            true
        },
        &mut |mounted, results| {
            assert_eq!(suspects(mounted), expected(results));
            looks += 1;
        },
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(runs.len(), cuts.len());
    let (mut cells, mut differing) = (0, Vec::new());
    for run in &runs {
        if let Some(error) = &run.error {
            assert!(error.contains("not installed"), "{error}");
            skipped(Need::Programs, &run.file_system, error);
            continue;
        }
        let row = measured(run).unwrap_or_else(|| panic!("{run:?} was never measured"));
        for (name, result) in &run.results {
            assert!(!(name.ends_with("-fsync") && is_lost(result)), "{run:?}");
            cells += 1;
            if row[name.as_str()] != result.as_str() && !is_a_race(run, name, result) {
                let at = (&run.file_system, &run.options, &run.cut, &run.before);
                differing.push(format!(
                    "{at:?} {name}: {result}, was {}",
                    row[name.as_str()]
                ));
            }
        }
    }
    assert_eq!(looks, runs.iter().filter(|run| run.error.is_none()).count());
    let kernel = runs[0].kernel.as_ref().map_or("", |kernel| kernel.as_str());
    let said = format!(
        "power cuts on Linux {kernel}: {cells} cells, {} differ from those of Linux {MEASURED_ON}x: {differing:#?}",
        differing.len()
    );
    drop(writeln!(std::io::stderr(), "{said}"));
    assert!(cells > 0);
    // Another kernel may do better or worse, and that is said.
    assert!(
        differing.is_empty() || !kernel.starts_with(MEASURED_ON),
        "{said}"
    );
}

#[test]
fn what_cannot_be_mounted_is_an_error_of_its_cut_alone() {
    if lacks_loop_devices("a mount that fails") {
        return;
    }
    let mut cuts = plan(&[FileSystemKind::Ext4], false);
    cuts.truncate(2);
    cuts[0].options = "no_such_option";
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::set_up(folder.path(), &cuts).unwrap();
    let mut runs = Vec::new();
    bench.run(&cuts, &mut |run| {
        runs.push(run);
        true
    });
    let error = runs[0].error.as_ref().unwrap();
    assert!(error.starts_with("cannot mount /dev/loop"), "{error}");
    assert_eq!((&runs[1].error, runs[1].results.len()), (&None, 10));
}

#[test]
fn images_of_file_systems_and_other_sparse_files_are_not_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let image = |name: &str| {
        std::fs::File::create(path(name))
            .unwrap()
            .set_len(320 << 20)
    };
    image("never-written").unwrap();
    for kind in FileSystemKind::ALL {
        let (program, options, _) = kind.maker();
        image(kind.name()).unwrap();
        let made = std::process::Command::new(program)
            .args(options)
            .arg(path(kind.name()))
            .env("PATH", linerate_kernel::process::search_path())
            .output();
        match made {
            Ok(made) => assert!(made.status.success(), "{program}: {made:?}"),
            Err(error) => skipped(Need::Programs, program, &error.to_string()),
        }
    }
    assert_eq!(suspects(folder.path()), BTreeSet::new());
}

/// Packages have empty files; what is allocated without data, or ends in a hole, they have not.
#[test]
fn a_debian_root_has_no_file_without_its_data() {
    let limit = linerate_model::units::Nanos(60_000_000_000);
    // What packages bring; databases below /var may allocate before they write.
    for folder in ["/usr", "/etc", "/var/lib/dpkg"].map(Path::new) {
        if !folder.exists() {
            continue;
        }
        let options = ScanOptions {
            limit: Some(limit),
            ..ALL_TIMES
        };
        let found = scan(folder, &options, &mut |_| ()).unwrap();
        let without: Vec<_> = found
            .files
            .iter()
            .filter(|file| file.kind != SuspectKind::Empty)
            .collect();
        assert!(without.is_empty(), "{}: {without:?}", folder.display());
        let (empty, all) = (found.found.empty, found.counts.files);
        assert!(empty * 10 <= all, "{}: {empty} of {all}", folder.display());
    }
}
