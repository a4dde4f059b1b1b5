//! Tests between two hosts of which either may be far away: `linerate test --from A --to B`, `linerate test ssh://HOST`.
//!
//! [`far::run`] makes one test, over sessions that stand; [`start`] is the command around it. Both ends are this program,
//! run by agents (`linerate agent`): who can dial dials ([`roles`]), the server takes the client with its token and no
//! other ([`crate::session_token`]), and the agents let a host run one such test at a time. The record comes back as the
//! file that the client writes, and the report is made of it here, by the same code as that of any test.

pub(crate) mod arguments;
mod command;
pub(crate) mod failure;
pub(crate) mod far;
pub(crate) mod reach;
pub(crate) mod roles;

use std::os::fd::AsFd as _;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use linerate_fleet::{Reach, Session};
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::thread::SignalFd;
use linerate_model::plain_text::PlainText;
use linerate_model::plan::{End as PlanEnd, Plan};
use linerate_model::units::Nanos;
use linerate_report::stream;
use linerate_wire::agent::Outcome;

use crate::action::Failure;
use crate::arguments::{Format, Runs, TestArguments, TestRequest};
use crate::printer::Printer;
use crate::signals;
use crate::test::{Live, Outputs};
use arguments::{HERE, Hosts, called};
use failure::{FarFailure, Stage};
use far::{Bounds, FarRun, Order, Party, Progress};
use roles::End;

/// Options that are not handed on: the direction depends on who dials, and the port is the server's.
const OWN_OPTIONS: [&str; 4] = ["-R", "--bidir", "-p", "--connect-timeout"];

/// Runs a test between these hosts and reports it here.
pub(crate) fn start(
    request: &TestRequest,
    hosts: &Hosts,
    reach: &Reach,
    printer: &Printer,
) -> Result<(), Failure> {
    let arguments = &request.arguments;
    let signals = signals::take_stops()?;
    let outputs = Outputs::open(arguments)?;
    let stopped = || asked(&signals);
    let sessions = open_both(hosts, reach, &stopped).map_err(Failure::from)?;
    let [from, to] = &sessions;
    let [own_from, own_to] = [from, to].map(|session| far::surroundings(session, &stopped));
    let (own_from, own_to) = (own_from?, own_to?);
    let [from, to] = [(&hosts.from, from, &own_from), (&hosts.to, to, &own_to)].map(
        |(name, session, surroundings)| Party {
            name: called(name),
            session,
            surroundings,
        },
    );
    let words = words(arguments);
    let owner = owner(hosts);
    let order = order(request, &words, &owner, &stopped);
    let mut shown = Shown::new(request, [from.name, to.name], printer);
    let run = far::run(from, to, &order, &mut |progress| shown.show(progress));
    // From here on a second Ctrl-C ends this program at once.
    signals::release(&signals, &[signals::INTERRUPT]);
    let run = run?;
    if let Some(trouble) = &run.server_trouble {
        printer.tell(&format!("linerate: warning: {trouble}"));
    }
    let lost = shown.live.and_then(|live| live.failed);
    match &run.record {
        Some(record) => outputs.report(record, Ok(()), lost, arguments, printer),
        None => ended(&run),
    }
}

/// A client that reports itself ended: with its own code.
fn ended(run: &FarRun) -> Result<(), Failure> {
    match &run.outcome {
        Outcome::Code(0) => Ok(()),
        Outcome::Code(code) => Err(Failure::Inner {
            code: u8::try_from(*code).unwrap_or(1),
            why: String::new(),
        }),
        other => Err(Failure::Far(format!("the client ended: {other:?}"))),
    }
}

/// Whether the user wants no more; the first signal is left for whoever looks next.
pub(crate) fn asked(signals: &SignalFd) -> bool {
    let mut entries = [PollEntry::new(signals.as_fd(), Interest::READ)];
    poll::wait(&mut entries, Some(Nanos::ZERO)).is_ok() && entries[0].readiness().any()
}

/// Connects to both hosts at the same time; one that is here needs no carrier.
fn open_both(
    hosts: &Hosts,
    reach: &Reach,
    stopped: &dyn Fn() -> bool,
) -> Result<[Session; 2], FarFailure> {
    let opening = [&hosts.from, &hosts.to].map(|host| {
        let (opened, is_open) = mpsc::channel();
        let (name, reach) = (host.clone(), reach.clone());
        let open = move || {
            let session = if name == HERE {
                Session::here(HERE)
            } else {
                Session::open(&name, &reach)
            };
            // Nobody waits for it any more where the user has stopped.
            drop(opened.send(session));
        };
        let thread = std::thread::Builder::new()
            .name("opening".to_owned())
            .spawn(open);
        thread.map(|_| is_open).map_err(|error| {
            FarFailure::at(Stage::Session, host, format!("no thread for it: {error}"))
        })
    });
    let mut sessions = Vec::new();
    for is_open in opening {
        let is_open = is_open?;
        loop {
            match is_open.recv_timeout(Duration::from_millis(50)) {
                Ok(Ok(session)) => break sessions.push(session),
                Ok(Err(error)) => return Err(FarFailure::of(Stage::Session, error)),
                Err(RecvTimeoutError::Timeout) if stopped() => {
                    return Err(FarFailure::stopped(Stage::Session));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(FarFailure::between(Stage::Session, "its thread failed"));
                }
            }
        }
    }
    let both = <[Session; 2]>::try_from(sessions);
    both.map_err(|_| FarFailure::between(Stage::Session, "a session is missing"))
}

