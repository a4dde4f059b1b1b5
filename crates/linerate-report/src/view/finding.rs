//! A finding as every format for people shows it: what it is among the others, and its parts in words.

use linerate_model::counter_test::{Tested, Verdict};
use linerate_model::finding::{Finding, Severity};
use linerate_model::record::Role;
use linerate_model::units::{BitRate, whole};

use super::DirectionView;

/// A finding among those of its run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FindingView<'a> {
    pub(crate) finding: &'a Finding,
    /// Whether it names what limits a direction.
    pub(crate) is_verdict: bool,
}

impl<'a> FindingView<'a> {
    /// The views of a run's findings, in their order.
    pub(crate) fn all(findings: &'a [Finding], directions: &[DirectionView]) -> Vec<Self> {
        let is_verdict = |number| directions.iter().any(|one| one.verdict == Some(number));
        let view = |(number, finding)| Self {
            finding,
            is_verdict: is_verdict(number),
        };
        findings.iter().enumerate().map(view).collect()
    }

    /// Whether counter-tests refuted it.
    pub(crate) fn is_withdrawn(&self) -> bool {
        let refuted = |tested: &Tested| tested.verdict == Verdict::Refuted;
        self.finding.tested.as_ref().is_some_and(refuted)
    }

    /// What it is among the others.
    pub(crate) fn label(&self) -> &'static str {
        match self.finding.severity {
            _ if self.is_withdrawn() => "Withdrawn",
            Severity::Fault => "FAULT",
            _ if self.is_verdict => "Verdict",
            Severity::Limit => "Also",
            Severity::Healthy | Severity::Note => "Note",
        }
    }

    /// What to set on a host, which `host` names: `on the client, set tcp_rmem = …`. An option of linerate stands in the
    /// next command.
    pub(crate) fn setting(&self, host: impl FnOnce(Role) -> &'static str) -> Option<String> {
        let remedy = self.finding.remedy.as_ref();
        let remedy = remedy.filter(|remedy| !remedy.fix.is_option())?;
        let (setting, value) = (remedy.fix.setting(), remedy.fix.value());
        Some(format!("on {}, set {setting} = {value}", host(remedy.host)))
    }

    /// The rate to expect after the remedy, and what would limit then.
    pub(crate) fn expected(&self) -> Option<String> {
        let expected = self.finding.expected.as_ref()?;
        let rate = |bps: f64| BitRate(whole(bps));
        Some(format!(
            "{} ({} to {}), limited by {}",
            rate(expected.rate_bps),
            rate(expected.low_bps),
            rate(expected.high_bps),
            expected.then
        ))
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::remedy::{Fix, Remedy};

    use super::*;

    fn finding(severity: Severity) -> Finding {
        let fields =
            serde_json::json!({"id": "rule", "severity": severity, "sentence": "It is so."});
        serde_json::from_value(fields).unwrap()
    }

    fn label(finding: &Finding, is_verdict: bool) -> &'static str {
        let view = FindingView {
            finding,
            is_verdict,
        };
        view.label()
    }

    #[test]
    fn what_is_refuted_is_withdrawn_whatever_it_was() {
        let mut fault = finding(Severity::Fault);
        assert_eq!(label(&fault, false), "FAULT");
        fault.tested = Some(Tested {
            verdict: Verdict::Refuted,
            sentence: "refuted".to_owned(),
            tests: Vec::new(),
        });
        assert_eq!(label(&fault, true), "Withdrawn");
        let limit = finding(Severity::Limit);
        assert_eq!(
            [label(&limit, true), label(&limit, false)],
            ["Verdict", "Also"]
        );
        assert_eq!(label(&finding(Severity::Healthy), false), "Note");
    }

    #[test]
    fn a_setting_of_a_host_is_told_and_an_option_is_not() {
        let setting = |fix| {
            let mut finding = finding(Severity::Limit);
            let host = Role::Server;
            finding.remedy = Some(Remedy { host, fix });
            let finding = &finding;
            FindingView {
                finding,
                is_verdict: true,
            }
            .setting(|_| "the peer")
        };
        let told = setting(Fix::Mtu(9000)).unwrap();
        assert!(
            told.starts_with("on the peer, set ") && told.contains("9000"),
            "{told}"
        );
        assert_eq!(setting(Fix::Streams(4)), None);
    }
}
