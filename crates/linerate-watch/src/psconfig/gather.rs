//! From the tests of a template to a plan.

use std::collections::{HashMap, HashSet};

use linerate_model::plain_text::PlainText;
use linerate_model::plan::Plan;
use serde_json::Value;

use super::groups::Chosen;
use super::template::{Schedule as Asked, Task as AskedTask, Template, Test};
use super::{Due, Reader, TemplateError, spec};
use crate::plan::test_options;
use crate::watched::{Budget, Duplex, Pair, Reach, Sampling, Schedule, Task, Watched, WatchedHost};

/// How often a task without a schedule is tested: pSConfig tests it once.
const DAY_MILLIS: u64 = 86_400_000;
/// Where iperf3 listens.
const IPERF3_PORT: u16 = linerate_model::plan::DEFAULT_PORT;

/// The hosts of a plan while it is gathered.
struct Hosts<'r> {
    template: &'r Template,
    all: Vec<WatchedHost>,
    /// Places by name in lower case.
    places: HashMap<String, usize>,
    without_agent: &'r Reach,
}

/// The pairs of a task while they are gathered.
#[derive(Default)]
struct Pairs {
    list: Vec<Pair>,
    seen: HashSet<Pair>,
    doubled: usize,
    with_itself: usize,
    without_agent: usize,
    wrong: Option<String>,
}

/// The whole plan of a template.
pub(super) fn watched(
    mut reader: Reader<'_>,
    without_agent: &Reach,
) -> Result<Watched, TemplateError> {
    let mut hosts = Hosts {
        template: reader.template,
        all: Vec::new(),
        places: HashMap::new(),
        without_agent,
    };
    let mut tasks = Vec::new();
    for (name, asked, test) in reader.throughput_tasks() {
        let Some((options, plan)) = options(&mut reader, name, asked, test) else {
            continue;
        };
        // Names that differ in control characters alone are one name where they are shown.
        let plain = PlainText::from(name);
        if tasks.iter().any(|task: &Task| task.name == plain) {
            reader.say(format!("tasks: '{name}': another task has this name"));
            continue;
        }
        let mut pairs = Pairs::default();
        for due in reader.due(name, asked)? {
            pairs.add(&due, test, &mut hosts);
        }
        pairs.say(&mut reader, name);
        tasks.push(Task {
            name: plain,
            options,
            load_millis: test_options::load_millis(&plan).unwrap_or_default(),
            rate: test_options::rate(&plan),
            pairs: pairs.list,
            schedule: schedule(&mut reader, name, asked),
            expected: None,
            quiet: None,
        });
    }
    let mut ignored = std::mem::take(&mut reader.said);
    ignored.extend(reader.classes.said.iter().map(Into::into));
    let mut seen = HashSet::new();
    ignored.retain(|line| seen.insert(line.to_string()));
    Ok(Watched {
        hosts: hosts.all,
        tasks,
        ignored,
        ..Watched::default()
    })
}

/// The options of a task's test; `None` where linerate cannot run it.
fn options(
    reader: &mut Reader<'_>,
    name: &str,
    asked: &AskedTask,
    test: &Test,
) -> Option<(Vec<String>, Plan)> {
    let read = spec::options(&test.spec).and_then(|options| {
        let plan = test_options::plan(&options.words).map_err(|error| error.to_string())?;
        Ok((options, plan))
    });
    match read {
        Ok((options, plan)) => {
            for (key, why) in options.ignored {
                reader.say(format!("tests: '{key}' of '{}': {why}", asked.test));
            }
            Some((options.words, plan))
        }
        Err(why) => {
            reader.say(format!(
                "tasks: '{name}': its test '{}' cannot be run: {why}",
                asked.test
            ));
            None
        }
    }
}

impl Pairs {
    fn add(&mut self, due: &Due<'_>, test: &Test, hosts: &mut Hosts<'_>) {
        match ends(due, test, hosts) {
            Ok(pair) if pair.from == pair.to => self.with_itself += 1,
            Ok(pair) if self.seen.insert(pair.clone()) => {
                self.without_agent += usize::from(!due.has_agent);
                self.list.push(pair);
            }
            Ok(_) => self.doubled += 1,
            Err(why) => {
                self.wrong.get_or_insert(why);
            }
        }
    }

    /// Says what of the task is not in the plan.
    fn say(&self, reader: &mut Reader<'_>, name: &str) {
        if let Some(why) = &self.wrong {
            reader.say(format!(
                "tasks: '{name}' has tests that cannot be read: {why}"
            ));
        }
        let mut counted = |count: usize, what: &str| {
            if count > 0 {
                reader.say(format!("tasks: '{name}': {count} {what}"));
            }
        };
        counted(self.with_itself, "tests of a host with itself");
        counted(self.doubled, "tests that it has already");
        counted(
            self.without_agent,
            "pairs of which neither end has an agent: pSConfig schedules them nowhere; they are in this plan",
        );
    }
}

