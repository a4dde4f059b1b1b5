//! The ledger: bytes booked at every place that they pass, and the equations between the places.
//!
//! TCP, for each stream and direction (source of the counters: `tcp_info`, Linux 4.19 and newer):
//!
//! - written + cookie = `bytes_sent` − `bytes_retrans` + `notsent` (a FIN that waits behind unsent data
//!   counts one in `notsent`, `write_seq − snd_nxt`)
//!   Where a queue or device of the sending host refused segments, `bytes_sent` counts each of them for
//!   every try, and `bytes_retrans` none (`__tcp_transmit_skb` counts before it hands over): what is
//!   too much by that has its own row, and "sent once" below is without it
//! - `bytes_acked` = `bytes_sent` − `bytes_retrans` + SYN + FIN, once all is acknowledged (an active
//!   opener's SYN counts one, a passive opener's none; the FIN counts one)
//! - `bytes_received` = cookie + read + unread + FIN
//! - sent once = received + in flight; nothing is in flight when both ends drained
//!
//! UDP, in datagrams: sent = delivered + dropped in the receiver's socket + lost on the path, where
//! delivered counts every datagram once, however often it came.
//!
//! Of a connection that was only watched, one kernel's account is all there is: the applications' counts and the
//! other end's are not known, and the one equation is that of what was acknowledged once nothing is under way.
//!
//! Interface counters carry headers and other traffic, so they only bound what the sockets say: from
//! below by what was acknowledged or received, since a local queueing discipline may drop segments that
//! `bytes_sent` counts before the interface counts them.

mod datagrams;
mod equation;

use serde::{Deserialize, Serialize};

use linerate_model::plan::Protocol;
use linerate_model::record::{EndRecord, Flow, Role, RunRecord, StreamRecord};
use linerate_model::tcp_info::TcpFacts;

use datagrams::udp_entry;
use equation::{
    ACKNOWLEDGED, APPLICATIONS, Equation, INTERFACE_IN, INTERFACE_OUT, KERNELS, KERNELS_CUT_OFF,
    RECEIVING, RECEIVING_CUT_OFF, SENDING, SENDING_REFUSED,
};

/// TCP states in which our FIN has been acknowledged: `FIN_WAIT2`, `TIME_WAIT`.
const FIN_ACKNOWLEDGED: [u64; 2] = [5, 6];
/// TCP states in which the peer's FIN was received: `TIME_WAIT`, `CLOSE_WAIT`, `LAST_ACK`, CLOSING.
const FIN_RECEIVED: [u64; 4] = [6, 8, 9, 11];
/// TCP states in which our FIN is queued or sent and not acknowledged: `FIN_WAIT1`, `LAST_ACK`, CLOSING.
const FIN_WAITS: [u64; 3] = [4, 9, 11];
/// What a socket says of itself once `TIME_WAIT` has been handed to the kernel's own table, or after a reset.
const CLOSED: u64 = 7;

/// The whole book.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// One for each direction of the test.
    pub directions: Vec<DirectionLedger>,
}

/// One direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionLedger {
    /// Which.
    pub flow: Flow,
    /// The sum over its streams; a place is absent where a stream does not have it.
    pub total: Entry,
    /// One entry for each stream, by id.
    pub streams: Vec<Entry>,
    /// Bytes that left the sending end's interface meanwhile: an upper bound, with headers and other traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_out_bytes: Option<u64>,
    /// Bytes that came in at the receiving end's interface meanwhile, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_in_bytes: Option<u64>,
    /// The equations that could be tested, and how they came out.
    pub checks: Vec<Check>,
    /// What could not be tested, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// The places of one stream, or their sum. Bytes, unless a name says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// Positional id; absent in a sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// Written by the sending application, without the cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<u64>,
    /// The stream's cookie, where it went the same way as the payload.
    pub cookie: u64,
    /// Sending kernel: sent, with repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_sent: Option<u64>,
    /// Sending kernel: sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_retrans: Option<u64>,
    /// Sending kernel: in `bytes_sent`, but refused by a queue or device of its own host and tried anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    /// Sending kernel: still unsent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notsent: Option<u64>,
    /// Sending kernel: acknowledged, SYN and FIN as counted by the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_acked: Option<u64>,
    /// Sent once and not received by the peer's kernel when the test was cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u64>,
    /// Receiving kernel: received in order, the FIN counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
    /// In the receive queue when reading ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<u64>,
    /// Read by the receiving application, without the cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<u64>,
    /// Datagrams, for UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramEntry>,
}

