//! Cutting a running test into intervals: each stream's bytes with the stream's own stamps, so that a
//! rate is bytes over the time in which they moved, and the sum of all intervals is the total.

use linerate_model::plan::Plan;
use linerate_model::progress::{Interval, StreamInterval, TcpInterval, UdpInterval};
use linerate_model::record::StreamRecord;
use linerate_model::units::Nanos;

use crate::live::{LiveFigures, LiveTcp};
use crate::stream::StreamHandle;

/// A stream's stamp for a boundary is its first sample after it: give it this long to be taken.
const GRACE: Nanos = Nanos::from_millis(4);

/// The intervals of a test at one end.
#[derive(Debug)]
pub(crate) struct Intervals {
    start: Nanos,
    every: Nanos,
    omit_end: Option<Nanos>,
    end: Option<Nanos>,
    boundary: Nanos,
    last: Vec<LiveFigures>,
    omitting: bool,
}

impl Intervals {
    pub(crate) fn new(plan: &Plan, start: Nanos, streams: usize) -> Self {
        let omit_end = (plan.omit_ns.0 > 0).then(|| start.plus(plan.omit_ns));
        let first = start.plus(plan.interval_ns);
        Self {
            start,
            every: plan.interval_ns,
            omit_end,
            end: plan.ends_at(start),
            boundary: omit_end.map_or(first, |omit| omit.min(first)),
            last: vec![
                LiveFigures {
                    at: start,
                    ..LiveFigures::default()
                };
                streams
            ],
            omitting: omit_end.is_some(),
        }
    }

    /// When [`Intervals::take`] should be called.
    pub(crate) fn wake(&self) -> Nanos {
        self.boundary.plus(GRACE)
    }

    /// The interval that ended at the last boundary, if one did. The last one before the planned end
    /// is left to [`Intervals::last`], which sees what draining brought.
    pub(crate) fn take(&mut self, now: Nanos, streams: &[StreamHandle]) -> Option<Interval> {
        if now < self.wake() {
            return None;
        }
        let ends_omit = self.omit_end == Some(self.boundary);
        if !ends_omit && self.end.is_some_and(|end| self.boundary >= end) {
            self.boundary = Nanos(u64::MAX / 2);
            return None;
        }
        let figures = streams.iter().map(|stream| {
            let latest = stream.live.latest();
            if ends_omit {
                stream.live.at_omit_end().unwrap_or(latest)
            } else {
                latest
            }
        });
        let interval = self.cut(
            figures.collect(),
            streams
                .iter()
                .map(|stream| (stream.id, stream.flow, stream.sends)),
        );
        if ends_omit {
            self.omit_end = None;
            self.omitting = false;
            self.boundary = self.boundary.plus(self.every);
        } else {
            let behind = now.since(self.boundary).0 / self.every.0.max(1);
            self.boundary = self
                .boundary
                .plus(Nanos(self.every.0.saturating_mul(behind + 1)));
            if let Some(omit) = self.omit_end {
                self.boundary = self.boundary.min(omit);
            }
        }
        Some(interval)
    }

    /// What moved since the last interval, from the streams' final records.
    pub(crate) fn last(&mut self, records: &[StreamRecord], stopped: Nanos) -> Option<Interval> {
        let finals = records.iter().map(|record| final_figures(record, stopped));
        let figures: Vec<LiveFigures> = finals.collect();
        let moved = figures
            .iter()
            .zip(&self.last)
            .any(|(new, old)| new.bytes > old.bytes);
        let later = figures.iter().map(|figures| figures.at).max()?
            > self.last.iter().map(|figures| figures.at).max()?;
        if !moved && !later {
            return None;
        }
        Some(
            self.cut(
                figures,
                records
                    .iter()
                    .map(|record| (record.id, record.flow, record.sends)),
            ),
        )
    }

    fn cut(
        &mut self,
        figures: Vec<LiveFigures>,
        names: impl Iterator<Item = (u32, linerate_model::record::Flow, bool)>,
    ) -> Interval {
        let streams: Vec<StreamInterval> = names
            .zip(figures.iter().zip(&self.last))
            .map(|((id, flow, sends), (new, old))| StreamInterval {
                id,
                flow,
                sends,
                from_ns: old.at.since(self.start),
                to_ns: new.at.max(old.at).since(self.start),
                bytes: new.bytes.saturating_sub(old.bytes),
                tcp: new
                    .tcp
                    .filter(|_| sends)
                    .map(|LiveTcp { figures: now, .. }| {
                        let before = old.tcp.unwrap_or_default().figures;
                        TcpInterval {
                            retransmits: now.retransmits.saturating_sub(before.retransmits),
                            clocks: now
                                .clocks
                                .map(|clocks| clocks.since(before.clocks.unwrap_or_default())),
                            ..now
                        }
                    }),
                udp: new.udp.map(|now| {
                    let before = old.udp.unwrap_or_default();
                    UdpInterval {
                        packets: now.packets.saturating_sub(before.packets),
                        lost: now.lost - before.lost,
                        out_of_order: now.out_of_order.saturating_sub(before.out_of_order),
                        ..now
                    }
                }),
            })
            .collect();
        let to = streams
            .iter()
            .map(|stream| stream.to_ns)
            .max()
            .unwrap_or_default();
        let interval = Interval {
            from_ns: streams
                .iter()
                .map(|stream| stream.from_ns)
                .min()
                .unwrap_or_default(),
            to_ns: to,
            omitted: self.omitting,
            left_ns: self.end.map(|end| end.since(self.start).since(to)),
            streams,
        };
        self.last = figures;
        interval
    }
}

/// The figures of a stream that has ended. Its instant is the last byte's or the end of the test,
/// whichever came later: a silence at the end belongs to the interval.
fn final_figures(record: &StreamRecord, stopped: Nanos) -> LiveFigures {
    let tcp = record.tcp.as_ref().map(LiveTcp::from);
    let udp = record.udp.as_ref().map(|counts| {
        let (packets, missing) = if record.sends {
            (counts.sent, 0)
        } else {
            let missing = counts.highest.saturating_sub(counts.unique);
            (counts.highest, missing)
        };
        UdpInterval {
            packets,
            lost: i64::try_from(missing).unwrap_or(i64::MAX),
            out_of_order: counts.reordered,
            jitter_ns: counts.jitter_ns.unwrap_or(0),
        }
    });
    LiveFigures {
        at: record
            .last_byte_ns
            .map_or(stopped, |last| last.max(stopped)),
        bytes: record.app_bytes,
        tcp,
        udp,
    }
}
