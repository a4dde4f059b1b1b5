//! Roll-outs over made-up nodes that lose their link, go slow or die, with a driver that is killed.

use linerate_watch::roll_out::{
    Action, Beginning, Entry, Found, JOURNAL_VERSION, JournalError, Member, Plan, RollOut,
    Settings, line, read,
};
use linerate_watch::roll_out::{BothWays, LastKnown, NodeOutcome};
use proptest::prelude::*;

use crate::simulated::Dice;

/// What a node really has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    Old,
    /// The new settings; its rollback waits.
    Waiting,
    Confirmed,
}

/// How a node takes the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Good,
    /// It refuses while applying.
    CannotApply,
    /// Nothing reaches it with the new settings.
    LosesItsLink,
    /// It is slower with the new settings.
    Slower,
    /// Answers get lost now and then.
    Flaky,
    /// It dies with the change and never comes back.
    Dies,
}

const KINDS: [Kind; 10] = [
    Kind::Good,
    Kind::Good,
    Kind::Good,
    Kind::Good,
    Kind::Good,
    Kind::CannotApply,
    Kind::LosesItsLink,
    Kind::Slower,
    Kind::Flaky,
    Kind::Dies,
];

struct World {
    kinds: Vec<Kind>,
    truth: Vec<Truth>,
    dead: Vec<bool>,
    dice: Dice,
}

impl World {
    fn new(kinds: Vec<Kind>, seed: u64) -> Self {
        let count = kinds.len();
        Self {
            kinds,
            truth: vec![Truth::Old; count],
            dead: vec![false; count],
            dice: Dice(seed),
        }
    }

    fn chance(&mut self, share: f64) -> bool {
        self.dice.unit() < share
    }

    /// The rollback of a node runs at its deadline.
    fn deadline(&mut self, node: usize) {
        if self.truth[node] == Truth::Waiting {
            self.truth[node] = Truth::Old;
        }
    }

    fn reachable(&self, node: usize) -> bool {
        let cut_off = self.kinds[node] == Kind::LosesItsLink && self.truth[node] != Truth::Old;
        !self.dead[node] && !cut_off
    }

    fn goodput(&self, node: usize, neighbours: &[usize]) -> Vec<BothWays> {
        let slow = self.kinds[node] == Kind::Slower && self.truth[node] != Truth::Old;
        let rate = if slow { 5e9 } else { 9e9 };
        neighbours
            .iter()
            .map(|_| BothWays {
                out_bps: Some(rate),
                in_bps: Some(9e9),
            })
            .collect()
    }

    /// Acts, and returns the answer.
    fn act(&mut self, action: &Action) -> Option<Entry> {
        let node = action.node()?;
        let lost = || {
            Some(Entry::Lost {
                node,
                why: "timed out".into(),
            })
        };
        if !self.reachable(node) {
            if matches!(action, Action::RollBack { .. } | Action::Check { .. }) {
                // The driver waits until the node's own rollback has run.
                self.deadline(node);
            }
            if !self.reachable(node) {
                return lost();
            }
        }
        let answer = match action {
            Action::Batch { .. } => return None,
            Action::Measure { neighbours, .. } => Entry::Measured {
                node,
                goodput: self.goodput(node, neighbours),
            },
            Action::Apply { .. } if self.kinds[node] == Kind::CannotApply => Entry::NotApplied {
                node,
                why: "the driver has no such ring".into(),
            },
            Action::Apply { .. } => {
                self.truth[node] = Truth::Waiting;
                self.dead[node] = self.kinds[node] == Kind::Dies;
                if self.dead[node] {
                    return lost();
                }
                Entry::Applied {
                    node,
                    set: "20261125-1".into(),
                }
            }
            Action::Reconnect { .. } => Entry::Reconnected { node },
            Action::Test { neighbours, .. } => Entry::Tested {
                node,
                goodput: self.goodput(node, neighbours),
            },
            Action::Confirm { .. } if self.truth[node] == Truth::Waiting => {
                self.truth[node] = Truth::Confirmed;
                Entry::Confirmed { node }
            }
            Action::Confirm { .. } => Entry::NotConfirmed {
                node,
                why: "nothing waits".into(),
            },
            Action::Check { .. } => Entry::Found {
                node,
                settings: match self.truth[node] {
                    Truth::Old => Found::Old,
                    Truth::Waiting => Found::Waiting,
                    Truth::Confirmed => Found::Confirmed,
                },
            },
            Action::RollBack { .. } => {
                self.truth[node] = Truth::Old;
                Entry::RolledBack { node }
            }
        };
        if self.kinds[node] == Kind::Flaky && self.chance(0.3) {
            return lost();
        }
        Some(answer)
    }
}

