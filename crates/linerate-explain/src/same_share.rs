//! Tests over links of different speeds that reach the same share of them.
//!
//! A bad cable, card or port costs what it costs on its own link. Where a link of 1 Gbit/s and one of 10 Gbit/s both give
//! 18 %, two of them would have to be bad to the same degree. What the tests have in common is the hosts' software, which
//! handles each packet on both.

use linerate_analysis::evidence::{DirectionEvidence, Evidence};
use linerate_model::finding::{Finding, Severity};
use linerate_model::plan::Protocol;
use linerate_model::record::Flow;
use linerate_model::units::BitRate;

use crate::draft::Draft;
use crate::replication::OF_THE_CONNECTION;

/// The finding's id.
pub const ID: &str = "same-share";
/// Speeds are different from this ratio on: between neighbours of Ethernet's speeds it is 1.6 to 10.
const OTHER_SPEED: f64 = 1.5;
/// Shares are the same up to this ratio: two single runs differ by so much without a cause.
const SAME: f64 = 1.25;
/// Above this share a link works as it should: framing and a ramp cost the rest.
const HEALTHY: f64 = 0.8;
/// Below this share a link says nothing: both are near zero.
const LEAST: f64 = 0.01;
/// From this share of repeated segments on the path loses, and that limits.
const LOSSY: f64 = 0.001;
/// Further verdicts that name the network, a window or a rate that somebody set, beside those of a connection.
const EXPLAINED: [&str; 8] = [
    "asymmetric",
    "bufferbloat",
    "disk-read",
    "no-sack",
    "path-change",
    "provisioned",
    "slow-start",
    "small-mss",
];

/// One direction of a test, as far as this question needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct OverLink {
    /// The record's name.
    name: String,
    flow: Flow,
    link_bps: f64,
    rate_bps: f64,
    /// Kernels of the client and of the server.
    kernels: [Option<String>; 2],
}

impl OverLink {
    fn share(&self) -> f64 {
        self.rate_bps / self.link_bps
    }
}

/// The directions of a test that may say something: TCP over links of known speed, limited by nothing that `findings` name.
pub fn over_link(name: &str, evidence: &Evidence<'_>, findings: &[Finding]) -> Vec<OverLink> {
    let record = evidence.record;
    if record.plan.protocol != Protocol::Tcp || record.plan.rate_bps.is_some() {
        return Vec::new();
    }
    let kernel = |end: Option<&linerate_model::record::EndRecord>| {
        let kernel = end.and_then(|end| end.host.kernel.as_ref());
        kernel.map(ToString::to_string)
    };
    let kernels = [
        kernel(record.client.as_ref()),
        kernel(record.server.as_ref()),
    ];
    let told = |direction: &&DirectionEvidence| {
        let mut own = findings
            .iter()
            .filter(|finding| finding.flow.is_none_or(|flow| flow == direction.flow));
        let explains = |id| OF_THE_CONNECTION.contains(&id) || EXPLAINED.contains(&id);
        own.next().is_none_or(|first| !explains(first.id.as_str()))
    };
    evidence
        .directions
        .iter()
        .filter(told)
        .filter(|direction| retransmitted(direction).is_none_or(|share| share < LOSSY))
        .filter_map(|direction| {
            Some(OverLink {
                name: name.to_owned(),
                flow: direction.flow,
                link_bps: direction.link_bps? as f64,
                rate_bps: direction.plateau?.estimate.mean,
                kernels: kernels.clone(),
            })
        })
        .filter(|one| (LEAST..HEALTHY).contains(&one.share()))
        .collect()
}

fn retransmitted(direction: &DirectionEvidence) -> Option<f64> {
    let path = direction.path.as_ref()?;
    let sent = path.data_segments.filter(|sent| *sent > 0)?;
    Some(path.retransmits? as f64 / sent as f64)
}

/// The pairs of tests over links of different speeds that reached the same share; of each two links the first pair.
pub fn together(tests: &[OverLink]) -> Vec<Finding> {
    let mut seen: Vec<[u64; 2]> = Vec::new();
    let mut found = Vec::new();
    for (at, one) in tests.iter().enumerate() {
        for other in &tests[at + 1..] {
            let (slow, fast) = if one.link_bps <= other.link_bps {
                (one, other)
            } else {
                (other, one)
            };
            let links = [slow.link_bps, fast.link_bps].map(f64::to_bits);
            let ratio = slow.share().max(fast.share()) / slow.share().min(fast.share());
            let same = fast.link_bps >= OTHER_SPEED * slow.link_bps && ratio <= SAME;
            if same && !seen.contains(&links) && have_something_in_common(slow, fast) {
                seen.push(links);
                found.push(finding(slow, fast));
            }
        }
    }
    found
}

