//! Goodput by source port between two hosts: a bad member of a bond shows as two levels.

use std::collections::BTreeMap;

use linerate_analysis::mesh::goodput;
use linerate_analysis::statistics::{median, quantile};
use linerate_model::mesh::{Mesh, MeshTest};
use linerate_model::plain_text::PlainText;

use super::cell::{self, Level};

/// 100 % is the rate that this share of the ports stays below.
const FAST: f64 = 0.75;
/// Fewer ports show nothing.
const FEWEST: usize = 4;

/// The ports of one ordered pair.
#[derive(Debug, Clone, PartialEq)]
pub struct PortsView {
    /// The sending host.
    pub from: PlainText,
    /// The receiving host.
    pub to: PlainText,
    /// The rate of one port that is 100 %, bit/s: the fastest quarter of them reaches it.
    pub expected_bps: f64,
    /// Ports with less than 70 % of it, or with none.
    pub slow: usize,
    /// The ports, ascending.
    pub ports: Vec<PortView>,
}

/// One source port.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PortView {
    /// Its number.
    pub port: u16,
    /// Goodput, bit/s; absent = no test of it was measured.
    pub goodput_bps: Option<f64>,
    /// The same as a share of [`PortsView::expected_bps`].
    pub share: Option<f64>,
    /// Share of segments that were retransmitted, 0 to 1.
    pub retransmitted: Option<f64>,
}

/// Rates and retransmitted shares of each port.
type Ports = BTreeMap<u16, (Vec<f64>, Vec<f64>)>;

/// The pairs of a mesh with several source ports, the one with the most slow ports first.
pub(super) fn all(mesh: &Mesh) -> Vec<PortsView> {
    let mut pairs: BTreeMap<(usize, usize), Ports> = BTreeMap::new();
    for test in mesh.tests.iter().filter(|test| !test.alone) {
        add(pairs.entry((test.from, test.to)).or_default(), test);
    }
    let name = |host: usize| mesh.hosts.get(host).map(|host| host.name.clone());
    let view = |((from, to), ports): ((usize, usize), Ports)| {
        let enough = ports.len() >= FEWEST;
        view(name(from)?, name(to)?, ports).filter(|_| enough)
    };
    let mut all: Vec<PortsView> = pairs.into_iter().filter_map(view).collect();
    all.sort_by_key(|pair| std::cmp::Reverse(pair.slow));
    all
}

/// The ports of a test: those of its streams, or its own.
fn add(ports: &mut Ports, test: &MeshTest) {
    let figures = cell::measured(test);
    let streams = figures.map(|figures| figures.streams.as_slice());
    for stream in streams.unwrap_or_default() {
        let (rates, again) = ports.entry(stream.source_port).or_default();
        rates.push(stream.goodput_bps);
        again.extend(stream.retransmitted);
    }
    if streams.is_none_or(<[_]>::is_empty)
        && let Some(port) = test.source_port
    {
        let (rates, again) = ports.entry(port).or_default();
        rates.extend(goodput(test));
        again.extend(figures.and_then(|figures| figures.retransmitted));
    }
}

fn view(from: PlainText, to: PlainText, ports: Ports) -> Option<PortsView> {
    let rates = ports.values().filter_map(|(rates, _)| median(rates));
    let expected_bps = quantile(&rates.collect::<Vec<_>>(), FAST)?;
    let ports: Vec<PortView> = ports
        .into_iter()
        .map(|(port, (rates, again))| PortView {
            port,
            goodput_bps: median(&rates),
            share: median(&rates).map(|rate| rate / expected_bps.max(1.0)),
            retransmitted: median(&again),
        })
        .collect();
    let slow = |port: &&PortView| port.share.is_none_or(|share| share < Level::Most.least());
    Some(PortsView {
        from,
        to,
        expected_bps,
        slow: ports.iter().filter(slow).count(),
        ports,
    })
}
