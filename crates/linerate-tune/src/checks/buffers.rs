//! Buffers and windows: T01, T02, T03, T06, T11, T13.

use linerate_model::audit::Role;
use linerate_model::units::{BitRate, Bytes, whole};

use crate::case::{Advice, Answer, Case, GREATEST_BUFFER, GREATEST_WINDOW, does_not_apply, holds};

const RMEM: &str = "net.ipv4.tcp_rmem";
const WMEM: &str = "net.ipv4.tcp_wmem";

/// What a flow needs, in words: `10.0 Gbit/s over 60.0 ms, 71.5 MiB on the way`.
fn need(case: &Case<'_>) -> Result<String, String> {
    Ok(format!(
        "{} over {}, {} on the way",
        case.flow_rate()?,
        case.rtt()?,
        Bytes(case.flow_product()?)
    ))
}

/// The greatest receive buffer that is recommended: 2·BDP/ρ, with room for the window to grow past what is on
/// the way while lost segments are sent again.
fn wanted_receive(case: &Case<'_>) -> Result<u64, String> {
    let (_, ratio) = case.ratio()?;
    let product = case.flow_product()?.min(GREATEST_WINDOW) as f64;
    Ok(whole(2.0 * product / ratio).min(GREATEST_BUFFER))
}

/// T01
pub(crate) fn receive(case: &Case<'_>) -> Answer {
    let values = case.triple(RMEM)?;
    let most = values[2];
    let (first, learned) = case.ratio()?;
    let product = case.flow_product()?;
    let window = most as f64 * learned;
    let read = format!("tcp_rmem[2] is {}", Bytes(most));
    if window >= product.min(GREATEST_WINDOW) as f64 {
        let later = if (most as f64 * first) < product as f64 {
            "; the window grows to it once the kernel has learned how full packets are"
        } else {
            ""
        };
        return holds(format!("{read}, enough for {}{later}", need(case)?));
    }
    let value = wanted_receive(case)?;
    Advice::new(format!(
        "{read}: the receive window lets a flow have at most {} of {} at {}",
        case.rate_of(window)?,
        case.flow_rate()?,
        case.rtt()?
    ))
    .change(
        RMEM,
        Some(words(values)),
        words([values[0], values[1], value]),
        format!(
            "2 × {} on the way / {learned} of the buffer that is window",
            Bytes(product)
        ),
    )
    .fires()
}

/// T02
pub(crate) fn send(case: &Case<'_>) -> Answer {
    let values = case.triple(WMEM)?;
    let most = values[2];
    let product = case.flow_product()?;
    let read = format!("tcp_wmem[2] is {}", Bytes(most));
    let twice = product.saturating_mul(2).min(GREATEST_BUFFER);
    if most >= twice {
        return holds(format!("{read}, enough for {}", need(case)?));
    }
    let bbr = case
        .text(super::tcp::CONTROL)
        .is_ok_and(|name| name.starts_with("bbr"));
    // BBR keeps up to two products in flight, and what was lost besides (cwnd_gain 2).
    let times = if bbr { 3 } else { 2 };
    let value = product.saturating_mul(times).min(GREATEST_BUFFER);
    // The buffer holds what was sent and is not acknowledged; it bounds what is on the way by itself.
    let (sentence, severity) = if most < product {
        let rate = case.rate_of(most as f64)?;
        let sentence = format!(
            "{read}: it lets a flow have at most {rate} of {} at {}",
            case.flow_rate()?,
            case.rtt()?
        );
        (sentence, 1)
    } else {
        let sentence = format!(
            "{read}: it carries {}, and leaves less than that again for segments that are sent twice",
            need(case)?
        );
        (sentence, 3)
    };
    Advice::new(sentence)
        .severity(severity)
        .change(
            WMEM,
            Some(words(values)),
            words([values[0], values[1], value]),
            format!("{times} × {} on the way", Bytes(product)),
        )
        .fires()
}

