//! A template of pSConfig (perfSONAR 5) with throughput tasks, read as a plan.
//!
//! Addresses are combined as pSConfig 5.2.4 does it: groups of the three kinds, `excludes`, `excludes-self`, labels,
//! remote addresses, address classes, `disabled`, `no-agent` with `flip`, and the variables of a test's specification.
//! Where that version fails or stops at the first pair (classes in a group, the filters `netmask` and `ip-version`),
//! its documentation and its predecessor in Perl decide.
//!
//! What it is not: it fetches no `includes`, runs no jq and resolves no names. What is not read is named in
//! [`Watched::ignored`].

mod classes;
mod gather;
mod groups;
mod spec;
mod template;
mod variables;

use linerate_model::plain_text::PlainText;
use serde_json::{Map, Value};

use crate::watched::{Reach, Watched};
use classes::Classes;
use groups::{Combination, Combiner};
use template::{Task, Template, Test};
use variables::Variables;

/// Combinations of addresses that are looked at before a template counts as too large.
const MOST_COMBINATIONS: usize = 4_000_000;

/// Why a template cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It is not JSON, or not a template.
    #[error("{file}:{line}: cannot read the pSConfig template: {reason}")]
    Syntax {
        /// The file, as the caller named it.
        file: String,
        /// From 1 on.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// Its groups combine too many addresses.
    #[error(
        "the pSConfig template combines more than 4,000,000 pairs of addresses: split its groups, or exclude pairs"
    )]
    TooLarge,
}

/// A test between two addresses, as an agent of pSConfig asks pScheduler for it.
#[derive(Debug, Clone, PartialEq)]
pub struct PsconfigTest {
    /// The address whose agent schedules it; absent = no end has an agent, and pSConfig schedules it nowhere.
    pub scheduled_by: Option<String>,
    /// The specification, its variables replaced.
    pub spec: Map<String, Value>,
}

/// Whether a text is JSON and therefore no `watch.toml`.
pub fn is_template(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Reads a template's throughput tasks. `without_agent` is how linerate reaches hosts that have `no-agent`; all others
/// have an agent of linerate.
///
/// # Errors
/// It is not a template, or too large.
pub fn read(file: &str, text: &str, without_agent: &Reach) -> Result<Watched, TemplateError> {
    let (template, not_read) = template::parse(file, text)?;
    let mut reader = Reader::new(&template);
    reader.said = not_read;
    gather::watched(reader, without_agent)
}

/// The tests of each throughput task, in the template's order; those that nobody schedules are among them.
///
/// # Errors
/// As of [`read`].
pub fn tests(file: &str, text: &str) -> Result<Vec<(String, Vec<PsconfigTest>)>, TemplateError> {
    let (template, _) = template::parse(file, text)?;
    let mut reader = Reader::new(&template);
    let mut all = Vec::new();
    for (name, task, test) in reader.throughput_tasks() {
        let mut tests = Vec::new();
        for due in reader.due(name, task)? {
            let variables = due.variables();
            let each = |(key, value): (&String, &Value)| {
                Some((key.clone(), variables.expand(value).ok()?))
            };
            tests.push(PsconfigTest {
                scheduled_by: due.scheduled_by_address().map(str::to_owned),
                spec: test.spec.iter().filter_map(each).collect(),
            });
        }
        all.push((name.to_owned(), tests));
    }
    Ok(all)
}

/// A combination that is to be tested.
struct Due<'t> {
    ends: Combination<'t>,
    /// The end that schedules it.
    scheduled_by: usize,
    /// Whether that end has an agent.
    has_agent: bool,
    /// Whether the end that should schedule it has none.
    flip: bool,
}

impl<'t> Due<'t> {
    const fn variables(&self) -> Variables<'_, 't> {
        Variables {
            ends: &self.ends,
            scheduled_by: self.scheduled_by,
            flip: self.flip,
        }
    }

    fn scheduled_by_address(&self) -> Option<&str> {
        let end = self.ends.get(self.scheduled_by);
        let address = end.and_then(|end| end.own.address.as_deref());
        address.filter(|_| self.has_agent)
    }
}

/// A template while it is read.
struct Reader<'t> {
    template: &'t Template,
    classes: Classes<'t>,
    looked_at: usize,
    /// What is not read.
    said: Vec<PlainText>,
}

impl<'t> Reader<'t> {
    fn new(template: &'t Template) -> Self {
        Self {
            template,
            classes: Classes::new(template),
            looked_at: 0,
            said: Vec::new(),
        }
    }

    fn say(&mut self, line: impl Into<PlainText>) {
        self.said.push(line.into());
    }

    /// The tasks that are not disabled and whose test is of throughput.
    fn throughput_tasks(&mut self) -> Vec<(&'t str, &'t Task, &'t Test)> {
        let template = self.template;
        let mut tasks = Vec::new();
        let mut others: Vec<(&str, usize)> = Vec::new();
        let mut disabled = 0_usize;
        for (name, task) in template.tasks.iter() {
            match template.tests.named(&task.test) {
                _ if task.disabled => disabled += 1,
                None => self.say(format!(
                    "tasks: '{name}' names the test '{}', which is not there",
                    task.test
                )),
                Some(test) if test.kind == "throughput" => tasks.push((name, task, test)),
                Some(test) => match others.iter_mut().find(|(kind, _)| *kind == test.kind) {
                    Some((_, count)) => *count += 1,
                    None => others.push((&test.kind, 1)),
                },
            }
        }
        if disabled > 0 {
            self.say(format!("tasks: {disabled} that are disabled"));
        }
        for (kind, count) in others {
            self.say(format!("tasks: {count} with tests of type '{kind}'"));
        }
        tasks
    }

    /// The tests of a task.
    fn due(&mut self, name: &str, task: &Task) -> Result<Vec<Due<'t>>, TemplateError> {
        let Some(group) = self.template.groups.named(&task.group) else {
            let group = &task.group;
            self.say(format!(
                "tasks: '{name}' names the group '{group}', which is not there"
            ));
            return Ok(Vec::new());
        };
        let combiner = Combiner::new(self.template, group, &mut self.classes, &mut self.looked_at);
        let (combinations, unknown) = combiner.combinations()?;
        for address in unknown {
            let line = format!(
                "groups: '{}' names the address '{address}', which is not there",
                task.group
            );
            if !self.said.iter().any(|said| *said == line) {
                self.say(line);
            }
        }
        let mut due = Vec::new();
        for ends in combinations {
            let Some(first) = ends.get(task.scheduled_by) else {
                let place = task.scheduled_by;
                self.say(format!(
                    "tasks: '{name}' has scheduled-by = {place}, and its tests have {} ends",
                    ends.len()
                ));
                break;
            };
            if ends.iter().any(|end| end.disabled) {
                continue;
            }
            let flip = first.no_agent;
            let agent = if flip {
                ends.iter().position(|end| !end.no_agent)
            } else {
                Some(task.scheduled_by)
            };
            due.push(Due {
                scheduled_by: agent.unwrap_or(task.scheduled_by),
                has_agent: agent.is_some(),
                flip,
                ends,
            });
        }
        Ok(due)
    }
}
