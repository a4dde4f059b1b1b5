//! Telling a client what has arrived while its test runs, where it asked for that.

use linerate_model::units::Nanos;
use linerate_wire::extension::{Received, ReceivedStream};

use crate::stream::StreamHandle;

/// No client is informed more often; the streams show their figures every 9 ms.
const MOST_OFTEN: Nanos = Nanos::from_millis(10);
/// Nor more seldom: it would wait in vain.
const LEAST_OFTEN: Nanos = Nanos::from_millis(1000);
/// A stream's figures take some 70 bytes: with many streams they are told less often, by this much each.
const EACH_STREAM: Nanos = Nanos::from_millis(2);

/// When to tell.
pub(super) struct Telling {
    /// `None` = the client did not ask.
    every: Option<Nanos>,
    next: Nanos,
}

impl Telling {
    pub(super) fn new(asked_ns: Option<u64>, start: Nanos, streams: usize) -> Self {
        let least = Nanos(EACH_STREAM.0.saturating_mul(streams as u64)).max(MOST_OFTEN);
        let every = asked_ns.map(|every| Nanos(every).clamp(least, LEAST_OFTEN.max(least)));
        Self { every, next: start }
    }

    /// When [`Telling::take`] has something.
    pub(super) fn wake(&self) -> Nanos {
        self.every.map_or(Nanos(u64::MAX / 2), |_| self.next)
    }

    /// What is to be told now.
    pub(super) fn take(&mut self, now: Nanos, streams: &[StreamHandle]) -> Option<Received> {
        let every = self.every.filter(|_| now >= self.next)?;
        self.next = now.plus(every);
        let streams: Vec<ReceivedStream> = streams
            .iter()
            .filter(|stream| !stream.sends)
            .map(|stream| (stream.id, stream.live.latest()))
            // Before its first sample a stream has nothing to tell.
            .filter(|(_, figures)| figures.at > Nanos(0))
            .map(|(id, figures)| ReceivedStream {
                id,
                at_ns: figures.at.0,
                bytes: figures.bytes,
            })
            .collect();
        (!streams.is_empty()).then_some(Received { streams })
    }
}
