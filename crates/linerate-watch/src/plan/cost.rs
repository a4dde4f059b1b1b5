//! What a plan costs, before anything runs: how busy each host and segment gets, bytes, disk, and what cannot fit.

use std::collections::HashMap;
use std::fmt;

use linerate_model::plain_text::PlainText;
use linerate_model::units::{BitRate, percent};

use super::hours::Hours;
use super::test_options;
use crate::dispatch::overhead_millis;
use crate::watched::{Budget, Duplex, Pair, Task, Watched};

/// The rate with which bytes are predicted where neither the task nor its hosts' links say one.
pub const ASSUMED_RATE: BitRate = BitRate(10_000_000_000);
/// A test of at most this share of the link is light: it takes no turn.
pub const LIGHT: f64 = 0.01;
/// For how many days raw records are kept.
pub const RAW_DAYS: f64 = 60.0;

const DAY_SECONDS: f64 = 86_400.0;
/// Compressed record of a test of 10 s with one stream, bytes: 27 % of its JSON, as measured.
const RECORD_BYTES: f64 = 22_600.0;
/// What each further stream adds.
const STREAM_BYTES: f64 = 20_800.0;
const RECORD_SECONDS: f64 = 10.0;
/// The share of a record of 10 s that one of any length takes: one of 1 s takes 8.7 kB, as measured.
const RECORD_LEAST: f64 = 0.32;
/// A row of the archive with its places in indexes, bytes.
const ROW_BYTES: f64 = 600.0;

/// What a plan costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Pairs of all tasks.
    pub pairs: usize,
    /// Tests that are due a day.
    pub tests_a_day: f64,
    /// By task, in the plan's order.
    pub tasks: Vec<TaskCost>,
    /// By host, in the plan's order.
    pub hosts: Vec<Load>,
    /// By segment, in the plan's order.
    pub segments: Vec<Load>,
    /// Payload of all tests a day, bytes.
    pub bytes_a_day: f64,
    /// Tests a day whose rate nothing says: [`ASSUMED_RATE`] was used.
    pub assumed_a_day: f64,
    /// Compressed records a day, bytes.
    pub raw_a_day: f64,
    /// Rows of the archive a day, bytes.
    pub rows_a_day: f64,
    /// The longest period of a task, s; 0 without tasks.
    pub cycle_seconds: f64,
    /// Why the plan cannot be carried out; empty = it can.
    pub refused: Vec<Refusal>,
    /// Pairs of which no test can run, as they are reached.
    pub unreachable: Vec<Unreachable>,
}

/// A task's share.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskCost {
    /// The task.
    pub name: PlainText,
    /// Its pairs.
    pub pairs: usize,
    /// Its tests a day.
    pub tests_a_day: f64,
    /// What a test books of its hosts, s.
    pub booked_seconds: f64,
    /// Its period, s.
    pub period_seconds: f64,
}

/// How busy a host or a segment gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The host or the segment.
    pub name: PlainText,
    /// Tests a day in which it takes part.
    pub tests_a_day: f64,
    /// Share of the day in which tests hold it; above 1 they do not fit.
    pub busy: f64,
    /// Payload that it sends and receives a day, bytes.
    pub bytes_a_day: f64,
    /// Seconds a day in which a test's load runs.
    pub load_seconds: f64,
}

