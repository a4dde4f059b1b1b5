//! What TCP does: T04, T05, T07, T09, T10, T12, T14.

use linerate_model::audit::Role;
use linerate_model::host::Interface;
use linerate_model::units::Nanos;

use crate::case::{Advice, Answer, Case, does_not_apply, holds};

pub(crate) const CONTROL: &str = "net.ipv4.tcp_congestion_control";

/// A switch that must be on.
pub(crate) fn must_be_on(case: &Case<'_>, key: &str, cost: &str) -> Answer {
    let value = case.number(key)?;
    let name = key.rsplit('.').next().unwrap_or(key);
    if value != 0 {
        return holds(format!("{name} is {value}"));
    }
    Advice::new(format!("{name} is 0: {cost}"))
        .sysctl(key, "1", "the kernel's default")
        .now("0")
        .set_by(case.set_by(key))
        .fires()
}

/// T04
pub(crate) fn autotuning(case: &Case<'_>) -> Answer {
    must_be_on(
        case,
        "net.ipv4.tcp_moderate_rcvbuf",
        "receive buffers stay at tcp_rmem[1], and the window with them",
    )
}

/// T05
pub(crate) fn scaling(case: &Case<'_>) -> Answer {
    must_be_on(
        case,
        "net.ipv4.tcp_window_scaling",
        "no window is larger than 64 KiB",
    )
}

/// T14
pub(crate) fn rack(case: &Case<'_>) -> Answer {
    const KEY: &str = "net.ipv4.tcp_recovery";
    /// It knows nothing else from this release on, whatever the bit is.
    const ALWAYS: (u32, u32) = (6, 17);
    if case.kernel()? >= ALWAYS {
        return does_not_apply("RACK is the only loss detection from Linux 6.17 on");
    }
    let value = case.number(KEY)?;
    if value & 1 == 1 {
        return holds(format!("tcp_recovery is {value}: RACK is on"));
    }
    let sentence = format!(
        "tcp_recovery is {value}: without RACK only duplicate ACKs show a loss, so reordering looks like loss, and several losses at the end of a burst may wait for a timeout"
    );
    Advice::new(sentence)
        .sysctl(
            KEY,
            (value | 1).to_string(),
            "the kernel's default, with the other bits as they are",
        )
        .now(value)
        .set_by(case.set_by(KEY))
        .fires()
}

/// T07
pub(crate) fn control(case: &Case<'_>) -> Answer {
    let name = case.text(CONTROL)?;
    if ["cubic", "bbr", "bbr2", "bbr3"].contains(&name.as_str()) {
        return holds(format!("the congestion control is {name}"));
    }
    let also = if case.rtt().is_ok_and(|rtt| rtt > Nanos::from_millis(20)) {
        "; where the path loses packets, compare with bbr in alternating runs"
    } else {
        ""
    };
    let about = if name == "htcp" {
        "; it was advised because of cubic bugs before Linux 2.6.33"
    } else {
        ""
    };
    Advice::new(format!(
        "the congestion control is {name}, which is no longer developed for this purpose{about}"
    ))
    .sysctl(
        CONTROL,
        "cubic",
        format!("the kernel's default and best-tested choice{also}"),
    )
    .now(name)
    .set_by(case.set_by(CONTROL))
    .fires()
}

/// T09
pub(crate) fn probing(case: &Case<'_>) -> Answer {
    const KEY: &str = "net.ipv4.tcp_mtu_probing";
    const JUMBO: u32 = 8000;
    let value = case.number(KEY)?;
    let large: Vec<&&Interface> = case
        .interfaces
        .iter()
        .filter(|interface| interface.mtu.known().is_some_and(|mtu| *mtu > JUMBO))
        .collect();
    let fires = |sentence: String| {
        Advice::new(sentence)
            .sysctl(
                KEY,
                "1",
                "probe for a smaller packet size only after detecting a black hole (RFC 4821)",
            )
            .now(value)
            .set_by(case.set_by(KEY))
            .fires()
    };
    match (value, large.first()) {
        (2, _) => fires(
            "tcp_mtu_probing is 2: every connection begins with small packets and searches"
                .to_owned(),
        ),
        (0, Some(interface)) => fires(format!(
            "tcp_mtu_probing is 0 and the MTU of {} is above {JUMBO}: if a router drops large packets and its ICMP \
             message is lost, connections hang",
            interface.name
        )),
        (0, None) if case.facts.interfaces.known().is_none() => Err(format!(
            "tcp_mtu_probing is 0, and whether an MTU is above {JUMBO} is not known: {}",
            case.facts.interfaces.why()
        )),
        _ => holds(format!("tcp_mtu_probing is {value}")),
    }
}

/// T10
pub(crate) fn metrics(case: &Case<'_>) -> Answer {
    const KEY: &str = "net.ipv4.tcp_no_metrics_save";
    if case.target.role != Role::Measurement {
        return does_not_apply("it matters where tests are run (--role measurement)");
    }
    if case.number(KEY)? != 0 {
        return holds("tcp_no_metrics_save is 1");
    }
    let sentence = "tcp_no_metrics_save is 0: a test starts with the slow-start threshold of the previous test";
    Advice::new(sentence)
        .sysctl(KEY, "1", "each test is independent")
        .now("0")
        .fires()
}

/// T12
pub(crate) fn after_idle(case: &Case<'_>) -> Answer {
    const KEY: &str = "net.ipv4.tcp_slow_start_after_idle";
    if case.target.role != Role::Server {
        return does_not_apply("it matters to transfers with pauses (--role server)");
    }
    if case.number(KEY)? == 0 {
        return holds("tcp_slow_start_after_idle is 0");
    }
    Advice::new(
        "tcp_slow_start_after_idle is 1: an idle connection restarts from its initial window",
    )
    .sysctl(
        KEY,
        "0",
        "together with fq, which spreads the burst that follows a pause",
    )
    .now("1")
    .fires()
}