fn settings(canary: usize, batch: usize, max_failures: usize) -> Settings {
    Settings {
        canary,
        prove: true,
        batch,
        one_per_group: false,
        max_failures,
        tolerance: 0.1,
    }
}

fn member(place: usize, plan: Plan) -> Member {
    Member {
        name: format!("node{place:02}").into(),
        group: Some(format!("rack{}", place % 3).into()),
        plan,
    }
}

fn beginning(count: usize, settings: Settings) -> Beginning {
    Beginning {
        version: JOURNAL_VERSION,
        profile: "10g-wan".into(),
        started_unix_s: 0,
        settings,
        nodes: (0..count)
            .map(|place| member(place, Plan::Changes { count: 3 }))
            .collect(),
    }
}

/// The journal as it is on disk; a driver that is killed writes no further line.
struct Disk {
    text: String,
    lines_left: usize,
}

impl Disk {
    /// Whether the line was written.
    fn write(&mut self, entry: &Entry) -> bool {
        let line = line(entry);
        if self.lines_left == 0 {
            self.text.push_str(&line[..line.len() / 2]);
            return false;
        }
        self.lines_left -= 1;
        self.text.push_str(&line);
        true
    }
}

fn begins_something(action: &Action) -> bool {
    matches!(
        action,
        Action::Batch { .. } | Action::Measure { .. } | Action::Apply { .. }
    )
}

/// Drives until the end or until it is killed; says whether it ended.
fn drive(roll_out: &mut RollOut, world: &mut World, disk: &mut Disk, most: Settings) -> bool {
    let mut under_way: Vec<Action> = Vec::new();
    for _ in 0..5_000 {
        let action = roll_out.poll_action();
        if let Some(action) = action.filter(|_| under_way.is_empty() || world.chance(0.5)) {
            assert!(
                roll_out.failures() < most.max_failures || !begins_something(&action),
                "{action:?}"
            );
            let entry = Entry::Begun(action.clone());
            if !disk.write(&entry) {
                killed(world, &under_way);
                return false;
            }
            roll_out.handle(&entry).unwrap();
            assert!(
                roll_out.in_flight() <= most.batch,
                "{}",
                roll_out.in_flight()
            );
            if action.node().is_some() {
                under_way.push(action);
            }
            continue;
        }
        if under_way.is_empty() {
            assert!(
                roll_out.has_ended(),
                "nothing to do, and not at its end: {:?}",
                roll_out.table()
            );
            return true;
        }
        let action = under_way.swap_remove(world.dice.below(under_way.len()));
        let node = action.node().unwrap();
        if world.chance(0.03) {
            world.deadline(node);
        }
        let answer = world.act(&action).unwrap();
        if !disk.write(&answer) {
            killed(world, &under_way);
            return false;
        }
        roll_out.handle(&answer).unwrap();
    }
    panic!("it does not end");
}

/// What was under way may have reached its node or not; time passes.
fn killed(world: &mut World, under_way: &[Action]) {
    for action in under_way {
        if world.chance(0.5) {
            world.act(action);
        }
    }
    for node in 0..world.truth.len() {
        if world.chance(0.3) {
            world.deadline(node);
        }
    }
}

/// Every node is old or confirmed, and the table says which.
fn check(roll_out: &RollOut, world: &mut World) {
    for node in 0..world.truth.len() {
        // A rollback that waits runs in the end, with nobody's help.
        world.deadline(node);
    }
    let table = roll_out.table();
    for (row, truth) in table.rows.iter().zip(&world.truth) {
        let right = match &row.outcome {
            NodeOutcome::Changed => *truth == Truth::Confirmed,
            NodeOutcome::Unreachable {
                has: LastKnown::OldOrConfirmed,
                ..
            } => *truth != Truth::Waiting,
            _ => *truth == Truth::Old,
        };
        assert!(right, "{truth:?}, but {row:?}");
    }
}

