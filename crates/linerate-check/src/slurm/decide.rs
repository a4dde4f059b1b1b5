//! What is done about a node: pure, from what its checks found and what the controller says of all nodes.

use linerate_model::check::{Act, Held, Idle};
use linerate_model::units::Nanos;
use linerate_model::watch::UnixMillis;

use super::nodes::Node;
use super::reason::{PREFIX, Reason, same_check};
use crate::memory::Drained;
use crate::settings::SlurmLaw;

/// A drain whose signature was not read yet is known again by its reason and by a time that is so near.
const ABOUT: Nanos = Nanos::from_millis(120_000);

/// All that is known when it is decided.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The node, by its name at the controller.
    pub node: &'a str,
    /// All nodes, as the controller says.
    pub nodes: &'a [Node],
    /// The reason to drain it, where there is one, and since when the check fails.
    pub wanted: Option<(&'a Reason, UnixMillis)>,
    /// The drain that an earlier run made.
    pub drained: Option<&'a Drained>,
    /// For how many runs its checks have been well.
    pub well_for: usize,
    /// How Slurm is dealt with.
    pub law: &'a SlurmLaw,
}

/// Decides. The node is drained only where it takes work, has no reason of anybody, and neither the cap nor a shared cause holds it
/// back; it is resumed only where everything that an earlier run set stands as it was.
pub fn decide(case: &Case<'_>) -> Act {
    let Some(node) = of(case) else {
        return Act::Unknown {
            why: format!("the controller says nothing of a node {}", case.node).into(),
        };
    };
    if node.state.is_drained() {
        return Act::Nothing {
            why: match case.drained {
                Some(drained) if is_ours(node, drained) => match of_ours(case, node, drained) {
                    None => return Act::Resume,
                    Some(why) => why,
                },
                Some(_) => Idle::TakenOver,
                None => Idle::Foreign,
            },
        };
    }
    let Some((reason, since)) = case.wanted else {
        return Act::Nothing { why: Idle::Well };
    };
    if !node.state.takes_work() {
        return Act::Nothing {
            why: Idle::OtherState,
        };
    }
    if node.reason.is_some() {
        return Act::Nothing { why: Idle::Foreign };
    }
    let reason_text = reason.text.as_str().into();
    match held(case, node, reason, since, |_| true) {
        Some(held) => Act::Hold {
            held,
            reason: reason_text,
        },
        None => Act::Drain {
            reason: reason_text,
        },
    }
}

/// Why a node that is drained by us stays so; `None`: it takes work again.
fn of_ours(case: &Case<'_>, node: &Node, drained: &Drained) -> Option<Idle> {
    if case.wanted.is_some() {
        return Some(Idle::StillFailing);
    }
    if case.well_for < usize::from(case.law.resume_after) {
        return Some(Idle::NotYetWell);
    }
    if !(drained.resume && case.law.resume) {
        return Some(Idle::ResumedByHand);
    }
    node.state.reboots().then_some(Idle::RebootPending)
}

/// After this node was drained: whether so many others were drained before it, at the same time, that its drain has to be taken
/// back. Every node that asks goes by the same order, so that not all of them give way.
pub fn after_drain(case: &Case<'_>) -> Option<Held> {
    let node = of(case)?;
    let (reason, since) = case.wanted?;
    let place = |node: &Node| (node.since(), node.name.clone());
    let own = place(node);
    held(case, node, reason, since, |other| place(other) < own)
}

fn of<'a>(case: &Case<'a>) -> Option<&'a Node> {
    case.nodes.iter().find(|node| node.name == case.node)
}

/// Whether what stands at the controller is what this run's predecessor set.
fn is_ours(node: &Node, drained: &Drained) -> bool {
    if node.reason.as_deref() != Some(drained.reason.as_str()) {
        return false;
    }
    match &drained.signed {
        Some((user, time)) => *user == node.user && *time == node.time,
        None => node.since().is_some_and(|since| {
            let apart = since.0.abs_diff(drained.at.0);
            apart <= ABOUT.0 / 1_000_000
        }),
    }
}

