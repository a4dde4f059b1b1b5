//! From a plan to iperf3's parameters, and from a peer's parameters to the plan that a server runs.

use linerate_model::plan::{Direction, End, Pace, Plan, Protocol};
use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_wire::extension::{self, TargetAsked};
use linerate_wire::parameters::{Extension, Parameters};

/// iperf3's default of `pacing_timer`, µs; micropython's peer wants the key.
const PACING_TIMER_US: u64 = 1000;

/// What the client says of its plan. `version` is the iperf3 version that it claims to speak.
pub(crate) fn parameters(
    plan: &Plan,
    software: &str,
    version: &str,
    extended: bool,
    target: Option<TargetAsked>,
) -> Parameters {
    let (time, num, blockcount) = match plan.end {
        End::TimeNs(span) => (span.0.div_ceil(1_000_000_000), 0, 0),
        End::Bytes(bytes) => (0, bytes.count(), 0),
        End::Blocks(blocks) => (0, 0, blocks),
    };
    Parameters {
        protocol: plan.protocol,
        omit: plan.omit_ns.0.div_ceil(1_000_000_000),
        time,
        num,
        blockcount,
        parallel: u64::from(plan.streams),
        reverse: plan.direction == Direction::Receive,
        bidirectional: plan.direction == Direction::Both,
        mptcp: plan.mptcp,
        nodelay: plan.nodelay,
        mss: plan.mss_bytes.map_or(0, u64::from),
        window: plan.window_bytes.map_or(0, Bytes::count),
        len: plan.block_bytes.count(),
        bandwidth: plan.rate_bps.map_or(0, BitRate::bits_per_second),
        fqrate: plan.kernel_pacing_bps.map_or(0, BitRate::bits_per_second),
        pacing_timer: PACING_TIMER_US,
        tos: u64::from(plan.tos),
        flowlabel: plan.flow_label.map_or(0, u64::from),
        title: plan.title.clone(),
        extra_data: plan.extra_data.clone(),
        congestion: plan.congestion.clone(),
        server_affinity: plan.server_cpu.map(u64::from),
        zerocopy: plan.zerocopy,
        dont_fragment: plan.dont_fragment,
        skip_rx_copy: plan.skip_receive_copy,
        client_version: Some(version.into()),
        linerate: extended.then(|| Extension {
            version: extension::VERSION,
            software: software.into(),
            sample_ns: Some(plan.sample_ns.0),
            received_ns: told(plan),
            spin: plan.pace == Pace::Spin,
            target,
            probe: plan.latency,
        }),
        ..Parameters::default()
    }
}

/// How often the client wants to be told what arrives: it ends the test by a rate that it does not see itself.
fn told(plan: &Plan) -> Option<u64> {
    let unseen = plan.protocol == Protocol::Udp && plan.client_sends();
    (plan.precision.is_some() && unseen).then_some(crate::client::TOLD_EVERY.0)
}

/// The plan that a server runs for a client at `host`.
pub(crate) fn plan(parameters: &Parameters, host: &str, port: u16, interval: Nanos) -> Plan {
    let mut plan = Plan::new(host);
    plan.port = port;
    plan.protocol = parameters.protocol;
    plan.mptcp = parameters.mptcp;
    plan.direction = match (parameters.reverse, parameters.bidirectional) {
        (_, true) => Direction::Both,
        (true, false) => Direction::Receive,
        (false, false) => Direction::Send,
    };
    plan.streams = u16::try_from(parameters.parallel).unwrap_or(u16::MAX);
    plan.end = match (parameters.num, parameters.blockcount) {
        (0, 0) => End::TimeNs(Nanos(parameters.time.saturating_mul(1_000_000_000))),
        (0, blocks) => End::Blocks(blocks),
        (bytes, _) => End::Bytes(Bytes(bytes)),
    };
    plan.omit_ns = Nanos(parameters.omit.saturating_mul(1_000_000_000));
    plan.interval_ns = interval;
    let extension = parameters.linerate.as_ref();
    let sample = extension.and_then(|extension| extension.sample_ns);
    plan.sample_ns = Nanos(sample.unwrap_or(10_000_000).clamp(1_000_000, 1_000_000_000));
    if plan.protocol == Protocol::Udp && extension.is_some_and(|extension| extension.spin) {
        plan.pace = Pace::Spin;
    }
    plan.latency = extension.is_some_and(|extension| extension.probe);
    plan.block_bytes = Bytes(parameters.len);
    plan.rate_bps = Some(BitRate(parameters.bandwidth)).filter(|rate| rate.0 > 0);
    plan.kernel_pacing_bps = Some(BitRate(parameters.fqrate)).filter(|rate| rate.0 > 0);
    plan.window_bytes = Some(Bytes(parameters.window)).filter(|bytes| bytes.0 > 0);
    plan.mss_bytes = u16::try_from(parameters.mss).ok().filter(|mss| *mss > 0);
    plan.nodelay = parameters.nodelay;
    plan.congestion.clone_from(&parameters.congestion);
    plan.tos = u8::try_from(parameters.tos).unwrap_or(0);
    plan.flow_label = u32::try_from(parameters.flowlabel)
        .ok()
        .filter(|label| *label > 0);
    plan.zerocopy = parameters.zerocopy;
    plan.skip_receive_copy = parameters.skip_rx_copy;
    plan.server_cpu = parameters
        .server_affinity
        .and_then(|cpu| u16::try_from(cpu).ok());
    plan.dont_fragment = parameters.dont_fragment;
    plan.title.clone_from(&parameters.title);
    plan.extra_data.clone_from(&parameters.extra_data);
    plan
}

