//! The figures of one direction.

use linerate_analysis::delay::Delays;
use linerate_analysis::evidence::{DirectionEvidence, Place};
use linerate_analysis::ledger::DatagramEntry;
use linerate_analysis::statistics::Unsteady;
use linerate_analysis::time_budget::Band;
use linerate_model::finding::Finding;
use linerate_model::plain_text::PlainText;
use linerate_model::plan::Protocol;
use linerate_model::record::{Flow, PeerStream, RunRecord, StreamRecord};
use linerate_model::units::{BitRate, Bytes, Nanos};
use serde::Serialize;

use super::limits::{BudgetView, RatesView, WaterfallView};
use crate::words;

/// Where a rate was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasuredAt {
    /// By the receiving application: goodput proper.
    ReceivingApplication,
    /// By the receiving application of a stock peer, which told its totals: no interval of confidence.
    ReceivingApplicationToldByPeer,
    /// By the sending kernel, from acknowledgements.
    SendingKernelAcknowledged,
    /// By the sending application: not delivery, hence no goodput.
    SendingApplication,
}

impl From<Place> for MeasuredAt {
    fn from(place: Place) -> Self {
        match place {
            Place::ReceivingApplication => Self::ReceivingApplication,
            Place::Acknowledged => Self::SendingKernelAcknowledged,
            Place::SendingApplication => Self::SendingApplication,
        }
    }
}

/// Rates and amounts of a direction, or of all together. What is not known is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Rate of the plateau, bit/s; of the whole run where there is no plateau (`steady` is then false).
    pub goodput_bps: Option<u64>,
    /// Lower end of its 95 % interval of confidence.
    pub goodput_low_bps: Option<u64>,
    /// Upper end.
    pub goodput_high_bps: Option<u64>,
    /// Bytes over span, ramp included.
    pub whole_run_bps: Option<u64>,
    /// Rate at which the sending application sent, bit/s.
    pub sent_bps: Option<u64>,
    /// Payload without the omitted part, bytes.
    pub bytes: Option<u64>,
    /// Time that it took, from the first byte (or the end of the omitted part) to the last.
    pub span_ns: Option<u64>,
    /// From the first byte to the plateau.
    pub ramp_ns: Option<u64>,
    /// Whether there is a plateau; absent where that cannot be known.
    pub steady: Option<bool>,
    /// Why not, or why it cannot be known.
    pub unsteady_reason: Option<String>,
    /// Where goodput, whole-run rate and bytes were measured.
    pub measured_at: Option<MeasuredAt>,
    /// Segments sent again (TCP), the omitted part included.
    pub retransmits: Option<u64>,
    /// Reported by the receiver as received twice (DSACK, RFC 2883): sent again without need, or duplicated by
    /// the path where they are more than `retransmits` (TCP).
    pub received_twice: Option<u64>,
    /// Segments with data sent, repeats included.
    pub segments: Option<u64>,
    /// Retransmits / segments, 0 to 1.
    pub retransmit_share: Option<f64>,
    /// Mean of the smoothed round-trip time over the plateau, µs.
    pub rtt_us: Option<f64>,
    /// Least round-trip time of the run, µs.
    pub min_rtt_us: Option<f64>,
}

/// One direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionView {
    /// Which.
    pub flow: Flow,
    /// Streams that it had.
    pub streams: usize,
    /// Its rates and amounts.
    #[serde(flatten)]
    pub figures: Figures,
    /// Where the sender's time went; absent where it cannot be known.
    pub time_budget: Option<BudgetView>,
    /// Why it cannot.
    pub time_budget_unknown: Option<String>,
    /// Its rate over time; absent where there are no samples.
    pub rates: Option<RatesView>,
    /// What most of the sending streams' time went to, over the whole run; ns since the sender was let go.
    pub bands: Vec<Band>,
    /// From the line's rate to goodput; absent where it cannot be known.
    pub waterfall: Option<WaterfallView>,
    /// Why it cannot.
    pub waterfall_unknown: Option<String>,
    /// Datagrams (UDP).
    pub datagrams: Option<DatagramEntry>,
    /// Lost / sent, 0 to 1 (UDP).
    pub loss_share: Option<f64>,
    /// Largest smoothed jitter of its streams (RFC 3550), ns (UDP).
    pub jitter_ns: Option<u64>,
    /// One-way delay of its datagrams (UDP).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// Congestion control in use at the sender; several where its streams differ.
    pub congestion: Vec<PlainText>,
    /// Maximum segment size at the sender, bytes.
    pub mss_bytes: Option<u64>,
    /// Path MTU that the sender's kernel believes in, bytes.
    pub path_mtu_bytes: Option<u32>,
    /// Socket buffers asked for, bytes.
    pub window_asked_bytes: Option<Bytes>,
    /// Whether all (true) or some of the sender's streams handed their payload over by reference.
    pub spliced: Option<bool>,
    /// Send buffer granted at the sender, bytes, one stream.
    pub send_buffer_bytes: Option<u64>,
    /// Receive buffer granted at the receiver, bytes, one stream.
    pub receive_buffer_bytes: Option<u64>,
    /// Median of the receive window over the plateau, bytes, one stream.
    pub receive_window_bytes: Option<u64>,
    /// Median of the congestion window over the plateau, bytes, one stream.
    pub congestion_window_bytes: Option<u64>,
    /// Index of its first finding in `findings`.
    pub verdict: Option<usize>,
    /// Whether its figures are of the whole run, because no plateau was found.
    #[serde(skip)]
    of_whole_run: bool,
}

