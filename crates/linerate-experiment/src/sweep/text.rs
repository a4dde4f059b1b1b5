//! A sweep's results as a table, and its runs as tidy CSV.

use std::fmt::Write as _;

use linerate_model::csv::field;
use linerate_model::units::{BitRate, whole};

use super::results::counting;
use super::{CellResult, FactorEffect, Results, Row, Sweep};
use crate::aligned::aligned;
use crate::prove::percent;

/// The results as text: a row a cell, then what each factor does.
pub fn table(results: &Results) -> String {
    let mut text = format!("{}: {}\n\n", results.name, results.about);
    if results.about.is_empty() {
        text = format!("{}\n\n", results.name);
    }
    let mut head: Vec<String> = results
        .factors
        .iter()
        .map(|factor| factor.name.clone())
        .collect();
    head.extend(
        [
            "runs",
            "goodput",
            "95 % interval",
            "of the path",
            "first finding",
        ]
        .map(str::to_owned),
    );
    let mut rows = vec![head];
    let mut remarks: Vec<String> = Vec::new();
    rows.extend(
        results
            .cells
            .iter()
            .map(|cell| row(results, cell, &mut remarks)),
    );
    text.push_str(&aligned(&rows));
    for (number, remark) in (1..).zip(&remarks) {
        let _ = writeln!(text, "[{number}] {remark}");
    }
    if results.cells.iter().any(|cell| cell.doubtful > 0) {
        text.push_str(
            "?  some of its runs were disturbed three times over; the CSV says which and how\n",
        );
    }
    text.push('\n');
    for effect in &results.effects {
        let _ = writeln!(text, "{}", line(effect));
    }
    if results.left > 0 {
        let _ = writeln!(text, "\n{} runs are still to be made.", results.left);
    }
    text
}

fn row(results: &Results, cell: &CellResult, remarks: &mut Vec<String>) -> Vec<String> {
    let rate = |bps: f64| BitRate(whole(bps)).to_string();
    let levels = results.factors.iter().zip(&cell.levels);
    let mut row: Vec<String> = levels
        .map(|(factor, level)| factor.labels[*level].clone())
        .collect();
    let mark = cell.remark.as_ref().map_or_else(String::new, |remark| {
        let known = remarks.iter().position(|known| known == remark);
        let at = known.unwrap_or_else(|| {
            remarks.push(remark.clone());
            remarks.len() - 1
        });
        format!(" [{}]", at + 1)
    });
    let doubt = if cell.doubtful > 0 { " ?" } else { "" };
    row.push(cell.runs.len().to_string());
    row.push(match cell.goodput_bps {
        Some(bps) => format!("{}{doubt}{mark}", rate(bps)),
        None => format!("-{mark}"),
    });
    row.push(cell.interval.map_or("-".to_owned(), |interval| {
        format!("{} to {}", rate(interval.low), rate(interval.high))
    }));
    let share = cell.goodput_bps.zip(cell.carries_bps);
    row.push(share.map_or("-".to_owned(), |(bps, most)| {
        format!("{:.0} %", 100.0 * bps / most)
    }));
    row.push(cell.finding.clone().unwrap_or_else(|| "-".to_owned()));
    row
}

fn line(effect: &FactorEffect) -> String {
    let mut text = format!(
        "{} {} against {}: {}",
        effect.factor, effect.level, effect.against, effect.sentence
    );
    if effect.combinations > 1 {
        let _ = write!(text, "; mean of {} combinations", effect.combinations);
        if let (Some((least, at_least)), Some((most, at_most))) = (&effect.least, &effect.most) {
            let _ = write!(
                text,
                ", from {} ({at_least}) to {} ({at_most})",
                percent(*least, 1),
                percent(*most, 1)
            );
        }
    }
    text
}

/// The runs, one a line, units in the names (RFC 4180). Absent figures are empty.
pub fn csv(sweep: &Sweep, rows: &[Row]) -> String {
    let mut head = vec![
        "sweep".to_owned(),
        "repetition".to_owned(),
        "order".to_owned(),
        "attempt".to_owned(),
    ];
    head.extend(sweep.factors.iter().map(|factor| factor.name.clone()));
    head.extend(
        [
            "counts",
            "goodput_bits_per_second",
            "retransmitted_segments",
            "rtt_mean_microseconds",
            "path_mtu_bytes",
            "first_finding",
            "disturbed",
            "failed",
            "impossible",
            "started_at_unix_milliseconds",
        ]
        .map(str::to_owned),
    );
    let mut text = line_of(&head);
    for (order, row) in (1..).zip(rows) {
        let Some(setup) = sweep.cells.get(row.cell) else {
            continue;
        };
        let run = &row.measured;
        let counts = counting(rows, row.cell, row.repetition)
            .is_some_and(|counting| counting.attempt == row.attempt && row.impossible.is_none());
        let mut fields = vec![
            sweep.name.clone(),
            row.repetition.to_string(),
            i32::to_string(&order),
            row.attempt.to_string(),
        ];
        let levels = sweep.factors.iter().zip(&setup.levels);
        fields.extend(levels.map(|(factor, level)| factor.labels[*level].clone()));
        fields.extend([
            if counts { "yes" } else { "no" }.to_owned(),
            run.goodput_bps
                .map_or_else(String::new, |bps| whole(bps).to_string()),
            run.retransmitted_segments
                .map_or_else(String::new, |segments| segments.to_string()),
            run.rtt_us.map_or_else(String::new, |us| format!("{us:.0}")),
            run.path_mtu_bytes
                .map_or_else(String::new, |bytes| bytes.to_string()),
            run.finding.clone().unwrap_or_default(),
            run.disturbed.join("; "),
            run.failed.clone().unwrap_or_default(),
            row.impossible.clone().unwrap_or_default(),
            row.started_at_unix_ms.to_string(),
        ]);
        text.push_str(&line_of(&fields));
    }
    text
}

fn line_of(fields: &[String]) -> String {
    let fields: Vec<String> = fields.iter().map(|text| field(text)).collect();
    format!("{}\n", fields.join(","))
}

#[cfg(test)]
mod tests {
    use super::super::results;
    use super::super::results::tests::{TEXT, measured};
    use super::*;

    #[test]
    fn a_run_is_a_line_with_its_units_and_quotes() {
        let sweep = Sweep::parse("x.toml", TEXT, &|_| unreachable!()).unwrap();
        let mut rows = measured(&sweep);
        rows[0].measured.disturbed = vec!["late, \"very\"".to_owned()];
        let text = csv(&sweep, &rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 24);
        assert!(lines[0].starts_with(
            "sweep,repetition,order,attempt,RTT,MTU,txqueuelen,counts,goodput_bits_per_second,"
        ));
        assert!(lines[1].contains("\"late, \"\"very\"\"\""), "{}", lines[1]);
        let columns = lines[0].split(',').count();
        assert!(
            lines[2..]
                .iter()
                .all(|line| line.split(',').count() == columns)
        );
    }

    #[test]
    fn the_table_names_what_is_odd_once_and_says_what_factors_do() {
        let sweep = Sweep::parse("x.toml", TEXT, &|_| unreachable!()).unwrap();
        let text = table(&results(&sweep, &measured(&sweep), 2));
        assert_eq!(text.matches("noqueue").count(), 1, "{text}");
        assert!(
            text.contains("txqueuelen 10000 against 1000: no effect"),
            "{text}"
        );
        assert!(text.contains("2 runs are still to be made."), "{text}");
    }
}
