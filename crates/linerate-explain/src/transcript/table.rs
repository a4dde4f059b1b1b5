//! Tables of transfers: `units-mixed` and `counter-wrap`.
//!
//! Each column of rates is computed again from its amount and its duration, for each unit that could be
//! meant; the unit that fits most rows is the one that was used.

use linerate_model::finding::{Figure, Finding, Severity};
use linerate_model::transcript::{Given, Printed, RateTable};

use super::counter_wrap::WRAP;
use crate::draft::Draft;

/// A computed rate may differ from the printed one by this share, beside the digits: programs measure to
/// the end of the last write, tables to the end of the program.
const SLACK: f64 = 0.006;

/// Units of an amount, in bits, and their names; those that people use most stand first.
const AMOUNTS: [(f64, &str); 8] = [
    (8.0 * 1_048_576.0, "MiB"),
    (8e6, "MB"),
    (1_048_576.0, "Mibit"),
    (1e6, "Mbit"),
    (8.0, "bytes"),
    (8192.0, "KiB"),
    (8.0 * 1_073_741_824.0, "GiB"),
    (8e9, "GB"),
];
/// Units of a rate, in bit/s.
const RATES: [(f64, &str); 4] = [
    (1e6, "Mbit/s"),
    (1_048_576.0, "Mibit/s"),
    (1e9, "Gbit/s"),
    (1.0, "bit/s"),
];

/// Columns that belong together.
struct Group {
    name: String,
    amount: usize,
    duration: usize,
    rate: usize,
}

/// The units that fit a group, and in how many of how many rows.
struct Fit {
    amount: (f64, &'static str),
    rate: (f64, &'static str),
    rows: usize,
    of: usize,
}

pub(super) fn explain(table: &RateTable, given: &Given) -> (Option<String>, Vec<Finding>) {
    let groups = groups(table);
    let fits: Vec<Option<Fit>> = groups.iter().map(|group| fit(table, group)).collect();
    let mut findings = Vec::new();
    let mut recomputed = Vec::new();
    for (group, fit) in groups.iter().zip(&fits) {
        let Some(fit) = fit else {
            recomputed.push(format!(
                "{}: amount, duration and rate agree in no unit",
                group.name
            ));
            continue;
        };
        recomputed.push(format!(
            "{}: {} of {} rows agree with amounts in {} and rates in {}",
            group.name, fit.rows, fit.of, fit.amount.1, fit.rate.1
        ));
        findings.extend(wrong_heading(table, group, fit));
        findings.extend(wrapped(table, group, fit, given));
    }
    for (at, group) in groups.iter().enumerate() {
        for (other_at, other) in groups.iter().enumerate().skip(at + 1) {
            if let (Some(one), Some(two)) = (&fits[at], &fits[other_at]) {
                findings.extend(mixed(table, (group, one), (other, two)));
            }
        }
    }
    (
        (!recomputed.is_empty()).then(|| recomputed.join("; ")),
        findings,
    )
}

fn groups(table: &RateTable) -> Vec<Group> {
    let lower: Vec<String> = table
        .columns
        .iter()
        .map(|column| column.name.to_ascii_lowercase())
        .collect();
    let is = |at: usize, words: &[&str]| words.iter().any(|word| lower[at].starts_with(word));
    let rates = (0..lower.len()).filter(|at| {
        is(*at, &["rate", "link_utilisation", "throughput"]) || lower[*at].contains("/s")
    });
    let amount = |until: usize, from: usize| {
        let fits = |at: &usize| {
            is(
                *at,
                &[
                    "transferred",
                    "bytes",
                    "mbytes",
                    "kbytes",
                    "gbytes",
                    "mbits",
                    "gbits",
                    "amount",
                    "mib",
                ],
            )
        };
        // The nearest amount of the group, else the first of the table.
        (from..until)
            .rev()
            .find(fits)
            .or_else(|| (0..until).find(fits))
    };
    let mut from = 0;
    let mut groups = Vec::new();
    for rate in rates {
        let duration = (from..rate)
            .rev()
            .find(|at| is(*at, &["duration", "seconds", "secs"]));
        if let (Some(duration), Some(amount)) = (duration, amount(rate, from)) {
            let column = &table.columns[rate];
            groups.push(Group {
                name: column.group.as_ref().unwrap_or(&column.name).to_string(),
                amount,
                duration,
                rate,
            });
        }
        from = rate + 1;
    }
    groups
}

fn cell(table: &RateTable, row: usize, column: usize) -> Option<Printed> {
    table.rows[row].cells.get(column).copied().flatten()
}

/// Amount, duration and rate of each row where all three are known and more than zero.
fn rows<'a>(
    table: &'a RateTable,
    group: &'a Group,
) -> impl Iterator<Item = (usize, [Printed; 3])> + 'a {
    (0..table.rows.len()).filter_map(|row| {
        let three = [
            cell(table, row, group.amount)?,
            cell(table, row, group.duration)?,
            cell(table, row, group.rate)?,
        ];
        three
            .iter()
            .all(|number| number.value > 0.0)
            .then_some((row, three))
    })
}

