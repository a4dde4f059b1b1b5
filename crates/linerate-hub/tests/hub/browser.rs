//! Pages in a browser: their scripts run under the policy, and draw.

use std::process::Command;

use linerate_testing::{Need, skipped};

use crate::served::Served;

/// What a page became once it had loaded, and what the browser's console said.
fn loaded(hub: &Served, path: &str) -> Option<(String, String)> {
    let profile = tempfile::tempdir().unwrap();
    let done = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg("--dump-dom")
        .arg(format!("http://{}{path}", hub.address()))
        .output();
    let missing = match done {
        Ok(done) if done.status.success() && !done.stdout.is_empty() => {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            return Some((text(&done.stdout), text(&done.stderr)));
        }
        Ok(done) => format!("chromium does not start here: {}", done.status),
        Err(error) => format!("chromium is not installed (scripts/test-deps.sh): {error}"),
    };
    skipped(Need::Browser, "pages in a browser", &missing);
    None
}

#[test]
fn scripts_draw_and_break_no_policy() {
    let hub = Served::sample();
    let run = hub.json("/api/v1/runs?from=fra1&to=ams1&limit=1")["runs"][0]["id"].clone();
    let report = format!("/run/{}", run.as_str().unwrap());
    let pair = "/pair?task=backbone&from=fra1&to=ams1";
    for (path, drawn) in [
        ("/", "td class=\"failing\""),
        (pair, "class=\"uplot"),
        (
            pair,
            "<div class=\"wide still\" tabindex=\"0\" role=\"region\" aria-label=\"Drawing of goodput over time\" hidden",
        ),
        (&report, "data-drawn=\""),
        ("/alerts", "fra1 sends slowly"),
    ] {
        let Some((dom, console)) = loaded(&hub, path) else {
            return;
        };
        assert!(dom.contains(drawn), "{path}: {drawn}");
        for word in ["Content Security Policy", "Uncaught", "Refused to"] {
            assert!(!console.contains(word), "{path}: {console}");
        }
    }
}
