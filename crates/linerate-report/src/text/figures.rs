//! Rates, loss, delay, time and CPU.

use linerate_model::plan::Protocol;
use linerate_model::record::Role;
use linerate_model::units::{BitRate, Bytes, Nanos, three_digits};

use super::layout::{self, Page};
use super::style::Style;
use super::{delay, limits, way};
use crate::view::{CpuView, DirectionView, Figures, MeasuredAt, RunView};
use crate::words;

pub(super) fn write(page: &mut Page, view: &RunView, style: Style) {
    if !view.client.known && !view.server.known {
        return;
    }
    let several = view.directions.len() > 1;
    for direction in &view.directions {
        if several {
            page.line(&layout::capital(way(direction.flow)));
        }
        of_direction(page, view, direction);
        if view.plan.protocol == Protocol::Tcp {
            limits::time(page, style, direction);
        }
        limits::rate(page, style, direction);
    }
    if several
        && let (Some(rate), Some(bytes)) =
            (view.summary.figures.goodput_bps, view.summary.figures.bytes)
    {
        page.line("Both directions");
        page.entry(
            "Goodput",
            &format!("{} together, {}", words::rate(rate), amount(bytes)),
        );
    }
    cpu_of_both(page, view);
}

/// CPU time of both ends, where it is known.
pub(super) fn cpu_of_both(page: &mut Page, view: &RunView) {
    let cpu: Vec<String> = [
        (Role::Client, &view.summary.cpu.client),
        (Role::Server, &view.summary.cpu.server),
    ]
    .into_iter()
    .filter_map(|(role, used)| Some(format!("{} {}", layout::role(role), cpu(used.as_ref()?))))
    .collect();
    if !cpu.is_empty() {
        page.entry("CPU", &cpu.join(", "));
    }
}

fn of_direction(page: &mut Page, view: &RunView, direction: &DirectionView) {
    let figures = &direction.figures;
    page.entry("Goodput", &goodput(figures));
    if let Some(whole) = whole_run(figures) {
        page.entry("Whole run", &whole);
    }
    delivery(page, view, direction);
}

/// What a direction's sender did, and how the path took it.
pub(super) fn delivery(page: &mut Page, view: &RunView, direction: &DirectionView) {
    let figures = &direction.figures;
    if view.plan.protocol == Protocol::Udp {
        if let Some(sent) = sent(view, figures) {
            page.entry("Sent", &sent);
        }
        if let Some(jitter) = direction.jitter_ns {
            page.entry("Jitter", &format!("{} (RFC 3550, smoothed)", Nanos(jitter)));
        }
        if let Some(delays) = &direction.delay {
            page.entry("Delay", &delay::delay(delays));
        }
        return;
    }
    page.entry("Retransmits", &repeats(view, direction));
}

pub(crate) fn goodput(figures: &Figures) -> String {
    let Some(rate) = figures.goodput_bps else {
        return match figures.measured_at {
            Some(MeasuredAt::SendingApplication) => {
                "not known: only the sender was measured, and what was sent may not have arrived"
                    .to_owned()
            }
            _ => "not known: nothing was measured".to_owned(),
        };
    };
    let place = match figures.measured_at {
        Some(MeasuredAt::ReceivingApplication) => " at the receiving application",
        Some(MeasuredAt::ReceivingApplicationToldByPeer) => {
            ", from the total that the stock receiver reported"
        }
        Some(MeasuredAt::SendingKernelAcknowledged) => {
            " acknowledged, at the sending kernel (a stock receiver reports no samples)"
        }
        Some(MeasuredAt::SendingApplication) | None => "",
    };
    let unsteady = match (&figures.unsteady_reason, figures.steady) {
        (Some(reason), Some(false)) => format!("; not steady: {reason}"),
        (Some(reason), _) => format!("; {reason}"),
        (None, _) => String::new(),
    };
    format!(
        "{}{}{place}{unsteady}",
        words::rate(rate),
        interval(figures)
    )
}

