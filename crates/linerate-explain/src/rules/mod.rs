//! One file a rule. A rule looks at one direction and says at most one thing about it.

mod asymmetric;
mod bimodal;
mod bufferbloat;
mod cannot_tell;
mod congested;
mod congestion_control;
mod early_slow_start_exit;
mod ecn;
mod ledger_imbalance;
mod mtu_black_hole;
mod network_loss;
mod path_change;
mod path_full;
mod policer;
mod provisioned;
mod random_loss;
mod rate_capped;
mod receive_window;
mod receiver_application;
mod receiver_cpu;
mod reordering;
mod send_buffer;
mod sender_application;
mod sender_cpu;
mod shaper;
mod slow_start;
mod small_mss;
mod stall;
mod udp_path_loss;
mod udp_receiver_drop;
mod udp_sender_short;
mod unstable;
mod virtualisation_limit;

use linerate_analysis::losses::{Episode, Losses};
use linerate_model::finding::{Finding, Severity};
use linerate_model::record::{EndRecord, Role};
use linerate_model::remedy::{BufferSizes, Fix};
use linerate_model::units::Bytes;

use crate::facts::case::{Case, Draft, Threads};
use crate::facts::limit::{self, Limit};
use crate::facts::loss::{self, Cause};
use crate::facts::response;
use crate::words;

