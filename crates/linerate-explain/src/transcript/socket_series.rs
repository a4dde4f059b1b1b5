//! Several readings of one connection by `ss -ti`, as the observation that the rules judge.
//!
//! `ss` prints the kernel's own counters and clocks, and no time. Its ages (`lastrcv`, `lastsnd`, `lastack`) grow with time
//! as long as nothing happens, and `busy` while there is data to send; none grows faster. So the time between two readings
//! is the largest growth of any of them in any socket: exact where one socket was idle in one of these ways.

use std::collections::{BTreeMap, HashMap, HashSet};

use linerate_analysis::evidence::Evidence;
use linerate_model::column::Column;
use linerate_model::finding::Finding;
use linerate_model::observation::{
    Connection, Ended, Fate, Observation, Opener, Sampling, WORTH_EXPLAINING_BYTES, Watch,
};
use linerate_model::record::{HostFacts, Kind, SCHEMA_VERSION, Software};
use linerate_model::series::Series;
use linerate_model::tcp_info::TcpFacts;
use linerate_model::transcript::Socket;
use linerate_model::units::{Nanos, whole};

use super::sockets::{is_flag, milliseconds, number, text, who};

/// Fewer readings are no series.
const LEAST: usize = 3;
/// Rates are laid on a grid of this many points between two readings.
const POINTS: u64 = 10;
/// `snd_ssthresh` while none is set (`TCP_INFINITE_SSTHRESH`), which `ss` does not print.
const NO_THRESHOLD: u64 = 0x7fff_ffff;
/// What an age or a clock grows by.
const CLOCKS: [&str; 4] = ["lastrcv", "lastsnd", "lastack", "busy"];

/// What `ss` prints: the key, the column, its unit in that of the column, and what a missing key means.
const COLUMNS: [(&str, Column, f64, Option<u64>); 22] = [
    ("bytes_acked", Column::bytes_acked, 1.0, Some(0)),
    ("bytes_received", Column::bytes_received, 1.0, Some(0)),
    ("bytes_sent", Column::bytes_sent, 1.0, Some(0)),
    ("bytes_retrans", Column::bytes_retrans, 1.0, Some(0)),
    ("data_segs_out", Column::data_segs_out, 1.0, Some(0)),
    ("delivered", Column::delivered_packets, 1.0, Some(0)),
    ("delivered_ce", Column::delivered_ce_packets, 1.0, Some(0)),
    ("dsack_dups", Column::dsack_dups_packets, 1.0, Some(0)),
    ("reord_seen", Column::reord_seen, 1.0, Some(0)),
    ("unacked", Column::unacked_packets, 1.0, Some(0)),
    ("notsent", Column::notsent_bytes, 1.0, Some(0)),
    ("busy", Column::busy_time_us, 1e3, Some(0)),
    ("rwnd_limited", Column::rwnd_limited_us, 1e3, Some(0)),
    ("sndbuf_limited", Column::sndbuf_limited_us, 1e3, Some(0)),
    (
        "ssthresh",
        Column::snd_ssthresh_packets,
        1.0,
        Some(NO_THRESHOLD),
    ),
    ("rtt", Column::rtt_us, 1e3, None),
    ("minrtt", Column::min_rtt_us, 1e3, None),
    ("cwnd", Column::snd_cwnd_packets, 1.0, None),
    ("mss", Column::snd_mss_bytes, 1.0, None),
    ("pmtu", Column::pmtu_bytes, 1.0, None),
    ("snd_wnd", Column::snd_wnd_bytes, 1.0, None),
    ("rcv_wnd", Column::rcv_wnd_bytes, 1.0, None),
];

/// Readings of one connection, each with its instant, ns.
pub(super) struct Readings<'a> {
    pub(super) sockets: Vec<(u64, &'a Socket)>,
}

/// The connections of several readings, in the order in which they were first seen.
pub(super) fn connections(sockets: &[Socket]) -> Vec<Readings<'_>> {
    let mut places: HashMap<(&str, &str), usize> = HashMap::new();
    let mut connections: Vec<Readings<'_>> = Vec::new();
    let mut now_ns = 0_u64;
    for reading in readings(sockets) {
        let grown = reading.iter().filter_map(|socket| {
            let place = places.get(&(socket.local.as_str(), socket.remote.as_str()))?;
            let (_, before) = connections[*place].sockets.last()?;
            growth_ms(before, socket)
        });
        now_ns = now_ns.saturating_add(whole(grown.fold(0.0, f64::max) * 1e6));
        for socket in reading {
            let place = places
                .entry((socket.local.as_str(), socket.remote.as_str()))
                .or_insert_with(|| {
                    let sockets = Vec::new();
                    connections.push(Readings { sockets });
                    connections.len() - 1
                });
            connections[*place].sockets.push((now_ns, socket));
        }
    }
    connections
}

/// Cut where a connection comes again. Sockets without addresses are readings of their own.
fn readings(sockets: &[Socket]) -> Vec<&[Socket]> {
    let mut readings = Vec::new();
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    let mut from = 0;
    for (at, socket) in sockets.iter().enumerate() {
        if !seen.insert((socket.local.as_str(), socket.remote.as_str())) {
            readings.push(&sockets[from..at]);
            from = at;
            seen.clear();
            seen.insert((socket.local.as_str(), socket.remote.as_str()));
        }
    }
    readings.push(&sockets[from..]);
    readings
}

/// The largest growth of an age or a clock, ms.
fn growth_ms(before: &Socket, after: &Socket) -> Option<f64> {
    let growth = |key: &&str| {
        let [before, after] = [before, after].map(|socket| milliseconds(text(socket, key)?));
        Some(after? - before?)
    };
    CLOCKS.iter().filter_map(growth).reduce(f64::max)
}