/// The units that make most rows agree, where they make more than half of them agree.
fn fit(table: &RateTable, group: &Group) -> Option<Fit> {
    let of = rows(table, group).count();
    let named = table.columns[group.amount].name.to_ascii_lowercase();
    let mut best: Option<(usize, f64, Fit)> = None;
    for amount in AMOUNTS {
        let counts_bits = amount.1.ends_with("bit");
        if named.contains("bits") != counts_bits
            && (named.contains("bits") || counts_bits)
            && !named.starts_with("transferred")
        {
            continue;
        }
        for rate in RATES {
            let (mut agree, mut off) = (0, 0.0);
            for (_, three) in rows(table, group) {
                let (near, share) = agrees(three, amount.0, rate.0);
                agree += usize::from(near);
                off += share;
            }
            let better = best.as_ref().is_none_or(|(rows, least, _)| {
                agree > *rows || agree == *rows && off < *least * 0.5
            });
            if agree > 0 && better {
                let fit = Fit {
                    amount,
                    rate,
                    rows: agree,
                    of,
                };
                best = Some((agree, off, fit));
            }
        }
    }
    best.map(|(_, _, fit)| fit)
        .filter(|fit| fit.rows * 2 > fit.of)
}

/// Whether the rate follows from amount and duration, and how far off it is.
fn agrees([amount, duration, rate]: [Printed; 3], amount_bits: f64, rate_bits: f64) -> (bool, f64) {
    let bits = amount.value * amount_bits;
    let (low, high) = (
        bits / duration.high() / rate_bits,
        bits / (duration.low()).max(1e-9) / rate_bits,
    );
    let near = rate.meets(low * (1.0 - SLACK), high * (1.0 + SLACK));
    let off = (bits / duration.value / rate_bits / rate.value - 1.0).abs();
    (near, off.min(1.0))
}

/// A heading that says another unit than the figures have.
fn wrong_heading(table: &RateTable, group: &Group, fit: &Fit) -> Option<Finding> {
    let name = &table.columns[group.amount].name;
    let said = name.to_ascii_lowercase();
    if !said.starts_with("bytes") || fit.amount.1 == "bytes" {
        return None;
    }
    let (row, [amount, duration, rate]) =
        rows(table, group).find(|(_, three)| agrees(*three, fit.amount.0, fit.rate.0).0)?;
    let sentence = format!(
        "The heading '{name}' is wrong: the figures are {}: {} {} in {} s are {:.1} {}, and {:.1} is printed; in bytes it would be {:.6} {}",
        fit.amount.1,
        amount.value,
        fit.amount.1,
        duration.value,
        amount.value * fit.amount.0 / duration.value / fit.rate.0,
        fit.rate.1,
        rate.value,
        amount.value * 8.0 / duration.value / fit.rate.0,
        fit.rate.1
    );
    Draft::new("units-mixed", Severity::Fault, sentence)
        .figure(
            format!(
                "rate computed from the amount in {}, {}",
                fit.amount.1, fit.rate.1
            ),
            amount.value * fit.amount.0 / duration.value / fit.rate.0,
            format!("line {}", table.rows[row].line),
        )
        .done()
}

