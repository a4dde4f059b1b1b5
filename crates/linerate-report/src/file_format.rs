//! The forms of a run's report that go into a file of their own, in one table: the options that ask for them are
//! made from it.

use crate::chart::Charts;
use crate::html::{self, Sheet};
use crate::{csv, svg};

/// A form that a report can have as a file.
#[derive(Debug, Clone, Copy)]
pub struct FileFormat {
    /// Its name, also that of its option: `html` for `--html FILE`.
    pub name: &'static str,
    /// What the option does.
    pub help: &'static str,
    /// Makes the file's text, from what is drawn or from charts with every point.
    pub make: fn(&Sheet<'_>, &Charts) -> String,
}

/// All of them.
pub const FILE_FORMATS: &[FileFormat] = &[
    FileFormat {
        name: "html",
        help: "Write the report as one HTML file with charts",
        make: |sheet, _| html::page(sheet),
    },
    FileFormat {
        name: "svg",
        help: "Write a figure of rate, congestion window and round-trip time as SVG",
        make: |sheet, _| svg::figure(sheet.view, sheet.charts),
    },
    FileFormat {
        name: "csv",
        help: "Write each value of each chart as a row of CSV",
        make: |_, whole| csv::table(whole),
    },
];
