//! Reading `agent.toml`, which only root may be able to change.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use linerate_document::{Document, DocumentError, Value};
use linerate_engine::server::Network;
use linerate_model::units::Nanos;

use super::keys::TOP;
use super::{Law, VERBS};
use crate::error::AgentError;

/// No law is longer, bytes.
const MOST: u64 = 64 << 10;

impl Law {
    /// The law of a file.
    ///
    /// # Errors
    /// Where it cannot be read, says what no law says, or somebody else than root can change it.
    pub fn read(path: &Path) -> Result<Self, AgentError> {
        let failed = |source| AgentError::File {
            what: "read the law",
            path: path.to_owned(),
            source,
        };
        // What is checked is what is read: links were followed.
        let path = &path.canonicalize().map_err(failed)?;
        for place in path.ancestors() {
            let metadata = std::fs::symlink_metadata(place).map_err(failed)?;
            check(place, &metadata)?;
        }
        let mut file = std::fs::File::open(path).map_err(failed)?;
        check(path, &file.metadata().map_err(failed)?)?;
        let mut text = String::new();
        let mut bounded = std::io::Read::take(&mut file, MOST + 1);
        let length = std::io::Read::read_to_string(&mut bounded, &mut text).map_err(failed)?;
        if length as u64 > MOST {
            // Rules behind the bound would not hold.
            let why = format!("it is longer than {MOST} bytes");
            return Err(failed(std::io::Error::other(why)));
        }
        Ok(Self::parse(&path.display().to_string(), &text)?)
    }

    /// The law of a text; `name` is that of its file.
    ///
    /// # Errors
    /// What no law says, with its line.
    pub fn parse(name: &str, text: &str) -> Result<Self, DocumentError> {
        let document = Document::parse(name, text, &[&TOP])?;
        let table = document.top(&TOP)?;
        let usual = Self::default();
        let max_rate = table.read("max_rate", |value| {
            let rate: linerate_model::units::BitRate = value.parsed()?;
            value.refuse(rate.0 == 0, "it has to be more than 0")?;
            Ok(rate)
        })?;
        if let Some(value) = table.value("bytes_a_day") {
            let why = "it needs max_rate: a test without a rate has no bound of bytes";
            value.refuse(max_rate.is_none(), why)?;
        }
        let whole = |value: &Value<'_>| value.whole(1..=86_400_u64);
        let seconds = table.read("max_seconds", whole)?;
        let verbs = table.value("verbs").map(|value| {
            let list = value.list()?;
            list.iter().map(|verb| verb.word(&VERBS)).collect()
        });
        Ok(Self {
            max_rate,
            max_seconds: seconds.map_or(usual.max_seconds, |seconds| {
                Nanos::from_millis(seconds.saturating_mul(1_000))
            }),
            bytes_a_day: table.read("bytes_a_day", Value::parsed)?,
            peers: listed(&table, "peers", network)?,
            hours: listed(&table, "hours", hours)?,
            verbs: verbs.transpose()?.unwrap_or(usual.verbs),
        })
    }
}

/// A list that, where it is there, is not empty: an empty one would read as "none" and mean "any".
fn network(value: &Value<'_>) -> Result<Network, DocumentError> {
    value.parsed()
}

fn listed<T>(
    table: &linerate_document::Table<'_>,
    key: &str,
    read: impl Fn(&Value<'_>) -> Result<T, DocumentError>,
) -> Result<Vec<T>, DocumentError> {
    let Some(value) = table.value(key) else {
        return Ok(Vec::new());
    };
    let list = value.list()?;
    value.refuse(
        list.is_empty(),
        "the list is empty: leave the key away, or name something",
    )?;
    list.iter().map(read).collect()
}

/// `22:00-06:00` as minutes.
fn hours(value: &Value<'_>) -> Result<(u32, u32), DocumentError> {
    let text = value.text()?;
    let minute = |text: &str| {
        let (hours, minutes) = text.split_once(':')?;
        let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
        (hours < 24 && minutes < 60 || (hours, minutes) == (24, 0)).then_some(hours * 60 + minutes)
    };
    let both = text.split_once('-').and_then(|(from, until)| {
        let both = (minute(from.trim())?, minute(until.trim())?);
        (both.0 != both.1).then_some(both)
    });
    both.ok_or_else(|| value.wrong("not two different times such as 22:00-06:00"))
}

/// Whether only root can change this file or folder.
fn check(path: &Path, metadata: &std::fs::Metadata) -> Result<(), AgentError> {
    let open = |why: String| AgentError::OpenLaw {
        path: path.to_owned(),
        why,
    };
    if metadata.uid() != 0 {
        return Err(open(format!("user {} owns it", metadata.uid())));
    }
    let writable = metadata.mode() & 0o022 != 0;
    // In a folder with the sticky bit others cannot replace what is root's.
    let is_sticky = metadata.is_dir() && metadata.mode() & 0o1000 != 0;
    if writable && !is_sticky {
        return Err(open(format!(
            "its mode {:o} lets others than its owner write to it",
            metadata.mode() & 0o7777
        )));
    }
    Ok(())
}