/// Datagrams of one stream, or their sum.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DatagramEntry {
    /// Handed to the sending kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Delivered to the receiving application, each counted once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u64>,
    /// sent − delivered, to the last datagram sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Of the lost: dropped at the receiver's socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_dropped: Option<u64>,
    /// Of the lost: the rest, which did not reach the receiver's socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_lost: Option<u64>,
    /// Deliveries beyond the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicated: Option<u64>,
    /// First deliveries that came late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    /// Too late to tell from duplicates: `lost` may be too high by this much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_old: Option<u64>,
}

/// What the two sides of an equation count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Bytes of sockets and applications.
    #[default]
    Bytes,
    /// Bytes of an interface, as a bound of those of sockets. Other traffic, another route or a driver that counts late
    /// can break it without a byte being lost.
    InterfaceBytes,
    /// Datagrams of UDP, of any size.
    Datagrams,
}

impl Counted {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_bytes(&self) -> bool {
        *self == Self::Bytes
    }
}

/// One equation, tested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The equation in words.
    pub equation: String,
    /// What the two sides are, each the beginning of a sentence that its figure ends: `the receiving kernel received`.
    #[serde(skip)]
    pub sides: [&'static str; 2],
    /// What its sides count; absent in JSON = bytes of sockets and applications.
    #[serde(default, skip_serializing_if = "Counted::is_bytes")]
    pub counted: Counted,
    /// The stream; absent = the sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<u32>,
    /// Left side.
    pub left: u64,
    /// Right side.
    pub right: u64,
    /// Whether it holds.
    pub holds: bool,
    /// Where it does not: which figure to trust and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<String>,
}

impl Ledger {
    /// Books a record.
    pub fn of(record: &RunRecord) -> Self {
        Self {
            directions: record
                .flows()
                .iter()
                .map(|flow| DirectionLedger::of(record, *flow))
                .collect(),
        }
    }

    /// Whether every equation that could be tested holds. False where none could be.
    pub fn balanced(&self) -> bool {
        self.directions.iter().all(DirectionLedger::balanced)
    }

    /// The equations that do not hold.
    pub fn broken(&self) -> impl Iterator<Item = (Flow, &Check)> {
        self.directions.iter().flat_map(|direction| {
            direction
                .checks
                .iter()
                .filter(|check| !check.holds)
                .map(move |check| (direction.flow, check))
        })
    }
}

impl Check {
    /// By how much the two sides differ.
    pub fn difference(&self) -> u64 {
        self.left.abs_diff(self.right)
    }
}

