//! `iperf3 -s`: our server, talking as iperf3's does. It takes many clients at once; the lines of each
//! test are its own.

use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};

use linerate_engine::auth::Verifier;
use linerate_engine::server::{Server, ServerEvent, ServerLimits, ServerOptions, ServerOutput};
use linerate_kernel::process;
use linerate_model::plan::Plan;
use linerate_model::record::Role;
use linerate_model::units::Nanos;
use linerate_report::iperf3::{IntervalRoom, Iperf3Settings, Json, Text, error_line};

use crate::action::Failure;
use crate::iperf3_arguments::Iperf3Server;
use crate::outlet::{self, Outlet};
use crate::printer::Printer;
use crate::signals;

use super::output::Output;
use super::{fail, granted, padding, read, settings, warn};

/// What a stream of an interval takes in a JSON document that is kept for the end of its test, bytes.
const INTERVAL_BYTES: u64 = 2048;

/// Serves until it is stopped.
pub(super) fn run(request: &Iperf3Server, printer: &Printer) -> Result<(), Failure> {
    let common = &request.common;
    warn(common, printer);
    granted::bind_to_cpu(common, printer)?;
    granted::check_keepalive(common, printer)?;
    let verifier = verifier(request, printer)?;
    if request.daemon {
        process::go_to_background()
            .map_err(|error| fail(printer, &format!("unable to become a daemon: {error}")))?;
    }
    if let Some(path) = &common.pidfile {
        std::fs::write(path, format!("{}\0", std::process::id())).map_err(|error| {
            fail(
                printer,
                &format!("unable to write PID file {}: {error}", path.display()),
            )
        })?;
    }
    let signals = signals::take(&[&[signals::TERMINATE], &[signals::INTERRUPT]])?;
    let settings = settings(Role::Server, common);
    let options = ServerOptions {
        port: request.port,
        bind: request
            .bind
            .as_deref()
            .map(|name| address(name, printer))
            .transpose()?,
        bind_device: request.bind_device.clone(),
        family: request.family,
        one_off: request.one_off,
        limits: limits(request),
        verifier,
        interval: request.interval_ns,
        output: Some(server_output(settings.clone())),
        grace: Nanos::ZERO,
        send_timeout: common.send_timeout_ms.map(Nanos::from_millis),
        receive_timeout: Some(Nanos::from_millis(common.receive_timeout_ms)),
        file: common.file.clone(),
        control_keepalive: common.control_keepalive,
        strict: true,
        ..ServerOptions::default()
    };
    // An eighth of the memory of all tests.
    let intervals_kept = usize::try_from(options.limits.memory.count() / 8 / INTERVAL_BYTES);
    let intervals_kept = intervals_kept.unwrap_or(usize::MAX);
    let output = Arc::new(Output::open(common, printer)?);
    let errors = Outlet::of_errors(Printer::new())?;
    let teller = Arc::new(Teller {
        out: outlet(&output, &errors, common.json, &settings)?,
        output,
        settings,
        json: common.json,
        port: request.port,
        room: IntervalRoom::new(intervals_kept),
        tests: Mutex::default(),
    });
    let tell = Arc::clone(&teller);
    let server =
        Server::bind(options, Arc::new(move |event| tell.tell(event))).map_err(|error| {
            fail(
                printer,
                &format!("unable to start listener for connections: {error}"),
            )
        })?;
    teller.listening(1);
    let served = server.run(signals[0].as_fd(), signals[1].as_fd());
    teller.out.drain();
    errors.drain();
    if let Some(path) = &common.pidfile {
        drop(std::fs::remove_file(path));
    }
    served.map_err(|error| fail(printer, &error.to_string()))
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
            output.text(&document.failed(&text))
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
    let found = (name, 0)
        .to_socket_addrs()
        .map_err(|error| fail(printer, &format!("cannot bind to '{name}': {error}")))?;
    let first = found.map(|address| address.ip()).next();
    first.ok_or_else(|| {
        fail(
            printer,
            &format!("cannot bind to '{name}': it has no address"),
        )
    })
}

fn limits(request: &Iperf3Server) -> ServerLimits {
    let seconds = |count: u32| Nanos::from_millis(u64::from(count) * 1000);
    let defaults = ServerLimits::default();
    ServerLimits {
        // Where no bound was asked for, that of iperf3's own -t.
        duration: seconds(request.max_duration_s.unwrap_or(86_400)),
        refuses_endless: request.max_duration_s.is_some(),
        rate: request.bitrate_limit.map(|limit| limit.rate),
        rate_window: request
            .bitrate_limit
            .map_or(defaults.rate_window, |limit| limit.averaged_over),
        idle: request.idle_timeout_s.map_or(defaults.idle, seconds),
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
    let key = read(key, "the private key", printer)?;
    let users = read(users, "the users file", printer)?;
    let skew = Some(u64::from(request.time_skew_threshold_s));
    let (verifier, warnings) = Verifier::new(&key, &users, padding(&request.common), skew)
        .map_err(|error| fail(printer, &error.to_string()))?;
    for warning in warnings {
        printer.tell(&format!("warning: {warning}"));
    }
    Ok(Some(Arc::new(verifier)))
}

/// The text that a client gets for `--get-server-output`.
fn server_output(settings: Iperf3Settings) -> ServerOutput {
    Arc::new(move |run, events| {
        let mut text = Text::new(settings.clone(), Some(run.plan.clone()));
        let mut lines: Vec<String> = text.begin();
        for event in events {
            lines.extend(text.event(event));
        }
        lines.extend(text.end(run));
        lines.push(String::new());
        lines.join("\n")
    })
}

/// The tests that run, and how each is shown.
struct Teller {
    output: Arc<Output>,
    out: Outlet,
    settings: Iperf3Settings,
    json: bool,
    port: u16,
    /// For the intervals of all tests.
    room: IntervalRoom,
    tests: Mutex<HashMap<u64, (Text, Json)>>,
}

impl Teller {
    fn listening(&self, test: u64) {
        if !self.json {
            self.write(&Text::listening(self.port, test));
        }
    }

    fn tell(&self, event: ServerEvent) {
        match event {
            ServerEvent::Accepted { test, plan, .. } => {
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
            ServerEvent::Finished { test, record } => {
                let mut lines = self.shown(test, None, |text, json| {
                    if self.json {
                        json.end(&record)
                    } else {
                        text.end(&record)
                    }
                });
                if let (Some(line), false) = (error_line(&record), self.json) {
                    lines.push(line);
                }
                self.write(&lines);
                self.forget(Some(test));
                self.listening(test + 1);
            }
            ServerEvent::Refused { test, peer, reason } => {
                self.forget(test);
                if self.json {
                    let mut json = Json::new(self.settings.clone(), None);
                    self.write(&json.failed(&format!("{peer}: {reason}")));
                } else {
                    self.write(&[format!("iperf3: error - {peer}: {reason}")]);
                }
            }
        }
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
