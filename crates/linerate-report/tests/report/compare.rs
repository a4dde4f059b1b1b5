//! Runs side by side.

use linerate_model::fingerprint::{Fingerprint, Key, Subject};
use linerate_model::plan::Plan;
use linerate_model::record::{Outcome, RunRecord};
use linerate_model::units::Bytes;
use linerate_report::compare::{self, Comparison, Coverage, Grouped, Says, Side};
use linerate_report::text::{Charset, Style};
use linerate_report::view::RunView;
use linerate_testing::fixture::{self, Traffic};

use crate::runs;

fn of(rate_bps: f64) -> RunRecord {
    let traffic = Traffic {
        rate_bps,
        ..Traffic::default()
    };
    fixture::run(&runs::tcp(), &traffic)
}

fn compared(sides: &[(&str, Vec<RunRecord>)]) -> Comparison {
    let views: Vec<Vec<RunView>> = sides
        .iter()
        .map(|(_, records)| records.iter().map(runs::view).collect())
        .collect();
    let sides: Vec<Side<'_>> = sides
        .iter()
        .zip(&views)
        .map(|((name, _), views)| Side::of(name, views.iter().collect()))
        .collect();
    Comparison::of(&sides)
}

/// Before and after a window of 4 MiB, the second of them with larger buffers allowed.
#[expect(clippy::unwrap_used, reason = "a test may panic")]
pub(crate) fn tuned() -> Comparison {
    let narrow = Traffic::window_limited();
    let wide = Plan {
        window_bytes: Some(Bytes(4 << 20)),
        ..runs::tcp()
    };
    let mut after = fixture::run(
        &wide,
        &Traffic {
            rate_bps: 940e6,
            ..Traffic::default()
        },
    );
    after.server.as_mut().unwrap().host.rmem_max = Some(67_108_864);
    compared(&[
        ("before.json", vec![fixture::run(&runs::tcp(), &narrow)]),
        ("after.json", vec![after]),
    ])
}

#[test]
fn far_apart_differs_and_the_same_does_not() {
    let found = compared(&[
        ("a", vec![of(90e6)]),
        ("b", vec![of(90e6)]),
        ("c", vec![of(45e6)]),
    ]);
    let sides = &found.directions[0].sides;
    assert_eq!(sides[0].against_first, None);
    let differs = |side: usize| sides[side].against_first.as_ref().unwrap().differs;
    assert_eq!((differs(1), differs(2)), (Some(false), Some(true)));
    let share = sides[2].against_first.as_ref().unwrap().share.unwrap();
    assert!((share + 0.5).abs() < 0.01, "{share}");
    assert!(found.settings.is_empty(), "{:?}", found.settings);
    assert!(
        found
            .remarks
            .iter()
            .any(|remark| remark.contains("from run to run"))
    );
}

#[test]
fn several_runs_have_the_interval_between_them() {
    let found = compared(&[
        ("a", vec![of(90e6), of(80e6), of(100e6)]),
        ("b", vec![of(95e6), of(85e6), of(105e6)]),
    ]);
    let [a, b] = found.directions[0].sides.as_slice() else {
        panic!("two sides");
    };
    assert_eq!(a.interval, Some(Coverage::BetweenRuns));
    // Student's t of two degrees, 4.303, times 10 Mbit/s / √3.
    let half = a.goodput_high_bps.unwrap() - a.goodput_bps.unwrap();
    assert!(half.abs_diff(24_850_000) < 400_000, "{half}");
    // Within each run the rate is known to a percent; between the runs it is not.
    assert_eq!(b.against_first.as_ref().unwrap().differs, Some(false));
    assert!(
        !found
            .remarks
            .iter()
            .any(|remark| remark.contains("from run to run"))
    );
}