impl DirectionLedger {
    /// Whether every equation that could be tested holds, and at least one could.
    pub fn balanced(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.holds)
    }

    fn of(record: &RunRecord, flow: Flow) -> Self {
        let sender = record.end(flow.sender());
        let receiver = record.end(flow.receiver());
        let mut direction = Self {
            flow,
            total: Entry::default(),
            streams: Vec::new(),
            interface_out_bytes: sender
                .and_then(|end| interface_growth(end, |counters| counters.tx_bytes)),
            interface_in_bytes: receiver
                .and_then(|end| interface_growth(end, |counters| counters.rx_bytes)),
            checks: Vec::new(),
            unknown: Vec::new(),
        };
        direction.say_what_is_missing(record, flow);
        for id in stream_ids(sender, receiver, flow) {
            let halves = Halves {
                record,
                flow,
                id,
                sent: sender.and_then(|end| end.stream(id)),
                received: receiver.and_then(|end| end.stream(id)),
            };
            let entry = match record.plan.protocol {
                // Of SCTP no count of the kernels is read: what is left are the applications' bytes.
                Protocol::Tcp | Protocol::Sctp => {
                    let books = TcpBooks::of(halves);
                    direction.checks.extend(books.checks());
                    books.entry
                }
                Protocol::Udp => udp_entry(halves, &mut direction.checks),
            };
            direction.streams.push(entry);
        }
        direction.total = sum(&direction.streams);
        if let (Some(left), Some(right)) =
            (direction.interface_out_bytes, direction.total.bytes_acked)
        {
            direction.bound(INTERFACE_OUT, left, right);
        }
        if let (Some(left), Some(right)) =
            (direction.interface_in_bytes, direction.total.bytes_received)
        {
            direction.bound(INTERFACE_IN, left, right);
        }
        direction
    }

    fn bound(&mut self, equation: Equation, left: u64, right: u64) {
        let trust = "the sockets' figure: the traffic, or a part of it, took another interface than the one that was counted";
        self.checks.push(Check {
            counted: Counted::InterfaceBytes,
            ..check(equation, None, left, right, left >= right, trust)
        });
    }

    fn say_what_is_missing(&mut self, record: &RunRecord, flow: Flow) {
        if record.plan.mptcp {
            self.unknown.push(
                "the kernels' byte counts: Multipath TCP keeps them for each subflow, and a subflow may be gone before the connection is"
                    .to_owned(),
            );
        }
        if record.plan.protocol == Protocol::Sctp {
            self.unknown
                .push("the kernels' byte counts: linerate does not read them for SCTP".to_owned());
        }
        if record.is_observation() {
            self.say_what_was_not_watched(record, flow);
            return;
        }
        for role in [flow.sender(), flow.receiver()] {
            let side = if role == flow.sender() {
                "sending"
            } else {
                "receiving"
            };
            if record.end(role).is_none() {
                let who = match role {
                    Role::Client => "client",
                    Role::Server => "server",
                };
                let why = if record.control.peer_software.is_some() {
                    "'s part of the record did not arrive"
                } else if record.control.iperf2.is_some() {
                    " is an iperf 2, which reports nothing of its kernel and interface"
                } else {
                    " is a stock iperf3, which reports only its application's bytes, not those of its kernel or interface"
                };
                self.unknown
                    .push(format!("the {side} kernel and interface: the {who}{why}"));
            }
        }
    }

    fn say_what_was_not_watched(&mut self, record: &RunRecord, flow: Flow) {
        let side = if record.written_by == flow.sender() {
            "receiving"
        } else {
            "sending"
        };
        self.unknown.push(format!(
            "the {side} kernel, application and interface: {} was not watched",
            record.control.remote
        ));
    }
}

fn interface_growth(
    end: &EndRecord,
    of: fn(&linerate_model::record::InterfaceCounters) -> u64,
) -> Option<u64> {
    let pair = end.interface_counters.as_ref()?;
    // A counter that went backwards belongs to an interface that was made anew.
    of(&pair.after).checked_sub(of(&pair.before))
}

fn stream_ids(sender: Option<&EndRecord>, receiver: Option<&EndRecord>, flow: Flow) -> Vec<u32> {
    let ids_of = |end: &EndRecord| {
        end.streams_of(flow)
            .map(|stream| stream.id)
            .collect::<Vec<_>>()
    };
    let mut ids: Vec<u32> = [sender, receiver]
        .into_iter()
        .flatten()
        .flat_map(ids_of)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn check(
    equation: Equation,
    stream: Option<u32>,
    left: u64,
    right: u64,
    holds: bool,
    trust: &str,
) -> Check {
    Check {
        equation: equation.words.to_owned(),
        sides: [equation.left, equation.right],
        counted: Counted::Bytes,
        stream,
        left,
        right,
        holds,
        trust: (!holds).then(|| trust.to_owned()),
    }
}

/// What a stock peer's results say of a stream, in bytes with the omitted part, if that can be known.
fn peer_bytes(record: &RunRecord, id: u32) -> Option<u64> {
    let omitted = record.plan.omit_ns.0 > 0;
    let stream = record
        .peer_results
        .as_ref()?
        .streams
        .iter()
        .find(|stream| stream.id == id)?;
    // A stock peer leaves the omitted part out by its own timer; what it moved before is unknown.
    (!omitted).then_some(stream.bytes)
}

/// A stream as both ends' records know it.
#[derive(Clone, Copy)]
struct Halves<'a> {
    record: &'a RunRecord,
    flow: Flow,
    id: u32,
    sent: Option<&'a StreamRecord>,
    received: Option<&'a StreamRecord>,
}

