//! The same over linerate's archive.

use std::sync::Arc;
use std::time::Instant;

use linerate_archive::{AlertKey, Archive};
use linerate_hub::store::{RunFilter, Store};
use linerate_model::alert::Alert;
use linerate_model::host::{Fact, HostFacts};
use linerate_model::watch::UnixMillis;

use crate::sample::{self, before, failed, measured};
use crate::served::Served;

fn facts(kernel: &str) -> Vec<u8> {
    let mut facts = HostFacts::default();
    facts.system.kernel = Fact::Known(kernel.to_owned());
    serde_json::to_vec(&facts).unwrap()
}

#[test]
fn pages_show_what_the_archive_has() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Arc::new(Archive::open(folder.path()).unwrap());
    let record = sample::record();
    let good = sample::run(
        "t",
        "a",
        "b",
        before(5_000_000),
        measured(9.4e9, 0.01, "path-full"),
    );
    archive.append(&good, Some(&record)).unwrap();
    let bad = sample::run(
        "t",
        "a",
        "b",
        before(1_000_000),
        failed("connecting", "b refused"),
    );
    archive.append(&bad, None).unwrap();
    archive
        .put_facts("a", before(9_000_000), &facts("5.14"))
        .unwrap();
    archive
        .put_facts("a", before(4_000_000), &facts("6.1"))
        .unwrap();
    let memory = sample::filled();
    let alert: Alert = memory.alerts(UnixMillis(0)).unwrap().remove(0);
    let id = alert.id.to_string();
    let key = AlertKey {
        id: &id,
        task: &alert.task,
        state: alert.state.word(),
        since: alert.since,
        changed: alert.changed,
    };
    archive.put_alert(key, &alert).unwrap();
    let hub = Served::of(archive.clone());
    let pair = hub.json("/api/v1/pairs")["pairs"][0].clone();
    assert_eq!(
        (&pair["outcome"], &pair["failures_in_a_row"]),
        (&"failed".into(), &1.into())
    );
    assert!(pair["goodput_bps"].is_null());
    let page = hub.body("/pair?task=t&from=a&to=b&days=1");
    assert!(
        page.contains("On a, kernel changed from 5.14 to 6.1."),
        "{page}"
    );
    assert!(page.contains("connecting: b refused") && page.contains("9.40 Gbit/s"));
    assert!(hub.body(&format!("/run/{}", good.id)).contains("Ledger"));
    assert_eq!(hub.json("/api/v1/alerts")["alerts"][0]["id"], id);
    assert!(
        hub.body("/metrics")
            .contains("linerate_failures_in_a_row{task=\"t\",source=\"a\",dest=\"b\"} 1")
    );
    let mut exported = Vec::new();
    let both = linerate_archive::RunFilter::default();
    archive.export_csv(&both, &mut exported).unwrap();
    let exported = String::from_utf8(exported).unwrap();
    let mut exported: Vec<&str> = exported.split_inclusive("\r\n").collect();
    // The hub shows the latest test first.
    exported[1..].reverse();
    assert_eq!(hub.body("/api/v1/runs.csv"), exported.concat());
    let events = hub.shared.store().events(0, 100).unwrap();
    assert_eq!(events.len(), 5);
    assert_eq!(hub.shared.store().last_event().unwrap(), events[4].id);
}

/// Prints how long the grid of 5,112 pairs and a pair's year take over the archive; a bound would measure the machine.
#[test]
#[ignore = "measures: cargo test -p linerate-hub --test hub -- --ignored --nocapture large"]
#[expect(clippy::print_stdout, reason = "it measures")]
fn large_pages_over_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Arc::new(Archive::open(folder.path()).unwrap());
    let runs = sample::mesh().runs(&RunFilter::default()).unwrap();
    std::thread::scope(|scope| {
        for part in runs.chunks(runs.len().div_ceil(64)) {
            let archive = &archive;
            scope.spawn(move || {
                for run in part {
                    archive.append(run, None).unwrap();
                }
            });
        }
    });
    let hub = Served::of(archive);
    for path in [
        "/",
        "/pair?task=year&from=lon1&to=nyc1&days=365",
        "/metrics",
        "/api/v1/pairs",
    ] {
        let mut times: Vec<u128> = (0..20)
            .map(|_| {
                let begun = Instant::now();
                hub.body(path);
                begun.elapsed().as_millis()
            })
            .collect();
        times.sort_unstable();
        println!("{path}: median {} ms, p95 {} ms", times[10], times[18]);
    }
}
