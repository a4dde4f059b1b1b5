//! Apply and restore on hosts in memory that refuse, round, ignore, forget, or die at any call.

use std::collections::BTreeMap;

use linerate_model::audit::Risk;
use linerate_model::change_set::{Probe, Restored, SetState};
use linerate_model::tuning::{InterfaceSetting, Object, Refusal, SCHEMA_VERSION, Step, TuningPlan};
use linerate_model::units::Nanos;
use linerate_tune::apply::{
    Cause, Failed, Journal, Order, Permissions, Surroundings, apply, objections, snapshot,
};
use linerate_tune::journal::{ChangeSet, Entry, Rollback, Snapshot, line};
use linerate_tune::restore::{Drifted, restore};
use linerate_tune::settings::{Saved, SettingError, Settings};
use proptest::prelude::*;

/// What a setting does with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Takes,
    Refuses,
    Rounds,
    Ignores,
    /// Setting it sets the one before it to something else, as a driver that makes its queues anew.
    Upsets,
}

/// A host in memory. With `calls_left` it is the process that dies: from then on every call fails and changes nothing.
#[derive(Debug, Clone)]
struct Memory {
    values: BTreeMap<String, (String, String)>,
    manners: BTreeMap<String, Manner>,
    journal: String,
    /// Lines that the disk still takes.
    room: usize,
    calls_left: usize,
    lost: Option<&'static str>,
    now: Nanos,
}

fn sysctl(key: &str) -> Object {
    Object::Sysctl {
        key: key.to_owned(),
    }
}

fn step(key: &str, wanted: &str) -> Step {
    Step {
        object: sysctl(key),
        now: String::new(),
        wanted: wanted.to_owned(),
        risk: Risk::None,
        owners: Vec::new(),
        programs: Vec::new(),
        warnings: Vec::new(),
        from: "p.toml:1".to_owned(),
    }
}

impl Memory {
    fn new(values: &[(&str, &str)]) -> Self {
        Self {
            values: values
                .iter()
                .map(|(key, value)| {
                    (
                        (*key).to_owned(),
                        ((*value).to_owned(), "detail".to_owned()),
                    )
                })
                .collect(),
            manners: BTreeMap::new(),
            journal: String::new(),
            room: usize::MAX,
            calls_left: usize::MAX,
            lost: None,
            now: Nanos(0),
        }
    }

    fn with(mut self, key: &str, manner: Manner) -> Self {
        self.manners.insert(key.to_owned(), manner);
        self
    }

    fn alive(&mut self, object: &Object) -> Result<(), SettingError> {
        self.lives().map_err(|reason| refusal(object, &reason))
    }

    fn lives(&mut self) -> Result<(), String> {
        if self.calls_left == 0 {
            return Err("killed".to_owned());
        }
        self.calls_left -= 1;
        Ok(())
    }

    fn value(&self, key: &str) -> &str {
        &self.values[key].0
    }

    fn set(&self) -> ChangeSet {
        ChangeSet::parse(&self.journal).unwrap()
    }
}

fn refusal(object: &Object, reason: &str) -> SettingError {
    SettingError {
        doing: "set",
        object: object.clone(),
        value: None,
        reason: reason.to_owned(),
    }
}

impl Settings for Memory {
    fn read(&mut self, object: &Object) -> Result<String, SettingError> {
        Ok(self.save(object)?.value)
    }

    fn save(&mut self, object: &Object) -> Result<Saved, SettingError> {
        self.alive(object)?;
        let found = self.values.get(&object.to_string());
        let (value, detail) = found.cloned().ok_or_else(|| refusal(object, "not there"))?;
        Ok(Saved { value, detail })
    }

    fn write(&mut self, object: &Object, value: &str) -> Result<(), SettingError> {
        self.alive(object)?;
        let key = object.to_string();
        let manner = self.manners.get(&key).copied().unwrap_or(Manner::Takes);
        let taken = match manner {
            Manner::Refuses => return Err(refusal(object, "not supported")),
            Manner::Ignores => return Ok(()),
            Manner::Rounds => format!("{value}0"),
            Manner::Takes | Manner::Upsets => value.to_owned(),
        };
        let before = self.values.range_mut(..key.clone()).next_back();
        if let (Manner::Upsets, Some((_, before))) = (manner, before) {
            *before = ("upset".to_owned(), "other".to_owned());
        }
        self.values.insert(key, (taken, "ours".to_owned()));
        Ok(())
    }

