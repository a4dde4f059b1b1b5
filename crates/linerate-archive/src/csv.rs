//! Runs as CSV (RFC 4180), one a row.

use std::io::Write;

use linerate_model::calendar::rfc3339;
use linerate_model::csv::field;

use crate::archive::Archive;
use crate::columns::{COLUMNS, Cell};
use crate::error::ArchiveError;
use crate::runs::{RunFilter, Stored};

impl Archive {
    /// Writes runs as CSV, the oldest first; how many. See [`CsvWriter`] for the notation.
    ///
    /// # Errors
    /// The database's; [`ArchiveError::Output`] where `out` cannot be written.
    pub fn export_csv(&self, filter: &RunFilter, out: &mut dyn Write) -> Result<u64, ArchiveError> {
        let mut csv = CsvWriter::begin(out)?;
        self.each_run(filter, true, |stored| csv.row(&stored))?;
        Ok(csv.rows)
    }
}

/// Writes runs as CSV: moments by RFC 3339 in UTC, rates in bit/s, durations in ns, shares from 0 to 1, findings separated by
/// blanks. A cell is empty where its value is not known, and for every figure of a test that did not measure.
///
/// Texts are written as they are, also where one begins with a character that a spreadsheet takes for the beginning of a
/// formula: a mark before it would be another name for a program that reads the file.
pub struct CsvWriter<'w> {
    out: &'w mut dyn Write,
    rows: u64,
}

impl<'w> CsvWriter<'w> {
    /// Writes the names of the columns.
    ///
    /// # Errors
    /// Where `out` cannot be written.
    pub fn begin(out: &'w mut dyn Write) -> Result<Self, ArchiveError> {
        let mut new = Self { out, rows: 0 };
        new.line(&COLUMNS.each_ref().map(|column| column.name.to_owned()))?;
        Ok(new)
    }

    /// Writes a run.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn row(&mut self, stored: &Stored) -> Result<(), ArchiveError> {
        self.line(
            &COLUMNS
                .each_ref()
                .map(|column| field(&shown((column.of)(stored)))),
        )?;
        self.rows += 1;
        Ok(())
    }

    fn line(&mut self, cells: &[String]) -> Result<(), ArchiveError> {
        let line = cells.join(",") + "\r\n";
        self.out
            .write_all(line.as_bytes())
            .map_err(ArchiveError::output)
    }
}

fn shown(cell: Cell) -> String {
    match cell {
        Cell::Absent => String::new(),
        Cell::Text(text) => text,
        Cell::Moment(at) => rfc3339(at),
        Cell::Real(value) => value.to_string(),
        Cell::Count(value) => value.to_string(),
        Cell::Flag(value) => value.to_string(),
        Cell::Texts(texts) => texts.join(" "),
    }
}