/// Whether an end may have run the same kernel in both.
fn have_something_in_common(one: &OverLink, other: &OverLink) -> bool {
    common_kernel(one, other).is_some()
        || [&one.kernels, &other.kernels]
            .iter()
            .any(|kernels| kernels.iter().all(Option::is_none))
}

fn common_kernel<'a>(one: &'a OverLink, other: &OverLink) -> Option<&'a str> {
    let kernels = one.kernels.iter().flatten();
    kernels
        .map(String::as_str)
        .find(|kernel| other.kernels.iter().flatten().any(|own| own == kernel))
}

fn finding(slow: &OverLink, fast: &OverLink) -> Finding {
    let words = |one: &OverLink| {
        let link = BitRate(linerate_model::units::whole(one.link_bps));
        format!("{:.0} % of {link} ({})", 100.0 * one.share(), one.name)
    };
    let kernel = common_kernel(slow, fast).map(|kernel| format!(" (Linux {kernel} in both)"));
    let sentence = format!(
        "Links of different speeds reach the same share: {} and {}. A cable, card or port would have to be bad to the same \
         degree twice; what both have in common is the hosts' software{}, so the cost of each packet there is the likely \
         limit, not the wire. Compare with another kernel or driver, and look at offloads, coalescing and the CPUs of \
         interrupts",
        words(slow),
        words(fast),
        kernel.unwrap_or_default(),
    );
    let draft = Draft::new(ID, Severity::Note, sentence);
    let figures = [slow, fast].into_iter().fold(draft, |draft, one| {
        draft
            .figure(
                "goodput of the plateau, bit/s",
                one.rate_bps,
                one.name.clone(),
            )
            .figure(
                "speed of the slower interface, bit/s",
                one.link_bps,
                one.name.clone(),
            )
            .figure("share of the link", one.share(), one.name.clone())
    });
    let command = "linerate compare --by kernel FOLDER".to_owned();
    figures.next(command).finding
}

#[cfg(test)]
mod tests {
    use linerate_model::plan::Plan;
    use linerate_model::record::RunRecord;
    use linerate_testing::fixture::{self, Traffic};

    use super::*;

    /// A run over cards of this speed.
    fn record(link_mbit: u64, rate_bps: f64, kernel: &str) -> RunRecord {
        let traffic = Traffic {
            rate_bps,
            link_mbit_per_s: Some(link_mbit),
            ..Traffic::default()
        };
        let mut record = fixture::run(&Plan::new("server"), &traffic);
        for end in [&mut record.client, &mut record.server] {
            let end = end.as_mut().unwrap();
            end.host.kernel = Some(kernel.into());
            let interface = end.interface.as_mut().unwrap();
            // A veth pair has no speed of its own.
            interface.kind = None;
            interface.driver = Some("ixgbe".into());
        }
        record
    }

    fn test(name: &str, link_mbit: u64, rate_bps: f64, kernel: &str) -> Vec<OverLink> {
        let record = record(link_mbit, rate_bps, kernel);
        over_link(name, &Evidence::of(&record), &[])
    }

    fn of(tests: &[Vec<OverLink>; 2]) -> Vec<Finding> {
        together(&tests.concat())
    }

    #[test]
    fn the_same_share_on_two_links_points_at_software() {
        let found = of(&[
            test("ten.json", 10_000, 1.8e9, "042stab059.7"),
            test("one.json", 1000, 185e6, "042stab059.7"),
        ]);
        assert_eq!(found.len(), 1);
        let said = &found[0].sentence;
        assert!(
            said.contains("18 % of 10.0 Gbit/s (ten.json)") && said.contains("(one.json)"),
            "{said}"
        );
        assert!(said.contains("Linux 042stab059.7 in both"), "{said}");
        assert_eq!(found[0].figures.len(), 6);
    }

    #[test]
    fn it_needs_two_links_that_are_both_slow_and_software_in_common() {
        let ten = || test("ten.json", 10_000, 1.8e9, "a");
        for other in [
            // The same rate, which a window or a CPU gives.
            test("one.json", 2500, 1.8e9, "a"),
            // A healthy link.
            test("one.json", 1000, 940e6, "a"),
            // The same link again.
            test("again.json", 10_000, 1.8e9, "a"),
            // Nothing in common.
            test("one.json", 1000, 185e6, "b"),
        ] {
            assert_eq!(of(&[ten(), other]), []);
        }
    }

    #[test]
    fn a_test_that_something_else_explains_does_not_count() {
        let record = record(10_000, 1.8e9, "a");
        let evidence = Evidence::of(&record);
        let window = Finding::new("receive-window", Severity::Limit, String::new());
        assert_eq!(over_link("a", &evidence, std::slice::from_ref(&window)), []);
        assert_eq!(over_link("a", &evidence, &[]).len(), 1);
    }
}
