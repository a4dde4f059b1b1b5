//! The forms of a run's report that go into a file of their own, in one table: the options that ask for them are
//! made from it.

use crate::html::{self, Sheet};
use crate::{csv, svg};

/// A form that a report can have as a file.
#[derive(Debug, Clone, Copy)]
pub struct FileFormat {
    /// Its name, also that of its option: `html` for `--html FILE`.
    pub name: &'static str,
    /// What the option does.
    pub help: &'static str,
    /// Makes the file's text.
    pub make: fn(&Sheet<'_>) -> String,
}

/// All of them.
pub const FILE_FORMATS: &[FileFormat] = &[
    FileFormat {
        name: "html",
        help: "Write the report as one HTML file with charts",
        make: html::page,
    },
    FileFormat {
        name: "svg",
        help: "Write a figure of rate, congestion window and round-trip time as SVG",
        make: |sheet| svg::figure(sheet.view, sheet.charts),
    },
    FileFormat {
        name: "csv",
        help: "Write each value of each chart as a row of CSV",
        make: |sheet| csv::table(sheet.charts),
    },
];