impl DirectionView {
    /// What the shares of time are shares of: without a plateau the rate is that of the whole run.
    pub(crate) fn span_words(&self) -> &'static str {
        if self.of_whole_run {
            "of the run"
        } else {
            "of the plateau"
        }
    }

    pub(super) fn of(
        record: &RunRecord,
        evidence: &DirectionEvidence,
        findings: &[Finding],
    ) -> Self {
        let flow = evidence.flow;
        let [sender, receiver] = [flow.sender(), flow.receiver()].map(|role| {
            let end = record.end(role).into_iter();
            end.flat_map(|end| end.streams_of(flow))
                .collect::<Vec<&StreamRecord>>()
        });
        let known = if sender.is_empty() {
            &receiver
        } else {
            &sender
        };
        let start_ns = record.end(flow.sender()).map_or(0, |end| end.start_ns.0);
        let since_start = |band: &Band| Band {
            from_ns: band.from_ns.saturating_sub(start_ns),
            to_ns: band.to_ns.saturating_sub(start_ns),
            class: band.class,
        };
        let path = evidence.path.unwrap_or_default();
        let datagrams = evidence.ledger.total.datagrams.clone();
        let counts = datagrams.as_ref();
        let used = sender.iter().filter_map(|stream| stream.congestion.clone());
        let mut congestion: Vec<PlainText> = used.collect();
        if let Some(told) = record.peer_results.as_ref().filter(|_| sender.is_empty()) {
            congestion.extend(told.congestion.clone());
        }
        congestion.sort_unstable();
        congestion.dedup();
        Self {
            flow,
            streams: known.len(),
            of_whole_run: evidence
                .plateau
                .is_none_or(|plateau| plateau.unsteady.is_some() && plateau.from == 0),
            figures: figures(record, evidence),
            time_budget: BudgetView::of(record, evidence),
            time_budget_unknown: evidence.budget.as_ref().err().cloned(),
            rates: RatesView::of(record, evidence),
            bands: evidence.bands.iter().map(since_start).collect(),
            waterfall: WaterfallView::of(evidence),
            waterfall_unknown: evidence.waterfall.as_ref().err().cloned(),
            loss_share: counts.and_then(|counts| share(counts.lost, counts.sent)),
            datagrams,
            jitter_ns: jitter(record, &receiver, flow),
            delay: Delays::of(record, flow),
            congestion,
            mss_bytes: path
                .mss_bytes
                .or_else(|| most(known, |stream| stream.mss_bytes.map(u64::from))),
            path_mtu_bytes: most(known, |stream| stream.path_mtu_bytes),
            window_asked_bytes: record.plan.window_bytes,
            spliced: sender
                .iter()
                .any(|stream| stream.spliced)
                .then(|| sender.iter().all(|stream| stream.spliced)),
            send_buffer_bytes: most(&sender, |stream| stream.send_buffer_bytes),
            receive_buffer_bytes: most(&receiver, |stream| stream.receive_buffer_bytes),
            receive_window_bytes: path.receive_window_bytes.map(words::whole),
            congestion_window_bytes: path.congestion_window_bytes.map(words::whole),
            verdict: findings
                .iter()
                .position(|finding| finding.flow.is_none_or(|of| of == flow)),
        }
    }
}

fn most<T: Ord>(streams: &[&StreamRecord], of: fn(&StreamRecord) -> Option<T>) -> Option<T> {
    streams.iter().filter_map(|stream| of(stream)).max()
}

/// A part of all, 0 to 1; `None` of nothing.
pub(super) fn share(part: Option<u64>, all: Option<u64>) -> Option<f64> {
    let (part, all) = part.zip(all.filter(|all| *all > 0))?;
    Some(part as f64 / all as f64)
}

