//! Which checks are made: those of `check.toml`, or those that need no file.

use std::fmt;
use std::net::IpAddr;

use linerate_document::{Document, DocumentError, Key, Section, Table, Value};
use linerate_model::check::CheckKind;
use linerate_model::plan::values::duration;
use linerate_model::units::{BitRate, Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Time for all of a run. Slurm ends a health check after 60 s (`run_script_health_check`, `src/slurmd/common/run_script.c`).
const DEADLINE: Nanos = Nanos::from_millis(40_000);
/// Time for one check.
const LIMIT: Nanos = Nanos::from_millis(8_000);
/// Writing, syncing and reading 4 KiB takes less where nobody waits for it.
const SLOW: Nanos = Nanos::from_millis(1_000);

/// How often a check has to fail before a node is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// So many failures …
    pub failures: u8,
    /// … of so many runs, at most [`crate::memory::KEPT`].
    pub of: u8,
}

impl fmt::Display for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.failures, self.of)
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// By which it is asked for, remembered and told: `mount /home`.
    pub name: String,
    /// It is ended after this time.
    pub limit: Nanos,
    /// When it drains the node; `None`: never.
    pub drain: Option<Drain>,
    /// Whether the node takes work again by itself once the check is well.
    pub resume: bool,
    /// What is looked at.
    pub what: What,
}

/// A share or an amount that is to be free.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Least {
    /// Of the size, 0 to 100.
    Percent(f64),
    /// An amount.
    Bytes(Bytes),
}

impl Least {
    /// So many bytes of this size.
    pub fn of(self, size: Bytes) -> Bytes {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a size, 0 to 100 %"
        )]
        match self {
            Self::Percent(percent) => Bytes((size.0 as f64 * percent / 100.0) as u64),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Room that a file system is to have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Room {
    /// Less is a warning.
    pub warn: Least,
    /// Less is a failure.
    pub fail: Least,
}

/// What a mount is to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MountCheck {
    /// Where it is mounted.
    pub path: String,
    /// Its kind, as `/proc/self/mountinfo` has it: `nfs4`, `xfs`; `None`: any.
    pub kind: Option<String>,
    /// Whether a file is written, synced, read back and removed.
    pub write: bool,
    /// Longer is a warning.
    pub slow: Nanos,
    /// Room that it is to have; `None`: not looked at.
    pub room: Option<Room>,
}

/// What a link is to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkCheck {
    /// The interface; `None`: each that is hardware, and up.
    pub name: Option<String>,
    /// Its speed, Mbit/s; `None`: any.
    pub mbps: Option<u32>,
    /// Members of a bond that are to be up; `None`: all that it has.
    pub members: Option<u64>,
    /// Bad packets of a million that are a warning.
    pub warn_per_million: f64,
}

/// What a path is to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathCheck {
    /// The peer: a name or an address.
    pub to: String,
    /// The longest round trip that is well; `None`: any.
    pub round_trip: Option<Nanos>,
    /// The size that is to pass, IP header included, bytes; `None`: not looked at.
    pub mtu: Option<u32>,
}

/// A command of the operator's own, with exit codes as the Nagios plugins have them: 0 ok, 1 warning, 2 critical, others
/// unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandCheck {
    /// The program and its arguments; no shell.
    pub run: Vec<String>,
    /// Whether one that does not end is a failure; else it is unknown.
    pub silence_fails: bool,
}

/// What a check looks at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "with", rename_all = "kebab-case")]
pub enum What {
    /// A mount.
    Mount(MountCheck),
    /// All local file systems.
    Space(Room),
    /// All local file systems.
    ReadOnly,
    /// Interfaces.
    Link(LinkCheck),
    /// A path to a peer.
    Path(PathCheck),
    /// `/proc/mdstat`.
    Md,
    /// `/proc/drbd`, or `drbdsetup status`.
    Drbd,
    /// `lvs`.
    Lvm,
    /// `smartctl`.
    Smart,
    /// The kernel's clock; the error that it may have.
    Clock {
        /// A larger one is a warning.
        error: Nanos,
    },
    /// Memory controllers and machine checks.
    Ecc,
    /// Settings that were to last.
    Audit,
    /// A command.
    Command(CommandCheck),
}

