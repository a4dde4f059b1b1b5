//! Prometheus.

use std::io::Write as _;
use std::process::{Command, Stdio};

use linerate_testing::{Need, skipped};

use crate::served::Served;

#[test]
fn a_pair_that_fails_has_no_goodput() {
    let text = Served::sample().body("/metrics");
    let goodput = |from: &str, to: &str| {
        let series = format!(
            "linerate_goodput_bytes_per_second{{task=\"backbone\",source=\"{from}\",dest=\"{to}\"}} "
        );
        text.lines()
            .find_map(|line| line.strip_prefix(&series)?.parse::<f64>().ok())
    };
    assert!(goodput("ams1", "fra1").unwrap() > 1e8);
    assert_eq!(
        (goodput("tok1", "syd1"), goodput("jnb1", "ams1")),
        (None, None)
    );
    assert!(!text.contains(" 0.0\n"));
    assert!(
        text.lines()
            .filter(|line| line.starts_with("linerate_goodput"))
            .all(|line| !line.ends_with(" 0"))
    );
    for line in [
        "linerate_expectation_state{task=\"backbone\",source=\"fra1\",dest=\"ams1\"} 2",
        "linerate_expectation_state{task=\"backbone\",source=\"lon1\",dest=\"nyc1\"} 1",
        "linerate_expectation_state{task=\"backbone\",source=\"ams1\",dest=\"fra1\"} 0",
        "linerate_finding_info{task=\"backbone\",source=\"fra1\",dest=\"ams1\",finding=\"send-buffer\"} 1",
        "linerate_agent_up{host=\"jnb1\"} 0",
        "linerate_tests_total{outcome=\"failed\"} 212",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}");
    }
    assert!(text.contains("source=\"<script>alert(1)</script>\\\"'&\""));
}

#[test]
fn pairs_that_are_no_longer_in_the_plan_are_not_exported() {
    let hub = Served::sample();
    let nothing = linerate_watch::watched::Watched::default();
    let plan = linerate_hub::live::PlanSummary::of(&nothing);
    hub.shared.live().update(|live| live.plan = plan);
    let text = hub.body("/metrics");
    assert!(
        !text.contains("linerate_goodput_bytes_per_second{"),
        "{text}"
    );
    assert!(
        text.contains("linerate_pairs{state=\"good\"} 0\n"),
        "{text}"
    );
}

#[test]
fn promtool_has_nothing_to_say() {
    let text = Served::sample().body("/metrics");
    let tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut tool) = tool else {
        return skipped(
            Need::Programs,
            "promtool check metrics",
            "promtool (Debian: prometheus) is not installed",
        );
    };
    tool.stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = tool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success() && said.is_empty(),
        "{}",
        String::from_utf8_lossy(&said)
    );
}
