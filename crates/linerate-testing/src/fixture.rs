//! Made-up runs for tests and examples: whole records of both ends whose books balance by
//! construction, so that a test breaks exactly one thing.
//!
//! ```
//! use linerate_model::plan::Plan;
//! use linerate_testing::fixture;
//!
//! let record = fixture::run(&Plan::new("server"), &fixture::Traffic::default());
//! assert!(record.client.is_some() && record.server.is_some());
//! ```

use std::collections::BTreeMap;

use linerate_model::clock::{ClockOffset, ClockPair};
use linerate_model::column::Column;
use linerate_model::observation::{
    Connection, Ended, Fate, Holder, Observation, Opener, Sampling, Watch,
};
use linerate_model::plan::{Plan, Protocol};
use linerate_model::record::{
    ControlFacts, CpuUse, EndRecord, Flow, HostFacts, InterfaceCounters, InterfaceFacts,
    InterfacePair, Kind, Outcome, PeerResults, PeerStream, Role, RunRecord, SCHEMA_VERSION,
    Software, StreamRecord, UdpCounts,
};
use linerate_model::series::Series;
use linerate_model::tcp_info::{FIELDS, TcpFacts};
use linerate_model::transfer::{Medium, RingRecord, StageRecord, StageRole};
use linerate_model::transit::{TransitSlice, Transits, bucket_above, lowest};
use linerate_model::units::{Bytes, Nanos};

/// The client's clock when the streams are let go, ns.
pub const CLIENT_START_NS: u64 = 5_000_000_000;
/// The server's clock minus the client's, ns.
pub const CLOCK_OFFSET_NS: i64 = 7_000_000_000_000;
/// `snd_ssthresh` while none is set (`TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: u64 = 0x7fff_ffff;
/// The cookie that a client writes on every TCP data connection, bytes.
const COOKIE: u64 = 37;

/// Segments lost together in a made-up run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// When, s since the start.
    pub at_s: f64,
    /// How many segments were retransmitted.
    pub segments: u64,
    /// Smoothed round-trip time in the 100 ms before, µs.
    pub rtt_us: u64,
    /// Congestion window in the 100 ms before, segments.
    pub window_packets: u64,
}

/// What a made-up path and its two hosts did.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// How long the run lasted, s, the omitted part included.
    pub seconds: f64,
    /// The plateau's rate in each direction, all streams together, bit/s of payload sent.
    pub rate_bps: f64,
    /// Time of a linear rise from zero to the plateau, s.
    pub ramp_s: f64,
    /// Noise around the rate, share of it (uniform, ±).
    pub noise: f64,
    /// From second `.0` on the rate is `.1` times the plateau's.
    pub levels: Vec<(f64, f64)>,
    /// Smoothed round-trip time, µs.
    pub rtt_us: u64,
    /// Least round-trip time, µs.
    pub min_rtt_us: u64,
    /// Share of the time with nothing to send.
    pub application: f64,
    /// Share of the time that the kernel books on the send buffer.
    pub send_buffer: f64,
    /// Share of the time that the kernel books on the receive window.
    pub receive_window: f64,
    /// The receiver's window, bytes.
    pub receive_window_bytes: u64,
    /// Congestion window, bytes.
    pub congestion_window_bytes: u64,
    /// In flight, bytes.
    pub in_flight_bytes: u64,
    /// In the send buffer and not sent, bytes.
    pub notsent_bytes: u64,
    /// Unread at the receiver, bytes.
    pub unread_bytes: u64,
    /// Send buffer granted, bytes.
    pub send_buffer_bytes: u64,
    /// Receive buffer granted, bytes.
    pub receive_buffer_bytes: u64,
    /// Segments sent again, each stream.
    pub retransmits: u64,
    /// Where not empty, these are the losses, and their sum takes the place of `retransmits`; each stream.
    pub losses: Vec<Loss>,
    /// Each further stream loses so much later than the one before, s.
    pub losses_apart_s: f64,
    /// When slow start ended without a loss, s, and the threshold that was set then, segments.
    pub slow_start_left: Option<(f64, u64)>,
    /// Of them reported as received twice, each stream.
    pub received_twice: u64,
    /// How often the sending kernel saw segments overtake one another, each stream.
    pub overtaken: u64,
    /// CPU time of each sending thread, share of the run.
    pub sender_cpu: f64,
    /// CPU time of each receiving thread, share of the run.
    pub receiver_cpu: f64,
    /// Both ends on one host.
    pub one_host: bool,
    /// Speed of both interfaces, Mbit/s.
    pub link_mbit_per_s: Option<u64>,
    /// UDP: datagrams lost on the path, each stream.
    pub path_lost: u64,
    /// UDP: datagrams dropped in the receiver's socket, each stream.
    pub socket_dropped: u64,
    /// UDP: datagrams delivered twice, each stream.
    pub duplicated: u64,
    /// UDP: datagrams delivered late, each stream.
    pub reordered: u64,
}

