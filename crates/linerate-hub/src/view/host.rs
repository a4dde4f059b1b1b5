//! Hosts: what the hub knows of them.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::alert::HostChange;
use linerate_model::host::Fact;
use linerate_model::host::HostFacts;
use linerate_model::plain_text::PlainText;
use linerate_model::units::{Bytes, Nanos};
use linerate_model::watch::UnixMillis;
use serde::Serialize;

use super::audit::AuditView;
use super::cell::{Cell, CellState};
use super::grid;
use crate::live::AgentState;
use crate::moment::DAY;
use crate::shared::Shared;
use crate::store::StoreError;

/// A host as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct HostView {
    /// Its name.
    pub(crate) name: PlainText,
    /// Its agent; null = the plan does not have it any more.
    pub(crate) agent: Option<AgentState>,
    /// When its facts were read; null = they were not.
    pub(crate) facts_at: Option<UnixMillis>,
    /// Its facts by name, in the order in which they are shown; null = not known.
    pub(crate) facts: Vec<(&'static str, Option<PlainText>)>,
    /// Its interfaces.
    pub(crate) interfaces: Vec<InterfaceView>,
    /// What is not as it should be by its facts; null = its facts were not read.
    pub(crate) audit: Option<AuditView>,
    /// What changed on it in the last 30 days, the latest first.
    pub(crate) changes: Vec<HostChange>,
    /// Pairs that send from it, and how many of them are not good.
    pub(crate) sends: [usize; 2],
    /// Pairs that it receives, and how many of them are not good.
    pub(crate) receives: [usize; 2],
}

/// An interface of a host.
#[derive(Debug, Serialize)]
pub(crate) struct InterfaceView {
    /// Its name.
    pub(crate) name: PlainText,
    /// `hardware`, `bond`, `vlan` …
    pub(crate) kind: PlainText,
    /// Whether it is up.
    pub(crate) up: bool,
    /// Largest packet, bytes.
    pub(crate) mtu: Option<u32>,
    /// The speed of its link, Mbit/s; null = not known, or none.
    pub(crate) speed_mbps: Option<u32>,
    /// Its driver; null = not known, or none.
    pub(crate) driver: Option<PlainText>,
}

/// What the grid says of a host.
#[derive(Debug, Default)]
struct Standing {
    /// Pairs that send from it and that it receives, each with how many of them are not good.
    sides: [[usize; 2]; 2],
    /// The longest round trip of their latest tests that measured.
    longest: Option<Nanos>,
}

/// The names of facts that tables of hosts show.
pub(crate) const KERNEL: &str = "Kernel";

impl HostView {
    /// The hosts of the plan and of the archive, by name: all, or `only` this one. Each is audited by its facts.
    pub(crate) fn all(shared: &Shared, only: Option<&str>) -> Result<Vec<Self>, StoreError> {
        let now = shared.now();
        let (cells, _) = grid::cells(shared, now)?;
        let mut hosts: BTreeMap<PlainText, Standing> = BTreeMap::new();
        let agents = shared.live().snapshot().agents;
        for agent in &agents {
            hosts.entry(agent.host.clone()).or_default();
        }
        for cell in &cells {
            let bad = usize::from(is_bad(cell));
            for (host, side) in [(&cell.from, 0), (&cell.to, 1)] {
                let standing = hosts.entry(host.clone()).or_default();
                standing.sides[side][0] += 1;
                standing.sides[side][1] += bad;
                standing.longest = standing.longest.max(cell.measured_rtt);
            }
        }
        hosts
            .into_iter()
            .filter(|(name, _)| only.is_none_or(|only| *name == only))
            .map(|(name, standing)| Self::of(shared, now, name, &agents, &standing))
            .collect()
    }

    fn of(
        shared: &Shared,
        now: UnixMillis,
        name: PlainText,
        agents: &[AgentState],
        standing: &Standing,
    ) -> Result<Self, StoreError> {
        let known = shared.store().facts(&name)?;
        let facts: Option<HostFacts> = known
            .as_ref()
            .and_then(|(_, json)| serde_json::from_slice(json).ok());
        let [sends, receives] = standing.sides;
        let month = UnixMillis(now.0.saturating_sub(30 * DAY))..now.plus_millis(1);
        Ok(Self {
            agent: agents.iter().find(|agent| agent.host == name).cloned(),
            facts_at: known.map(|(at, _)| at),
            facts: facts.as_ref().map_or_else(Vec::new, shown),
            interfaces: facts.as_ref().map_or_else(Vec::new, interfaces),
            audit: facts
                .as_ref()
                .and_then(|facts| AuditView::of(facts, standing.longest)),
            changes: shared.store().host_changes(&name, month)?,
            sends,
            receives,
            name,
        })
    }

