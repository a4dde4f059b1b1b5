//! An observed connection as the run that the rules know: one end's half, the other absent.
//!
//! The opener of the connection stands in the place of a test's client. A direction is one in which payload moved:
//! what merely answers (less than a twentieth of the other direction) is none. The figures are those of the time
//! in which something moved, from the sample before the first byte to that of the last; the ledger is that of
//! the whole connection, for its kernel counted before it was watched, too.

use crate::column::Column;
use crate::plan::{Direction, End, Plan};
use crate::record::{
    ControlFacts, CpuUse, EndRecord, Flow, InterfaceFacts, Kind, Outcome, Role, RunRecord,
    StreamRecord,
};
use crate::series::Series;
use crate::units::{BitRate, Nanos};

use super::{Connection, Observation, Opener};

/// A direction with less than this share of the other's bytes only answers it.
const ANSWERS: u64 = 20;
/// Not paced (`sk_max_pacing_rate` of all ones, in 32 or 64 bits).
const UNLIMITED: [u64; 2] = [u64::MAX, 0xffff_ffff];
/// TCP states in which the peer's FIN was received; see the ledger.
const FIN_RECEIVED: [u64; 4] = [6, 8, 9, 11];
/// TCP states in which this end's FIN was sent, acknowledged or not.
const FIN_SENT: [u64; 6] = [4, 5, 6, 7, 9, 11];
/// Counters that begin at zero with the first sample: their sums are taken over what was watched.
const REBASED: [Column; 6] = [
    Column::total_retrans_packets,
    Column::data_segs_out,
    Column::dsack_dups_packets,
    Column::reord_seen,
    Column::delivered_packets,
    Column::delivered_ce_packets,
];

/// A direction of a connection.
struct Way {
    sends: bool,
    /// First and last row in between which it moved.
    rows: [usize; 2],
}

impl Observation {
    /// The run that a connection is to the rules; `None` where nothing moved while it was watched.
    pub fn run_of(&self, connection: &Connection) -> Option<RunRecord> {
        let ways = ways(connection);
        let at = connection.samples.at_ns();
        let first = ways.iter().map(|way| way.rows[0]).min()?;
        let last = ways.iter().map(|way| way.rows[1]).max()?;
        let (start, end) = (Nanos(at[first]), Nanos(at[last]));
        let role = connection.role();
        let streams = ways
            .iter()
            .zip([1, 3])
            .map(|(way, id)| stream(connection, way, id))
            .collect();
        let half = EndRecord {
            role,
            software: self.software.clone(),
            host: self.host.clone(),
            interface: self.interface_of(connection),
            start_ns: start,
            end_ns: end,
            cpu: CpuUse::default(),
            streams,
            counters: self.counters.clone(),
            interface_counters: None,
            protocol_growth: self.protocol_growth.clone(),
            stage: None,
        };
        let (client, server) = match role {
            Role::Client => (Some(half), None),
            Role::Server => (None, Some(half)),
        };
        Some(RunRecord {
            schema_version: self.schema_version,
            kind: Kind::Observation,
            written_by: role,
            software: self.software.clone(),
            started_at_unix_ms: self.started_at_unix_ms,
            plan: self.plan(connection, &ways, end.since(start)),
            outcome: Outcome::Completed,
            cookie: "".into(),
            control: ControlFacts {
                local: connection.local.clone(),
                remote: connection.remote.clone(),
                ..ControlFacts::default()
            },
            client,
            server,
            peer_results: None,
            clock: None,
            notes: Vec::new(),
            latency: None,
            counter_runs: Vec::new(),
            cells: Vec::new(),
            host_names: None,
        })
    }

    /// The interface that a connection's packets left by.
    pub fn interface_of(&self, connection: &Connection) -> Option<InterfaceFacts> {
        let name = connection.interface.as_ref()?;
        self.interfaces
            .iter()
            .find(|interface| interface.name == *name)
            .cloned()
    }

    /// What a test between the same hosts would be; of the connection itself only the pacing is known.
    fn plan(&self, connection: &Connection, ways: &[Way], span: Nanos) -> Plan {
        let mut plan = Plan::new(peer(&connection.remote));
        let here = Flow::sent_by(connection.role());
        let flows: Vec<Flow> = ways
            .iter()
            .map(|way| if way.sends { here } else { here.reversed() })
            .collect();
        plan.direction = match flows.as_slice() {
            [Flow::ClientToServer] => Direction::Send,
            [Flow::ServerToClient] => Direction::Receive,
            _ => Direction::Both,
        };
        plan.end = End::TimeNs(Nanos(span.0.max(1)));
        plan.sample_ns = Nanos(
            self.watch
                .sample_ns
                .0
                .saturating_mul(u64::from(connection.thinned.max(1))),
        );
        plan.kernel_pacing_bps = connection
            .tcp
            .max_pacing_rate_bytes_per_s
            .filter(|rate| *rate > 0 && !UNLIMITED.contains(rate))
            .map(|bytes| BitRate(bytes.saturating_mul(8)));
        plan
    }
}

impl Connection {
    /// The place of this host in the run: the opener is the client.
    pub fn role(&self) -> Role {
        match self.opener {
            Opener::ThisHost => Role::Client,
            Opener::Peer => Role::Server,
        }
    }

    /// What the application wrote, as the kernel took it over, bytes: acknowledged or still held.
    pub fn written(&self) -> Option<u64> {
        let acked = self.tcp.bytes_acked?;
        let payload = acked.saturating_sub(self.acknowledged_marks(acked));
        let fin = u64::from(self.unacknowledged_bytes > 0 && self.fin_sent());
        Some(payload.saturating_add(self.unacknowledged_bytes.saturating_sub(fin)))
    }