impl Default for Traffic {
    /// A healthy 100 Mbit/s path with a standing queue.
    fn default() -> Self {
        Self {
            seconds: 10.0,
            rate_bps: 95_400_000.0,
            ramp_s: 0.1,
            noise: 0.01,
            levels: Vec::new(),
            rtt_us: 41_000,
            min_rtt_us: 10_100,
            application: 0.0,
            send_buffer: 0.0,
            receive_window: 0.0,
            receive_window_bytes: 3_145_728,
            congestion_window_bytes: 492_000,
            in_flight_bytes: 489_000,
            notsent_bytes: 900_000,
            unread_bytes: 0,
            send_buffer_bytes: 2_626_560,
            receive_buffer_bytes: 6_291_456,
            retransmits: 21,
            losses: Vec::new(),
            losses_apart_s: 0.0,
            slow_start_left: None,
            received_twice: 0,
            overtaken: 0,
            sender_cpu: 0.03,
            receiver_cpu: 0.05,
            one_host: false,
            link_mbit_per_s: None,
            path_lost: 0,
            socket_dropped: 0,
            duplicated: 0,
            reordered: 0,
        }
    }
}

impl Traffic {
    /// A path of 1 Gbit/s or more and 12 ms, held by a small window of the receiver.
    #[must_use]
    pub fn window_limited() -> Self {
        Self {
            rate_bps: 143e6,
            receive_window: 0.83,
            receive_window_bytes: 217_088,
            in_flight_bytes: 215_000,
            congestion_window_bytes: 4_000_000,
            rtt_us: 12_000,
            min_rtt_us: 11_900,
            retransmits: 0,
            ..Self::default()
        }
    }
}

/// The record of a run that went as `traffic` says, written by the client, both ends known.
pub fn run(plan: &Plan, traffic: &Traffic) -> RunRecord {
    let control = ControlFacts {
        local: "192.0.2.1:40000".into(),
        remote: format!("192.0.2.2:{}", plan.port).into(),
        peer_software: Some("linerate 0.1.0".into()),
        iperf2: None,
        mss_bytes: Some(1448),
        connect_ns: Some(Nanos(traffic.min_rtt_us * 1000)),
    };
    let offset = |at_ns| ClockOffset {
        offset_ns: CLOCK_OFFSET_NS,
        uncertainty_ns: traffic.min_rtt_us * 500,
        at_ns,
        exchanges: 8,
    };
    let end_ns = CLIENT_START_NS + length_ns(traffic);
    let mut record = RunRecord {
        schema_version: SCHEMA_VERSION,
        kind: Kind::Test,
        written_by: Role::Client,
        software: software(),
        started_at_unix_ms: 1_760_000_000_000,
        plan: plan.clone(),
        outcome: Outcome::Completed,
        cookie: "abcdefghijklmnopqrstuvwxyz234567abcd".into(),
        control,
        client: None,
        server: None,
        peer_results: None,
        clock: Some(ClockPair {
            before: offset(CLIENT_START_NS - 1_000_000),
            after: Some(offset(end_ns + 1_000_000)),
        }),
        notes: Vec::new(),
        latency: None,
        counter_runs: Vec::new(),
        cells: Vec::new(),
        host_names: None,
    };
    for role in [Role::Client, Role::Server] {
        let end = end(&record, traffic, role);
        match role {
            Role::Client => record.client = Some(end),
            Role::Server => record.server = Some(end),
        }
    }
    record
}