/// Why the node is not to be drained beside those others that count.
fn held(
    case: &Case<'_>,
    node: &Node,
    reason: &Reason,
    since: UnixMillis,
    counts: impl Fn(&Node) -> bool,
) -> Option<Held> {
    let ours = |other: &&Node| {
        let reason = other.reason.as_deref().unwrap_or_default();
        other.name != node.name
            && other.state.is_drained()
            && reason.starts_with(PREFIX)
            && counts(other)
    };
    let others: Vec<&Node> = case.nodes.iter().filter(ours).collect();
    let within = case.law.shared_within.0 / 1_000_000;
    let shared = others.iter().filter(|other| {
        let near = |at: UnixMillis| at.0.abs_diff(since.0) <= within;
        same_check(other.reason.as_deref(), &reason.tag) && other.since().is_none_or(near)
    });
    let shared = shared.count() as u64;
    if shared + 1 >= case.law.shared {
        return Some(Held::Shared { others: shared });
    }
    let partitions = node.partitions.iter().filter_map(|partition| {
        let is_in = |other: &&Node| other.partitions.contains(partition);
        let of = case.nodes.iter().filter(is_in).count();
        let drained = others.iter().copied().filter(is_in).count() as u64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a number of nodes"
        )]
        let most = ((of as f64 * case.law.cap_percent / 100.0) as u64).max(1);
        (drained >= most).then_some(Held::Cap {
            drained,
            most,
            of: of as u64,
        })
    });
    partitions.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::super::nodes::NodeState;
    use super::*;

    const NOW: &str = "2026-11-27T10:00:00";

    fn now() -> UnixMillis {
        linerate_model::calendar::moment(NOW).unwrap()
    }

    fn node(name: &str, state: &str, reason: Option<&str>) -> Node {
        Node {
            name: name.to_owned(),
            state: NodeState::new(state),
            reason: reason.map(str::to_owned),
            user: "root".to_owned(),
            time: NOW.to_owned(),
            partitions: vec!["main".to_owned()],
        }
    }

    fn idle(count: usize) -> Vec<Node> {
        (1..=count)
            .map(|number| node(&format!("n{number}"), "idle", None))
            .collect()
    }

    fn reason() -> Reason {
        Reason {
            text: "LR:mount/home no answer".to_owned(),
            tag: "mount/home".to_owned(),
        }
    }

    fn drained() -> Drained {
        Drained {
            reason: reason().text,
            signed: Some(("root".to_owned(), NOW.to_owned())),
            at: now(),
            checks: vec!["mount /home".to_owned()],
            resume: true,
        }
    }

    /// Decides about n1, which fails.
    fn failing(nodes: &[Node]) -> Act {
        let (law, reason) = (SlurmLaw::default(), reason());
        decide(&Case {
            node: "n1",
            nodes,
            wanted: Some((&reason, now())),
            drained: None,
            well_for: 0,
            law: &law,
        })
    }

    /// Decides about n1, which an earlier run has drained and which has been well for so many runs.
    fn well(node: Node, well_for: usize, drained: &Drained) -> Act {
        decide(&Case {
            node: "n1",
            nodes: &[node],
            wanted: None,
            drained: Some(drained),
            well_for,
            law: &SlurmLaw::default(),
        })
    }

    #[test]
    fn a_node_that_takes_work_is_drained_and_no_other() {
        assert!(matches!(failing(&idle(3)), Act::Drain { .. }));
        for (state, reason, why) in [
            ("drained", Some("admin: disk"), Idle::Foreign),
            ("drained", None, Idle::Foreign),
            ("idle", Some("look at me"), Idle::Foreign),
            ("down*", None, Idle::OtherState),
            ("maint", None, Idle::OtherState),
            ("idle@", None, Idle::OtherState),
        ] {
            let mut nodes = idle(3);
            nodes[0] = node("n1", state, reason);
            assert_eq!(failing(&nodes), Act::Nothing { why }, "{state} {reason:?}");
        }
        assert!(matches!(failing(&[]), Act::Unknown { .. }));
        assert!(matches!(failing(&idle(3)[1..]), Act::Unknown { .. }));
    }

    #[test]
    fn the_cap_is_a_share_of_the_partition_and_at_least_one() {
        let with = |all: usize, gone: usize, reason: &str| {
            let mut nodes = idle(all);
            for node in &mut nodes[1..=gone] {
                node.state = NodeState::new("drained");
                node.reason = Some(reason.to_owned());
            }
            failing(&nodes)
        };
        let held = |act: &Act| match act {
            Act::Hold { held, .. } => Some(*held),
            _ => None,
        };
        assert!(matches!(with(5, 0, ""), Act::Drain { .. }));
        let cap = Held::Cap {
            drained: 1,
            most: 1,
            of: 5,
        };
        assert_eq!(held(&with(5, 1, "LR:md x")), Some(cap));
        // What people drained does not count.
        assert!(matches!(with(5, 3, "admin"), Act::Drain { .. }));
        assert!(matches!(with(40, 3, "LR:md x"), Act::Drain { .. }));
        assert!(held(&with(40, 4, "LR:md x")).is_some());
        // Two others with the same check, though the cap is far.
        assert!(matches!(with(100, 1, "LR:mount/home y"), Act::Drain { .. }));
        let shared = Held::Shared { others: 2 };
        assert_eq!(held(&with(100, 2, "LR:mount/home y")), Some(shared));
    }

    #[test]
    fn nodes_that_failed_long_ago_share_no_cause() {
        let mut nodes = idle(100);
        for node in &mut nodes[1..=2] {
            node.state = NodeState::new("drained");
            node.reason = Some("LR:mount/home y".to_owned());
            node.time = "2026-11-27T09:49:00".to_owned();
        }
        assert!(matches!(failing(&nodes), Act::Drain { .. }));
        nodes[1].time = "2026-11-27T09:51:00".to_owned();
        nodes[2].time = "2026-11-27T10:09:00".to_owned();
        assert!(matches!(failing(&nodes), Act::Hold { .. }));
    }

    #[test]
    fn of_nodes_that_drained_at_once_the_first_stay() {
        let (law, reason) = (SlurmLaw::default(), reason());
        let mut nodes = idle(3);
        for node in &mut nodes {
            node.state = NodeState::new("drained");
            node.reason = Some(reason.text.clone());
        }
        let gives_way = |name: &str, nodes: &[Node]| {
            after_drain(&Case {
                node: name,
                nodes,
                wanted: Some((&reason, now())),
                drained: None,
                well_for: 0,
                law: &law,
            })
            .is_some()
        };
        assert!(!gives_way("n1", &nodes));
        assert!(gives_way("n2", &nodes) && gives_way("n3", &nodes));
        nodes[2].time = "2026-11-27T09:59:59".to_owned();
        assert!(!gives_way("n3", &nodes));
        assert!(gives_way("n1", &nodes) && gives_way("n2", &nodes));
    }

    #[test]
    fn only_what_stands_as_it_was_set_is_resumed() {
        let ours = || node("n1", "drained", Some(&reason().text));
        let nothing = |why| Act::Nothing { why };
        assert_eq!(well(ours(), 3, &drained()), Act::Resume);
        assert_eq!(well(ours(), 2, &drained()), nothing(Idle::NotYetWell));
        let mut by_hand = drained();
        by_hand.resume = false;
        assert_eq!(well(ours(), 9, &by_hand), nothing(Idle::ResumedByHand));
        for change in [
            |node: &mut Node| {
                node.reason = Some("LR:mount/home no answer, see ticket 7".to_owned());
            },
            |node: &mut Node| node.reason = None,
            |node: &mut Node| node.user = "alice".to_owned(),
            |node: &mut Node| node.time = "2026-11-27T10:00:01".to_owned(),
        ] {
            let mut changed = ours();
            change(&mut changed);
            assert_eq!(well(changed, 9, &drained()), nothing(Idle::TakenOver));
        }
        let mut reboots = ours();
        reboots.state = NodeState::new("drained@");
        assert_eq!(well(reboots, 9, &drained()), nothing(Idle::RebootPending));
        // Somebody has resumed it already.
        assert_eq!(
            well(node("n1", "idle", None), 9, &drained()),
            nothing(Idle::Well)
        );
    }

    #[test]
    fn a_drain_whose_signature_was_not_read_is_known_by_its_reason_and_time() {
        let mut unread = drained();
        unread.signed = None;
        let mut found = node("n1", "drained", Some(&reason().text));
        assert_eq!(well(found.clone(), 3, &unread), Act::Resume);
        found.time = "2026-11-27T10:03:00".to_owned();
        let taken = Act::Nothing {
            why: Idle::TakenOver,
        };
        assert_eq!(well(found, 3, &unread), taken);
    }
}
