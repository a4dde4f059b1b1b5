//! From the text of `watch.toml` to hosts, segments and times of maintenance.

use std::collections::{BTreeMap, HashMap};

use linerate_document::{Document, DocumentError, Table, Value};
use linerate_model::nearest;
use linerate_model::plain_text::PlainText;
use linerate_model::plan::DEFAULT_PORT;
use linerate_model::units::{BitRate, Bytes};

use super::channels::channel;
use super::keys::{BUDGET, HOST, MAINTENANCE, SECTIONS, SEGMENT, TOP};
use super::times;
use crate::watched::{Budget, Duplex, Maintenance, Reach, Segment, Watched, WatchedHost};

pub(super) type Result<T> = std::result::Result<T, DocumentError>;

/// The names of the hosts of each group that a file defines.
pub type Groups = BTreeMap<String, Vec<String>>;
/// Expands a set of host names, given the groups of the file, or says why it cannot.
pub type NodeSets<'a> = dyn Fn(&str, &Groups) -> std::result::Result<Vec<String>, String> + 'a;

/// A plan has at most so many hosts.
pub const MOST_HOSTS: usize = 10_000;
/// The set of all hosts of the file.
const ALL_HOSTS: &str = "@*";

/// Reads `watch.toml`; `file` is its name in messages. `nodes` expands sets of host names.
///
/// # Errors
/// What is wrong, with its line, its key and what is expected.
pub fn parse(file: &str, text: &str, nodes: &NodeSets<'_>) -> Result<Watched> {
    let document = Document::parse(file, text, SECTIONS)?;
    let top = document.top(&TOP)?;
    let segments = top.read_all("segment", segment)?;
    let mut reading = Reading {
        document: &document,
        nodes,
        groups: Groups::new(),
        places: HashMap::new(),
        watched: Watched {
            segments,
            ..Watched::default()
        },
    };
    reading.check_segments(&top)?;
    for host in top.needed("host")?.list()? {
        reading.hosts(&host)?;
    }
    top.read_all("task", |task| {
        let task = reading.task(task)?;
        reading.watched.tasks.push(task);
        Ok(())
    })?;
    top.read_all("maintenance", |window| {
        let window = reading.maintenance(window)?;
        reading.watched.maintenance.push(window);
        Ok(())
    })?;
    top.read_all("channel", |value| {
        let channel = channel(value, &reading.watched.channels)?;
        reading.watched.channels.push(channel);
        Ok(())
    })?;
    Ok(reading.watched)
}

/// A file while it is read.
pub(super) struct Reading<'d> {
    pub(super) document: &'d Document<'d>,
    nodes: &'d NodeSets<'d>,
    groups: Groups,
    /// Places of hosts by name.
    places: HashMap<PlainText, usize>,
    pub(super) watched: Watched,
}

impl Reading<'_> {
    fn check_segments(&self, top: &Table<'_>) -> Result<()> {
        let names = self.watched.segments.iter().map(|segment| &segment.name);
        let names: Vec<_> = names.collect();
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                let value = top.needed("segment")?.elements();
                let value = &value[at];
                return Err(value.wrong(format!("another segment has the name '{name}'")));
            }
        }
        Ok(())
    }

    fn hosts(&mut self, value: &Value<'_>) -> Result<()> {
        let table = value.table(&HOST)?;
        let names_value = table.needed("names")?;
        let names = (self.nodes)(names_value.text()?, &self.groups)
            .map_err(|why| names_value.wrong(why))?;
        names_value.refuse(names.is_empty(), "the set is empty")?;
        let many = self.watched.hosts.len() + names.len() > MOST_HOSTS;
        names_value.refuse(many, format!("a plan has at most {MOST_HOSTS} hosts"))?;
        let address = table.read("address", Value::words)?;
        if let Some(value) = table.value("address") {
            value.refuse(names.len() > 1, "several hosts cannot have one address")?;
            value.refuse(address.as_deref() == Some(""), "it is empty")?;
        }
        let groups = table.read_all("groups", Value::words)?;
        let host = WatchedHost {
            name: String::new().into(),
            address: String::new().into(),
            reach: table.or("reach", Reach::Agent, reach)?,
            listens: table.or("listens", true, Value::boolean)?,
            ports: table.read("ports", ports)?,
            link: table.read("link", rate)?,
            duplex: table.or("duplex", Duplex::Exclusive, |value| {
                let words = [
                    ("exclusive", Duplex::Exclusive),
                    ("independent", Duplex::Independent),
                ];
                value.word(&words)
            })?,
            segments: table.read_all("segments", |value| self.segment(value))?,
            groups: groups.iter().map(Into::into).collect(),
            budget: budget(&table)?,
        };
        for name in names {
            let again = self
                .places
                .insert(name.as_str().into(), self.watched.hosts.len());
            names_value.refuse(
                again.is_some(),
                format!("another host has the name '{name}'"),
            )?;
            for group in &groups {
                let members = self.groups.entry(group.clone()).or_default();
                members.push(name.clone());
            }
            self.watched.hosts.push(WatchedHost {
                address: address.clone().unwrap_or_else(|| name.clone()).into(),
                name: name.into(),
                ..host.clone()
            });
        }
        Ok(())
    }

    fn segment(&self, value: &Value<'_>) -> Result<usize> {
        let name = PlainText::from(value.words()?);
        let names: Vec<&str> = self
            .watched
            .segments
            .iter()
            .map(|segment| segment.name.as_str())
            .collect();
        let place = names.iter().position(|known| name == *known);
        place.ok_or_else(|| {
            value.wrong(if names.is_empty() {
                "the file has no [[segment]]".to_owned()
            } else {
                format!("there is no such segment: {}", nearest::hint(&name, &names))
            })
        })
    }

    /// The places of the hosts of a set.
    pub(super) fn set(&self, value: &Value<'_>) -> Result<Vec<usize>> {
        let text = value.text()?;
        if text.trim() == ALL_HOSTS {
            return Ok((0..self.watched.hosts.len()).collect());
        }
        let names = (self.nodes)(text, &self.groups).map_err(|why| value.wrong(why))?;
        value.refuse(names.is_empty(), "the set is empty")?;
        let place = |name: &String| {
            self.places
                .get(&PlainText::from(name))
                .copied()
                .ok_or_else(|| {
                    let known = self.places.keys().map(PlainText::as_str);
                    let meant = nearest::nearest(name, known);
                    let meant =
                        meant.map_or(String::new(), |known| format!("; did you mean '{known}'?"));
                    value.wrong(format!("no [[host]] has the name '{name}'{meant}"))
                })
        };
        names.iter().map(place).collect()
    }

    fn maintenance(&self, value: &Value<'_>) -> Result<Maintenance> {
        let table = value.table(&MAINTENANCE)?;
        let window = Maintenance {
            hosts: table.or("hosts", Vec::new(), |value| self.set(value))?,
            from_unix_s: moment(table.needed("from")?)?,
            until_unix_s: moment(table.needed("until")?)?,
            why: table.or("why", String::new(), Value::words)?.into(),
        };
        let ends_first = window.until_unix_s <= window.from_unix_s;
        table
            .needed("until")?
            .refuse(ends_first, "it ends before it begins")?;
        Ok(window)
    }
}

