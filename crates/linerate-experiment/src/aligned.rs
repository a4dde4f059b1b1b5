//! Rows of text whose columns stand under one another.

use std::fmt::Write as _;

/// Rows below their heading, columns as wide as their widest cell.
pub(crate) fn headed<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let mut table = vec![head.map(str::to_owned).to_vec()];
    table.extend(rows);
    aligned(&table)
}

/// The same, with what is remarked of each row below it.
pub(crate) fn remarked<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = (Vec<String>, Vec<String>)>,
) -> String {
    let (rows, remarks): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    let table = headed(head, rows);
    let mut text = String::new();
    // The heading has no remarks.
    for (line, remarks) in table.lines().zip([vec![]].into_iter().chain(remarks)) {
        let _ = writeln!(text, "{line}");
        for remark in remarks {
            let _ = writeln!(text, "    {remark}");
        }
    }
    text
}

/// Columns as wide as their widest cell.
pub(crate) fn aligned(table: &[Vec<String>]) -> String {
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = table.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in table {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        let _ = writeln!(text, "{}", line.join("  ").trim_end());
    }
    text
}