/// Why a plan cannot be carried out.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// A host or segment would be held for longer than there is time.
    Busy {
        /// `host NAME` or `segment NAME`.
        resource: String,
        /// What the tests need a day, s.
        needed: f64,
        /// What there is: a day, or the hours of the tests, s.
        available: f64,
        /// Whether the hours of tasks bound it.
        in_hours: bool,
    },
    /// Its budget of bytes a day would not do.
    Bytes {
        /// As above.
        resource: String,
        /// Bytes a day.
        needed: f64,
        /// The budget.
        budget: f64,
    },
    /// Its budget of seconds a day would not do.
    Seconds {
        /// As above.
        resource: String,
        /// Seconds a day.
        needed: f64,
        /// The budget.
        budget: f64,
    },
    /// A test is longer than its period, or than what may pass until it has to end.
    Period {
        /// The task.
        task: PlainText,
        /// What a test books, s.
        booked: f64,
        /// The period or the slip, s.
        within: f64,
    },
    /// No pair of it can be tested.
    Nothing {
        /// The task.
        task: PlainText,
        /// Why its first pair cannot.
        why: &'static str,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy {
                resource,
                needed,
                available,
                in_hours,
            } => {
                let share = percent(needed / available);
                let of = if *in_hours {
                    "of the hours of its tasks"
                } else {
                    "of the day"
                };
                write!(
                    f,
                    "{resource}: its tests need {needed:.0} s a day, {share} {of} ({available:.0} s): test fewer pairs, for less time or less often"
                )
            }
            Self::Bytes {
                resource,
                needed,
                budget,
            } => write!(
                f,
                "{resource}: its tests move {} a day, and its budget is {}: pace them with -b, test less, or raise the budget",
                amount(*needed),
                amount(*budget)
            ),
            Self::Seconds {
                resource,
                needed,
                budget,
            } => write!(
                f,
                "{resource}: its tests run {needed:.0} s a day, and its budget is {budget:.0} s: test less, or raise the budget"
            ),
            Self::Period {
                task,
                booked,
                within,
            } => write!(
                f,
                "task {task}: a test books {booked:.1} s of its hosts, and has to end within {within:.1} s: raise `every` or `slip`"
            ),
            Self::Nothing { task, why } => write!(
                f,
                "task {task}: none of its pairs can be tested, because {why}: give one end reach = \"agent\" or \"ssh\", or let it listen"
            ),
        }
    }
}

/// Bytes with a decimal unit: `4.56 GB`.
pub fn amount(bytes: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut scaled = bytes;
    let mut unit = 0;
    while unit + 1 < units.len() && scaled >= 999.5 {
        scaled /= 1000.0;
        unit += 1;
    }
    if unit == 0 {
        return format!("{scaled:.0} B");
    }
    let digits = linerate_model::units::three_digits(scaled);
    format!("{digits} {}", units[unit])
}

/// Pairs of a task of which no test can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreachable {
    /// The task.
    pub task: PlainText,
    /// How many.
    pub pairs: usize,
    /// The first of them, sender and receiver.
    pub first: (PlainText, PlainText),
    /// Why.
    pub why: &'static str,
}

/// A host or segment while its tests are added up.
#[derive(Debug, Clone, Default)]
struct Sum {
    tests: f64,
    bytes: f64,
    load: f64,
    /// Held while sending and while receiving, s a day; a segment's is all in the first.
    held: [f64; 2],
    /// The same by the hours of tasks: place in the list of hours.
    by_hours: HashMap<usize, [f64; 2]>,
}

/// A task's numbers, the same for all its pairs.
struct Each {
    a_day: f64,
    booked: f64,
    load: f64,
    rate: Option<BitRate>,
    hours: usize,
}

/// What a plan costs.
pub fn cost(watched: &Watched) -> Cost {
    let mut adding = Adding {
        watched,
        hours: Vec::new(),
        hosts: vec![Sum::default(); watched.hosts.len()],
        segments: vec![Sum::default(); watched.segments.len()],
        cost: Cost {
            pairs: 0,
            tests_a_day: 0.0,
            tasks: Vec::new(),
            hosts: Vec::new(),
            segments: Vec::new(),
            bytes_a_day: 0.0,
            assumed_a_day: 0.0,
            raw_a_day: 0.0,
            rows_a_day: 0.0,
            cycle_seconds: 0.0,
            refused: Vec::new(),
            unreachable: Vec::new(),
        },
    };
    for task in &watched.tasks {
        adding.task(task);
    }
    adding.finish()
}

struct Adding<'w> {
    watched: &'w Watched,
    /// The different hours of tasks.
    hours: Vec<Hours>,
    hosts: Vec<Sum>,
    segments: Vec<Sum>,
    cost: Cost,
}

