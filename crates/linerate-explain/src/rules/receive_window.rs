//! `receive-window`: the receiver's window limited the sender.
//!
//! First cause: its share of the time budget is the largest, or at least 20 % and the bytes in flight
//! fill 70 % of the window or the window is below 256 KiB; no standing queue explains it, and the receiver
//! had read what it got. A note: at least 20 % beside another cause.

use std::fmt::Write as _;

use linerate_model::finding::Finding;
use linerate_model::remedy::Fix;
use linerate_model::units::Bytes;

use crate::advice;
use crate::draft::CaseDraft;
use crate::facts::case::Case;
use crate::facts::limit::{self, Limit};
use crate::words;
use crate::would_pass;

/// At this share of the most that autotuning may give, it gave all.
const AT_THE_BOUND: f64 = 0.8;

/// What limits after the remedy, where nothing else is known.
const NEXT: &str = "the receive window again, or the path if it carries less";

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let clock = case.budget()?.receive_window;
    let severity = limit::weight(case, Limit::ReceiveWindow, clock)?;
    let share = case.receive_window_share()?;
    let path = case.path();
    let draft = case
        .finding("receive-window", severity, sentence(case, share))
        .share(share)
        .sender(
            "rwnd_limited share of the plateau",
            case.clock_of_kernel(clock),
        )
        .sender("snd_wnd median, bytes", path.receive_window_bytes)
        .round_trips()
        .sender("ceiling window / rtt, bit/s", limit::ceiling_bps(case))
        .receiver("unread median, bytes", case.direction.unread_bytes)
        .rate()
        .would_pass(would_pass::window(
            case,
            "receive window",
            path.receive_window_bytes,
        ));
    advise(draft).done()
}

fn sentence(case: &Case<'_>, share: f64) -> String {
    let path = case.path();
    let mut text = format!(
        "The receive window of {} limited the rate {} of the time",
        case.receiving_host(),
        words::percent(share)
    );
    if let (Some(window), Some(rtt)) = (path.receive_window_bytes, path.rtt_us) {
        let each = if case.plan().streams > 1 {
            " for each stream"
        } else {
            ""
        };
        // Round trips of microseconds waver more than their samples tell: a ceiling that was passed is none.
        let ceiling = limit::ceiling_bps(case)
            .filter(|ceiling| case.rate().is_some_and(|rate| *ceiling >= rate))
            .map_or_else(String::new, |ceiling| {
                format!(": at most {}", words::rate(ceiling))
            });
        let _ = write!(
            text,
            " (median {}{each}, RTT {}{ceiling})",
            words::size(window),
            words::micros(rtt)
        );
    }
    if let Some(asked) = case.plan().window_bytes {
        let _ = write!(text, "; -w {} sets this limit: omit it", asked.as_option());
    } else if autotuning_bound(case).is_some() {
        text += "; autotuning has reached the tcp_rmem maximum";
    }
    if case.receiver().is_none() {
        let _ = write!(
            text,
            "; it is not known whether {} read too slowly: {}",
            case.receiving_host(),
            part_is_missing(case)
        );
    }
    text
}

/// The third value of `tcp_rmem`, where the window has come up to it (half of it is payload).
fn autotuning_bound(case: &Case<'_>) -> Option<u64> {
    let most = case.receiver()?.host.tcp_rmem?[2];
    let window = case.path().receive_window_bytes?;
    (case.plan().window_bytes.is_none() && window >= AT_THE_BOUND * most as f64 / 2.0)
        .then_some(most)
}

fn advise(draft: CaseDraft<'_>) -> CaseDraft<'_> {
    let case = draft.about;
    let flow = case.direction.flow;
    let Some(enough) = advice::enough_bytes(case, case.path().receive_window_bytes) else {
        return draft;
    };
    if case.plan().window_bytes.is_some() {
        let draft = advice::ask_for_more(draft, flow.receiver(), 0, NEXT);
        return if autotuning_reaches(case) {
            draft.again(advice::autotuned)
        } else {
            advice::ask_for(draft, enough)
        };
    }
    match autotuning_bound(case) {
        Some(_) => {
            let now = case.receiver().and_then(|end| end.host.tcp_rmem);
            let sizes = advice::three_values(now, enough);
            let draft = draft.remedy(flow.receiver(), Fix::ReceiveBuffer(sizes));
            advice::ask_for(advice::expect_wider(draft, now, enough, 0, NEXT), enough)
        }
        None => advice::ask_for(draft, enough),
    }
}

/// Whether autotuning may give the receiver more than the window that was asked for.
fn autotuning_reaches(case: &Case<'_>) -> bool {
    let asked = case.plan().window_bytes.map_or(0, Bytes::count);
    case.receiver()
        .and_then(|end| end.host.tcp_rmem)
        .is_none_or(|[_, _, most]| most / 2 > asked)
}

/// Why an end's part of the record is not there.
fn part_is_missing(case: &Case<'_>) -> String {
    if case.record().is_observation() {
        "its kernel was not observed; run `linerate observe` there".to_owned()
    } else if case.record().control.peer_software.is_some() {
        "its part of the record did not arrive".to_owned()
    } else {
        let peer = case.record().control.stock_peer();
        format!("a stock {peer} does not report it")
    }
}
