//! The figures of a mesh's tests, from their records.

use std::collections::BTreeSet;

use linerate_analysis::evidence::Evidence;
use linerate_model::mesh::{Mesh, MeshFigures, MeshOutcome, MeshStream, MeshTest};
use linerate_model::record::{Flow, Outcome, RunRecord};
use linerate_model::units::Nanos;
use linerate_report::view::RunView;

use crate::test;

/// What a record says of one direction. The figures of each stream are there where `ports` are spread over them.
pub(crate) fn of(record: &RunRecord, flow: Flow, ports: bool) -> MeshOutcome {
    match &record.outcome {
        Outcome::Completed => {}
        // A test that was cut off says nothing of the rate that it would have had.
        Outcome::Interrupted => {
            return MeshOutcome::NotRun {
                why: "the mesh was stopped".into(),
            };
        }
        Outcome::PeerInterrupted => return failed("the server was stopped".to_owned()),
        Outcome::Failed { error } => return failed(error.to_string()),
    }
    let evidence = Evidence::of(record);
    let view = test::view(&evidence);
    let direction = view.directions.iter().find(|one| one.flow == flow);
    let Some((direction, goodput)) = direction
        .and_then(|direction| Some((direction, direction.figures.goodput_bps?)))
        .filter(|(_, goodput)| *goodput > 0)
    else {
        return failed("nothing arrived".to_owned());
    };
    let figures = &direction.figures;
    let interval = figures.goodput_low_bps.zip(figures.goodput_high_bps);
    let finding = direction.verdict.and_then(|at| view.findings.get(at));
    MeshOutcome::Measured(MeshFigures {
        goodput_bps: goodput as f64,
        interval_bps: interval.map(|(low, high)| (low as f64, high as f64)),
        retransmitted: figures.retransmit_share,
        rtt: figures.rtt_us.and_then(nanos),
        finding: finding.map(|finding| finding.id.clone()),
        streams: if ports {
            streams(&view, flow)
        } else {
            Vec::new()
        },
    })
}

fn failed(why: String) -> MeshOutcome {
    MeshOutcome::Failed {
        stage: "the test ran".into(),
        why: why.into(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a round-trip time of 584 years does not occur; the cast saturates"
)]
fn nanos(us: f64) -> Option<Nanos> {
    (us.is_finite() && us >= 0.0).then_some(Nanos((us * 1e3) as u64))
}

/// The goodput of each stream, by the client's port: the mean over the whole test.
fn streams(view: &RunView, flow: Flow) -> Vec<MeshStream> {
    let span = view
        .directions
        .iter()
        .find(|direction| direction.flow == flow)
        .and_then(|direction| direction.figures.span_ns)
        .filter(|span| *span > 0);
    let Some(span) = span else {
        return Vec::new();
    };
    let streams = view.streams.iter().filter(|stream| stream.flow == flow);
    streams
        .filter_map(|stream| {
            let (_, port) = stream.client_address.rsplit_once(':')?;
            Some(MeshStream {
                source_port: port.parse().ok()?,
                goodput_bps: stream.bytes? as f64 * 8e9 / span as f64,
                retransmitted: None,
            })
        })
        .collect()
}

/// How many pairs of a mesh were due.
pub(super) fn pairs(mesh: &Mesh) -> usize {
    all(mesh.tests.iter()).len()
}

/// How many of them were never measured.
pub(super) fn unmeasured(mesh: &Mesh) -> usize {
    let measured = |test: &&MeshTest| matches!(test.outcome, MeshOutcome::Measured(_));
    pairs(mesh) - all(mesh.tests.iter().filter(measured)).len()
}

fn all<'a>(tests: impl Iterator<Item = &'a MeshTest>) -> BTreeSet<(usize, usize)> {
    tests.map(|test| (test.from, test.to)).collect()
}
