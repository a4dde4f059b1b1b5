//! One file a rule. A rule looks at the facts of one direction and says at most one thing about it. It knows no other
//! rule: what is not said beside what stands in [`suppression`].

mod asymmetric;
mod bimodal;
mod bufferbloat;
mod cannot_tell;
mod checksum;
mod congested;
mod congestion_control;
mod cpu;
mod disk_read;
mod disk_write;
mod early_slow_start_exit;
mod ecn;
mod ledger_imbalance;
mod mtu_black_hole;
mod network_loss;
mod no_sack;
mod path_change;
mod path_full;
mod policer;
mod provisioned;
mod random_loss;
mod rate_capped;
mod receive_window;
mod receiver_application;
mod reordering;
mod send_buffer;
mod sender_application;
mod serial_copy;
mod shaper;
mod slow_start;
mod small_mss;
mod source_cached;
mod stall;
mod suppression;
mod udp_path_loss;
mod udp_receiver_drop;
mod udp_sender_short;
mod unstable;
mod virtualisation_limit;
mod working_latency;

use linerate_model::finding::Finding;

use crate::facts::case::Case;

/// Judges the facts of one direction; `None` = there is nothing to report.
type Rule = fn(&Case<'_>) -> Option<Finding>;

/// All rules, each with the id of its findings. Their order decides between findings of equal rank.
pub(crate) const RULES: [(&str, Rule); 40] = [
    ("ledger-imbalance", ledger_imbalance::judge),
    ("checksum", checksum::judge),
    ("source-cached", source_cached::judge),
    ("disk-read", disk_read::judge),
    ("disk-write", disk_write::judge),
    ("serial-copy", serial_copy::judge),
    ("mtu-black-hole", mtu_black_hole::judge),
    ("stall", stall::judge),
    ("udp-sender-short", udp_sender_short::judge),
    ("udp-receiver-drop", udp_receiver_drop::judge),
    ("udp-path-loss", udp_path_loss::judge),
    ("virtualisation-limit", virtualisation_limit::judge),
    ("sender-cpu", cpu::sender),
    ("receiver-cpu", cpu::receiver),
    ("receiver-application", receiver_application::judge),
    ("receive-window", receive_window::judge),
    ("send-buffer", send_buffer::judge),
    ("sender-application", sender_application::judge),
    ("reordering", reordering::judge),
    ("policer", policer::judge),
    ("congestion-control", congestion_control::judge),
    ("random-loss", random_loss::judge),
    ("network-loss", network_loss::judge),
    ("no-sack", no_sack::judge),
    ("early-slow-start-exit", early_slow_start_exit::judge),
    ("shaper", shaper::judge),
    ("ecn", ecn::judge),
    ("congested", congested::judge),
    ("path-change", path_change::judge),
    ("bimodal", bimodal::judge),
    ("unstable", unstable::judge),
    ("rate-capped", rate_capped::judge),
    ("path-full", path_full::judge),
    ("cannot-tell", cannot_tell::judge),
    ("small-mss", small_mss::judge),
    ("bufferbloat", bufferbloat::judge),
    ("working-latency", working_latency::judge),
    ("slow-start", slow_start::judge),
    ("asymmetric", asymmetric::judge),
    ("provisioned", provisioned::judge),
];

/// What the rules say of a direction, in their order.
pub(crate) fn findings(case: &Case<'_>) -> Vec<Finding> {
    let found: Vec<Finding> = RULES.iter().filter_map(|(_, rule)| rule(case)).collect();
    let unsaid: Vec<bool> = found
        .iter()
        .map(|finding| suppression::unsaid(case, finding, &found))
        .collect();
    let said = found.into_iter().zip(unsaid).filter(|(_, unsaid)| !unsaid);
    said.map(|(finding, _)| case.within_the_line(finding))
        .collect()
}
