//! One test of a lease, in a thread of its own.

use std::net::ToSocketAddrs as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use linerate_model::alert::AlertFinding;
use linerate_model::plain_text::PlainText;
use linerate_model::plan::{Direction, Plan};
use linerate_model::record::{Flow, RunRecord};
use linerate_model::units::{BitRate, Nanos};
use linerate_report::record;
use linerate_watch::dispatch::{End, Ending, Finished, LeaseId};
use linerate_watch::plan::test_options::{load_millis, rate};
use linerate_watch::watched::Reach;

use super::Happened;
use super::clock::HubClock;
use super::figures;
use super::hosts::Standing;
use super::quiet;
use crate::between::failure::{FarFailure, Stage};
use crate::between::far::{self, FarRun, Order, Party, Progress};
use crate::between::roles::Choice;

/// A host's end of a test.
pub(super) enum Side {
    /// It has an agent.
    Agent(Arc<Standing>),
    /// A server runs there, at this port.
    Server(u16),
}

/// A test to make.
pub(super) struct Assignment {
    pub(super) lease: LeaseId,
    /// What each test of the task is.
    pub(super) plan: Plan,
    /// Its options, as `linerate test` reads them.
    pub(super) words: Vec<String>,
    /// Whether counter-tests of its first finding follow it.
    pub(super) counter_test: bool,
    /// The share of a link, 0 to 1, that others may use when it begins; absent = any.
    pub(super) quiet: Option<f64>,
    /// The rate of each end's link by the plan.
    pub(super) links: [Option<BitRate>; 2],
    pub(super) names: [String; 2],
    pub(super) sides: [Side; 2],
    /// The address of each, as others dial it.
    pub(super) addresses: [String; 2],
    /// The port of each end to serve on; absent = any.
    pub(super) ports: [Option<u16>; 2],
    /// Who dials, where it can.
    pub(super) first: End,
    pub(super) owner: String,
    pub(super) within: Nanos,
    /// Set once the lease is over, or the hub ends.
    pub(super) stop: Arc<AtomicBool>,
}

/// What came of a test.
pub(super) struct Made {
    pub(super) lease: LeaseId,
    pub(super) finished: Finished,
    /// The JSON of its record.
    pub(super) record: Option<Vec<u8>>,
    pub(super) finding: Option<AlertFinding>,
}

/// Makes it, and tells the driver when its load begins and when it has ended.
pub(super) fn make(assignment: &Assignment, clock: HubClock, told: &Sender<Happened>) {
    let mut started = None;
    let mut ready = || {
        started = Some(clock.now());
        // A driver that has gone needs no more news.
        drop(told.send(Happened::Started(assignment.lease)));
    };
    let others = assignment.quiet.map(|most| quiet::look(assignment, most));
    let others = others.transpose().map(Option::flatten);
    let run = match others {
        Ok(None) => run(assignment, &mut ready).map_err(|failure| assignment.ending_of(&failure)),
        Ok(Some((end, share))) => Err(Ending::Traffic(end, share)),
        Err(failure) => Err(assignment.ending_of(&failure)),
    };
    let ended = clock.now();
    let mut made = Made {
        lease: assignment.lease,
        finished: Finished {
            started,
            ended,
            bytes: None,
            ending: stopped(),
        },
        record: None,
        finding: None,
    };
    match run {
        Ok((record, flow)) => made.take(assignment, &record, flow),
        Err(ending) => made.finished.ending = ending,
    }
    drop(told.send(Happened::Finished(Box::new(made))));
}

/// A test that the hub cut off counts for nothing.
fn stopped() -> Ending {
    Ending::Invalid {
        why: "the hub stopped it before its end".into(),
    }
}

impl Made {
    fn take(&mut self, assignment: &Assignment, record: &RunRecord, flow: Flow) {
        let json = record::to_json(record);
        self.record = Some(json);
        match figures::read(record, flow, self.finished.ended) {
            Ok(read) => {
                self.finished.bytes = read.bytes;
                self.finding = read.finding;
                self.finished.ending = Ending::Measured(read.figures);
            }
            Err(_) if assignment.stop.load(Ordering::Relaxed) => {}
            Err(why) => {
                self.finished.ending = Ending::Failed {
                    stage: "the test ran".into(),
                    why: why.into(),
                    at: None,
                };
            }
        }
    }
}

impl Assignment {
    fn ending_of(&self, failure: &FarFailure) -> Ending {
        let place = failure
            .host
            .as_ref()
            .and_then(|host| self.names.iter().position(|name| name == host));
        let at = place.map(|place| End::BOTH[place]);
        if failure.busy.is_some() {
            return Ending::Busy(at.unwrap_or(End::From));
        }
        if failure.stopped {
            return stopped();
        }
        if failure.refused {
            return Ending::Refused {
                why: failure.to_string().into(),
            };
        }
        Ending::Failed {
            stage: failure.stage.to_string().into(),
            why: failure.to_string().into(),
            at,
        }
    }

