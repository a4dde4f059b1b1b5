//! Tables of transfers: a heading with columns of amount, duration and rate, then rows of numbers.

use linerate_model::transcript::{Column, Part, RateTable, TableRow};

use crate::Input;
use crate::number::printed;

/// Words that name a column; the beginning decides.
const NAMES: [&str; 17] = [
    "date",
    "time",
    "duration",
    "seconds",
    "secs",
    "bytes",
    "mbytes",
    "gbytes",
    "kbytes",
    "mbits",
    "gbits",
    "transferred",
    "amount",
    "rate",
    "link_utilisation",
    "throughput",
    "mib",
];

/// The table whose rows are being read.
#[derive(Default)]
pub(crate) struct Tables {
    /// Headings that wait for the line below.
    above: Option<(usize, Vec<String>)>,
    open: bool,
}

impl Tables {
    pub(crate) fn end(&mut self) {
        self.open = false;
        self.above = None;
    }

    pub(crate) fn take(&mut self, input: &Input<'_>, parts: &mut Vec<Part>) -> bool {
        let words: Vec<&str> = input
            .text
            .split([' ', '\t', '|', ',', ';'])
            .filter(|word| !word.is_empty())
            .collect();
        if self.open
            && let Some(Part::Table(table)) = parts.last_mut()
            && let Some(row) = cells(input.number, &words, table.columns.len())
        {
            table.rows.push(row);
            table.lines[1] = input.number;
            return true;
        }
        self.heading(input, &words, parts)
    }

    fn heading(&mut self, input: &Input<'_>, words: &[&str], parts: &mut Vec<Part>) -> bool {
        let known = words.iter().filter(|word| is_name(word)).count();
        let letters = words
            .iter()
            .all(|word| word.starts_with(char::is_alphabetic));
        if !letters || words.len() < 2 || words.len() > 40 {
            return false;
        }
        if known == words.len() && words.iter().any(|word| is_rate(word)) && known >= 3 {
            let above = self
                .above
                .take()
                .filter(|(line, _)| *line + 1 == input.number);
            let first = above.as_ref().map_or(input.number, |(line, _)| *line);
            parts.push(Part::Table(RateTable {
                lines: [first, input.number],
                columns: columns(words, above.map(|(_, names)| names)),
                rows: Vec::new(),
            }));
            self.open = true;
            return true;
        }
        // A line of headings of groups: the names of the columns stand below it.
        if words
            .iter()
            .any(|word| word.eq_ignore_ascii_case("transferred"))
        {
            self.above = Some((
                input.number,
                words.iter().map(|word| (*word).to_owned()).collect(),
            ));
            return true;
        }
        false
    }
}

fn is_name(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    NAMES.iter().any(|name| word.starts_with(name))
}

/// Whether a column holds rates.
fn is_rate(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    ["rate", "link_utilisation", "throughput"]
        .iter()
        .any(|name| word.starts_with(name))
        || word.contains("/s")
}

/// Each group of columns ends with its rate; the last groups of the line above name them.
fn columns(words: &[&str], above: Option<Vec<String>>) -> Vec<Column> {
    let groups = words.iter().filter(|word| is_rate(word)).count();
    let names = above.unwrap_or_default();
    let names = &names[names.len().saturating_sub(groups)..];
    let mut group = 0;
    words
        .iter()
        .map(|word| {
            let column = Column {
                name: (*word).into(),
                group: names.get(group).cloned().map(Into::into),
            };
            if is_rate(word) {
                group += 1;
            }
            column
        })
        .collect()
}

/// A row: a number, a date or `-` in each column.
fn cells(line: usize, words: &[&str], columns: usize) -> Option<TableRow> {
    if words.len() != columns {
        return None;
    }
    let mut numbers = 0;
    let cells = words
        .iter()
        .map(|word| {
            let number = printed(word);
            numbers += usize::from(number.is_some());
            let date = word.starts_with(|c: char| c.is_ascii_digit()) || *word == "-";
            (number.is_some() || date).then_some(number)
        })
        .collect::<Option<Vec<_>>>()?;
    (numbers >= 2).then_some(TableRow { line, cells })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_take_their_names_from_the_line_above() {
        let words = [
            "mbytes",
            "mbits",
            "transferred",
            "duration",
            "rate",
            "duration",
            "rate",
        ];
        let above = ["Transferred", "web100", "iperf"]
            .map(str::to_owned)
            .to_vec();
        let groups: Vec<_> = columns(&words, Some(above))
            .into_iter()
            .map(|column| column.group.unwrap())
            .collect();
        assert_eq!(groups[0], "web100");
        assert_eq!(groups[6], "iperf");
    }
}
