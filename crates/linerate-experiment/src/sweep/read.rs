//! From the text of a sweep to its cells.
//!
//! A level is read by whoever reads such a value elsewhere: as the line of a profile, or as the line of a scenario. That
//! line is put at its own number into an otherwise empty text, so that what is wrong with it is named where the
//! user wrote it.

use std::collections::BTreeMap;

use linerate_document::{Document, DocumentError, Key, Section, Table, Value, words};
use linerate_lab::scenario::{Scenario, keys};
use linerate_model::nearest;
use linerate_tune::profile::{self, Wish};

use super::{Chart, Factor, MOST_CELLS, MOST_REPETITIONS, Setup, Sweep, SweepError};
use crate::in_lab;

type Result<T> = std::result::Result<T, DocumentError>;

const TOP: Section = Section::of(
    "a sweep",
    &[&[
        Key::of("name", "text"),
        Key::of("about", "text"),
        Key::of("peer", "name or address of a host"),
        Key::of("lab", "[lab]"),
        Key::of("test", "arguments of `linerate test`, without the host"),
        Key::of("profile", "a profile's file"),
        Key::of("repetitions", "1 to 100"),
        Key::of("seed", "0 to 9223372036854775807"),
        Key::of("least", "percentage such as \"2%\""),
        Key::of("factor", "[[factor]]"),
        Key::of("chart", "[chart]"),
    ]],
);
const FACTOR: Section = Section::of(
    "[[factor]]",
    &[&[
        Key::of("name", "text"),
        Key::of("vary", VARIES),
        Key::of("levels", "list of the values that it takes"),
        Key::of("labels", "list of as many texts as there are levels"),
    ]],
);
const CHART: Section = Section::of(
    "[chart]",
    &[&[
        Key::of("rows", "name of a factor"),
        Key::of("columns", "name of a factor"),
        Key::of("groups", "name of a factor"),
        Key::of("bars", "name of a factor"),
    ]],
);
/// Of a path all but what is written as tables of their own, for which there is no place here.
const LAB: Section = Section::of(
    "[lab]",
    &[keys::MODES, keys::HOSTS, keys::SETTINGS, keys::WHOLE_PATH],
);
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
    document: &'a Document<'a>,
    file: &'a str,
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
    ) -> std::result::Result<Self, SweepError> {
        let document = Document::parse(file, text, &[&TOP, &FACTOR, &CHART, &LAB])?;
        let reading = Reading {
            document: &document,
            file,
            load,
        };
        reading.sweep(&document.top(&TOP)?)
    }
}

