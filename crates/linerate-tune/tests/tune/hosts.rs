//! Whole hosts: one that is right, one that nobody touched.

use std::path::{Path, PathBuf};

use linerate_model::audit::{Area, Audit, Outcome, Role, Target};
use linerate_model::host::HostFacts;
use linerate_model::units::{BitRate, Nanos};
use serde_json::Value;

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tune")
}

pub(crate) fn document(name: &str) -> Value {
    let path = folder().join(format!("hosts/{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn host(name: &str) -> HostFacts {
    serde_json::from_value(document(name)).unwrap()
}

/// 10 Gbit/s over 60 ms.
pub(crate) fn far() -> Target {
    Target {
        rate_bps: Some(BitRate(10_000_000_000)),
        rtt: Some(Nanos::from_millis(60)),
        path_mtu: Some(9000),
        ..Target::default()
    }
}

/// The checks that fire, with the severity that each has.
fn firing(audit: &Audit) -> Vec<(&str, u8)> {
    audit
        .verdicts
        .iter()
        .filter_map(|verdict| match verdict.outcome {
            Outcome::Fires { severity, .. } => Some((verdict.check.as_str(), severity)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_host_that_is_right_gets_no_complaint() {
    for role in [Role::Transfer, Role::Measurement, Role::Server] {
        let target = Target { role, ..far() };
        let audit = linerate_tune::audit(&host("dtn"), None, &target).unwrap();
        assert_eq!(firing(&audit), [], "{role}");
        assert_eq!(audit.interfaces, ["eth0"]);
        let unknown: Vec<_> = audit
            .verdicts
            .iter()
            .filter(|verdict| matches!(verdict.outcome, Outcome::CannotKnow { .. }))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

/// What stands in the way of 10 Gbit/s over 60 ms on a guest with its distribution's defaults: buffers, and bursts.
/// The congestion control, the queues and the offloads of such a guest are right.
#[test]
fn an_untouched_guest_hears_of_buffers_and_pacing() {
    let target = Target {
        path_mtu: None,
        ..far()
    };
    let audit = linerate_tune::audit(&host("guest"), None, &target).unwrap();
    assert_eq!(firing(&audit), [("T01", 1), ("T02", 1), ("Q01", 2)]);
    assert!(
        audit.host.contains("virtual machine (kvm)"),
        "{}",
        audit.host
    );
    // A governor is the hypervisor's.
    let governor = audit.verdicts.iter().find(|one| one.check == "C05");
    assert!(matches!(
        governor.unwrap().outcome,
        Outcome::DoesNotApply { .. }
    ));
}

#[test]
fn without_rate_and_time_nothing_is_guessed() {
    let audit = linerate_tune::audit(&host("guest"), None, &Target::default()).unwrap();
    assert_eq!(audit.target.rate_bps, None);
    for id in ["T01", "T02", "T03", "T06"] {
        let verdict = audit.verdicts.iter().find(|one| one.check == id).unwrap();
        let Outcome::CannotKnow { why } = &verdict.outcome else {
            panic!("{verdict:?}");
        };
        assert!(why.contains("--rate") || why.contains("--rtt"), "{why}");
    }
    // A link that states its speed is asked.
    let audit = linerate_tune::audit(&host("dtn"), None, &Target::default()).unwrap();
    assert_eq!(audit.target.rate_bps, Some(BitRate(10_000_000_000)));
    assert_eq!(audit.target.rate_from, "the link eth0");
}

#[test]
fn an_interface_that_is_not_there_is_named_with_those_that_are() {
    let target = Target {
        interface: Some("eth9".to_owned()),
        ..far()
    };
    let error = linerate_tune::audit(&host("dtn"), None, &target).unwrap_err();
    assert!(
        error.contains("'eth9'") && error.contains("eth0"),
        "{error}"
    );
}

#[test]
fn facts_of_nothing_pass_no_check() {
    let audit = linerate_tune::audit(&HostFacts::default(), None, &far()).unwrap();
    for verdict in &audit.verdicts {
        // What needs no fact of the host is TCP's greatest window; what is about another role is no question.
        let passed = matches!(verdict.outcome, Outcome::Holds { .. }) && verdict.check != "T06";
        assert!(!passed, "{verdict:?}");
    }
    assert_eq!(firing(&audit), []);
}

fn storage(name: &str) -> Audit {
    let target = Target {
        area: Area::Storage,
        ..Target::default()
    };
    linerate_tune::audit(&host(name), None, &target).unwrap()
}

#[test]
fn storage_that_is_right_gets_no_complaint() {
    // A server with an array, and a guest as the installer leaves it.
    for name in ["store", "guest"] {
        let audit = storage(name);
        assert_eq!(firing(&audit), [], "{name}: {:?}", audit.verdicts);
        let unknown: Vec<&str> = audit
            .verdicts
            .iter()
            .filter(|one| matches!(one.outcome, Outcome::CannotKnow { .. }))
            .map(|one| one.check.as_str())
            .collect();
        // What the disks write per second is in no file.
        assert_eq!(unknown, ["S16"], "{name}");
    }
}

#[test]
fn the_two_audits_share_no_check() {
    for name in ["store", "guest", "dtn"] {
        let all = storage(name).verdicts;
        assert!(all.iter().all(|one| one.check.starts_with('S')));
        let network = linerate_tune::audit(&host(name), None, &far()).unwrap();
        assert!(
            !network
                .verdicts
                .iter()
                .any(|one| one.check.starts_with('S'))
        );
    }
}

#[test]
fn facts_without_storage_pass_no_check_of_it() {
    for verdict in &storage("dtn").verdicts {
        assert!(
            matches!(verdict.outcome, Outcome::CannotKnow { .. }),
            "{verdict:?}"
        );
    }
}