/// Amounts that begin again near zero while the rates stay.
fn wrapped(table: &RateTable, group: &Group, fit: &Fit, given: &Given) -> Option<Finding> {
    let bytes =
        |row: usize| cell(table, row, group.amount).map(|number| number.value * fit.amount.0 / 8.0);
    let seconds = |row: usize| cell(table, row, group.duration).map(|number| number.value);
    let restart = (1..table.rows.len()).find(|row| {
        let amounts = bytes(row - 1).zip(bytes(*row));
        let times = seconds(row - 1).zip(seconds(*row));
        let fell = amounts.is_some_and(|(before, now)| before >= 0.5 * WRAP && now < 0.25 * before);
        fell && times.is_none_or(|(before, now)| now < 0.5 * before)
    })?;
    // A counter of 32 bits never shows more.
    if (0..table.rows.len())
        .filter_map(bytes)
        .any(|amount| amount >= WRAP)
    {
        return None;
    }
    let mut mean = Vec::new();
    for (_, [.., rate]) in rows(table, group) {
        mean.push(rate.value);
    }
    let list: Vec<String> = (restart..table.rows.len())
        .filter_map(|row| cell(table, row, group.amount))
        .map(|amount| {
            let exact = amount.value * fit.amount.0 / 8.0;
            if amount.value < 1.0 {
                format!("{:.4} {} = {exact:.0} bytes", amount.value, fit.amount.1)
            } else {
                format!("{} {}", amount.value, fit.amount.1)
            }
        })
        .collect();
    let mut sentence = format!(
        "From row {} on (line {}) time and amount restart near zero ({}) while the rate column stays plausible: a \
         32-bit counter wrapped at 4096 MiB",
        restart + 1,
        table.rows[restart].line,
        list.join(", ")
    );
    match given.amounts {
        Some([first, last, step]) => {
            sentence.push_str(&remainders(table, group, fit, [first.0, last.0, step.0]));
        }
        None => sentence.push_str(
            "; to count the wraps, give the requested amounts (--asked-amounts FIRST:LAST:STEP)",
        ),
    }
    let figures = (restart..table.rows.len()).filter_map(|row| {
        let place = format!("line {}", table.rows[row].line);
        Some(Figure::new("amount printed, bytes", bytes(row)?, place))
    });
    Draft::new("counter-wrap", Severity::Fault, sentence)
        .figures(figures)
        .done()
}

/// Whether the printed amounts are those asked for, modulo 2^32.
fn remainders(
    table: &RateTable,
    group: &Group,
    fit: &Fit,
    [first, last, step]: [u64; 3],
) -> String {
    let asked: Vec<u64> = (0..table.rows.len() as u64)
        .map_while(|row| {
            first
                .checked_add(row.checked_mul(step)?)
                .filter(|amount| *amount <= last)
        })
        .collect();
    let mut matched = 0;
    for (row, amount) in asked.iter().enumerate() {
        let rest = (amount % 4_294_967_296) as f64;
        let printed =
            cell(table, row, group.amount).map(|number| number.value * fit.amount.0 / 8.0);
        // One write of the program more than the remainder is counted.
        matched += usize::from(printed.is_some_and(|printed| (printed - rest).abs() <= 131_072.0));
    }
    let all = asked.len() == table.rows.len() && matched == table.rows.len();
    let mib = |bytes: u64| bytes / 1_048_576;
    let range = format!(
        "{} to {} MiB in steps of {}",
        mib(first),
        mib(last),
        mib(step)
    );
    if all {
        format!(
            "; with {range} requested, each amount is N mod 2^32: only the remainder was transferred"
        )
    } else {
        format!(
            "; {matched} of {} rows are N mod 2^32 of {range}",
            table.rows.len()
        )
    }
}

/// Two columns of rates in different units.
fn mixed(
    table: &RateTable,
    (one, fit): (&Group, &Fit),
    (other, other_fit): (&Group, &Fit),
) -> Option<Finding> {
    if fit.rate.1 == other_fit.rate.1 {
        return None;
    }
    let (row, a, b) = (0..table.rows.len()).find_map(|row| {
        let (a, b) = (cell(table, row, one.rate)?, cell(table, row, other.rate)?);
        (a.value > 0.0 && b.value > 0.0).then_some((row, a.value, b.value))
    })?;
    let in_mbit = |value: f64, fit: &Fit| value * fit.rate.0 / 1e6;
    let (a_mbit, b_mbit) = (in_mbit(a, fit), in_mbit(b, other_fit));
    let place = format!("line {}", table.rows[row].line);
    Draft::new(
        "units-mixed",
        Severity::Fault,
        format!(
            "The two rates are in different units: {a:.2} ({}) is {}{}, {b:.2} ({}) is {}{}; in one unit they agree \
             ({a_mbit:.1} and {b_mbit:.1} Mbit/s, {:.1} % apart instead of {:.1} %): both programs are right, the \
             comparison mixed units",
            one.name,
            fit.rate.1,
            base(fit.rate.0),
            other.name,
            other_fit.rate.1,
            base(other_fit.rate.0),
            (b_mbit / a_mbit - 1.0).abs() * 100.0,
            (b / a - 1.0).abs() * 100.0,
        ),
    )
    .figure(format!("rate of {}, Mbit/s", one.name), a_mbit, &place)
    .figure(format!("rate of {}, Mbit/s", other.name), b_mbit, &place)
    .done()
}

fn base(factor: f64) -> &'static str {
    if factor > 1_048_575.0 && factor < 1_048_577.0 {
        " (2^20)"
    } else {
        ""
    }
}
