//! What the client asks for: the JSON that answers state 9.
//!
//! Keys, order and conditions are those of iperf3 3.21 (`send_parameters`); servers from 3.12 on
//! take it. A number that is 0 here is absent on the wire where iperf3 leaves it out.

mod check;
mod codec;

use linerate_model::plain_text::{PlainLines, PlainText};
pub use linerate_model::plan::Protocol;

use crate::extension::TargetAsked;

/// Servers since 3.18 refuse parameters of more bytes (`MAX_PARAMS_JSON_STRING`); so do we.
pub const MAX_PARAMETERS_BYTES: usize = 8192;
/// iperf3's default block of a TCP test, also taken where a client names none.
pub const DEFAULT_TCP_LEN: u64 = 128 * 1024;
/// The largest block of a TCP or SCTP test. Stock iperf3 stops at 1 MiB.
pub const MAX_TCP_LEN: u64 = 16 * 1024 * 1024;
/// The smallest datagram: a header with a 64-bit counter.
pub const MIN_UDP_LEN: u64 = 16;
/// The largest datagram over IPv4.
pub const MAX_UDP_LEN: u64 = 65_507;
/// What a stock client sends as `gso_bf_size` and `gro_bf_size`, used or not.
pub const DEFAULT_UDP_BATCH_BYTES: u64 = 65_507;

/// Our own key in the parameters: this client speaks linerate's extension too. Stock servers
/// ignore it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// The version of the extension, from 1.
    pub version: u32,
    /// The program and its version, for people.
    pub software: PlainText,
    /// Between two samples of a stream, ns, where the client says so.
    pub sample_ns: Option<u64>,
    /// How often the client wants to be told what arrives while the test runs, ns; absent = never.
    pub received_ns: Option<u64>,
    /// The sender of datagrams polls the clock between them; 1 on the wire, or absent.
    pub spin: bool,
    /// Where the server is to put what arrives, in a transfer of files.
    pub target: Option<TargetAsked>,
    /// The client wants a connection that echoes its probes ([`crate::probe`]); 1 on the wire, or absent.
    pub probe: bool,
}

/// The parameters of a test, as they stand on the wire. The fields are named after the keys.
///
/// Texts of a peer may hold control characters: escape them before they go to a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the wire has these flags, one key each"
)]
pub struct Parameters {
    /// Exactly one of `tcp`, `udp`, `sctp`; TCP is MPTCP where `mptcp` says so.
    pub protocol: Protocol,
    /// Seconds at the beginning that do not count, up to 600.
    pub omit: u64,
    /// The core the server pins itself to, up to 1024.
    pub server_affinity: Option<u64>,
    /// Seconds, up to 86400; 0 with `num` or `blockcount`, or for a test without end.
    pub time: u64,
    /// Bytes over all streams after which the client ends; 0 = no such end.
    pub num: u64,
    /// Blocks over all streams after which the client ends; 0 = no such end.
    pub blockcount: u64,
    /// Maximum segment size in bytes, up to 32767; 0 = the kernel's.
    pub mss: u64,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// Streams a direction, 1 to 128.
    pub parallel: u64,
    /// The server sends.
    pub reverse: bool,
    /// Both send, each on streams of its own.
    pub bidirectional: bool,
    /// Multipath TCP (3.19).
    pub mptcp: bool,
    /// Socket buffer in bytes, up to 512 MiB; 0 = the kernel's.
    pub window: u64,
    /// Bytes of a block or datagram.
    pub len: u64,
    /// Bit/s a stream; 0 = unlimited, UDP too.
    pub bandwidth: u64,
    /// Bit/s a stream by the fair-queue scheduler; 0 = unlimited.
    pub fqrate: u64,
    /// Microseconds between two looks at the pacing; 1000 by default.
    pub pacing_timer: u64,
    /// Blocks sent at once, up to 1000; 0 = unset.
    pub burst: u64,
    /// UDP segmentation offload at the sender (3.21).
    pub gso: bool,
    /// Bytes of one segment of it; 0 = `len`.
    pub gso_dg_size: u64,
    /// Bytes of one batch of it.
    pub gso_bf_size: u64,
    /// UDP receive offload (3.21).
    pub gro: bool,
    /// Bytes of one batch of it.
    pub gro_bf_size: u64,
    /// The IP type-of-service byte, 0 to 255.
    pub tos: u64,
    /// The IPv6 flow label, 1 to 0xfffff; 0 = unset.
    pub flowlabel: u64,
    /// A title for the output.
    pub title: Option<PlainText>,
    /// Data for the output.
    pub extra_data: Option<PlainLines>,
    /// The congestion control that is asked for.
    pub congestion: Option<PlainText>,
    /// The congestion control in use.
    pub congestion_used: Option<PlainText>,
    /// The client wants the server's output with the results.
    pub get_server_output: bool,
    /// UDP counters of 64 instead of 32 bits.
    pub udp_counters_64bit: bool,
    /// A repeating instead of a random payload.
    pub repeating_payload: bool,
    /// `sendfile` instead of `write`.
    pub zerocopy: bool,
    /// IPv4 Don't Fragment.
    pub dont_fragment: bool,
    /// Base64 of the encrypted credentials, see [`crate::auth`].
    pub authtoken: Option<PlainText>,
    /// The receiver discards in the kernel (`MSG_TRUNC`; 3.19).
    pub skip_rx_copy: bool,
    /// The client's version: `3.21`.
    pub client_version: Option<PlainText>,
    /// The offer of linerate's extension.
    pub linerate: Option<Extension>,
}

impl Default for Parameters {
    /// What iperf3 runs without options, and what a server assumes for absent keys: TCP, one
    /// stream, 10 s, blocks of 128 KiB.
    fn default() -> Self {
        Self {
            protocol: Protocol::Tcp,
            omit: 0,
            server_affinity: None,
            time: 10,
            num: 0,
            blockcount: 0,
            mss: 0,
            nodelay: false,
            parallel: 1,
            reverse: false,
            bidirectional: false,
            mptcp: false,
            window: 0,
            len: DEFAULT_TCP_LEN,
            bandwidth: 0,
            fqrate: 0,
            pacing_timer: 1000,
            burst: 0,
            gso: false,
            gso_dg_size: 0,
            gso_bf_size: DEFAULT_UDP_BATCH_BYTES,
            gro: false,
            gro_bf_size: DEFAULT_UDP_BATCH_BYTES,
            tos: 0,
            flowlabel: 0,
            title: None,
            extra_data: None,
            congestion: None,
            congestion_used: None,
            get_server_output: false,
            udp_counters_64bit: false,
            repeating_payload: false,
            zerocopy: false,
            dont_fragment: false,
            authtoken: None,
            skip_rx_copy: false,
            client_version: None,
            linerate: None,
        }
    }
}
