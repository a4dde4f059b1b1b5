//! What the record of a test says: its figures, what limits it, what a counter-test made of that.

use linerate_analysis::evidence::Evidence;
use linerate_model::alert::{AlertCounterTest, AlertFinding};
use linerate_model::finding::{Finding, Severity};
use linerate_model::plain_text::PlainText;
use linerate_model::record::{Flow, Outcome, Role, RunRecord};
use linerate_model::units::{Bytes, Nanos};
use linerate_model::watch::{UnixMillis, WatchFigures};
use linerate_report::view::RunView;

use crate::test;

/// The version of the definitions by which figures are computed. It grows whenever a figure of a record becomes another.
pub(crate) const VERSION: u32 = 1;

/// What a record says of its test.
pub(super) struct Read {
    pub(super) figures: WatchFigures,
    /// Payload that it moved.
    pub(super) bytes: Option<Bytes>,
    /// What limits it; absent = nothing that was found.
    pub(super) finding: Option<AlertFinding>,
}

/// Reads one direction of a record, which ended at `ended`.
///
/// # Errors
/// Why it measured nothing.
pub(super) fn read(record: &RunRecord, flow: Flow, ended: UnixMillis) -> Result<Read, String> {
    match &record.outcome {
        Outcome::Completed => {}
        // A test that was cut off says nothing of the rate that it would have had.
        Outcome::Interrupted => return Err("it was stopped before its end".to_owned()),
        Outcome::PeerInterrupted => return Err("its server was stopped".to_owned()),
        Outcome::Failed { error } => return Err(error.to_string()),
    }
    let evidence = Evidence::of(record);
    let view = test::view(&evidence);
    let direction = view.directions.iter().find(|one| one.flow == flow);
    let Some((direction, goodput)) = direction
        .and_then(|direction| Some((direction, direction.figures.goodput_bps?)))
        .filter(|(_, goodput)| *goodput > 0)
    else {
        return Err("nothing arrived".to_owned());
    };
    let known = &direction.figures;
    let interval = known.goodput_low_bps.zip(known.goodput_high_bps);
    let (sender, receiver) = match flow {
        Flow::ClientToServer => (&view.client, &view.server),
        Flow::ServerToClient => (&view.server, &view.client),
    };
    let limits = |finding: &&Finding| finding.severity > Severity::Healthy;
    let first = direction.verdict.and_then(|at| view.findings.get(at));
    let others = view.findings.iter();
    let others = others.filter(|one| first.is_none_or(|first| first.id != one.id));
    let ids = first.into_iter().chain(others).map(|one| one.id.clone());
    Ok(Read {
        bytes: known.bytes.map(Bytes),
        finding: first.filter(limits).map(|one| finding(one, &view, ended)),
        figures: WatchFigures {
            goodput_bps: goodput as f64,
            interval_bps: interval.map(|(low, high)| (low as f64, high as f64)),
            whole_bps: known.whole_run_bps.map(|rate| rate as f64),
            ramp: known.ramp_ns.map(Nanos),
            retransmitted: known.retransmit_share,
            lost: direction.loss_share,
            rtt: known.rtt_us.and_then(nanos),
            sender_cpu: sender.cpu.as_ref().and_then(|cpu| cpu.core_share),
            receiver_cpu: receiver.cpu.as_ref().and_then(|cpu| cpu.core_share),
            findings: ids.collect(),
            with_traffic: false,
        },
    })
}

fn finding(finding: &Finding, view: &RunView, ended: UnixMillis) -> AlertFinding {
    let host = finding.remedy.as_ref().and_then(|remedy| {
        let end = match remedy.host {
            Role::Client => &view.client,
            Role::Server => &view.server,
        };
        end.name.clone()
    });
    AlertFinding {
        id: finding.id.clone(),
        sentence: PlainText::from(finding.sentence.as_str()),
        remedy: finding.remedy.clone(),
        host,
        page: finding.page.as_str().into(),
        counter_test: finding.tested.as_ref().map(|tested| AlertCounterTest {
            ended,
            verdict: tested.verdict,
            sentence: tested.sentence.as_str().into(),
        }),
        votes: (0, 0),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a round-trip time of 584 years does not occur; the cast saturates"
)]
fn nanos(us: f64) -> Option<Nanos> {
    (us.is_finite() && us >= 0.0).then_some(Nanos((us * 1e3) as u64))
}