impl Reading<'_> {
    fn sweep(&self, top: &Table<'_>) -> std::result::Result<Sweep, SweepError> {
        let name = top.needed("name")?.text()?.to_owned();
        let about = top.or("about", "", Value::text)?.to_owned();
        let peer = top.read("peer", Value::text)?.map(str::to_owned);
        let in_lab = peer.is_none();
        let base = self.base(top, in_lab)?;
        let (factors, parts) = self.factors(top, in_lab)?;
        let seed = top.or("seed", 1, |value| value.whole(0..=u64::MAX >> 1))?;
        let repetitions = top.or("repetitions", REPETITIONS, |value| {
            value.whole(1..=MOST_REPETITIONS)
        })?;
        let chart = top.or("chart", by_default(&factors), |value| {
            chart(value, &factors)
        })?;
        let mut cells = Vec::new();
        for levels in combinations(&parts.iter().map(Vec::len).collect::<Vec<_>>()) {
            let of_level = levels.iter().zip(&parts);
            let of_level = of_level.map(|(level, parts)| &parts[*level]);
            let all: Vec<Part> = base.iter().chain(of_level).cloned().collect();
            cells.push(self.setup(levels, &all, in_lab, seed)?);
        }
        Ok(Sweep {
            name,
            about,
            peer,
            repetitions,
            seed,
            least: top.or("least", LEAST, |value| value.amount(share))?,
            chart,
            factors,
            cells,
        })
    }

    /// What all cells have.
    fn base(&self, top: &Table<'_>, in_lab: bool) -> Result<Vec<Part>> {
        if in_lab != top.value("lab").is_some() {
            return Err(self.document.contradiction(
                "it needs either peer = \"HOST\" (real hosts, `linerate serve` there) or [lab] (a path on this machine)",
            ));
        }
        let mut parts = top.or("lab", Vec::new(), lab)?;
        parts.extend(top.read("test", arguments)?);
        parts.extend(top.read("profile", |value| self.profile(value))?);
        Ok(parts)
    }

    /// The factors, and what each level of each adds to a cell.
    fn factors(&self, top: &Table<'_>, in_lab: bool) -> Result<(Vec<Factor>, Vec<Vec<Part>>)> {
        let mut factors: Vec<Factor> = Vec::new();
        let mut parts = Vec::new();
        top.read_all("factor", |value| {
            let (factor, levels) = self.factor(value, in_lab)?;
            let again = factors.iter().any(|known| known.name == factor.name);
            let reason = format!("another factor has the name '{}'", factor.name);
            value.refuse(again, reason)?;
            factors.push(factor);
            parts.push(levels);
            Ok(())
        })?;
        if factors.is_empty() {
            return Err(self.document.contradiction(
                "it has no [[factor]]; one is name = \"MTU\", vary = \"interface.eth0.mtu\", levels = [1500, 9000]",
            ));
        }
        let mut levels = parts.iter().map(Vec::len);
        let count = levels.try_fold(1_usize, usize::checked_mul);
        if count.is_none_or(|count| count > MOST_CELLS) {
            let reason = format!("the factors make more than {MOST_CELLS} cells");
            return Err(self.document.contradiction(reason));
        }
        Ok((factors, parts))
    }

    fn factor(&self, value: &Value<'_>, in_lab: bool) -> Result<(Factor, Vec<Part>)> {
        let table = value.table(&FACTOR)?;
        let vary = table.needed("vary")?;
        let levels = table.needed("levels")?;
        let mut labels = Vec::new();
        let mut parts = Vec::new();
        for level in levels.list()? {
            parts.push(self.level(vary, &level, in_lab)?);
            labels.push(label(vary.text()?, &level));
        }
        levels.refuse(parts.is_empty(), "there is none")?;
        if let Some(value) = table.value("labels") {
            labels = table.read_all("labels", |label| label.text().map(str::to_owned))?;
            let reason = format!("there are {} for {} levels", labels.len(), parts.len());
            value.refuse(labels.len() != parts.len(), reason)?;
        }
        for (at, label) in labels.iter().enumerate() {
            let reason = format!("two levels are called '{label}'; give them labels");
            levels.refuse(labels[..at].contains(label), reason)?;
        }
        let factor = Factor {
            name: table.needed("name")?.text()?.to_owned(),
            vary: vary.text()?.to_owned(),
            labels,
        };
        Ok((factor, parts))
    }

    fn level(&self, vary: &Value<'_>, level: &Value<'_>, in_lab: bool) -> Result<Part> {
        let varied = vary.text()?;
        let (line, raw) = (level.line(), level.raw());
        if let Some(option) = varied.strip_prefix("test.") {
            vary.refuse(!option.starts_with('-'), "an option begins with -: test.-P")?;
            let value = level.amount(|text| Ok(text.to_owned()))?;
            return Ok(Part::Words(line, vec![option.to_owned(), value]));
        }
        if varied == "test" {
            return arguments(level);
        }
        if varied == "profile" {
            return self.profile(level);
        }
        if let Some(key) = varied.strip_prefix("path.") {
            let reason = "a real path cannot be set; only a [lab] has one that can";
            vary.refuse(!in_lab, reason)?;
            let head = key.split('.').next().unwrap_or(key);
            let known = keys::SETTINGS.iter().chain(keys::WHOLE_PATH);
            let known: Vec<&str> = known.map(|key| key.name).collect();
            let hint = nearest::hint(head, &known);
            let reason = format!("unknown key '{head}' of a path; {hint}");
            vary.refuse(!known.contains(&head), reason)?;
            let text = format!("{varied} = {raw}");
            return Ok(Part::Scenario(line, varied.to_owned(), text));
        }
        let text = match varied.split_once('.') {
            Some(("sysctl", key)) => format!("sysctl.\"{key}\" = {raw}"),
            Some(("interface", rest)) if rest.contains('.') => {
                let (interface, key) = rest.rsplit_once('.').unwrap_or((rest, ""));
                format!("interface.\"{interface}\".{key} = {raw}")
            }
            Some(("cpu", key)) => format!("cpu.{key} = {raw}"),
            _ => {
                let known = ["interface", "sysctl", "cpu", "profile", "test", "path"];
                let head = varied.split('.').next().unwrap_or(varied);
                let hint = nearest::hint(head, &known);
                return Err(vary.wrong(if known.contains(&head) {
                    "its second part is missing".to_owned()
                } else {
                    format!("unknown word '{head}'; {hint}")
                }));
            }
        };
        let text = format!("{}{text}\n", "\n".repeat(line - 1));
        profile::parse(self.file, &text).map(Part::Wishes)
    }

    fn profile(&self, value: &Value<'_>) -> Result<Part> {
        let name = value.text()?;
        let text = (self.load)(name).map_err(|why| value.wrong(why))?;
        profile::read(name, &text).map(Part::Wishes)
    }

    /// A cell of all its parts, of which a later one counts more.
    fn setup(
        &self,
        levels: Vec<usize>,
        parts: &[Part],
        lab: bool,
        seed: u64,
    ) -> std::result::Result<Setup, SweepError> {
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
            let scenario = Scenario::parse(self.file, &at_their_lines(lines.into_values()))?;
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
}

