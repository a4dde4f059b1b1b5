//! CSV (RFC 4180) of the pairs, in the notation of the archive. What is not known is empty, never 0.

use std::fmt::Write as _;

use linerate_model::calendar::rfc3339;
use linerate_model::csv::field;

use crate::view::cell::Cell;

/// Every pair: moments in RFC 3339, rates in bit/s, shares 0 to 1.
pub(crate) fn pairs(cells: &[Cell]) -> String {
    let mut text =
        "task,from,to,state,outcome,ended,goodput_bps,low_bps,high_bps,retransmitted,rtt_ns,\
                    failures_in_a_row,measured,findings,why,alert,run\r\n"
            .to_owned();
    for cell in cells {
        let (low, high) = cell.interval_bps.unzip();
        let fields = [
            field(&cell.task),
            field(&cell.from),
            field(&cell.to),
            cell.state.word().to_owned(),
            cell.outcome.to_owned(),
            rfc3339(cell.ended),
            known(cell.goodput_bps),
            known(low),
            known(high),
            known(cell.retransmitted),
            known(cell.rtt_ns),
            cell.failures_in_a_row.to_string(),
            cell.measured.map_or_else(String::new, rfc3339),
            field(&cell.findings.join(" ")),
            cell.why.as_ref().map_or_else(String::new, |why| field(why)),
            known(cell.alert),
            cell.latest.to_string(),
        ];
        let _ = write!(text, "{}\r\n", fields.join(","));
    }
    text
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