fn segment(value: &Value<'_>) -> Result<Segment> {
    let table = value.table(&SEGMENT)?;
    Ok(Segment {
        name: name(&table)?,
        capacity: table.read("capacity", rate)?,
        budget: budget(&table)?,
    })
}

/// The name of a segment or a task.
pub(super) fn name(table: &Table<'_>) -> Result<PlainText> {
    let value = table.needed("name")?;
    let name = value.words()?;
    value.refuse(name.is_empty(), "it is empty")?;
    Ok(name.into())
}

/// `5300`, `5300-5309`.
fn ports(value: &Value<'_>) -> Result<(u16, u16)> {
    let text = value.words()?;
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    let port = |text: &str| text.trim().parse().ok().filter(|port: &u16| *port > 0);
    let ports = port(first).zip(port(last));
    let ports = ports.filter(|(first, last)| first <= last);
    ports.ok_or_else(|| value.wrong("neither a port from 1 to 65535 nor a range of them"))
}

fn rate(value: &Value<'_>) -> Result<BitRate> {
    let rate = value.amount(|text| text.parse::<BitRate>().map_err(|error| error.to_string()))?;
    value.refuse(rate == BitRate(0), "a rate of 0 carries nothing")?;
    Ok(rate)
}

fn budget(table: &Table<'_>) -> Result<Budget> {
    let table = table.table("budget", &BUDGET)?;
    Ok(Budget {
        bytes_a_day: table.read("bytes", |value| {
            let read = |text: &str| Bytes::of_traffic(text).map_err(|error| error.to_string());
            let bytes = value.amount(read)?;
            value.refuse(bytes == Bytes(0), "a budget of 0 lets nothing be tested")?;
            Ok(bytes)
        })?,
        seconds_a_day: table.read("seconds", |value| {
            let seconds = value.number()?;
            let fine = seconds > 0.0 && seconds <= 86_400.0;
            value.refuse(!fine, "not a number above 0 and at most 86400")?;
            Ok(seconds)
        })?,
    })
}

fn reach(value: &Value<'_>) -> Result<Reach> {
    let text = value.text()?;
    let (word, port) = match text.split_once(':') {
        Some((word, port)) => (word, Some(port)),
        None => (text, None),
    };
    let words = ["agent", "ssh", "linerate", "iperf3"];
    let number = port.map_or(Ok(DEFAULT_PORT), |port| {
        let number = port.parse::<u16>().ok().filter(|port| *port > 0);
        number.ok_or_else(|| value.wrong("the port is not a number from 1 to 65535"))
    })?;
    match (word, port) {
        ("agent", None) => Ok(Reach::Agent),
        ("ssh", None) => Ok(Reach::Ssh),
        ("linerate", _) => Ok(Reach::Linerate(number)),
        ("iperf3", _) => Ok(Reach::Iperf3(number)),
        ("agent" | "ssh", Some(_)) => {
            Err(value.wrong("no port belongs here: the hub chooses a free one"))
        }
        _ => Err(value.wrong(format!("unknown word; {}", nearest::hint(word, &words)))),
    }
}

/// A moment, as a text or as TOML's own date and time.
fn moment(value: &Value<'_>) -> Result<u64> {
    let text = value.text().unwrap_or_else(|_| value.raw());
    times::unix_seconds(text).map_err(|why| value.wrong(why))
}
