//! One connection that is watched.

use std::net::SocketAddr;

use linerate_kernel::tcp_table::TcpSocket;
use linerate_model::column::Column;
use linerate_model::observation::{
    BBR_COLUMNS, Clocks, Connection, Fate, Glimpse, Holder, Opener, SOCKET_COLUMNS, Sighting,
    sampled_fields,
};
use linerate_model::plain_text::PlainText;
use linerate_model::tcp_info::{Field, TcpFacts, TcpInfo};
use linerate_model::units::{BitRate, Bytes, Nanos};

use super::store::Store;

/// `TCP_ESTABLISHED`.
const ESTABLISHED: u64 = 1;

/// A connection and its samples.
#[derive(Debug)]
pub(super) struct Tracked {
    pub(super) id: u32,
    pub(super) cookie: u64,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) process: Option<Holder>,
    pub(super) inode: Option<u64>,
    pub(super) interface: Option<PlainText>,
    /// `None` while it is open.
    pub(super) fate: Option<Fate>,
    /// Readings in a row that it was missing from.
    pub(super) missing: u32,
    /// The reading that saw it last.
    pub(super) reading: u64,
    /// By who listens; its own counters, where they tell, know better.
    guessed_opener: Opener,
    sure_opener: Option<Opener>,
    began_before: bool,
    uid: u32,
    congestion: Option<String>,
    facts: TcpInfo,
    unread: u64,
    unacknowledged: u64,
    fields: Vec<&'static Field>,
    memory: bool,
    bbr: bool,
    pub(super) store: Store,
    /// The sample that is being taken, kept for its memory.
    values: Vec<u64>,
    first_moved: Option<[u64; 2]>,
    told: Option<Told>,
}

/// What the last interval ended with.
#[derive(Debug, Clone, Copy)]
struct Told {
    at: u64,
    acked: u64,
    received: u64,
    retransmits: Option<u64>,
    clocks: Option<[u64; 3]>,
}

impl Tracked {
    /// A connection seen for the first time. `None` for a socket without an account.
    pub(super) fn new(
        id: u32,
        socket: &TcpSocket<'_>,
        every: Nanos,
        began_before: bool,
        listened: bool,
    ) -> Option<Self> {
        let info = socket.info.clone()?;
        let fields: Vec<&'static Field> = sampled_fields()
            .filter(|field| info.value(field).is_some())
            .collect();
        let mut columns: Vec<Column> = fields.iter().map(|field| field.column()).collect();
        let memory = socket.memory.is_some();
        columns.extend(if memory {
            &SOCKET_COLUMNS[..]
        } else {
            &SOCKET_COLUMNS[..2]
        });
        columns.extend(socket.bbr.map_or(&[][..], |_| &BBR_COLUMNS[..]));
        Some(Self {
            id,
            cookie: socket.cookie,
            local: socket.local,
            remote: socket.remote,
            process: None,
            inode: None,
            interface: None,
            fate: None,
            missing: 0,
            reading: 0,
            guessed_opener: if listened {
                Opener::Peer
            } else {
                Opener::ThisHost
            },
            sure_opener: None,
            began_before,
            uid: socket.uid,
            congestion: None,
            facts: info,
            unread: 0,
            unacknowledged: 0,
            values: Vec::with_capacity(columns.len()),
            store: Store::new(columns, every),
            fields,
            memory,
            bbr: socket.bbr.is_some(),
            first_moved: None,
            told: None,
        })
    }

    /// Takes a sample.
    pub(super) fn sample(&mut self, at: Nanos, socket: &TcpSocket<'_>) {
        let Some(info) = &socket.info else { return };
        self.facts = info.clone();
        self.unread = u64::from(socket.unread);
        self.unacknowledged = u64::from(socket.unacknowledged);
        if self.inode.is_none() && socket.inode != 0 {
            self.inode = Some(u64::from(socket.inode));
        }
        if let Some(name) = socket.congestion
            && self.congestion.as_deref() != Some(name)
        {
            self.congestion = Some(name.to_owned());
        }
        self.learn_opener();
        self.values.clear();
        let fields = self
            .fields
            .iter()
            .map(|field| info.value(field).unwrap_or(0));
        self.values.extend(fields);
        self.values.extend([self.unread, self.unacknowledged]);
        if self.memory {
            // The kernel's last word comes without: what was known last then stands.
            let known = |column: Column| self.store.value(column).unwrap_or(0);
            let memory = match socket.memory {
                Some(memory) => [
                    u64::from(memory.received),
                    u64::from(memory.receive_buffer),
                    u64::from(memory.queued),
                    u64::from(memory.send_buffer),
                ],
                None => [2, 3, 4, 5].map(|column| known(SOCKET_COLUMNS[column])),
            };
            self.values.extend(memory);
        }
        if self.bbr {
            let known = |column: Column| self.store.value(column).unwrap_or(0);
            let model = match socket.bbr {
                Some(model) => [
                    model.bandwidth.0,
                    model
                        .min_rtt
                        .map_or(u64::from(u32::MAX), |rtt| rtt.0 / 1000),
                ],
                None => BBR_COLUMNS.map(known),
            };
            self.values.extend(model);
        }
        self.store.push(at, &self.values);
        if self.first_moved.is_none() {
            self.first_moved = Some(self.counted());
            self.told = Some(self.state(at.0));
        }
    }

