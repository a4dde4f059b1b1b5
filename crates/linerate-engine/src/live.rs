//! What a stream's thread shows to its controller at each sample: a count and its instant, together.

use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_model::progress::SenderClocks;
use linerate_model::tcp_info::TcpFacts;
use linerate_model::units::Nanos;

/// A stream at an instant.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LiveFigures {
    pub(crate) at: Nanos,
    pub(crate) bytes: u64,
    pub(crate) tcp: Option<LiveTcp>,
    pub(crate) udp: Option<LiveUdp>,
}

/// The kernel's figures that a line of progress shows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LiveTcp {
    pub(crate) total_retrans: u64,
    pub(crate) snd_cwnd_bytes: u64,
    pub(crate) snd_wnd_bytes: Option<u64>,
    pub(crate) rtt_us: u64,
    pub(crate) rttvar_us: u64,
    pub(crate) pmtu_bytes: u64,
    pub(crate) reord_seen: Option<u64>,
    pub(crate) bytes_acked: Option<u64>,
    pub(crate) clocks: Option<SenderClocks>,
}

impl From<&TcpFacts> for LiveTcp {
    fn from(facts: &TcpFacts) -> Self {
        let segments = facts.snd_cwnd_packets.unwrap_or(0);
        Self {
            total_retrans: facts.total_retrans_packets.unwrap_or(0),
            snd_cwnd_bytes: segments * facts.snd_mss_bytes.unwrap_or(0),
            snd_wnd_bytes: facts.snd_wnd_bytes,
            rtt_us: facts.rtt_us.unwrap_or(0),
            rttvar_us: facts.rttvar_us.unwrap_or(0),
            pmtu_bytes: facts.pmtu_bytes.unwrap_or(0),
            reord_seen: facts.reord_seen,
            bytes_acked: facts.bytes_acked,
            clocks: clocks(facts),
        }
    }
}

fn clocks(facts: &TcpFacts) -> Option<SenderClocks> {
    Some(SenderClocks {
        busy_us: facts.busy_time_us?,
        rwnd_limited_us: facts.rwnd_limited_us?,
        sndbuf_limited_us: facts.sndbuf_limited_us?,
    })
}

/// Datagram counts so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LiveUdp {
    pub(crate) packets: u64,
    pub(crate) lost: i64,
    pub(crate) out_of_order: u64,
    pub(crate) jitter_ns: u64,
}

/// The latest figures, and those at the end of the omitted part.
#[derive(Debug, Default)]
pub(crate) struct LiveCell(Mutex<(LiveFigures, Option<LiveFigures>)>);

impl LiveCell {
    pub(crate) fn show(&self, figures: LiveFigures) {
        self.lock().0 = figures;
    }

    /// Shows the figures at the very end of the omitted part.
    pub(crate) fn show_omitted(&self, figures: LiveFigures) {
        *self.lock() = (figures, Some(figures));
    }

    pub(crate) fn latest(&self) -> LiveFigures {
        self.lock().0
    }

    pub(crate) fn at_omit_end(&self) -> Option<LiveFigures> {
        self.lock().1
    }

    /// A thread that panicked while showing leaves figures that are still whole: they are `Copy`.
    fn lock(&self) -> MutexGuard<'_, (LiveFigures, Option<LiveFigures>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
