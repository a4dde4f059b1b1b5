//! `iperf3 -s`: our server, talking as iperf3's does. It takes many clients at once; the lines of each
//! test are its own.

use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use linerate_engine::EngineError;
use linerate_engine::auth::Verifier;
use linerate_engine::server::{
    Cause, OwnReport, Server, ServerEvent, ServerLimits, ServerOptions, ServerOutput,
};
use linerate_kernel::thread::SignalFd;
use linerate_kernel::{clock, process};
use linerate_model::plan::Plan;
use linerate_model::progress::Event;
use linerate_model::record::{Outcome, Role, RunRecord};
use linerate_model::units::Nanos;
use linerate_report::iperf3::{ErrorCode, IntervalRoom, Iperf3Settings, Json, Text};

use crate::action::Failure;
use crate::iperf3_arguments::{Iperf3ArgumentError, Iperf3Common, Iperf3Server};
use crate::outlet::{self, Outlet};
use crate::printer::Printer;
use crate::signals;

use super::failure::{self, INVALID, Wrong, signal_of};
use super::output::{Output, stamped};
use super::pidfile::Pidfile;
use super::{UNBOUNDED, granted, padding, read, refuse, refuse_arguments, settings, warn};

/// What a stream of an interval takes in a JSON document that is kept for the end of its test, bytes.
const INTERVAL_BYTES: u64 = 2048;

/// Serves until it is stopped.
pub(super) fn run(request: &Iperf3Server, printer: &Printer) -> Result<(), Failure> {
    let common = &request.common;
    warn(common, printer);
    granted::bind_to_cpu(common)
        .and_then(|()| granted::check_keepalive(common))
        .map_err(|wrong| refuse(printer, &wrong.and_exiting()))?;
    let verifier = verifier(request, printer)?;
    // Opened and resolved where the user is: a daemon is elsewhere.
    let output = Output::open(common).map_err(|wrong| refuse(printer, &wrong.and_exiting()))?;
    let pidfile = common.pidfile.as_deref().map(std::path::absolute);
    if request.daemon {
        process::go_to_background()
            .map_err(|error| refuse(printer, &Wrong::of_kernel(ErrorCode::DAEMON, &error)))?;
    }
    let pidfile = pidfile.transpose()?.as_deref().map(Pidfile::create);
    let _pidfile = pidfile.transpose().map_err(|wrong| {
        output.complain(&wrong);
        Failure::Said
    })?;
    let stop = Arc::new(signals::take(&signals::OF_IPERF)?);
    let settings = settings(Role::Server, common);
    let options = options(request, verifier, &settings, printer)?;
    // An eighth of the memory of all tests.
    let intervals_kept = usize::try_from(options.limits.memory.count() / 8 / INTERVAL_BYTES);
    let intervals_kept = intervals_kept.unwrap_or(usize::MAX);
    let output = Arc::new(output);
    let errors = Outlet::of_errors(Printer::new())?;
    let teller = Arc::new(Teller {
        out: outlet(&output, &errors, common.json, &settings)?,
        errors,
        output,
        settings,
        json: common.json,
        one_off: request.one_off,
        port: request.port,
        room: IntervalRoom::new(intervals_kept),
        tests: Mutex::default(),
        stop: Arc::clone(&stop),
        signal: OnceLock::new(),
        told_stop: AtomicBool::new(false),
        listened: AtomicU64::new(0),
    });
    teller.version();
    let tell = Arc::clone(&teller);
    let served = Server::bind(options, Arc::new(move |event| tell.tell(event)))
        .map_err(|error| {
            let errno = match &error {
                EngineError::Host { source, .. } => failure::errno_of(source),
                _ => 0,
            };
            let wrong = Wrong::error(ErrorCode::LISTEN.sentence(errno)).and_exiting();
            if errno == 0 {
                wrong.and(error.to_string())
            } else {
                wrong
            }
        })
        .and_then(|server| {
            teller.listening();
            let served = server.run(stop.as_fd(), stop.as_fd());
            served.map_err(|error| Wrong::of_client(&error))
        });
    let end = match &served {
        Ok(_) => teller.interruption(),
        Err(wrong) => Some(wrong.clone()),
    };
    if let Some(wrong) = end {
        teller.failed(&wrong);
    }
    teller.out.drain();
    teller.errors.drain();
    served.map(drop).map_err(|_| Failure::Said)
}

