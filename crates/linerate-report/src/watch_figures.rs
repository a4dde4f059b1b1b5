//! The figures that an archive of regular tests keeps of a run.

use linerate_model::record::{Flow, Outcome};
use linerate_model::units::Nanos;
use linerate_model::watch::WatchFigures;

use crate::view::{CpuView, DirectionView, RunView};

/// The version of the definitions behind [`of`]. It grows by one whenever the same record gives other figures or other
/// findings, so that archives know which of theirs to compute again.
pub const VERSION: u32 = 1;

/// Why a run has no figures.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoFigures {
    /// It did not run to its end: what it measured is not the rate that it would have had.
    #[error("the test was stopped, or failed: {0}")]
    Incomplete(String),
    /// It has no data in the direction that is meant.
    #[error("nothing arrived")]
    NothingArrived,
    /// It has data in both directions, and none is named.
    #[error("the test has two directions, and which of them is meant is not known")]
    TwoDirections,
}

/// The figures of one direction of a run, by its view; without a direction, of the only one. Whether other traffic used
/// the link is not known from a record: `with_traffic` is false.
///
/// # Errors
/// Why there are none. A rate of 0 is no figure.
pub fn of(view: &RunView, flow: Option<Flow>) -> Result<WatchFigures, NoFigures> {
    match &view.outcome {
        Outcome::Completed => {}
        Outcome::Interrupted => return Err(NoFigures::Incomplete("stopped by its user".into())),
        Outcome::PeerInterrupted => {
            return Err(NoFigures::Incomplete("the server was stopped".into()));
        }
        Outcome::Failed { error } => return Err(NoFigures::Incomplete(error.to_string())),
    }
    let mut directions = view
        .directions
        .iter()
        .filter(|one| flow.is_none_or(|flow| one.flow == flow));
    let direction = directions.next().ok_or(NoFigures::NothingArrived)?;
    if directions.next().is_some() {
        return Err(NoFigures::TwoDirections);
    }
    let figures = &direction.figures;
    let goodput = figures.goodput_bps.filter(|goodput| *goodput > 0);
    let bps = |bps: u64| bps as f64;
    let (client, server) = (&view.summary.cpu.client, &view.summary.cpu.server);
    let (sender, receiver) = match direction.flow {
        Flow::ClientToServer => (client, server),
        Flow::ServerToClient => (server, client),
    };
    Ok(WatchFigures {
        goodput_bps: goodput.map(bps).ok_or(NoFigures::NothingArrived)?,
        interval_bps: figures
            .goodput_low_bps
            .zip(figures.goodput_high_bps)
            .map(|(low, high)| (bps(low), bps(high))),
        whole_bps: figures.whole_run_bps.map(bps),
        ramp: figures.ramp_ns.map(Nanos),
        retransmitted: figures.retransmit_share,
        lost: direction.loss_share,
        rtt: figures.rtt_us.and_then(nanos),
        sender_cpu: cores(sender.as_ref()),
        receiver_cpu: cores(receiver.as_ref()),
        findings: findings(view, direction),
        with_traffic: false,
    })
}

fn cores(cpu: Option<&CpuView>) -> Option<f64> {
    cpu?.core_share
}

/// Ids of the findings about a direction or about no direction, each once, the verdict first.
fn findings(view: &RunView, direction: &DirectionView) -> Vec<String> {
    let verdict = direction.verdict.and_then(|at| view.findings.get(at));
    let about = |flow: Option<Flow>| flow.is_none_or(|flow| flow == direction.flow);
    let others = view.findings.iter().filter(|one| about(one.flow));
    let mut ids: Vec<String> = Vec::new();
    for finding in verdict.into_iter().chain(others) {
        if !ids.contains(&finding.id) {
            ids.push(finding.id.clone());
        }
    }
    ids
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a round-trip time of 584 years does not occur; the cast saturates"
)]
fn nanos(us: f64) -> Option<Nanos> {
    (us.is_finite() && us >= 0.0).then_some(Nanos((us * 1e3) as u64))
}

#[cfg(test)]
mod tests {
    use linerate_analysis::evidence::Evidence;
    use linerate_model::plan::Plan;
    use linerate_testing::fixture;

    use super::*;

    #[test]
    fn figures_are_those_of_the_view() {
        let record = fixture::run(&Plan::new("server"), &fixture::Traffic::default());
        let view = RunView::of(&Evidence::of(&record), &[]);
        let [direction] = view.directions.as_slice() else {
            panic!("one direction");
        };
        let figures = of(&view, None).unwrap();
        assert_eq!(of(&view, Some(direction.flow)), Ok(figures.clone()));
        let goodput = direction.figures.goodput_bps.unwrap();
        assert!((figures.goodput_bps - goodput as f64).abs() < 0.5);
        assert_eq!(
            figures.whole_bps,
            direction.figures.whole_run_bps.map(|bps| bps as f64)
        );
        assert_eq!(
            of(&view, Some(Flow::ServerToClient)),
            Err(NoFigures::NothingArrived)
        );
    }

    #[test]
    fn a_run_that_failed_or_carried_nothing_has_no_figures() {
        let record = fixture::run(&Plan::new("server"), &fixture::Traffic::default());
        let view = RunView::of(&Evidence::of(&record), &[]);
        let mut stopped = view.clone();
        stopped.outcome = Outcome::PeerInterrupted;
        assert!(matches!(of(&stopped, None), Err(NoFigures::Incomplete(_))));
        let mut nothing = view.clone();
        nothing.directions[0].figures.goodput_bps = Some(0);
        assert_eq!(of(&nothing, None), Err(NoFigures::NothingArrived));
        let mut both = view;
        both.directions.push(both.directions[0].clone());
        assert_eq!(of(&both, None), Err(NoFigures::TwoDirections));
    }
}
