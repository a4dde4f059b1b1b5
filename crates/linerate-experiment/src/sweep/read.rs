//! From the text of a sweep to its cells.
//!
//! A level is read by whoever reads such a value elsewhere: as the line of a profile, or as the line of a scenario. That
//! line is put at its own number into an otherwise empty text, so that what is wrong with it is named where the
//! user wrote it.

use std::collections::BTreeMap;

use linerate_lab::scenario::{Scenario, keys};
use linerate_model::nearest::nearest;
use linerate_tune::document::{Document, Key, Value};
use linerate_tune::profile::{self, Wish};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Chart, Factor, MOST_CELLS, MOST_REPETITIONS, Setup, Sweep, SweepError};
use crate::in_lab;

type Result<T> = std::result::Result<T, SweepError>;

const TOP: [&str; 11] = [
    "name",
    "about",
    "peer",
    "lab",
    "test",
    "profile",
    "repetitions",
    "seed",
    "least",
    "factor",
    "chart",
];
const FACTOR: [&str; 4] = ["name", "vary", "levels", "labels"];
const CHART: [&str; 4] = ["rows", "columns", "groups", "bars"];
/// Keys of a scenario's top that a lab may have here.
const LAB_TOP: [&str; 5] = ["mode", "engine", "family", "sender", "receiver"];
/// Tables of a path that are written as tables of their own, for which there is no place here.
const NOT_HERE: [&str; 2] = ["change", "cross"];
const REPETITIONS: u32 = 5;
const LEAST: f64 = 0.02;
const VARIES: &str = "interface.NAME.mtu (or another key of a profile's interface), sysctl.net.…, cpu.governor, profile, test (words such as \"-R\"), test.-P (an option's value), path.rtt (or another key of a lab's path)";

/// What a level adds to a cell.
#[derive(Debug, Clone)]
enum Part {
    Wishes(Vec<Wish>),
    Words(usize, Vec<String>),
    /// A line of a scenario: its number, the key with dots, the line.
    Scenario(usize, String, String),
}

struct Reading<'a> {
    document: Document<'a>,
    load: &'a dyn Fn(&str) -> std::result::Result<String, String>,
}

impl Sweep {
    /// Reads a sweep. `file` is its name in messages; `load` gives the text of a profile that it names, or says why
    /// it cannot be read.
    ///
    /// # Errors
    /// What is wrong, with its line and for unknown keys with the nearest one.
    pub fn parse(
        file: &str,
        text: &str,
        load: &dyn Fn(&str) -> std::result::Result<String, String>,
    ) -> Result<Self> {
        let document = Document { file, text };
        Reading { document, load }.sweep(document.top()?.get_ref())
    }
}

