//! A test between two hosts that both have an agent: a server on one of them, for one client and with a token of its
//! own, and that client on the other. Usable from several threads at once.

use std::net::{IpAddr, SocketAddr};

use linerate_fleet::{Ask, Session};
use linerate_kernel::clock;
use linerate_model::plain_text::PlainText;
use linerate_model::plan::{Direction, Family};
use linerate_model::record::{HostNames, RunRecord};
use linerate_model::units::{BitRate, Nanos};
use linerate_report::record;
use linerate_wire::agent::{Outcome, Word};

use super::command::{FarCommand, Heard};
use super::failure::{FarFailure, Stage};
use super::reach::{MOST, Surroundings, Traffic};
use super::roles::{Choice, End, Roles, candidates, first_answer};
use crate::announcement::Announcement;
use crate::session_token;

/// A short command has ended by then.
const SOON: Nanos = Nanos::from_millis(20_000);
/// A server that nobody visits ends after this time, whatever became of everything else.
const SERVER_WAIT: &str = "60s";
/// How long a TCP connection may take to open while it is tried who reaches whom.
const WITHIN: [&str; 2] = ["--within", "2s"];
/// Beyond its test a client takes no longer: connecting, draining, records.
pub(crate) const MARGIN: Nanos = Nanos::from_millis(20_000);
/// A server whose client has ended ends within this time, or is ended.
const SERVER_END: Nanos = Nanos::from_millis(5_000);
/// Between two looks at a deadline.
const SLICE: Nanos = Nanos::from_millis(50);

/// A host of a test.
#[derive(Clone, Copy)]
pub(crate) struct Party<'a> {
    /// What the user calls it.
    pub(crate) name: &'a str,
    pub(crate) session: &'a Session,
    /// What [`surroundings`] says of it, asked for once.
    pub(crate) surroundings: &'a Surroundings,
}

/// A test to make.
#[derive(Clone, Copy)]
pub(crate) struct Order<'a> {
    /// The options of `linerate test`, those of direction and of files of a report left out.
    pub(crate) words: &'a [String],
    /// Seen from the first host.
    pub(crate) direction: Direction,
    pub(crate) family: Family,
    /// An option that is about the first host alone, which therefore has to dial.
    pub(crate) of_the_client: Option<&'static str>,
    /// Which addresses of each host may be dialled; absent = any.
    pub(crate) addresses: [Option<&'a Choice>; 2],
    /// Who tries to dial first.
    pub(crate) first: End,
    /// The port of each host to serve on; absent = one that is free there.
    pub(crate) ports: [Option<u16>; 2],
    /// Whose test it is, for others who want the hosts meanwhile.
    pub(crate) owner: &'a str,
    /// Whether the client makes more tests than one.
    pub(crate) several: bool,
    /// Whether a record comes of it.
    pub(crate) recorded: bool,
    /// What the server enforces.
    pub(crate) bounds: Bounds,
    /// The client is given up after this time; absent = it ends by itself.
    pub(crate) within: Option<Nanos>,
    /// Whether the user wants no more: what was measured until then is the result.
    pub(crate) stop: &'a (dyn Fn() -> bool + Sync),
}

/// The load of a test, which its server enforces and a host's rules judge before it begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// How long bytes flow, the omitted part counted; absent = not known.
    pub(crate) time: Option<Nanos>,
    /// All streams and both directions together; absent = as fast as it goes.
    pub(crate) rate: Option<BitRate>,
}

impl Bounds {
    /// As options of `linerate serve`.
    fn words(self) -> Vec<Word> {
        let time = self
            .time
            .map(|time| format!("--max-duration={}ms", time.0.div_ceil(1_000_000)));
        let rate = self.rate.map(|rate| format!("--max-rate={}", rate.0));
        [time, rate].into_iter().flatten().map(Word::from).collect()
    }
}

/// What came of a test.
#[derive(Debug)]
pub(crate) struct FarRun {
    /// The record, where one was asked for.
    pub(crate) record: Option<RunRecord>,
    /// How the client ended.
    pub(crate) outcome: Outcome,
    /// What went wrong at the server's end, with its host.
    pub(crate) server_trouble: Option<PlainText>,
}

