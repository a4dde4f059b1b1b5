//! How far the two ends of a direction are apart.

use linerate_model::record::{EndRecord, Flow, RunRecord, StreamRecord};

/// Two ends on one machine with a round trip below this have no path between them that would delay anything, µs.
const NEXT_DOOR_US: f64 = 1000.0;

/// How far the two ends of a direction are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// On two machines, as far as is known.
    Apart,
    /// On one machine, with a path between them that delays.
    OneMachine,
    /// On one machine, in two network namespaces without a delay between them that is worth the name.
    NextDoor,
    /// On one machine, with nothing but its own stack between them. Loopback alone does not show it where more is
    /// known: a forwarder may hide behind it.
    OneStack,
}

impl Ends {
    /// `min_rtt_us`: the least round trip of the run, where it is known.
    pub(crate) fn of(record: &RunRecord, flow: Flow, min_rtt_us: Option<f64>) -> Self {
        if !one_host(record, flow) {
            return Self::Apart;
        }
        let ends = [flow.sender(), flow.receiver()].map(|role| record.end(role));
        let spaces = ends.map(|end| end.and_then(|end| end.host.network_namespace));
        let one_stack = match spaces {
            [Some(one), Some(other)] => one == other,
            _ => ends.into_iter().flatten().any(EndRecord::over_loopback),
        };
        if one_stack {
            Self::OneStack
        } else if min_rtt_us.is_none_or(|rtt| rtt < NEXT_DOOR_US) {
            Self::NextDoor
        } else {
            Self::OneMachine
        }
    }

    /// Whether both ends share one machine's CPUs.
    pub fn one_host(self) -> bool {
        self != Self::Apart
    }

    /// Whether no path between them delays anything: the machine's scheduling decides what the kernels' clocks show.
    pub fn next_door(self) -> bool {
        matches!(self, Self::NextDoor | Self::OneStack)
    }
}

/// Whether both ends ran on one machine. Names decide nothing: many hosts are called the same. Where a boot is not
/// known, the loopback interface or a stream from an address to itself shows it.
fn one_host(record: &RunRecord, flow: Flow) -> bool {
    let ends = || {
        [flow.sender(), flow.receiver()]
            .into_iter()
            .filter_map(|role| record.end(role))
    };
    let boots: Vec<&str> = ends()
        .filter_map(|end| end.host.boot_id.as_deref())
        .filter(|id| !id.is_empty())
        .collect();
    if let [one, other] = boots[..] {
        return one == other;
    }
    let to_itself = |stream: &StreamRecord| {
        host(&stream.local)
            .is_some_and(|local| !local.is_empty() && host(&stream.remote) == Some(local))
    };
    ends().any(EndRecord::over_loopback) || ends().any(|end| end.streams_of(flow).any(to_itself))
}

/// An address without its port.
fn host(address: &str) -> Option<&str> {
    Some(address.rsplit_once(':')?.0)
}