impl Reading<'_> {
    fn sweep(&self, top: &DeTable<'_>) -> Result<Sweep> {
        self.document.known("a sweep", top, &TOP)?;
        let text = |key| {
            find(top, key)
                .map(|value| self.text_of(key, value))
                .transpose()
        };
        let name = text("name")?.ok_or_else(|| self.whole("it needs a name = \"…\""))?;
        let peer = text("peer")?;
        let lab = find(top, "lab");
        if peer.is_some() == lab.is_some() {
            return Err(self.whole(
                "it needs either peer = \"HOST\" (real hosts, `linerate serve` there) or [lab] (a path on this machine)",
            ));
        }
        let base = self.base(top, lab)?;
        let mut factors = Vec::new();
        let mut parts = Vec::new();
        for value in list(find(top, "factor")) {
            let (factor, levels) = self.factor(value, lab.is_some())?;
            if factors
                .iter()
                .any(|known: &Factor| known.name == factor.name)
            {
                return Err(self.wrong("name", value, "another factor is called so"));
            }
            factors.push(factor);
            parts.push(levels);
        }
        if factors.is_empty() {
            return Err(self.whole(
                "it has no [[factor]]; one is name = \"MTU\", vary = \"interface.eth0.mtu\", levels = [1500, 9000]",
            ));
        }
        let count = parts
            .iter()
            .try_fold(1_usize, |count, levels| count.checked_mul(levels.len()));
        if count.is_none_or(|count| count > MOST_CELLS) {
            return Err(self.whole(format!("the factors make more than {MOST_CELLS} cells")));
        }
        let seed = self.number(top, "seed", 0..=u64::MAX >> 1)?.unwrap_or(1);
        let repetitions = self.number(top, "repetitions", 1..=u64::from(MOST_REPETITIONS))?;
        let chart = self.chart(find(top, "chart"), &factors)?;
        let mut cells = Vec::new();
        for levels in combinations(&parts.iter().map(Vec::len).collect::<Vec<_>>()) {
            let of_level = levels
                .iter()
                .zip(&parts)
                .map(|(level, parts)| &parts[*level]);
            let all: Vec<Part> = base.iter().chain(of_level.flatten()).cloned().collect();
            cells.push(self.setup(levels, &all, lab.is_some(), seed)?);
        }
        Ok(Sweep {
            name,
            about: text("about")?.unwrap_or_default(),
            peer,
            repetitions: repetitions
                .and_then(|number| u32::try_from(number).ok())
                .unwrap_or(REPETITIONS),
            seed,
            least: find(top, "least")
                .map(|value| self.share("least", value))
                .transpose()?
                .unwrap_or(LEAST),
            factors,
            chart,
            cells,
        })
    }

    /// What all cells have.
    fn base(&self, top: &DeTable<'_>, lab: Option<&Value<'_>>) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        if let Some(lab) = lab {
            parts.extend(self.lab(lab)?);
        }
        if let Some(test) = find(top, "test") {
            parts.push(self.words("test", test)?);
        }
        if let Some(profile) = find(top, "profile") {
            parts.push(self.profile(profile)?);
        }
        Ok(parts)
    }

    fn lab(&self, lab: &Value<'_>) -> Result<Vec<Part>> {
        let DeValue::Table(table) = lab.get_ref() else {
            return Err(self.wrong("lab", lab, "it is no table"));
        };
        let of_path: Vec<&str> = keys::PATH
            .names()
            .filter(|name| !NOT_HERE.contains(name))
            .collect();
        let all: Vec<&str> = LAB_TOP.iter().chain(&of_path).copied().collect();
        self.document.known("[lab]", table, &all)?;
        let line = |(key, value): (&Key<'_>, &Value<'_>)| {
            let name = key.get_ref().as_ref();
            let place = if LAB_TOP.contains(&name) { "" } else { "path." };
            let raw = self.document.raw(value);
            let plain = match value.get_ref() {
                DeValue::Table(_) => raw.starts_with('{'),
                _ => true,
            };
            if !plain {
                return Err(self.wrong(
                    name,
                    value,
                    format!("write it as one value: {name} = {{ … }}"),
                ));
            }
            let key = format!("{place}{name}");
            let text = format!("{key} = {raw}");
            Ok(Part::Scenario(self.document.line(&value.span()), key, text))
        };
        table.iter().map(line).collect()
    }

    fn factor(&self, value: &Value<'_>, lab: bool) -> Result<(Factor, Vec<Vec<Part>>)> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong("factor", value, "it is no table; write [[factor]]"));
        };
        self.document.known("[[factor]]", table, &FACTOR)?;
        let needed = |key: &str| {
            find(table, key).ok_or_else(|| {
                self.wrong(
                    "factor",
                    value,
                    format!("it has no {key}; it needs name, vary and levels"),
                )
            })
        };
        let name = self.text_of("name", needed("name")?)?;
        let vary_value = needed("vary")?;
        let vary = self.text_of("vary", vary_value)?;
        let levels_value = needed("levels")?;
        let DeValue::Array(levels) = levels_value.get_ref() else {
            return Err(self.wrong("levels", levels_value, "it is no list"));
        };
        if levels.is_empty() {
            return Err(self.wrong("levels", levels_value, "there is none"));
        }
        let mut labels = Vec::new();
        let mut parts = Vec::new();
        for level in levels {
            let part = self.level(&vary, vary_value, level, lab)?;
            labels.push(label(&vary, level, self.document.raw(level)));
            parts.push(vec![part]);
        }
        if let Some(value) = find(table, "labels") {
            labels = self.labels(value, levels.len())?;
        }
        for (at, label) in labels.iter().enumerate() {
            if labels[..at].contains(label) {
                let reason = format!("two levels are called '{label}'; give them labels");
                return Err(self.wrong("levels", levels_value, reason));
            }
        }
        Ok((Factor { name, vary, labels }, parts))
    }

    fn labels(&self, value: &Value<'_>, levels: usize) -> Result<Vec<String>> {
        let labels = list(Some(value))
            .map(|label| self.text_of("labels", label))
            .collect::<Result<Vec<_>>>()?;
        if labels.len() == levels {
            Ok(labels)
        } else {
            let reason = format!("there are {} for {levels} levels", labels.len());
            Err(self.wrong("labels", value, reason))
        }
    }

    fn level(&self, vary: &str, at: &Value<'_>, level: &Value<'_>, lab: bool) -> Result<Part> {
        let line = self.document.line(&level.span());
        let raw = self.document.raw(level);
        if let Some(option) = vary.strip_prefix("test.") {
            if !option.starts_with('-') {
                return Err(self.wrong("vary", at, "an option begins with -: test.-P"));
            }
            let value = match level.get_ref() {
                DeValue::String(text) => text.to_string(),
                DeValue::Integer(_) | DeValue::Float(_) => raw.to_owned(),
                _ => return Err(self.wrong("levels", level, "it is neither a text nor a number")),
            };
            return Ok(Part::Words(line, vec![option.to_owned(), value]));
        }
        if vary == "test" {
            return self.words("levels", level);
        }
        if vary == "profile" {
            return self.profile(level);
        }
        if let Some(key) = vary.strip_prefix("path.") {
            if !lab {
                let reason = "a real path cannot be set; only a [lab] has one that can";
                return Err(self.wrong("vary", at, reason));
            }
            let head = key.split('.').next().unwrap_or(key);
            if keys::PATH.names().all(|name| name != head) || NOT_HERE.contains(&head) {
                let hint = nearest(head, keys::PATH.names())
                    .map_or_else(String::new, |meant| format!("; did you mean path.{meant}?"));
                let reason = format!("a path has no key {key}{hint}");
                return Err(self.wrong("vary", at, reason));
            }
            return Ok(Part::Scenario(
                line,
                vary.to_owned(),
                format!("{vary} = {raw}"),
            ));
        }
        let text = match vary.split_once('.') {
            Some(("sysctl", key)) => format!("sysctl.\"{key}\" = {raw}"),
            Some(("interface", rest)) if rest.contains('.') => {
                let (interface, key) = rest.rsplit_once('.').unwrap_or((rest, ""));
                format!("interface.\"{interface}\".{key} = {raw}")
            }
            Some(("cpu", key)) => format!("cpu.{key} = {raw}"),
            _ => {
                let known = ["interface", "sysctl", "cpu", "profile", "test", "path"];
                let head = vary.split('.').next().unwrap_or(vary);
                let hint = nearest(head, known)
                    .filter(|meant| *meant != head)
                    .map_or_else(String::new, |meant| format!("; did you mean '{meant}'?"));
                return Err(self.wrong("vary", at, format!("it is none of {VARIES}{hint}")));
            }
        };
        let text = format!("{}{text}\n", "\n".repeat(line - 1));
        Ok(Part::Wishes(profile::parse(self.document.file, &text)?))
    }

    fn profile(&self, value: &Value<'_>) -> Result<Part> {
        let name = self.text_of("profile", value)?;
        let text = (self.load)(&name).map_err(|why| self.wrong("profile", value, why))?;
        Ok(Part::Wishes(profile::read(&name, &text)?))
    }

    fn words(&self, key: &str, value: &Value<'_>) -> Result<Part> {
        let text = self.text_of(key, value)?;
        let words = text.split_whitespace().map(str::to_owned).collect();
        Ok(Part::Words(self.document.line(&value.span()), words))
    }

    /// A cell of all its parts, of which a later one counts more.
    fn setup(&self, levels: Vec<usize>, parts: &[Part], lab: bool, seed: u64) -> Result<Setup> {
        let mut wishes: Vec<Wish> = Vec::new();
        let mut words = Vec::new();
        let mut lines: BTreeMap<String, (usize, String)> = BTreeMap::new();
        let mut words_at = 1;
        for part in parts {
            match part {
                Part::Wishes(more) => {
                    for wish in more {
                        wishes.retain(|known| known.object != wish.object);
                        wishes.push(wish.clone());
                    }
                }
                Part::Words(line, more) => {
                    words.extend(more.iter().cloned());
                    words_at = *line;
                }
                Part::Scenario(line, key, text) => {
                    lines.insert(key.clone(), (*line, text.clone()));
                }
            }
        }
        let scenario = if lab {
            let args: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            let test = format!("test.args = [{}]", args.join(", "));
            lines.insert("test".to_owned(), (words_at, test));
            lines.insert("name".to_owned(), (0, "name = \"sweep\"".to_owned()));
            lines.insert("seed".to_owned(), (0, format!("seed = {seed}")));
            let scenario =
                Scenario::parse(self.document.file, &at_their_lines(lines.into_values()))?;
            Some(in_lab::with_wishes(&scenario, &wishes)?)
        } else {
            None
        };
        Ok(Setup {
            levels,
            without_meaning: in_lab::without_meaning(&wishes).filter(|_| lab),
            wishes,
            words,
            impossible: scenario.as_ref().and_then(too_big_for_the_path),
            scenario,
        })
    }

    fn chart(&self, value: Option<&Value<'_>>, factors: &[Factor]) -> Result<Chart> {
        let Some(value) = value else {
            return Ok(by_default(factors));
        };
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong("chart", value, "it is no table"));
        };
        self.document.known("[chart]", table, &CHART)?;
        let mut taken: Vec<String> = Vec::new();
        let mut role = |key: &'static str| -> Result<Option<String>> {
            let Some(value) = find(table, key) else {
                return Ok(None);
            };
            let name = self.text_of(key, value)?;
            let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
            if !names.contains(&name.as_str()) {
                let reason = format!("there is no such factor, only {}", names.join(", "));
                return Err(self.wrong(key, value, reason));
            }
            if taken.contains(&name) {
                return Err(self.wrong(key, value, "the factor has a place already"));
            }
            taken.push(name.clone());
            Ok(Some(name))
        };
        Ok(Chart {
            rows: role("rows")?,
            columns: role("columns")?,
            groups: role("groups")?,
            bars: role("bars")?,
        })
    }

    fn number(
        &self,
        table: &DeTable<'_>,
        key: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>> {
        let number = find(table, key).map(|value| self.document.whole(key, value, range));
        Ok(number.transpose()?)
    }

    fn share(&self, key: &str, value: &Value<'_>) -> Result<f64> {
        let text = self.text_of(key, value)?;
        share(&text).map_err(|reason| self.wrong(key, value, reason))
    }

    fn text_of(&self, key: &str, value: &Value<'_>) -> Result<String> {
        Ok(self.document.text_of(key, value)?.to_owned())
    }

    fn wrong(&self, key: &str, value: &Value<'_>, reason: impl Into<String>) -> SweepError {
        self.document.wrong(key, value, reason).into()
    }

    fn whole(&self, reason: impl Into<String>) -> SweepError {
        SweepError::Whole {
            file: self.document.file.to_owned(),
            reason: reason.into(),
        }
    }
}