/// Whose test it is, as others read it.
fn owner(hosts: &Hosts) -> String {
    owner_of(&format!(
        "test from {} to {}",
        called(&hosts.from),
        called(&hosts.to)
    ))
}

/// Who started this, as others read it who want the same hosts.
pub(crate) fn owner_of(what: &str) -> String {
    let user = std::env::var("USER")
        .unwrap_or_else(|_| format!("user {}", linerate_kernel::process::user()));
    let here = linerate_kernel::host::facts().hostname.unwrap_or_default();
    let pid = std::process::id();
    let text = format!("{what}, started by {user} on {here} (process {pid})");
    PlainText::from(text).to_string()
}

/// The options that the client is given.
pub(crate) fn words(arguments: &TestArguments) -> Vec<String> {
    let mut words = arguments.plan.words_without(&OWN_OPTIONS);
    match arguments.runs() {
        Runs::One => {}
        Runs::CounterTests => words.push("--counter-test".to_owned()),
        Runs::Rfc6349 => words.push("--rfc6349".to_owned()),
        Runs::Diagnose(budget) => {
            words.extend(["--diagnose".to_owned(), format!("--budget={budget}")]);
        }
    }
    words.extend(match arguments.format.format() {
        Format::Text => None,
        Format::Json => Some("--json".to_owned()),
        Format::JsonStream => Some("--json-stream".to_owned()),
    });
    words
}

fn order<'a>(
    request: &'a TestRequest,
    words: &'a [String],
    owner: &'a str,
    stop: &'a (dyn Fn() -> bool + Sync),
) -> Order<'a> {
    let runs = request.arguments.runs();
    Order {
        words,
        direction: request.plan.direction,
        family: request.plan.family,
        of_the_client: roles::of_the_client_alone(&request.plan),
        addresses: [request.arguments.between.address.as_ref(); 2],
        first: End::From,
        ports: [request
            .arguments
            .plan
            .has("-p")
            .then_some(request.plan.port); 2],
        owner,
        several: runs != Runs::One,
        recorded: runs != Runs::Rfc6349,
        bounds: Bounds::default(),
        within: (runs == Runs::One)
            .then(|| longest(&request.plan))
            .flatten(),
        stop,
    }
}

/// How long a test may take in all; `None` where that depends on the path.
pub(crate) fn longest(plan: &Plan) -> Option<Nanos> {
    match plan.end {
        PlanEnd::TimeNs(time) => Some(time.plus(plan.omit_ns).plus(far::MARGIN)),
        PlanEnd::Bytes(_) | PlanEnd::Blocks(_) => None,
    }
}

/// Progress of the client, shown as that of a client that runs here.
struct Shown<'a> {
    request: &'a TestRequest,
    /// Of the two hosts.
    names: [&'a str; 2],
    printer: &'a Printer,
    /// Absent until it is known who dials, and for a client that reports itself.
    live: Option<Live<'a>>,
}

impl<'a> Shown<'a> {
    const fn new(request: &'a TestRequest, names: [&'a str; 2], printer: &'a Printer) -> Self {
        Self {
            request,
            names,
            printer,
            live: None,
        }
    }

    fn show(&mut self, progress: Progress<'_>) {
        let arguments = &self.request.arguments;
        let format = arguments.format.format();
        let runs = arguments.runs();
        match progress {
            Progress::Ready(roles, at) => {
                let [from, to] = self.names;
                if roles.client == End::To && format == Format::Text {
                    self.printer.tell(&format!(
                        "{from} cannot connect to {to}, so {to} runs the client and {from} the server."
                    ));
                }
                let plan = Plan {
                    host: PlainText::from(match roles.client {
                        End::From => to,
                        End::To => from,
                    }),
                    port: at.port(),
                    direction: roles.direction,
                    ..self.request.plan.clone()
                };
                self.live = (runs != Runs::Rfc6349).then(|| Live::new(&plan, format, self.printer));
            }
            Progress::Line(line) if runs == Runs::Rfc6349 => drop(self.printer.line(line)),
            Progress::Line(line) => match (stream::read(line), &mut self.live) {
                (Some(event), Some(live)) => live.show(&event),
                // A run that --counter-test made.
                _ if format == Format::JsonStream => drop(self.printer.json(line)),
                _ => {}
            },
            // What a single test says there is in its events, or says why it failed.
            Progress::Talk(_) if runs == Runs::One => {}
            Progress::Talk(text) => self.printer.tell(text.trim_end_matches('\n')),
        }
    }
}

impl From<FarFailure> for Failure {
    fn from(failure: FarFailure) -> Self {
        match failure.busy {
            Some(_) => Self::Busy(failure.to_string()),
            None => Self::Far(failure.to_string()),
        }
    }
}
