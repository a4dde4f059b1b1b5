//! Every combination of factors, measured: MTU × queue × buffers × congestion control × streams × direction × the
//! path's own values.
//!
//! [`Sweep::parse`] reads a file that names factors with their levels, and computes of each combination (a *cell*)
//! what is to be set, how the test is to be called and, in a lab, which path to make. A repetition is a block: all
//! cells once, in an order drawn from the seed, so that what drifts over hours does not fall on one level.
//! [`Course`] says which run is next and goes on from rows that were kept; [`results`] says what the rows
//! amount to, as a table, tidy CSV, and bars.

mod arrange;
mod course;
mod error;
mod read;
mod results;
mod text;

use linerate_lab::scenario::Scenario;
use linerate_tune::profile::Wish;
use serde::Serialize;

pub use arrange::figure;
pub use course::{Course, Row, Turn};
pub use error::{SweepError, changed};
pub use read::share;
pub use results::{CellResult, FactorEffect, Results, results};
pub use text::{csv, table};

/// Combinations of a sweep, at most.
pub const MOST_CELLS: usize = 4096;
/// The largest `repetitions` that a sweep may have.
pub const MOST_REPETITIONS: u32 = 100;

/// A sweep, read and checked.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// `name` in the file, the title of its results.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// Where it runs: the peer of real hosts; `None` = in a lab.
    pub peer: Option<String>,
    /// How often each cell is measured.
    pub repetitions: u32,
    /// Decides the order of cells, the resamples, and the lab's chance.
    pub seed: u64,
    /// The smallest effect of interest, a share.
    pub least: f64,
    /// What varies.
    pub factors: Vec<Factor>,
    /// How the bars stand.
    pub chart: Chart,
    /// The cells, the last factor varying fastest.
    pub cells: Vec<Setup>,
}

/// Something that varies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Factor {
    /// As the table and the charts print it.
    pub name: String,
    /// What it varies: `interface.eth0.mtu`, `sysctl.net.…`, `test.-P`, `path.rtt`, `profile` …
    pub vary: String,
    /// Its levels as they are called.
    pub labels: Vec<String>,
}

/// What a cell is.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The level of each factor.
    pub levels: Vec<usize>,
    /// What is set on the hosts.
    pub wishes: Vec<Wish>,
    /// Arguments of `linerate test`, without the host.
    pub words: Vec<String>,
    /// The lab; `None` on hosts.
    pub scenario: Option<Scenario>,
    /// Why it cannot be measured; `None` where nothing speaks against it.
    pub impossible: Option<String>,
    /// What of it is granted and has no meaning.
    pub without_meaning: Option<String>,
}

/// Which factor is laid out how: names of factors.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Chart {
    /// A row of panels a level.
    pub rows: Option<String>,
    /// A column of panels a level.
    pub columns: Option<String>,
    /// A group of bars a level.
    pub groups: Option<String>,
    /// A bar a level.
    pub bars: Option<String>,
}

impl Sweep {
    /// A cell in words: `RTT 6ms, MTU 1500`.
    pub fn words_of(&self, cell: usize) -> String {
        let Some(setup) = self.cells.get(cell) else {
            return String::new();
        };
        let named = self.factors.iter().zip(&setup.levels);
        let named: Vec<String> = named
            .map(|(factor, level)| format!("{} {}", factor.name, factor.labels[*level]))
            .collect();
        named.join(", ")
    }

    /// Runs, where none is made again.
    pub fn runs(&self) -> usize {
        self.cells.len() * usize::try_from(self.repetitions).unwrap_or(usize::MAX)
    }
}