/// The pair that a test is of: data goes from its first host to its second.
fn ends(due: &Due<'_>, test: &Test, hosts: &mut Hosts<'_>) -> Result<Pair, String> {
    let variables = due.variables();
    let value = |key: &str| test.spec.get(key).map(|value| variables.expand(value));
    let text = |key: &str| match value(key).transpose()? {
        None => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
        Some(other) => Err(format!("'{key}' is {other}")),
    };
    let flag = |key: &str| match value(key).transpose()? {
        None | Some(Value::Bool(false)) => Ok(false),
        Some(Value::Bool(true)) => Ok(true),
        Some(other) => Err(format!("'{key}' is {other}")),
    };
    let scheduler = due.ends.get(due.scheduled_by);
    let source = match text("source")? {
        Some(source) => source,
        // pScheduler's own host, which is the one that schedules the test.
        None => scheduler
            .and_then(|end| end.own.address.clone())
            .ok_or("it has no 'source'")?,
    };
    let dest = text("dest")?.ok_or("it has no 'dest'")?;
    let server = if flag("single-ended")? {
        let port = value("single-ended-port").transpose()?;
        let port = port.and_then(|port| u16::try_from(port.as_u64()?).ok());
        Some(Reach::Iperf3(port.unwrap_or(IPERF3_PORT)))
    } else {
        None
    };
    let backwards = flag("reverse")?;
    let (source, source_address) = hosts.end(due, &source, None);
    let (dest, dest_address) = hosts.end(due, &dest, server);
    Ok(if backwards {
        Pair {
            from: dest,
            to: source,
            from_address: dest_address,
            to_address: source_address,
        }
    } else {
        Pair {
            from: source,
            to: dest,
            from_address: source_address,
            to_address: dest_address,
        }
    })
}

impl Hosts<'_> {
    /// The tags of an address and of its host.
    fn tags(&self, end: &Chosen<'_>) -> Vec<PlainText> {
        let host = end.parent.host.as_deref();
        let host = host.and_then(|host| self.template.hosts.named(host));
        let tags = end.parent.tags.iter();
        let mut tags: Vec<PlainText> = tags
            .chain(host.into_iter().flat_map(|host| &host.tags))
            .map(Into::into)
            .collect();
        tags.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        tags.dedup();
        tags
    }

    /// The host that has an address in a test, and the address where the host's own is another.
    fn end(
        &mut self,
        due: &Due<'_>,
        address: &str,
        server: Option<Reach>,
    ) -> (usize, Option<PlainText>) {
        let is_it = |end: &&Chosen<'_>| end.own.address.as_deref() == Some(address);
        let end = due.ends.iter().find(is_it);
        let name = end.map_or(address, |end| {
            end.parent.host.as_deref().unwrap_or(end.name)
        });
        let foreign = end.is_none_or(|end| end.no_agent);
        let groups = end.map_or_else(Vec::new, |end| self.tags(end));
        let place = *self
            .places
            .entry(PlainText::from(name).to_lowercase())
            .or_insert_with(|| {
                self.all.push(WatchedHost {
                    ports: None,
                    name: name.into(),
                    address: address.into(),
                    reach: if foreign {
                        self.without_agent.clone()
                    } else {
                        Reach::Agent
                    },
                    listens: true,
                    link: None,
                    duplex: Duplex::default(),
                    segments: Vec::new(),
                    groups,
                    budget: Budget::default(),
                });
                self.all.len() - 1
            });
        let host = &mut self.all[place];
        match server {
            Some(server) => host.reach = server,
            None if !foreign => host.reach = Reach::Agent,
            None => {}
        }
        let other = host.address != *address;
        (place, other.then(|| address.into()))
    }
}

fn schedule(reader: &mut Reader<'_>, name: &str, asked: &AskedTask) -> Schedule {
    let template = reader.template;
    let found = asked.schedule.as_deref();
    let found = found.and_then(|name| template.schedules.named(name));
    let repeat = found.and_then(|schedule| schedule.repeat.as_deref());
    let period = repeat.and_then(spec::millis).filter(|millis| *millis > 0);
    if period.is_none() {
        let why = match (repeat, &asked.schedule) {
            (Some(repeat), _) => format!("its 'repeat' is '{repeat}'"),
            (None, Some(schedule)) if found.is_none() => {
                format!("its schedule '{schedule}' is not there")
            }
            _ => "it is not repeated".to_owned(),
        };
        reader.say(format!("tasks: '{name}' is tested once a day here: {why}"));
    }
    Schedule {
        period_millis: period.unwrap_or(DAY_MILLIS),
        slip_millis: found.and_then(slip),
        sampling: Sampling::Stratified,
        hours: Vec::new(),
    }
}

/// How late a test may end. With `sliprand` pScheduler draws a moment within the slip, which the sampling does here.
fn slip(schedule: &Asked) -> Option<u64> {
    let slip = schedule.slip.as_deref().and_then(spec::millis)?;
    (!schedule.sliprand && slip > 0).then_some(slip)
}