/// Progress of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Progress<'a> {
    /// Who does what, and where the server is, before the test.
    Ready(Roles, SocketAddr),
    /// A line of its standard output.
    Line(&'a str),
    /// Something of its standard error.
    Talk(&'a str),
}

/// Asks a host for its addresses.
///
/// # Errors
/// Why it does not say.
pub(crate) fn surroundings(
    session: &Session,
    stop: &dyn Fn() -> bool,
) -> Result<Surroundings, FarFailure> {
    reach(session, Stage::Addresses, &[], &[], stop)
}

/// Has a host try to connect to these addresses.
///
/// # Errors
/// Why it does not say.
pub(crate) fn try_connections(
    session: &Session,
    targets: &[SocketAddr],
) -> Result<Surroundings, FarFailure> {
    reach(session, Stage::Reach, &WITHIN, targets, &|| false)
}

/// Has a host count for a time what passes the interface that leads to an address.
///
/// # Errors
/// Why it does not say.
pub(crate) fn traffic(
    session: &Session,
    towards: IpAddr,
    time: Nanos,
    stop: &dyn Fn() -> bool,
) -> Result<Traffic, FarFailure> {
    let target = SocketAddr::new(towards, 1);
    let time = format!("{}ms", time.0 / 1_000_000);
    let options = ["--traffic", &time];
    let said = reach(session, Stage::Traffic, &options, &[target], stop)?;
    let none = || FarFailure::at(Stage::Traffic, session.host(), "it counted no traffic");
    said.traffic.ok_or_else(none)
}

/// Makes a test from one host to another, and brings its record back.
///
/// # Errors
/// Where no record came: the stage that failed, the host, and why.
pub(crate) fn run(
    from: Party<'_>,
    to: Party<'_>,
    order: &Order<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<FarRun, FarFailure> {
    let at = |end: End| [from, to][end.at()];
    let open = |client: End| {
        let server = client.other();
        Door::open(at(client), at(server), server.at(), order)
    };
    let second = order.first.other();
    let found = match open(order.first)? {
        Ok(door) => Ok((door, order.first)),
        Err(tried) => {
            let (first, other) = (at(order.first), at(second));
            match order.of_the_client {
                Some(option) => Err(format!(
                    "{} cannot connect to {} ({tried}), and with {option} the other one cannot dial",
                    first.name, other.name
                )),
                None => open(second)?.map(|door| (door, second)).map_err(|back| {
                    format!(
                        "neither host can connect to the other by TCP, so nothing was sent; from {}: {tried}; from {}: {back}",
                        first.name, other.name
                    )
                }),
            }
        }
    };
    let (door, client) = found.map_err(|why| FarFailure::between(Stage::Reach, why))?;
    let roles = Roles::of(client, order.direction);
    let (client, server) = (at(client), at(client.other()));
    progress(Progress::Ready(roles, door.at));
    let mut run = door.measure(client, roles, order, progress)?;
    if let Some(record) = &mut run.record {
        record.host_names = Some(HostNames {
            client: client.name.into(),
            server: server.name.into(),
        });
    }
    Ok(run)
}

/// A server, and the address at which its client reaches it.
struct Door {
    server: FarCommand,
    name: String,
    at: SocketAddr,
    token: String,
}

impl Door {
    /// Starts a server, and finds an address of it that answers the client; which ones did not, where none does.
    fn open(
        client: Party<'_>,
        server: Party<'_>,
        at: usize,
        order: &Order<'_>,
    ) -> Result<Result<Self, String>, FarFailure> {
        let (choice, family) = (order.addresses[at], order.family);
        let addresses = candidates(server.surroundings, client.surroundings, choice, family);
        if addresses.is_empty() {
            return Ok(Err(format!("{} has no address to dial", server.name)));
        }
        let token = session_token::fresh()
            .map_err(|error| FarFailure::between(Stage::Server, error.to_string()))?;
        let token = token.text().into_owned();
        let (listening, port) = serve(server, order.ports[at], order, &token)?;
        let targets: Vec<SocketAddr> = addresses
            .into_iter()
            .take(MOST)
            .map(|address| SocketAddr::new(address, port))
            .collect();
        let said = reach(client.session, Stage::Reach, &WITHIN, &targets, order.stop)?;
        let Some(at) = first_answer(&targets, &said.answers) else {
            // This host may have to dial itself, for which it must be free.
            Watched::of(listening, server.name.to_owned()).end(true);
            let tried = said.answers.iter().map(|answer| {
                let why = answer.error.as_deref().unwrap_or("open");
                format!("{}: {why}", answer.address.ip())
            });
            return Ok(Err(tried.collect::<Vec<_>>().join(", ")));
        };
        Ok(Ok(Self {
            server: listening,
            name: server.name.to_owned(),
            at,
            token,
        }))
    }

    /// Runs the client to its end, or until it is given up.
    fn measure(
        self,
        client: Party<'_>,
        roles: Roles,
        order: &Order<'_>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<FarRun, FarFailure> {
        let at = (self.at.ip().to_string(), self.at.port());
        let words = client_words(&at.0, at.1, roles.direction, order);
        let ask = alone(words, Some(&self.token), order);
        let server = Watched::of(self.server, self.name);
        measure(client, ask, Some(server), order, progress)
    }
}

/// Makes a test from a host to a server that runs already, whatever program it is, and brings its record back. The
/// direction of the order is seen from this host.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_against(
    client: Party<'_>,
    server: &str,
    (address, port): (&str, u16),
    order: &Order<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<FarRun, FarFailure> {
    let words = client_words(address, port, order.direction, order);
    let mut run = measure(client, alone(words, None, order), None, order, progress)?;
    if let Some(record) = &mut run.record {
        record.host_names = Some(HostNames {
            client: client.name.into(),
            server: server.into(),
        });
    }
    Ok(run)
}

/// Runs a client to its end, or until it is given up; `server` is its server where that was started for it.
fn measure(
    client: Party<'_>,
    ask: Ask,
    mut server: Option<Watched>,
    order: &Order<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<FarRun, FarFailure> {
    let mut running = FarCommand::start(client.session, Stage::Test, ask)?;
    let started = clock::monotonic();
    let mut until = order.within.map(|within| started.plus(within));
    let mut stopped = false;
    let beside = |server: &mut Option<Watched>, failure| match server {
        Some(server) => server.beside(failure),
        None => failure,
    };
    let outcome = loop {
        match running.next(SLICE) {
            Ok(Some(Heard::Line(line))) => progress(Progress::Line(&line)),
            Ok(Some(Heard::Talk(text))) => progress(Progress::Talk(&text)),
            Ok(Some(Heard::Ended(outcome))) => break outcome,
            Ok(None) => {}
            Err(failure) => return Err(beside(&mut server, failure)),
        }
        if let Some(server) = &mut server {
            server.look();
        }
        let now = clock::monotonic();
        if !stopped && (order.stop)() {
            stopped = true;
            running.cancel();
            until = Some(now.plus(MARGIN));
        }
        if until.is_some_and(|until| now >= until) {
            running.cancel();
            return Err(beside(&mut server, running.hung(now.since(started))));
        }
    };
    let bytes = running.file(0).filter(|_| order.recorded);
    let server_trouble = server.and_then(|server| server.end(order.several));
    if bytes.is_none() && (order.recorded || !outcome.is_success()) {
        if stopped {
            return Err(FarFailure::stopped(Stage::Test));
        }
        let mut failure = running.failed(&outcome);
        if let Some(trouble) = server_trouble {
            failure.why = format!("{}; {trouble}", failure.why).into();
        }
        return Err(failure);
    }
    let read = bytes
        .map(|bytes| read_record(&bytes, client.name))
        .transpose()?;
    Ok(FarRun {
        record: read,
        outcome,
        server_trouble,
    })
}

/// A server while its client runs: its output is taken, so that its session never waits for us.
struct Watched {
    server: FarCommand,
    name: String,
    ended: Option<Result<Outcome, FarFailure>>,
}

impl Watched {
    fn of(server: FarCommand, name: String) -> Self {
        Self {
            server,
            name,
            ended: None,
        }
    }

    /// Takes what has come.
    fn look(&mut self) {
        self.take(SLICE, Nanos::ZERO);
    }

    /// Waits for its end.
    fn wait(&mut self) {
        self.take(SERVER_END, SERVER_END);
    }

    /// Takes what comes, for `within` at most and until nothing does for `patience`.
    fn take(&mut self, within: Nanos, patience: Nanos) {
        let until = clock::monotonic().plus(within);
        while self.ended.is_none() {
            let left = until.since(clock::monotonic());
            match self.server.next(left.min(patience)) {
                Ok(Some(Heard::Ended(outcome))) => self.ended = Some(Ok(outcome)),
                Ok(Some(_)) if left > Nanos::ZERO => {}
                Ok(_) => return,
                Err(failure) => self.ended = Some(Err(failure)),
            }
        }
    }

    /// Waits for its end; what went wrong there.
    fn end(mut self, is_asked: bool) -> Option<PlainText> {
        if is_asked {
            self.server.cancel();
        }
        self.wait();
        if self.ended.is_none() {
            self.server.cancel();
            self.wait();
        }
        self.trouble()
    }

    fn trouble(&self) -> Option<PlainText> {
        match self.ended.as_ref()? {
            Ok(Outcome::Code(0)) => None,
            Ok(outcome) => Some(format!("the server on {}", self.server.failed(outcome)).into()),
            Err(failure) => Some(format!("the server on {}: {}", self.name, failure.why).into()),
        }
    }

    /// A failure of the client, with what is known of the server's.
    fn beside(&mut self, mut failure: FarFailure) -> FarFailure {
        self.look();
        if let Some(trouble) = self.trouble() {
            failure.why = format!("{}; {trouble}", failure.why).into();
        }
        failure
    }
}

fn client_words(address: &str, port: u16, direction: Direction, order: &Order<'_>) -> Vec<Word> {
    let port = port.to_string();
    let mut words: Vec<Word> = ["test", address, "-p", &port, "--report-elsewhere"]
        .map(Word::from)
        .into();
    words.extend(order.words.iter().cloned().map(Word::from));
    match direction {
        Direction::Send => {}
        Direction::Receive => words.push("-R".into()),
        Direction::Both => words.push("--bidir".into()),
    }
    if order.recorded {
        words.extend(["-o".into(), Word::Out(0)]);
    }
    words
}

fn read_record(bytes: &[u8], host: &str) -> Result<RunRecord, FarFailure> {
    let fail = |why: String| FarFailure::at(Stage::Record, host, why);
    record::from_json(bytes).map_err(|error| fail(format!("its record: {error}")))
}

/// A command that has the token, where there is one, and its host for itself: no test of somebody else runs there
/// meanwhile.
fn alone(words: Vec<Word>, token: Option<&str>, order: &Order<'_>) -> Ask {
    let token = token.map(|token| (session_token::VARIABLE.to_owned(), token.to_owned()));
    Ask {
        words,
        environment: token.into_iter().collect(),
        exclusive: Some(order.owner.to_owned()),
        ..Ask::default()
    }
}

/// Starts a server for one session, and waits until it says its port.
fn serve(
    server: Party<'_>,
    port: Option<u16>,
    order: &Order<'_>,
    token: &str,
) -> Result<(FarCommand, u16), FarFailure> {
    let port = port.unwrap_or(0).to_string();
    let mut words: Vec<Word> = [
        "serve",
        "-p",
        &port,
        "--json-stream",
        "--report-elsewhere",
        "--wait",
        SERVER_WAIT,
    ]
    .map(Word::from)
    .into();
    if !order.several {
        words.push("--one-off".into());
        words.extend(order.bounds.words());
    }
    words.extend(match order.family {
        Family::Any => None,
        Family::V4 => Some("-4".into()),
        Family::V6 => Some("-6".into()),
    });
    let ask = alone(words, Some(token), order);
    let mut serving = FarCommand::start(server.session, Stage::Server, ask)?;
    let until = clock::monotonic().plus(SOON);
    loop {
        match serving.next(SLICE)? {
            Some(Heard::Line(line)) => {
                if let Some(Announcement::Listening { port, .. }) = Announcement::read(&line) {
                    return Ok((serving, port));
                }
            }
            Some(Heard::Ended(outcome)) => return Err(serving.failed(&outcome)),
            Some(Heard::Talk(_)) | None => {}
        }
        // Also where it says something all the time.
        if (order.stop)() {
            return Err(FarFailure::stopped(Stage::Server));
        }
        if clock::monotonic() >= until {
            return Err(serving.hung(SOON));
        }
    }
}

/// Runs `linerate reach` on a host.
fn reach(
    session: &Session,
    stage: Stage,
    options: &[&str],
    targets: &[SocketAddr],
    stop: &dyn Fn() -> bool,
) -> Result<Surroundings, FarFailure> {
    let options = options.iter().copied();
    let mut words: Vec<Word> = std::iter::once("reach")
        .chain(options)
        .map(Word::from)
        .collect();
    words.extend(targets.iter().map(|target| Word::from(target.to_string())));
    let command = FarCommand::start(session, stage, Ask::new(words))?;
    let lines = command.lines(SOON, stop)?;
    let read = lines.first().map(|line| serde_json::from_str(line));
    match read {
        Some(Ok(surroundings)) => Ok(surroundings),
        Some(Err(error)) => Err(FarFailure::at(stage, session.host(), error.to_string())),
        None => Err(FarFailure::at(stage, session.host(), "it said nothing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_for_with_the_load_of_its_test() {
        let bounds = Bounds {
            time: Some(Nanos(12_000_000_001)),
            rate: Some(BitRate(20_000_000)),
        };
        let words = ["--max-duration=12001ms", "--max-rate=20000000"];
        assert_eq!(bounds.words(), words.map(Word::from));
        assert!(Bounds::default().words().is_empty());
    }
}