/// A share such as `2%`, above 0 and below 100 %.
///
/// # Errors
/// What would do.
pub fn share(text: &str) -> std::result::Result<f64, String> {
    let percent = text
        .trim()
        .strip_suffix('%')
        .and_then(|text| text.trim().parse::<f64>().ok());
    percent
        .filter(|percent| *percent > 0.0 && *percent < 100.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "it is no percentage such as 2%, above 0 and below 100".to_owned())
}

fn find<'t, 'v>(table: &'t DeTable<'v>, key: &str) -> Option<&'t Value<'v>> {
    let mut all = table.iter();
    all.find(|(name, _)| name.get_ref() == key)
        .map(|(_, value)| value)
}

fn list<'t, 'v>(value: Option<&'t Value<'v>>) -> impl Iterator<Item = &'t Value<'v>> {
    let (many, one): (&[Value<'v>], _) = match value.map(Spanned::get_ref) {
        Some(DeValue::Array(list)) => (list.as_ref(), None),
        Some(_) => (&[], value),
        None => (&[], None),
    };
    many.iter().chain(one)
}

/// How a level is called where it has no label.
fn label(vary: &str, level: &Value<'_>, raw: &str) -> String {
    match level.get_ref() {
        DeValue::String(text) if vary == "profile" => {
            let stem = std::path::Path::new(text.as_ref()).file_stem();
            stem.map_or_else(
                || text.to_string(),
                |stem| stem.to_string_lossy().into_owned(),
            )
        }
        DeValue::String(text) if text.is_empty() => "none".to_owned(),
        DeValue::String(text) => text.to_string(),
        _ => raw.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// All combinations, the last factor varying fastest.
fn combinations(levels: &[usize]) -> Vec<Vec<usize>> {
    levels.iter().fold(vec![Vec::new()], |all, count| {
        all.iter()
            .flat_map(|head| {
                (0..*count).map(move |level| {
                    let mut cell = head.clone();
                    cell.push(level);
                    cell
                })
            })
            .collect()
    })
}

/// A text that has each line at its number; where two have the same, the later one moves down. Those of number 0 have
/// none of their own and stand at the end.
fn at_their_lines(lines: impl Iterator<Item = (usize, String)>) -> String {
    let mut lines: Vec<(usize, String)> = lines.collect();
    lines.sort_by_key(|(line, _)| (*line == 0, *line));
    let mut text = String::new();
    let mut at = 1;
    for (line, content) in lines {
        text.push_str(&"\n".repeat(line.saturating_sub(at)));
        text.push_str(&content);
        text.push('\n');
        at = at.max(line) + 1 + content.matches('\n').count();
    }
    text
}

/// The last factor is the bars, the one before it the groups, then columns and rows.
fn by_default(factors: &[Factor]) -> Chart {
    let mut names = factors.iter().rev().map(|factor| factor.name.clone());
    Chart {
        bars: names.next(),
        groups: names.next(),
        columns: names.next(),
        rows: names.next(),
    }
}

/// A path that passes smaller packets than the hosts' MTU.
fn too_big_for_the_path(scenario: &Scenario) -> Option<String> {
    let mtu = scenario.sender.mtu.min(scenario.receiver.mtu);
    let bound = scenario.test.ways().iter().filter_map(|way| {
        let settings = scenario.path.direction(*way).settings;
        settings.max_packet.map(|packet| packet.bytes)
    });
    let bound = bound.min()?;
    (bound < mtu).then(|| {
        format!("MTU {mtu}: the path passes packets of at most {bound} bytes, so what would be measured is another MTU")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_lab::scenario::EngineWish;
    use linerate_model::tuning::Object;
    use linerate_model::units::Nanos;

    const MATRIX: &str = r#"
name = "matrix"
test = "-t 3"
[lab]
rate = "400M"
queue = "1MB"
sender = { congestion = "reno" }
[[factor]]
name = "settings"
vary = "profile"
levels = ["old.toml", "new.conf"]
labels = ["before", "after"]
[[factor]]
name = "RTT"
vary = "path.rtt"
levels = ["6ms", "24ms"]
[[factor]]
name = "MTU"
vary = "interface.eth0.mtu"
levels = [1500, 9000]
[[factor]]
name = "streams"
vary = "test.-P"
levels = [1, 8]
"#;

    fn load(name: &str) -> std::result::Result<String, String> {
        match name {
            "old.toml" => {
                Ok("[sysctl]\n\"net.ipv4.tcp_wmem\" = \"4096 16384 174763\"\n".to_owned())
            }
            "new.conf" => Ok("net.ipv4.tcp_wmem = 4096 16384 33554432\n".to_owned()),
            _ => Err("no such file".to_owned()),
        }
    }

    #[test]
    fn cells_are_all_combinations_with_what_each_is_given() {
        let sweep = Sweep::parse("m.toml", MATRIX, &load).unwrap();
        assert_eq!((sweep.cells.len(), sweep.runs()), (16, 80));
        let last = &sweep.cells[15];
        assert_eq!(
            sweep.words_of(15),
            "settings after, RTT 24ms, MTU 9000, streams 8"
        );
        let scenario = last.scenario.as_ref().unwrap();
        assert_eq!(scenario.path.rtt(), Nanos::from_millis(24));
        assert_eq!((scenario.sender.mtu, scenario.receiver.mtu), (9000, 9000));
        assert_eq!(scenario.sender.congestion, "reno");
        assert_eq!(
            scenario.sender.sysctl["net.ipv4.tcp_wmem"],
            "4096 16384 33554432"
        );
        assert_eq!(scenario.test.args, ["-t", "3", "-P", "8"]);
        assert_eq!(
            sweep.chart,
            Chart {
                rows: Some("settings".to_owned()),
                columns: Some("RTT".to_owned()),
                groups: Some("MTU".to_owned()),
                bars: Some("streams".to_owned()),
            }
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (from, to, said) in [
            (
                "vary = \"path.rtt\"",
                "vray = \"path.rtt\"",
                "m.toml:15: [[factor]] has no key 'vray': did you mean 'vary'?",
            ),
            (
                "rate = \"400M\"",
                "rat = \"400M\"",
                "m.toml:5: [lab] has no key 'rat': did you mean 'rate'?",
            ),
            (
                "rate = \"400M\"",
                "rate = \"4hundred\"",
                "m.toml:5: rate = ",
            ),
            ("\"24ms\"]", "\"24 parsecs\"]", "m.toml:16: "),
            (
                "[1500, 9000]",
                "[1500, 90000]",
                "m.toml:20: mtu = 90000: it is no whole number from 68 to 65535",
            ),
            (
                "interface.eth0.mtu",
                "interface.eth0.mut",
                "m.toml:20: an interface has no key 'mut': did you mean 'mtu'?",
            ),
            (
                "interface.eth0.mtu",
                "interfaces.eth0.mtu",
                "did you mean 'interface'?",
            ),
            (
                "path.rtt",
                "path.rrt",
                "m.toml:15: vary = \"path.rrt\": a path has no key rrt; did you mean path.rtt?",
            ),
            (
                "old.toml",
                "older.toml",
                "m.toml:11: profile = \"older.toml\": no such file",
            ),
            ("-t 3", "-t 3 --json", "m.toml:"),
            (
                "levels = [1, 8]",
                "levels = [1, 1]",
                "two levels are called '1'",
            ),
            ("[lab]", "peer = \"192.0.2.1\"\n[lab]", "either peer"),
            (
                "labels = [\"before\", \"after\"]",
                "labels = [\"before\"]",
                "there are 1 for 2 levels",
            ),
            (
                "\nname = \"matrix\"",
                "\nrepetitions = 0\nname = \"matrix\"",
                "m.toml:2: repetitions = 0",
            ),
            ("[lab]", "[[lab", "this is not TOML"),
        ] {
            assert!(MATRIX.contains(from), "{from}");
            let text = MATRIX.replace(from, to);
            let error = Sweep::parse("m.toml", &text, &load)
                .unwrap_err()
                .to_string();
            assert!(error.contains(said), "{error}\nis not\n{said}");
        }
    }

    #[test]
    fn a_lab_is_made_by_the_engine_that_is_asked_for() {
        let engine = |text: &str| {
            let sweep = Sweep::parse("m.toml", text, &load).unwrap();
            sweep.cells[7].scenario.as_ref().unwrap().engine
        };
        assert_eq!(engine(MATRIX), EngineWish::Auto);
        let netem = MATRIX.replace("[lab]", "[lab]\nengine = \"netem\"");
        assert_eq!(engine(&netem), EngineWish::Netem);
        let tun = netem.replace("netem", "tun");
        let error = Sweep::parse("m.toml", &tun, &load).unwrap_err().to_string();
        assert!(error.starts_with("m.toml:5: engine = \"tun\""), "{error}");
    }

    #[test]
    fn on_hosts_a_path_cannot_be_set_and_settings_can() {
        let text = "name = \"x\"\npeer = \"192.0.2.1\"\n[[factor]]\nname = \"q\"\nvary = \"interface.ens3.txqueuelen\"\nlevels = [1000, 10000]\n";
        let sweep = Sweep::parse("x.toml", text, &load).unwrap();
        let wish = &sweep.cells[1].wishes[0];
        assert_eq!(wish.value, "10000");
        assert!(matches!(&wish.object, Object::Interface { interface, .. } if interface == "ens3"));
        assert_eq!(sweep.cells[1].without_meaning, None);
        let text = text.replace("interface.ens3.txqueuelen", "path.rtt");
        let error = Sweep::parse("x.toml", &text, &load)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("x.toml:5: ") && error.contains("a real path"),
            "{error}"
        );
    }

    #[test]
    fn a_packet_that_the_path_does_not_pass_is_impossible_and_not_slow() {
        let text = MATRIX.replace(
            "queue = \"1MB\"",
            "queue = \"1MB\"\nmax_packet = { bytes = 1500 }",
        );
        let sweep = Sweep::parse("m.toml", &text, &load).unwrap();
        assert_eq!(sweep.cells[0].impossible, None);
        assert!(
            sweep.cells[15]
                .impossible
                .as_ref()
                .unwrap()
                .contains("at most 1500")
        );
    }
}
