//! RFC 6349: a framework for TCP throughput testing, step by step, and its three metrics.
//!
//! 1. *Path MTU* (§3.1): datagrams that may not be cut, of falling size, until one size arrives; then what
//!    lies between it and the last that did not is halved, down to the byte.
//! 2. *Base round trip* (§3.2.1): the least that the kernel saw in a run that loads the path with little.
//! 3. *Bottleneck bandwidth* (§3.2.2): the plateau of several connections together, as layer 2 carries it. The RFC
//!    takes it from a stateless test (RFC 2544) and allows other means; the report says which was taken.
//! 4. *Bandwidth-delay product*, and a sweep of windows of 25 to 125 % of it with one connection, then several
//!    connections that share one (§3.3).
//!
//! The metrics are those of §4, for each run; see [`metrics`].
//!
//! What it is not: it runs nothing. [`Survey`] asks for one run after the other and gets the result of each.

pub mod metrics;
mod probes;
mod survey;
mod text;

use linerate_model::units::{BitRate, Bytes, Nanos};
use serde::Serialize;

pub use metrics::Metrics;
pub(crate) use probes::LARGEST;
pub use survey::{Gave, Step, Survey};

/// A figure and how it was come by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found<T> {
    /// The figure.
    pub value: T,
    /// How, in words.
    pub how: String,
}

/// One throughput run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Throughput {
    /// Window asked for, bytes, of each connection; absent = autotuned.
    pub window: Option<Bytes>,
    /// The same as a share of the bandwidth-delay product, all connections together, 0 to 1.25.
    pub share_of_bdp: Option<f64>,
    /// How many TCP connections shared the window.
    pub connections: u16,
    /// Most that was in flight on one connection in the median, bytes; absent where the sender's kernel is not known.
    pub in_flight_bytes: Option<f64>,
    /// Rate over the whole run, ramp included, bit/s.
    pub achieved_bps: f64,
    /// What this window and the path allow, bit/s of payload.
    pub ideal_bps: f64,
    /// What was measured, by §4.
    pub metrics: Metrics,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Report {
    /// Path MTU, bytes.
    pub path_mtu: Option<Found<u32>>,
    /// Base round trip.
    pub base_rtt: Option<Found<Nanos>>,
    /// Bottleneck bandwidth, layer 2 with preamble and gap, bit/s.
    pub bottleneck: Option<Found<BitRate>>,
    /// Largest payload rate that this bandwidth carries at this MTU (§4.1), bit/s.
    pub achievable_bps: Option<f64>,
    /// Bandwidth-delay product, bytes.
    pub bdp: Option<Bytes>,
    /// The sweep and the runs with several connections, in their order.
    pub runs: Vec<Throughput>,
    /// How long each run measured.
    pub run_span: Option<Nanos>,
    /// What could not be done, and what to know about the figures.
    pub remarks: Vec<String>,
}

impl Report {
    /// As text, about a page.
    pub fn text(&self) -> String {
        text::text(self)
    }
}