    /// A fact by its name.
    pub(crate) fn fact(&self, name: &str) -> Option<&PlainText> {
        let mut facts = self.facts.iter();
        facts
            .find(|(known, _)| *known == name)
            .and_then(|(_, value)| value.as_ref())
    }
}

/// Whether a pair is not as it should be; one that waits for its turn is.
const fn is_bad(cell: &Cell) -> bool {
    !matches!(
        cell.state,
        CellState::Good | CellState::NotRun | CellState::Invalid
    )
}

fn shown(facts: &HostFacts) -> Vec<(&'static str, Option<PlainText>)> {
    let text = |fact: &Fact<String>| fact.known().map(PlainText::from);
    let sysctl = |key: &str| facts.sysctl(key).known().map(PlainText::from);
    let system = &facts.system;
    vec![
        (KERNEL, text(&system.kernel)),
        ("Distribution", text(&system.distribution)),
        ("Architecture", text(&system.architecture)),
        ("CPU", text(&facts.processors.model)),
        (
            "Memory",
            system
                .memory_bytes
                .known()
                .map(|bytes| Bytes(*bytes).to_string().into()),
        ),
        (
            "Virtual machine",
            system
                .virtual_machine
                .known()
                .map(|kind| kind.clone().unwrap_or_else(|| "no".to_owned()).into()),
        ),
        (
            "Congestion control",
            sysctl("net.ipv4.tcp_congestion_control"),
        ),
        ("net.ipv4.tcp_rmem", sysctl("net.ipv4.tcp_rmem")),
        ("net.ipv4.tcp_wmem", sysctl("net.ipv4.tcp_wmem")),
        ("net.core.default_qdisc", sysctl("net.core.default_qdisc")),
    ]
}

fn interfaces(facts: &HostFacts) -> Vec<InterfaceView> {
    let known = facts.interfaces.known().into_iter().flatten();
    known
        .filter(|interface| interface.kind != "loopback")
        .map(|interface| InterfaceView {
            name: interface.name.as_str().into(),
            kind: interface.kind.as_str().into(),
            up: interface.up,
            mtu: interface.mtu.known().copied(),
            speed_mbps: interface.link.known().and_then(|link| link.speed_mbps),
            driver: interface
                .driver
                .known()
                .map(|driver| driver.name.as_str().into()),
        })
        .collect()
}

/// What differs between two readings of a host's facts, each with its moment. Counters are no change.
pub(crate) fn changes(
    host: &str,
    (last_before, before): (UnixMillis, &[u8]),
    (first_after, after): (UnixMillis, &[u8]),
) -> Vec<HostChange> {
    let parsed = |json: &[u8]| serde_json::from_slice::<HostFacts>(json).ok();
    let (Some(before), Some(after)) = (parsed(before), parsed(after)) else {
        return Vec::new();
    };
    let (before, after) = (comparable(&before), comparable(&after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differs = |name: &&&String| before.get(**name) != after.get(**name);
    let change = |name: &String| HostChange {
        host: host.into(),
        fact: name.as_str().into(),
        before: before.get(name).map(PlainText::from),
        after: after.get(name).map(PlainText::from),
        last_before,
        first_after,
    };
    names
        .iter()
        .filter(differs)
        .map(|name| change(name))
        .collect()
}

/// Facts that change a host's throughput, by name; those that are not known are left out.
fn comparable(facts: &HostFacts) -> BTreeMap<String, String> {
    let system = &facts.system;
    let texts = [
        ("kernel", system.kernel.known()),
        ("distribution", system.distribution.known()),
        ("kernel command line", system.command_line.known()),
        ("CPU", facts.processors.model.known()),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(name, text)| Some((name.to_owned(), text?.clone())));
    let memory = system
        .memory_bytes
        .known()
        .map(|bytes| ("memory".to_owned(), Bytes(*bytes).to_string()));
    let sysctls = facts.sysctls.iter();
    let sysctls = sysctls.filter_map(|(key, value)| Some((key.clone(), value.known()?.clone())));
    let mut all: BTreeMap<String, String> = texts.chain(memory).chain(sysctls).collect();
    for interface in facts.interfaces.known().into_iter().flatten() {
        let name = &interface.name;
        let state = if interface.up { "up" } else { "down" };
        all.insert(format!("{name} state"), state.to_owned());
        if let Some(mtu) = interface.mtu.known() {
            all.insert(format!("{name} mtu"), mtu.to_string());
        }
    }
    all
}
