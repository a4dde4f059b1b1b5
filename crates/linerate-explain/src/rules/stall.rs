//! `stall`: no byte came through for more than a second while the test ran.
//!
//! Longest gap over 1 s where the direction is measured, also before the first and after the last byte;
//! not where a block at the rate asked for takes that long. A time in which a stream's own thread took no
//! sample counts too: the process did not run, and what moved meanwhile was not seen moving. A connection that was
//! only watched may rest: there a gap counts where its sender's kernel had data outstanding all the while.

use linerate_analysis::evidence::Place;
use linerate_model::finding::{Finding, Severity};

use crate::facts::case::Case;
use crate::facts::stall::{Gap, Stopped};
use crate::words;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let end = case.measuring_end()?;
    let place = match case.direction.measured_at {
        Place::ReceivingApplication => "arrived at the receiving application",
        Place::Acknowledged => "was acknowledged",
        Place::SendingApplication => "was sent",
    };
    let Gap { from, to, stopped } = *case.stall()?;
    let long = to - from;
    let run = end.end_ns.since(end.start_ns).0.max(1);
    let share = long as f64 / run as f64;
    let what = stopped.map_or_else(|| format!("Nothing {place}"), |stopped| stopped.words(case));
    let sentence = format!(
        "{what} for {}, from {} to {} of the run",
        words::seconds(long),
        words::seconds(from),
        words::seconds(to)
    );
    let name = if stopped.is_some() {
        "longest time without a sample, ns"
    } else {
        "longest time without a byte, ns"
    };
    let mut finding = case
        .finding("stall", Severity::Limit, sentence)
        .share(share)
        .receiver(name, long)
        .sender("retransmission timeouts", timeouts(case))
        .again(|_| {})
        .done()?;
    finding.span_ns = Some([from, to]);
    Some(finding)
}

impl Stopped {
    fn words(self, case: &Case<'_>) -> String {
        let receiving = case.direction.measured_at == Place::ReceivingApplication;
        let (kind, host) = if receiving {
            ("receiving", case.receiving_host())
        } else {
            ("sending", case.sending_host())
        };
        match self {
            Self::Process => format!(
                "The {kind} process on {host} did not run, or its host was suspended: it took no sample"
            ),
            Self::Thread(id) => {
                format!("The {kind} thread of stream {id} on {host} did not run: it took no sample")
            }
        }
    }
}

fn timeouts(case: &Case<'_>) -> Option<f64> {
    let streams = case.sender()?.streams_of(case.direction.flow);
    let counts: Option<Vec<u64>> = streams
        .map(|stream| stream.tcp.as_ref()?.total_rto)
        .collect();
    counts.map(|counts| counts.iter().sum::<u64>() as f64)
}