/// One end of a transfer of a file in memory; nothing of it waited.
pub fn stage(role: StageRole) -> StageRecord {
    StageRecord {
        role,
        medium: Medium::Memory,
        files: 1,
        left_out: 0,
        changed: 0,
        bytes: Bytes(1000),
        piece: Bytes(100),
        threads: 1,
        moving: Nanos(1),
        opening: Nanos(0),
        began: Nanos(100),
        handed_over: Nanos(1000),
        on_disk: None,
        checksum: "00".into(),
        ring: RingRecord::default(),
        error: None,
    }
}

/// The same run as a linerate saw it whose peer, `stock`, is an iperf3.
#[must_use]
pub fn against_stock(mut record: RunRecord, stock: Role) -> RunRecord {
    let gone = match stock {
        Role::Client => record.client.take(),
        Role::Server => record.server.take(),
    };
    record.written_by = match stock {
        Role::Client => Role::Server,
        Role::Server => Role::Client,
    };
    record.clock = None;
    record.control.peer_software = None;
    record.peer_results = gone.map(|end| peer_results(&end));
    record
}

/// What a watcher at one end of such a run would have seen of its TCP streams, from `missed` rows after their
/// beginning on.
pub fn watched(record: &RunRecord, at: Role, missed: usize) -> Option<Observation> {
    let end = record.end(at)?;
    let watch = Watch {
        sample_ns: record.plan.sample_ns,
        interval_ns: record.plan.interval_ns,
        ..Watch::default()
    };
    Some(Observation {
        schema_version: record.schema_version,
        kind: Kind::Observation,
        software: record.software.clone(),
        started_at_unix_ms: record.started_at_unix_ms,
        watch,
        ended: Ended::Stopped,
        host: end.host.clone(),
        start_ns: end.start_ns,
        end_ns: end.end_ns,
        interfaces: end.interface.iter().cloned().collect(),
        counters: end.counters.clone(),
        protocol_growth: end.protocol_growth.clone(),
        sampling: Sampling {
            readings: 1000,
            most_connections: end.streams.len() as u64,
            hears_last_words: true,
            ..Sampling::default()
        },
        connections: end
            .streams
            .iter()
            .zip(1..)
            .map(|(stream, id)| connection(end, stream, id, missed))
            .collect(),
        notes: Vec::new(),
    })
}

fn connection(end: &EndRecord, stream: &StreamRecord, id: u32, missed: usize) -> Connection {
    let kept = |values: &[u64]| values.get(missed..).unwrap_or_default().to_vec();
    let mut samples = Series::new(kept(stream.samples.at_ns()));
    for name in stream
        .samples
        .names()
        .filter(|name| *name != Column::app_bytes.name())
    {
        let values = stream.samples.named(name).unwrap_or_default();
        let _ = samples.insert(name, kept(values));
    }
    let rows = samples.len();
    for (name, bytes) in [
        (Column::send_buffer_bytes, stream.send_buffer_bytes),
        (Column::receive_buffer_bytes, stream.receive_buffer_bytes),
    ] {
        let _ = samples.insert(name, vec![bytes.unwrap_or(0); rows]);
    }
    Connection {
        id,
        local: stream.local.clone(),
        remote: stream.remote.clone(),
        opener: if stream.active_opener {
            Opener::ThisHost
        } else {
            Opener::Peer
        },
        uid: 1000,
        inode: Some(4711),
        process: Some(Holder {
            pid: 815,
            name: "rsync".into(),
        }),
        began_before: missed > 0,
        fate: Fate::ClosedAndTold,
        interface: end
            .interface
            .as_ref()
            .map(|interface| interface.name.clone()),
        congestion: stream.congestion.clone(),
        tcp: TcpFacts {
            unacked_packets: Some(0),
            ..stream.tcp.clone().unwrap_or_default()
        },
        unread_bytes: stream.unread_bytes.unwrap_or(0),
        unacknowledged_bytes: 0,
        samples,
        thinned: 1,
    }
}