fn figures(record: &RunRecord, evidence: &DirectionEvidence) -> Figures {
    let flow = evidence.flow;
    if record.end(flow.receiver()).is_none() && record.end(flow.sender()).is_none() {
        return Figures::default();
    }
    let path = evidence.path.unwrap_or_default();
    let mut figures = Figures {
        whole_run_bps: evidence.whole_run_bps().map(words::whole),
        sent_bps: evidence.sent_bps.map(words::whole),
        bytes: Some(evidence.bytes),
        span_ns: (evidence.span_ns > 0).then_some(evidence.span_ns),
        retransmits: path.retransmits.or_else(|| told_retransmits(record, flow)),
        received_twice: path.received_twice,
        segments: path.data_segments,
        rtt_us: path.rtt_us,
        min_rtt_us: path.min_rtt_us,
        ..Figures::default()
    };
    figures.retransmit_share = share(figures.retransmits, figures.segments);
    figures.measured_at = Some(evidence.measured_at.into());
    if evidence.measured_at == Place::SendingApplication {
        return delivered_as_told(record, evidence, figures);
    }
    let plateau = evidence.plateau;
    figures.steady = figures
        .whole_run_bps
        .map(|_| plateau.is_some_and(|plateau| plateau.unsteady.is_none()));
    figures.unsteady_reason = match plateau {
        Some(plateau) => plateau.unsteady.map(|reason| reason.reason().to_owned()),
        None => figures
            .whole_run_bps
            .map(|_| Unsteady::TooShort.reason().to_owned()),
    };
    figures.ramp_ns = evidence.ramp_ns();
    let estimate = plateau.map(|plateau| plateau.estimate);
    let mean = estimate.map(|estimate| words::whole(estimate.mean));
    figures.goodput_bps = mean.or(figures.whole_run_bps);
    // An interval without an upper end is none.
    if let Some(estimate) = estimate.filter(|estimate| estimate.high.is_finite()) {
        figures.goodput_low_bps = Some(words::whole(estimate.low));
        figures.goodput_high_bps = Some(words::whole(estimate.high));
    }
    figures
}

/// UDP towards a stock peer: what was sent is no goodput; the peer's own totals are.
fn delivered_as_told(
    record: &RunRecord,
    evidence: &DirectionEvidence,
    mut figures: Figures,
) -> Figures {
    let streams = evidence.stream_bytes.iter();
    let told: Option<Vec<&PeerStream>> = streams.map(|(id, _)| told(record, *id)).collect();
    let Some(told) = told.filter(|told| !told.is_empty()) else {
        figures.whole_run_bps = None;
        return figures;
    };
    let bytes = told.iter().map(|stream| stream.bytes);
    let bytes = bytes.fold(0, u64::saturating_add);
    let ends = told
        .iter()
        .map(|stream| Nanos::from_secs_f64(stream.end_time_s).0);
    let span = ends.max().unwrap_or(0);
    // The peer's time runs on until it hears of the end: what was sent took no longer than sending did.
    let span = if evidence.span_ns > 0 {
        span.min(evidence.span_ns)
    } else {
        span
    };
    let rate = BitRate::of(Bytes(bytes), Nanos(span)).map(|rate| rate.0);
    Figures {
        goodput_bps: rate,
        whole_run_bps: rate,
        bytes: Some(bytes),
        span_ns: (span > 0).then_some(span),
        steady: None,
        unsteady_reason: Some(
            "a stock peer sends no samples: no plateau, no confidence interval".to_owned(),
        ),
        measured_at: Some(MeasuredAt::ReceivingApplicationToldByPeer),
        ..figures
    }
}

/// What a peer's results say of a stream.
pub(crate) fn told(record: &RunRecord, id: u32) -> Option<&PeerStream> {
    let results = record.peer_results.as_ref()?;
    results.streams.iter().find(|stream| stream.id == id)
}

/// A stock sender's own count of its retransmits, where it has one.
fn told_retransmits(record: &RunRecord, flow: Flow) -> Option<u64> {
    let counted = record.peer_results.as_ref()?.sender_has_retransmits == 1;
    let tcp = record.plan.protocol == Protocol::Tcp;
    if !counted || !tcp || record.end(flow.sender()).is_some() {
        return None;
    }
    let streams = record.end(flow.receiver())?.streams_of(flow);
    streams
        .map(|stream| u64::try_from(told(record, stream.id)?.retransmits).ok())
        .sum()
}

fn jitter(record: &RunRecord, receiver: &[&StreamRecord], flow: Flow) -> Option<u64> {
    if record.plan.protocol != Protocol::Udp {
        return None;
    }
    if !receiver.is_empty() {
        return most(receiver, |stream| stream.udp.as_ref()?.jitter_ns);
    }
    let streams = record.end(flow.sender())?.streams_of(flow);
    streams
        .filter_map(|stream| Some(Nanos::from_secs_f64(told(record, stream.id)?.jitter_s).0))
        .max()
}
