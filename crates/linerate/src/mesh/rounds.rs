//! Runs a round: all its tests at once, a thread each.

use std::sync::{Condvar, Mutex, PoisonError};

use linerate_kernel::clock;
use linerate_kernel::thread::SignalFd;
use linerate_model::mesh::{MeshOutcome, MeshSpan, MeshTest};
use linerate_model::plan::{Direction, Plan};
use linerate_model::record::{Flow, RunRecord};
use linerate_model::units::Nanos;
use linerate_watch::rounds::Pair;

use super::field::Field;
use super::figures;
use super::folder::Folder;
use crate::action::Failure;
use crate::between::failure::FarFailure;
use crate::between::far::{self, Order, Party, Progress};
use crate::between::longest;
use crate::between::roles::End;

/// What each test of a mesh is.
pub(super) struct Tests<'a> {
    pub(super) plan: &'a Plan,
    /// Its options, as `linerate test` reads them; the direction is not among them.
    pub(super) words: &'a [String],
    /// Both directions of a pair at once.
    pub(super) both: bool,
    /// The tests of a round begin at the same moment.
    pub(super) wave: bool,
    /// The first source port, where ports are spread.
    pub(super) first_port: Option<u16>,
    /// Whose tests they are, for others who want the hosts.
    pub(super) owner: &'a str,
    /// The port to serve on; absent = one that is free there.
    pub(super) port: Option<u16>,
    /// When the first round of this run began.
    pub(super) begun: Nanos,
    /// When the last test of an earlier run ended, whose times go on.
    pub(super) offset: Nanos,
    pub(super) stop: &'a SignalFd,
}

impl Tests<'_> {
    /// Runs a round, keeps its records and returns its tests, in the order of the pairs. `alone` marks a test that
    /// repeats another.
    pub(super) fn round(
        &self,
        field: &Field,
        pairs: &[Pair],
        number: u32,
        alone: bool,
        folder: &Folder,
    ) -> Result<Vec<MeshTest>, Failure> {
        // Of a pair that runs both ways at once, its first direction stands for both.
        let runs: Vec<Pair> = pairs
            .iter()
            .step_by(if self.both { 2 } else { 1 })
            .copied()
            .collect();
        let gate = Gate::of(runs.len());
        let made: Vec<Made> = std::thread::scope(|scope| {
            let start = |pair: &Pair| {
                let (pair, gate) = (*pair, &gate);
                let thread = std::thread::Builder::new().name("test".to_owned());
                let started = thread.spawn_scoped(scope, move || self.one(field, pair, gate));
                started.map_err(|error| {
                    gate.leave();
                    format!("no thread for it: {error}")
                })
            };
            let threads: Vec<_> = runs.iter().map(start).collect();
            let made = threads.into_iter().map(|thread| {
                thread.map_or_else(Made::not_run, |thread| {
                    thread.join().unwrap_or_else(|_| Made::broken())
                })
            });
            made.collect()
        });
        let mut tests = Vec::new();
        for (pair, made) in runs.into_iter().zip(made) {
            self.keep(field, pair, &made, (number, alone), folder, &mut tests)?;
        }
        Ok(tests)
    }

    fn one(&self, field: &Field, pair: Pair, ready: &Gate) -> Made {
        let mut waits = Waits::of(ready, self.wave);
        let party = |host: usize| match field.at(host) {
            Ok(standing) => Ok(Party {
                name: field.name(host),
                session: &standing.session,
                surroundings: &standing.surroundings,
            }),
            Err(why) => Err(format!("{} was not reached: {why}", field.name(host))),
        };
        let (from, to) = match (party(pair.from), party(pair.to)) {
            (Ok(from), Ok(to)) => (from, to),
            (Err(why), _) | (_, Err(why)) => return Made::not_run(why),
        };
        let stopped = || crate::between::asked(self.stop);
        let order = Order {
            words: self.words,
            direction: if self.both {
                Direction::Both
            } else {
                Direction::Send
            },
            family: self.plan.family,
            of_the_client: None,
            addresses: [None; 2],
            first: End::From,
            ports: [self.port; 2],
            owner: self.owner,
            several: false,
            recorded: true,
            bounds: far::Bounds::default(),
            within: longest(self.plan),
            stop: &stopped,
        };
        let begin = clock::monotonic();
        let mut client = None;
        let run = far::run(from, to, &order, &mut |progress| {
            if let Progress::Ready(roles, _) = progress {
                client = Some(roles.client);
                waits.meet();
            }
        });
        let end = clock::monotonic();
        match run {
            Ok(run) => Made::ran(
                run.record.zip(client),
                MeshSpan {
                    begin: begin.since(self.begun).plus(self.offset),
                    end: end.since(self.begun).plus(self.offset),
                },
            ),
            Err(failure) => Made::failed(&failure),
        }
    }

    /// Adds the tests of a run, one for each direction, and keeps its record.
    fn keep(
        &self,
        field: &Field,
        pair: Pair,
        made: &Made,
        (round, alone): (u32, bool),
        folder: &Folder,
        tests: &mut Vec<MeshTest>,
    ) -> Result<(), Failure> {
        let (from, to) = (field.name(pair.from), field.name(pair.to));
        let again = if alone { "-alone" } else { "" };
        let name = format!("{round:04}-{from}-{to}{again}");
        let kept = match &made.ran {
            Ok((record, _)) => Some(folder.keep(&name, record)?),
            Err(_) => None,
        };
        let directions = [Some(pair), self.both.then(|| pair.reversed())];
        for direction in directions.into_iter().flatten() {
            let outcome = match &made.ran {
                Ok((record, client)) => {
                    let sends = if direction == pair {
                        End::From
                    } else {
                        End::To
                    };
                    let flow = if *client == sends {
                        Flow::ClientToServer
                    } else {
                        Flow::ServerToClient
                    };
                    figures::of(record, flow, self.first_port.is_some())
                }
                Err(outcome) => outcome.clone(),
            };
            tests.push(MeshTest {
                from: direction.from,
                to: direction.to,
                round,
                alone,
                source_port: self.first_port,
                span: made.span,
                outcome,
                record: kept.as_deref().map(Into::into),
            });
        }
        Ok(())
    }
}

