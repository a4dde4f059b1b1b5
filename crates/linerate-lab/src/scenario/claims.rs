//! What a scenario says that its path does, held against the path's own counters: a loss scenario loses,
//! a policer polices. A grade is worth nothing where the path did something else.

use linerate_model::units::{Nanos, grouped};
use serde::{Deserialize, Serialize};

use super::types::{Scenario, Way};
use crate::path::{ClassCounters, Counters, Discipline, Loss, Probability, Settings};

/// Fewer expected events than this decide nothing when none comes: the odds of none are e^−10.
const ENOUGH: f64 = 10.0;
/// How far a count may lie from its mean, in standard deviations: one in two million by chance.
const FAR: f64 = 5.0;
/// A bottleneck was filled where something waited for this share of the time that a full queue takes: a flow that a
/// drop-tail queue bounds fills it to the brim before it yields.
const FILLED: f64 = 0.5;
/// Findings that say that the bottleneck was filled.
const FULL: [&str; 5] = ["path-full", "bufferbloat", "shaper", "congested", "ecn"];
/// Findings that put the limit into a host, so that the path must lose nothing.
const IN_THE_HOSTS: [&str; 9] = [
    "receive-window",
    "send-buffer",
    "receiver-application",
    "sender-application",
    "sender-cpu",
    "receiver-cpu",
    "rate-capped",
    "udp-receiver-drop",
    "udp-sender-short",
];

/// Something that a scenario says of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Nothing arrives before the delay is over.
    Delays,
    /// The delay wavers.
    Wavers,
    /// The bottleneck is filled: packets wait for half as long as its full queue takes, or as its marks or `CoDel` let
    /// it grow. Not claimed where packets overtake one another: a window that this keeps small may just fill the line.
    Fills,
    /// The wire loses as much as its model says.
    Loses,
    /// The policer drops.
    Polices,
    /// Packets are overtaken.
    Reorders,
    /// Packets arrive twice.
    Duplicates,
    /// Packets are marked.
    Marks,
    /// `CoDel` drops or marks.
    Manages,
    /// Large packets do not pass.
    Stops,
    /// The changes took place.
    Changes,
    /// Other traffic came.
    Competes,
    /// Nothing at all was lost: the limit lies in a host.
    LosesNothing,
    /// It carries the part of its rate that `utilisation` says.
    Carries,
}

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The counters show it.
    Shown,
    /// The counters show otherwise.
    Refuted,
    /// Too few packets passed to tell.
    TooFew,
}

/// A claim, and what the counters say of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// The direction.
    pub way: Way,
    /// The claim.
    pub claim: Claim,
    /// Whether it holds.
    pub standing: Standing,
    /// The figures.
    pub evidence: String,
}

impl Scenario {
    /// What the scenario says that its path does, for the directions in which the test shows it.
    pub fn claims(&self) -> Vec<(Way, Claim)> {
        let ways = [Way::Forward, Way::Back].into_iter();
        ways.flat_map(|way| self.claims_of(way)).collect()
    }

    /// Holds every claim against what the path counted.
    pub fn check_claims(&self, forward: &Counters, back: &Counters) -> Vec<Checked> {
        let claims = self.claims().into_iter();
        claims
            .map(|(way, claim)| {
                let counters = match way {
                    Way::Forward => forward,
                    Way::Back => back,
                };
                let (standing, evidence) = self.check(way, claim, counters);
                Checked {
                    way,
                    claim,
                    standing,
                    evidence,
                }
            })
            .collect()
    }

    fn settings_of(&self, way: Way) -> impl Iterator<Item = &Settings> {
        self.path.direction(way).all_settings()
    }

