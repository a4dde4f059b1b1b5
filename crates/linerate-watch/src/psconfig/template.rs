//! A template of pSConfig as it is written: what of it is read, and the names of what is not.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::marker::PhantomData;

use linerate_model::plain_text::PlainText;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::TemplateError;

/// What a template's tasks need of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Template {
    pub(super) addresses: Ordered<Address>,
    pub(super) groups: Ordered<Group>,
    pub(super) tests: Ordered<Test>,
    pub(super) tasks: Ordered<Task>,
    #[serde(default)]
    pub(super) hosts: Ordered<Host>,
    #[serde(default)]
    pub(super) schedules: Ordered<Schedule>,
    #[serde(default)]
    pub(super) address_classes: Ordered<AddressClass>,
}

/// An address, a label of one, or what it is for a certain other end.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::struct_field_names, reason = "the keys' names")]
pub(super) struct Address {
    pub(super) address: Option<String>,
    pub(super) host: Option<String>,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, Address>,
    #[serde(default)]
    pub(super) remote_addresses: BTreeMap<String, Address>,
    pub(super) lead_bind_address: Option<String>,
    pub(super) pscheduler_address: Option<String>,
    #[serde(default)]
    pub(super) tags: Vec<String>,
    #[serde(default)]
    pub(super) disabled: bool,
    #[serde(default)]
    pub(super) no_agent: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Host {
    #[serde(default)]
    pub(super) tags: Vec<String>,
    #[serde(default)]
    pub(super) disabled: bool,
    #[serde(default)]
    pub(super) no_agent: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct AddressClass {
    pub(super) data_source: DataSource,
    pub(super) match_filter: Option<Filter>,
    pub(super) exclude_filter: Option<Filter>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DataSource {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::struct_field_names, reason = "the keys' names")]
pub(super) struct Filter {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) tag: Option<String>,
    #[serde(default)]
    pub(super) no_agent: bool,
    pub(super) class: Option<String>,
    pub(super) ip_version: Option<u8>,
    pub(super) netmask: Option<String>,
    pub(super) filter: Option<Box<Filter>>,
    #[serde(default)]
    pub(super) filters: Vec<Filter>,
    pub(super) jq: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum GroupKind {
    Mesh,
    Disjoint,
    List,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ExcludesSelf {
    #[default]
    Host,
    Address,
    Disabled,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Group {
    #[serde(rename = "type")]
    pub(super) kind: GroupKind,
    #[serde(default)]
    pub(super) addresses: Vec<Selector>,
    #[serde(default)]
    pub(super) a_addresses: Vec<Selector>,
    #[serde(default)]
    pub(super) b_addresses: Vec<Selector>,
    #[serde(default)]
    pub(super) unidirectional: bool,
    pub(super) default_address_label: Option<String>,
    #[serde(default)]
    pub(super) excludes_self: ExcludesSelf,
    #[serde(default)]
    pub(super) excludes: Vec<Exclude>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Exclude {
    pub(super) local_address: Selector,
    pub(super) target_addresses: Vec<Selector>,
}

/// An address by its name, or all those of a class. Two are the same where all their keys are.
#[derive(Debug, PartialEq, Eq, Hash, Deserialize)]
pub(super) struct Selector {
    pub(super) name: Option<String>,
    pub(super) label: Option<String>,
    pub(super) class: Option<String>,
    pub(super) disabled: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Test {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) spec: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Schedule {
    pub(super) repeat: Option<String>,
    pub(super) slip: Option<String>,
    #[serde(default)]
    pub(super) sliprand: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Task {
    pub(super) group: String,
    pub(super) test: String,
    pub(super) schedule: Option<String>,
    #[serde(default)]
    pub(super) scheduled_by: usize,
    #[serde(default)]
    pub(super) disabled: bool,
}

/// An object whose keys are names, in the order of the file. Of a name that comes twice the later value counts, as in
/// other readers of JSON.
#[derive(Debug)]
pub(super) struct Ordered<T> {
    entries: Vec<(String, T)>,
    places: HashMap<String, usize>,
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            places: HashMap::new(),
        }
    }
}

impl<T> Ordered<T> {
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    pub(super) fn named(&self, name: &str) -> Option<&T> {
        self.at(self.place(name)?).map(|(_, value)| value)
    }

    pub(super) fn at(&self, place: usize) -> Option<(&str, &T)> {
        let (name, value) = self.entries.get(place)?;
        Some((name, value))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OrderedVisitor(PhantomData))
    }
}

struct OrderedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OrderedVisitor<T> {
    type Value = Ordered<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut ordered = Ordered::default();
        while let Some((name, value)) = map.next_entry::<String, T>()? {
            if let Some(place) = ordered.place(&name) {
                ordered.entries[place].1 = value;
            } else {
                ordered.places.insert(name.clone(), ordered.entries.len());
                ordered.entries.push((name, value));
            }
        }
        Ok(ordered)
    }
}

/// Reads a template, and names the keys that are not read.
pub(super) fn parse(file: &str, text: &str) -> Result<(Template, Vec<PlainText>), TemplateError> {
    let wrong = |error: &serde_json::Error| TemplateError::Syntax {
        file: file.to_owned(),
        line: error.line(),
        reason: reason(error),
    };
    let template = serde_json::from_str(text).map_err(|error| wrong(&error))?;
    let whole: Value = serde_json::from_str(text).map_err(|error| wrong(&error))?;
    Ok((template, not_read(&whole)))
}

/// What serde says, without the place: that is said before it.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

const TOP: &[&str] = &[
    "addresses",
    "groups",
    "tests",
    "tasks",
    "hosts",
    "schedules",
    "address-classes",
];
/// The keys of each kind of entry that are read.
const READ: &[(&str, &[&str])] = &[
    (
        "addresses",
        &[
            "address",
            "host",
            "labels",
            "remote-addresses",
            "lead-bind-address",
            "pscheduler-address",
            "tags",
            "disabled",
            "no-agent",
        ],
    ),
    ("hosts", &["tags", "disabled", "no-agent"]),
    (
        "groups",
        &[
            "type",
            "addresses",
            "a-addresses",
            "b-addresses",
            "unidirectional",
            "default-address-label",
            "excludes-self",
            "excludes",
        ],
    ),
    ("schedules", &["repeat", "slip", "sliprand"]),
    (
        "tasks",
        &["group", "test", "schedule", "scheduled-by", "disabled"],
    ),
    ("tests", &["type", "spec"]),
    (
        "address-classes",
        &["data-source", "match-filter", "exclude-filter"],
    ),
];
/// What pSConfig says may hold anything, for other programs.
const META: &str = "_meta";

/// A line for each key that stands somewhere and is not read.
fn not_read(whole: &Value) -> Vec<PlainText> {
    let mut lines: Vec<PlainText> = Vec::new();
    let Some(top) = whole.as_object() else {
        return lines;
    };
    for (key, value) in top {
        let empty = value.as_object().is_some_and(Map::is_empty)
            || value.as_array().is_some_and(Vec::is_empty);
        if !TOP.contains(&key.as_str()) && key != META && !empty {
            lines.push(key.into());
        }
    }
    for (kind, known) in READ {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let entries = top.get(*kind).and_then(Value::as_object);
        for entry in entries.into_iter().flat_map(Map::values) {
            for key in entry.as_object().into_iter().flat_map(Map::keys) {
                if !known.contains(&key.as_str()) && key != META {
                    *counts.entry(key).or_default() += 1;
                }
            }
        }
        let line = |(key, count)| format!("{kind}: the key '{key}', in {count} entries").into();
        lines.extend(counts.into_iter().map(line));
    }
    lines
}