impl<'a> Halves<'a> {
    /// What an application counted, without the cookie: by its own half, else by what the peer told. Of a connection
    /// that was only watched no application's count is known.
    fn counted(self, half: Option<&StreamRecord>) -> Option<u64> {
        half.filter(|_| !self.record.is_observation())
            .map(|stream| stream.app_bytes)
            .or_else(|| peer_bytes(self.record, self.id))
    }

    fn sending_kernel(self) -> Option<&'a TcpFacts> {
        self.sent?.tcp.as_ref()
    }

    fn check(self, equation: Equation, left: u64, right: u64, holds: bool, trust: &str) -> Check {
        check(equation, Some(self.id), left, right, holds, trust)
    }

    /// The places that are read from the record.
    fn tcp_entry(self) -> Entry {
        let out = self.sending_kernel();
        let inn = self.received.and_then(|stream| stream.tcp.as_ref());
        Entry {
            id: Some(self.id),
            written: self.counted(self.sent),
            // The cookie is written by the client on every data connection.
            cookie: match self.flow {
                Flow::ClientToServer => self
                    .sent
                    .or(self.received)
                    .map_or(0, |stream| stream.cookie_bytes),
                Flow::ServerToClient => 0,
            },
            bytes_sent: out.and_then(|facts| facts.bytes_sent),
            bytes_retrans: out.and_then(|facts| facts.bytes_retrans),
            notsent: out.and_then(|facts| facts.notsent_bytes),
            bytes_acked: out.and_then(|facts| facts.bytes_acked),
            bytes_received: inn.and_then(|facts| facts.bytes_received),
            unread: self.received.and_then(|stream| stream.unread_bytes),
            read: self.counted(self.received),
            ..Entry::default()
        }
    }
}

/// The places of a TCP stream, and what follows from them before the equations are tested.
struct TcpBooks<'a> {
    halves: Halves<'a>,
    entry: Entry,
    /// Sent once, without what its own host refused.
    once: Option<u64>,
    /// Not sent yet, without a FIN that waits.
    unsent: Option<u64>,
    /// Received by the receiving kernel, without the FIN.
    arrived: Option<u64>,
}

impl<'a> TcpBooks<'a> {
    fn of(halves: Halves<'a>) -> Self {
        let mut entry = halves.tcp_entry();
        let arrived = || {
            let stream = halves.received?;
            let fin = fin_received(stream, stream.tcp.as_ref()?);
            Some(entry.bytes_received?.saturating_sub(fin))
        };
        let unsent = || {
            let bytes = entry.notsent?;
            Some(bytes.saturating_sub(fin_waiting(bytes, halves.sending_kernel()?)))
        };
        let (arrived, unsent) = (arrived(), unsent());
        let all = entry.bytes_sent.zip(entry.bytes_retrans);
        let tries = all.map(|(all, again)| all.saturating_sub(again));
        entry.refused = tries.and_then(|tries| refused(halves, &entry, tries, unsent));
        let once = tries.map(|bytes| bytes.saturating_sub(entry.refused.unwrap_or(0)));
        entry.in_flight = match (arrived, halves.sent, once, entry.bytes_acked) {
            (Some(arrived), _, Some(once), _) => once.checked_sub(arrived),
            // The receiving kernel is not known: what it did not acknowledge may be on its way still.
            (None, Some(stream), Some(once), Some(acked)) if !stream.drained => {
                once.checked_sub(acked.saturating_sub(u64::from(stream.active_opener)))
            }
            _ => None,
        };
        Self {
            halves,
            entry,
            once,
            unsent,
            arrived,
        }
    }

    fn checks(&self) -> impl Iterator<Item = Check> {
        let between = match (self.once, self.arrived) {
            (Some(once), Some(arrived)) => Some(self.between_kernels(once, arrived)),
            _ => self.between_applications(),
        };
        [
            self.sending(),
            self.acknowledged(),
            self.receiving(),
            between,
        ]
        .into_iter()
        .flatten()
    }

