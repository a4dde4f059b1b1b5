//! Where the same window, buffer or loss would have been enough.

use linerate_model::finding::Finding;
use linerate_model::plan::Plan;
use linerate_testing::fixture::{self, Traffic};

use super::{explain, tcp, verdict, window_limited};
use crate::losses::by_chance;

/// The round trip of a figure whose name begins so, µs.
fn round_trip(finding: &Finding, name: &str) -> Option<f64> {
    let found = finding
        .figures
        .iter()
        .find(|figure| figure.name.starts_with(name));
    found.map(|figure| figure.value)
}

#[test]
fn a_receive_window_says_up_to_which_round_trip_it_is_enough() {
    // 143 Mbit/s at 12 ms are 214,500 bytes a round trip: a little less than the window.
    let finding = verdict(&tcp(), &window_limited());
    assert_eq!(finding.id, "receive-window");
    let sentence = finding.would_pass.clone().unwrap();
    assert_eq!(
        sentence,
        "this receive window is enough for 1.00 Gbit/s at an RTT of up to 1.72 ms, or for 10.0 Gbit/s at up to 172 µs"
    );
    let longest = round_trip(&finding, "longest round trip for 1.00 Gbit/s").unwrap();
    assert!((longest - 1716.0).abs() < 20.0, "{longest}");
}

#[test]
fn where_the_link_is_known_only_its_rate_is_spoken_of() {
    let traffic = Traffic {
        link_mbit_per_s: Some(1000),
        ..window_limited()
    };
    let mut record = fixture::run(&tcp(), &traffic);
    for end in [record.client.as_mut(), record.server.as_mut()] {
        end.unwrap().interface.as_mut().unwrap().kind = None;
    }
    let sentence = explain(&record).remove(0).would_pass.unwrap();
    assert_eq!(
        sentence,
        "this receive window is enough for 941 Mbit/s at an RTT of up to 1.82 ms"
    );
}

#[test]
fn several_streams_share_what_they_carry() {
    let plan = Plan {
        streams: 4,
        ..tcp()
    };
    // Each of the four carries a quarter.
    let traffic = Traffic {
        rate_bps: 4.0 * 143e6,
        ..window_limited()
    };
    let finding = verdict(&plan, &traffic);
    let sentence = finding.would_pass.clone().unwrap();
    assert!(
        sentence
            .starts_with("4 such receive windows are enough for 1.00 Gbit/s at an RTT of up to "),
        "{sentence}"
    );
    let longest = round_trip(&finding, "longest round trip for 1.00 Gbit/s").unwrap();
    assert!((longest - 4.0 * 1716.0).abs() < 80.0, "{longest}");
}

#[test]
fn a_random_loss_says_up_to_which_round_trip_it_allows_more() {
    let finding = verdict(&tcp(), &by_chance());
    assert_eq!(finding.id, "random-loss");
    let Some(sentence) = finding.would_pass.clone() else {
        panic!("{finding:#?}");
    };
    assert!(
        sentence.starts_with("this loss is low enough for 100 Mbit/s at an RTT of up to "),
        "{sentence}"
    );
    let longest = round_trip(&finding, "longest round trip for 100 Mbit/s").unwrap();
    // A higher rate only at a shorter round trip than the run's own 40 ms.
    assert!(longest > 100.0 && longest < 40_300.0, "{longest}");
}

#[test]
fn a_full_path_says_nothing_of_the_kind() {
    assert_eq!(verdict(&tcp(), &Traffic::default()).would_pass, None);
}
