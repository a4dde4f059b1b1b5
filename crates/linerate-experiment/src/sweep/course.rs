//! Which run of a sweep is next.

use serde::{Deserialize, Serialize};

use super::Sweep;
use crate::measured::Measured;
use crate::prove::ATTEMPTS;
use crate::random::Random;

/// A run that was made, or that cannot be made: a line of a sweep's folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The cell, from 0 on.
    pub cell: usize,
    /// The repetition, from 1 on.
    pub repetition: u32,
    /// Whether it was made again: 1 is the first time.
    pub attempt: u32,
    /// When it began, ms since 1970.
    pub started_at_unix_ms: u64,
    /// Why the cell cannot be: then there is no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impossible: Option<String>,
    /// What it gave.
    #[serde(flatten)]
    pub measured: Measured,
}

/// A run to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Index into the cells of the sweep.
    pub cell: usize,
    /// The repetition, from 1 on.
    pub repetition: u32,
    /// 1 is the first time.
    pub attempt: u32,
}

/// A sweep on its way.
#[derive(Debug)]
pub struct Course<'a> {
    sweep: &'a Sweep,
    rows: Vec<Row>,
}

impl<'a> Course<'a> {
    /// Goes on from rows that were made before.
    pub fn new(sweep: &'a Sweep, rows: Vec<Row>) -> Self {
        Self { sweep, rows }
    }

    /// The run to be made; `None` once all were.
    pub fn upcoming(&self) -> Option<Turn> {
        (1..=self.sweep.repetitions).find_map(|repetition| {
            let order = order(self.sweep, repetition);
            order
                .into_iter()
                .find_map(|cell| self.due(cell, repetition))
        })
    }

    /// Takes what it gave.
    pub fn took(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// What was made until now.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Runs that are still to be made, without those that will be made again.
    pub fn left(&self) -> usize {
        let all = (1..=self.sweep.repetitions)
            .flat_map(|repetition| (0..self.sweep.cells.len()).map(move |cell| (cell, repetition)));
        all.filter(|(cell, repetition)| self.due(*cell, *repetition).is_some())
            .count()
    }

    /// The cell's run in this repetition, where one is still wanted.
    fn due(&self, cell: usize, repetition: u32) -> Option<Turn> {
        let of_cell = || self.rows.iter().filter(move |row| row.cell == cell);
        if of_cell().any(|row| row.impossible.is_some()) {
            return None;
        }
        let attempts = of_cell().filter(|row| row.repetition == repetition);
        let last = attempts.max_by_key(|row| row.attempt);
        // What failed three times in one repetition is tried once in the next.
        let hopeless = |row: &Row| row.repetition < repetition && row.measured.failed.is_some();
        let most = if of_cell().filter(|row| hopeless(row)).count() >= ATTEMPTS as usize {
            1
        } else {
            ATTEMPTS
        };
        let attempt = match last {
            None => 1,
            Some(row) if row.measured.is_doubtful() && row.attempt < most => row.attempt + 1,
            Some(_) => return None,
        };
        Some(Turn {
            cell,
            repetition,
            attempt,
        })
    }
}

/// The cells in the order of a repetition.
fn order(sweep: &Sweep, repetition: u32) -> Vec<usize> {
    let mut cells: Vec<usize> = (0..sweep.cells.len()).collect();
    Random::new(sweep.seed, u64::from(repetition)).shuffle(&mut cells);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep() -> Sweep {
        let text = "name = \"x\"\nrepetitions = 2\n[lab]\nrate = \"100M\"\n[[factor]]\nname = \"RTT\"\nvary = \"path.rtt\"\nlevels = [\"1ms\", \"6ms\", \"24ms\"]\n";
        Sweep::parse("x.toml", text, &|_| unreachable!()).unwrap()
    }

    fn row(turn: Turn, measured: Measured) -> Row {
        Row {
            cell: turn.cell,
            repetition: turn.repetition,
            attempt: turn.attempt,
            started_at_unix_ms: 0,
            impossible: None,
            measured,
        }
    }

    fn good() -> Measured {
        Measured {
            goodput_bps: Some(1e8),
            ..Measured::default()
        }
    }

    #[test]
    fn a_repetition_is_a_block_of_all_cells_and_a_second_start_goes_on() {
        let sweep = sweep();
        let mut course = Course::new(&sweep, Vec::new());
        let mut all = Vec::new();
        while let Some(turn) = course.upcoming() {
            all.push((turn.repetition, turn.cell));
            course.took(row(turn, good()));
            // As if it had been stopped here and begun again.
            course = Course::new(&sweep, course.rows().to_vec());
        }
        assert_eq!(all.len(), sweep.runs());
        for (at, block) in all.chunks(3).enumerate() {
            let mut cells: Vec<usize> = block.iter().map(|(_, cell)| *cell).collect();
            cells.sort_unstable();
            assert_eq!(cells, [0, 1, 2]);
            assert!(
                block
                    .iter()
                    .all(|(repetition, _)| *repetition as usize == at + 1)
            );
        }
        assert_eq!(course.left(), 0);
    }

    #[test]
    fn what_was_disturbed_is_made_again_and_what_cannot_be_is_not() {
        let sweep = sweep();
        let mut course = Course::new(&sweep, Vec::new());
        let first = course.upcoming().unwrap();
        course.took(row(first, Measured::failed("no")));
        assert_eq!(
            course.upcoming(),
            Some(Turn {
                attempt: 2,
                ..first
            })
        );
        let mut impossible = row(
            Turn {
                attempt: 2,
                ..first
            },
            Measured::default(),
        );
        impossible.impossible = Some("no such MTU".to_owned());
        course.took(impossible);
        assert_ne!(course.upcoming().unwrap().cell, first.cell);
        assert_eq!(course.left(), 4);
    }
}