impl What {
    /// Its kind.
    pub const fn kind(&self) -> CheckKind {
        match self {
            Self::Mount(_) => CheckKind::Mount,
            Self::Space(_) => CheckKind::Space,
            Self::ReadOnly => CheckKind::ReadOnly,
            Self::Link(_) => CheckKind::Link,
            Self::Path(_) => CheckKind::Path,
            Self::Md => CheckKind::Md,
            Self::Drbd => CheckKind::Drbd,
            Self::Lvm => CheckKind::Lvm,
            Self::Smart => CheckKind::Smart,
            Self::Clock { .. } => CheckKind::Clock,
            Self::Ecc => CheckKind::Ecc,
            Self::Audit => CheckKind::Audit,
            Self::Command(_) => CheckKind::Command,
        }
    }
}

/// How Slurm is dealt with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlurmLaw {
    /// The most nodes of a partition that checks drain, per cent of its nodes; one is always allowed.
    pub cap_percent: f64,
    /// So many nodes with the same check within [`Self::shared_within`] have one cause that they share.
    pub shared: u64,
    /// See [`Self::shared`].
    pub shared_within: Nanos,
    /// So many runs in a row have to be well before a node is resumed.
    pub resume_after: u8,
    /// Whether nodes are resumed at all.
    pub resume: bool,
    /// Nodes wait a random time up to this before they drain themselves, so that each sees the others.
    pub wait: Nanos,
    /// `slurm.conf`, where Slurm's programs do not find it by themselves.
    pub conf: Option<String>,
    /// Where `sinfo` and `scontrol` are, where that is not on the path.
    pub programs: Option<String>,
    /// A program that gets the run as JSON on its standard input when a drain is held back.
    pub alert: Vec<String>,
}

impl Default for SlurmLaw {
    fn default() -> Self {
        Self {
            cap_percent: 10.0,
            shared: 3,
            shared_within: Nanos::from_millis(600_000),
            resume_after: 3,
            resume: true,
            wait: Nanos::from_millis(5_000),
            conf: None,
            programs: None,
            alert: Vec::new(),
        }
    }
}

/// All of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Time for all of a run.
    pub deadline: Nanos,
    /// The checks, in the order of the report.
    pub checks: Vec<Check>,
    /// How Slurm is dealt with.
    pub slurm: SlurmLaw,
}

/// Keys that every check has.
const OF_ALL: &[Key] = &[
    Key::of("name", "a name of its own"),
    Key::of("limit", "a time such as 8s"),
    Key::of("drain", "\"2 of 3\", \"at once\" or \"never\""),
    Key::of("resume", "true or false"),
];
const ROOM: &[Key] = &[
    Key::of(
        "free",
        "a share such as \"5%\" or an amount such as \"10G\"",
    ),
    Key::of(
        "free_fail",
        "a share such as \"1%\" or an amount such as \"1G\"",
    ),
];
const TOP: Section = Section::of(
    "the checks",
    &[&[
        Key::of("deadline", "a time such as 40s"),
        Key::of("mount", "[[mount]]"),
        Key::of("space", "[space]"),
        Key::of("read_only", "[read_only]"),
        Key::of("link", "[[link]]"),
        Key::of("path", "[[path]]"),
        Key::of("md", "[md]"),
        Key::of("drbd", "[drbd]"),
        Key::of("lvm", "[lvm]"),
        Key::of("smart", "[smart]"),
        Key::of("clock", "[clock]"),
        Key::of("ecc", "[ecc]"),
        Key::of("audit", "[audit]"),
        Key::of("command", "[[command]]"),
        Key::of("slurm", "[slurm]"),
    ]],
);
const MOUNT: Section = Section::of(
    "[[mount]]",
    &[
        OF_ALL,
        ROOM,
        &[
            Key::of("path", "where it is mounted: an absolute path"),
            Key::of("type", "a file system's name such as \"nfs4\""),
            Key::of("write", "true or false"),
            Key::of("slow", "a time such as 1s"),
        ],
    ],
);
const SPACE: Section = Section::of("[space]", &[OF_ALL, ROOM]);
const PLAIN: Section = Section::of("a check without keys of its own", &[OF_ALL]);
const LINK: Section = Section::of(
    "[[link]]",
    &[
        OF_ALL,
        &[
            Key::of("interface", "an interface such as \"eth0\""),
            Key::of("speed", "a rate such as \"10G\""),
            Key::of("members", "1 to 64"),
            Key::of("errors_per_million", "a number from 0 on"),
        ],
    ],
);
const PATH: Section = Section::of(
    "[[path]]",
    &[
        OF_ALL,
        &[
            Key::of("to", "a host's name or address"),
            Key::of("rtt", "a time such as 2ms"),
            Key::of("mtu", "576 to 65535"),
        ],
    ],
);
const CLOCK: Section = Section::of(
    "[clock]",
    &[OF_ALL, &[Key::of("error", "a time such as 1s")]],
);
const COMMAND: Section = Section::of(
    "[[command]]",
    &[
        OF_ALL,
        &[
            Key::of(
                "run",
                "a list: the program's absolute path and its arguments",
            ),
            Key::of("silence", "\"fail\" or \"unknown\""),
        ],
    ],
);
const SLURM: Section = Section::of(
    "[slurm]",
    &[&[
        Key::of("cap", "a share such as \"10%\""),
        Key::of("shared", "2 to 1000"),
        Key::of("shared_within", "a time such as 10m"),
        Key::of("resume", "true or false"),
        Key::of("resume_after", "1 to 10"),
        Key::of("wait", "a time up to 10s"),
        Key::of("conf", "an absolute path"),
        Key::of("programs", "an absolute path"),
        Key::of(
            "alert",
            "a list: the program's absolute path and its arguments",
        ),
    ]],
);