fn peer_results(end: &EndRecord) -> PeerResults {
    let told = |stream: &StreamRecord| {
        let udp = stream.udp.clone().unwrap_or_default();
        let lost = udp.highest.saturating_sub(udp.unique);
        PeerStream {
            id: stream.id,
            bytes: stream.app_bytes - stream.omitted_bytes,
            retransmits: if stream.sends { 0 } else { -1 },
            jitter_s: 0.000_02,
            errors: i64::try_from(lost).unwrap_or(0),
            packets: udp.sent.max(udp.highest),
            end_time_s: end.end_ns.since(end.start_ns).as_secs_f64(),
            omitted_errors: None,
            omitted_packets: None,
        }
    };
    PeerResults {
        cpu_total_percent: 4.0,
        cpu_user_percent: 0.5,
        cpu_system_percent: 3.5,
        congestion: Some("cubic".into()),
        sender_has_retransmits: 1,
        streams: end.streams.iter().map(told).collect(),
        output_text: None,
        output_json: None,
    }
}

fn software() -> Software {
    Software {
        name: "linerate".into(),
        version: "0.1.0".into(),
    }
}

fn length_ns(traffic: &Traffic) -> u64 {
    Nanos::from_secs_f64(traffic.seconds).0
}

fn end(record: &RunRecord, traffic: &Traffic, role: Role) -> EndRecord {
    let start = match role {
        Role::Client => CLIENT_START_NS,
        Role::Server => CLIENT_START_NS.saturating_add_signed(CLOCK_OFFSET_NS),
    };
    let mut streams = Vec::new();
    for (lane, flow) in record.flows().iter().enumerate() {
        for number in 0..u32::from(record.plan.streams) {
            // iperf3's ids leave out 2.
            let place = lane as u64 * u64::from(record.plan.streams) + u64::from(number);
            let id = if place == 0 {
                1
            } else {
                u32::try_from(place).unwrap_or(0) + 2
            };
            streams.push(stream(record, traffic, *flow, role, id, start));
        }
    }
    let name = match role {
        _ if traffic.one_host => "alpha",
        Role::Client => "alpha",
        Role::Server => "beta",
    };
    EndRecord {
        role,
        software: software(),
        host: host(name),
        interface: Some(InterfaceFacts {
            name: "eth0".into(),
            index: 2,
            mtu_bytes: Some(1500),
            kind: Some("veth".into()),
            driver: Some("veth".into()),
            speed_mbit_per_s: traffic.link_mbit_per_s,
            qdisc: Some("fq_codel".into()),
        }),
        start_ns: Nanos(start),
        end_ns: Nanos(start + length_ns(traffic)),
        cpu: streams
            .iter()
            .fold(CpuUse::default(), |sum, stream| CpuUse {
                user_ns: sum.user_ns + stream.cpu.user_ns,
                system_ns: sum.system_ns + stream.cpu.system_ns,
            }),
        counters: counters(start, traffic),
        interface_counters: Some(interface_counters(&streams)),
        protocol_growth: BTreeMap::from([("Tcp.RetransSegs".into(), repeats(traffic))]),
        stage: None,
        streams,
    }
}

fn host(name: &str) -> HostFacts {
    HostFacts {
        hostname: Some(name.into()),
        kernel: Some("6.18.5".into()),
        architecture: Some("x86_64".into()),
        boot_id: Some(format!("boot of {name}").into()),
        network_namespace: Some(4_026_531_840),
        cpu_model: Some("Example CPU".into()),
        cpus: Some(8),
        memory_bytes: Some(16 << 30),
        virtualisation: Some("kvm".into()),
        tcp_rmem: Some([4096, 131_072, 6_291_456]),
        tcp_wmem: Some([4096, 16_384, 4_194_304]),
        rmem_max: Some(212_992),
        wmem_max: Some(212_992),
        congestion: Some("cubic".into()),
        default_qdisc: Some("fq_codel".into()),
        fingerprint: None,
    }
}

