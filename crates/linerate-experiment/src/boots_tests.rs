//! A host that is killed or loses its power at each step of a series.

use super::*;
use crate::interval::tests::normal;
use crate::prove::{Pairs, Verdict};

/// How a host keeps which boot comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loader {
    /// On disk, for one boot, as `grub-reboot` does.
    OnDisk,
    /// In memory, as kexec does: a cut of power forgets it.
    InMemory,
}

/// What befalls the process at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    /// It is killed before the step is done, and started again in the same boot.
    Killed,
    /// It is killed right after the step was done.
    KilledAfter,
    /// The host loses its power before the step.
    PowerCut,
    /// The host loses its power right after it.
    PowerCutAfter,
}

const BLOWS: [Blow; 4] = [
    Blow::Killed,
    Blow::KilledAfter,
    Blow::PowerCut,
    Blow::PowerCutAfter,
];
const DEAD: &str = "dead";

#[expect(
    clippy::struct_excessive_bools,
    reason = "what befalls a host, one thing independent of the other"
)]
struct Host {
    loader: Loader,
    next: Option<Side>,
    running: Running,
    boots: u32,
    disk: Vec<Entry>,
    installed: bool,
    /// The steps until now, and the one that the blow falls on.
    steps: u32,
    blow: Option<(u32, Blow)>,
    /// The blow fell, and the process is no more.
    dead: bool,
    power_lost: bool,
    going_down: bool,
    rates: [f64; 2],
    noise: Box<dyn Iterator<Item = f64>>,
    /// A side that never comes up: its boot hangs, and somebody presses the button.
    broken: Option<Side>,
    wrong_kernel: bool,
}

impl Host {
    fn new(loader: Loader, rates: [f64; 2], pairs: u32) -> Self {
        let question = Question {
            pairs: Pairs::Exactly(pairs),
            least: 0.02,
            seed: 5,
        };
        Self {
            loader,
            next: None,
            running: Running::Default,
            boots: 0,
            disk: vec![Entry::Begun { question }],
            installed: true,
            steps: 0,
            blow: None,
            dead: false,
            power_lost: false,
            going_down: false,
            rates,
            noise: Box::new(normal(3)),
            broken: None,
            wrong_kernel: false,
        }
    }

    /// A step of the process: the blow may fall before it or after it.
    fn step<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> Result<T, String> {
        if self.dead {
            return Err(DEAD.to_owned());
        }
        self.steps += 1;
        let blow = self.blow.filter(|(at, _)| *at == self.steps);
        let Some((_, blow)) = blow else {
            return Ok(act(self));
        };
        self.dead = true;
        self.power_lost = matches!(blow, Blow::PowerCut | Blow::PowerCutAfter);
        if matches!(blow, Blow::KilledAfter | Blow::PowerCutAfter) {
            act(self);
        }
        Err(DEAD.to_owned())
    }

    /// The host goes down and comes up again.
    fn reboot(&mut self, by_button: bool) {
        self.boots += 1;
        if by_button && self.loader == Loader::InMemory {
            self.next = None;
        }
        let wanted = self.next.take();
        let hangs = wanted.is_some() && wanted == self.broken;
        self.running = match wanted {
            Some(side) if !hangs => Running::Side(side),
            _ => Running::Default,
        };
        self.boots += u32::from(hangs);
        self.going_down = false;
    }

    /// Runs the process again and again as an init system would, until it is over.
    fn live(&mut self) {
        // A series of six pairs has 13 boots; one that goes on for ever fails.
        for _ in 0..80 {
            if !self.installed {
                return;
            }
            let mut journal = self.disk.clone();
            let ended = go_on(&mut journal, self);
            if self.dead {
                self.dead = false;
                if std::mem::take(&mut self.power_lost) {
                    self.reboot(true);
                } else if std::mem::take(&mut self.going_down) {
                    self.reboot(false);
                }
                continue;
            }
            match ended.unwrap() {
                Ended::Over => {
                    // The unit's file is gone, or starts what says at once that nothing is left.
                    return;
                }
                Ended::Restarting => self.reboot(false),
            }
        }
        panic!("it never ends: {:?}", self.disk);
    }

    fn proof(&self) -> Proof {
        Boots::of(&self.disk).unwrap().proof()
    }

    /// What two further boots would run.
    fn comes_back(&mut self) -> Running {
        self.reboot(true);
        self.reboot(true);
        self.running
    }
}

impl Machine for Host {
    fn boot(&mut self) -> Result<BootId, String> {
        Ok(BootId(self.boots.to_string()))
    }

    fn running(&mut self) -> Result<Running, String> {
        Ok(self.running)
    }

    fn write(&mut self, entry: &Entry) -> Result<(), String> {
        self.step(|host| host.disk.push(entry.clone()))
    }

    fn unset_next(&mut self) -> Result<(), String> {
        self.step(|host| host.next = None)
    }

    fn set_next(&mut self, side: Side) -> Result<(), String> {
        self.step(|host| host.next = Some(side))
    }

    fn restart(&mut self) -> Result<(), String> {
        self.step(|host| host.going_down = true)
    }

    fn test(&mut self, turn: Turn) -> Measured {
        let off = 1.0 + 0.003 * self.noise.next().unwrap();
        self.wrong_kernel |= self.running != Running::Side(turn.side);
        let rate = match turn.side {
            Side::Before => self.rates[0],
            Side::After => self.rates[1],
        };
        let done = self.step(|_| ());
        done.map_or_else(Measured::failed, |()| Measured {
            goodput_bps: Some(rate * off),
            ..Measured::default()
        })
    }

    fn dismiss(&mut self) -> Result<(), String> {
        self.step(|host| host.installed = false)
    }
}

