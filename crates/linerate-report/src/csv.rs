//! Every line of a run's charts as CSV (RFC 4180), one value a row, for other programs to plot or to search.
//!
//! Columns: `chart` (its id, as `rtt-c2s`), `line`, `stream` (empty where it is about several, or about a host),
//! `seconds` (since the client started its streams), `value` (empty where it is not known), `unit` (`bit/s`, `bytes`,
//! `us`, `1` for a count, `ratio`). A line of means or
//! counts over windows (rates, retransmits, CPU) ends with a row at the end of its last window, which repeats its value.

use std::fmt::Write as _;

use linerate_model::csv::field;

use crate::chart::{Charts, Unit};

/// Every value of every chart as RFC 4180 text: `chart,line,stream,seconds,value,unit`, lines ending in CR LF.
pub fn table(charts: &Charts) -> String {
    let mut text = "chart,line,stream,seconds,value,unit\r\n".to_owned();
    for chart in &charts.charts {
        for line in &chart.lines {
            let stream = line.stream.map(|id| id.to_string()).unwrap_or_default();
            let what = format!("{},{},{stream}", chart.id, field(&line.name));
            for point in &line.points {
                let seconds = point.at_ns as f64 / 1e9;
                let (value, unit) = spelled(chart.unit, point.value);
                let _ = write!(text, "{what},{seconds:.6},{value},{unit}\r\n");
            }
        }
    }
    text
}

fn spelled(unit: Unit, value: Option<u64>) -> (String, &'static str) {
    let name = match unit {
        Unit::Rate => "bit/s",
        Unit::Bytes => "bytes",
        Unit::Micros => "us",
        Unit::Count => "1",
        Unit::Share => "ratio",
    };
    let text = value.map(|value| match unit {
        // Hundredths of a percent.
        Unit::Share => format!("{:.4}", value as f64 / 1e4),
        _ => value.to_string(),
    });
    (text.unwrap_or_default(), name)
}

#[cfg(test)]
mod tests {
    use linerate_analysis::evidence::Evidence;
    use linerate_model::plan::Plan;
    use linerate_testing::fixture;

    use super::*;
    use crate::view::RunView;

    #[test]
    fn every_point_of_every_line_is_a_row() {
        let record = fixture::run(&Plan::new("server"), &fixture::Traffic::default());
        let evidence = Evidence::of(&record);
        let charts = Charts::whole(&RunView::of(&evidence, &[]), &evidence);
        let text = table(&charts);
        let lines = charts.charts.iter().flat_map(|chart| &chart.lines);
        let points: usize = lines.map(|line| line.points.len()).sum();
        assert!(points > 0);
        // A drawing has fewer.
        let drawn = charts.clone().condensed();
        let drawn = drawn.charts.iter().flat_map(|chart| &chart.lines);
        assert!(drawn.map(|line| line.points.len()).sum::<usize>() < points);
        assert_eq!(text.lines().count(), 1 + points);
        for row in text.lines() {
            assert_eq!(row.split(',').count(), 6, "{row}");
        }
        assert!(text.contains("\r\nrtt-c2s,"), "{text}");
    }

    #[test]
    fn a_field_with_a_comma_or_a_quotation_mark_is_one_field() {
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(field("CPU 3"), "CPU 3");
        assert_eq!(
            spelled(Unit::Share, Some(2500)),
            ("0.2500".to_owned(), "ratio")
        );
        assert_eq!(spelled(Unit::Bytes, None), (String::new(), "bytes"));
    }
}
