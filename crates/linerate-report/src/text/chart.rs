//! The rate over time, and what the time went to.

use linerate_analysis::time_budget::{Band, Class};
use linerate_model::units::Nanos;

use super::layout::Page;
use super::style::{Charset, Style};
use crate::view::{DirectionView, RatesView};
use crate::words;

/// Lines that the curve takes where there is room.
pub(super) const HEIGHT: usize = 6;
/// And where two of them share a screen.
pub(super) const LOW: usize = 3;
/// Columns before the curve: a rate and the axis.
const MARGIN: usize = 12;
/// Levels of a block character; the first one is nothing.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// What ASCII has in their place.
const SIGNS: [char; 3] = [' ', '.', '#'];

/// The letter that stands for a class, and its colour.
pub(super) const fn mark(class: Class) -> (char, &'static str) {
    match class {
        Class::Application => ('a', "35"),
        Class::SendBuffer => ('s', "33"),
        Class::ReceiveWindow => ('w', "34"),
        Class::CongestionWindow => ('c', "36"),
        Class::Recovery => ('r', "31"),
        Class::Timeout => ('t', "1;31"),
        Class::FillingPath => ('f', "32"),
    }
}

/// A chart of the direction's rate, its curve `height` lines high; nothing where it has no curve.
pub(super) fn write(page: &mut Page, style: Style, direction: &DirectionView, height: usize) {
    let Some(rates) = direction
        .rates
        .as_ref()
        .filter(|rates| rates.bps.len() >= 2)
    else {
        return;
    };
    let columns = columns(rates, style.columns().saturating_sub(MARGIN + 1));
    let most = columns.iter().copied().fold(0.0, f64::max);
    let top = ceiling(most);
    page.line(&title(rates, direction, columns.len()));
    for line in (0..height).rev() {
        let label = match line {
            line if line + 1 == height => words::rate(linerate_model::units::whole(top)),
            0 => "0".to_owned(),
            _ => String::new(),
        };
        let curve: String = columns
            .iter()
            .map(|rate| cell(style, *rate / top, line, height))
            .collect();
        page.line(&format!(
            "{label:>width$} {}{curve}",
            style.pick("│", "|"),
            width = MARGIN - 2
        ));
    }
    if let Some(row) = classes(style, rates, &direction.bands, columns.len()) {
        page.line(&format!(
            "{:>width$} {}{row}",
            "time",
            style.pick("│", "|"),
            width = MARGIN - 2
        ));
    }
    page.line(&axis(style, rates, columns.len()));
}

/// `Rate over time, client to server, 0.14 s a column; the plateau begins at 0.15 s`.
fn title(rates: &RatesView, direction: &DirectionView, columns: usize) -> String {
    let each = span_ns(rates) as f64 / columns.max(1) as f64 / 1e9;
    let ramp = match direction.figures.ramp_ns {
        Some(ramp) if ramp > 0 => format!("; the ramp ends at {}", words::seconds(ramp)),
        _ => String::new(),
    };
    format!(
        "Rate over time ({}), {} s a column{ramp}",
        super::way(direction.flow),
        linerate_model::units::three_digits(each)
    )
}

fn span_ns(rates: &RatesView) -> u64 {
    (rates.bps.len() as u64).saturating_mul(rates.step_ns)
}

/// The curve's mean in each column.
fn columns(rates: &RatesView, most: usize) -> Vec<f64> {
    let points = rates.bps.len();
    let columns = most.min(points).max(1);
    (0..columns)
        .map(|column| {
            let from = column * points / columns;
            let to = ((column + 1) * points / columns).max(from + 1);
            let slice = &rates.bps[from..to];
            slice.iter().map(|bps| *bps as f64).sum::<f64>() / slice.len() as f64
        })
        .collect()
}

/// A round number not below `most`: 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten.
fn ceiling(most: f64) -> f64 {
    if most <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    let round = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0];
    let fits = round
        .into_iter()
        .map(|times| times * power)
        .find(|top| *top >= most);
    fits.unwrap_or(10.0 * power)
}