/// The path of all cells, as lines of a scenario.
fn lab(value: &Value<'_>) -> Result<Vec<Part>> {
    let line = |value: &Value<'_>| {
        let (name, raw) = (value.name(), value.raw());
        let reason = format!("write it as one value: {name} = {{ … }}");
        value.refuse(value.is_table() && !raw.starts_with('{'), reason)?;
        let of_path = keys::PATH.key(name).map_or("", |_| "path.");
        let key = format!("{of_path}{name}");
        let text = format!("{key} = {raw}");
        Ok(Part::Scenario(value.line(), key, text))
    };
    value.table(&LAB)?.values().map(line).collect()
}

fn arguments(value: &Value<'_>) -> Result<Part> {
    let words = value.text()?.split_whitespace().map(str::to_owned);
    Ok(Part::Words(value.line(), words.collect()))
}

fn chart(value: &Value<'_>, factors: &[Factor]) -> Result<Chart> {
    let table = value.table(&CHART)?;
    let mut taken: Vec<String> = Vec::new();
    let mut role = |key| {
        table.read(key, |value| {
            let name = value.text()?.to_owned();
            let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
            let reason = format!("there is no such factor, only {}", names.join(", "));
            value.refuse(!names.contains(&name.as_str()), reason)?;
            value.refuse(taken.contains(&name), "the factor has a place already")?;
            taken.push(name.clone());
            Ok(name)
        })
    };
    Ok(Chart {
        rows: role("rows")?,
        columns: role("columns")?,
        groups: role("groups")?,
        bars: role("bars")?,
    })
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
        .ok_or_else(|| "not a percentage such as 2%, above 0 and below 100".to_owned())
}

/// How a level is called where it has no label.
fn label(vary: &str, level: &Value<'_>) -> String {
    match level.text() {
        Ok(text) if vary == "profile" => {
            let stem = std::path::Path::new(text).file_stem();
            stem.map_or_else(
                || text.to_owned(),
                |stem| stem.to_string_lossy().into_owned(),
            )
        }
        Ok("") => "none".to_owned(),
        Ok(text) => text.to_owned(),
        Err(_) => words(level.raw()),
    }
}

/// All combinations, the last factor varying fastest.
fn combinations(levels: &[usize]) -> Vec<Vec<usize>> {
    levels.iter().fold(vec![Vec::new()], |all, count| {
        let longer = |head: &Vec<usize>, level| [head.as_slice(), &[level]].concat();
        let of = |head| (0..*count).map(move |level| longer(head, level));
        all.iter().flat_map(of).collect()
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
                "m.toml:15: unknown key 'vray' in [[factor]]: did you mean 'vary'?",
            ),
            (
                "rate = \"400M\"",
                "rat = \"400M\"",
                "m.toml:5: unknown key 'rat' in [lab]: did you mean 'rate'?",
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
                "m.toml:20: mtu = 90000: not a whole number from 68 to 65535",
            ),
            (
                "interface.eth0.mtu",
                "interface.eth0.mut",
                "m.toml:20: unknown key 'mut' in an interface: did you mean 'mtu'?",
            ),
            (
                "interface.eth0.mtu",
                "interfaces.eth0.mtu",
                "did you mean 'interface'?",
            ),
            (
                "path.rtt",
                "path.rrt",
                "m.toml:15: vary = \"path.rrt\": unknown key 'rrt' of a path; did you mean 'rtt'?",
            ),
            (
                "old.toml",
                "older.toml",
                "m.toml:11: levels = \"older.toml\": no such file",
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
            ("[lab]", "[[lab", "invalid TOML"),
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