fn counters(start: u64, traffic: &Traffic) -> Series {
    let rows = length_ns(traffic) / 100_000_000 + 1;
    let mut series = Series::new((0..rows).map(|row| start + row * 100_000_000).collect());
    let busy = (0..rows).map(|row| row * 12 + row % 3).collect();
    let _ = series.insert("cpu0.busy_ms", busy);
    series
}

fn interface_counters(streams: &[StreamRecord]) -> InterfacePair {
    let on_wire = |sends: bool| {
        let payload: u64 = streams
            .iter()
            .filter(|stream| stream.sends == sends)
            .filter_map(|stream| {
                stream
                    .samples
                    .last(if sends {
                        Column::bytes_sent
                    } else {
                        Column::app_bytes
                    })
                    .or(Some(stream.app_bytes))
            })
            .sum();
        payload + payload / 20 + 20_000
    };
    let before = InterfaceCounters {
        rx_bytes: 1000,
        tx_bytes: 2000,
        qdisc_dropped: Some(3),
        ..InterfaceCounters::default()
    };
    let after = InterfaceCounters {
        rx_bytes: 1000 + on_wire(false),
        tx_bytes: 2000 + on_wire(true),
        rx_packets: on_wire(false) / 1500,
        tx_packets: on_wire(true) / 1500,
        ..before
    };
    InterfacePair { before, after }
}

