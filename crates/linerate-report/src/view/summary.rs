//! The figures of the whole run.
//!
//! For one direction they are that direction's. For a bidirectional test rates, bytes and counts are
//! sums over the directions, the interval of confidence is that of a sum of independent means (half
//! widths add as squares), spans and ramps are the longest, round-trip times the mean and the least,
//! and `steady` means both.

use linerate_model::record::{Role, RunRecord};
use serde::Serialize;

use super::direction::{DirectionView, Figures, share};
use super::end::{self, CpuView};
use crate::words::whole;

/// The run's figures in one place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SummaryView {
    /// Sums over the directions; see the module.
    #[serde(flatten)]
    pub figures: Figures,
    /// CPU time at each end.
    pub cpu: CpuPair,
}

/// CPU time at each end; absent where it is not known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuPair {
    /// The client's.
    pub client: Option<CpuView>,
    /// The server's.
    pub server: Option<CpuView>,
}

impl SummaryView {
    pub(super) fn of(record: &RunRecord, directions: &[DirectionView]) -> Self {
        let figures = match directions {
            [only] => only.figures.clone(),
            all => sum(all),
        };
        let cpu = CpuPair {
            client: end::cpu(record, Role::Client),
            server: end::cpu(record, Role::Server),
        };
        Self { figures, cpu }
    }
}

fn sum(directions: &[DirectionView]) -> Figures {
    let all = directions.iter().map(|direction| &direction.figures);
    let all: Vec<&Figures> = all.collect();
    let add = |of: fn(&Figures) -> Option<u64>| -> Option<u64> {
        all.iter()
            .try_fold(0_u64, |sum, figures| Some(sum.saturating_add(of(figures)?)))
            .filter(|_| !all.is_empty())
    };
    let goodput = add(|figures| figures.goodput_bps);
    let off = |of: fn(&Figures) -> Option<u64>| -> Option<f64> {
        let squares: Option<f64> = all
            .iter()
            .map(|figures| Some((of(figures)? as f64 - figures.goodput_bps? as f64).powi(2)))
            .sum();
        squares.map(f64::sqrt)
    };
    let (below, above) = (
        off(|figures| figures.goodput_low_bps),
        off(|figures| figures.goodput_high_bps),
    );
    let mut places: Vec<_> = all.iter().map(|figures| figures.measured_at).collect();
    places.dedup();
    let ramps: Option<Vec<u64>> = all.iter().map(|figures| figures.ramp_ns).collect();
    let steady: Option<Vec<bool>> = all.iter().map(|figures| figures.steady).collect();
    let rtts: Vec<f64> = all.iter().filter_map(|figures| figures.rtt_us).collect();
    let (retransmits, segments) = (
        add(|figures| figures.retransmits),
        add(|figures| figures.segments),
    );
    Figures {
        goodput_bps: goodput,
        goodput_low_bps: goodput
            .zip(below)
            .map(|(mean, half)| whole(mean as f64 - half)),
        goodput_high_bps: goodput
            .zip(above)
            .map(|(mean, half)| whole(mean as f64 + half)),
        whole_run_bps: add(|figures| figures.whole_run_bps),
        sent_bps: add(|figures| figures.sent_bps),
        bytes: add(|figures| figures.bytes),
        span_ns: all.iter().filter_map(|figures| figures.span_ns).max(),
        ramp_ns: ramps.and_then(|ramps| ramps.into_iter().max()),
        steady: steady.map(|steady| steady.iter().all(|yes| *yes)),
        unsteady_reason: all
            .iter()
            .find_map(|figures| figures.unsteady_reason.clone()),
        measured_at: if places.len() == 1 { places[0] } else { None },
        retransmits,
        received_twice: add(|figures| figures.received_twice),
        segments,
        retransmit_share: share(retransmits, segments),
        rtt_us: (!rtts.is_empty()).then(|| rtts.iter().sum::<f64>() / rtts.len() as f64),
        min_rtt_us: all
            .iter()
            .filter_map(|figures| figures.min_rtt_us)
            .reduce(f64::min),
    }
}
