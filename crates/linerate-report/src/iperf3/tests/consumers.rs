//! What pScheduler's parser and `iperf3_exporter` read is there.

use linerate_model::plan::{Direction, Plan};
use linerate_model::record::Role;
use linerate_testing::fixture::{Traffic, against_stock};

use super::stage::{document, plan, pointed, record, sctp_plan, udp_plan};

fn every_plan() -> Vec<Plan> {
    let directions = [Direction::Send, Direction::Receive, Direction::Both];
    directions
        .into_iter()
        .flat_map(|direction| {
            [plan(), udp_plan(), sctp_plan()].map(|plan| pointed(plan, direction))
        })
        .collect()
}

#[test]
fn pscheduler_finds_what_it_reads() {
    for plan in every_plan() {
        for stock in [false, true] {
            let ours = record(&plan, Role::Client, Traffic::default());
            let ours = document(&if stock {
                against_stock(ours, Role::Server)
            } else {
                ours
            });
            assert!(ours.get("error").is_none());
            for interval in ours["intervals"].as_array().unwrap() {
                assert!(interval["streams"].is_array() && interval["sum"].is_object());
            }
            let end = ours["end"].as_object().unwrap();
            assert!(end.contains_key("sum_sent") || end.contains_key("sum"));
            for key in ["start", "end", "seconds", "bytes", "bits_per_second"] {
                assert!(end["sum_sent"][key].is_number(), "{key}");
            }
            for stream in end["streams"].as_array().unwrap() {
                let end = stream.get("udp").or(stream.get("sender")).unwrap();
                assert!(end["socket"].is_number());
            }
        }
    }
}

#[test]
fn the_exporter_finds_what_it_reads() {
    for plan in every_plan() {
        let end = document(&record(&plan, Role::Client, Traffic::default()))["end"].clone();
        for sum in ["sum_sent", "sum_received"] {
            for key in ["seconds", "bytes", "bits_per_second"] {
                assert!(
                    end[sum][key].as_f64().is_some_and(|value| value > 0.0),
                    "{sum}.{key}"
                );
            }
        }
        match plan.protocol {
            linerate_model::plan::Protocol::Tcp => assert!(end["sum_sent"]["retransmits"].is_u64()),
            linerate_model::plan::Protocol::Sctp => {
                assert!(
                    end["sum_sent"].get("retransmits").is_none(),
                    "nobody counts them"
                );
            }
            linerate_model::plan::Protocol::Udp => {
                for key in [
                    "jitter_ms",
                    "lost_packets",
                    "packets",
                    "lost_percent",
                    "bytes",
                    "seconds",
                ] {
                    assert!(end["sum"][key].is_number(), "{key}");
                }
            }
        }
    }
}