/// What a stream had delivered at each sample, bytes: the ramp, the levels and the noise summed up.
fn delivered(record: &RunRecord, traffic: &Traffic, id: u32) -> Vec<u64> {
    let step = record.plan.sample_ns.as_secs_f64();
    let rows = (traffic.seconds / step).round();
    let each = traffic.rate_bps / f64::from(record.plan.streams) / 8.0;
    let mut state = u64::from(id) * 7919 + 11;
    let (mut sum, mut curve, mut row) = (0.0, vec![0], 0.0);
    while row < rows {
        let at = (row + 0.5) * step;
        let level = traffic
            .levels
            .iter()
            .rev()
            .find(|(from, _)| at >= *from)
            .map_or(1.0, |(_, level)| *level);
        let ramp = if at < traffic.ramp_s {
            at / traffic.ramp_s
        } else {
            1.0
        };
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let noise = 1.0 + traffic.noise * ((state >> 33) as f64 / f64::from(1_u32 << 30) - 1.0);
        sum += each * step * level * ramp * noise;
        curve.push(whole(sum));
        row += 1.0;
    }
    curve
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "made-up figures are small and not negative"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

fn stream(
    record: &RunRecord,
    traffic: &Traffic,
    flow: Flow,
    role: Role,
    id: u32,
    start: u64,
) -> StreamRecord {
    let plan = &record.plan;
    let sends = flow.sender() == role;
    let tcp = plan.protocol == Protocol::Tcp;
    let sctp = plan.protocol == Protocol::Sctp;
    let curve = delivered(record, traffic, id);
    let total = *curve.last().unwrap_or(&0);
    let omitted_rows = usize::try_from(plan.omit_ns.0 / plan.sample_ns.0.max(1))
        .unwrap_or(0)
        .min(curve.len() - 1);
    let busy = if sends {
        traffic.sender_cpu
    } else {
        traffic.receiver_cpu
    } * length_ns(traffic) as f64;
    let (here, there) = match role {
        Role::Client => ("192.0.2.1", "192.0.2.2"),
        Role::Server => ("192.0.2.2", "192.0.2.1"),
    };
    let (client_port, server_port) = (40_000 + id, u32::from(plan.port));
    let (local_port, remote_port) = if role == Role::Client {
        (client_port, server_port)
    } else {
        (server_port, client_port)
    };
    let mut made = StreamRecord {
        id,
        flow,
        sends,
        local: format!("{here}:{local_port}").into(),
        remote: format!("{there}:{remote_port}").into(),
        congestion: tcp.then(|| plan.congestion.clone().unwrap_or_else(|| "cubic".into())),
        mss_bytes: tcp.then_some(1448),
        path_mtu_bytes: (!sctp).then_some(1500),
        window_asked_bytes: plan.window_bytes,
        send_buffer_bytes: Some(traffic.send_buffer_bytes),
        receive_buffer_bytes: Some(traffic.receive_buffer_bytes),
        first_byte_ns: Some(Nanos(start)),
        last_byte_ns: Some(Nanos(start + length_ns(traffic))),
        omit_until_ns: (plan.omit_ns.0 > 0).then(|| Nanos(start + plan.omit_ns.0)),
        app_bytes: total,
        omitted_bytes: curve[omitted_rows],
        file_bytes: None,
        cookie_bytes: if tcp || sctp { COOKIE } else { 0 },
        active_opener: role == Role::Client,
        unread_bytes: (!sends && !sctp).then_some(0),
        drained: true,
        tcp: None,
        udp: None,
        spliced: false,
        zerocopy: None,
        cpu: CpuUse {
            user_ns: whole(busy * 0.1),
            system_ns: whole(busy * 0.9),
        },
        samples: Series::default(),
        thinned: 1,
        sampling_ns: 3_000_000,
        error: None,
        too_long: false,
    };
    let at_ns: Vec<u64> = (0..curve.len() as u64)
        .map(|row| start + row * plan.sample_ns.0)
        .collect();
    if tcp {
        made.samples = tcp_samples(traffic, &made, at_ns, &curve);
        made.tcp = Some(last_row(&made.samples, flow, role, total, traffic));
    } else if sctp {
        made.samples = Series::new(at_ns);
        let _ = made.samples.insert(Column::app_bytes, curve);
    } else {
        let mut counts = datagrams(plan, traffic, &mut made, total);
        counts.transits = (!sends).then(|| transits(traffic, &counts, &made, role));
        made.udp = Some(counts);
        let (before, after) = (total.max(1), made.app_bytes);
        let scaled = curve.iter().map(|value| {
            u64::try_from(u128::from(*value) * u128::from(after) / u128::from(before)).unwrap_or(0)
        });
        let mut samples = Series::new(at_ns);
        let _ = samples.insert(Column::app_bytes, scaled.collect());
        made.samples = samples;
    }
    made
}

/// The kernel's columns and the application's, each constant or in step with what was delivered.
fn tcp_samples(traffic: &Traffic, stream: &StreamRecord, at_ns: Vec<u64>, curve: &[u64]) -> Series {
    let total = *curve.last().unwrap_or(&0);
    let start = at_ns.first().copied().unwrap_or(0);
    let elapsed: Vec<f64> = at_ns.iter().map(|at| (at - start) as f64 / 1e3).collect();
    let ahead = traffic.in_flight_bytes + traffic.notsent_bytes;
    let share = |share: f64| {
        elapsed
            .iter()
            .map(|us| whole(us * share))
            .collect::<Vec<u64>>()
    };
    let flat = |value: u64| vec![value; curve.len()];
    let along = |most: u64| {
        let part = |value: &u64| {
            u64::try_from(u128::from(*value) * u128::from(most) / u128::from(total.max(1)))
        };
        curve
            .iter()
            .map(|value| part(value).unwrap_or(0))
            .collect::<Vec<u64>>()
    };
    let at_s: Vec<f64> = elapsed.iter().map(|us| us / 1e6).collect();
    let later = traffic.losses_apart_s * f64::from(stream.id);
    // The loss that comes within 100 ms of each row, if any.
    let ahead_of = |at: f64| {
        let soon = |loss: &&Loss| loss.at_s + later > at && loss.at_s + later - at <= 0.1;
        traffic.losses.iter().find(soon)
    };
    let before = |usual: u64, of: fn(&Loss) -> u64| -> Vec<u64> {
        at_s.iter()
            .map(|at| ahead_of(*at).map_or(usual, of))
            .collect()
    };
    let lost = || -> Vec<u64> {
        let until = |at: &f64| {
            let past = traffic
                .losses
                .iter()
                .filter(|loss| loss.at_s + later <= *at);
            past.map(|loss| loss.segments).sum()
        };
        at_s.iter().map(until).collect()
    };
    let threshold = |at: &f64| match traffic.slow_start_left {
        Some((left, segments)) if *at >= left => segments,
        _ => NO_THRESHOLD,
    };
    let mss = 1448;
    let mut series = Series::new(at_ns);
    for field in FIELDS {
        let values = match (field.column(), stream.sends) {
            (Column::rtt_us, true) => before(traffic.rtt_us, |loss| loss.rtt_us),
            (Column::min_rtt_us, true) => flat(traffic.min_rtt_us),
            (Column::min_rtt_us, false) => flat(u64::from(u32::MAX)),
            (Column::busy_time_us, true) => share(1.0 - traffic.application),
            (Column::rwnd_limited_us, true) => share(traffic.receive_window),
            (Column::sndbuf_limited_us, true) => share(traffic.send_buffer),
            (Column::snd_wnd_bytes, true) | (Column::rcv_wnd_bytes, false) => {
                flat(traffic.receive_window_bytes)
            }
            (Column::snd_mss_bytes | Column::advmss_bytes, _) => flat(mss),
            (Column::pmtu_bytes, _) => flat(1500),
            (Column::snd_cwnd_packets, true) => {
                before(traffic.congestion_window_bytes / mss, |loss| {
                    loss.window_packets
                })
            }
            (Column::snd_ssthresh_packets, true) => at_s.iter().map(threshold).collect(),
            (Column::total_retrans_packets, true) if !traffic.losses.is_empty() => lost(),
            (Column::unacked_packets, true) => flat(traffic.in_flight_bytes / mss),
            (Column::notsent_bytes, true) => flat(traffic.notsent_bytes),
            (Column::total_retrans_packets, true) => along(traffic.retransmits),
            (Column::dsack_dups_packets, true) => along(traffic.received_twice),
            (Column::reord_seen, true) => along(traffic.overtaken),
            (Column::data_segs_out, true) => along(total / mss + repeats(traffic)),
            (Column::bytes_sent | Column::bytes_acked, true) | (Column::bytes_received, false) => {
                curve.to_vec()
            }
            (Column::state, _) => flat(1),
            _ => flat(0),
        };
        let _ = series.insert(field.name, values);
    }
    let app = if stream.sends {
        curve
            .iter()
            .map(|value| (value + ahead).min(total))
            .collect()
    } else {
        curve.to_vec()
    };
    let _ = series.insert(Column::app_bytes, app);
    if !stream.sends {
        let _ = series.insert(Column::unread_bytes, flat(traffic.unread_bytes));
    }
    series
}

/// Segments that each stream sent again.
fn repeats(traffic: &Traffic) -> u64 {
    if traffic.losses.is_empty() {
        traffic.retransmits
    } else {
        traffic.losses.iter().map(|loss| loss.segments).sum()
    }
}

/// The kernel's account when a drained stream ended.
fn last_row(samples: &Series, flow: Flow, role: Role, total: u64, traffic: &Traffic) -> TcpFacts {
    let sends = flow.sender() == role;
    let cookie = if flow == Flow::ClientToServer {
        COOKIE
    } else {
        0
    };
    let retrans = repeats(traffic) * 1448;
    let once = total + cookie;
    let when = |condition: bool, value: u64| condition.then_some(value);
    TcpFacts {
        // The sender's FIN is acknowledged (FIN_WAIT2), the receiver has it (CLOSE_WAIT).
        state: Some(if sends { 5 } else { 8 }),
        bytes_sent: when(sends, once + retrans),
        bytes_retrans: when(sends, retrans),
        notsent_bytes: when(sends, 0),
        bytes_acked: when(sends, once + 1 + u64::from(role == Role::Client)),
        bytes_received: when(!sends, once + 1),
        total_retrans_packets: when(sends, repeats(traffic)),
        rtt_us: samples.last(Column::rtt_us),
        snd_mss_bytes: samples.last(Column::snd_mss_bytes),
        ..TcpFacts::default()
    }
}

/// A stream's datagrams; a receiver's `app_bytes` becomes what was delivered, repeats included.
fn datagrams(plan: &Plan, traffic: &Traffic, stream: &mut StreamRecord, total: u64) -> UdpCounts {
    let block = plan.block_bytes.count().max(1);
    let sent = total / block;
    let gone = traffic.path_lost + traffic.socket_dropped;
    let unique = sent.saturating_sub(gone);
    let before = sent * stream.omitted_bytes / total.max(1);
    if stream.sends {
        stream.app_bytes = sent * block;
        stream.omitted_bytes = before * block;
        return UdpCounts {
            sent,
            sent_omitted: before,
            largest_batch: 8,
            ..UdpCounts::default()
        };
    }
    stream.app_bytes = (unique + traffic.duplicated) * block;
    stream.omitted_bytes = before * block;
    UdpCounts {
        received: unique + traffic.duplicated,
        unique,
        duplicates: traffic.duplicated,
        reordered: traffic.reordered,
        highest: sent,
        unique_omitted: before,
        highest_omitted: before,
        socket_drops: Some(traffic.socket_dropped),
        jitter_ns: Some(21_000),
        transit_change_ns: Some([9_000, 31_000, 80_000, 410_000]),
        peer_sent: Some(sent),
        ..UdpCounts::default()
    }
}

/// What the datagrams of a receiving stream took: half of the shortest round trip, and a queue that grows over each
/// second to what the mean round trip is longer.
fn transits(traffic: &Traffic, counts: &UdpCounts, stream: &StreamRecord, role: Role) -> Transits {
    const PARTS: u64 = 100;
    let queue_ns = traffic.rtt_us.saturating_sub(traffic.min_rtt_us) * 1000;
    let ahead = match role {
        Role::Client => -CLOCK_OFFSET_NS,
        Role::Server => CLOCK_OFFSET_NS,
    };
    let fastest_ns = i64::try_from(traffic.min_rtt_us * 500).unwrap_or(i64::MAX);
    let omitted = counts.unique_omitted;
    let from = stream.omit_until_ns.or(stream.first_byte_ns);
    let from = from.unwrap_or_default();
    let to = stream.last_byte_ns.unwrap_or_default();
    let seconds = to.since(from).0.div_ceil(1_000_000_000).max(1);
    let all = counts.received.saturating_sub(omitted);
    let slice = |number: u64| {
        let count = all * (number + 1) / seconds - all * number / seconds;
        let above = |part: u64| queue_ns * part / (PARTS - 1);
        let of = |part: u64| count * (part + 1) / PARTS - count * part / PARTS;
        let mut slice = TransitSlice {
            from_ns: from.plus(Nanos(number * 1_000_000_000)),
            to_ns: from.plus(Nanos((number + 1) * 1_000_000_000 - 1)).min(to),
            least_ns: fastest_ns + ahead,
            most_above_ns: 0,
            sum_above_ns: 0,
            above: Vec::new(),
        };
        for part in (0..PARTS).filter(|part| of(*part) > 0) {
            let lowest = lowest(bucket_above(above(part)));
            slice.most_above_ns = above(part);
            slice.sum_above_ns += above(part) * of(part);
            match slice.above.last_mut() {
                Some(last) if last[0] == lowest => last[1] += of(part),
                _ => slice.above.push([lowest, of(part)]),
            }
        }
        slice
    };
    Transits {
        omitted,
        slices: (0..seconds)
            .map(slice)
            .filter(|slice| slice.count() > 0)
            .collect(),
    }
}