fn options(
    request: &Iperf3Server,
    verifier: Option<Arc<Verifier>>,
    settings: &Iperf3Settings,
    printer: &Printer,
) -> Result<ServerOptions, Failure> {
    let bind = request.bind.as_deref().map(|name| address(name, printer));
    let sctp_bind = request.sctp_bind.iter();
    Ok(ServerOptions {
        port: request.port,
        bind: bind.transpose()?,
        bind_device: request.bind_device.clone(),
        sctp_bind: sctp_bind
            .map(|name| address(name, printer))
            .collect::<Result<_, _>>()?,
        family: request.family,
        one_off: request.one_off,
        limits: limits(request),
        verifier,
        interval: request.interval_ns,
        output: Some(own_report(settings.clone(), &request.common)),
        grace: Nanos::ZERO,
        send_timeout: request.common.send_timeout_ms.map(Nanos::from_millis),
        receive_timeout: Some(Nanos::from_millis(request.common.receive_timeout_ms)),
        file: request.common.file.clone(),
        one_off_patience: request.idle_timeout_s.map(seconds),
        control_keepalive: request.common.control_keepalive,
        strict: true,
        ..ServerOptions::default()
    })
}

/// What takes the lines of tests. The server serves whether or not they can be written.
fn outlet(
    output: &Arc<Output>,
    errors: &Outlet,
    json: bool,
    settings: &Iperf3Settings,
) -> Result<Outlet, Failure> {
    let (output, errors) = (Arc::clone(output), errors.clone());
    let (to, settings) = (Arc::clone(&output), settings.clone());
    let missing = move |lines: usize| {
        let text = outlet::missing_text(lines);
        if json {
            let mut document = Json::new(settings.clone(), None);
            output.text(&document.failed(Some(&text)))
        } else {
            output.text(&[format!("iperf3: {text}")])
        }
    };
    Ok(Outlet::start(
        move |text| to.write(text),
        missing,
        move |error| {
            errors.say(format!(
                "iperf3: warning: cannot write the output: {error}; the server goes on without it"
            ));
        },
    )?)
}

fn address(name: &str, printer: &Printer) -> Result<IpAddr, Failure> {
    let refused = |reason: String| {
        let wrong = Wrong::error(ErrorCode::LISTEN.sentence(INVALID)).and_exiting();
        refuse(
            printer,
            &wrong.and(format!("cannot bind to '{name}': {reason}")),
        )
    };
    let found = (name, 0).to_socket_addrs();
    let mut found = found.map_err(|error| refused(error.to_string()))?;
    let first = found.next().map(|address| address.ip());
    first.ok_or_else(|| refused("it has no address".to_owned()))
}

fn seconds(count: u32) -> Nanos {
    Nanos::from_millis(u64::from(count) * 1000)
}

fn limits(request: &Iperf3Server) -> ServerLimits {
    let defaults = ServerLimits::default();
    ServerLimits {
        // A test that runs until it is interrupted (-t 0) does so, too.
        duration: request.max_duration_s.map_or(UNBOUNDED, seconds),
        counts_as_iperf3: request.max_duration_s.is_some(),
        rate: request.bitrate_limit.map(|limit| limit.rate),
        rate_window: request
            .bitrate_limit
            .map_or(defaults.rate_window, |limit| limit.averaged_over),
        // Two tests would write over one another.
        clients: if request.common.file.is_some() {
            1
        } else {
            defaults.clients
        },
        ..defaults
    }
}

fn verifier(request: &Iperf3Server, printer: &Printer) -> Result<Option<Arc<Verifier>>, Failure> {
    let (Some(key), Some(users)) = (
        &request.rsa_private_key_path,
        &request.authorized_users_path,
    ) else {
        return Ok(None);
    };
    let no_key =
        |reason| refuse_arguments(&Iperf3ArgumentError::server_keys(Some(reason)), printer);
    let key = read(key, "the private key").map_err(no_key)?;
    let users = read(users, "the users file").map_err(|reason| {
        let text = "cannot access authorized users file";
        refuse_arguments(&Iperf3ArgumentError::detailed(text, Some(reason)), printer)
    })?;
    let skew = Some(u64::from(request.time_skew_threshold_s));
    let (verifier, warnings) = Verifier::new(
        &key,
        &users,
        padding(request.common.use_pkcs1_padding),
        skew,
    )
    .map_err(|error| no_key(error.to_string()))?;
    // iperf3 has no such warnings; programs take any line on standard error for a failure.
    if request.common.verbose {
        for warning in warnings {
            printer.tell(&format!("warning: {warning}"));
        }
    }
    Ok(Some(Arc::new(verifier)))
}

