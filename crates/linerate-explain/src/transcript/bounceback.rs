//! `cannot-tell` of iperf 2's `--bounceback`: a test of latency has no rate to explain.

use linerate_model::finding::{Finding, Severity};
use linerate_model::transcript::Span;
use linerate_model::units::{Nanos, grouped};

use super::digest::Digest;
use crate::draft::Draft;

pub(super) fn judge(digest: &Digest<'_>) -> Option<Finding> {
    let rows = || {
        digest
            .test
            .rows
            .iter()
            .filter_map(|row| Some((row, row.bounces?)))
    };
    if !digest.test.is_bounceback && rows().next().is_none() {
        return None;
    }
    let total = rows().find(|(row, _)| row.span == Span::Total);
    let Some((row, times)) = total.or_else(|| rows().next_back()) else {
        let sentence =
            "A bounceback test measures response times, not throughput; the client prints them"
                .to_owned();
        return Draft::new("cannot-tell", Severity::Note, sentence).done();
    };
    let [mean, least, most] =
        [times.mean_ms, times.least_ms, times.most_ms].map(|ms| Nanos::from_secs_f64(ms / 1e3));
    let sentence = format!(
        "A bounceback test measures response times, not throughput: {} requests were answered after {mean} on average \
         ({least} to {most})",
        grouped(times.count)
    );
    let place = format!("line {}", row.line);
    Draft::new("cannot-tell", Severity::Note, sentence)
        .figure("response time mean, ms", times.mean_ms, &place)
        .figure("response time minimum, ms", times.least_ms, &place)
        .figure("response time maximum, ms", times.most_ms, &place)
        .done()
}