impl Adding<'_> {
    fn task(&mut self, task: &Task) {
        let booked = (task.load_millis + overhead_millis(task.quiet)) as f64 / 1000.0;
        let period = task.schedule.period_millis as f64 / 1000.0;
        let slip = task.schedule.slip_millis;
        let within = slip.map_or(period, |slip| period.min(slip as f64 / 1000.0));
        if booked > within {
            self.cost.refused.push(Refusal::Period {
                task: task.name.clone(),
                booked,
                within,
            });
        }
        let hours = Hours::of(&task.schedule.hours);
        let each = Each {
            a_day: hours.periods_a_day(period, booked),
            booked,
            load: task.load_millis as f64 / 1000.0,
            rate: task.rate,
            hours: self.place_of(hours),
        };
        let tests = each.a_day * task.pairs.len() as f64;
        let streams = test_options::plan(&task.options).map_or(1, |plan| plan.streams);
        let record = RECORD_BYTES + STREAM_BYTES * (f64::from(streams) - 1.0).max(0.0);
        let cost = &mut self.cost;
        cost.pairs += task.pairs.len();
        cost.tests_a_day += tests;
        let share = RECORD_LEAST + (1.0 - RECORD_LEAST) * each.load / RECORD_SECONDS;
        cost.raw_a_day += tests * record * share;
        cost.rows_a_day += tests * ROW_BYTES;
        cost.cycle_seconds = cost.cycle_seconds.max(period);
        cost.tasks.push(TaskCost {
            name: task.name.clone(),
            pairs: task.pairs.len(),
            tests_a_day: tests,
            booked_seconds: booked,
            period_seconds: period,
        });
        for pair in &task.pairs {
            self.pair(task, pair, &each);
        }
    }

    fn place_of(&mut self, hours: Hours) -> usize {
        let known = self.hours.iter().position(|known| *known == hours);
        known.unwrap_or_else(|| {
            self.hours.push(hours);
            self.hours.len() - 1
        })
    }

    fn pair(&mut self, task: &Task, pair: &Pair, each: &Each) {
        let hosts = &self.watched.hosts;
        let (Some(from), Some(to)) = (hosts.get(pair.from), hosts.get(pair.to)) else {
            return;
        };
        let why = if !from.listens && !to.listens {
            Some("neither host can be connected to")
        } else if !from.reach.commands() && !to.reach.commands() {
            Some("neither host can run an agent")
        } else {
            None
        };
        if let Some(why) = why {
            self.unreachable(task, (&from.name, &to.name), why);
        }
        let link = from.link.into_iter().chain(to.link).min();
        let rate = each.rate.into_iter().chain(link).min();
        if rate.is_none() {
            self.cost.assumed_a_day += each.a_day;
        }
        let bytes = rate.unwrap_or(ASSUMED_RATE).0 as f64 / 8.0 * each.load * each.a_day;
        self.cost.bytes_a_day += bytes;
        let light = match (each.rate, link) {
            (Some(rate), Some(link)) => rate.0 as f64 <= link.0 as f64 * LIGHT,
            _ => false,
        };
        let held = if light { 0.0 } else { each.booked * each.a_day };
        for (place, way) in [(pair.from, 0), (pair.to, 1)] {
            self.hosts[place].add(each, bytes, held, way);
        }
        let (inside, outside) = (&from.segments, &to.segments);
        let crossed = inside.iter().filter(|place| !outside.contains(place));
        let crossed = crossed.chain(outside.iter().filter(|place| !inside.contains(place)));
        for place in crossed {
            let capacity = self.watched.segments.get(*place);
            let capacity = capacity.and_then(|segment| segment.capacity);
            let share = match (rate, capacity) {
                (Some(rate), Some(capacity)) => (rate.0 as f64 / capacity.0 as f64).min(1.0),
                _ => 1.0,
            };
            if let Some(sum) = self.segments.get_mut(*place) {
                sum.add(each, bytes, held * share, 0);
            }
        }
    }

    fn unreachable(&mut self, task: &Task, pair: (&PlainText, &PlainText), why: &'static str) {
        let known = self.cost.unreachable.iter_mut();
        let mut known = known.filter(|known| known.task == task.name && known.why == why);
        if let Some(known) = known.next() {
            known.pairs += 1;
            return;
        }
        self.cost.unreachable.push(Unreachable {
            task: task.name.clone(),
            pairs: 1,
            first: (pair.0.clone(), pair.1.clone()),
            why,
        });
    }

    fn finish(mut self) -> Cost {
        for task in &self.watched.tasks {
            let mut unreachable = self.cost.unreachable.iter();
            let whole =
                unreachable.find(|one| one.task == task.name && one.pairs == task.pairs.len());
            if let Some(one) = whole {
                self.cost.refused.push(Refusal::Nothing {
                    task: task.name.clone(),
                    why: one.why,
                });
            }
        }
        let watched = self.watched;
        let within: Vec<Vec<bool>> = self
            .hours
            .iter()
            .map(|window| self.hours.iter().map(|own| own.is_within(window)).collect())
            .collect();
        let hours = Windows {
            hours: &self.hours,
            within: &within,
        };
        for (host, sum) in watched.hosts.iter().zip(&self.hosts) {
            let ways = host.duplex == Duplex::Independent;
            let resource = || format!("host {}", host.name);
            self.cost.hosts.push(sum.load(&host.name, ways));
            let refused = sum.refused(&hours, ways, host.budget, &resource);
            self.cost.refused.extend(refused);
        }
        for (segment, sum) in watched.segments.iter().zip(&self.segments) {
            let resource = || format!("segment {}", segment.name);
            self.cost.segments.push(sum.load(&segment.name, false));
            let refused = sum.refused(&hours, false, segment.budget, &resource);
            self.cost.refused.extend(refused);
        }
        self.cost
    }
}

