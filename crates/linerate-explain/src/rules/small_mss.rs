//! `small-mss`: segments are so small that the same loss, or the same CPU, carries less.
//!
//! Segments below 1000 bytes, on a path that loss without a queue limits (the rate is in proportion to the
//! segment, whatever the congestion control) or where a CPU limits. On a path that is full small segments cost
//! only their headers, and the rule is silent.

use linerate_model::finding::{Finding, Severity};
use linerate_model::record::Role;
use linerate_model::remedy::Fix;

use crate::facts::case::{Case, capital};
use crate::facts::limit::Limit;
use crate::facts::repeats;
use crate::words;

/// IPv6 promises 1280 bytes to everybody, which leave 1220 for a segment; tunnels in tunnels 1100 or so.
const SMALL: u64 = 1000;
/// The MTU of Ethernet, bytes.
const ETHERNET: u32 = 1500;
/// Bytes that headers of IP and TCP take, with and without options.
const HEADERS: std::ops::RangeInclusive<u64> = 40..=120;
/// What 1500 bytes leave with timestamps.
const USUAL: f64 = 1448.0;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let mss = case
        .path()
        .mss_bytes
        .filter(|mss| (1..SMALL).contains(mss))?;
    let cpu = matches!(case.limit, Some(Limit::SenderCpu | Limit::ReceiverCpu));
    let loss = repeats::loss_explains(case);
    if case.udp() || case.one_host() && !loss || !(loss || cpu) {
        return None;
    }
    let why = if loss {
        "at the same loss and RTT the rate grows with them"
    } else {
        "each of them costs about as much CPU as a large one"
    };
    let asked = case.plan().mss_bytes;
    let clamped = clamping_end(case, mss);
    let whence = match (asked, clamped) {
        (Some(asked), _) => format!("because of -M {asked}"),
        (None, Some(role)) => format!("because of the MTU of {}'s interface", case.host(role)),
        (None, None) => "because of an MTU or a clamped MSS on the path".to_owned(),
    };
    let sentence = format!(
        "{} sends segments of {}: {why}; {whence}",
        capital(&case.sending_host()),
        words::size(mss as f64)
    );
    let path_mtu = case
        .sender()
        .and_then(|end| end.streams_of(case.direction.flow).next())
        .and_then(|stream| stream.path_mtu_bytes);
    let predicts = loss && repeats::predicts(case, repeats::loss_exponent(case), 1.0);
    let draft = case
        .finding("small-mss", Severity::Note, sentence)
        .sender("segment size, bytes", mss)
        .sender("path MTU, bytes", path_mtu)
        .rate();
    let draft = match (asked, clamped) {
        (Some(_), _) => draft
            .sender_remedy(Fix::SegmentSize(None))
            .again(|plan| plan.mss_bytes = None),
        (None, Some(role)) => draft.remedy(role, Fix::Mtu(ETHERNET)),
        (None, None) => draft,
    };
    if !predicts {
        return draft.done();
    }
    draft
        .expected(case.rate()? * USUAL / mss as f64, 0.3, "the same loss")
        .done()
}

/// The end whose interface's MTU leaves no more than segments of `mss` bytes, and less than Ethernet carries.
fn clamping_end(case: &Case<'_>, mss: u64) -> Option<Role> {
    let mtu = |role: &Role| {
        let interface = case.record().end(*role)?.interface.as_ref()?;
        Some((interface.mtu_bytes?, *role))
    };
    let ends = [Role::Client, Role::Server];
    let (least, role) = ends.iter().filter_map(mtu).min_by_key(|(mtu, _)| *mtu)?;
    // Headers of IPv4 or IPv6 and TCP, with options.
    let fits = u64::from(least)
        .checked_sub(mss)
        .is_some_and(|headers| HEADERS.contains(&headers));
    (least < ETHERNET && fits).then_some(role)
}