type Read<T> = Result<T, DocumentError>;

impl Default for Settings {
    fn default() -> Self {
        Self::without_file()
    }
}

impl Settings {
    /// What is checked where there is no file: nothing of it writes to a disk or asks a peer.
    pub fn without_file() -> Self {
        let room = What::Space(room_by_default());
        let links = What::Link(LinkCheck {
            name: None,
            mbps: None,
            members: None,
            warn_per_million: 1.0,
        });
        let all = [room, What::ReadOnly, links, What::Md];
        Self {
            deadline: DEADLINE,
            checks: all.map(Check::by_default).into(),
            slurm: SlurmLaw::default(),
        }
    }

    /// Reads a file; `file` is its name in messages.
    ///
    /// # Errors
    /// What is wrong, with its line and for unknown keys with the nearest one.
    pub fn parse(file: &str, text: &str) -> Read<Self> {
        let document = Document::parse(file, text, &[&TOP, &SLURM])?;
        let top = document.top(&TOP)?;
        let mut checks = Vec::new();
        checks.extend(top.read_all("mount", mount)?);
        if let Some(value) = top.value("space") {
            let table = value.table(&SPACE)?;
            let room = room(&table)?.unwrap_or_else(room_by_default);
            checks.push(check(&table, What::Space(room))?);
        }
        plain(&top, "read_only", What::ReadOnly, &mut checks)?;
        checks.extend(top.read_all("link", link)?);
        checks.extend(top.read_all("path", path)?);
        plain(&top, "md", What::Md, &mut checks)?;
        plain(&top, "drbd", What::Drbd, &mut checks)?;
        plain(&top, "lvm", What::Lvm, &mut checks)?;
        plain(&top, "smart", What::Smart, &mut checks)?;
        if let Some(value) = top.value("clock") {
            let table = value.table(&CLOCK)?;
            let error = table.or("error", Nanos::from_millis(1_000), time)?;
            checks.push(check(&table, What::Clock { error })?);
        }
        plain(&top, "ecc", What::Ecc, &mut checks)?;
        plain(&top, "audit", What::Audit, &mut checks)?;
        checks.extend(top.read_all("command", command)?);
        let settings = Self {
            deadline: top.or("deadline", DEADLINE, |value| {
                let deadline = time(value)?;
                value.refuse(
                    deadline < Nanos::from_millis(1_000),
                    "a run needs at least 1s",
                )?;
                Ok(deadline)
            })?,
            checks,
            slurm: slurm(&top.table("slurm", &SLURM)?)?,
        };
        settings.hold_together(&document)?;
        Ok(settings)
    }

