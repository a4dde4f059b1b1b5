//! Runs a round: all its tests at once, a thread each.

use std::sync::Barrier;
use std::thread::ScopedJoinHandle;

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
    /// When the first round began.
    pub(super) begun: Nanos,
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
        let ready = Barrier::new(runs.len());
        let made: Vec<Made> = std::thread::scope(|scope| {
            let threads: Vec<_> = runs
                .iter()
                .map(|pair| scope.spawn(|| self.one(field, *pair, &ready)))
                .collect();
            let made = threads.into_iter().map(ScopedJoinHandle::join);
            made.map(|made| made.unwrap_or_else(|_| Made::broken()))
                .collect()
        });
        let mut tests = Vec::new();
        for (pair, made) in runs.into_iter().zip(made) {
            self.keep(field, pair, &made, (number, alone), folder, &mut tests)?;
        }
        Ok(tests)
    }

    fn one(&self, field: &Field, pair: Pair, ready: &Barrier) -> Made {
        let waits = Waits::of(ready, self.wave);
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
            address: None,
            port: None,
            owner: self.owner,
            several: false,
            recorded: true,
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
                    begin: begin.since(self.begun),
                    end: end.since(self.begun),
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

/// A thread's place at the barrier of a wave. It is taken once, at the latest when the thread gives up, so that the
/// others never wait for it.
struct Waits<'a> {
    barrier: Option<&'a Barrier>,
    met: std::cell::Cell<bool>,
}

impl<'a> Waits<'a> {
    fn of(barrier: &'a Barrier, wave: bool) -> Self {
        Self {
            barrier: wave.then_some(barrier),
            met: std::cell::Cell::new(false),
        }
    }

    fn meet(&self) {
        if let Some(barrier) = self.barrier.filter(|_| !self.met.replace(true)) {
            barrier.wait();
        }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.meet();
    }
}