/// What came of a run.
struct Made {
    /// Its record and who dialled, or what to say instead.
    ran: Result<(RunRecord, End), MeshOutcome>,
    span: Option<MeshSpan>,
}

impl Made {
    fn ran(record: Option<(RunRecord, End)>, span: MeshSpan) -> Self {
        record.map_or_else(Self::broken, |record| Self {
            ran: Ok(record),
            span: Some(span),
        })
    }

    fn not_run(why: String) -> Self {
        Self {
            ran: Err(MeshOutcome::NotRun { why: why.into() }),
            span: None,
        }
    }

    fn failed(failure: &FarFailure) -> Self {
        if failure.busy.is_some() || failure.stopped {
            return Self::not_run(failure.to_string());
        }
        Self {
            ran: Err(MeshOutcome::Failed {
                stage: failure.stage.to_string().into(),
                why: failure.to_string().into(),
            }),
            span: None,
        }
    }

    fn broken() -> Self {
        Self::not_run("no record came back".to_owned())
    }
}

/// Where the tests of a wave wait for each other.
struct Gate {
    /// How many are not there yet.
    missing: Mutex<usize>,
    opened: Condvar,
}

impl Gate {
    const fn of(count: usize) -> Self {
        Self {
            missing: Mutex::new(count),
            opened: Condvar::new(),
        }
    }

    /// One comes, or never will.
    fn leave(&self) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        *missing = missing.saturating_sub(1);
        self.opened.notify_all();
    }

    /// Waits until each has come or left. Ends: every thread leaves when it gives up.
    fn wait(&self) {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        drop(
            self.opened
                .wait_while(missing, |missing| *missing > 0)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }
}

/// A thread's place at the gate of a wave. It is given up once, at the latest when the thread ends, so that the others
/// never wait for it.
struct Waits<'a> {
    gate: Option<&'a Gate>,
    met: bool,
}

impl<'a> Waits<'a> {
    fn of(gate: &'a Gate, wave: bool) -> Self {
        Self {
            gate: wave.then_some(gate),
            met: false,
        }
    }

    fn meet(&mut self) {
        if let Some(gate) = self.gate.filter(|_| !self.met) {
            self.met = true;
            gate.leave();
            gate.wait();
        }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.filter(|_| !self.met) {
            gate.leave();
        }
    }
}