/// T03
pub(crate) fn fixed(case: &Case<'_>) -> Answer {
    let product = case.flow_product()?;
    let (ratio, _) = case.ratio()?;
    // The kernel doubles what is asked for (SO_RCVBUF, net/core/sock.c), so X gives a window of 2ρX.
    let least = whole(product as f64 / (2.0 * ratio));
    let enough = whole(product as f64 / ratio).min(GREATEST_BUFFER);
    let keys = ["net.core.rmem_max", "net.core.wmem_max"];
    let mut small = Vec::new();
    for key in keys {
        let value = case.number(key)?;
        if value < least {
            small.push((key, value));
        }
    }
    if small.is_empty() {
        return holds(format!(
            "rmem_max and wmem_max let an application ask for the {} that a flow needs",
            Bytes(least)
        ));
    }
    let asked = case
        .target
        .fixed_buffers
        .or((case.target.role == Role::Measurement).then_some(true));
    match asked {
        Some(true) => {}
        Some(false) => return does_not_apply("applications leave their buffers to the kernel"),
        None => {
            return Err(format!(
                "{} is below the {} that an application which sets its own buffers would need; whether one does is not known (--fixed-buffers; autotuning is not bound by it)",
                small
                    .iter()
                    .map(|(key, value)| format!("{key} ({})", Bytes(*value)))
                    .collect::<Vec<_>>()
                    .join(" and "),
                Bytes(least)
            ));
        }
    }
    let names: Vec<String> = small
        .iter()
        .map(|(key, value)| format!("{key} is {}", Bytes(*value)))
        .collect();
    let mut advice = Advice::new(format!(
        "{}: an application that sets its buffers gets less than {}",
        names.join(" and "),
        need(case)?
    ));
    for (key, value) in small {
        advice = advice.change(
            key,
            Some(value.to_string()),
            enough.to_string(),
            format!("{} on the way / {ratio}", Bytes(product)),
        );
    }
    advice.fires()
}

/// T06
pub(crate) fn window(case: &Case<'_>) -> Answer {
    let product = case.flow_product()?;
    if product <= GREATEST_WINDOW {
        return holds(format!("{}: TCP's greatest window is 1 GiB", need(case)?));
    }
    let all = case.target.product().map_or(0, Bytes::count);
    let flows = all.div_ceil(GREATEST_WINDOW);
    Advice::new(format!(
        "{}: TCP's greatest window of 1 GiB lets a flow have at most {}",
        need(case)?,
        case.rate_of(GREATEST_WINDOW as f64)?
    ))
    .change(
        "-P",
        Some(case.target.flows.to_string()),
        flows.to_string(),
        format!("{} on the way / 1 GiB", Bytes(all)),
    )
    .fires()
}

/// T11
pub(crate) fn ancillary(case: &Case<'_>) -> Answer {
    const WANTED: u64 = 1 << 20;
    const KEY: &str = "net.core.optmem_max";
    let value = case.number(KEY)?;
    if value >= WANTED {
        return holds(format!("optmem_max is {}", Bytes(value)));
    }
    // Below this rate a copy is no bottleneck, and nobody asks for zero-copy.
    if case.rate()? < BitRate(40_000_000_000) {
        return does_not_apply("it bounds zero-copy sending, which pays from about 40 Gbit/s on");
    }
    Advice::new(format!(
        "optmem_max is {}: zero-copy sending (MSG_ZEROCOPY) falls back to copying when its notices fill it",
        Bytes(value)
    ))
    .change(
        KEY,
        Some(value.to_string()),
        WANTED.to_string(),
        "what the authors of ESnet's guide recommend from 40 Gbit/s on",
    )
    .fires()
}

/// T13
pub(crate) fn budget(case: &Case<'_>) -> Answer {
    let most = case.triple(RMEM)?[2];
    // What the other checks recommend must fit as well.
    let buffer = wanted_receive(case).map_or(most, |wanted| wanted.max(most));
    let flows = u64::from(case.target.flows.max(1));
    let all = flows.saturating_mul(buffer);
    let group = case
        .facts
        .system
        .cgroup_memory_bytes
        .known()
        .copied()
        .flatten();
    let tcp = case.triple("net.ipv4.tcp_mem").and_then(|pages| {
        let page = case.facts.system.page_bytes.ask()?;
        Ok(pages[1].saturating_mul(*page))
    });
    let bound = match (tcp, group) {
        (Ok(tcp), Some(group)) if group < tcp => (group, "the control group's memory"),
        (Ok(tcp), _) => (
            tcp,
            "tcp_mem[1], where the kernel begins to press all sockets",
        ),
        (Err(_), Some(group)) if all > group => (group, "the control group's memory"),
        (Err(why), _) => return Err(why),
    };
    let text = format!(
        "{flows} × {} may take {}, and {} is {}",
        Bytes(buffer),
        Bytes(all),
        bound.1,
        Bytes(bound.0)
    );
    if all <= bound.0 {
        return holds(text);
    }
    let each = bound.0 / flows;
    let values = case.triple(RMEM)?;
    Advice::new(text)
        .change(
            RMEM,
            Some(words(values)),
            words([values[0], values[1], each]),
            format!("{} shared by {flows}; or fewer flows", Bytes(bound.0)),
        )
        .fires()
}

pub(crate) fn words(values: [u64; 3]) -> String {
    format!("{} {} {}", values[0], values[1], values[2])
}
