//! Profiles: files that say how settings should be. A profile is TOML; files of sysctl.conf(5) are read as well.

use std::fmt;
use std::ops::RangeInclusive;

use linerate_document::{Document, DocumentError, Key, Section, Value, words};
use linerate_model::host::CpuSet;
use linerate_model::tuning::{BlockSetting, InterfaceSetting, Object};

/// One wish of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// What it is about.
    pub object: Object,
    /// The value that is wanted.
    pub value: String,
    /// Where it is from.
    pub from: Origin,
}

/// Where a wish is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file: `profile.toml:7`.
    Line {
        /// The file, as it was named.
        file: String,
        /// The line, from 1 on.
        line: u32,
    },
    /// A check of an audit: `audit T01`.
    Audit(String),
}

impl Origin {
    fn line(file: &str, line: usize) -> Self {
        Self::Line {
            file: file.to_owned(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{file}:{line}"),
            Self::Audit(check) => write!(f, "audit {check}"),
        }
    }
}

const TOP: Section = Section::of(
    "a profile",
    &[&[
        Key::of("name", ""),
        Key::of("about", ""),
        Key::of("sysctl", "[sysctl]"),
        Key::of("interface", "[interface.NAME]"),
        Key::of("cpu", "[cpu]"),
        Key::of("block", "[block.NAME]"),
    ]],
);
const BLOCK: Section = Section::of("a block device", &[&BLOCK_KEYS]);
const BLOCK_KEYS: [Key; BlockSetting::ALL.len()] = {
    let mut keys = [Key::of("", ""); BlockSetting::ALL.len()];
    let mut at = 0;
    while at < keys.len() {
        keys[at] = Key::of(BlockSetting::ALL[at].1, "");
        at += 1;
    }
    keys
};
const CPU: Section = Section::of("[cpu]", &[&[Key::of("governor", "")]]);
const INTERFACE: Section = Section::of("an interface", &[&INTERFACE_KEYS]);
const INTERFACE_KEYS: [Key; InterfaceSetting::ALL.len()] = {
    let mut keys = [Key::of("", ""); InterfaceSetting::ALL.len()];
    let mut at = 0;
    while at < keys.len() {
        keys[at] = Key::of(InterfaceSetting::ALL[at].1, "");
        at += 1;
    }
    keys
};
/// Largest packets that an interface may have, bytes.
pub(crate) const MTU: RangeInclusive<u32> = 68..=65_535;

/// Reads a profile, or lines of sysctl.conf(5) where its name ends in `.conf`.
///
/// # Errors
/// What is wrong, with its line and for unknown keys with the nearest one.
pub fn read(file: &str, text: &str) -> Result<Vec<Wish>, DocumentError> {
    let lines = std::path::Path::new(file)
        .extension()
        .is_some_and(|extension| extension == "conf");
    if lines {
        parse_sysctl(file, text)
    } else {
        parse(file, text)
    }
}

/// Reads a profile.
///
/// # Errors
/// What is wrong, with its line and for unknown keys with the nearest one.
pub fn parse(file: &str, text: &str) -> Result<Vec<Wish>, DocumentError> {
    let document = Document::parse(file, text, &[&TOP, &INTERFACE, &CPU, &BLOCK])?;
    let top = document.top(&TOP)?;
    for key in ["name", "about"] {
        top.read(key, Value::text)?;
    }
    let mut wishes = Vec::new();
    let mut wish = |object, value, at: &Value<'_>| {
        let from = Origin::line(file, at.line());
        wishes.push(Wish {
            object,
            value,
            from,
        });
    };
    if let Some(governor) = top.table("cpu", &CPU)?.value("governor") {
        wish(Object::Governor, governor.words()?, governor);
    }
    for (interface, settings) in top.or("interface", Vec::new(), Value::pairs)? {
        let table = settings.table(&INTERFACE)?;
        for (setting, key) in InterfaceSetting::ALL {
            if let Some(value) = table.value(key) {
                let interface = interface.to_owned();
                let object = Object::Interface { interface, setting };
                wish(object, interface_value(setting, value)?, value);
            }
        }
    }
    for (device, settings) in top.or("block", Vec::new(), Value::pairs)? {
        let table = settings.table(&BLOCK)?;
        for (setting, key) in BlockSetting::ALL {
            if let Some(value) = table.value(key) {
                let device = device.to_owned();
                let object = Object::Block { device, setting };
                wish(object, block_value(setting, value)?, value);
            }
        }
    }
    for (key, value) in top.or("sysctl", Vec::new(), Value::pairs)? {
        let wanted = sysctl_value(key, &value)?;
        let key = key.to_owned();
        wish(Object::Sysctl { key }, wanted, &value);
    }
    Ok(wishes)
}

/// Reads a file of sysctl.conf(5): lines `key = value`.
///
/// # Errors
/// A line that is neither empty, a comment nor an assignment; a value that cannot be.
pub fn parse_sysctl(file: &str, text: &str) -> Result<Vec<Wish>, DocumentError> {
    let mut wishes = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let wrong = |key: &str, reason| DocumentError::in_line(file, number, key, line, reason);
        let Some((key, value)) = line.split_once('=') else {
            return Err(wrong("the line", "not 'key = value'".to_owned()));
        };
        let key = key.trim().trim_start_matches('-').replace('/', ".");
        let value = words(value);
        possible(&key, &value).map_err(|reason| wrong(&key, reason))?;
        wishes.push(Wish {
            object: Object::Sysctl { key },
            value,
            from: Origin::line(file, number),
        });
    }
    Ok(wishes)
}

