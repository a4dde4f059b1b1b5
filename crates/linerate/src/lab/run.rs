//! One run: path up, server, test, path down.

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::process::{ExitStatus, Stdio};

use linerate_kernel::clock;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::process::{ChildSettings, PidFd};
use linerate_kernel::thread::SignalFd;
use linerate_lab::runner::{
    Account, CpuInForce, CpuMeter, CpuShare, Host, Isolation, Lab, LabReport,
};
use linerate_lab::scenario::{Family, Scenario};
use linerate_model::units::Nanos;

use super::cross::CrossTraffic;
use super::programs::{Program, Serving, linerate};
use crate::action::Failure;

/// Between two looks at whether the engine goes on.
const LOOK: Nanos = Nanos::from_millis(200);

/// How a run is to be done.
#[derive(Debug, Clone, Default)]
pub(super) struct RunOptions {
    /// More arguments for `linerate test`.
    pub(super) more: Vec<OsString>,
    /// Its document instead of its report on our standard output.
    pub(super) document: bool,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Ran {
    /// How `linerate test` ended.
    pub(super) status: ExitStatus,
    /// Whether a signal cut it short.
    pub(super) stopped: bool,
    /// Its document, where asked for: empty where it failed before the test.
    pub(super) document: Vec<u8>,
    /// Its last words, where the document was asked for.
    pub(super) complaint: String,
    /// What the path did.
    pub(super) lab: LabReport,
    /// What the path had done when the first test was over; as in `lab` where there was one test only.
    pub(super) first_test: Account,
}

/// Runs a scenario. The process has been set apart.
pub(super) fn run(
    scenario: &Scenario,
    isolation: Isolation,
    options: &RunOptions,
    signals: &SignalFd,
) -> Result<Ran, Failure> {
    let lab = Lab::up(scenario, isolation)?;
    let receiver = lab.host("receiver")?;
    let shares = [
        occupy(lab.host("sender")?, scenario.sender.cpu)?,
        occupy(receiver, scenario.receiver.cpu)?,
    ];
    let [testing, serving] = shares.each_ref().map(|share| {
        share
            .as_ref()
            .map_or_else(ChildSettings::default, CpuShare::settings)
    });
    let serving = Serving::start(receiver, &server_arguments(scenario), &serving)?;
    let mut cross = CrossTraffic::prepare(&lab, scenario)?;
    let mut command = linerate(test_arguments(
        scenario,
        &receiver.address(scenario.family).to_string(),
    ));
    command.args(&options.more);
    if options.document {
        command
            .arg("--json")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }
    let mut program = Program::start(lab.host("sender")?, &mut command, &testing)?;
    let output = Output::read(&mut program);
    let mut meters = [
        CpuMeter::of(program.child.id()),
        CpuMeter::of(serving.pid()),
    ];
    let waited = wait(
        &mut program,
        &lab,
        &serving,
        &mut cross,
        signals,
        &mut meters,
    );
    cross.stop();
    let made = shares
        .each_ref()
        .map(|share| share.as_ref().map(CpuShare::share));
    drop((shares, cross, serving));
    let Waited {
        status,
        stopped,
        first_test,
    } = waited?;
    let (document, complaint) = output.whole();
    let mut report = lab.down()?;
    let asked = [scenario.sender.cpu, scenario.receiver.cpu];
    for (at, name) in ["sender", "receiver"].into_iter().enumerate() {
        let host = report.in_force.hosts.get_mut(name);
        if let Some(((host, asked), weights)) = host.zip(asked[at]).zip(made[at]) {
            host.cpu = Some(CpuInForce {
                asked,
                weights,
                used: meters[at].share(),
            });
        }
    }
    Ok(Ran {
        status,
        stopped,
        document,
        complaint,
        first_test: first_test.unwrap_or_else(|| report.path.clone()),
        lab: report,
    })
}

/// How the wait for a test ended.
struct Waited {
    status: ExitStatus,
    stopped: bool,
    /// What the path had done by the end of the first test, where the server reported it in time.
    first_test: Option<Account>,
}

/// Lets the test go to its end, and the path and competing traffic follow its clock.
fn wait(
    program: &mut Program,
    lab: &Lab,
    serving: &Serving,
    cross: &mut CrossTraffic<'_>,
    signals: &SignalFd,
    meters: &mut [CpuMeter; 2],
) -> Result<Waited, Failure> {
    let mut stopped = false;
    let mut first_test = None;
    let failed = |error| Failure::Lab(format!("cannot wait for the test: {error}"));
    let ended = PidFd::open(program.child.id()).map_err(failed)?;
    let mut begun: Option<Nanos> = None;
    // It ends with the test, which bounds itself, or with a signal.
    loop {
        if begun.is_some() {
            let now = clock::monotonic();
            for meter in &mut *meters {
                meter.look(now);
            }
        }
        if let Some(status) = program.child.try_wait().map_err(failed)? {
            return Ok(Waited {
                status,
                stopped,
                first_test,
            });
        }
        let now = clock::monotonic();
        // Before the flags are looked at: what comes after wakes the wait below.
        serving.news.clear().map_err(failed)?;
        if begun.is_none() && serving.has_begun() {
            begun = Some(now);
            lab.begin();
        }
        if first_test.is_none() && serving.has_ended() {
            first_test = Some(lab.progress());
        }
        if let Some(begun) = begun {
            cross.start_due(now.since(begun))?;
        }
        if !lab.is_running() {
            return Err(Failure::Lab("the lab's engine has stopped".to_owned()));
        }
        let next = begun
            .zip(cross.next())
            .map(|(begun, next)| begun.plus(next).since(now));
        let mut entries = [
            PollEntry::new(ended.as_fd(), Interest::READ),
            PollEntry::new(signals.as_fd(), Interest::READ),
            PollEntry::new(serving.news.as_fd(), Interest::READ),
        ];
        poll::wait(&mut entries, Some(next.map_or(LOOK, |next| next.min(LOOK)))).map_err(failed)?;
        if let Ok(Some(signal)) = signals.read() {
            stopped = true;
            // The test knows what to do with it, and tells what it measured until now.
            ended.signal(signal).map_err(failed)?;
        }
    }
}

/// Reads what a program writes, so that it never waits for a reader.
struct Output {
    out: Option<std::thread::JoinHandle<Vec<u8>>>,
    error: Option<std::thread::JoinHandle<Vec<u8>>>,
}

impl Output {
    fn read(program: &mut Program) -> Self {
        fn reader(
            mut from: impl std::io::Read + Send + 'static,
        ) -> std::thread::JoinHandle<Vec<u8>> {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                // What came until an error is what there is.
                drop(from.read_to_end(&mut bytes));
                bytes
            })
        }
        Self {
            out: program.child.stdout.take().map(reader),
            error: program.child.stderr.take().map(reader),
        }
    }

    fn whole(self) -> (Vec<u8>, String) {
        let whole = |reader: Option<std::thread::JoinHandle<Vec<u8>>>| {
            reader
                .and_then(|reader| reader.join().ok())
                .unwrap_or_default()
        };
        let error = String::from_utf8_lossy(&whole(self.error))
            .trim()
            .to_owned();
        (whole(self.out), error)
    }
}

/// Makes a share of a host's CPU.
fn occupy(host: &Host, share: Option<f64>) -> Result<Option<CpuShare>, Failure> {
    let cpu = host.cpus().first().copied().unwrap_or(0);
    Ok(share
        .map(|share| CpuShare::occupy(cpu, share))
        .transpose()?)
}

fn server_arguments(scenario: &Scenario) -> Vec<String> {
    scenario
        .receiver
        .read_rate
        .map(|rate| vec!["--read-rate".to_owned(), rate.0.to_string()])
        .unwrap_or_default()
}

fn test_arguments(scenario: &Scenario, address: &str) -> Vec<String> {
    let family = match scenario.family {
        Family::Ipv4 => "-4",
        Family::Ipv6 => "-6",
    };
    let mut all = vec!["test".to_owned(), address.to_owned(), family.to_owned()];
    all.extend(scenario.test.args.iter().cloned());
    all
}