/// ` (95 % interval 94.0 to 94.2 Mbit/s)`, where there is one.
pub(crate) fn interval(figures: &Figures) -> String {
    let interval = figures.goodput_low_bps.zip(figures.goodput_high_bps);
    words::with(interval, |(low, high)| {
        format!(" (95 % interval {})", words::rates(low, high))
    })
}

pub(crate) fn whole_run(figures: &Figures) -> Option<String> {
    let (bytes, span) = figures.bytes.zip(figures.span_ns)?;
    let rate = whole_run_rate(figures);
    let ramp = match figures.ramp_ns {
        Some(0) => ", no ramp".to_owned(),
        Some(ramp) => format!(", ramp {}", words::seconds(ramp)),
        None => String::new(),
    };
    Some(format!(
        "{rate}{} in {}{ramp}",
        amount(bytes),
        words::seconds(span)
    ))
}

/// `95.3 Mbit/s, `, where it is known.
pub(crate) fn whole_run_rate(figures: &Figures) -> String {
    let rate = figures.whole_run_bps.map(words::rate);
    words::with(rate, |rate| format!("{rate}, "))
}

fn amount(bytes: u64) -> String {
    if bytes < 1024 {
        return Bytes(bytes).to_string();
    }
    format!("{} ({} bytes)", Bytes(bytes), words::count(bytes))
}

pub(crate) fn sent(view: &RunView, figures: &Figures) -> Option<String> {
    let sent = words::rate(figures.sent_bps?);
    let all = |rate: BitRate| rate.0.saturating_mul(u64::from(view.plan.streams));
    let asked = view.plan.rate_bps.map(|rate| words::rate(all(rate)));
    let asked = asked.unwrap_or_else(|| "no rate limit".to_owned());
    Some(format!(
        "{sent} by the sending application, {asked} requested"
    ))
}

/// Retransmits and round trips of a direction.
pub(crate) fn repeats(view: &RunView, direction: &DirectionView) -> String {
    let figures = &direction.figures;
    let remark = match (figures.retransmits, figures.retransmit_share) {
        (Some(again), Some(_)) => needless(figures, again),
        (Some(_), None) if !view.end(direction.flow.sender()).known => {
            ", as reported by the stock sender".to_owned()
        }
        _ => String::new(),
    };
    format!("{}{remark}{}", again(figures), round_trips(figures))
}

/// `63 of 82,012 segments (0.077 %)`.
pub(crate) fn again(figures: &Figures) -> String {
    let all = figures.segments.zip(figures.retransmit_share);
    words::known(figures.retransmits, |again| match all {
        Some((all, share)) => format!(
            "{} of {} segments ({})",
            words::count(again),
            words::count(all),
            words::percent(share)
        ),
        None => format!("{} segments", words::count(again)),
    })
}

/// Of the retransmits, those that the receiver had already.
fn needless(figures: &Figures, again: u64) -> String {
    match figures.received_twice {
        Some(twice) if twice > again => format!(
            "; {} duplicates received: the path duplicates packets",
            words::count(twice)
        ),
        Some(twice) if twice > 0 => format!(", {} of them duplicates (DSACK)", words::count(twice)),
        _ => String::new(),
    }
}

/// `; RTT mean 41.0 ms, minimum 10.1 ms`.
pub(crate) fn round_trips(figures: &Figures) -> String {
    let [mean, least] = [figures.rtt_us, figures.min_rtt_us].map(|us| us.map(words::micros));
    match (mean, least) {
        (Some(mean), Some(least)) => format!("; RTT mean {mean}, minimum {least}"),
        (Some(mean), None) => format!("; RTT mean {mean}"),
        (None, _) => "; RTT not known".to_owned(),
    }
}

pub(crate) fn cpu(used: &CpuView) -> String {
    let share = used.core_share.map(words::percent);
    let share = share.map(|share| format!("{share} of a core"));
    let told = words::when(used.told_by_peer, ", self-reported");
    match (used.seconds_per_gigabyte, share) {
        (Some(each), Some(share)) => format!("{} s/GB ({share}{told})", three_digits(each)),
        (Some(each), None) => format!("{} s/GB", three_digits(each)),
        (None, Some(share)) => format!("{share}{told}"),
        (None, None) => "not known".to_owned(),
    }
}
