//! Buffers and windows: T01, T02, T03, T06, T11, T13.

use linerate_model::audit::{Advised, Role};
use linerate_model::units::{BitRate, Bytes, whole};

use crate::case::{Advice, Answer, Case, GREATEST_BUFFER, GREATEST_WINDOW, does_not_apply, holds};

const RMEM: &str = "net.ipv4.tcp_rmem";
const WMEM: &str = "net.ipv4.tcp_wmem";

/// What a flow needs, in words: `10.0 Gbit/s over 60.0 ms, 71.5 MiB on the way`.
fn need(case: &Case<'_>) -> Result<String, String> {
    Ok(format!(
        "{} over {}, {} in flight",
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
            "; the window grows to this once the kernel has measured how full packets are"
        } else {
            ""
        };
        return holds(format!("{read}, enough for {}{later}", need(case)?));
    }
    let rate = case.rate_of(window)?;
    let sentence = format!(
        "{read}: the receive window limits a flow to {rate} of {} at {}",
        case.flow_rate()?,
        case.rtt()?
    );
    let why = format!(
        "2 × {} in flight / {learned} (window share of the buffer)",
        Bytes(product)
    );
    // Most of the rate is there already.
    let mild = window >= 0.75 * product.min(GREATEST_WINDOW) as f64;
    Raise {
        key: RMEM,
        values,
        wanted: wanted_receive(case)?,
        why,
    }
    .of(case, sentence)
    .severity(if mild { 2 } else { 1 })
    .fires()
}

/// A buffer's greatest value that is to become larger, as far as memory allows.
struct Raise {
    key: &'static str,
    values: [u64; 3],
    wanted: u64,
    why: String,
}

impl Raise {
    fn of(self, case: &Case<'_>, sentence: String) -> Advice {
        let [least, first, most] = self.values;
        // Where the memory is not known, nothing speaks against the value.
        let room = case.room().ok().filter(|room| room.each < self.wanted);
        let (value, why) = match room {
            Some(room) => (
                room.each,
                format!(
                    "{}, reduced to the memory available per flow (T13)",
                    self.why
                ),
            ),
            None => (self.wanted, self.why),
        };
        if value <= most {
            return Advice::new(format!(
                "{sentence}; this host's memory allows no more (T13)"
            ))
            .set_by(case.set_by(self.key));
        }
        Advice::new(sentence)
            .sysctl(self.key, words([least, first, value]), why)
            .now(words(self.values))
            .set_by(case.set_by(self.key))
    }
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
            "{read}: it limits a flow to {rate} of {} at {}",
            case.flow_rate()?,
            case.rtt()?
        );
        (sentence, 1)
    } else {
        let sentence = format!(
            "{read}: it carries {}, but leaves too little space for retransmits (less than as much again)",
            need(case)?
        );
        (sentence, 3)
    };
    Raise {
        key: WMEM,
        values,
        wanted: value,
        why: format!("{times} × {} in flight", Bytes(product)),
    }
    .of(case, sentence)
    .severity(severity)
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
                "{} {} below the {} that an application with its own buffer sizes needs; if there is one, give \
                 --fixed-buffers (this does not limit autotuning)",
                small
                    .iter()
                    .map(|(key, value)| format!("{key} ({})", Bytes(*value)))
                    .collect::<Vec<_>>()
                    .join(" and "),
                if small.len() == 1 { "is" } else { "are" },
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
        advice = advice
            .set_by(case.set_by(key))
            .sysctl(
                key,
                enough,
                format!("{} in flight / {ratio}", Bytes(product)),
            )
            .now(value);
    }
    advice.fires()
}

/// T06
pub(crate) fn window(case: &Case<'_>) -> Answer {
    let product = case.flow_product()?;
    if product <= GREATEST_WINDOW {
        return holds(format!("{}: TCP's maximum window is 1 GiB", need(case)?));
    }
    let all = case.target.product().map_or(0, Bytes::count);
    let flows = all.div_ceil(GREATEST_WINDOW);
    Advice::new(format!(
        "{}: TCP's maximum window of 1 GiB limits a flow to {}",
        need(case)?,
        case.rate_of(GREATEST_WINDOW as f64)?
    ))
    .change(
        Advised::Flows(flows),
        format!("{} in flight / 1 GiB", Bytes(all)),
    )
    .now(case.target.flows)
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
        return does_not_apply("it limits zero-copy sending, which pays off from about 40 Gbit/s");
    }
    let sentence = format!(
        "optmem_max is {}: zero-copy sending (MSG_ZEROCOPY) falls back to copying when its completion notifications \
         fill it",
        Bytes(value)
    );
    Advice::new(sentence)
        .sysctl(
            KEY,
            WANTED,
            "what the authors of ESnet's guide recommend from 40 Gbit/s on",
        )
        .now(value)
        .fires()
}

/// T13
pub(crate) fn budget(case: &Case<'_>) -> Answer {
    let values = case.triple(RMEM)?;
    let most = values[2];
    // What the task needs must fit as well.
    let needed = wanted_receive(case).unwrap_or(0);
    let room = case.room()?;
    let flows = u64::from(case.target.flows.max(1));
    let takes = |buffer: u64| {
        format!(
            "{flows} × {} may take {}, and {} is {}",
            Bytes(buffer),
            Bytes(flows.saturating_mul(buffer)),
            room.what(),
            Bytes(room.all)
        )
    };
    if most > room.each {
        let fewer = if flows > 1 { "; or fewer flows" } else { "" };
        return Advice::new(takes(most))
            .sysctl(
                RMEM,
                words([values[0], values[1], room.each]),
                format!("{} shared by {flows}{fewer}", Bytes(room.all)),
            )
            .now(words(values))
            .set_by(case.set_by(RMEM))
            .fires();
    }
    if needed <= room.each {
        return holds(takes(needed.max(most)));
    }
    // No setting is wrong: the task is too large for the memory.
    let (_, ratio) = case.ratio()?;
    let advice = Advice::new(format!(
        "the memory is too small for the task: {}; only {} per flow is guaranteed",
        takes(needed),
        case.rate_of(room.each as f64 * ratio)?
    ));
    let all = needed.saturating_mul(flows);
    let advice = if room.of_group {
        advice
            .by_hand(
                "memory of the control group",
                Bytes(all),
                "and what else runs in it; or a lower rate, or fewer flows",
            )
            .now(Bytes(room.all))
    } else {
        let memory = case.facts.system.memory_bytes.known().copied();
        let times = all as f64 / room.all.max(1) as f64;
        let enough = memory.map(|memory| Bytes(whole(memory as f64 * times)).to_string());
        advice
            .by_hand(
                "memory",
                enough.unwrap_or_else(|| "more".to_owned()),
                "the kernel sizes tcp_mem by it; or a lower rate, or fewer flows",
            )
            .now_where_known(memory.map(|memory| Bytes(memory).to_string()))
    };
    advice.fires()
}

pub(crate) fn words(values: [u64; 3]) -> String {
    format!("{} {} {}", values[0], values[1], values[2])
}
