//! CSV (RFC 4180) of the views. What is not known is empty, never 0.

use std::fmt::Write as _;

use linerate_model::units::whole;

use crate::moment::rfc3339;
use crate::view::cell::Cell;
use crate::view::run::RunRow;

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
            number(cell.goodput_bps),
            number(low),
            number(high),
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

/// Runs, in the order in which they come.
pub(crate) fn runs(runs: impl Iterator<Item = RunRow>) -> String {
    let mut text = "id,task,from,to,class,due,started,ended,outcome,stage,reason,why,goodput_bps,low_bps,high_bps,\
                    retransmitted,lost,rtt_ns,findings,with_traffic\r\n"
        .to_owned();
    for run in runs {
        let fields = [
            run.id.to_string(),
            field(&run.task),
            field(&run.from),
            field(&run.to),
            class(run.class).to_owned(),
            rfc3339(run.due),
            run.started.map_or_else(String::new, rfc3339),
            rfc3339(run.ended),
            run.outcome.word().to_owned(),
            run.stage
                .as_ref()
                .map_or_else(String::new, |stage| field(stage)),
            run.reason.unwrap_or_default().to_owned(),
            run.why.as_ref().map_or_else(String::new, |why| field(why)),
            number(run.goodput_bps),
            number(run.low_bps),
            number(run.high_bps),
            known(run.retransmitted),
            known(run.lost),
            known(run.rtt_ns),
            field(&run.findings.join(" ")),
            if run.with_traffic { "1" } else { "" }.to_owned(),
        ];
        let _ = write!(text, "{}\r\n", fields.join(","));
    }
    text
}

const fn class(class: linerate_model::watch::RunClass) -> &'static str {
    use linerate_model::watch::RunClass;
    match class {
        RunClass::OnDemand => "on-demand",
        RunClass::Confirm => "confirm",
        RunClass::Regular => "regular",
    }
}

fn number(bps: Option<f64>) -> String {
    bps.map_or_else(String::new, |bps| whole(bps).to_string())
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A stranger's text as a field: a spreadsheet must not take it for a formula.
fn field(text: &str) -> String {
    let guarded = if text.starts_with(['=', '+', '-', '@']) {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if guarded.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", guarded.replace('"', "\"\""))
    } else {
        guarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_field_is_a_formula_or_ends_early() {
        assert_eq!(field("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
        assert_eq!(field("a,b"), "\"a,b\"");
        assert_eq!(field("node1"), "node1");
        assert_eq!(number(None), "");
    }
}
