//! Runs side by side.

use linerate_model::plan::Plan;
use linerate_model::record::{Outcome, RunRecord};
use linerate_model::units::Bytes;
use linerate_report::compare::{self, Comparison, Coverage, Side};
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
