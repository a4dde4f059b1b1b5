//! Axes: units with their prefixes, and ticks at 1, 2 or 5 times a power of ten.

/// What a chart's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bit/s, with decimal prefixes.
    Rate,
    /// Bytes, with binary prefixes.
    Bytes,
    /// Microseconds.
    Micros,
    /// A count of what the chart's title says.
    Count,
    /// Hundredths of a percent: 10000 = all of it.
    Share,
}

/// A share of all.
const ALL: f64 = 10_000.0;

/// A unit with prefix: its name, and how many of the chart's values it is.
type Prefixed = (&'static str, f64);

impl Unit {
    /// A stable name, for the page's script.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Bytes => "bytes",
            Self::Micros => "time",
            Self::Count => "count",
            Self::Share => "share",
        }
    }

    /// Its prefixed units, in rising order.
    pub const fn steps(self) -> &'static [Prefixed] {
        match self {
            Self::Rate => &[
                ("bit/s", 1.0),
                ("kbit/s", 1e3),
                ("Mbit/s", 1e6),
                ("Gbit/s", 1e9),
                ("Tbit/s", 1e12),
            ],
            Self::Bytes => &[
                ("B", 1.0),
                ("KiB", 1024.0),
                ("MiB", 1_048_576.0),
                ("GiB", 1_073_741_824.0),
                ("TiB", 1_099_511_627_776.0),
            ],
            Self::Micros => &[("µs", 1.0), ("ms", 1e3), ("s", 1e6)],
            Self::Count => &[("", 1.0), ("thousand", 1e3), ("million", 1e6)],
            Self::Share => &[("%", 100.0)],
        }
    }

    /// A value with its unit, in three digits: `941 Mbit/s`.
    pub fn spelled(self, value: u64) -> String {
        if self == Self::Count {
            return linerate_model::units::grouped(value);
        }
        let (name, size) = self.prefix(value as f64 * 1.0005);
        let scaled = value as f64 / size;
        if size <= 1.0 {
            format!("{value} {name}")
        } else {
            format!("{} {name}", linerate_model::units::three_digits(scaled))
        }
    }

    /// The largest prefixed unit that leaves `value` at least 1.
    pub(crate) fn prefix(self, value: f64) -> Prefixed {
        let steps = self.steps();
        // A count gets a prefix only where its digits would not fit.
        let least = if self == Self::Count { 100.0 } else { 1.0 };
        steps
            .iter()
            .rev()
            .find(|(_, size)| value >= size * least)
            .copied()
            .unwrap_or(steps[0])
    }
}

/// A value axis from zero to `top`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The unit that its labels count.
    pub unit: &'static str,
    /// The highest value that it shows, in the chart's values; at least what it was made for.
    pub top: f64,
    /// Between two ticks, in the chart's values.
    pub step: f64,
    /// Of the chart's values, one labelled unit.
    pub size: f64,
}

impl Scale {
    /// A scale for values up to `most`, with about five ticks.
    pub fn of(unit: Unit, most: u64) -> Self {
        let most = (most as f64).max(1.0);
        let (name, size) = unit.prefix(most);
        let mut step = nice(most / size / 4.5) * size;
        if matches!(unit, Unit::Count | Unit::Bytes) {
            // Half a segment is none.
            step = step.max(1.0);
        }
        let top = (most / step * 0.999_999).ceil() * step;
        Self {
            unit: name,
            // Ticks of the clock make a processor busy a little more than all the time.
            top: if unit == Unit::Share && most < ALL * 1.1 {
                top.min(ALL)
            } else {
                top
            },
            step,
            size,
        }
    }

    /// Values of the ticks, in the chart's values, with their labels.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        ticks([0.0, self.top], self.step)
            .map(|value| (value, label(value / self.size, self.step / self.size)))
            .collect()
    }
}

/// Instants of the time axis between `from` and `to`, in seconds, with their labels; about `many`.
pub fn seconds([from, to]: [f64; 2], many: usize) -> Vec<(f64, String)> {
    let step = nice((to - from).max(1e-6) / many.max(1) as f64);
    ticks([from, to], step)
        .map(|at| (at, label(at, step)))
        .collect()
}

/// Multiples of `step` from the first at or above `from` to the last at or below `to`; at most a hundred.
fn ticks([from, to]: [f64; 2], step: f64) -> impl Iterator<Item = f64> {
    const MOST: u32 = 100;
    let first = (from / step - 1e-9).ceil();
    (0..MOST)
        .map(move |number| (first + f64::from(number)) * step)
        .take_while(move |value| *value <= to + step * 1e-6)
}

/// The least of 1, 2, 5 times a power of ten that is not below `least`.
pub(super) fn nice(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1e-12).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= least * 0.999_999)
        .unwrap_or(10.0 * power)
}

/// A tick's label with as many decimals as its step needs.
fn label(value: f64, step: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "held between 0 and 9")]
    let decimals = (-(step * 1.000_001).log10().floor()).clamp(0.0, 9.0) as usize;
    let value = if value.abs() < step / 2.0 { 0.0 } else { value };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(unit: Unit, most: u64) -> Vec<String> {
        Scale::of(unit, most)
            .ticks()
            .into_iter()
            .map(|(_, label)| label)
            .collect()
    }

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        assert_eq!(
            labels(Unit::Rate, 941_000_000),
            ["0", "500", "1000"].map(str::to_owned)
        );
        assert_eq!(
            labels(Unit::Bytes, 7 << 20),
            ["0", "2", "4", "6", "8"].map(str::to_owned)
        );
        assert_eq!(Scale::of(Unit::Bytes, 7 << 20).unit, "MiB");
        assert_eq!(
            labels(Unit::Count, 3),
            ["0", "1", "2", "3"].map(str::to_owned)
        );
        assert_eq!(Scale::of(Unit::Micros, 60_300).unit, "ms");
        for most in [0, 1, 2, 7, 99, 100, 101, 12_345, u64::MAX] {
            for unit in [
                Unit::Rate,
                Unit::Bytes,
                Unit::Micros,
                Unit::Count,
                Unit::Share,
            ] {
                let scale = Scale::of(unit, most);
                assert!(scale.top >= most as f64 * 0.9, "{unit:?} {most}");
                let many = scale.ticks().len();
                assert!((2..=8).contains(&many), "{unit:?} {most}: {many} ticks");
            }
        }
    }

    #[test]
    fn a_time_axis_is_labelled_in_whole_steps() {
        let labels: Vec<String> = seconds([0.0, 0.31], 6)
            .into_iter()
            .map(|(_, label)| label)
            .collect();
        assert_eq!(labels, ["0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(seconds([3.0, 3.0], 6).len(), 1);
        assert_eq!(seconds([-0.4, 9.9], 10)[0].1, "0");
    }

    #[test]
    fn values_are_spelled_with_their_unit() {
        assert_eq!(Unit::Rate.spelled(941_500_000), "942 Mbit/s");
        assert_eq!(Unit::Micros.spelled(60_300), "60.3 ms");
        assert_eq!(Unit::Count.spelled(82_213), "82,213");
        assert_eq!(Unit::Share.spelled(4_200), "42.0 %");
        assert_eq!(Unit::Bytes.spelled(999), "999 B");
    }
}
