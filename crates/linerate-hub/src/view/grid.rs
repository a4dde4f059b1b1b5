//! All pairs, a table for each task.

use std::collections::BTreeMap;

use linerate_model::alert::Alert;
use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;
use serde::Serialize;

use super::alert::AlertView;
use super::cell::{Cell, CellState, OpenAlerts};
use crate::live::{AgentState, ReachedBy};
use crate::moment::DAY;
use crate::shared::Shared;
use crate::store::{PairState, StoreError};

/// A matrix with a smaller share of cells than this is a list.
const SPARSE: f64 = 0.3;

/// Everything that the grid shows.
#[derive(Debug, Serialize)]
pub(crate) struct GridView {
    /// When it was made.
    pub(crate) now: UnixMillis,
    /// Pairs by how they are, the worst first; states that no pair has are left out.
    pub(crate) counts: Vec<(CellState, usize)>,
    /// Alerts that are suspect or firing; those that fire first.
    pub(crate) alerts: Vec<AlertView>,
    /// Hosts whose agents are not connected, and how many pairs they are in.
    pub(crate) away: Vec<(AgentState, usize)>,
    /// The names of all tasks.
    pub(crate) tasks: Vec<PlainText>,
    /// The task that was asked for; null = all.
    pub(crate) only: Option<PlainText>,
    /// The tables.
    pub(crate) grids: Vec<TaskGrid>,
}

/// The pairs of one task.
#[derive(Debug, Serialize)]
pub(crate) struct TaskGrid {
    /// Its name.
    pub(crate) task: PlainText,
    /// The senders.
    pub(crate) from: Vec<PlainText>,
    /// The receivers.
    pub(crate) to: Vec<PlainText>,
    /// By sender, then receiver.
    pub(crate) cells: Vec<Cell>,
}

/// All pairs of the plan in force with their alerts.
pub(crate) fn cells(
    shared: &Shared,
    now: UnixMillis,
) -> Result<(Vec<Cell>, Vec<Alert>), StoreError> {
    let alerts = shared
        .store()
        .alerts(UnixMillis(now.0.saturating_sub(7 * DAY)))?;
    let cells = {
        let open = OpenAlerts::of(&alerts);
        let pairs = shared.store().pairs()?;
        let plan = shared.live().snapshot().plan;
        pairs
            .iter()
            .filter(|pair| plan.has(&pair.task, &pair.from, &pair.to))
            .map(|pair: &PairState| Cell::of(pair, &open))
            .collect()
    };
    Ok((cells, alerts))
}

fn away(shared: &Shared, cells: &[Cell]) -> Vec<(AgentState, usize)> {
    let mut agents = shared.live().snapshot().agents;
    let commanded = |agent: &AgentState| matches!(agent.reach, ReachedBy::Agent | ReachedBy::Ssh);
    agents.retain(|agent| !agent.connected && commanded(agent));
    let pairs = |agent: &AgentState| {
        let is_in = |cell: &&Cell| cell.from == agent.host || cell.to == agent.host;
        cells.iter().filter(is_in).count()
    };
    agents
        .into_iter()
        .map(|agent| {
            let pairs = pairs(&agent);
            (agent, pairs)
        })
        .collect()
}

impl GridView {
    pub(crate) fn of(shared: &Shared, only: Option<&str>) -> Result<Self, StoreError> {
        let now = shared.now();
        let (cells, alerts) = cells(shared, now)?;
        let silences = shared.store().silences(now)?;
        let mut tasks: Vec<PlainText> = cells.iter().map(|cell| cell.task.clone()).collect();
        tasks.sort();
        tasks.dedup();
        let away = away(shared, &cells);
        let mut by_task: BTreeMap<PlainText, Vec<Cell>> = BTreeMap::new();
        let mut counts: BTreeMap<CellState, usize> = BTreeMap::new();
        let wanted = |cell: &Cell| only.is_none_or(|only| cell.task == *only);
        for cell in cells.into_iter().filter(wanted) {
            *counts.entry(cell.state).or_default() += 1;
            by_task.entry(cell.task.clone()).or_default().push(cell);
        }
        Ok(Self {
            now,
            counts: counts.into_iter().collect(),
            alerts: AlertView::open(&alerts, &silences, now),
            away,
            tasks,
            only: only.map(PlainText::from),
            grids: by_task
                .into_iter()
                .map(|(task, cells)| TaskGrid::of(task, cells))
                .collect(),
        })
    }
}

impl TaskGrid {
    fn of(task: PlainText, mut cells: Vec<Cell>) -> Self {
        cells.sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to)));
        let mut from: Vec<PlainText> = cells.iter().map(|cell| cell.from.clone()).collect();
        from.dedup();
        let mut to: Vec<PlainText> = cells.iter().map(|cell| cell.to.clone()).collect();
        to.sort();
        to.dedup();
        Self {
            task,
            from,
            to,
            cells,
        }
    }

    /// Whether most places of a matrix would be empty.
    pub(crate) fn is_sparse(&self) -> bool {
        let places = self.from.len() * self.to.len();
        places > 9 && (self.cells.len() as f64) < SPARSE * places as f64
    }

    /// How the task is at its worst.
    pub(crate) fn worst(&self) -> Option<CellState> {
        self.cells.iter().map(|cell| cell.state).min()
    }
}