    /// Between the sending application and its kernel.
    fn sending(&self) -> Option<Check> {
        let stream = self.halves.sent?;
        let left = stream.app_bytes.saturating_add(self.entry.cookie);
        let right = self.once?.saturating_add(self.unsent?);
        let trust = if left > right {
            "the sending kernel's figure: it counts what TCP took over"
        } else {
            "the sending application's figure: the kernel counts a segment that its own host refuses as sent, and again when it is sent"
        };
        let equation = if self.entry.refused.is_some() {
            SENDING_REFUSED
        } else {
            SENDING
        };
        let check = self
            .halves
            .check(equation, left, right, left == right, trust);
        (!self.halves.record.is_observation()).then_some(check)
    }

    /// Between what a kernel sent and what was acknowledged, once all is.
    fn acknowledged(&self) -> Option<Check> {
        let stream = self.halves.sent.filter(|stream| stream.drained)?;
        let (once, acked) = self.once.zip(self.entry.bytes_acked)?;
        let facts = self.halves.sending_kernel()?;
        let right = if self.halves.record.is_observation() {
            // Who opened a connection that was only watched, and whether its FIN was sent, may not be known.
            acked.clamp(once, once.saturating_add(2))
        } else {
            let data = once.saturating_add(u64::from(stream.active_opener));
            data.saturating_add(fin_acknowledged(facts, acked, data))
        };
        let trust = "bytes_acked: it is what the receiving kernel confirmed";
        Some(
            self.halves
                .check(ACKNOWLEDGED, acked, right, acked == right, trust),
        )
    }

    /// Between the receiving kernel and its application.
    fn receiving(&self) -> Option<Check> {
        let stream = self.halves.received?;
        let left = self.arrived?;
        let taken = self.entry.cookie.saturating_add(stream.app_bytes);
        let (equation, right, holds) = if stream.drained {
            let right = taken.saturating_add(stream.unread_bytes.unwrap_or(0));
            (RECEIVING, right, left == right)
        } else {
            // Bytes still came in between the two questions to the kernel: no equality can be asked for.
            (RECEIVING_CUT_OFF, taken, left >= taken)
        };
        let trust = "the receiving application's figure: these bytes were read";
        let check = self.halves.check(equation, left, right, holds, trust);
        (!self.halves.record.is_observation()).then_some(check)
    }

    fn between_kernels(&self, once: u64, arrived: u64) -> Check {
        let drained = |half: Option<&StreamRecord>| half.is_some_and(|stream| stream.drained);
        let (equation, left, holds) = if drained(self.halves.sent) && drained(self.halves.received)
        {
            (KERNELS, once, once == arrived)
        } else {
            // The kernel goes on sending what it holds after it was asked.
            let bound = once.saturating_add(self.unsent.unwrap_or(0));
            (KERNELS_CUT_OFF, bound, bound >= arrived)
        };
        let trust = "the receiving kernel's figure";
        self.halves.check(equation, left, arrived, holds, trust)
    }

    /// With a stock peer, or a kernel that does not count, only the two applications' counts can be compared.
    ///
    /// A stock sender's count may miss the write in which it was stopped: the newest cancels its threads there.
    fn between_applications(&self) -> Option<Check> {
        let Halves { sent, received, .. } = self.halves;
        let (written, read) = self.entry.written.zip(self.entry.read)?;
        sent.or(received)?;
        let missed = if sent.is_none() {
            self.halves.record.plan.block_bytes.count()
        } else {
            0
        };
        let reached = written.saturating_add(missed) >= read;
        let drained = received.is_some_and(|stream| stream.drained);
        let (words, holds) = match (drained, missed) {
            (true, 0) => (
                "written = read (the applications' counts, drained)",
                written == read,
            ),
            (true, _) => (
                "written = read (the applications' counts, drained; a stock sender's may miss its last write)",
                written <= read && reached,
            ),
            (false, 0) => (
                "written ≥ read (the applications' counts; the rest in flight or unread)",
                reached,
            ),
            (false, _) => (
                "written ≥ read (the applications' counts; the rest in flight or unread; a stock sender's may miss \
                 its last write)",
                reached,
            ),
        };
        let equation = Equation {
            words,
            ..APPLICATIONS
        };
        let trust = "the receiving application's figure: these bytes were read";
        Some(self.halves.check(equation, written, read, holds, trust))
    }
}

