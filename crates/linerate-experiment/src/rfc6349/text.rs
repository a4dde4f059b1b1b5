//! The report as text, about a page.

use std::fmt::Write as _;

use linerate_model::units::{BitRate, Bytes, whole};

use super::{Report, Throughput};
use crate::aligned::headed;

pub(super) fn text(report: &Report) -> String {
    let mut text = String::from("RFC 6349, TCP throughput of this path\n\n");
    let mut say = |name: &str, value: String, how: &str| {
        let how = if how.is_empty() {
            String::new()
        } else {
            format!("  ({how})")
        };
        let _ = writeln!(text, "{name:<22}{value}{how}");
    };
    let unknown = || "not known".to_owned();
    match &report.path_mtu {
        Some(found) => say("Path MTU", format!("{} bytes", found.value), &found.how),
        None => say("Path MTU", unknown(), ""),
    }
    match &report.base_rtt {
        Some(found) => say("Base round trip", found.value.to_string(), &found.how),
        None => say("Base round trip", unknown(), ""),
    }
    match &report.bottleneck {
        Some(found) => say("Bottleneck bandwidth", found.value.to_string(), &found.how),
        None => say("Bottleneck bandwidth", unknown(), ""),
    }
    if let Some(bdp) = report.bdp {
        say(
            "Bandwidth x delay",
            bdp.to_string(),
            "the window that fills the path",
        );
    }
    if let Some(bps) = report.achievable_bps {
        say(
            "Achievable by TCP",
            BitRate(whole(bps)).to_string(),
            "payload at this MTU, section 4.1",
        );
    }
    if !report.runs.is_empty() {
        text.push('\n');
        text.push_str(&runs(report));
        text.push_str(
            "\nTransfer time ratio: actual over ideal time, 1 is ideal (section 4.1). Efficiency: share of what was \
             sent\nthat was not retransmitted (4.2). Buffer delay: how much longer than the base the round trips \
             were (4.3).\nIdeal: what the window in flight carries in a base round trip, at most what is \
             achievable.\n",
        );
    }
    for remark in &report.remarks {
        let _ = write!(text, "\nNote: {remark}.");
    }
    if !report.remarks.is_empty() {
        text.push('\n');
    }
    text
}

fn runs(report: &Report) -> String {
    let head = [
        "window",
        "of BDP",
        "conn.",
        "in flight",
        "achieved",
        "ideal",
        "time ratio",
        "efficiency",
        "buffer delay",
    ];
    headed(head, report.runs.iter().map(row))
}

fn row(run: &Throughput) -> Vec<String> {
    let rate = |bps: f64| BitRate(whole(bps)).to_string();
    let or_dash = |value: Option<f64>, say: fn(f64) -> String| value.map_or("-".to_owned(), say);
    let metrics = &run.metrics;
    vec![
        run.window
            .map_or("autotuned".to_owned(), |window| window.to_string()),
        or_dash(run.share_of_bdp, |share| format!("{:.0} %", 100.0 * share)),
        run.connections.to_string(),
        or_dash(run.in_flight_bytes, |bytes| Bytes(whole(bytes)).to_string()),
        rate(run.achieved_bps),
        rate(run.ideal_bps),
        or_dash(metrics.transfer_time_ratio, |ratio| format!("{ratio:.2}")),
        or_dash(metrics.efficiency_percent, |share| format!("{share:.3} %")),
        or_dash(metrics.buffer_delay_percent, |share| {
            format!("{share:.1} %")
        }),
    ]
}