/// A rule.
pub(crate) type Rule = fn(&Case<'_>) -> Option<Finding>;

/// All rules, each with the id of its findings. Their order decides between findings of equal rank.
pub(crate) const RULES: [(&str, Rule); 33] = [
    ("ledger-imbalance", ledger_imbalance::judge),
    ("mtu-black-hole", mtu_black_hole::judge),
    ("stall", stall::judge),
    ("udp-sender-short", udp_sender_short::judge),
    ("udp-receiver-drop", udp_receiver_drop::judge),
    ("udp-path-loss", udp_path_loss::judge),
    ("virtualisation-limit", virtualisation_limit::judge),
    ("sender-cpu", sender_cpu::judge),
    ("receiver-cpu", receiver_cpu::judge),
    ("receiver-application", receiver_application::judge),
    ("receive-window", receive_window::judge),
    ("send-buffer", send_buffer::judge),
    ("sender-application", sender_application::judge),
    ("reordering", reordering::judge),
    ("policer", policer::judge),
    ("congestion-control", congestion_control::judge),
    ("random-loss", random_loss::judge),
    ("network-loss", network_loss::judge),
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
    ("slow-start", slow_start::judge),
    ("asymmetric", asymmetric::judge),
    ("provisioned", provisioned::judge),
];

/// A cause that is not the first one is worth a note from this share of the time on.
const WORTH_A_NOTE: f64 = 0.20;

/// How much a cause matters: a limit where it is the first one, a note where it took a fifth of the
/// time beside another cause; nothing behind a full path, where it only bounds the queue.
fn weight(case: &Case<'_>, cause: Limit, share: f64) -> Option<Severity> {
    match case.limit {
        Some(limit) if limit == cause => Some(Severity::Limit),
        Some(Limit::ReceiveWindow | Limit::SendBuffer | Limit::Application)
            if share >= WORTH_A_NOTE && !case.next_door() && !idles(case, cause) =>
        {
            Some(Severity::Note)
        }
        Some(Limit::Network)
            if share >= WORTH_A_NOTE
                && !case.next_door()
                && !idles(case, cause)
                && !case.direction.link_full
                && limit::standing_queue_us(case).is_none() =>
        {
            Some(Severity::Note)
        }
        _ => None,
    }
}

/// Whether idling is no cause: a sender with a rate asked for idles by design, and so does each end of one
/// machine while the other computes.
fn idles(case: &Case<'_>, cause: Limit) -> bool {
    cause == Limit::Application && (case.asked().is_some() || case.one_host())
}

/// How the threads of an end spent the time: `computes 99 % of the time`.
fn computes(case: &Case<'_>, role: Role) -> Option<String> {
    Some(match case.threads(role).filter(Threads::waited) {
        Some(threads) => format!(
            "computes {} of the time and waited for a CPU {} of the time",
            words::percent(threads.computes),
            words::percent(threads.waits)
        ),
        None => format!(
            "computes {} of the time",
            words::percent(case.cpu_share(role)?)
        ),
    })
}

/// The run delay of an end's threads.
fn waits(case: &Case<'_>, role: Role) -> Option<f64> {
    case.threads(role).map(|threads| threads.waits)
}

/// Why an end's half of the record is not there.
fn half_is_missing(case: &Case<'_>) -> &'static str {
    if case.record().is_observation() {
        "its kernel was not watched; `linerate observe` there tells"
    } else if case.record().control.peer_software.is_some() {
        "its half of the record did not arrive"
    } else {
        "a stock iperf3 does not say"
    }
}

/// From this share of the segments on, sent again, a rate is held down: 1 in 10,000 (propose); below,
/// CUBIC at 10 ms still reaches gigabits.
const REPEATS_MATTER: f64 = 1e-4;

/// Fewer lost segments than these tell no share.
const FEW_LOST: u64 = 8;

/// A rate that the response function puts this many times higher was not held down by repeats: the function
/// takes each repeat for a loss event of its own and the mean round trip, and is good to a factor of 2.
const OUT_OF_REACH: f64 = 4.0;
/// A rate this many times what the function gives for the loss events, however many segments each lost, was
/// not held down by them either: a congestion control that heeds loss does not get there.
const ABOVE_ALL_REASON: f64 = 30.0;

/// What the congestion control reaches at a loss of `share` of the segments, bit/s, all streams of the
/// direction; infinite where it does not slow down for it, `None` where the kernel does not tell what that takes.
pub(crate) fn response_bps(case: &Case<'_>, share: f64) -> Option<f64> {
    let stream = case.sender()?.streams_of(case.direction.flow).next()?;
    let one = response::rate(
        stream.congestion.as_deref()?,
        case.path().mss_bytes? as f64,
        round_trip_s(case)?,
        share,
    );
    Some(one * f64::from(case.plan().streams.max(1)))
}

fn round_trip_s(case: &Case<'_>) -> Option<f64> {
    case.path()
        .rtt_us
        .filter(|rtt| *rtt > 0.0)
        .map(|rtt| rtt / 1e6)
}

/// Whether as many repeats would hold the congestion control down to about this rate. Where the kernel does
/// not tell what that takes, they may.
fn in_reach(case: &Case<'_>, share: f64) -> bool {
    let known = || {
        let round_trip_s = round_trip_s(case)?;
        // Losses of one round trip are one event to a congestion control.
        let events = |losses: &Losses| -> f64 {
            let rounds = |episode: &Episode| {
                1.0 + episode.to_ns.saturating_sub(episode.from_ns) as f64 / (round_trip_s * 1e9)
            };
            losses.episodes.iter().map(rounds).sum()
        };
        let events = case
            .losses()
            .map(|streams| streams.iter().map(events).sum::<f64>())
            .zip(case.path().data_segments.filter(|all| *all > 0))
            .map_or(share, |(events, all)| (events / all as f64).min(share));
        let rate = case.rate()?;
        Some(
            response_bps(case, share)? <= OUT_OF_REACH * rate
                && rate <= ABOVE_ALL_REASON * response_bps(case, events)?,
        )
    };
    known().unwrap_or(true)
}

/// Whether a path without a queue held a rate down by what it made the sender repeat.
fn repeats_explain(case: &Case<'_>, share: Option<f64>) -> bool {
    case.limit == Some(Limit::Network)
        && !case.udp()
        && !case.without_network()
        && !case.direction.link_full
        && limit::standing_queue_us(case).is_none()
        && share.is_some_and(|share| share >= REPEATS_MATTER && in_reach(case, share))
}

/// Whether a path without a queue lost so much that loss explains its rate.
fn loss_explains(case: &Case<'_>) -> bool {
    repeats_explain(case, case.lost_share())
        && !reordering_explains(case)
        && !matches!(loss::cause(case), Some(Cause::Queue { .. }))
}

/// What the congestion control reaches at the loss that was seen, bit/s, all streams of the direction; `None`
/// where it lost too little to tell.
pub(crate) fn loss_bound_bps(case: &Case<'_>) -> Option<f64> {
    let share = case.lost_share().filter(|share| *share >= REPEATS_MATTER)?;
    let lost = case.path().retransmits?.saturating_sub(case.needless());
    if lost < FEW_LOST {
        return None;
    }
    response_bps(case, share).filter(|bps| bps.is_finite())
}

/// What a rate that is foretold may be off by, and for how many deviations of chance: nine in ten.
const FORETOLD_WITHIN: f64 = 0.15;
const NINE_IN_TEN: f64 = 1.645;

/// Losses that foretell the rate of another run which sees `times` as many, for nine in ten within 15 %.
///
/// The mean rate over n random losses lies about the long run's with a deviation of e/√n of it, where the rate goes with
/// the loss's odds to the power −e ([`loss_exponent`]): that is what the losses' number alone does, and simulated
/// congestion avoidance at e = ½ gave no more. The other run's deviation comes on top.
fn enough_losses(exponent: f64, times: f64) -> f64 {
    (NINE_IN_TEN * exponent / FORETOLD_WITHIN).powi(2) * (1.0 + 1.0 / times)
}

/// Whether so many were measured.
fn foretells(case: &Case<'_>, exponent: f64, times: f64) -> bool {
    losses_measured(case) as f64 >= enough_losses(exponent, times)
}

/// By which power of the loss's odds the rate falls, where they are as they were: ½ to ¾.
fn loss_exponent(case: &Case<'_>) -> f64 {
    const A_LITTLE_LESS: f64 = 0.9;
    response_ratio(case, A_LITTLE_LESS)
        .map_or(CUBIC_EXPONENT, |ratio| -ratio.ln() / A_LITTLE_LESS.ln())
}

/// That of CUBIC where it is not as slow as Reno: RFC 9438 §5.1.
const CUBIC_EXPONENT: f64 = 0.75;

/// The part of the losses that came while the rate was measured and not behind a queue, each of one round trip or less.
fn losses_measured(case: &Case<'_>) -> usize {
    let counted = || {
        let begin = case.sender()?.start_ns.plus(case.plan().omit_ns).0;
        let measured = |one: &Losses| {
            let episodes = one.episodes.iter();
            episodes
                .filter(|episode| episode.from_ns >= begin && !behind_a_queue(one, episode))
                .count()
        };
        Some(case.losses()?.iter().map(measured).sum())
    };
    counted().unwrap_or(0)
}

/// From this multiple of the least round trip on, a queue stood before a loss.
const QUEUE_RATIO: f64 = 1.25;

fn behind_a_queue(losses: &Losses, episode: &Episode) -> bool {
    episode.rtt_us >= QUEUE_RATIO * losses.min_rtt_us
}

/// How many times the rate the response function gives where the loss is `part` of what it was.
fn response_ratio(case: &Case<'_>, part: f64) -> Option<f64> {
    let share = case.lost_share().filter(|share| *share > 0.0)?;
    let ratio = response_bps(case, share * part)? / response_bps(case, share)?;
    ratio.is_finite().then_some(ratio)
}

/// How many of the repeats the receiver got twice, as a part of a sentence; empty where it got none.
fn received_twice(case: &Case<'_>) -> String {
    match case.needless() {
        0 => String::new(),
        needless => format!(", {} of them received twice", words::count(needless)),
    }
}

/// The round trips, mean and least, with `least` as the word for the latter; `None` where they are not known.
fn round_trips(case: &Case<'_>, least: &str) -> Option<String> {
    let (mean, shortest) = case.round_trips()?;
    Some(format!(
        "RTT {}, {least} {}",
        words::micros(mean),
        words::micros(shortest)
    ))
}

/// Whether most of what was sent again had arrived: the segments overtook one another.
fn reordering_explains(case: &Case<'_>) -> bool {
    let again = case.path().retransmits.unwrap_or(0);
    repeats_explain(case, case.repeated_share()) && case.needless().saturating_mul(2) >= again
}

/// Whether what the sender repeated, for good reason or not, explains its rate.
fn repeats_held_it(case: &Case<'_>) -> bool {
    loss_explains(case) || reordering_explains(case)
}

/// Whether another finding is the answer for a path that seems full and for a rate that wavers: a path that is full
/// at two levels, somebody else's, one that stepped, or one that a congestion control does not fill or fills late.
fn wavers_for_a_reason(case: &Case<'_>) -> bool {
    shaper::judge(case).is_some()
        || congested::seen(case).is_some()
        || bimodal::seen(case).is_some()
        || path_change::explains(case)
        || congestion_control::explains(case)
        || (case.limit == Some(Limit::Network) && early_slow_start_exit::filled_late(case))
}

/// Whether the path is full.
fn path_is_full(case: &Case<'_>) -> bool {
    path_full::holds(case).is_some()
}

/// Whether `udp-sender-short` speaks.
fn sender_is_short(case: &Case<'_>) -> bool {
    udp_sender_short::judge(case).is_some()
}

/// One more stream is one more thread, where the host has a core for it.
fn another_thread(case: &Case<'_>, draft: Draft, end: Option<&EndRecord>) -> Draft {
    let cores = end.and_then(|end| end.host.cpus).unwrap_or(0);
    let more = case.plan().streams.saturating_mul(2).min(128);
    if cores >= u32::from(more) {
        draft.next(case.again(|plan| plan.streams = more))
    } else {
        draft
    }
}

/// The three values of `tcp_rmem` or `tcp_wmem` that leave room for `bytes` of payload; half of a buffer is
/// reckoned as overhead.
fn three_values(now: Option<[u64; 3]>, bytes: u64) -> BufferSizes {
    BufferSizes {
        first: now.map(|[least, initial, _]| [least, initial]),
        most: bytes.saturating_mul(2),
    }
}

/// Bytes that a buffer holds, with those that lie past it.
fn held(buffer: u64, past: u64) -> f64 {
    buffer.saturating_add(past).max(1) as f64
}

/// The rate to expect with the three values of [`three_values`] in place of `now`: in proportion to the largest and
/// the bytes that lie `past` it in either case.
fn expect_wider(
    case: &Case<'_>,
    draft: Draft,
    now: Option<[u64; 3]>,
    bytes: u64,
    past: u64,
    bound: &'static str,
) -> Draft {
    let factor = now.map(|[_, _, most]| held(bytes.saturating_mul(2), past) / held(most, past));
    let wider = factor
        .filter(|factor| *factor > 1.0)
        .and_then(|factor| limit::widened(case, factor, bound));
    match wider {
        Some((rate, then)) => draft.expected(rate, 0.15, then),
        None => draft,
    }
}

/// A window of this many times the one that was asked for is worth asking for.
const WORTH_ASKING: f64 = 1.5;

/// The remedy where a window was asked for (`-w`): a larger one, in proportion to which the rate grows (with the bytes
/// that lie `past` it), where both hosts grant it; else none, since autotuning is not bound by what a program may ask for.
fn ask_for_more(
    case: &Case<'_>,
    draft: Draft,
    host: Role,
    past: u64,
    bound: &'static str,
) -> Draft {
    let limits = [
        case.receiver().and_then(|end| end.host.rmem_max),
        case.sender().and_then(|end| end.host.wmem_max),
    ];
    let granted = limits.into_iter().flatten().min();
    let asked = case.plan().window_bytes.map(Bytes::count);
    let more = || {
        let granted = granted.filter(|_| limits.iter().all(Option::is_some))?;
        let now = asked.map(|asked| asked.min(granted))?;
        let wanted = limit::enough_bytes(case, Some(now as f64))?.min(granted);
        // The kernel doubles what is asked for.
        let factor = held(wanted.saturating_mul(2), past) / held(now.saturating_mul(2), past);
        let (rate, then) = limit::widened(case, factor, bound)?;
        (factor >= WORTH_ASKING).then_some((wanted, rate, then))
    };
    match more() {
        Some((wanted, rate, then)) => draft
            .remedy(host, Fix::Window(Some(Bytes(wanted))))
            .expected(rate, 0.15, then),
        None => draft.remedy(host, Fix::Window(None)),
    }
}

/// Whether a stall shows; asked before the limit is known, on which a stall does not depend.
pub(crate) fn stalled(case: &Case<'_>) -> bool {
    stall::judge(case).is_some()
}