#[test]
fn only_what_differs_is_listed_and_nothing_that_passes() {
    let found = tuned();
    let names: Vec<&str> = found
        .settings
        .iter()
        .map(|setting| setting.name.as_str())
        .collect();
    assert!(names.contains(&"plan.window_bytes"), "{names:?}");
    assert!(names.contains(&"server.host.rmem_max"), "{names:?}");
    assert!(
        !names
            .iter()
            .any(|name| name.contains("boot_id") || name.contains("kernel")),
        "{names:?}"
    );
    let window = found
        .settings
        .iter()
        .find(|setting| setting.name == "plan.window_bytes")
        .unwrap();
    assert_eq!(window.values, [None, Some("4194304".to_owned())]);
}

#[test]
fn a_run_that_was_cut_off_or_knows_no_rate_is_said_to_be_so() {
    let mut failed = of(90e6);
    failed.outcome = Outcome::Failed {
        error: "the peer\u{1b}[2J went away".into(),
    };
    let refused = runs::all()
        .into_iter()
        .find(|(name, _)| *name == "tcp_refused")
        .unwrap()
        .1;
    let found = compared(&[
        ("a", vec![of(90e6)]),
        ("b", vec![failed]),
        ("c", vec![refused]),
    ]);
    assert!(
        found
            .remarks
            .iter()
            .any(|remark| remark.starts_with("B failed before its end"))
    );
    let sides = &found.directions[0].sides;
    assert_eq!(
        (sides[2].goodput_bps, sides[2].against_first.as_ref()),
        (None, None)
    );
    let text = compare::report(&found, Style::plain());
    assert!(text.contains("not known"), "{text}");
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "{text:?}"
    );
}

#[test]
fn text_stays_within_its_width_in_ascii_too() {
    let style = Style::plain().of_columns(80).with_charset(Charset::Ascii);
    for comparison in [
        tuned(),
        compared(&[("a", vec![of(1e6)]), ("b", vec![of(2e9)])]),
    ] {
        let text = compare::report(&comparison, style);
        assert!(text.is_ascii(), "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 82, "{line}");
        }
    }
}

/// A run at this time with these facts of both ends.
#[expect(clippy::unwrap_used, reason = "a test may panic")]
fn on(rate_bps: f64, at: u64, facts: &[(Key, &str)]) -> RunRecord {
    let mut record = of(rate_bps);
    record.started_at_unix_ms = at;
    let facts = facts
        .iter()
        .map(|(key, value)| (key.clone(), (*value).into()));
    let fingerprint = Fingerprint::of(facts);
    for end in [&mut record.client, &mut record.server] {
        let host = &mut end.as_mut().unwrap().host;
        host.fingerprint = Some(fingerprint.clone());
        host.kernel = fingerprint.fact(&Key::of(Subject::Kernel)).cloned();
    }
    record
}

/// Six runs of each of these kernels and drivers, off by a percent this way and that.
#[expect(clippy::unwrap_used, reason = "a test may panic")]
fn series(kinds: &[(f64, &str, &str)]) -> Vec<RunView> {
    let run = |(rate, kernel, driver): &(f64, &str, &str), at: u64| {
        let off = [1.0, 0.99, 1.01][usize::try_from(at % 3).unwrap()];
        let facts = [
            (Key::of(Subject::Kernel), *kernel),
            (Key::of(Subject::KernelBuild), *kernel),
            (Key::of(Subject::Driver), *driver),
        ];
        runs::view(&on(rate * off, at, &facts))
    };
    kinds
        .iter()
        .zip(0_u64..)
        .flat_map(|(kind, place)| (0..6).map(move |at| run(kind, 10 * place + at)))
        .collect()
}

#[expect(clippy::unwrap_used, reason = "a test may panic")]
fn grouped(key: &str, runs: &[RunView]) -> Grouped {
    Grouped::of(key, runs, 0.05).unwrap()
}