    fn hold_together(&self, document: &Document<'_>) -> Read<()> {
        if self.checks.is_empty() {
            return Err(document.contradiction(
                "it names no check; without a file, space, read-only file systems, links and md are checked",
            ));
        }
        for (number, check) in self.checks.iter().enumerate() {
            if self.checks[..number]
                .iter()
                .any(|other| other.name == check.name)
            {
                let why = format!(
                    "two checks are called '{}': give one another name",
                    check.name
                );
                return Err(document.contradiction(why));
            }
            if check.limit > self.deadline {
                let why = format!(
                    "the limit of '{}' is {}, and the deadline of all checks {}",
                    check.name, check.limit, self.deadline
                );
                return Err(document.contradiction(why));
            }
        }
        Ok(())
    }

    /// Leaves only the checks that are asked for, each by its name or its kind; all where nothing is asked for.
    ///
    /// # Errors
    /// The word that is neither, with the nearest that is.
    pub fn only(&mut self, asked: &[String]) -> Result<(), String> {
        let is =
            |check: &Check, word: &String| check.name == *word || check.what.kind().name() == word;
        for word in asked {
            if !self.checks.iter().any(|check| is(check, word)) {
                let names: Vec<&str> = self
                    .checks
                    .iter()
                    .map(|check| check.name.as_str())
                    .collect();
                let hint = linerate_model::nearest::hint(word, &names);
                return Err(format!("no check is called '{word}': {hint}"));
            }
        }
        if !asked.is_empty() {
            self.checks
                .retain(|check| asked.iter().any(|word| is(check, word)));
        }
        Ok(())
    }
}

impl Check {
    /// The check with everything else as it is by default.
    fn by_default(what: What) -> Self {
        let kind = what.kind();
        let name = match &what {
            What::Mount(mount) => format!("mount {}", mount.path),
            What::Link(LinkCheck {
                name: Some(name), ..
            }) => format!("link {name}"),
            What::Path(path) => format!("path {}", path.to),
            _ => kind.name().to_owned(),
        };
        // A file system that is read-only stays so; a clock or a changed setting is no reason to lose a node.
        let drain = match kind {
            CheckKind::ReadOnly => Some(Drain { failures: 1, of: 1 }),
            CheckKind::Clock | CheckKind::Audit => None,
            _ => Some(Drain { failures: 2, of: 3 }),
        };
        Self {
            name,
            limit: LIMIT,
            drain,
            resume: !matches!(kind, CheckKind::Ecc | CheckKind::Smart),
            what,
        }
    }
}

fn room_by_default() -> Room {
    Room {
        warn: Least::Percent(5.0),
        fail: Least::Percent(1.0),
    }
}

fn time(value: &Value<'_>) -> Read<Nanos> {
    value.amount(duration)
}

fn plain(top: &Table<'_>, key: &str, what: What, checks: &mut Vec<Check>) -> Read<()> {
    if let Some(value) = top.value(key) {
        checks.push(check(&value.table(&PLAIN)?, what)?);
    }
    Ok(())
}

/// A check with the keys that all have.
fn check(table: &Table<'_>, what: What) -> Read<Check> {
    let mut check = Check::by_default(what);
    check.name = table.or("name", check.name, |value| {
        let name = value.words()?;
        let plan = name == "plan";
        value.refuse(plan, "'linerate check plan' is a command of its own")?;
        value.refuse(name.is_empty(), "it is empty")?;
        Ok(name)
    })?;
    check.limit = table.or("limit", check.limit, time)?;
    check.drain = table.or("drain", check.drain, drain)?;
    check.resume = table.or("resume", check.resume, Value::boolean)?;
    Ok(check)
}

fn drain(value: &Value<'_>) -> Read<Option<Drain>> {
    match value.text()?.trim() {
        "never" => Ok(None),
        "at once" => Ok(Some(Drain { failures: 1, of: 1 })),
        text => {
            let parts = text.split_once(" of ");
            let parts = parts.and_then(|(failures, of)| {
                Some((failures.trim().parse().ok()?, of.trim().parse().ok()?))
            });
            let (failures, of): (u8, u8) = parts
                .ok_or_else(|| value.wrong("neither \"2 of 3\" nor \"at once\" nor \"never\""))?;
            let kept = crate::memory::KEPT;
            value.refuse(
                failures == 0 || failures > of || usize::from(of) > kept,
                format!("from \"1 of 1\" to \"{kept} of {kept}\", and not more failures than runs"),
            )?;
            Ok(Some(Drain { failures, of }))
        }
    }
}