    /// SYN and FIN within `acked`, as far as is known.
    fn acknowledged_marks(&self, acked: u64) -> u64 {
        let syn = u64::from(self.opener == Opener::ThisHost);
        let once = self
            .tcp
            .bytes_sent
            .zip(self.tcp.bytes_retrans)
            .map(|(all, again)| all.saturating_sub(again));
        // More was acknowledged than payload was sent: that is the FIN.
        let fin = once.is_some_and(|once| self.fin_sent() && acked > once.saturating_add(syn));
        syn + u64::from(fin)
    }

    fn fin_sent(&self) -> bool {
        self.tcp
            .state
            .is_some_and(|state| FIN_SENT.contains(&state))
    }

    /// Whether all that was sent had been acknowledged, and nothing waited.
    fn drained(&self) -> bool {
        self.unacknowledged_bytes == 0 && self.tcp.unacked_packets == Some(0)
    }
}

/// `192.0.2.1` of `192.0.2.1:5201`, `fe80::1%2` of `[fe80::1%2]:5201`.
fn peer(address: &str) -> &str {
    address
        .rsplit_once(':')
        .map_or(address, |(host, _)| host)
        .trim_start_matches('[')
        .trim_end_matches(']')
}

fn ways(connection: &Connection) -> Vec<Way> {
    let [out, inn] = connection.moved();
    // A SYN or a FIN alone is no payload.
    let moves = |bytes: u64, other: u64| bytes > 2 && bytes >= other / ANSWERS;
    [
        (true, out, inn, Column::bytes_acked),
        (false, inn, out, Column::bytes_received),
    ]
    .into_iter()
    .filter(|(_, bytes, other, _)| moves(*bytes, *other))
    .filter_map(|(sends, _, _, column)| {
        let rows = moving_rows(connection.samples.column(column)?)?;
        Some(Way { sends, rows })
    })
    .collect()
}

/// The row before the first growth, and that of the last.
fn moving_rows(column: &[u64]) -> Option<[usize; 2]> {
    let (first, last) = (column.first()?, column.last()?);
    let from = column
        .partition_point(|value| value <= first)
        .checked_sub(1)?;
    let to = column.partition_point(|value| value < last);
    (from < to).then_some([from, to])
}

fn stream(connection: &Connection, way: &Way, id: u32) -> StreamRecord {
    let samples = &connection.samples;
    let at = samples.at_ns();
    let row = |column| {
        samples
            .column(column)
            .map_or(0, |column| column[way.rows[0]])
    };
    let here = Flow::sent_by(connection.role());
    let syn = u64::from(connection.opener == Opener::ThisHost);
    let app = if way.sends {
        None
    } else {
        Some(read(connection))
    };
    let (app_bytes, omitted_bytes) = match &app {
        None => (
            connection.written().unwrap_or(0),
            row(Column::bytes_acked).saturating_sub(syn),
        ),
        Some(curve) => (
            curve.last().copied().unwrap_or(0),
            curve.get(way.rows[0]).copied().unwrap_or(0),
        ),
    };
    let word = |value: Option<u64>| value.and_then(|value| u32::try_from(value).ok());
    StreamRecord {
        id,
        flow: if way.sends { here } else { here.reversed() },
        sends: way.sends,
        local: connection.local.clone(),
        remote: connection.remote.clone(),
        congestion: connection.congestion.clone(),
        mss_bytes: word(connection.tcp.snd_mss_bytes),
        path_mtu_bytes: word(connection.tcp.pmtu_bytes),
        window_asked_bytes: None,
        send_buffer_bytes: samples.last(Column::send_buffer_bytes),
        receive_buffer_bytes: samples.last(Column::receive_buffer_bytes),
        first_byte_ns: Some(Nanos(at[way.rows[0]])),
        last_byte_ns: Some(Nanos(at[way.rows[1]])),
        omit_until_ns: Some(Nanos(at[way.rows[0]])),
        app_bytes,
        omitted_bytes,
        file_bytes: None,
        cookie_bytes: 0,
        active_opener: connection.opener == Opener::ThisHost,
        unread_bytes: (!way.sends).then_some(connection.unread_bytes),
        drained: way.sends && connection.drained(),
        tcp: Some(connection.tcp.clone()),
        udp: None,
        spliced: false,
        zerocopy: None,
        cpu: CpuUse::default(),
        samples: series(samples, app),
        thinned: connection.thinned,
        sampling_ns: 0,
        error: None,
        too_long: false,
    }
}

/// What the receiving application had read at each sample: received less unread, a FIN not counted.
///
/// The kernel tells the two at slightly different instants, so the difference may step back: it is held up.
fn read(connection: &Connection) -> Vec<u64> {
    let column = |column| connection.samples.column(column).unwrap_or_default();
    let (received, unread) = (column(Column::bytes_received), column(Column::unread_bytes));
    let states = column(Column::state);
    let mut most = 0;
    received
        .iter()
        .enumerate()
        .map(|(row, received)| {
            let fin = states
                .get(row)
                .is_some_and(|state| FIN_RECEIVED.contains(state));
            let waits = unread.get(row).copied().unwrap_or(0).max(u64::from(fin));
            most = received.saturating_sub(waits).max(most);
            most
        })
        .collect()
}

/// The samples with sums that begin at the first, and with what the application read.
fn series(samples: &Series, app: Option<Vec<u64>>) -> Series {
    let mut series = samples.clone();
    for column in REBASED {
        if let Some(values) = samples.column(column) {
            let first = values.first().copied().unwrap_or(0);
            let since = values.iter().map(|value| value.saturating_sub(first));
            // As many values as rows: it cannot fail.
            drop(series.insert(column, since.collect()));
        }
    }
    if let Some(app) = app {
        drop(series.insert(Column::app_bytes, app));
    }
    series
}
