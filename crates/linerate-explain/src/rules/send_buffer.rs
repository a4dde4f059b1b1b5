//! `send-buffer`: the sender's own buffer limited it.
//!
//! First cause: its share of the time budget is the largest, or at least 20 % and the buffer is below
//! 256 KiB or half filled by bytes in flight; or bytes in flight stand at half of the
//! buffer or more (its size is counted with overhead) while they stay below 70 % of the congestion
//! window and of the receive window and nothing waits unsent; or more than the buffer is in flight at the peaks,
//! nothing waits unsent for half of the time, and the path, which carried far more in stretches, stands idle in
//! between. A note: at least 20 % beside another cause.

use std::fmt::Write as _;

use linerate_model::finding::{Finding, Severity};
use linerate_model::remedy::Fix;
use linerate_model::units::Bytes;

use crate::advice;
use crate::draft::CaseDraft;
use crate::facts::case::{Case, capital};
use crate::facts::limit::{self, Limit};
use crate::facts::loss::{self, Cause};
use crate::facts::repeats;
use crate::facts::stretches::Stretches;
use crate::words;
use crate::would_pass;

/// An autotuned buffer that limits has come up to this share of the most that it may get.
const OPEN_TO_AUTOTUNING: f64 = 0.9;
/// The rate that a path carried in stretches predicts its rate within this share.
const SURE: f64 = 0.25;
/// The kernel asks for room before it begins a segment, and then fills it: 64 KiB with segmentation offload
/// (`tcp_sendmsg_locked`, `sk_stream_memory_free`).
const PAST: u64 = 64 << 10;
/// What limits after the remedy, where nothing else is known.
const NEXT: &str = "the send buffer again, or the path or the receive window if they allow less";

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let budget = case.budget()?;
    let severity = limit::weight(case, Limit::SendBuffer, budget.send_buffer)?;
    if let Some(bursts) = case.bursts().filter(|_| severity == Severity::Limit) {
        return in_bursts(case, bursts);
    }
    let path = case.path();
    let share = case.send_buffer_share()?;
    let mut sentence = format!(
        "{}'s send buffer limited the rate {} of the time",
        capital(&case.sending_host()),
        words::percent(share)
    );
    if let (Some(flight), Some(buffer), Some(rtt)) =
        (path.in_flight_bytes, path.send_buffer_bytes, path.rtt_us)
    {
        let _ = write!(
            sentence,
            " ({} in flight of a buffer of {}, RTT {})",
            words::size(flight),
            words::size(buffer as f64),
            words::micros(rtt)
        );
    }
    if let Some(most) = fixed_by_its_program(case) {
        let _ = write!(
            sentence,
            "; its application probably set the size (SO_SNDBUF); autotuning could reach {}",
            words::size(most as f64)
        );
    }
    if let Some(asked) = case.plan().window_bytes {
        let _ = write!(
            sentence,
            "; -w {} sets this limit: omit it",
            asked.as_option()
        );
    }
    let draft = case
        .finding("send-buffer", severity, sentence)
        .share(share)
        .sender("sndbuf_limited share of the plateau", budget.send_buffer)
        .sender("in flight median, bytes", path.in_flight_bytes)
        .sender(
            "congestion window median, bytes",
            path.congestion_window_bytes,
        )
        .sender("snd_wnd median, bytes", path.receive_window_bytes)
        .sender("send buffer, bytes", path.send_buffer_bytes)
        .sender("rtt mean, µs", path.rtt_us)
        .rate()
        .would_pass(would_pass::window(case, "send buffer", None));
    advise(draft).done()
}