fn least(value: &Value<'_>) -> Read<Least> {
    value.amount(|text| match text.trim().strip_suffix('%') {
        Some(percent) => percent
            .trim()
            .parse()
            .ok()
            .filter(|percent| (0.0..=100.0).contains(percent))
            .map(Least::Percent)
            .ok_or_else(|| "not a share from 0% to 100%".to_owned()),
        None => text
            .parse()
            .map(Least::Bytes)
            .map_err(|error: <Bytes as std::str::FromStr>::Err| error.to_string()),
    })
}

fn room(table: &Table<'_>) -> Read<Option<Room>> {
    let warn = table.read("free", least)?;
    let fail = table.read("free_fail", least)?;
    let default = room_by_default();
    Ok((warn.is_some() || fail.is_some()).then(|| Room {
        warn: warn.unwrap_or(default.warn),
        fail: fail.unwrap_or(default.fail),
    }))
}

fn mount(value: &Value<'_>) -> Read<Check> {
    let table = value.table(&MOUNT)?;
    let path = absolute(table.needed("path")?)?;
    let what = What::Mount(MountCheck {
        path: match path.trim_end_matches('/') {
            "" => "/".to_owned(),
            path => path.to_owned(),
        },
        kind: table.read("type", Value::words)?,
        write: table.or("write", true, Value::boolean)?,
        slow: table.or("slow", SLOW, time)?,
        room: room(&table)?,
    });
    check(&table, what)
}

fn absolute(value: &Value<'_>) -> Read<String> {
    let path = value.text()?;
    value.refuse(!path.starts_with('/'), "not an absolute path")?;
    Ok(path.to_owned())
}

fn link(value: &Value<'_>) -> Read<Check> {
    let table = value.table(&LINK)?;
    let what = What::Link(LinkCheck {
        name: table.read("interface", Value::words)?,
        mbps: table.read("speed", |value| {
            let rate =
                value.amount(|text| text.parse::<BitRate>().map_err(|error| error.to_string()))?;
            let mbps = u32::try_from(rate.bits_per_second() / 1_000_000).ok();
            mbps.filter(|mbps| *mbps > 0)
                .ok_or_else(|| value.wrong("not a link's speed"))
        })?,
        members: table.read("members", |value| value.whole(1..=64))?,
        warn_per_million: table.or("errors_per_million", 1.0, |value| {
            let rate = value.number()?;
            value.refuse(rate < 0.0, "below 0")?;
            Ok(rate)
        })?,
    });
    check(&table, what)
}

fn path(value: &Value<'_>) -> Read<Check> {
    let table = value.table(&PATH)?;
    let to = table.needed("to")?;
    let name = to.words()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let known = name.parse::<IpAddr>().is_ok() || (!name.is_empty() && name.chars().all(is_name));
    to.refuse(!known, "neither a host's name nor an address")?;
    let what = What::Path(PathCheck {
        to: name,
        round_trip: table.read("rtt", time)?,
        mtu: table.read("mtu", |value| value.whole(576..=65_535))?,
    });
    check(&table, what)
}

fn program(value: &Value<'_>) -> Read<Vec<String>> {
    let list = value.list()?;
    let words = list.iter().map(|word| word.text().map(str::to_owned));
    let words = words.collect::<Read<Vec<String>>>()?;
    let absolute = words.first().is_some_and(|word| word.starts_with('/'));
    value.refuse(
        !absolute,
        "it does not begin with a program's absolute path",
    )?;
    Ok(words)
}

fn command(value: &Value<'_>) -> Read<Check> {
    let table = value.table(&COMMAND)?;
    table.needed("name")?;
    let what = What::Command(CommandCheck {
        run: program(table.needed("run")?)?,
        silence_fails: table.or("silence", false, |value| {
            value.word(&[("fail", true), ("unknown", false)])
        })?,
    });
    check(&table, what)
}