/// Steps of a series that nothing befalls.
fn steps(loader: Loader) -> u32 {
    let mut host = Host::new(loader, [1e9, 8e8], 6);
    host.live();
    host.steps
}

#[test]
fn two_kernels_are_told_apart_with_the_right_sign_and_equal_ones_are_not() {
    for (rates, wanted) in [
        ([1e9, 8e8], Verdict::Worse),
        ([8e8, 1e9], Verdict::Better),
        ([1e9, 1e9], Verdict::NoEffect),
    ] {
        let mut host = Host::new(Loader::InMemory, rates, 6);
        host.live();
        let proof = host.proof();
        assert_eq!(proof.verdict, wanted, "{}", proof.sentence);
        assert_eq!((proof.ratios.len(), proof.runs.len()), (6, 12));
        // Twelve for the runs, one for the default.
        assert_eq!((host.boots, host.running), (13, Running::Default));
        assert!(!host.wrong_kernel && !host.installed && host.next.is_none());
    }
}

#[test]
fn killed_or_without_power_at_each_step_the_default_is_back() {
    for loader in [Loader::OnDisk, Loader::InMemory] {
        for (at, blow) in (1..=steps(loader)).flat_map(|at| BLOWS.map(|blow| (at, blow))) {
            let mut host = Host::new(loader, [1e9, 8e8], 6);
            host.blow = Some((at, blow));
            host.live();
            let what = format!("{loader:?} {blow:?} at step {at}: {:?}", host.disk);
            assert_eq!(host.running, Running::Default, "{what}");
            assert_eq!(host.next, None, "{what}");
            assert!(!host.installed && !host.wrong_kernel, "{what}");
            assert_eq!(host.proof().verdict, Verdict::Worse, "{what}");
            assert_eq!(host.proof().ratios.len(), 6, "{what}");
        }
    }
}

#[test]
fn killed_for_good_at_each_step_the_default_is_back_after_one_boot() {
    for loader in [Loader::OnDisk, Loader::InMemory] {
        for (at, blow) in (1..=steps(loader)).flat_map(|at| BLOWS.map(|blow| (at, blow))) {
            let mut host = Host::new(loader, [1e9, 8e8], 6);
            host.blow = Some((at, blow));
            // Nobody starts it again.
            while !host.dead && host.installed {
                let mut journal = host.disk.clone();
                if go_on(&mut journal, &mut host) == Ok(Ended::Restarting) {
                    host.reboot(false);
                }
            }
            assert_eq!(
                host.comes_back(),
                Running::Default,
                "{loader:?} {blow:?} {at}"
            );
        }
    }
}

#[test]
fn a_boot_that_never_comes_ends_the_series_on_the_default() {
    let mut host = Host::new(Loader::OnDisk, [1e9, 1e9], 6);
    host.broken = Some(Side::After);
    host.live();
    let proof = host.proof();
    assert!(
        proof
            .sentence
            .contains("came up with the boot loader's default"),
        "{}",
        proof.sentence
    );
    assert!(!proof.verdict.is_decided() && !host.installed);
    assert_eq!((host.running, host.next), (Running::Default, None));
}

/// A host where setting the next boot fails.
struct Refusing(Host);

impl Machine for Refusing {
    fn boot(&mut self) -> Result<BootId, String> {
        self.0.boot()
    }
    fn running(&mut self) -> Result<Running, String> {
        self.0.running()
    }
    fn write(&mut self, entry: &Entry) -> Result<(), String> {
        self.0.write(entry)
    }
    fn unset_next(&mut self) -> Result<(), String> {
        self.0.unset_next()
    }
    fn set_next(&mut self, _: Side) -> Result<(), String> {
        Err("kexec is locked down".to_owned())
    }
    fn restart(&mut self) -> Result<(), String> {
        panic!("it does not boot what could not be set");
    }
    fn test(&mut self, turn: Turn) -> Measured {
        self.0.test(turn)
    }
    fn dismiss(&mut self) -> Result<(), String> {
        self.0.dismiss()
    }
}

#[test]
fn what_cannot_be_set_ends_the_series() {
    let mut host = Refusing(Host::new(Loader::InMemory, [1e9, 1e9], 6));
    let mut journal = host.0.disk.clone();
    let error = go_on(&mut journal, &mut host).unwrap_err();
    assert_eq!(error, BootsError::Failed("kexec is locked down".to_owned()));
    assert!(!host.0.installed && Boots::of(&host.0.disk).unwrap().is_over());
    assert!(host.0.proof().sentence.contains("kexec is locked down"));
}

#[test]
fn a_journal_survives_its_file_and_a_strange_one_is_refused() {
    let mut host = Host::new(Loader::InMemory, [1e9, 8e8], 6);
    host.live();
    let lines: Vec<String> = host
        .disk
        .iter()
        .map(|entry| serde_json::to_string(entry).unwrap())
        .collect();
    let read: Vec<Entry> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // A rate's last digit may differ.
    assert_eq!(read.len(), host.disk.len());
    let proof = Boots::of(&read).unwrap().proof();
    assert_eq!(proof.verdict, host.proof().verdict);
    assert_eq!(proof.runs.len(), 12);
    let half: Vec<Entry> = read[..read.len() / 2].to_vec();
    assert!(!Boots::of(&half).unwrap().is_over());
    assert_eq!(
        Boots::of(&read[1..]).unwrap_err(),
        JournalError::NoBeginning
    );
    let mut twice = read.clone();
    let tested = read
        .iter()
        .position(|entry| matches!(entry, Entry::Tested { .. }))
        .unwrap();
    twice.insert(tested, read[tested].clone());
    assert!(matches!(
        Boots::of(&twice),
        Err(JournalError::OutOfTurn { .. })
    ));
}
