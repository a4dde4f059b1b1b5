//! What is not as it should be on a host, by its facts and the paths that its tests take.

use linerate_model::audit::{Audit, Outcome, Target, Verdict};
use linerate_model::host::HostFacts;
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;
use serde::Serialize;

/// An audit as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct AuditView {
    /// The load that the host is judged for, in words.
    pub(crate) load: PlainText,
    /// What is not as it should be, the worst first.
    pub(crate) wrong: Vec<WrongView>,
    /// Checks that passed.
    pub(crate) passed: usize,
    /// Checks that these facts cannot answer.
    pub(crate) unknown: usize,
}

/// Something that is not as it should be.
#[derive(Debug, Serialize)]
pub(crate) struct WrongView {
    /// The check: `T02`.
    pub(crate) check: PlainText,
    /// 1 is worst, 4 least.
    pub(crate) severity: u8,
    /// What is wrong, one sentence.
    pub(crate) sentence: PlainText,
    /// What to set; empty where there is nothing to set.
    pub(crate) changes: Vec<SettingView>,
    /// What applying may cost: `none`, `queue reset`, `link flap`, `reboot`.
    pub(crate) risk: &'static str,
}

/// A setting, as it is and as it should be.
#[derive(Debug, Serialize)]
pub(crate) struct SettingView {
    /// Its name: `net.ipv4.tcp_wmem`, `ethtool -G eth0 rx`.
    pub(crate) setting: PlainText,
    /// Its value now; null = not known.
    pub(crate) now: Option<PlainText>,
    /// The value that it should have.
    pub(crate) value: PlainText,
    /// Why this value.
    pub(crate) why: PlainText,
}

impl AuditView {
    /// Judges a host by its facts for one flow at the rate of its fastest link, over the `longest` round trip of its
    /// tests. `None` where the facts cannot be judged.
    pub(crate) fn of(facts: &HostFacts, longest: Option<Nanos>) -> Option<Self> {
        let mut target = Target {
            rtt: longest,
            ..Target::default()
        };
        if longest.is_some() {
            "the longest of its latest tests".clone_into(&mut target.rtt_from);
        }
        let audit = linerate_tune::audit(facts, None, &target).ok()?;
        let count = |is: fn(&Outcome) -> bool| {
            let all = audit.verdicts.iter();
            all.filter(|verdict| is(&verdict.outcome)).count()
        };
        Some(Self {
            load: load(&audit).into(),
            passed: count(|outcome| matches!(outcome, Outcome::Holds { .. })),
            unknown: count(|outcome| matches!(outcome, Outcome::CannotKnow { .. })),
            wrong: audit.verdicts.iter().filter_map(wrong).collect(),
        })
    }
}

/// `10.0 Gbit/s (the link eth0) over 280 ms (the longest of its latest tests)`.
fn load(audit: &Audit) -> String {
    let target = &audit.target;
    let rate = match target.rate_bps {
        Some(rate) => format!("{rate} ({})", target.rate_from),
        None => "a rate that is not known".to_owned(),
    };
    let rtt = match target.rtt {
        Some(rtt) => format!("{rtt} ({})", target.rtt_from),
        None => "a round-trip time that is not known".to_owned(),
    };
    format!("{rate} over {rtt}")
}

fn wrong(verdict: &Verdict) -> Option<WrongView> {
    let Outcome::Fires {
        sentence,
        changes,
        severity,
        risk,
        ..
    } = &verdict.outcome
    else {
        return None;
    };
    let changes = changes.iter().map(|change| SettingView {
        setting: change.advised.setting().into(),
        now: change.now.as_ref().map(PlainText::from),
        value: change.advised.value().into(),
        why: change.why.as_str().into(),
    });
    Some(WrongView {
        check: verdict.check.as_str().into(),
        severity: *severity,
        sentence: sentence.as_str().into(),
        changes: changes.collect(),
        risk: risk.words(),
    })
}

#[cfg(test)]
mod tests {
    use linerate_model::host::{Fact, Interface, Link};

    use super::*;

    #[test]
    fn the_longest_path_decides_which_buffers_are_too_small() {
        let mut facts = HostFacts::default();
        let buffers = Fact::Known("4096 16384 4194304".to_owned());
        facts
            .sysctls
            .insert("net.ipv4.tcp_wmem".to_owned(), buffers);
        facts.interfaces = Fact::Known(vec![Interface {
            name: "eth0".to_owned(),
            kind: "hardware".to_owned(),
            up: true,
            addresses: Fact::Known(vec!["192.0.2.1/24".to_owned()]),
            link: Fact::Known(Link {
                speed_mbps: Some(10_000),
                ..Link::default()
            }),
            ..Interface::default()
        }]);
        let view = |millis| AuditView::of(&facts, Some(Nanos::from_millis(millis))).unwrap();
        let wmem = |view: &AuditView| {
            let mut all = view.wrong.iter().flat_map(|wrong| &wrong.changes);
            all.any(|change| change.setting == *"net.ipv4.tcp_wmem")
        };
        assert!(!wmem(&view(1)) && wmem(&view(280)));
        let load = &*view(280).load;
        let words = "10.0 Gbit/s (the link eth0) over 280 ms (the longest of its latest tests)";
        assert_eq!(load, words);
        let unknown = AuditView::of(&facts, None).unwrap();
        assert!(!wmem(&unknown) && unknown.unknown > 0, "{unknown:?}");
    }
}
