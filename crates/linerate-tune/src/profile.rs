//! Profiles: files that say how settings should be. A profile is TOML; files of sysctl.conf(5) are read as well.

use std::fmt;

use linerate_model::host::CpuSet;
use linerate_model::tuning::{InterfaceSetting, Object};
use toml::de::DeValue;

use crate::document::{Document, DocumentError, Value, words};

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

const SECTIONS: [&str; 5] = ["name", "about", "sysctl", "interface", "cpu"];

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
    let document = Document { file, text };
    let table = document.top()?;
    let mut wishes = Vec::new();
    for (key, value) in table.get_ref() {
        match key.get_ref().as_ref() {
            "name" | "about" => {
                document.text_of(key.get_ref(), value)?;
            }
            "sysctl" => document.sysctls(value, &mut wishes)?,
            "interface" => document.interfaces(value, &mut wishes)?,
            "cpu" => document.cpu(value, &mut wishes)?,
            _ => return Err(document.unknown("a profile", key, &SECTIONS)),
        }
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
        let wrong = |key: &str, reason: String| DocumentError::Value {
            file: file.to_owned(),
            line: number,
            key: key.to_owned(),
            found: line.to_owned(),
            reason,
        };
        let Some((key, value)) = line.split_once('=') else {
            return Err(wrong("the line", "it is no 'key = value'".to_owned()));
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

impl Document<'_> {
    /// A text, a number, or a list of numbers, as a sysctl's value.
    fn sysctl_value(&self, key: &str, value: &Value<'_>) -> Result<String, DocumentError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(words(text)),
            DeValue::Integer(number) => Ok(number.as_str().to_owned()),
            DeValue::Array(list) => {
                let parts: Result<Vec<String>, _> = list
                    .iter()
                    .map(|part| self.sysctl_value(key, part))
                    .collect();
                Ok(parts?.join(" "))
            }
            _ => Err(self.wrong(key, value, "it is neither a text nor a number")),
        }
    }

    fn push(&self, wishes: &mut Vec<Wish>, object: Object, wanted: String, at: &Value<'_>) {
        wishes.push(Wish {
            object,
            value: wanted,
            from: Origin::line(self.file, self.line(&at.span())),
        });
    }

    fn sysctls(&self, value: &Value<'_>, wishes: &mut Vec<Wish>) -> Result<(), DocumentError> {
        for (key, value) in self.table("sysctl", value)? {
            let name = key.get_ref().as_ref();
            if !name.contains('.') {
                return Err(self.wrong(
                    name,
                    value,
                    "keys of [sysctl] are whole and in quotation marks: \"net.ipv4.tcp_rmem\"",
                ));
            }
            let wanted = self.sysctl_value(name, value)?;
            possible(name, &wanted).map_err(|reason| self.wrong(name, value, reason))?;
            let object = Object::Sysctl {
                key: name.to_owned(),
            };
            self.push(wishes, object, wanted, value);
        }
        Ok(())
    }

    fn interfaces(&self, value: &Value<'_>, wishes: &mut Vec<Wish>) -> Result<(), DocumentError> {
        let known = InterfaceSetting::ALL.map(|(_, key)| key);
        for (interface, settings) in self.table("interface", value)? {
            let interface = interface.get_ref().as_ref();
            for (key, value) in self.table(interface, settings)? {
                let name = key.get_ref().as_ref();
                let found = InterfaceSetting::ALL.iter().find(|(_, each)| *each == name);
                let Some((setting, _)) = found else {
                    return Err(self.unknown("an interface", key, &known));
                };
                let wanted = self.interface_value(*setting, name, value)?;
                let object = Object::Interface {
                    interface: interface.to_owned(),
                    setting: *setting,
                };
                self.push(wishes, object, wanted, value);
            }
        }
        Ok(())
    }

    pub(crate) fn interface_value(
        &self,
        setting: InterfaceSetting,
        key: &str,
        value: &Value<'_>,
    ) -> Result<String, DocumentError> {
        use InterfaceSetting as S;
        let whole = |range| {
            self.whole(key, value, range)
                .map(|number| number.to_string())
        };
        match setting {
            S::Qdisc => {
                const KINDS: [&str; 6] = ["fq", "fq_codel", "pfifo_fast", "pfifo", "cake", "sfq"];
                let kind = self.words_of(key, value)?;
                if KINDS.contains(&kind.as_str()) {
                    return Ok(kind);
                }
                let reason = format!("it is none of {}", KINDS.join(", "));
                Err(self.wrong(key, value, reason))
            }
            S::AdaptiveRx | S::Tso | S::Gso | S::Gro | S::Lro => {
                let on = self.switch(key, value)?;
                Ok(if on { "on" } else { "off" }.to_owned())
            }
            S::RpsCpus | S::XpsCpus if self.words_of(key, value)? == "off" => Ok("off".to_owned()),
            S::RpsCpus | S::XpsCpus | S::IrqCpus => {
                let cpus: Option<CpuSet> = self.words_of(key, value)?.parse().ok();
                match cpus.filter(|cpus| !cpus.is_empty()) {
                    Some(cpus) => Ok(cpus.to_string()),
                    None if setting == S::IrqCpus => {
                        Err(self.wrong(key, value, "it is no list of CPUs such as \"0-3,8\""))
                    }
                    None => {
                        let reason = "it is neither \"off\" nor a list of CPUs such as \"0-3,8\"";
                        Err(self.wrong(key, value, reason))
                    }
                }
            }
            S::Mtu => whole(68..=65_535),
            S::Txqueuelen => whole(0..=1_000_000),
            S::RxUsecs => whole(0..=100_000),
            S::RxRing | S::TxRing | S::Channels => whole(1..=65_536),
        }
    }

    fn cpu(&self, value: &Value<'_>, wishes: &mut Vec<Wish>) -> Result<(), DocumentError> {
        for (key, value) in self.table("cpu", value)? {
            if key.get_ref() != "governor" {
                return Err(self.unknown("[cpu]", key, &["governor"]));
            }
            let wanted = self.words_of("governor", value)?;
            self.push(wishes, Object::Governor, wanted, value);
        }
        Ok(())
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