/// Whether so little passed that it is a control connection, or one that was idle; false where `ss` does not print it.
pub(super) fn is_idle(readings: &Readings<'_>) -> bool {
    let [first, last] = [readings.sockets.first(), readings.sockets.last()];
    let Some((first, last)) = first.zip(last) else {
        return true;
    };
    let moved = |key: &str| {
        let then = number(last.1, key)?;
        let before = number(first.1, key).filter(|_| readings.sockets.len() > 1);
        Some(then - before.unwrap_or(0.0))
    };
    let bytes = [moved("bytes_acked"), moved("bytes_received")];
    let little = |bytes: &f64| *bytes < WORTH_EXPLAINING_BYTES as f64;
    bytes.iter().any(Option::is_some) && bytes.iter().flatten().all(little)
}

/// What the rules say of a connection; nothing where it is no series or `ss` printed too little.
pub(super) fn judge(readings: &Readings<'_>) -> Vec<Finding> {
    let Some(run) = observation(readings).and_then(|seen| seen.run_of(seen.connections.first()?))
    else {
        return Vec::new();
    };
    let mut findings = crate::explain(&Evidence::of(&run));
    let span = Nanos(readings.sockets.last().map_or(0, |(at, _)| *at) - readings.sockets[0].0);
    for finding in &mut findings {
        finding.sentence = format!(
            "{}, {} readings within {span}: {}",
            who(readings.sockets[0].1),
            readings.sockets.len(),
            finding.sentence
        );
    }
    findings
}

fn observation(readings: &Readings<'_>) -> Option<Observation> {
    let sockets = &readings.sockets;
    let rising = sockets.is_sorted_by(|a, b| a.0 < b.0);
    let (first, last) = (sockets.first()?, sockets.last()?);
    if sockets.len() < LEAST || !rising {
        return None;
    }
    let shortest = sockets.windows(2).map(|pair| pair[1].0 - pair[0].0).min()?;
    Some(Observation {
        schema_version: SCHEMA_VERSION,
        kind: Kind::Observation,
        software: Software {
            name: "ss".into(),
            version: "".into(),
        },
        started_at_unix_ms: 0,
        watch: Watch {
            sample_ns: Nanos((shortest / POINTS).max(1)),
            ..Watch::default()
        },
        ended: Ended::Stopped,
        host: HostFacts::default(),
        start_ns: Nanos(first.0),
        end_ns: Nanos(last.0),
        interfaces: Vec::new(),
        counters: Series::default(),
        protocol_growth: BTreeMap::new(),
        sampling: Sampling::default(),
        connections: vec![connection(sockets, last.1)?],
        notes: Vec::new(),
    })
}

fn connection(sockets: &[(u64, &Socket)], last: &Socket) -> Option<Connection> {
    let samples = samples(sockets)?;
    let facts = |column| samples.last(column);
    let port = |address: &str| address.rsplit(':').next()?.parse::<u16>().ok();
    // Ports of services are lower than those that a kernel gives to programs that connect.
    let opener = if port(&last.local) >= port(&last.remote) {
        Opener::ThisHost
    } else {
        Opener::Peer
    };
    Some(Connection {
        id: 1,
        local: last.local.clone(),
        remote: last.remote.clone(),
        opener,
        uid: 0,
        inode: None,
        process: None,
        began_before: true,
        fate: Fate::Open,
        interface: None,
        congestion: last
            .facts
            .iter()
            .find(|(word, value)| value.is_empty() && !is_flag(word))
            .map(|(word, _)| word.clone()),
        tcp: TcpFacts {
            bytes_acked: facts(Column::bytes_acked),
            bytes_sent: facts(Column::bytes_sent),
            bytes_retrans: facts(Column::bytes_retrans),
            bytes_received: facts(Column::bytes_received),
            unacked_packets: facts(Column::unacked_packets),
            snd_mss_bytes: facts(Column::snd_mss_bytes),
            pmtu_bytes: facts(Column::pmtu_bytes),
            ..TcpFacts::default()
        },
        unread_bytes: last.receive_queue.unwrap_or(0),
        unacknowledged_bytes: last.send_queue.unwrap_or(0),
        samples,
        thinned: 1,
    })
}

fn samples(sockets: &[(u64, &Socket)]) -> Option<Series> {
    let mut series = Series::new(sockets.iter().map(|(at, _)| *at).collect());
    for (key, column, unit, missing) in COLUMNS {
        let value = |(_, socket): &(u64, &Socket)| {
            let printed = number(socket, key).map(|value| whole(value * unit));
            printed.or(missing)
        };
        if let Some(values) = sockets.iter().map(value).collect() {
            series.insert(column, values).ok()?;
        }
    }
    // `retrans:0/12`: under way, and in all.
    let all = |(_, socket): &(u64, &Socket)| {
        let all = text(socket, "retrans").and_then(|text| text.split_once('/'));
        all.map_or(Some(0), |(_, all)| all.parse().ok())
    };
    let again: Option<Vec<u64>> = sockets.iter().map(all).collect();
    series.insert(Column::total_retrans_packets, again?).ok()?;
    let deviation = |(_, socket): &(u64, &Socket)| {
        let (_, deviation) = text(socket, "rtt")?.split_once('/')?;
        Some(whole(deviation.parse::<f64>().ok()? * 1e3))
    };
    if let Some(values) = sockets.iter().map(deviation).collect() {
        series.insert(Column::rttvar_us, values).ok()?;
    }
    let unread = |(_, socket): &(u64, &Socket)| socket.receive_queue;
    if let Some(values) = sockets.iter().map(unread).collect() {
        series.insert(Column::unread_bytes, values).ok()?;
    }
    Some(series)
}
