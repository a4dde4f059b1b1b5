//! What a run of a counter-test gave.

use linerate_model::counter_test::{CounterRun, Variation};
use linerate_model::record::{Flow, Outcome, RunRecord};
use linerate_model::units::Nanos;

use crate::evidence::Evidence;
use crate::passage;

/// What a run gave for a finding about `flow` of the test as it was.
pub fn counter_run(record: &RunRecord, variation: Option<Variation>, flow: Flow) -> CounterRun {
    let flow = match (&variation, flow) {
        (Some(Variation::OtherDirection), Flow::ClientToServer) => Flow::ServerToClient,
        (Some(Variation::OtherDirection), Flow::ServerToClient) => Flow::ClientToServer,
        (_, flow) => flow,
    };
    let evidence = Evidence::of(record);
    let mut run = CounterRun::without_figures(variation, record.outcome.clone());
    let Some(direction) = evidence.directions.iter().find(|found| found.flow == flow) else {
        return run;
    };
    run.span_ns = Nanos(direction.span_ns);
    if let Some(plateau) = direction.plateau.filter(|_| direction.bytes > 0) {
        run.goodput_bps = Some(plateau.estimate.mean);
        run.low_bps = Some(plateau.estimate.low);
        run.high_bps = Some(plateau.estimate.high).filter(|high| high.is_finite());
    }
    if run.goodput_bps.is_none() && direction.bytes == 0 {
        // Nothing came through: that is a rate.
        run.goodput_bps = (record.outcome == Outcome::Completed).then_some(0.0);
    }
    run.unread_bytes = direction.unread_bytes;
    if let Some(datagrams) = &direction.ledger.total.datagrams {
        (run.lost, run.sent) = (datagrams.lost, datagrams.sent);
        let receiver = record.end(flow.receiver());
        let streams = receiver.map_or(&[][..], |end| &end.streams);
        let mut arrived = streams.iter().filter(|one| one.flow == flow);
        run.passage = arrived
            .next()
            .filter(|_| arrived.next().is_none())
            .and_then(passage::of);
    } else if let Some(path) = direction.path {
        (run.lost, run.sent) = (path.retransmits, path.data_segments);
        (run.rtt_us, run.min_rtt_us) = (path.rtt_us, path.min_rtt_us);
    }
    run
}
