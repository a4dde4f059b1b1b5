//! What a stream's thread shows to its controller at each sample: a count and its instant, together.

use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_model::progress::{SenderClocks, TcpInterval, UdpInterval};
use linerate_model::tcp_info::TcpFacts;
use linerate_model::units::Nanos;

/// A stream at an instant.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LiveFigures {
    pub(crate) at: Nanos,
    pub(crate) bytes: u64,
    pub(crate) tcp: Option<LiveTcp>,
    /// Datagram counts so far.
    pub(crate) udp: Option<UdpInterval>,
}

/// What the kernel says of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LiveTcp {
    /// What a line of progress shows, its counts and clocks since the connection began.
    pub(crate) figures: TcpInterval,
    pub(crate) bytes_acked: Option<u64>,
}

impl From<&TcpFacts> for LiveTcp {
    fn from(facts: &TcpFacts) -> Self {
        let segments = facts.snd_cwnd_packets.unwrap_or(0);
        Self {
            figures: TcpInterval {
                retransmits: facts.total_retrans_packets.unwrap_or(0),
                snd_cwnd_bytes: segments * facts.snd_mss_bytes.unwrap_or(0),
                snd_wnd_bytes: facts.snd_wnd_bytes,
                rtt_us: facts.rtt_us.unwrap_or(0),
                rttvar_us: facts.rttvar_us.unwrap_or(0),
                pmtu_bytes: facts.pmtu_bytes.unwrap_or(0),
                reord_seen: facts.reord_seen,
                clocks: clocks(facts),
            },
            bytes_acked: facts.bytes_acked,
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