    fn restore(&mut self, object: &Object, saved: &Saved) -> Result<(), SettingError> {
        self.alive(object)?;
        let value = (saved.value.clone(), saved.detail.clone());
        self.values.insert(object.to_string(), value);
        Ok(())
    }
}

/// A host that restores in a way of its own, and else is the one it is made of.
struct Restores<S, R>(S, R);

impl<S: Settings, R: FnMut(&mut S, &Object, &Saved) -> Result<(), SettingError>> Settings
    for Restores<S, R>
{
    fn read(&mut self, object: &Object) -> Result<String, SettingError> {
        self.0.read(object)
    }
    fn save(&mut self, object: &Object) -> Result<Saved, SettingError> {
        self.0.save(object)
    }
    fn write(&mut self, object: &Object, value: &str) -> Result<(), SettingError> {
        self.0.write(object, value)
    }
    fn restore(&mut self, object: &Object, saved: &Saved) -> Result<(), SettingError> {
        (self.1)(&mut self.0, object, saved)
    }
}

/// One setting cannot be restored.
fn all_but_one(host: &mut Memory, object: &Object, saved: &Saved) -> Result<(), SettingError> {
    if object.to_string() == "b.two" {
        return Err(refusal(object, "no such device"));
    }
    host.restore(object, saved)
}

/// The half that is the process and its disk.
struct World<'a>(&'a mut Memory);

/// Settings and surroundings are one host: the test hands out both.
struct Shared(std::rc::Rc<std::cell::RefCell<Memory>>);

impl Settings for Shared {
    fn read(&mut self, object: &Object) -> Result<String, SettingError> {
        self.0.borrow_mut().read(object)
    }
    fn save(&mut self, object: &Object) -> Result<Saved, SettingError> {
        self.0.borrow_mut().save(object)
    }
    fn write(&mut self, object: &Object, value: &str) -> Result<(), SettingError> {
        self.0.borrow_mut().write(object, value)
    }
    fn restore(&mut self, object: &Object, saved: &Saved) -> Result<(), SettingError> {
        self.0.borrow_mut().restore(object, saved)
    }
}

impl Journal for Shared {
    fn append(&mut self, entry: &Entry) -> Result<(), String> {
        World(&mut self.0.borrow_mut()).append(entry)
    }
}

impl Journal for World<'_> {
    fn append(&mut self, entry: &Entry) -> Result<(), String> {
        self.0.lives()?;
        if self.0.room == 0 {
            return Err("no space left on device".to_owned());
        }
        self.0.room -= 1;
        self.0.journal.push_str(&line(entry));
        Ok(())
    }
}

impl Surroundings for Shared {
    fn arm(&mut self, _: &Snapshot) -> Result<Rollback, String> {
        self.0.borrow_mut().lives()?;
        Ok(Rollback::Process {
            pid: 1,
            start_ticks: 1,
        })
    }

    fn probe(&mut self) -> Vec<Probe> {
        let lost = self.0.borrow().lost;
        lost.into_iter()
            .map(|what| Probe {
                what: what.to_owned(),
                holds: Some(false),
                seen: "no answer".to_owned(),
            })
            .collect()
    }

    fn now(&mut self) -> Nanos {
        self.0.borrow().now
    }

    fn stopped(&mut self) -> bool {
        false
    }
}

/// Applies steps to a host; gives back the host and how it ended.
fn applied(memory: Memory, steps: &[Step]) -> (Memory, Result<ChangeSet, Box<Failed>>) {
    let cell = std::rc::Rc::new(std::cell::RefCell::new(memory));
    let order = Order {
        id: "one",
        boot_id: "boot",
        network: None,
        root: None,
        now_unix_s: 7,
        confirm_within: Nanos::from_millis(60_000),
        steps,
    };
    let outcome = snapshot(&order, &mut Shared(cell.clone()), Nanos(0))
        .and_then(|snapshot| {
            let entry = Entry::Snapshot(snapshot.clone());
            Shared(cell.clone())
                .append(&entry)
                .map_err(Cause::Snapshot)?;
            Ok(snapshot)
        })
        .map_err(|cause| {
            Box::new(Failed {
                cause,
                set: None,
                unwritten: None,
            })
        })
        .and_then(|snapshot| {
            apply(
                snapshot,
                &mut Shared(cell.clone()),
                &mut Shared(cell.clone()),
            )
            .map(|(set, _)| set)
        });
    (cell.borrow().clone(), outcome)
}