/// What stands on a line of the curve where it reaches up to `share` of all.
fn cell(style: Style, share: f64, line: usize, height: usize) -> char {
    let filled = share.clamp(0.0, 1.0) * height as f64 - line as f64;
    let levels: &[char] = match style.charset() {
        Charset::Unicode => &BLOCKS,
        Charset::Ascii => &SIGNS,
    };
    let full = levels.len() - 1;
    // A rate that is not zero is seen on the lowest line.
    let least = usize::from(line == 0 && share > 0.0);
    let level = linerate_model::units::whole(filled.max(0.0) * full as f64);
    levels[usize::try_from(level).unwrap_or(full).clamp(least, full)]
}

/// The class that took most of each column's time, as letters.
fn classes(style: Style, rates: &RatesView, bands: &[Band], columns: usize) -> Option<String> {
    if bands.is_empty() {
        return None;
    }
    let span = span_ns(rates);
    let of = |column: usize| {
        let edge = |column: usize| {
            let part = u128::from(span) * column as u128 / columns.max(1) as u128;
            rates
                .from_ns
                .saturating_add(u64::try_from(part).unwrap_or(u64::MAX))
        };
        let (from, to) = (edge(column), edge(column + 1));
        let mut times = linerate_analysis::time_budget::ClassTimes::default();
        let first = bands.partition_point(|band| band.to_ns <= from);
        for band in bands[first..].iter().take_while(|band| band.from_ns < to) {
            let common = band.to_ns.min(to).saturating_sub(band.from_ns.max(from));
            times.add(band.class, common);
        }
        times.largest().map_or(" ".to_owned(), |class| {
            let (letter, colour) = mark(class);
            style.coloured(colour, letter.encode_utf8(&mut [0; 4]))
        })
    };
    Some((0..columns).map(of).collect())
}

/// `0 s       2.5 s       5 s`: a mark at each quarter.
fn axis(style: Style, rates: &RatesView, columns: usize) -> String {
    let mut line = format!(
        "{:>width$} {}",
        "",
        style.pick("└", "+"),
        width = MARGIN - 2
    );
    let mut used = 0;
    for quarter in 0..=4_usize {
        let at = span_ns(rates) / 4 * quarter as u64;
        let label = Nanos(rates.from_ns.saturating_add(at)).as_secs_f64();
        let label = format!("{} s", trimmed(label));
        let place = (columns * quarter / 4).min(columns.saturating_sub(label.len()));
        if place < used + usize::from(quarter > 0) {
            continue;
        }
        line.push_str(&style.pick("─", "-").repeat(place - used));
        line.push_str(&label);
        used = place + label.len();
    }
    line.push_str(&style.pick("─", "-").repeat(columns.saturating_sub(used)));
    line
}

/// With as few decimals as say it to a hundredth.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_is_round_and_above_all() {
        for (most, top) in [
            (94.1e6, 100e6),
            (0.0, 1.0),
            (101.0, 120.0),
            (9.99e9, 1e10),
            (1.0, 1.0),
        ] {
            assert!(
                (ceiling(most) / top - 1.0).abs() < 1e-9,
                "{most}: {}",
                ceiling(most)
            );
        }
    }

    #[test]
    fn a_column_fills_up_from_below() {
        let style = Style::plain();
        let drawn = |share: f64| {
            (0..HEIGHT)
                .map(|line| cell(style, share, line, HEIGHT))
                .collect::<String>()
        };
        assert_eq!(drawn(1.0), "██████");
        assert_eq!(drawn(0.5), "███   ");
        assert_eq!(drawn(0.0), "      ");
        assert_eq!(drawn(1e-9), "▁     ");
        assert_eq!(drawn(7.0), "██████");
    }

    #[test]
    fn columns_keep_the_mean() {
        let rates = RatesView {
            from_ns: 0,
            step_ns: 1,
            bps: (0..100).collect(),
        };
        let drawn = columns(&rates, 10);
        assert_eq!(drawn.len(), 10);
        assert!((drawn.iter().sum::<f64>() / 10.0 - 49.5).abs() < 1e-9);
        assert_eq!(columns(&rates, 1000).len(), 100);
    }
}
