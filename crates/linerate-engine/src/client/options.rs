//! The options of a client beside its plan, and the length of datagrams that suits the path.

use std::net::IpAddr;
use std::path::PathBuf;

use linerate_kernel::tcp::Keepalive;
use linerate_model::plan::{MAX_UDP_BLOCK, MIN_UDP_BLOCK, Plan, Protocol};
use linerate_model::record::Software;
use linerate_model::units::Bytes;
use linerate_wire::cookie::Cookie;

use crate::auth::Credentials;
use crate::host;
use crate::transfer::Transfer;

/// Half of the largest window without window scaling, bytes.
const HALF_WINDOW: u64 = 32_768;

/// The options of a client beside its plan.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub struct ClientOptions {
    /// How it names itself.
    pub software: Software,
    /// For a server that wants to know who asks.
    pub credentials: Option<Credentials>,
    /// Offer linerate's extension to the server.
    pub extended: bool,
    /// Ask a server for its own report (`--get-server-output`).
    pub want_server_output: bool,
    /// Ask a stock server for datagrams with 64-bit counters (`--udp-counters-64bit`). Two linerates always use them.
    pub wide_counters: bool,
    /// TCP: send this file's content, or write what is received into it (`-F`); absent = generated payload, and dropped.
    pub file: Option<PathBuf>,
    /// TCP, to a linerate: files in the place of generated payload, which the server stores.
    pub transfer: Option<Transfer>,
    /// Probes of an idle control connection (`--cntl-ka`); absent = a peer that is gone is noticed within 20 s.
    pub control_keepalive: Option<Keepalive>,
    /// Refuse a test whose socket buffers (`-w`) or flow label (`-L`) the kernel does not grant, as iperf3 does.
    pub strict: bool,
    /// Choose the length of datagrams by the path, where the plan has only the default.
    pub fit_datagrams: Option<DatagramFit>,
    /// The test runs until it is stopped, whatever end the plan has.
    pub endless: bool,
    /// The session token: the cookie of this test, for a server that takes no other; absent = a random one.
    pub cookie: Option<Cookie>,
    /// The server is an iperf2.
    pub iperf2: bool,
    /// When stopped, tell the server and leave at once without its results, as iperf3 does.
    pub leave_at_once: bool,
}

/// How to choose the length of datagrams by the MTU of the interface towards the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramFit {
    /// The plan's length, or less where it would be cut into fragments.
    NoFragments,
    /// As much as a TCP segment carries there with timestamps, and no more than half of the window that a peer without window
    /// scaling could offer, as Linux has it (`tcp_bound_to_half_wnd`) and iperf3 asks it for: 32,768 bytes on loopback.
    Segment,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            software: linerate_model::record::Software::this_program(),
            credentials: None,
            extended: true,
            wide_counters: false,
            fit_datagrams: None,
            want_server_output: false,
            file: None,
            transfer: None,
            control_keepalive: None,
            strict: false,
            endless: false,
            cookie: None,
            iperf2: false,
            leave_at_once: false,
        }
    }
}

/// The plan with datagrams that fit the interface towards the server, as a test with [`ClientOptions::fit_datagrams`]
/// has it; unchanged for TCP, and where the interface or its MTU is not known.
pub fn fit(plan: &Plan, how: Option<DatagramFit>, server: IpAddr) -> Plan {
    let mut plan = plan.clone();
    let (Some(how), Protocol::Udp) = (how, plan.protocol) else {
        return plan;
    };
    let interface = host::interface_to(server);
    let Some(mtu) = interface.and_then(|interface| interface.mtu_bytes) else {
        return plan;
    };
    // IP and UDP, or IP and TCP with timestamps.
    let headers = match (how, server.is_ipv4()) {
        (DatagramFit::NoFragments, true) => 20 + 8,
        (DatagramFit::NoFragments, false) => 40 + 8,
        (DatagramFit::Segment, true) => 20 + 32,
        (DatagramFit::Segment, false) => 40 + 32,
    };
    let fits = u64::from(mtu)
        .saturating_sub(headers)
        .clamp(MIN_UDP_BLOCK, MAX_UDP_BLOCK);
    let most = if how == DatagramFit::NoFragments {
        plan.block_bytes.count()
    } else {
        HALF_WINDOW
    };
    plan.block_bytes = Bytes(fits.min(most));
    plan
}