/// What the timer, the boot unit or the user does: reads the journal and restores.
fn restored(memory: Memory, drifted: Drifted) -> (Memory, ChangeSet) {
    let cell = std::rc::Rc::new(std::cell::RefCell::new(memory));
    let mut set = cell.borrow().set();
    let unwritten = restore(
        &mut set,
        "asked for",
        drifted,
        &mut Shared(cell.clone()),
        &mut Shared(cell.clone()),
    );
    assert_eq!(unwritten, None);
    let memory = cell.borrow().clone();
    assert_eq!(memory.set(), set, "the journal tells another story");
    (memory, set)
}

const THREE: [(&str, &str); 3] = [("a.one", "1"), ("b.two", "2"), ("c.three", "3")];

fn three() -> Vec<Step> {
    vec![
        step("a.one", "10"),
        step("b.two", "20"),
        step("c.three", "30"),
    ]
}

#[test]
fn all_is_written_down_before_it_happens() {
    let (memory, outcome) = applied(Memory::new(&THREE), &three());
    assert_eq!(outcome.unwrap().state, SetState::Applied);
    let kinds: Vec<String> = memory
        .journal
        .lines()
        .map(|line| {
            let entry: serde_json::Value = serde_json::from_str(line).unwrap();
            entry["entry"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "snapshot", "armed", "applying", "applied", "applying", "applied", "applying",
            "applied", "complete"
        ]
    );
    assert_eq!(memory.value("c.three"), "30");
}

#[test]
fn what_is_refused_rounded_ignored_or_undone_is_named_and_all_goes_back() {
    for (manner, words) in [
        (Manner::Refuses, "cannot set b.two: not supported"),
        (Manner::Rounds, "b.two was set to 20 and reads 200"),
        (Manner::Ignores, "b.two was set to 20 and reads 2:"),
        (
            Manner::Upsets,
            "a.one was 10 after it was set and reads upset",
        ),
    ] {
        let before = Memory::new(&THREE).with("b.two", manner);
        let (after, outcome) = applied(before.clone(), &three());
        let failed = outcome.unwrap_err();
        assert!(failed.cause.to_string().contains(words), "{}", failed.cause);
        assert_eq!(after.values, before.values, "{manner:?}");
        assert_eq!(failed.set.unwrap().state, SetState::Reverted);
        assert_eq!(after.set().state, SetState::Reverted);
        assert!(after.set().note.contains(words), "{}", after.set().note);
    }
}

#[test]
fn a_lost_gateway_and_a_late_end_take_all_back() {
    let mut before = Memory::new(&THREE);
    before.lost = Some("gateway 192.0.2.1");
    let (after, outcome) = applied(before.clone(), &three());
    let failed = outcome.unwrap_err();
    assert_eq!(failed.cause.to_string(), "gateway 192.0.2.1: no answer");
    assert_eq!(after.values, before.values);

    let mut before = Memory::new(&THREE);
    before.now = Nanos::from_millis(60_001);
    let (after, outcome) = applied(before.clone(), &three());
    assert_eq!(after.values, before.values);
    // The clock of this host stands: the deadline is a minute after 0, and it was over before the first change.
    assert_eq!(outcome.unwrap_err().cause, Cause::Late);
    assert_eq!(after.set().state, SetState::Ended);
}

#[test]
fn a_full_disk_touches_nothing_at_the_snapshot_and_takes_all_back_later() {
    for room in 0..9 {
        let mut before = Memory::new(&THREE);
        before.room = room;
        let (after, outcome) = applied(before.clone(), &three());
        let failed = outcome.unwrap_err();
        assert!(
            failed.cause.to_string().contains("no space"),
            "{room}: {}",
            failed.cause
        );
        assert_eq!(after.values, before.values, "{room}");
        assert_eq!(room == 0, after.journal.is_empty());
        if room == 0 {
            assert!(matches!(failed.cause, Cause::Snapshot(_)));
        } else {
            // The disk does not tell that all is back, and that is said.
            assert!(failed.unwritten.is_some(), "{room}");
        }
    }
}

#[test]
fn what_cannot_be_saved_is_not_changed() {
    let (after, outcome) = applied(Memory::new(&THREE[..2]), &three());
    let failed = outcome.unwrap_err();
    assert!(
        failed.cause.to_string().contains("c.three: not there"),
        "{}",
        failed.cause
    );
    assert_eq!(after.value("a.one"), "1");
    assert!(after.journal.is_empty());
}

#[test]
fn a_revert_leaves_alone_what_somebody_else_set_since() {
    let before = Memory::new(&THREE);
    let (mut memory, _) = applied(before.clone(), &three());
    memory
        .values
        .insert("b.two".to_owned(), ("77".to_owned(), String::new()));
    let (left, set) = restored(memory, Drifted::Leave);
    assert_eq!(set.state, SetState::Unfinished);
    assert_eq!(
        set.fates[1].restored,
        Some(Restored::LeftAlone {
            found: "77".to_owned()
        })
    );
    assert_eq!((left.value("a.one"), left.value("b.two")), ("1", "77"));
    let (forced, set) = restored(left, Drifted::Overwrite);
    assert_eq!(set.state, SetState::Reverted);
    assert_eq!(
        set.fates[1].restored,
        Some(Restored::Overwrote {
            found: "77".to_owned()
        })
    );
    assert_eq!(forced.values, before.values);
}

#[test]
fn a_second_revert_leaves_alone_what_somebody_set_after_the_first() {
    let (mut memory, _) = applied(Memory::new(&THREE), &three());
    let theirs = |value: &str| (value.to_owned(), String::new());
    memory.values.insert("b.two".to_owned(), theirs("77"));
    let (mut left, set) = restored(memory, Drifted::Leave);
    assert_eq!(set.state, SetState::Unfinished);
    left.values.insert("a.one".to_owned(), theirs("88"));
    let (left, set) = restored(left, Drifted::Leave);
    assert_eq!(set.state, SetState::Unfinished);
    assert_eq!((left.value("a.one"), left.value("b.two")), ("88", "77"));
    let (forced, set) = restored(left, Drifted::Overwrite);
    assert_eq!(set.state, SetState::Reverted);
    assert_eq!((forced.value("a.one"), forced.value("b.two")), ("1", "2"));
}

/// A host of which one setting cannot be restored, and has its old value with another's.
struct Follows(Memory);
impl Settings for Follows {
    fn read(&mut self, object: &Object) -> Result<String, SettingError> {
        self.0.read(object)
    }
    fn save(&mut self, object: &Object) -> Result<Saved, SettingError> {
        self.0.save(object)
    }
    fn write(&mut self, object: &Object, value: &str) -> Result<(), SettingError> {
        self.0.write(object, value)
    }
    fn restore(&mut self, object: &Object, saved: &Saved) -> Result<(), SettingError> {
        match object.to_string().as_str() {
            "b.two" => return Err(refusal(object, "busy")),
            "a.one" => {
                let old = ("2".to_owned(), "detail".to_owned());
                self.0.values.insert("b.two".to_owned(), old);
            }
            _ => {}
        }
        self.0.restore(object, saved)
    }
}

#[test]
fn what_another_s_old_value_brought_back_is_back() {
    let (mut memory, _) = applied(Memory::new(&THREE), &three());
    let mut set = memory.set();
    let mut follows = Follows(memory.clone());
    let journal = &mut World(&mut memory);
    restore(&mut set, "x", Drifted::Leave, &mut follows, journal);
    assert_eq!(follows.0.value("b.two"), "2");
    assert_eq!(set.fates[1].restored, Some(Restored::Restored));
    assert_eq!(set.state, SetState::Reverted);
}

#[test]
fn what_cannot_be_restored_is_named_and_the_rest_is() {
    let (mut memory, _) = applied(Memory::new(&THREE), &three());
    memory.values.remove("b.two");
    let mut set = memory.set();
    let mut broken = Restores(memory.clone(), all_but_one);
    let unwritten = restore(
        &mut set,
        "x",
        Drifted::Overwrite,
        &mut broken,
        &mut World(&mut memory),
    );
    assert_eq!((unwritten, set.state), (None, SetState::Unfinished));
    assert_eq!(broken.0.value("a.one"), "1");
    assert_eq!(broken.0.value("c.three"), "3");
    let told = set.fates[1].restored.as_ref().unwrap().to_string();
    assert!(told.contains("no such device"), "{told}");
}

#[test]
fn a_plan_with_refusals_risks_and_owners_needs_more_than_a_wish() {
    let mut steps = three();
    steps[0].owners = vec!["/etc/sysctl.d/10-x.conf:3".to_owned(), "bpftune".to_owned()];
    steps[0].programs = vec!["bpftune".to_owned()];
    steps[1].risk = Risk::LinkFlap;
    let plan = TuningPlan {
        schema_version: SCHEMA_VERSION,
        steps,
        fulfilled: Vec::new(),
        refused: vec![Refusal {
            object: Object::Interface {
                interface: "eth9".to_owned(),
                setting: InterfaceSetting::Mtu,
            },
            wanted: "9000".to_owned(),
            from: "p.toml:9".to_owned(),
            why: "there is no interface eth9".to_owned(),
        }],
    };
    let mut permissions = Permissions {
        risk: Risk::QueueReset,
        over: Vec::new(),
    };
    let told = objections(&plan, &permissions).join("\n");
    for words in [
        "eth9 = 9000 (p.toml:9)",
        "--allow link-flap",
        "--over bpftune",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains("10-x.conf"), "{told}");
    permissions.risk = Risk::LinkFlap;
    permissions.over.push("bpftune".to_owned());
    assert_eq!(objections(&plan, &permissions).len(), 1);
}

#[test]
fn a_journal_that_was_cut_is_read_up_to_there() {
    let (memory, _) = applied(Memory::new(&THREE), &three());
    let whole = memory.set();
    for cut in 0..memory.journal.len() {
        let text = &memory.journal[..cut];
        match ChangeSet::parse(text) {
            Ok(set) => {
                assert_eq!(set.snapshot, whole.snapshot);
                assert_ne!(set.state, SetState::Applied, "{cut}");
            }
            Err(error) => assert!(!text.contains('\n'), "{cut}: {error}"),
        }
    }
    let damaged = memory.journal.replacen("armed", "armoured", 1);
    let error = ChangeSet::parse(&damaged).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
    let newer = memory
        .journal
        .replacen("\"schema_version\":1", "\"schema_version\":9", 1);
    let error = ChangeSet::parse(&newer).unwrap_err().to_string();
    assert!(error.contains("version 9"), "{error}");
}

/// A host whose old values take two calls to be written, with something else between; one of an `Upsets` sets the one
/// after it to something else, as a number of queues that is restored after what is set by queue.
fn torn(host: &mut Shared, object: &Object, saved: &Saved) -> Result<(), SettingError> {
    use std::ops::Bound::{Excluded, Unbounded};

    let torn = Saved {
        value: "torn".to_owned(),
        detail: "torn".to_owned(),
    };
    host.restore(object, &torn)?;
    let memory = &mut *host.0.borrow_mut();
    let key = object.to_string();
    if memory.manners.get(&key) == Some(&Manner::Upsets)
        && let Some((_, next)) = memory.values.range_mut((Excluded(key), Unbounded)).next()
    {
        *next = ("upset".to_owned(), "other".to_owned());
    }
    memory.restore(object, saved)
}

/// A revert that is killed after so many calls, and finished by whoever comes then.
fn killed_and_finished(mut memory: Memory, calls: usize) -> (Memory, ChangeSet) {
    memory.calls_left = calls;
    let cell = std::rc::Rc::new(std::cell::RefCell::new(memory));
    for why in ["asked for", "cut short"] {
        let mut set = cell.borrow().set();
        let host = &mut Restores(Shared(cell.clone()), torn);
        let journal = &mut Shared(cell.clone());
        let _ = restore(&mut set, why, Drifted::Leave, host, journal);
        cell.borrow_mut().calls_left = usize::MAX;
    }
    let memory = cell.borrow().clone();
    let set = memory.set();
    (memory, set)
}

#[test]
fn a_revert_that_is_killed_at_any_call_still_leaves_alone_what_is_not_its_own() {
    let (mut memory, outcome) = applied(Memory::new(&THREE), &three());
    assert!(outcome.is_ok());
    memory.manners.insert("b.two".to_owned(), Manner::Upsets);
    let theirs = ("77".to_owned(), String::new());
    memory.values.insert("a.one".to_owned(), theirs);
    for calls in 0..40 {
        let (after, set) = killed_and_finished(memory.clone(), calls);
        let values = ["a.one", "b.two", "c.three"].map(|key| after.value(key));
        assert_eq!(values, ["77", "2", "3"], "{calls}");
        assert_eq!(set.state, SetState::Unfinished, "{calls}");
    }
}

/// A host of up to ten settings, and how each behaves.
fn hosts() -> impl Strategy<Value = (Memory, Vec<Step>)> {
    let manner = prop_oneof![
        8 => Just(Manner::Takes),
        1 => Just(Manner::Refuses),
        1 => Just(Manner::Rounds),
        1 => Just(Manner::Ignores),
        1 => Just(Manner::Upsets),
    ];
    prop::collection::vec(("[a-z ]{0,6}", "[0-9]{1,5}", manner), 1..10).prop_map(|settings| {
        let mut memory = Memory::new(&[]);
        let mut steps = Vec::new();
        for (number, (old, new, manner)) in settings.into_iter().enumerate() {
            let key = format!("net.key{number}");
            memory
                .values
                .insert(key.clone(), (old, format!("detail {number}")));
            memory.manners.insert(key.clone(), manner);
            steps.push(step(&key, &new));
        }
        (memory, steps)
    })
}

proptest! {
    #[test]
    fn revert_after_apply_is_identity((before, steps) in hosts()) {
        let (after, outcome) = applied(before.clone(), &steps);
        if outcome.is_err() {
            prop_assert_eq!(after.values, before.values);
            return Ok(());
        }
        for step in &steps {
            prop_assert_eq!(after.value(&step.object.to_string()), &step.wanted);
        }
        let (reverted, set) = restored(after, Drifted::Leave);
        prop_assert_eq!(set.state, SetState::Reverted);
        prop_assert_eq!(reverted.values, before.values);
    }

    #[test]
    fn killed_at_any_call_the_old_state_comes_back((before, steps) in hosts(), calls in 0_usize..120) {
        let mut dying = before.clone();
        dying.calls_left = calls;
        let (mut after, _) = applied(dying, &steps);
        after.calls_left = usize::MAX;
        if after.journal.is_empty() {
            prop_assert_eq!(&after.values, &before.values);
            return Ok(());
        }
        let (reverted, set) = restored(after, Drifted::Overwrite);
        prop_assert_eq!(set.state, SetState::Reverted);
        prop_assert_eq!(reverted.values, before.values);
    }

    #[test]
    fn a_revert_that_is_killed_at_any_call_is_finished((mut before, steps) in hosts(), calls in 0_usize..120) {
        before.manners.clear();
        let (mut after, outcome) = applied(before.clone(), &steps);
        prop_assert!(outcome.is_ok());
        // Every other one: what is upset upsets none.
        let upsets = after.values.keys().step_by(2);
        after.manners = upsets.map(|key| (key.clone(), Manner::Upsets)).collect();
        let (reverted, set) = killed_and_finished(after, calls);
        prop_assert_eq!(set.state, SetState::Reverted);
        prop_assert_eq!(reverted.values, before.values);
    }

    #[test]
    fn killed_in_the_rollback_too_the_old_state_comes_back(
        (before, steps) in hosts(),
        calls in 0_usize..120,
        again in 0_usize..40,
    ) {
        let mut dying = before.clone();
        dying.calls_left = calls;
        let (mut after, _) = applied(dying, &steps);
        if after.journal.is_empty() {
            return Ok(());
        }
        after.calls_left = again;
        let cell = std::rc::Rc::new(std::cell::RefCell::new(after));
        let mut set = cell.borrow().set();
        let _ = restore(&mut set, "first", Drifted::Overwrite, &mut Shared(cell.clone()), &mut Shared(cell.clone()));
        let mut after = cell.borrow().clone();
        after.calls_left = usize::MAX;
        let (reverted, set) = restored(after, Drifted::Overwrite);
        prop_assert_eq!(set.state, SetState::Reverted);
        prop_assert_eq!(reverted.values, before.values);
    }
}