fn slurm(table: &Table<'_>) -> Read<SlurmLaw> {
    let default = SlurmLaw::default();
    Ok(SlurmLaw {
        cap_percent: table.or("cap", default.cap_percent, |value| match least(value)? {
            Least::Percent(percent) => Ok(percent),
            Least::Bytes(_) => Err(value.wrong("not a share such as 10%")),
        })?,
        shared: table.or("shared", default.shared, |value| value.whole(2..=1_000))?,
        shared_within: table.or("shared_within", default.shared_within, time)?,
        resume: table.or("resume", default.resume, Value::boolean)?,
        resume_after: table.or("resume_after", default.resume_after, |value| {
            value.whole(1..=10)
        })?,
        wait: table.or("wait", default.wait, |value| {
            let wait = time(value)?;
            value.refuse(wait > Nanos::from_millis(10_000), "longer than 10s")?;
            Ok(wait)
        })?,
        conf: table.read("conf", absolute)?,
        programs: table.read("programs", absolute)?,
        alert: table.or("alert", Vec::new(), program)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        Settings::parse("check.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn every_check_is_read_with_its_defaults() {
        let text = r#"
deadline = "30s"
[[mount]]
path = "/scratch/"
type = "nfs4"
free = "10G"
[[mount]]
path = "/"
name = "root"
write = false
drain = "at once"
[space]
[read_only]
[[link]]
interface = "bond0"
speed = "25G"
members = 2
[[path]]
to = "storage1"
rtt = "2ms"
mtu = 9000
[md]
drain = "never"
[drbd]
[lvm]
[smart]
[clock]
error = "100ms"
[ecc]
[audit]
[[command]]
name = "gpu"
run = ["/usr/lib/nagios/plugins/check_gpu", "-w", "80"]
silence = "fail"
[slurm]
cap = "5%"
"#;
        let settings = Settings::parse("check.toml", text).unwrap();
        let names: Vec<&str> = settings
            .checks
            .iter()
            .map(|check| check.name.as_str())
            .collect();
        let expected = [
            "mount /scratch",
            "root",
            "space",
            "read-only",
            "link bond0",
            "path storage1",
            "md",
            "drbd",
            "lvm",
            "smart",
            "clock",
            "ecc",
            "audit",
            "gpu",
        ];
        assert_eq!(names, expected);
        assert_eq!(settings.deadline, Nanos::from_millis(30_000));
        assert!((settings.slurm.cap_percent - 5.0).abs() < 1e-9);
        let What::Mount(mount) = &settings.checks[0].what else {
            panic!()
        };
        assert_eq!((mount.path.as_str(), mount.write), ("/scratch", true));
        assert_eq!(mount.room.unwrap().warn, Least::Bytes(Bytes(10 << 30)));
        let What::Link(link) = &settings.checks[4].what else {
            panic!()
        };
        assert_eq!((link.mbps, link.members), (Some(25_000), Some(2)));
        assert_eq!(settings.checks[1].drain, Some(Drain { failures: 1, of: 1 }));
        assert_eq!(settings.checks[6].drain, None);
        assert!(
            !settings.checks[9].resume,
            "a disk is looked at by a person"
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, expected) in [
            (
                "[[mount]]\n",
                "check.toml:1: [[mount]] needs the key 'path'",
            ),
            (
                "[[mount]]\npath = \"home\"\n",
                "check.toml:2: path = \"home\": not an absolute path",
            ),
            ("[[mount]]\npaht = \"/home\"\n", "did you mean 'path'?"),
            ("", "it names no check"),
            ("[md]\nname = \"plan\"\n", "is a command of its own"),
            (
                "[md]\n[drbd]\nname = \"md\"\n",
                "two checks are called 'md'",
            ),
            ("[md]\nlimit = \"50s\"\n", "the limit of 'md' is 50.0 s"),
            ("[md]\ndrain = \"4 of 3\"\n", "not more failures than runs"),
            (
                "[[command]]\nname = \"x\"\nrun = [\"sh\"]\n",
                "absolute path",
            ),
            (
                "[[path]]\nto = \"a b\"\n",
                "neither a host's name nor an address",
            ),
            ("[md]\n[slurm]\ncap = \"10\"\n", "not a share such as 10%"),
        ] {
            let found = wrong(text);
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn checks_are_asked_for_by_name_or_kind() {
        let mut settings = Settings::without_file();
        let why = settings.only(&["spcae".to_owned()]).unwrap_err();
        assert!(why.contains("did you mean 'space'?"), "{why}");
        settings
            .only(&["md".to_owned(), "space".to_owned()])
            .unwrap();
        assert_eq!(settings.checks.len(), 2);
    }
}
