//! Whether others use the links of a test that needs quiet ones: counted by both hosts right before it.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use linerate_model::units::{BitRate, Nanos};
use linerate_watch::dispatch::{End, LOOK_MILLIS};

use super::hosts::Standing;
use super::measuring::{Assignment, Side};
use crate::between::failure::{FarFailure, Stage};
use crate::between::far;
use crate::between::reach::Traffic;
use crate::between::roles::candidates;

/// The end whose link others use for more than this share, 0 to 1, and the share; what the sender sends and what the
/// receiver receives counts. An end without an agent counts nothing.
///
/// # Errors
/// Where an end does not count, or nobody knows how fast its link is.
pub(super) fn look(assignment: &Assignment, most: f64) -> Result<Option<(End, f64)>, FarFailure> {
    let shares = std::thread::scope(|scope| {
        let looks = End::BOTH.map(|end| scope.spawn(move || share(assignment, end)));
        looks.map(|look| look.join().unwrap_or(Ok(None)))
    });
    for (end, share) in End::BOTH.into_iter().zip(shares) {
        if let Some(share) = share?.filter(|share| *share > most) {
            return Ok(Some((end, share)));
        }
    }
    Ok(None)
}

/// The share of its link that others use at an end; `None` where it has no agent.
fn share(assignment: &Assignment, end: End) -> Result<Option<f64>, FarFailure> {
    let at = end.at();
    let Side::Agent(standing) = &assignment.sides[at] else {
        return Ok(None);
    };
    let failed = |why: &str| FarFailure::at(Stage::Traffic, &assignment.names[at], why);
    let towards = towards(assignment, standing, end.other())
        .ok_or_else(|| failed("no address of the other host is known"))?;
    let stop = || assignment.stop.load(Ordering::Relaxed);
    let time = Nanos::from_millis(LOOK_MILLIS);
    let traffic = far::traffic(&standing.session, towards, time, &stop)?;
    let used = of(&traffic, end, assignment.links[at]);
    let unknown = "how fast its link is nobody knows: give `link` to this host in the plan";
    used.map(Some).ok_or_else(|| failed(unknown))
}

fn of(traffic: &Traffic, end: End, link: Option<BitRate>) -> Option<f64> {
    let bps = match end {
        End::From => traffic.sent_bps,
        End::To => traffic.received_bps,
    };
    let link = link.map(|link| link.0).or(traffic.link_bps)?;
    (link > 0).then(|| bps as f64 / link as f64)
}

/// The address that a test would dial or be dialled from.
fn towards(assignment: &Assignment, own: &Standing, peer: End) -> Option<IpAddr> {
    let by_plan = assignment.addresses[peer.at()].parse().ok();
    let found = || match &assignment.sides[peer.at()] {
        Side::Agent(other) => {
            let family = assignment.plan.family;
            let all = candidates(&other.surroundings, &own.surroundings, None, family);
            all.first().copied()
        }
        Side::Server(_) => None,
    };
    by_plan.or_else(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_s_link_comes_before_the_driver_s_and_each_end_has_its_direction() {
        let traffic = Traffic {
            interface: "eth0".into(),
            link_bps: Some(1000),
            sent_bps: 100,
            received_bps: 300,
        };
        assert_eq!(of(&traffic, End::From, None), Some(0.1));
        assert_eq!(of(&traffic, End::To, Some(BitRate(600))), Some(0.5));
        let unknown = Traffic {
            link_bps: None,
            ..traffic
        };
        assert_eq!(of(&unknown, End::From, None), None);
    }
}