    /// The addresses of an end by the plan; where that names the host alone, those that the host has are tried.
    fn dialled(&self, at: usize) -> Result<Option<Choice>, FarFailure> {
        let address = self.addresses[at].as_str();
        if let Ok(address) = address.parse() {
            return Ok(Some(Choice::These(vec![address])));
        }
        if address == self.names[at] {
            return Ok(None);
        }
        let failed = |why: String| FarFailure::at(Stage::Reach, &self.names[at], why);
        let found = (address, 0).to_socket_addrs();
        let found = found.map_err(|error| failed(format!("looking up {address}: {error}")))?;
        Ok(Some(Choice::These(found.map(|found| found.ip()).collect())))
    }

    fn party<'a>(&'a self, at: usize, standing: &'a Standing) -> Party<'a> {
        Party {
            name: &self.names[at],
            session: &standing.session,
            surroundings: &standing.surroundings,
        }
    }
}

/// Runs it: its record, and which of its directions is that of the pair.
fn run(assignment: &Assignment, ready: &mut dyn FnMut()) -> Result<(RunRecord, Flow), FarFailure> {
    let stop = || assignment.stop.load(Ordering::Relaxed);
    let mut order = Order {
        words: &assignment.words,
        direction: Direction::Send,
        family: assignment.plan.family,
        of_the_client: None,
        addresses: [None; 2],
        first: assignment.first,
        ports: assignment.ports,
        owner: &assignment.owner,
        several: assignment.counter_test,
        recorded: true,
        bounds: far::Bounds {
            time: load_millis(&assignment.plan).map(Nanos::from_millis),
            rate: rate(&assignment.plan),
        },
        within: Some(assignment.within),
        stop: &stop,
    };
    let record = |run: FarRun| {
        let none = || FarFailure::between(Stage::Record, "no record came back");
        run.record.ok_or_else(none)
    };
    match &assignment.sides {
        [Side::Agent(from), Side::Agent(to)] => {
            let choices = [assignment.dialled(0)?, assignment.dialled(1)?];
            order.addresses = choices.each_ref().map(Option::as_ref);
            let mut client = End::From;
            let parties = [assignment.party(0, from), assignment.party(1, to)];
            let run = far::run(parties[0], parties[1], &order, &mut |progress| {
                if let Progress::Ready(roles, _) = progress {
                    client = roles.client;
                    ready();
                }
            })?;
            let flow = match client {
                End::From => Flow::ClientToServer,
                End::To => Flow::ServerToClient,
            };
            Ok((record(run)?, flow))
        }
        [Side::Agent(from), Side::Server(port)] => {
            let at = (assignment.addresses[1].as_str(), *port);
            ready();
            let client = assignment.party(0, from);
            let run = far::run_against(client, &assignment.names[1], at, &order, &mut |_| {})?;
            Ok((record(run)?, Flow::ClientToServer))
        }
        [Side::Server(port), Side::Agent(to)] => {
            order.direction = Direction::Receive;
            let at = (assignment.addresses[0].as_str(), *port);
            ready();
            let client = assignment.party(1, to);
            let run = far::run_against(client, &assignment.names[0], at, &order, &mut |_| {})?;
            Ok((record(run)?, Flow::ServerToClient))
        }
        [Side::Server(_), Side::Server(_)] => Err(FarFailure::between(
            Stage::Session,
            "the hub reaches neither host: one of them needs reach = \"ssh\"",
        )),
    }
}

/// Whether a host can be reached: by its session, or by a connection from a peer to its server.
pub(super) fn check(
    reach: &Reach,
    address: &str,
    standing: Option<&Standing>,
    by: Option<&Standing>,
) -> Result<(), PlainText> {
    match reach {
        Reach::Agent | Reach::Ssh => match standing {
            Some(standing) if standing.session.is_open() => Ok(()),
            _ => Err("its agent is not connected".into()),
        },
        Reach::Linerate(port) | Reach::Iperf3(port) => {
            // A name may mean something else here than there: the next test finds out.
            let (Some(by), Ok(address)) = (by, address.parse()) else {
                return Ok(());
            };
            let target = std::net::SocketAddr::new(address, *port);
            let said = far::try_connections(&by.session, &[target]);
            let said = said.map_err(|failure| failure.why)?;
            let why = said.answers.into_iter().find_map(|answer| answer.error);
            why.map_or(Ok(()), Err)
        }
    }
}