/// A text, a number, or a list of numbers, as a sysctl's value.
fn sysctl_value(key: &str, value: &Value<'_>) -> Result<String, DocumentError> {
    let reason = "keys of [sysctl] are whole and in quotation marks: \"net.ipv4.tcp_rmem\"";
    value.refuse(!key.contains('.'), reason)?;
    let parts = value.elements();
    let part = |part: &Value<'_>| {
        part.refuse(part.is_float(), "a sysctl has whole numbers")?;
        part.amount(|text| Ok(words(text)))
    };
    let parts = parts.iter().map(part);
    let wanted = parts.collect::<Result<Vec<_>, _>>()?.join(" ");
    possible(key, &wanted).map_err(|reason| value.wrong(reason))?;
    Ok(wanted)
}

fn interface_value(setting: InterfaceSetting, value: &Value<'_>) -> Result<String, DocumentError> {
    use InterfaceSetting as S;
    let whole = |range| value.whole(range).map(|number: u32| number.to_string());
    match setting {
        S::Qdisc => {
            const KINDS: [&str; 6] = ["fq", "fq_codel", "pfifo_fast", "pfifo", "cake", "sfq"];
            value
                .word(&KINDS.map(|kind| (kind, kind)))
                .map(str::to_owned)
        }
        S::AdaptiveRx | S::Tso | S::Gso | S::Gro | S::Lro => {
            let on = value.boolean()?;
            Ok(if on { "on" } else { "off" }.to_owned())
        }
        S::RpsCpus | S::XpsCpus if value.words()? == "off" => Ok("off".to_owned()),
        S::RpsCpus | S::XpsCpus | S::IrqCpus => {
            let cpus: Option<CpuSet> = value.words()?.parse().ok();
            let cpus = cpus.filter(|cpus| !cpus.is_empty());
            cpus.map(|cpus| cpus.to_string()).ok_or_else(|| {
                value.wrong(match setting {
                    S::IrqCpus => "not a list of CPUs such as \"0-3,8\"",
                    _ => "neither \"off\" nor a list of CPUs such as \"0-3,8\"",
                })
            })
        }
        S::Mtu => whole(MTU),
        S::Txqueuelen => whole(0..=1_000_000),
        S::RxUsecs => whole(0..=100_000),
        S::RxRing | S::TxRing | S::Channels => whole(1..=65_536),
    }
}

fn block_value(setting: BlockSetting, value: &Value<'_>) -> Result<String, DocumentError> {
    use BlockSetting as S;
    const SCHEDULERS: [&str; 7] = [
        "none",
        "mq-deadline",
        "kyber",
        "bfq",
        "noop",
        "deadline",
        "cfq",
    ];
    let whole = |range| value.whole(range).map(|number: u32| number.to_string());
    match setting {
        S::Scheduler => value
            .word(&SCHEDULERS.map(|name| (name, name)))
            .map(str::to_owned),
        // BLKDEV_MIN_RQ of include/linux/blkdev.h.
        S::NrRequests => whole(4..=65_536),
        S::ReadAheadKb => whole(0..=4_194_304),
        S::SyncSpeedMin | S::SyncSpeedMax if value.words().is_ok_and(|word| word == "system") => {
            Ok("system".to_owned())
        }
        S::SyncSpeedMin | S::SyncSpeedMax => whole(1..=u32::MAX / 2),
    }
}

/// Whether a sysctl can have a value, as far as its kind is known: buffers are three numbers, the least first.
fn possible(key: &str, value: &str) -> Result<(), String> {
    const MOST: u64 = (1 << 31) - 1;
    let buffers = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"].contains(&key);
    if buffers || key == "net.ipv4.tcp_mem" {
        let Some([least, middle, most]) = crate::case::triple(value) else {
            return Err("three numbers are wanted: least, default, most".to_owned());
        };
        if least > middle || middle > most {
            return Err("the three numbers do not ascend".to_owned());
        }
        if buffers && most > MOST {
            return Err(format!("a buffer is at most {MOST} bytes"));
        }
        return Ok(());
    }
    let size = [
        "rmem_max",
        "wmem_max",
        "rmem_default",
        "wmem_default",
        "optmem_max",
    ];
    let last = key.rsplit('.').next().unwrap_or(key);
    if key.starts_with("net.core.") && size.contains(&last) {
        return match value.parse::<u64>() {
            Ok(bytes) if bytes <= MOST => Ok(()),
            _ => Err(format!("a number of bytes up to {MOST} is wanted")),
        };
    }
    let switch = [
        "tcp_timestamps",
        "tcp_sack",
        "tcp_dsack",
        "tcp_window_scaling",
        "tcp_mtu_probing",
    ];
    if key.starts_with("net.ipv4.") && switch.contains(&last) && !["0", "1", "2"].contains(&value) {
        return Err("0, 1 or 2 is wanted".to_owned());
    }
    Ok(())
}
