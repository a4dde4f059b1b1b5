//! Copies from disk to disk whose limit is known, because disks and network were made as slow as that, and what is to be said of
//! each: for volumes of this machine, and for guests.

use serde_json::Value;

use super::say;

pub(crate) const MIB: usize = 1 << 20;

/// What a disk may do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    /// Bytes a second that are read.
    Read(u64),
    /// Bytes a second that are written.
    Write(u64),
    /// Reads a second.
    Reads(u64),
    /// Writes a second.
    Writes(u64),
}

/// What is to be said of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Told {
    /// This finding first.
    First(&'static str),
    /// The network has most of the time, and no finding about a disk comes first.
    Network,
    /// The target's disk first, and that it is full.
    Full,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Files, and bytes of each.
    pub(crate) files: (usize, usize),
    pub(crate) source: Option<Limit>,
    pub(crate) target: Option<Limit>,
    pub(crate) words: &'static str,
    pub(crate) told: Told,
}

/// Twelve, over a network that carries so many B/s of payload, with files of `unit` MiB and twice that; disks that are slow by their
/// requests serve so many of them a second.
pub(crate) fn cases(network: u64, requests: u64, unit: usize) -> Vec<Case> {
    let case = Case {
        name: "",
        files: (1, unit * MIB),
        source: None,
        target: None,
        words: "",
        told: Told::Network,
    };
    let read = |percent| Some(Limit::Read(network * percent / 100));
    let write = |percent| Some(Limit::Write(network * percent / 100));
    // A ring of 64 MiB takes in the difference for a while.
    let long = (1, 2 * unit * MIB);
    let small = (300, 16 << 10);
    vec![
        Case {
            name: "the source reads half of what the network carries",
            source: read(50),
            told: Told::First("disk-read"),
            ..case
        },
        Case {
            name: "the network carries half of what the target writes",
            target: write(200),
            ..case
        },
        Case {
            name: "the target writes half of what the network carries",
            target: write(50),
            told: Told::First("disk-write"),
            ..case
        },
        Case {
            name: "the source reads four fifths of what the network carries",
            source: read(80),
            told: Told::First("disk-read"),
            ..case
        },
        Case {
            name: "the network carries four fifths of what the target writes",
            target: write(125),
            ..case
        },
        Case {
            name: "the target writes four fifths of what the network carries",
            files: long,
            target: write(80),
            told: Told::First("disk-write"),
            ..case
        },
        Case {
            name: "a source that memory holds and does not let go",
            words: "--buffered",
            told: Told::First("source-cached"),
            ..case
        },
        Case {
            name: "a target that is full",
            files: long,
            told: Told::Full,
            ..case
        },
        Case {
            name: "small files, and a target with a slow fsync",
            files: small,
            target: Some(Limit::Writes(requests)),
            told: Told::First("disk-write"),
            ..case
        },
        Case {
            name: "a target that is written when all is there",
            target: write(50),
            words: "--buffered",
            told: Told::First("serial-copy"),
            ..case
        },
        Case {
            name: "small files, and a source with few reads a second",
            files: small,
            source: Some(Limit::Reads(requests)),
            told: Told::First("disk-read"),
            ..case
        },
        Case {
            name: "64 streams on the network, and a target of twice its rate",
            target: write(200),
            words: "-P 64",
            ..case
        },
    ]
}

/// Whether what was said is right; else what was not.
pub(crate) fn judge(case: &Case, document: &Value) -> Result<(), String> {
    let found = findings(document);
    let [source, network, target] = shares(document);
    say(&format!(
        "{}: {}; source {source:.2}, network {network:.2}, target {target:.2}, {}",
        case.name,
        found.first().map_or("nothing", |id| id.as_str()),
        rate(document)
    ));
    let first = found.first().map(String::as_str);
    let is_disk = |id: &str| id.starts_with("disk-") || id == "serial-copy";
    let is_right = match case.told {
        Told::First(id) => first == Some(id),
        Told::Network => network > source.max(target) && !first.is_some_and(is_disk),
        Told::Full => {
            let error = document["transfer"]["target"]["error"].as_str();
            first == Some("disk-write") && error.is_some_and(|error| error.contains("No space"))
        }
    };
    if is_right {
        Ok(())
    } else {
        Err(format!("{}: {found:?}, not {:?}", case.name, case.told))
    }
}

fn rate(document: &Value) -> String {
    let transfer = &document["transfer"];
    let one = |name: &str| transfer[name].as_f64().unwrap_or(0.0) / 1e6;
    format!(
        "{:.0} Mbit/s handed over, {:.0} on disk",
        one("handed_over_bps"),
        one("on_disk_bps")
    )
}

/// The ids of the findings, in their order.
pub(crate) fn findings(document: &Value) -> Vec<String> {
    document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["id"].as_str().unwrap().to_owned())
        .collect()
}

/// The shares of a transfer's time, which add up to it.
pub(crate) fn shares(document: &Value) -> [f64; 3] {
    let time = &document["transfer"]["time"];
    let part = |name: &str| time[name].as_f64().unwrap();
    let parts = ["source_ns", "network_ns", "target_ns"].map(part);
    let whole = part("whole_ns");
    assert!((parts.iter().sum::<f64>() - whole).abs() < 0.5, "{time}");
    parts.map(|part| part / whole.max(1.0))
}

/// Bytes that no two places of a file have alike.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