/// Some nodes with their kinds, and how to roll out over them.
fn cases() -> impl Strategy<Value = (Vec<Kind>, Settings, u64)> {
    let kinds = proptest::collection::vec(0..KINDS.len(), 1..12);
    let kinds = kinds.prop_map(|kinds| {
        kinds
            .into_iter()
            .map(|kind| KINDS[kind])
            .collect::<Vec<_>>()
    });
    let how = (0_usize..3, 1_usize..5, 1_usize..4);
    (kinds, how, any::<u64>()).prop_map(|(kinds, (canary, batch, most), seed)| {
        (kinds, settings(canary, batch, most), seed)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_run_leaves_each_node_old_or_confirmed((kinds, settings, seed) in cases()) {
        let mut world = World::new(kinds.clone(), seed);
        let mut roll_out = RollOut::new(beginning(kinds.len(), settings));
        let mut disk = Disk { text: String::new(), lines_left: usize::MAX };
        prop_assert!(drive(&mut roll_out, &mut world, &mut disk, settings));
        check(&roll_out, &mut world);
    }

    #[test]
    fn a_run_killed_at_any_line_goes_on_or_back((kinds, settings, seed) in cases()) {
        let whole = {
            let mut disk = Disk { text: String::new(), lines_left: usize::MAX };
            drive(&mut RollOut::new(beginning(kinds.len(), settings)), &mut World::new(kinds.clone(), seed), &mut disk, settings);
            disk.text.lines().count()
        };
        for lines in 0..=whole {
            for back in [false, true] {
                killed_and_resumed(&kinds, settings, seed, lines, back);
            }
        }
    }
}

/// A run that is killed after some lines, again a few lines later, and then ends.
fn killed_and_resumed(kinds: &[Kind], settings: Settings, seed: u64, lines: usize, back: bool) {
    let mut world = World::new(kinds.to_vec(), seed);
    let first = Entry::Beginning(beginning(kinds.len(), settings));
    let mut disk = Disk {
        text: line(&first),
        lines_left: lines,
    };
    let mut roll_out = RollOut::new(beginning(kinds.len(), settings));
    let mut ended = drive(&mut roll_out, &mut world, &mut disk, settings);
    for more in [5, usize::MAX] {
        if ended {
            break;
        }
        let journal = read(&disk.text).unwrap();
        disk.text.truncate(journal.bytes);
        roll_out = RollOut::of_journal(&journal).unwrap();
        let resumed = Entry::Resumed { back };
        disk.lines_left = more;
        assert!(disk.write(&resumed));
        roll_out.handle(&resumed).unwrap();
        ended = drive(&mut roll_out, &mut world, &mut disk, settings);
    }
    assert!(ended);
    check(&roll_out, &mut world);
    if back && lines < usize::MAX {
        let resumed = disk.text.contains("resumed");
        let reachable =
            (0..kinds.len()).filter(|&node| world.reachable(node) && kinds[node] != Kind::Flaky);
        for node in reachable.filter(|_| resumed) {
            assert_eq!(
                world.truth[node],
                Truth::Old,
                "node {node} after going back"
            );
        }
    }
}

fn run(kinds: &[Kind], settings: Settings) -> (RollOut, World, Vec<Entry>) {
    let mut world = World::new(kinds.to_vec(), 1);
    let mut roll_out = RollOut::new(beginning(kinds.len(), settings));
    let mut disk = Disk {
        text: String::new(),
        lines_left: usize::MAX,
    };
    assert!(drive(&mut roll_out, &mut world, &mut disk, settings));
    (roll_out, world, read(&disk.text).unwrap().entries)
}

#[test]
fn a_canary_that_fails_stops_everything() {
    let (roll_out, world, _) = run(
        &[Kind::LosesItsLink, Kind::Good, Kind::Good],
        settings(1, 2, 3),
    );
    let table = roll_out.table();
    assert!(
        matches!(table.rows[0].outcome, NodeOutcome::RolledBack { .. }),
        "{table:?}"
    );
    assert!(
        matches!(&table.rows[1].outcome, NodeOutcome::NotReached { why } if why.contains("node00"))
    );
    assert_eq!(world.truth, [Truth::Old; 3]);
}

#[test]
fn canaries_prove_themselves_and_batches_follow() {
    let (roll_out, _, entries) = run(&[Kind::Good; 7], settings(1, 3, 1));
    assert!(
        roll_out
            .table()
            .rows
            .iter()
            .all(|row| row.outcome == NodeOutcome::Changed)
    );
    let batches: Vec<(usize, bool)> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Begun(Action::Batch { nodes, canary }) => Some((nodes.len(), *canary)),
            _ => None,
        })
        .collect();
    assert_eq!(batches, [(1, true), (3, false), (3, false)]);
    let proved = entries
        .iter()
        .filter(|entry| matches!(entry, Entry::Begun(Action::Apply { prove: true, .. })));
    assert_eq!(proved.count(), 1);
    assert_eq!(
        roll_out.table().rows[1].tests.len(),
        3,
        "two untouched neighbours and a changed one"
    );
}

