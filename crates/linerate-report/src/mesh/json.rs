//! A mesh as one JSON document, and back.
//!
//! Hosts are named, not numbered. A pair that was not measured has no `goodput_bps`. Each host, group, pair and cause
//! stands on a line of its own. Rates are bit/s, times ns, shares 0 to 1.

use std::collections::HashMap;

use linerate_model::bounds::MAX_RECORD_BYTES;
use linerate_model::mesh::{
    Mesh, MeshCause, MeshGroup, MeshGroupKind, MeshHost, MeshOutcome, MeshSpan, MeshTest,
    SCHEMA_VERSION,
};
use linerate_model::plain_text::PlainText;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::view::{MeshView, Source, VerdictKind};
use crate::json::{object, value};
use crate::words::finite;

/// The kind of this document.
const KIND: &str = "mesh";
/// A mesh has no more hosts.
const MOST_HOSTS: usize = 10_000;

/// Why a text is no mesh.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MeshError {
    /// A newer program wrote it.
    #[error(
        "the mesh has schema version {found}, this build reads up to {SCHEMA_VERSION}; a newer linerate can show it"
    )]
    Newer {
        /// Its version.
        found: u64,
    },
    /// It has more of something than this build reads.
    #[error("the mesh has {found} {what}, more than the {most} that are read")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there is of it.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// It is something else, or damaged.
    #[error("this is not a mesh that linerate wrote, or it is damaged or truncated: {reason}")]
    NotAMesh {
        /// Why.
        reason: PlainText,
    },
}

/// What is looked at before the rest.
#[derive(Deserialize)]
struct Head {
    kind: Option<String>,
    schema_version: Option<u64>,
}

#[derive(Deserialize)]
struct Document {
    schema_version: u32,
    #[serde(default)]
    started_unix_s: u64,
    rounds: u32,
    bound: u32,
    #[serde(default)]
    options: PlainText,
    #[serde(default)]
    both: bool,
    #[serde(default)]
    wave: bool,
    #[serde(default)]
    expected_bps: Option<f64>,
    #[serde(default)]
    via: Option<PlainText>,
    hosts: Vec<MeshHost>,
    #[serde(default)]
    groups: Vec<Group>,
    pairs: Vec<Pair>,
}

/// A group whose members are names.
#[derive(Serialize, Deserialize)]
struct Group {
    of: PlainText,
    kind: MeshGroupKind,
    name: PlainText,
    members: Vec<PlainText>,
}

/// A test whose ends are names.
#[derive(Serialize, Deserialize)]
struct Pair {
    from: PlainText,
    to: PlainText,
    round: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    alone: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    source_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    span: Option<MeshSpan>,
    #[serde(flatten)]
    outcome: MeshOutcome,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    record: Option<PlainText>,
}

/// The whole document, without a newline at its end.
pub fn document(source: &Source<'_>, view: &MeshView) -> String {
    let mesh = source.mesh;
    let name = |host: usize| mesh.hosts.get(host).map(|host| host.name.clone());
    let names = |hosts: &[usize]| hosts.iter().filter_map(|host| name(*host)).collect();
    let group = |group: &MeshGroup| Group {
        of: group.of.clone(),
        kind: group.kind,
        name: group.name.clone(),
        members: names(&group.members),
    };
    let pair = |test: &MeshTest| {
        Some(Pair {
            from: name(test.from)?,
            to: name(test.to)?,
            round: test.round,
            alone: test.alone,
            source_port: test.source_port,
            span: test.span,
            outcome: test.outcome.clone(),
            record: test.record.clone(),
        })
    };
    let causes = source.causes.iter().zip(&view.causes);
    let causes: Vec<Value> = causes
        .map(|(cause, shown)| self::cause(cause, [names(&cause.from), names(&cause.to)], shown))
        .collect();
    let head = [
        ("kind", Value::from(KIND)),
        ("schema_version", value(&mesh.schema_version)),
        ("started_unix_s", value(&mesh.started_unix_s)),
        ("rounds", value(&mesh.rounds)),
        ("bound", value(&mesh.bound)),
        ("options", value(&mesh.options)),
        ("both", value(&mesh.both)),
        ("wave", value(&mesh.wave)),
        ("expected_bps", value(&mesh.expected_bps)),
        ("via", value(&mesh.via)),
        ("summary", summary(view)),
    ];
    let mut parts: Vec<String> = Vec::new();
    for (key, value) in object(head) {
        parts.push(format!("\"{key}\": {value}"));
    }
    parts.push(listed("causes", causes.iter().map(value)));
    parts.push(listed("hosts", mesh.hosts.iter().map(value)));
    parts.push(listed(
        "groups",
        mesh.groups.iter().map(group).map(|one| value(&one)),
    ));
    let pairs = mesh.tests.iter().filter_map(pair);
    parts.push(listed("pairs", pairs.map(|one| value(&one))));
    format!("{{\n  {}\n}}", parts.join(",\n  "))
}

/// A member that is a list, each entry on a line of its own.
fn listed(key: &str, entries: impl Iterator<Item = Value>) -> String {
    let entries: Vec<String> = entries.map(|entry| format!("\n    {entry}")).collect();
    if entries.is_empty() {
        return format!("\"{key}\": []");
    }
    format!("\"{key}\": [{}\n  ]", entries.join(","))
}