/// The different hours of tasks, and for each of them which others lie within it.
struct Windows<'h> {
    hours: &'h [Hours],
    within: &'h [Vec<bool>],
}

impl Sum {
    fn add(&mut self, each: &Each, bytes: f64, held: f64, way: usize) {
        self.tests += each.a_day;
        self.bytes += bytes;
        self.load += each.load * each.a_day;
        self.held[way] += held;
        self.by_hours.entry(each.hours).or_default()[way] += held;
    }

    fn load(&self, name: &PlainText, ways: bool) -> Load {
        Load {
            name: name.clone(),
            tests_a_day: self.tests,
            busy: together(self.held, ways) / DAY_SECONDS,
            bytes_a_day: self.bytes,
            load_seconds: self.load,
        }
    }

    fn refused(
        &self,
        windows: &Windows<'_>,
        ways: bool,
        budget: Budget,
        resource: &dyn Fn() -> String,
    ) -> Vec<Refusal> {
        let mut refused = Vec::new();
        // Tests whose hours lie within those of others need time of the same hours.
        for place in self.by_hours.keys() {
            let window = &windows.hours[*place];
            let inside = self.by_hours.iter();
            let inside = inside.filter(|(other, _)| windows.within[*place][**other]);
            let needed = inside.fold([0.0, 0.0], |sum, (_, held)| {
                [sum[0] + held[0], sum[1] + held[1]]
            });
            let (needed, available) = (together(needed, ways), window.seconds());
            if needed > available {
                refused.push(Refusal::Busy {
                    resource: resource(),
                    needed,
                    available,
                    in_hours: available < DAY_SECONDS,
                });
            }
        }
        // The shortest hours say most.
        let available = |refusal: &Refusal| match refusal {
            Refusal::Busy { available, .. } => *available,
            _ => DAY_SECONDS,
        };
        refused.sort_by(|a, b| available(a).total_cmp(&available(b)));
        refused.truncate(1);
        if let Some(most) = budget.bytes_a_day.map(|bytes| bytes.0 as f64)
            && self.bytes > most
        {
            refused.push(Refusal::Bytes {
                resource: resource(),
                needed: self.bytes,
                budget: most,
            });
        }
        if let Some(most) = budget.seconds_a_day
            && self.load > most
        {
            refused.push(Refusal::Seconds {
                resource: resource(),
                needed: self.load,
                budget: most,
            });
        }
        refused
    }
}

/// How long something is held: the ways one after the other, or at the same time.
const fn together(held: [f64; 2], ways: bool) -> f64 {
    if ways {
        held[0].max(held[1])
    } else {
        held[0] + held[1]
    }
}