/// What a client gets for `--get-server-output`: what this server writes about its test, as text or as JSON.
fn own_report(settings: Iperf3Settings, common: &Iperf3Common) -> ServerOutput {
    let (json, timestamps) = (common.json, common.timestamps.clone());
    Arc::new(move |run, events| {
        if json {
            // The whole document, also where this server writes it in lines.
            let settings = Iperf3Settings {
                json_stream: false,
                ..settings.clone()
            };
            let mut document = Json::new(settings, Some(run.plan.clone()));
            for event in events {
                document.event(event);
            }
            return OwnReport::Json(document.document(run));
        }
        let mut shown = Text::new(settings.clone(), Some(run.plan.clone()));
        let began = Nanos::from_millis(run.started_at_unix_ms);
        let format = timestamps.as_deref();
        let mut text = String::new();
        for event in events {
            let at = match event {
                Event::Interval(interval) => began.plus(interval.to_ns),
                _ => began,
            };
            text.push_str(&stamped(&shown.event(event), format, at));
        }
        text.push_str(&stamped(&shown.end(run), format, clock::wall()));
        OwnReport::Text(text)
    })
}

/// Whether iperf3's sentence says all that its user can do something about: the client broke off, or sent what cannot be.
fn is_of_client(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::ClientSilent | Cause::NotUnderstood | Cause::Control(_) | Cause::Message { .. }
    ) || matches!(cause, Cause::System(code, _) if ErrorCode(code) == ErrorCode::SEND_MESSAGE)
}

/// The tests that run, and how each is shown.
struct Teller {
    output: Arc<Output>,
    out: Outlet,
    errors: Outlet,
    settings: Iperf3Settings,
    json: bool,
    one_off: bool,
    port: u16,
    /// For the intervals of all tests.
    room: IntervalRoom,
    tests: Mutex<HashMap<u64, (Text, Json)>>,
    stop: Arc<SignalFd>,
    /// What stopped this server, once somebody asked.
    signal: OnceLock<Option<i32>>,
    /// The document of a test said that this server was stopped.
    told_stop: AtomicBool,
    /// How often it said that it listens: iperf3 counts its tests so.
    listened: AtomicU64,
}

impl Teller {
    /// With `-V`: version and system, before each time that it listens.
    fn version(&self) {
        if !self.json {
            self.write(&Text::new(self.settings.clone(), None).begin());
        }
    }

    fn listening(&self) {
        let test = self.listened.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.json {
            self.write(&Text::listening(self.port, test));
        }
    }

    /// It listens for the next client, unless it serves one only.
    fn next(&self) {
        if !self.one_off {
            self.version();
            self.listening();
        }
    }

    fn tell(&self, event: ServerEvent) {
        match event {
            ServerEvent::Accepted { test, buffers, .. } => {
                self.shown(test, None, |_, json| {
                    if let Some(buffers) = buffers {
                        json.set_buffers(buffers.send, buffers.receive);
                    }
                    Vec::new()
                });
            }
            ServerEvent::Asked { test, plan } => {
                self.shown(test, Some(*plan), |_, _| Vec::new());
            }
            ServerEvent::Progress { test, event } => {
                let lines = self.shown(test, None, |text, json| {
                    if self.json {
                        json.event(&event)
                    } else {
                        text.event(&event)
                    }
                });
                self.write(&lines);
            }
            ServerEvent::Finished {
                test,
                record,
                cause,
                in_order,
            } => self.finished(test, &record, cause, in_order),
            ServerEvent::Refused {
                test,
                peer,
                reason,
                cause,
            } => self.refused(test, cause, &format!("{peer}: {reason}")),
        }
    }

    /// A test that broke off has no summary.
    fn finished(&self, test: u64, record: &RunRecord, cause: Option<Cause>, in_order: bool) {
        let reason = match &record.outcome {
            Outcome::Failed { error } => error.as_str(),
            _ => "",
        };
        let wrong = cause.and_then(|cause| self.wrong(cause, reason));
        let error = wrong.as_ref().map(Wrong::of_server);
        let lines = self.shown(test, None, |text, json| match (self.json, in_order) {
            (false, true) => text.end(record),
            (false, false) => Vec::new(),
            (true, false) => json.failed(error.as_deref()),
            (true, true) => {
                if let Some(error) = error {
                    json.set_error(error);
                }
                json.end(record)
            }
        });
        self.write(&lines);
        self.forget(Some(test));
        if cause == Some(Cause::ServerStopped) {
            self.told_stop.store(true, Ordering::Relaxed);
            return;
        }
        if let (Some(wrong), false) = (&wrong, self.json) {
            self.complain(wrong);
        }
        self.next();
    }

