//! What is kept of one run of an experiment, whatever made it.

use linerate_lab::scenario::EngineWish;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is to be known of runs by netem.
pub const BY_NETEM: &str = "netem carried the lab's packets: how late they left is not known, so no run is called disturbed for that";

/// What a run gave. A figure that is not known is absent; a run that failed has no goodput, never one of zero.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Measured {
    /// Goodput of the plateau, or of the whole run where there is none, all streams of all directions, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_bps: Option<f64>,
    /// Segments sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted_segments: Option<u64>,
    /// Mean round-trip time, µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<f64>,
    /// The path MTU that the sender's kernel believed in, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_mtu_bytes: Option<u32>,
    /// What carried the packets, where that was a lab's engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// The run's first finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// Why the run may show something else than what was asked of it: a busy machine, a ledger that does not
    /// balance. Empty where nothing speaks against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbed: Vec<String>,
    /// Why there is no result; `None` where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl Measured {
    /// A run that gave nothing.
    pub fn failed(why: impl Into<String>) -> Self {
        Self {
            failed: Some(why.into()),
            ..Self::default()
        }
    }

    /// From the JSON document of `linerate test`.
    pub fn of_document(document: &Value, mut disturbed: Vec<String>) -> Self {
        let outcome = document.pointer("/outcome/how").and_then(Value::as_str);
        let goodput_bps = document
            .pointer("/summary/goodput_bps")
            .and_then(Value::as_f64)
            .filter(|bps| *bps > 0.0);
        let failed = match (outcome, goodput_bps) {
            (Some("completed"), Some(_)) => None,
            (Some("completed"), None) => Some("nothing arrived".to_owned()),
            (Some(how), _) => {
                let error = document.pointer("/outcome/error").and_then(Value::as_str);
                let why = error.map_or_else(String::new, |error| format!(": {error}"));
                Some(format!("the test ended as {how}{why}"))
            }
            (None, _) => Some("the test printed no JSON document".to_owned()),
        };
        disturbed.extend(unbalanced(document));
        let streams = document.get("streams").and_then(Value::as_array);
        let path_mtu = streams.into_iter().flatten().filter_map(|stream| {
            let bytes = stream.get("path_mtu_bytes")?.as_u64()?;
            u32::try_from(bytes).ok()
        });
        Self {
            goodput_bps: goodput_bps.filter(|_| failed.is_none()),
            retransmitted_segments: document
                .pointer("/summary/retransmits")
                .and_then(Value::as_u64),
            rtt_us: document.pointer("/summary/rtt_us").and_then(Value::as_f64),
            path_mtu_bytes: path_mtu.min(),
            engine: None,
            finding: document
                .pointer("/findings/0/id")
                .and_then(Value::as_str)
                .map(str::to_owned),
            disturbed,
            failed,
        }
    }

    /// Whether a lab's engine carried the packets that does not tell how late it was.
    pub fn is_by_netem(&self) -> bool {
        self.engine.as_deref() == Some(EngineWish::NETEM)
    }

    /// Whether it is to be made again.
    pub fn is_doubtful(&self) -> bool {
        self.failed.is_some() || !self.disturbed.is_empty()
    }
}

/// A ledger that does not balance.
fn unbalanced(document: &Value) -> Option<String> {
    let ledger = document.get("ledger")?;
    (ledger.get("balanced")?.as_bool() == Some(false))
        .then(|| "the ledger does not balance".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_run_is_no_zero() {
        let completed = serde_json::json!({
            "outcome": { "how": "completed" },
            "summary": { "goodput_bps": 9e8, "retransmits": 3, "rtt_us": 6100.0 },
            "ledger": { "balanced": true },
            "streams": [{ "path_mtu_bytes": 1500 }, { "path_mtu_bytes": null }],
            "findings": [{ "id": "path-full" }],
        });
        let run = Measured::of_document(&completed, Vec::new());
        assert_eq!(
            (run.goodput_bps, run.path_mtu_bytes),
            (Some(9e8), Some(1500))
        );
        assert!(!run.is_doubtful());
        let mut cut = completed.clone();
        cut["outcome"] = serde_json::json!({ "how": "failed", "error": "reset by peer" });
        let run = Measured::of_document(&cut, Vec::new());
        assert_eq!(run.goodput_bps, None);
        assert_eq!(
            run.failed.as_deref(),
            Some("the test ended as failed: reset by peer")
        );
        let mut empty = completed.clone();
        empty["summary"]["goodput_bps"] = 0.into();
        let run = Measured::of_document(&empty, Vec::new());
        assert_eq!(
            (run.goodput_bps, run.failed.as_deref()),
            (None, Some("nothing arrived"))
        );
        let mut off = completed;
        off["ledger"]["balanced"] = false.into();
        assert!(Measured::of_document(&off, Vec::new()).is_doubtful());
    }
}
