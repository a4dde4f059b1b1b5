//! From `[[task]]` to a task with its pairs.

use std::collections::HashSet;

use linerate_document::{Table, Value};
use linerate_model::plan::command_line;
use linerate_model::units::BitRate;

use super::keys::TASK;
use super::read::{Reading, Result, name};
use super::{test_options, times};
use crate::watched::{Expected, Pair, Sampling, Schedule, Task};

/// A plan has at most so many pairs: a mesh of a thousand hosts has 999,000.
pub const MOST_PAIRS: usize = 1_100_000;

const EVERY_MILLIS: u64 = 6 * 3_600_000;
const DAY_MILLIS: u64 = 86_400_000;
/// The shortest and the longest period.
const PERIODS: std::ops::RangeInclusive<u64> = 10_000..=366 * DAY_MILLIS;
const SLIPS: std::ops::RangeInclusive<u64> = 1_000..=366 * DAY_MILLIS;

impl Reading<'_> {
    pub(super) fn task(&self, value: &Value<'_>) -> Result<Task> {
        let table = value.table(&TASK)?;
        let name = name(&table)?;
        let again = self.watched.tasks.iter().any(|task| task.name == name);
        let reason = format!("another task has the name '{name}'");
        table.needed("name")?.refuse(again, reason)?;
        let options = table.or("test", Vec::new(), options)?;
        let plan = test_options::plan(&options);
        let plan = match (plan, table.value("test")) {
            (Ok(plan), _) => plan,
            (Err(error), Some(value)) => return Err(value.wrong(error.to_string())),
            (Err(error), None) => return Err(self.document.contradiction(error.to_string())),
        };
        let load = test_options::load_millis(&plan).unwrap_or_default();
        Ok(Task {
            name,
            load_millis: load,
            rate: test_options::rate(&plan),
            options,
            pairs: self.pairs(value, &table)?,
            schedule: schedule(&table, load)?,
            expected: table.read("expect", expected)?,
            quiet: table.read("quiet", |value| value.amount(share))?,
        })
    }

    fn pairs(&self, task: &Value<'_>, table: &Table<'_>) -> Result<Vec<Pair>> {
        let mut wanted = Wanted::default();
        let (from, to) = (table.value("from"), table.value("to"));
        if let Some(value) = table.value("mesh") {
            let hosts = self.set(value)?;
            value.refuse(hosts.len() < 2, "a mesh needs two hosts")?;
            wanted.add(value, &hosts, &hosts)?;
        }
        match (from, to) {
            (Some(from), Some(to)) => {
                let (senders, receivers) = (self.set(from)?, self.set(to)?);
                wanted.add(from, &senders, &receivers)?;
                if table.or("both_ways", true, Value::boolean)? {
                    wanted.add(from, &receivers, &senders)?;
                }
            }
            (Some(value), None) | (None, Some(value)) => {
                return Err(value.wrong("from and to are given together"));
            }
            (None, None) => {
                if let Some(value) = table.value("both_ways") {
                    return Err(value.wrong("it has a meaning only with from and to"));
                }
            }
        }
        if let Some(value) = table.value("pairs") {
            for pair in value.list()? {
                let (senders, receivers) = self.two_sets(&pair)?;
                wanted.add(&pair, &senders, &receivers)?;
            }
        }
        if !["mesh", "from", "pairs"]
            .iter()
            .any(|key| table.value(key).is_some())
        {
            return Err(task.wrong(
                "who tests whom is not said: give mesh = \"SET\", from = \"SET\" with to = \"SET\", or pairs = [[\"FROM\", \"TO\"]]",
            ));
        }
        let mut excluded = Wanted::default();
        for pair in table.read("exclude", Value::list)?.unwrap_or_default() {
            let (senders, receivers) = self.two_sets(&pair)?;
            excluded.add(&pair, &senders, &receivers)?;
        }
        wanted.order.retain(|pair| !excluded.seen.contains(pair));
        task.refuse(wanted.order.is_empty(), "no pair of two hosts is left")?;
        let before: usize = self.watched.tasks.iter().map(|task| task.pairs.len()).sum();
        let many = before + wanted.order.len() > MOST_PAIRS;
        task.refuse(many, format!("the plan has more than {MOST_PAIRS} pairs"))?;
        let pair = |(from, to)| Pair {
            from,
            to,
            from_address: None,
            to_address: None,
        };
        Ok(wanted.order.into_iter().map(pair).collect())
    }

    fn two_sets(&self, value: &Value<'_>) -> Result<(Vec<usize>, Vec<usize>)> {
        match value.list()?.as_slice() {
            [from, to] => Ok((self.set(from)?, self.set(to)?)),
            _ => Err(value.wrong("not two sets: [\"FROM\", \"TO\"]")),
        }
    }
}

