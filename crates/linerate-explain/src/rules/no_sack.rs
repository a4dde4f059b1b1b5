//! `no-sack`: segments were lost, and the connection had no selective acknowledgements (SACK, RFC 2018).
//!
//! Without SACK the sender learns of one lost segment per round trip (RFC 6582), so a burst of losses takes as many
//! round trips to repair as it has segments. Said where at least 1 segment in 10,000 was retransmitted; a note, since the
//! rules of loss say what limits. `tcpi_options` has what both ends agreed on in their SYNs (linux/tcp.h,
//! `TCPI_OPT_SACK`).

use linerate_model::column::Column;
use linerate_model::finding::{Finding, Severity};
use linerate_model::record::StreamRecord;

use crate::facts::case::Case;
use crate::words;

/// `TCPI_OPT_SACK`.
const SACK: u64 = 2;
/// Fewer retransmits than that do not matter.
const LEAST: f64 = 1e-4;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    let again = case.repeated_share().filter(|share| *share >= LEAST)?;
    let streams = case.sender()?.streams_of(case.direction.flow);
    let without = streams.filter(|stream| lacks_sack(stream)).count();
    if without == 0 {
        return None;
    }
    let sentence = format!(
        "{} of segments were retransmitted on a connection without SACK, which repairs one lost segment per RTT: set \
         net.ipv4.tcp_sack = 1 on both hosts; if both have it, a firewall on the path removes the option",
        words::percent(again)
    );
    case.finding("no-sack", Severity::Note, sentence)
        .sender("streams without SACK", without)
        .sender("share of segments retransmitted", again)
        .done()
}

/// Whether its two ends agreed on options, but not on SACK. A kernel that reports no option at all may not report them.
fn lacks_sack(stream: &StreamRecord) -> bool {
    let options = stream.samples.last(Column::options);
    options.is_some_and(|options| options > 0 && options & SACK == 0)
}

#[cfg(test)]
mod tests {
    use linerate_analysis::evidence::Evidence;
    use linerate_model::column::Column;
    use linerate_model::plan::Plan;
    use linerate_testing::fixture::{self, Traffic};

    /// Whether it is found where so many segments are repeated and the ends agreed on these options.
    fn found(retransmits: u64, options: u64) -> bool {
        let traffic = Traffic {
            retransmits,
            ..Traffic::default()
        };
        let mut record = fixture::run(&Plan::new("server"), &traffic);
        for stream in &mut record.client.as_mut().unwrap().streams {
            let rows = stream.samples.len();
            stream
                .samples
                .insert(Column::options, vec![options; rows])
                .unwrap();
        }
        let findings = crate::explain(&Evidence::of(&record));
        findings.iter().any(|finding| finding.id == "no-sack")
    }

    #[test]
    fn losses_without_sack_are_said_and_nothing_else() {
        assert!(found(500, 5));
        // With SACK; without losses; where the kernel reports no option.
        assert!(!found(500, 7) && !found(0, 5) && !found(500, 0));
    }
}
