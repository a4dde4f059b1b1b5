//! What an audit wants to know of the path to a peer: round trip, rate, largest packet, and the peer's link.
//!
//! The runs are the first three steps of [`crate::rfc6349`]: a quiet one, datagrams that may not be cut, several
//! connections. It runs nothing: [`Sounding`] asks for one run after the other and gets the result of each.

use linerate_model::audit::{LargestPacket, ToPeer};
use linerate_model::plan::Plan;
use linerate_model::record::{InterfaceFacts, RunRecord};
use linerate_model::units::{BitRate, Nanos};

use crate::rfc6349::{Gave, LARGEST, Step, Survey};

/// How long the run of several connections measures, without another wish.
pub const SPAN: Nanos = Nanos::from_millis(4000);

/// The runs to a peer.
#[derive(Debug, Clone)]
pub struct Sounding {
    survey: Survey,
    found: ToPeer,
    interface_mtu: Option<u32>,
}

impl Sounding {
    /// Nothing has been run. `plan` names the peer, and says how long its bottleneck is looked for.
    pub fn new(plan: &Plan) -> Self {
        Self {
            survey: Survey::of_path(plan),
            found: ToPeer {
                peer: plan.host.to_string(),
                ..ToPeer::default()
            },
            interface_mtu: None,
        }
    }

    /// The next run; `None` = there is none.
    pub fn upcoming(&self) -> Option<(Step, Plan)> {
        self.survey.upcoming()
    }

    /// Takes what the upcoming run gave.
    pub fn took(&mut self, gave: Gave) {
        let Some((step, _)) = self.survey.upcoming() else {
            return;
        };
        if let (Step::Quiet, Ok(record)) = (&step, &gave) {
            self.ends(record);
        }
        self.survey.took(gave);
        let arrived = self.survey.so_far().path_mtu.as_ref();
        if let (Step::Probe { .. }, Some(arrived)) = (step, arrived) {
            self.found.packet = Some(LargestPacket {
                bytes: arrived.value,
                untried_above: self
                    .interface_mtu
                    .is_none_or(|mtu| arrived.value >= mtu.min(LARGEST)),
            });
        }
    }

    /// What the two ends say of their interfaces.
    fn ends(&mut self, record: &RunRecord) {
        let flow = record.plan.flow_of(0);
        let interface = |role| -> Option<&InterfaceFacts> { record.end(role)?.interface.as_ref() };
        let own = interface(flow.sender());
        self.found.interface = own.map(|own| own.name.to_string());
        self.interface_mtu = own.and_then(|own| own.mtu_bytes);
        let theirs = interface(flow.receiver()).and_then(InterfaceFacts::speed_bps);
        self.found.peer_link_bps = theirs.map(BitRate);
    }

    /// What was found.
    pub fn found(self) -> ToPeer {
        let mut found = self.found;
        let report = self.survey.report();
        if let Some(rtt) = report.base_rtt {
            (found.rtt, found.rtt_how) = (Some(rtt.value), rtt.how);
        }
        if let Some(rate) = report.bottleneck {
            (found.rate_bps, found.rate_how) = (Some(rate.value), rate.how);
        }
        found.remarks = report.remarks;
        found
    }
}
