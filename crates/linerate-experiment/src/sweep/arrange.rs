//! The cells of a sweep as bars in panels.

use linerate_model::bars::{Bar, BarFigure, Group, Panel};
use linerate_model::units::{BitRate, whole};

use super::{CellResult, Results, Sweep};

/// The figures of a sweep: one for each combination of those factors that have no place in a figure.
pub fn figure(sweep: &Sweep, results: &Results) -> Vec<BarFigure> {
    let places = Places::of(sweep);
    let mut fixed: Vec<Vec<usize>> = Vec::new();
    for cell in &sweep.cells {
        let rest: Vec<usize> = places.rest.iter().map(|at| cell.levels[*at]).collect();
        if !fixed.contains(&rest) {
            fixed.push(rest);
        }
    }
    fixed
        .iter()
        .map(|rest| one(sweep, results, &places, rest))
        .collect()
}

/// Which factor stands where, by their indices.
struct Places {
    rows: Option<usize>,
    columns: Option<usize>,
    groups: Option<usize>,
    bars: Option<usize>,
    rest: Vec<usize>,
}

impl Places {
    fn of(sweep: &Sweep) -> Self {
        let at = |name: &Option<String>| {
            let name = name.as_ref()?;
            sweep.factors.iter().position(|factor| factor.name == *name)
        };
        let [rows, columns, groups, bars] = [
            at(&sweep.chart.rows),
            at(&sweep.chart.columns),
            at(&sweep.chart.groups),
            at(&sweep.chart.bars),
        ];
        let placed = [rows, columns, groups, bars];
        let rest = (0..sweep.factors.len())
            .filter(|at| !placed.contains(&Some(*at)))
            .collect();
        Self {
            rows,
            columns,
            groups,
            bars,
            rest,
        }
    }
}

fn one(sweep: &Sweep, results: &Results, places: &Places, rest: &[usize]) -> BarFigure {
    let count = |place: Option<usize>| place.map_or(1, |at| sweep.factors[at].labels.len());
    let name =
        |place: Option<usize>| place.map_or_else(String::new, |at| sweep.factors[at].name.clone());
    let label = |place: Option<usize>, level: usize| {
        place.map_or_else(String::new, |at| sweep.factors[at].labels[level].clone())
    };
    let named = |place: Option<usize>, level: usize| {
        place.map(|at| {
            format!(
                "{} {}",
                sweep.factors[at].name, sweep.factors[at].labels[level]
            )
        })
    };
    let find = |levels: [usize; 4]| {
        results.cells.iter().find(|cell| {
            let own = [places.rows, places.columns, places.groups, places.bars];
            let placed = own.iter().zip(levels);
            placed
                .clone()
                .all(|(place, level)| place.is_none_or(|at| cell.levels[at] == level))
                && places
                    .rest
                    .iter()
                    .zip(rest)
                    .all(|(at, level)| cell.levels[*at] == *level)
        })
    };
    let panel = |row: usize, column: usize| {
        let groups: Vec<Group> = (0..count(places.groups))
            .map(|group| {
                let cells = (0..count(places.bars)).map(|bar| find([row, column, group, bar]));
                let cells: Vec<Option<&CellResult>> = cells.collect();
                Group {
                    label: label(places.groups, group),
                    carries_bps: cells.iter().flatten().find_map(|cell| cell.carries_bps),
                    bars: cells.into_iter().map(bar_of).collect(),
                }
            })
            .collect();
        let mut limits = (0..count(places.groups))
            .flat_map(|group| (0..count(places.bars)).map(move |bar| [row, column, group, bar]))
            .filter_map(|levels| find(levels)?.limit.clone());
        let first = limits.next();
        // One line for the panel, where all its cells have the same.
        let limit = first.filter(|first| limits.all(|other| other == *first));
        let title = [named(places.rows, row), named(places.columns, column)];
        Panel {
            title: title.into_iter().flatten().collect::<Vec<_>>().join(", "),
            limit: limit.map(Into::into),
            groups,
        }
    };
    let fixed = places.rest.iter().zip(rest);
    let fixed: Vec<String> = fixed
        .filter_map(|(at, level)| named(Some(*at), *level))
        .collect();
    let mut title = if sweep.about.is_empty() {
        sweep.name.clone()
    } else {
        sweep.about.clone()
    };
    if !fixed.is_empty() {
        title = format!("{title} ({})", fixed.join(", "));
    }
    BarFigure {
        title,
        about: about(sweep, results),
        group_name: name(places.groups),
        bar_name: name(places.bars),
        bars: (0..count(places.bars))
            .map(|bar| label(places.bars, bar))
            .collect(),
        rows: (0..count(places.rows))
            .map(|row| {
                (0..count(places.columns))
                    .map(|column| panel(row, column))
                    .collect()
            })
            .collect(),
    }
}

fn bar_of(cell: Option<&CellResult>) -> Bar {
    let Some(cell) = cell else {
        return Bar::default();
    };
    Bar {
        bps: cell.goodput_bps,
        interval: cell.interval.map(|interval| [interval.low, interval.high]),
        remark: cell.remark.clone(),
    }
}

fn about(sweep: &Sweep, results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    let place = match (&sweep.peer, sweep.cells.first()) {
        (Some(peer), _) => format!("To {peer}"),
        (None, Some(setup)) => {
            let rate = setup.scenario.as_ref().and_then(|scenario| {
                let settings = scenario.path.forward.settings;
                settings.bottleneck.map(|link| link.rate)
            });
            let rate = rate.map_or("unlimited".to_owned(), |rate| BitRate(rate.0).to_string());
            format!("Lab, path of {rate}")
        }
        (None, None) => String::new(),
    };
    let words = sweep
        .cells
        .first()
        .map_or_else(String::new, |setup| setup.words.join(" "));
    let most = results
        .cells
        .iter()
        .map(|cell| cell.runs.len())
        .max()
        .unwrap_or(0);
    let least = results
        .cells
        .iter()
        .filter(|cell| cell.goodput_bps.is_some())
        .map(|cell| cell.runs.len())
        .min()
        .unwrap_or(0);
    let runs = if least == most {
        format!("{most}")
    } else {
        format!("{least} to {most}")
    };
    lines.push(format!(
        "{place}; goodput of the plateau ({}), mean of {runs} runs a bar, 95 % bootstrap interval; order random in blocks (seed {})",
        format!("linerate test {words}").trim(),
        sweep.seed
    ));
    if results.left > 0 {
        lines.push(format!("{} runs are still to be made", results.left));
    }
    let highest = results.cells.iter().filter_map(|cell| cell.carries_bps);
    if let Some(most) = highest.max_by(f64::total_cmp) {
        lines.push(format!(
            "Short lines across: most that the path carries at that MTU (up to {})",
            BitRate(whole(most))
        ));
    }
    lines
}