    fn claims_of(&self, way: Way) -> Vec<(Way, Claim)> {
        let any = |is: fn(&Settings) -> bool| self.settings_of(way).any(is);
        let data = self.test.ways().contains(&way);
        let top = &self.expect.top;
        let expects = |ids: &[&str]| top.iter().any(|id| ids.contains(&id.as_str()));
        // Where the path may be the limit as well, it may fill and drop.
        let in_the_hosts = |id: &String| IN_THE_HOSTS.contains(&id.as_str());
        let only_hosts = !top.is_empty() && top.iter().all(in_the_hosts);
        let mtu = match way {
            Way::Forward => self.sender.mtu,
            Way::Back => self.receiver.mtu,
        };
        let mut limits = self.settings_of(way).filter_map(|one| one.max_packet);
        let stops = limits.any(|limit| limit.bytes < mtu);
        let wavers = any(|settings| settings.jitter > Nanos::ZERO);
        let narrow = any(|settings| settings.bottleneck.is_some());
        let loses = any(|settings| settings.loss != Loss::None);
        let polices = any(|settings| settings.policer.is_some());
        let reorders = any(|settings| settings.reorder.is_some());
        let duplicates = any(|settings| settings.duplicate > Probability::NEVER);
        let mut links = self.settings_of(way).filter_map(|one| one.bottleneck);
        let marks = links.any(|link| link.ecn_threshold.is_some());
        let mut links = self.settings_of(way).filter_map(|one| one.bottleneck);
        let manages = links.any(|link| link.discipline != Discipline::DropTail);
        let changes = !self.path.direction(way).changes.is_empty();
        let mut crosses = self.path.cross.iter();
        let competes = crosses.any(|cross| cross.way == way);
        let clean = !(loses || polices || manages || stops) && self.path.cross.is_empty();
        let fills = narrow && expects(&FULL) && !reorders;
        [
            (any(|settings| settings.delay > Nanos::ZERO), Claim::Delays),
            (data && wavers, Claim::Wavers),
            (data && fills, Claim::Fills),
            (loses, Claim::Loses),
            (data && polices, Claim::Polices),
            (data && reorders, Claim::Reorders),
            (data && duplicates, Claim::Duplicates),
            (data && marks, Claim::Marks),
            (data && manages, Claim::Manages),
            (data && stops, Claim::Stops),
            (changes, Claim::Changes),
            (competes, Claim::Competes),
            (data && clean && only_hosts, Claim::LosesNothing),
            (
                data && narrow && self.expect.utilisation.is_some(),
                Claim::Carries,
            ),
        ]
        .into_iter()
        .filter(|(claimed, _)| *claimed)
        .map(|(_, claim)| (way, claim))
        .collect()
    }

    fn check(&self, way: Way, claim: Claim, counters: &Counters) -> (Standing, String) {
        let ours = &counters.ours;
        let of = |part: u64, what: &str| {
            let (some, all) = (grouped(part), grouped(ours.offered.packets));
            format!("{some} of {all} packets {what}")
        };
        let happened = |part: u64, what: &str| (shown(part > 0), of(part, what));
        match claim {
            Claim::Delays => self.check_delay(way, ours),
            Claim::Wavers => self.check_wavering(way, ours),
            Claim::Fills => self.check_filling(way, ours),
            Claim::Loses => self.check_loss(way, counters),
            Claim::Polices => happened(ours.dropped.policer.packets, "dropped by the policer"),
            Claim::Reorders => self.check_reordering(way, ours),
            Claim::Duplicates => {
                let odds = self.path.direction(way).settings.duplicate.share();
                let count = ours.duplicated.packets;
                let standing = enough(count, odds * ours.delivered.packets as f64);
                (standing, of(count, "doubled"))
            }
            Claim::Marks => happened(ours.marked.packets, "marked"),
            Claim::Manages => happened(
                ours.dropped.codel.packets + ours.marked.packets,
                "dropped or marked by CoDel",
            ),
            Claim::Stops => happened(ours.dropped.too_big.packets, "too large for the path"),
            Claim::Changes => {
                let asked = self.path.direction(way).changes.len() as u64;
                let came = u64::from(counters.changes);
                let evidence = format!("{came} of {asked} changes took place");
                (shown(came == asked), evidence)
            }
            Claim::Competes => {
                let other = counters.cross.offered;
                let evidence = format!("{} packets of other traffic", grouped(other.packets));
                (shown(other.packets > 0), evidence)
            }
            Claim::LosesNothing => {
                let lost = ours.dropped.total().packets;
                let nothing = lost == 0 && ours.delivered.packets > 0;
                (shown(nothing), of(lost, "lost"))
            }
            Claim::Carries => self.check_utilisation(way, ours),
        }
    }

    fn check_utilisation(&self, way: Way, ours: &ClassCounters) -> (Standing, String) {
        let settings = &self.path.direction(way).settings;
        let known = settings.bottleneck.zip(self.test.duration());
        let Some(((link, duration), range)) = known.zip(self.expect.utilisation) else {
            return (
                Standing::TooFew,
                "nothing bounds the rate or the time".to_owned(),
            );
        };
        let headers = ours
            .delivered
            .segments
            .saturating_mul(settings.overhead.into());
        let bits = ours.delivered.bytes.saturating_add(headers) as f64 * 8.0;
        let carries = bits / (link.rate.0 as f64 * duration.as_secs_f64());
        let evidence = format!(
            "{:.1} % of {} carried, where {:.0} to {:.0} % were expected",
            100.0 * carries,
            link.rate,
            100.0 * range.least,
            100.0 * range.most
        );
        (
            shown((range.least..=range.most).contains(&carries)),
            evidence,
        )
    }