    /// An active opener's SYN is counted as acknowledged, a passive one's is not: with nothing under way and
    /// the FIN still to come the difference shows it, whichever program listens now.
    fn learn_opener(&mut self) {
        if self.sure_opener.is_some() || self.value(Column::state) != Some(ESTABLISHED) {
            return;
        }
        let (Some(0), Some(acked), Some(sent), Some(again)) = (
            self.value(Column::unacked_packets),
            self.value(Column::bytes_acked),
            self.value(Column::bytes_sent),
            self.value(Column::bytes_retrans),
        ) else {
            return;
        };
        self.sure_opener = match acked.checked_sub(sent.saturating_sub(again)) {
            Some(0) => Some(Opener::Peer),
            Some(1) => Some(Opener::ThisHost),
            // Its own host refused segments, which were counted as sent.
            _ => None,
        };
    }

    fn opener(&self) -> Opener {
        self.sure_opener.unwrap_or(self.guessed_opener)
    }

    fn value(&self, column: Column) -> Option<u64> {
        let field = self.fields.iter().find(|field| field.column() == column)?;
        self.facts.value(field)
    }

    /// Acknowledged and received so far.
    fn counted(&self) -> [u64; 2] {
        [Column::bytes_acked, Column::bytes_received].map(|column| self.value(column).unwrap_or(0))
    }

    /// Acknowledged and received since it was first seen, together.
    pub(super) fn moved(&self) -> u64 {
        let first = self.first_moved.unwrap_or_default();
        let now = self.counted();
        now[0]
            .saturating_sub(first[0])
            .saturating_add(now[1].saturating_sub(first[1]))
    }

    /// When its last sample was taken.
    pub(super) fn seen(&self) -> Nanos {
        Nanos(self.store.latest().map_or(0, |row| row[0]))
    }

    /// What is reported when it is first seen.
    pub(super) fn found(&self, at: Nanos) -> Sighting {
        Sighting::Found {
            at_ns: at,
            id: self.id,
            local: self.local.to_string().into(),
            remote: self.remote.to_string().into(),
            opener: self.opener(),
            began_before: self.began_before,
            process: self.process.clone(),
        }
    }

    /// What is reported when it is gone.
    pub(super) fn gone(&self, at: Nanos) -> Sighting {
        Sighting::Gone {
            at_ns: at,
            id: self.id,
            local: self.local.to_string().into(),
            remote: self.remote.to_string().into(),
            bytes_acked: self.value(Column::bytes_acked),
            bytes_received: self.value(Column::bytes_received),
            fate: self.fate.unwrap_or(Fate::Open),
        }
    }

    /// Where its counters stand.
    fn state(&self, at: u64) -> Told {
        let [acked, received] = self.counted();
        let clocks = [
            self.value(Column::busy_time_us),
            self.value(Column::rwnd_limited_us),
            self.value(Column::sndbuf_limited_us),
        ];
        Told {
            at,
            acked,
            received,
            retransmits: self.value(Column::total_retrans_packets),
            clocks: match clocks {
                [Some(busy), Some(window), Some(buffer)] => Some([busy, window, buffer]),
                _ => None,
            },
        }
    }

    /// What it did since the last time that this was asked, or since it was first seen.
    pub(super) fn glimpse(&mut self) -> Option<Glimpse> {
        let now = self.state(self.store.latest()?[0]);
        let before = self.told.replace(now)?;
        let span = Nanos(now.at.saturating_sub(before.at));
        let rate = |from: u64, to: u64| {
            BitRate::of(Bytes(to.saturating_sub(from)), span).map_or(0, |rate| rate.0)
        };
        let mss = self.value(Column::snd_mss_bytes);
        Some(Glimpse {
            id: self.id,
            local: self.local.to_string().into(),
            remote: self.remote.to_string().into(),
            process: self.process.clone(),
            sent_bps: rate(before.acked, now.acked),
            received_bps: rate(before.received, now.received),
            retransmits: now
                .retransmits
                .zip(before.retransmits)
                .map(|(now, before)| now.saturating_sub(before)),
            rtt_us: self.value(Column::rtt_us).filter(|rtt| *rtt > 0),
            congestion_window_bytes: self
                .value(Column::snd_cwnd_packets)
                .zip(mss)
                .map(|(packets, mss)| packets.saturating_mul(mss)),
            receive_window_bytes: self.value(Column::snd_wnd_bytes),
            unread_bytes: self.unread,
            unacknowledged_bytes: self.unacknowledged,
            clocks: now
                .clocks
                .zip(before.clocks)
                .and_then(|(now, before)| shares(before, now, span)),
        })
    }

    /// Its part of the record.
    pub(super) fn finish(self) -> Connection {
        Connection {
            id: self.id,
            local: self.local.to_string().into(),
            remote: self.remote.to_string().into(),
            opener: self.opener(),
            uid: self.uid,
            inode: self.inode,
            process: self.process,
            began_before: self.began_before,
            fate: self.fate.unwrap_or(Fate::Open),
            interface: self.interface,
            congestion: self.congestion.map(Into::into),
            tcp: TcpFacts::from(&self.facts),
            unread_bytes: self.unread,
            unacknowledged_bytes: self.unacknowledged,
            thinned: self.store.thinned(),
            samples: self.store.into_series(),
        }
    }
}

/// The kernel's clocks over a span: busy time includes the two others.
fn shares(before: [u64; 3], now: [u64; 3], span: Nanos) -> Option<Clocks> {
    let elapsed = span.0 as f64 / 1e3;
    if elapsed <= 0.0 {
        return None;
    }
    let grown = |clock: usize| (now[clock].saturating_sub(before[clock])) as f64 / elapsed;
    let busy = grown(0).min(1.0);
    let window = grown(1).min(busy);
    let buffer = grown(2).min(busy - window);
    Some(Clocks {
        application: 1.0 - busy,
        send_buffer: buffer,
        receive_window: window,
        network: busy - window - buffer,
    })
}