fn summary(view: &MeshView) -> Value {
    let verdict = match view.verdict.kind {
        VerdictKind::Healthy => "healthy",
        VerdictKind::Cause => "cause",
        VerdictKind::Unexplained => "unexplained",
    };
    let counts = &view.counts;
    json!({
        "verdict": verdict,
        "sentence": view.verdict.sentence,
        "tests": counts.tests,
        "measured": counts.measured,
        "failed": counts.failed,
        "not_run": counts.not_run,
        "elapsed_ns": view.rounds.elapsed,
        "expected_bps": view.expected_bps.and_then(finite),
    })
}

fn cause(cause: &MeshCause, [from, to]: [Vec<PlainText>; 2], shown: &super::CauseView) -> Value {
    let finding = |(id, tests): &(String, usize)| json!({ "id": id, "tests": tests });
    let next = shown.next.iter().map(|step| step.command.as_str());
    json!({
        "kind": cause.kind,
        "name": cause.name,
        "share": cause.share,
        "direction": cause.direction,
        "from": from,
        "to": to,
        "ports": cause.ports,
        "explained": cause.explained,
        "touched": cause.touched,
        "failed": cause.failed,
        "left": cause.left,
        "capacity_bps": cause.capacity_bps,
        "slow_alone": cause.slow_alone,
        "findings": cause.findings.iter().map(finding).collect::<Vec<_>>(),
        "in_common": cause.in_common,
        "sentence": shown.sentence,
        "next": next.collect::<Vec<_>>(),
    })
}

/// Reads the mesh of a document; its causes are to be found again. A newer schema is refused by name; fields that this
/// build does not know are ignored.
///
/// # Errors
/// What is no mesh says why: its kind, a name that stands twice or is not among the hosts, a rate below 0.
pub fn from_json(bytes: &[u8]) -> Result<Mesh, MeshError> {
    limit("bytes", bytes.len(), MAX_RECORD_BYTES)?;
    let head: Head = serde_json::from_slice(bytes).map_err(|error| no_mesh(&error.to_string()))?;
    match head.kind.as_deref() {
        Some(KIND) => {}
        Some(kind) => return Err(no_mesh(&format!("it is of kind '{kind}'"))),
        None => return Err(no_mesh("it has no kind")),
    }
    match head.schema_version {
        None => return Err(no_mesh("it has no schema_version")),
        Some(found) if found > u64::from(SCHEMA_VERSION) => {
            return Err(MeshError::Newer { found });
        }
        Some(_) => {}
    }
    let document = serde_json::from_slice(bytes).map_err(|error| no_mesh(&error.to_string()))?;
    mesh(document)
}

fn no_mesh(reason: &str) -> MeshError {
    MeshError::NotAMesh {
        reason: reason.into(),
    }
}

const fn limit(what: &'static str, found: usize, most: usize) -> Result<(), MeshError> {
    if found > most {
        return Err(MeshError::TooLarge { what, found, most });
    }
    Ok(())
}

fn mesh(document: Document) -> Result<Mesh, MeshError> {
    limit("hosts", document.hosts.len(), MOST_HOSTS)?;
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, host) in document.hosts.iter().enumerate() {
        if places.insert(&host.name, place).is_some() {
            return Err(no_mesh(&format!("host '{}' is in it twice", host.name)));
        }
    }
    let place = |name: &PlainText| {
        let unknown = || no_mesh(&format!("'{name}' is not among its hosts"));
        places.get(name.as_str()).copied().ok_or_else(unknown)
    };
    let group = |group: Group| {
        let members = group.members.iter().map(place);
        let mut members: Vec<usize> = members.collect::<Result<_, _>>()?;
        members.sort_unstable();
        Ok(MeshGroup {
            of: group.of,
            kind: group.kind,
            name: group.name,
            members,
        })
    };
    let test = |pair: Pair| {
        check(&pair)?;
        Ok(MeshTest {
            from: place(&pair.from)?,
            to: place(&pair.to)?,
            round: pair.round,
            alone: pair.alone,
            source_port: pair.source_port,
            span: pair.span,
            outcome: pair.outcome,
            record: pair.record,
        })
    };
    Ok(Mesh {
        schema_version: document.schema_version,
        started_unix_s: document.started_unix_s,
        groups: document
            .groups
            .into_iter()
            .map(group)
            .collect::<Result<_, _>>()?,
        rounds: document.rounds,
        bound: document.bound,
        options: document.options,
        both: document.both,
        wave: document.wave,
        expected_bps: document
            .expected_bps
            .filter(|rate| rate.is_finite() && *rate > 0.0),
        via: document.via,
        tests: document
            .pairs
            .into_iter()
            .map(test)
            .collect::<Result<_, _>>()?,
        hosts: document.hosts,
    })
}

/// Refuses what no test can have.
fn check(pair: &Pair) -> Result<(), MeshError> {
    let refuse = |what: &str| {
        let (from, to) = (&pair.from, &pair.to);
        Err(no_mesh(&format!(
            "the test from '{from}' to '{to}' has {what}"
        )))
    };
    if pair.from == pair.to {
        return refuse("one host at both ends");
    }
    let MeshOutcome::Measured(figures) = &pair.outcome else {
        return Ok(());
    };
    let streams = figures.streams.iter().map(|stream| stream.goodput_bps);
    let interval = figures.interval_bps.map(|(low, high)| [low, high]);
    let rates = interval.into_iter().flatten().chain(streams);
    if rates.chain([figures.goodput_bps]).any(|rate| rate < 0.0) {
        return refuse("a rate below 0");
    }
    Ok(())
}
