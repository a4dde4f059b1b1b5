//! `linerate hub`: runs the tests of a plan regularly, keeps what they show, and serves pages of it.
//!
//! [`driver::Driver`] owns the dispatcher and the alerts, which are pure, and is the only thread that touches them. It waits
//! on one channel: for sessions ([`hosts`]), tests ([`measuring`]), signals and its next moment. Rows go to the archive
//! before alerts see them ([`ingest`]); what is to be sent goes to [`outbox`].

pub(crate) mod arguments;
mod asking;
mod clock;
mod driver;
mod enrolling;
mod facts;
mod figures;
pub(crate) mod folder;
mod hosts;
mod ingest;
mod keeping;
mod measuring;
mod outbox;
mod past;
mod plan_file;
mod quiet;
mod shown;
mod stamp;
mod users;

use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_archive::{Archive, Retention};
use linerate_hub::access::{Door, TlsError, TlsFiles, Transport};
use linerate_hub::shared::{Requests, Shared};
use linerate_hub::{ServeError, Serving, serve_behind};
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::process::{keep_heaps_few, raise_descriptor_limit};
use linerate_kernel::thread::SignalFd;
use linerate_model::alert::AlertId;
use linerate_model::host::HostFacts;
use linerate_model::plain_text::PlainText;
use linerate_model::watch::RunId;
use linerate_watch::alert::PairName;
use linerate_watch::dispatch::LeaseId;

use crate::action::Failure;
use crate::printer::Printer;
use crate::signals;
use arguments::{HubArguments, HubCommand};
use clock::HubClock;
use driver::Driver;
use folder::Folder;
use hosts::{End, Hosts, Permit, Standing};
use measuring::Made;
use plan_file::PlanFile;

/// What the driver hears.
enum Happened {
    /// A host's agent answers.
    Up(String, Arc<Standing>),
    /// It did, and no longer does.
    Lost(String, PlainText),
    /// It could not be reached.
    Away(String, PlainText),
    /// What a host is like. Others may say it once this has been taken.
    Facts(String, Box<HostFacts>, Permit),
    /// The load of a test begins.
    Started(LeaseId),
    /// A test ended.
    Finished(Box<Made>),
    /// Whether a host can be reached, which the dispatcher asked.
    Checked(String, Result<(), PlainText>),
    /// Somebody wants a test now, and an answer.
    Wanted(PairName, Sender<Result<RunId, String>>),
    /// Somebody takes the level of an alert's pairs for the right one, and wants an answer.
    Accepted(AlertId, PlainText, Sender<Result<usize, String>>),
    /// A silence began or ended.
    Silences,
    /// The plan is to be read again.
    Reload,
    /// The hub is to end.
    Stop,
}

/// The driver answers within this time.
const ANSWERS: Duration = Duration::from_secs(5);
/// So many heaps: each agent has threads, and few of them allocate at the same time.
const HEAPS: u16 = 2;
/// How often old records are removed.
const RETAIN_EVERY: Duration = Duration::from_secs(3_600);

/// What a plan looks like, for those who have none.
const EXAMPLE: &str = "\
nothing is watched yet. Write watch.toml, and start `linerate hub watch.toml`:

    [[host]]
    names = \"node[1-3]\"       # the hub reaches them by ssh
    reach = \"ssh\"

    [[task]]
    name = \"all\"
    mesh = \"node[1-3]\"        # each to each other
    test = \"-t 10\"            # options of `linerate test`
    every = \"6h\"

`linerate watch plan watch.toml` says what that costs, before anything runs.
";

pub(crate) fn run(arguments: &HubArguments, printer: &Printer) -> Result<(), Failure> {
    match &arguments.command {
        Some(HubCommand::Token(command)) => enrolling::token(command, printer),
        Some(HubCommand::Agent(command)) => enrolling::agent(command, printer),
        Some(HubCommand::User(command)) => users::run(command, printer),
        None => watch(arguments, printer),
    }
}

fn watch(arguments: &HubArguments, printer: &Printer) -> Result<(), Failure> {
    keep_heaps_few(HEAPS);
    let mut plan = arguments
        .file
        .as_deref()
        .map(|file| PlanFile::new(file, arguments.reach.groups()));
    let watched = plan.as_mut().map(PlanFile::read).transpose()?;
    let signals = signals::take(&[signals::TERMINATE, signals::INTERRUPT, signals::HANGUP])?;
    // Where the limit stays, sessions say so.
    drop(raise_descriptor_limit());
    let path = folder::given_or_usual(arguments.folder.as_ref())?;
    // Before the archive, so that a refusal changes nothing.
    let door = door(arguments, &path)?;
    door.check(arguments.listen)?;
    let listener = bind(arguments.listen)?;
    let folder = Folder::take(&path)?;
    let before = folder::state(&path)?.unwrap_or_default();
    let archive =
        Arc::new(Archive::open(&path)?.with_figures_of(linerate_report::watch_figures::VERSION));
    let clock = HubClock::start();
    let (told, news) = mpsc::channel();
    let shared = Shared::new(archive.clone(), move || clock.now());
    let shared = Arc::new(shared.with_driver(Line(Mutex::new(told.clone()))));
    let reach = arguments.reach.reach()?;
    let agents = arguments
        .agents
        .map(|address| enrolling::listen(address, &path, clock))
        .transpose()?;
    let arrivals = agents.as_ref().map(|agents| agents.arrivals.clone());
    let hosts = Hosts::new(reach, arrivals, arguments.reach.fan_out, told.clone());
    let driver = Driver::start(
        driver::Means {
            clock,
            archive: archive.clone(),
            folder,
            shared: shared.clone(),
            told: told.clone(),
            printer,
        },
        before,
        plan,
        watched.unwrap_or_default(),
        hosts,
    )?;
    let scheme = scheme(&door);
    let serving = serve_behind(listener, shared, door)?;
    announce(scheme, &serving, &path, driver.is_empty(), printer)?;
    if let Some(agents) = &agents {
        let address = agents.listening.address();
        printer.line(&format!("agents connect to {address}"))?;
    }
    watch_signals(signals, told)?;
    let end = Arc::new(End::default());
    let keeping = keep_in_bounds(archive, clock, end.clone())?;
    driver.run(&news);
    drop(agents);
    end.set();
    serving.stop();
    drop(keeping.join());
    Ok(())
}

fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).map_err(|error| {
        Failure::Usage(format!(
            "cannot listen on {address}: {error}; --listen names another address"
        ))
    })
}

/// Who may come in, and how.
fn door(arguments: &HubArguments, folder: &std::path::Path) -> Result<Door, Failure> {
    let known = users::Known::of(folder)?;
    let transport = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificate), Some(key)) => Transport::Tls(TlsFiles::open(certificate, key)?),
        _ if arguments.behind_proxy.is_empty() => Transport::Plain,
        _ => Transport::Proxy(arguments.behind_proxy.clone()),
    };
    Ok(Door {
        users: Box::new(move || known.now()),
        transport,
        log: Box::new(|line| Printer::new().tell(&format!("linerate hub: {line}"))),
    })
}

const fn scheme(door: &Door) -> &'static str {
    match door.transport {
        Transport::Tls(_) => "https",
        Transport::Plain | Transport::Proxy(_) => "http",
    }
}

/// The line by which pages reach the driver.
struct Line(Mutex<Sender<Happened>>);

impl Line {
    fn tell(&self, what: Happened) -> Result<(), String> {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.send(what).map_err(|_| away())
    }

    fn ask<T>(
        &self,
        what: impl FnOnce(Sender<Result<T, String>>) -> Happened,
    ) -> Result<T, String> {
        let (answer, answered) = mpsc::channel();
        self.tell(what(answer))?;
        answered.recv_timeout(ANSWERS).map_err(|_| away())?
    }
}

fn away() -> String {
    "The hub is busy or about to end; try again.".to_owned()
}

impl Requests for Line {
    fn test(&self, pair: PairName) -> Result<RunId, String> {
        self.ask(|answer| Happened::Wanted(pair, answer))
    }

    fn accept(&self, alert: AlertId, by: PlainText) -> Result<usize, String> {
        self.ask(|answer| Happened::Accepted(alert, by, answer))
    }

    fn silences_changed(&self) {
        // A driver that has gone notifies nobody.
        drop(self.tell(Happened::Silences));
    }
}

fn announce(
    scheme: &str,
    serving: &Serving,
    folder: &std::path::Path,
    is_empty: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    let address = serving.address();
    printer.line(&format!("linerate hub: {scheme}://{address}/"))?;
    printer.line(&format!("results are kept in {}", folder.display()))?;
    if is_empty {
        printer.print(EXAMPLE)?;
    }
    Ok(())
}

/// Once an hour removes the records that the archive's rules no longer keep.
fn keep_in_bounds(
    archive: Arc<Archive>,
    clock: HubClock,
    end: Arc<End>,
) -> Result<JoinHandle<()>, Failure> {
    let keep = move || {
        let printer = Printer::new();
        while !end.is_set() {
            if let Err(error) = archive.retain(clock.now(), &Retention::default()) {
                printer.tell(&format!("linerate hub: {error}"));
            }
            end.wait(RETAIN_EVERY);
        }
    };
    std::thread::Builder::new()
        .name("retention".to_owned())
        .spawn(keep)
        .map_err(|error| Failure::File(format!("starting the thread of retention: {error}")))
}

/// Turns signals into events.
fn watch_signals(signals: SignalFd, told: Sender<Happened>) -> Result<(), Failure> {
    let watch = move || {
        let mut stopped = false;
        loop {
            let mut entries = [PollEntry::new(signals.as_fd(), Interest::READ)];
            if poll::wait(&mut entries, None).is_err() {
                return;
            }
            while let Ok(Some(signal)) = signals.read() {
                let what = if signal == signals::HANGUP {
                    Happened::Reload
                } else {
                    if std::mem::replace(&mut stopped, true) {
                        // Asked a second time: what runs is given up.
                        signals::release(&signals, &[signals::TERMINATE, signals::INTERRUPT]);
                        return;
                    }
                    Happened::Stop
                };
                if told.send(what).is_err() {
                    return;
                }
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch)
        .map(drop)
        .map_err(|error| Failure::File(format!("starting the thread of signals: {error}")))
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::NoUsers { .. } | ServeError::NoTls { .. } => Self::Usage(error.to_string()),
            ServeError::Users(_) | ServeError::System { .. } => Self::File(error.to_string()),
        }
    }
}

impl From<TlsError> for Failure {
    fn from(error: TlsError) -> Self {
        Self::File(error.to_string())
    }
}