/// Pairs in their order, each once.
#[derive(Default)]
struct Wanted {
    order: Vec<(usize, usize)>,
    seen: HashSet<(usize, usize)>,
}

impl Wanted {
    fn add(&mut self, value: &Value<'_>, senders: &[usize], receivers: &[usize]) -> Result<()> {
        let many = senders.len().saturating_mul(receivers.len()) > 2 * MOST_PAIRS;
        value.refuse(
            many || self.order.len() > 2 * MOST_PAIRS,
            format!("the plan has more than {MOST_PAIRS} pairs"),
        )?;
        for from in senders {
            for to in receivers {
                if from != to && self.seen.insert((*from, *to)) {
                    self.order.push((*from, *to));
                }
            }
        }
        Ok(())
    }
}

fn options(value: &Value<'_>) -> Result<Vec<String>> {
    if let Ok(text) = value.text() {
        return command_line::words(text).map_err(|why| value.wrong(why));
    }
    let neither = |_| value.wrong("neither a text nor a list of words");
    let words = value.list().map_err(neither)?;
    words
        .iter()
        .map(|word| word.text().map(str::to_owned))
        .collect()
}

fn schedule(table: &Table<'_>, load_millis: u64) -> Result<Schedule> {
    let time = |value: &Value<'_>, range: &std::ops::RangeInclusive<u64>| {
        let millis = value.amount(times::millis)?;
        let reason = "it is outside of the range";
        value.refuse(!range.contains(&millis), reason)?;
        Ok(millis)
    };
    let period = table.or("every", EVERY_MILLIS, |value| time(value, &PERIODS))?;
    if let Some(value) = table.value("every") {
        let reason = format!(
            "a test takes {} s, longer than the period",
            load_millis as f64 / 1000.0
        );
        value.refuse(load_millis >= period, reason)?;
    }
    Ok(Schedule {
        period_millis: period,
        slip_millis: table.read("slip", |value| {
            let slip = time(value, &SLIPS)?;
            let reason = format!(
                "a test takes {} s and could never end in time",
                load_millis as f64 / 1000.0
            );
            value.refuse(slip <= load_millis, reason)?;
            Ok(slip)
        })?,
        sampling: table.or("sampling", Sampling::Stratified, |value| {
            value.word(&[
                ("stratified", Sampling::Stratified),
                ("poisson", Sampling::Poisson),
                ("fixed", Sampling::Fixed),
            ])
        })?,
        hours: table.read_all("hours", |value| {
            times::hours(value.text()?).map_err(|why| value.wrong(why))
        })?,
    })
}

fn expected(value: &Value<'_>) -> Result<Expected> {
    let text = value.words()?;
    if text == "auto" {
        return Ok(Expected::Auto);
    }
    let wrong = || value.wrong("not understood");
    let bound = text.strip_prefix(">=").ok_or_else(wrong)?.trim();
    if let Some(part) = bound.strip_suffix("of baseline") {
        let share = share(part.trim()).map_err(|why| value.wrong(why))?;
        return Ok(Expected::OfBaseline(share));
    }
    let rate: BitRate = bound
        .parse()
        .map_err(|error| value.wrong(format!("{error}")))?;
    value.refuse(rate == BitRate(0), "every test shows 0")?;
    Ok(Expected::AtLeast(rate))
}

/// A share such as `20%`.
fn share(text: &str) -> std::result::Result<f64, String> {
    let percent = text.trim().strip_suffix('%');
    let percent = percent.and_then(|percent| percent.trim().parse::<f64>().ok());
    percent
        .filter(|percent| *percent > 0.0 && *percent <= 100.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "not a percentage above 0 and at most 100, such as 20%".to_owned())
}