#[test]
fn a_slower_node_goes_back_with_the_reason() {
    let (roll_out, world, _) = run(&[Kind::Good, Kind::Slower, Kind::Good], settings(0, 1, 2));
    let table = roll_out.table();
    assert!(
        matches!(&table.rows[1].outcome, NodeOutcome::RolledBack { why } if why.contains("to a neighbour 44 % slower")),
        "{table:?}"
    );
    assert_eq!(table.rows[2].outcome, NodeOutcome::Changed);
    assert_eq!(
        world.truth,
        [Truth::Confirmed, Truth::Old, Truth::Confirmed]
    );
    assert_eq!(table.rows[1].tests[0].after.unwrap().out_bps, Some(5e9));
}

#[test]
fn a_batch_has_one_node_of_each_group() {
    let mut how = settings(0, 6, 1);
    how.one_per_group = true;
    let roll_out = RollOut::new(beginning(7, how));
    assert_eq!(
        roll_out.poll_action(),
        Some(Action::Batch {
            nodes: vec![0, 1, 2],
            canary: false
        })
    );
}

#[test]
fn nodes_that_need_or_allow_no_change_are_left_alone() {
    let mut beginning = beginning(3, settings(0, 2, 1));
    beginning.nodes[0].plan = Plan::AlreadySo;
    beginning.nodes[1].plan = Plan::Refused {
        why: "the driver has no such ring".into(),
    };
    beginning.nodes[2].plan = Plan::Unreachable {
        why: "no route to host".into(),
    };
    let roll_out = RollOut::new(beginning);
    assert!(roll_out.has_ended() && roll_out.poll_action().is_none());
    assert_eq!(
        roll_out
            .refused()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        ["node01"]
    );
    let table = roll_out.table();
    assert!(matches!(
        table.rows[2].outcome,
        NodeOutcome::Unreachable {
            has: LastKnown::Old,
            ..
        }
    ));
}

#[test]
fn a_stop_lets_what_was_begun_end() {
    let how = settings(0, 1, 1);
    let mut world = World::new(vec![Kind::Good; 3], 1);
    let mut roll_out = RollOut::new(beginning(3, how));
    let mut disk = Disk {
        text: String::new(),
        lines_left: usize::MAX,
    };
    for _ in 0..3 {
        let action = roll_out.poll_action().unwrap();
        roll_out.handle(&Entry::Begun(action.clone())).unwrap();
        if let Some(answer) = world.act(&action) {
            roll_out.handle(&answer).unwrap();
        }
    }
    assert_eq!(world.truth[0], Truth::Waiting);
    roll_out
        .handle(&Entry::Stopped {
            why: "interrupted".into(),
        })
        .unwrap();
    assert!(drive(&mut roll_out, &mut world, &mut disk, how));
    assert_eq!(world.truth, [Truth::Confirmed, Truth::Old, Truth::Old]);
}

#[test]
fn a_journal_that_is_not_ours_is_refused() {
    let first = line(&Entry::Beginning(beginning(1, settings(0, 1, 1))));
    let read_all = |text: &str| read(text).and_then(|journal| RollOut::of_journal(&journal));
    assert!(matches!(read_all(""), Err(JournalError::Empty)));
    assert!(matches!(
        read_all(&first[..first.len() - 1]),
        Err(JournalError::Empty)
    ));
    assert!(read_all(&first).is_ok());
    assert!(
        read_all(&format!("{first}{{\"entry\":\"beg")).is_ok(),
        "a torn line is ignored"
    );
    assert!(matches!(
        read_all(&format!("{first}rubbish\n")),
        Err(JournalError::Damaged { line: 2, .. })
    ));
    let confirmed = line(&Entry::Confirmed { node: 0 });
    assert!(matches!(
        read_all(&format!("{first}{confirmed}")),
        Err(JournalError::Misplaced { line: 2, .. })
    ));
    let nowhere = line(&Entry::Begun(Action::Confirm { node: 9 }));
    assert!(matches!(
        read_all(&format!("{first}{nowhere}")),
        Err(JournalError::Misplaced { line: 2, .. })
    ));
    let newer = first.replacen("\"version\":1", "\"version\":2", 1);
    assert!(matches!(
        read_all(&newer),
        Err(JournalError::Newer { found: 2 })
    ));
}

#[test]
fn every_line_reads_back() {
    let (_, _, entries) = run(
        &[Kind::Good, Kind::Slower, Kind::CannotApply, Kind::Dies],
        settings(0, 2, 4),
    );
    for entry in entries {
        let text = line(&entry);
        assert_eq!(text.matches('\n').count(), 1);
        assert_eq!(read(&text).unwrap().entries, [entry]);
    }
}