/// A sender that went past its buffer in bursts: the kernel adds to a segment that it split when sending without asking
/// whether there is room, so that a whole congestion window leaves at once, and then has a program wait until a third
/// of the buffer is free.
fn in_bursts(case: &Case<'_>, bursts: &Stretches) -> Option<Finding> {
    let path = case.path();
    let (buffer, rate) = (path.send_buffer_bytes?, case.rate()?);
    let idle = 1.0 - rate / bursts.carried_bps;
    let most = case.sender()?.host.tcp_wmem.map(|[_, _, most]| most);
    let why = match (case.plan().window_bytes, most) {
        (Some(asked), _) => format!("-w {}, ", asked.as_option()),
        (None, Some(most)) if buffer as f64 >= OPEN_TO_AUTOTUNING * most as f64 => {
            "the tcp_wmem maximum, ".to_owned()
        }
        _ => String::new(),
    };
    let sentence = format!(
        "{}'s send buffer ({why}{}) limited the rate: bursts of up to {} exceeded it, then the sender waited for \
         buffer space while the path was idle; {} on average, but {} at times",
        capital(&case.sending_host()),
        words::size(buffer as f64),
        words::size(bursts.peak_bytes),
        words::rate(rate),
        words::rate(bursts.carried_bps),
    );
    let draft = case
        .finding("send-buffer", Severity::Limit, sentence)
        .share(idle)
        .sender("send buffer, bytes", buffer)
        .sender("in flight at its peaks, bytes", bursts.peak_bytes)
        .sender("in flight median, bytes", path.in_flight_bytes)
        .sender(words::CARRIED, bursts.carried_bps)
        .sender(
            "share of the time with less in flight than fills the path",
            bursts.not_filled,
        )
        .round_trips()
        .rate();
    advise_after_bursts(draft, bursts).done()
}

fn advise_after_bursts<'a>(draft: CaseDraft<'a>, bursts: &Stretches) -> CaseDraft<'a> {
    let case = draft.about;
    if fixed_by_its_program(case).is_some() {
        return draft.again(|_| {});
    }
    let sender = case.direction.flow.sender();
    let each = bursts.peak_bytes / case.streams();
    let Some(enough) = advice::enough_bytes(case, Some(each)) else {
        return draft;
    };
    let chance = loss::cause(case) == Some(Cause::Chance);
    let loss = repeats::loss_bound_bps(case).filter(|bps| chance && *bps < bursts.carried_bps);
    let draft = match loss {
        Some(bps) => draft.expected(bps, SURE, "loss"),
        None => draft.expected(bursts.carried_bps, SURE, "the path"),
    };
    let now = case.sender().and_then(|end| end.host.tcp_wmem);
    let asked = case.plan().window_bytes.map(Bytes::count);
    if asked.is_some_and(|asked| now.is_none_or(|[_, _, most]| most / 2 > asked)) {
        return draft
            .remedy(sender, Fix::Window(None))
            .again(advice::autotuned);
    }
    draft
        .remedy(sender, Fix::SendBuffer(advice::three_values(now, enough)))
        .again(advice::autotuned)
}

/// What autotuning may give, where the buffer of a connection that was only watched stayed well below it although it
/// limited: then it was not autotuned.
fn fixed_by_its_program(case: &Case<'_>) -> Option<u64> {
    let [_, _, most] = case.sender()?.host.tcp_wmem?;
    let buffer = case.path().send_buffer_bytes?;
    (case.record().is_observation() && (buffer as f64) < OPEN_TO_AUTOTUNING * most as f64)
        .then_some(most)
}

fn advise(draft: CaseDraft<'_>) -> CaseDraft<'_> {
    let case = draft.about;
    // What is in flight made a queue in stretches: the path, not the next larger buffer, is what limits then.
    if let Some(stretches) = case
        .waits_for_room()
        .filter(|_| loss::standing_queue_us(case).is_some())
    {
        return advise_after_bursts(draft, stretches);
    }
    if fixed_by_its_program(case).is_some() {
        // A sysctl would change nothing for it.
        return draft.again(|_| {});
    }
    let sender = case.direction.flow.sender();
    let Some(enough) = advice::enough_bytes(case, case.path().in_flight_bytes) else {
        return draft;
    };
    let host = case.sender().map(|end| &end.host);
    let asked = case.plan().window_bytes.map(Bytes::count);
    let autotuning = host.and_then(|host| host.tcp_wmem).map(|[_, _, most]| most);
    if asked.is_some() && autotuning.is_none_or(|most| most / 2 > asked.unwrap_or(0)) {
        return advice::ask_for_more(draft, sender, PAST, NEXT).again(advice::autotuned);
    }
    let now = host.and_then(|host| host.tcp_wmem);
    let sizes = advice::three_values(now, enough);
    let draft = draft.remedy(sender, Fix::SendBuffer(sizes));
    let draft = advice::expect_wider(draft, now, enough, PAST, NEXT);
    advice::ask_for(draft, enough)
}