    fn refused(&self, test: Option<u64>, cause: Cause, reason: &str) {
        match (test, cause) {
            (Some(test), Cause::ServerStopped) if self.json && self.is_shown(test) => {
                self.not_run(test, cause, reason);
                self.told_stop.store(true, Ordering::Relaxed);
            }
            // The end of the server says it.
            (_, Cause::ServerStopped) => {}
            (Some(test), cause) => {
                self.not_run(test, cause, reason);
                self.next();
            }
            // iperf3 says nothing of whom it turns away; it has fewer reasons to.
            (None, _) => self.errors.say(format!("linerate: refused {reason}")),
        }
        self.forget(test);
    }

    /// A test whose streams did not run.
    fn not_run(&self, test: u64, cause: Cause, reason: &str) {
        let wrong = self.wrong(cause, reason);
        let error = wrong.as_ref().map(Wrong::of_server);
        let stopped = cause == Cause::ClientStopped;
        let lines = self.shown(test, None, |text, json| match (self.json, error) {
            (false, _) if stopped => text.stopped_early(),
            (false, _) => Vec::new(),
            (true, Some(error)) if stopped => json.stopped_early(&error),
            (true, error) => json.failed(error.as_deref()),
        });
        self.write(&lines);
        if let (Some(wrong), false) = (wrong, self.json) {
            self.complain(&wrong);
        }
    }

    /// What iperf3's server says of a cause. What it warns of goes to standard error at once.
    fn wrong(&self, cause: Cause, reason: &str) -> Option<Wrong> {
        if let Some(warning) = failure::unread(cause) {
            self.errors.say(format!("warning: {warning}"));
        }
        let wrong = Wrong::at_server(cause, reason, self.signal(cause))?;
        // iperf3's server, too, has more to say of a client that broke off only where it was asked for more.
        let whole = self.settings.verbose || !is_of_client(cause);
        Some(if whole { wrong } else { wrong.alone() })
    }

    /// The signal that stopped this server, which is taken from its descriptor only when all know that it came.
    fn signal(&self, cause: Cause) -> Option<i32> {
        (cause == Cause::ServerStopped)
            .then(|| *self.signal.get_or_init(|| signal_of(&self.stop)))
            .flatten()
    }

    /// What stopped this server, where no document says so.
    fn interruption(&self) -> Option<Wrong> {
        let signal = self.signal(Cause::ServerStopped)?;
        let told = self.json && self.told_stop.load(Ordering::Relaxed);
        (!told).then(|| Wrong::interrupted(Role::Server, Some(signal)))
    }

    /// What has no test to be shown with.
    fn failed(&self, wrong: &Wrong) {
        if self.json {
            let mut json = Json::new(self.settings.clone(), None);
            self.write(&json.failed(Some(&wrong.of_server())));
        } else {
            self.complain(wrong);
        }
    }

    /// To the log file, or else to standard error; no test waits for either.
    fn complain(&self, wrong: &Wrong) {
        let text = self.output.text(&wrong.lines());
        if self.output.has_log() {
            self.out.say(text);
        } else {
            self.errors.say(text.trim_end_matches('\n').to_owned());
        }
    }

    /// Whether a test is known, from its parameters on.
    fn is_shown(&self, test: u64) -> bool {
        let tests = self.tests.lock().unwrap_or_else(PoisonError::into_inner);
        tests.contains_key(&test)
    }

    /// A test that is over, whether or not its streams ran.
    fn forget(&self, test: Option<u64>) {
        let mut tests = self.tests.lock().unwrap_or_else(PoisonError::into_inner);
        tests.retain(|number, _| Some(*number) != test);
    }

    fn shown(
        &self,
        test: u64,
        plan: Option<Plan>,
        show: impl FnOnce(&mut Text, &mut Json) -> Vec<String>,
    ) -> Vec<String> {
        let mut tests = self.tests.lock().unwrap_or_else(PoisonError::into_inner);
        let (text, json) = tests.entry(test).or_insert_with(|| {
            (
                Text::new(self.settings.clone(), plan.clone()),
                Json::new(self.settings.clone(), plan).within(&self.room),
            )
        });
        show(text, json)
    }

    fn write(&self, lines: &[String]) {
        if !lines.is_empty() {
            self.out.say(self.output.text(lines));
        }
    }
}