#[test]
fn runs_are_grouped_by_a_fact_and_the_earliest_is_the_first() {
    let mut runs = series(&[
        (90e6, "6.1", "ixgbe"),
        (18e6, "6.6", "ixgbe"),
        (90.2e6, "6.7", "ixgbe"),
    ]);
    runs.reverse();
    let found = grouped("kernel", &runs);
    let values: Vec<(&str, usize)> = found
        .groups
        .iter()
        .map(|group| (group.value.as_str(), group.runs))
        .collect();
    assert_eq!(values, [("6.1", 6), ("6.6", 6), ("6.7", 6)]);
    let effects: Vec<Option<Says>> = found
        .groups
        .iter()
        .map(|group| group.directions[0].effect.map(|effect| effect.says))
        .collect();
    assert_eq!(effects, [None, Some(Says::Slower), Some(Says::NoEffect)]);
    let share = found.groups[1].directions[0].effect.unwrap().share;
    assert!((share + 0.8).abs() < 0.01, "{share}");
    // The kernel's build is another view of it, and all else is the same.
    assert!(
        found
            .groups
            .iter()
            .all(|group| group.changed_too.is_empty()),
        "{found:?}"
    );
    let median = found.groups[0].directions[0].median_bps.unwrap();
    assert!((median - 90e6).abs() < 1e6, "{median}");
}

#[test]
fn what_changed_with_it_is_named() {
    let runs = series(&[(90e6, "6.1", "ixgbe"), (18e6, "6.6", "i40e")]);
    let found = grouped("kernel", &runs);
    let [change] = found.groups[1].changed_too.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!((change.name.as_str(), &*change.here[0]), ("driver", "i40e"));
    let text = compare::grouped_report(&found, Style::plain());
    assert!(
        text.contains("Confounded: client.kernel and driver changed together"),
        "{text}"
    );
    // A driver that both kernels had does not stand in the way.
    let mut mixed = runs;
    mixed.extend(series(&[(90e6, "6.1", "i40e")]));
    assert!(grouped("kernel", &mixed).groups[1].changed_too.is_empty());
}

#[test]
fn one_run_of_a_kind_tells_nothing_and_old_records_have_kernels_too() {
    let mut old = of(90e6);
    for end in [&mut old.client, &mut old.server] {
        end.as_mut().unwrap().host.kernel = Some("4.19".into());
    }
    let mut runs = vec![runs::view(&old)];
    runs.extend(series(&[(18e6, "6.6", "ixgbe")]));
    let found = grouped("kernel", &runs);
    let second = &found.groups[1];
    assert_eq!(second.directions[0].effect.unwrap().says, Says::TooFewRuns);
    let unknown = grouped("kernel-build", &runs);
    assert_eq!((unknown.unknown, unknown.groups.len()), (1, 1));
}

#[test]
fn the_ends_are_told_apart_where_they_differ() {
    let mut runs = series(&[(90e6, "6.1", "ixgbe")]);
    for run in &mut runs[3..] {
        let kernel = (Key::of(Subject::Kernel), "6.9".into());
        run.server.host.fingerprint = Some(Fingerprint::of([kernel]));
    }
    let found = grouped("kernel", &runs);
    assert_eq!(found.by, "server.kernel");
    assert_eq!(found.groups.len(), 2);
    assert_eq!(grouped("client.kernel", &runs).groups.len(), 1);
}

#[test]
fn a_mistyped_key_is_answered_with_the_one_that_was_meant() {
    let runs = series(&[(90e6, "6.1", "ixgbe")]);
    let said = |key: &str| Grouped::of(key, &runs, 0.05).unwrap_err().to_string();
    assert!(
        said("kernal").contains("did you mean 'kernel'?"),
        "{}",
        said("kernal")
    );
    assert!(said("plan.stream").contains("did you mean 'plan.streams'?"));
    assert!(
        said("zzzzzzzzzzzz").contains("known here are driver, kernel"),
        "{}",
        said("zzzzzzzzzzzz")
    );
}