/// The positional id of the stream created as number `index`: 1, 3, 4, 5 …
pub(crate) const fn stream_id(index: u16) -> u32 {
    if index == 0 { 1 } else { index as u32 + 2 }
}

/// The bytes a direction's senders may write: `-n` and `-k`, towards a stock peer in whole blocks.
///
/// A stock iperf3 counts whole blocks only. To a linerate a datagram carries at least its header. The second figure is what was
/// added by that.
pub(crate) fn byte_budget(plan: &Plan, peer_extended: bool) -> (Option<u64>, u64) {
    let Some(target) = plan.byte_target() else {
        return (None, 0);
    };
    let (target, block) = (target.count(), plan.block_bytes.count().max(1));
    let rest = target % block;
    let added = match rest {
        0 => 0,
        short if !peer_extended => block - short,
        _ if plan.protocol != Protocol::Udp => 0,
        short => linerate_model::plan::MIN_UDP_BLOCK.saturating_sub(short),
    };
    (Some(target + added), added)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_skip_two() {
        assert_eq!((0..5).map(stream_id).collect::<Vec<_>>(), [1, 3, 4, 5, 6]);
    }

    #[test]
    fn blocks_are_rounded_up_only_where_they_must() {
        let mut plan = Plan::new("h");
        plan.protocol = Protocol::Udp;
        plan.block_bytes = Bytes(1000);
        plan.end = End::Bytes(Bytes(10_500));
        assert_eq!(byte_budget(&plan, true), (Some(10_500), 0));
        assert_eq!(byte_budget(&plan, false), (Some(11_000), 500));
        plan.end = End::Bytes(Bytes(10_001));
        assert_eq!(byte_budget(&plan, true), (Some(10_016), 15));
        plan.protocol = Protocol::Tcp;
        assert_eq!(byte_budget(&plan, true), (Some(10_001), 0));
        assert_eq!(byte_budget(&plan, false), (Some(11_000), 999));
    }

    #[test]
    fn a_plan_survives_the_wire() {
        let mut plan = Plan::new("h");
        plan.direction = Direction::Both;
        plan.streams = 7;
        plan.window_bytes = Some(Bytes(1 << 20));
        plan.rate_bps = Some(BitRate(5_000_000));
        plan.congestion = Some("cubic".into());
        plan.mss_bytes = Some(1000);
        plan.latency = true;
        let sent = parameters(&plan, "linerate 0", "3.21", true, None);
        let received = Parameters::from_json(&sent.to_json()).unwrap();
        assert_eq!(
            super::plan(&received, "h", plan.port, plan.interval_ns),
            plan
        );
    }

    #[test]
    fn an_sctp_plan_survives_the_wire() {
        let mut plan = Plan::new("h");
        plan.protocol = Protocol::Sctp;
        plan.block_bytes = linerate_model::plan::DEFAULT_SCTP_BLOCK;
        plan.nodelay = true;
        let sent = parameters(&plan, "linerate 0", "3.21", false, None);
        let json = String::from_utf8(sent.to_json()).unwrap();
        assert!(
            json.contains(r#""sctp":true"#) && !json.contains(r#""tcp":"#),
            "{json}"
        );
        let received = Parameters::from_json(json.as_bytes()).unwrap();
        assert_eq!(
            super::plan(&received, "h", plan.port, plan.interval_ns),
            plan
        );
        plan.end = End::Bytes(Bytes(100_000));
        assert_eq!(byte_budget(&plan, true), (Some(100_000), 0));
        assert_eq!(byte_budget(&plan, false), (Some(131_072), 31_072));
    }

    #[test]
    fn only_udp_spins() {
        let pace = |protocol: Protocol| {
            let mut plan = Plan::new("h");
            plan.protocol = protocol;
            plan.rate_bps = Some(BitRate(1000));
            plan.pace = Pace::Spin;
            let sent = parameters(&plan, "linerate 0", "3.21", true, None);
            super::plan(&sent, "h", plan.port, plan.interval_ns).pace
        };
        assert_eq!(pace(Protocol::Udp), Pace::Spin);
        assert_eq!(pace(Protocol::Tcp), Pace::Sleep);
    }
}