    fn check_delay(&self, way: Way, ours: &ClassCounters) -> (Standing, String) {
        let least = self.settings_of(way).map(|settings| settings.delay).min();
        let Some((took, least)) = ours.transit_min.zip(least) else {
            return (Standing::TooFew, "nothing passed".to_owned());
        };
        let evidence = format!("{took} at least, {} at most", ours.transit_max);
        (shown(took >= least), evidence)
    }

    /// The longest way took at least half of the jitter longer than the delay.
    fn check_wavering(&self, way: Way, ours: &ClassCounters) -> (Standing, String) {
        let settings = self.path.direction(way).settings;
        let long = settings.delay.plus(Nanos(settings.jitter.0 / 2));
        let evidence = format!(
            "{} at most, of a delay of {}",
            ours.transit_max, settings.delay
        );
        (shown(ours.transit_max >= long), evidence)
    }

    fn check_filling(&self, way: Way, ours: &ClassCounters) -> (Standing, String) {
        let link = self.path.direction(way).settings.bottleneck;
        let whole = link.map_or(Nanos::ZERO, |link| link.rate.time_for(link.queue));
        // Marks and CoDel keep a queue shorter than it is.
        let kept = link.map_or(whole, |link| {
            let marked = link.ecn_threshold.map(|bytes| link.rate.time_for(bytes));
            let managed = match link.discipline {
                Discipline::Codel(codel) => Some(codel.target),
                Discipline::DropTail => None,
            };
            let shorter = marked.into_iter().chain(managed);
            shorter.fold(whole, Ord::min)
        });
        let long = Nanos::from_secs_f64(kept.as_secs_f64() * FILLED);
        let waited = ours.queue_time_max;
        let evidence =
            format!("waited for the bottleneck up to {waited}; a full queue takes {whole}");
        (shown(waited > Nanos::ZERO && waited >= long), evidence)
    }

    fn check_reordering(&self, way: Way, ours: &ClassCounters) -> (Standing, String) {
        let all = self.settings_of(way).filter_map(|one| one.reorder);
        let odds = all.map(|one| one.fraction.share()).fold(0.0, f64::max);
        let (count, arrived) = (ours.overtaken.packets, ours.delivered.packets);
        let (some, all) = (grouped(count), grouped(arrived));
        let evidence = format!("{some} of {all} packets overtaken");
        // A slow packet that nothing follows closely is not overtaken, so a mean cannot be held against it.
        (enough(count, odds * arrived as f64), evidence)
    }

    fn check_loss(&self, way: Way, counters: &Counters) -> (Standing, String) {
        let (hits, trials) = (counters.loss_hits, counters.loss_trials);
        let (lost, all) = (grouped(hits), grouped(trials));
        let evidence = format!("{lost} of {all} segments lost on the wire");
        let loss = self.path.direction(way).settings.loss;
        let steady = self.settings_of(way).all(|one| one.loss == loss);
        let standing = match (steady, loss) {
            (true, Loss::Every(nth)) => shown(hits == trials / nth.get()),
            (true, Loss::Independent(odds)) => plausible(hits, trials, odds.share(), 1.0),
            (true, Loss::Gilbert { p, r, bad, good }) => {
                let (p, r) = (p.share(), r.share());
                let share = (p * bad.share() + r * good.share()) / (p + r);
                // Losses come in bursts, which makes their number vary more: by (2 − p − r) / (p + r).
                plausible(hits, trials, share, ((2.0 - p - r) / (p + r)).max(1.0))
            }
            (true, Loss::None) | (false, _) if hits > 0 => Standing::Shown,
            (true, Loss::None) | (false, _) => Standing::TooFew,
        };
        (standing, evidence)
    }
}

fn shown(is: bool) -> Standing {
    if is {
        Standing::Shown
    } else {
        Standing::Refuted
    }
}

/// Something that was expected this often happened this often.
fn enough(count: u64, expected: f64) -> Standing {
    match count {
        0 if expected < ENOUGH => Standing::TooFew,
        count => shown(count > 0),
    }
}

/// Whether `hits` of `trials` fit odds of `share`, with a variance that many times a binomial's.
fn plausible(hits: u64, trials: u64, share: f64, variance: f64) -> Standing {
    let mean = trials as f64 * share;
    if mean / variance < ENOUGH && hits == 0 {
        return Standing::TooFew;
    }
    let deviation = (mean * (1.0 - share) * variance).sqrt();
    shown((hits as f64 - mean).abs() <= FAR * deviation + variance)
}