/// What of `tries`, the bytes that the sending kernel counts as sent, its own host refused.
fn refused(halves: Halves<'_>, entry: &Entry, tries: u64, unsent: Option<u64>) -> Option<u64> {
    let stream = halves.sent?;
    let bytes = if halves.record.is_observation() {
        // All is acknowledged: what was sent beyond it never left this host.
        let acked = entry.bytes_acked.filter(|_| stream.drained)?;
        tries.checked_sub(acked)
    } else {
        let end = halves.record.end(halves.flow.sender());
        end.filter(|end| refuses_locally(end))?;
        let taken = stream.app_bytes.saturating_add(entry.cookie);
        tries.saturating_add(unsent?).checked_sub(taken)
    };
    bytes.filter(|bytes| *bytes > 0)
}

/// Whether a queue or device of this end's host dropped anything meanwhile.
fn refuses_locally(end: &EndRecord) -> bool {
    let device = end
        .interface_counters
        .is_some_and(|pair| pair.after.tx_dropped > pair.before.tx_dropped);
    device || end.qdisc_dropped() > Some(0)
}

/// One where `bytes_received` counts the peer's FIN.
fn fin_received(stream: &StreamRecord, facts: &TcpFacts) -> u64 {
    u64::from(
        facts.state.is_some_and(|state| {
            FIN_RECEIVED.contains(&state) || (state == CLOSED && stream.drained)
        }),
    )
}

/// One where `bytes_acked` counts our FIN. A closed socket does not say whether its FIN was
/// acknowledged before it closed; its own count does.
fn fin_acknowledged(facts: &TcpFacts, acked: u64, data: u64) -> u64 {
    match facts.state {
        Some(CLOSED) => u64::from(acked == data.saturating_add(1)),
        Some(state) => u64::from(FIN_ACKNOWLEDGED.contains(&state)),
        None => 0,
    }
}

/// One where our FIN waits behind unsent data and is counted with it.
fn fin_waiting(notsent: u64, facts: &TcpFacts) -> u64 {
    u64::from(notsent > 0 && facts.state.is_some_and(|state| FIN_WAITS.contains(&state)))
}

/// The sum of a column, absent where a stream does not have it.
fn add<T>(entries: &[T], of: impl Fn(&T) -> Option<u64>) -> Option<u64> {
    if entries.is_empty() {
        return None;
    }
    entries.iter().try_fold(0_u64, |total, entry| {
        of(entry).map(|value| total.saturating_add(value))
    })
}

fn sum(entries: &[Entry]) -> Entry {
    let datagrams: Vec<DatagramEntry> = entries
        .iter()
        .filter_map(|entry| entry.datagrams.clone())
        .collect();
    Entry {
        id: None,
        written: add(entries, |entry| entry.written),
        cookie: entries
            .iter()
            .fold(0, |sum, entry| sum.saturating_add(entry.cookie)),
        bytes_sent: add(entries, |entry| entry.bytes_sent),
        bytes_retrans: add(entries, |entry| entry.bytes_retrans),
        refused: entries
            .iter()
            .filter_map(|entry| entry.refused)
            .reduce(u64::saturating_add),
        notsent: add(entries, |entry| entry.notsent),
        bytes_acked: add(entries, |entry| entry.bytes_acked),
        in_flight: add(entries, |entry| entry.in_flight),
        bytes_received: add(entries, |entry| entry.bytes_received),
        unread: add(entries, |entry| entry.unread),
        read: add(entries, |entry| entry.read),
        datagrams: (!datagrams.is_empty()).then(|| DatagramEntry {
            sent: add(&datagrams, |entry| entry.sent),
            delivered: add(&datagrams, |entry| entry.delivered),
            lost: add(&datagrams, |entry| entry.lost),
            socket_dropped: add(&datagrams, |entry| entry.socket_dropped),
            path_lost: add(&datagrams, |entry| entry.path_lost),
            duplicated: add(&datagrams, |entry| entry.duplicated),
            reordered: add(&datagrams, |entry| entry.reordered),
            too_old: add(&datagrams, |entry| entry.too_old),
        }),
    }
}
