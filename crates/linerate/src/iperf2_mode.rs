//! `linerate iperf …`, or the binary under the name `iperf`: iperf2's arguments and lines around our engine.
//!
//! A sender's figures are what it wrote, as iperf2's are. Where that is not what arrived, standard error says so.

use std::collections::HashMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};

use linerate_engine::client::{self, ClientOptions, Ended};
use linerate_engine::server::{Server, ServerEvent, ServerLimits, ServerOptions};
use linerate_kernel::{clock, process, socket};
use linerate_model::plan::{Family, Protocol};
use linerate_model::record::{Outcome, Role, RunRecord};
use linerate_report::iperf2::{Iperf2Settings, Iperf2Text, listening};

use crate::action::Failure;
use crate::iperf2_arguments::{self, Iperf2Action, Iperf2Client, Iperf2Output, Iperf2Server};
use crate::iperf3_mode::UNBOUNDED;
use crate::outlet::Outlet;
use crate::printer::Printer;
use crate::serve::standard_output;
use crate::signals;

/// Where less than this share of what a sender wrote was acknowledged, it is told.
const NEARLY_ALL: f64 = 0.99;

/// Does what iperf2 would do.
pub(crate) fn run(arguments: Vec<OsString>, printer: &Printer) -> Result<(), Failure> {
    match iperf2_arguments::parse(arguments) {
        Err(text) => {
            printer.tell(text.trim_end());
            Err(Failure::Said)
        }
        Ok(Iperf2Action::Help(text)) => Ok(printer.print(&text)?),
        Ok(Iperf2Action::Version(version)) => Ok(printer.print(&format!(
            "iperf version {version} (linerate {}) pthreads\n",
            env!("CARGO_PKG_VERSION")
        ))?),
        Ok(Iperf2Action::Client(request)) => run_client(*request, printer),
        Ok(Iperf2Action::Server(request)) => run_server(&request, printer),
    }
}

fn settings(role: Role, output: &Iperf2Output, host: &str) -> Iperf2Settings {
    Iperf2Settings {
        role,
        layout: output.layout,
        csv: output.csv,
        format: output.format,
        intervals: output.intervals,
        host: host.to_owned(),
    }
}

fn warn(output: &Iperf2Output, printer: &Printer) {
    if output.enhanced {
        printer.tell(
            "linerate: warning: -e: the columns of the enhanced layout are not printed, in CSV neither",
        );
    }
}

/// The time as CSV has it.
fn now() -> String {
    process::local_label(clock::wall(), "%Y%m%d%H%M%S")
}

fn of_lines(lines: &[String]) -> String {
    let mut text = String::new();
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn run_client(request: Iperf2Client, printer: &Printer) -> Result<(), Failure> {
    let Iperf2Client { plan, output } = request;
    warn(&output, printer);
    let stop = signals::take(&signals::OF_IPERF)?;
    let options = ClientOptions {
        iperf2: true,
        ..ClientOptions::default()
    };
    let settings = settings(Role::Client, &output, &plan.host);
    let mut text = Iperf2Text::new(settings, plan.clone());
    let mut lost = None;
    let ended = client::run(&plan, &options, stop.as_fd(), &mut |event| {
        text.set_now(now());
        let lines = of_lines(&text.event(event));
        if !lines.is_empty()
            && let Err(error) = printer.print(&lines)
        {
            lost.get_or_insert(error);
        }
    })?;
    text.set_now(now());
    printer.print(&of_lines(&text.end(&ended.record)))?;
    lost.map_or(Ok(()), |error| Err(Failure::Output(error)))?;
    for line in text.unanswered(&ended.record) {
        printer.tell(&line);
    }
    for note in notes(&ended) {
        printer.tell(&format!("linerate: note: {note}"));
    }
    match ended.record.outcome {
        Outcome::Completed | Outcome::Interrupted => Ok(()),
        Outcome::PeerInterrupted | Outcome::Failed { .. } => Err(Failure::Said),
    }
}

/// What the lines do not say.
fn notes(ended: &Ended) -> Vec<String> {
    let record = &ended.record;
    let failed = match &record.outcome {
        Outcome::Failed { error, .. } => Some(error.to_string()),
        _ => None,
    };
    failed.into_iter().chain(acknowledged(record)).collect()
}

/// What the sender's kernel knows to have arrived, where that is less than what was written.
fn acknowledged(record: &RunRecord) -> Option<String> {
    let half = record.own_end()?;
    let sends = half.streams.iter().filter(|stream| stream.sends);
    let (mut written, mut arrived) = (0, 0);
    for stream in sends {
        written += stream.app_bytes;
        arrived += stream.tcp.as_ref()?.bytes_acked?;
    }
    let is_less = (arrived as f64) < NEARLY_ALL * written as f64;
    is_less.then(|| {
        format!(
            "these are the {written} bytes that this end wrote; {arrived} of them were acknowledged (`linerate test --iperf2` \
             shows what arrived)"
        )
    })
}

fn run_server(request: &Iperf2Server, printer: &Printer) -> Result<(), Failure> {
    warn(&request.output, printer);
    if request.daemon {
        process::go_to_background()?;
    }
    let stop = signals::take(&signals::OF_IPERF)?;
    let errors = Outlet::of_errors(Printer::new())?;
    let out = standard_output(false, &errors)?;
    let teller = Teller {
        out: out.clone(),
        errors: errors.clone(),
        output: request.output.clone(),
        tests: Mutex::default(),
    };
    let options = ServerOptions {
        port: request.port,
        bind: request.bind,
        family: request.family,
        interval: request.interval,
        iperf2: true,
        limits: limits(),
        ..ServerOptions::default()
    };
    let server = Server::bind(options, Arc::new(move |event| teller.tell(&event)))?;
    if !request.output.csv {
        let (layout, protocol) = (request.output.layout, request.protocol);
        let buffer = receive_buffer(request).unwrap_or(0);
        let block = linerate_wire::iperf2::DEFAULT_UDP_BLOCK;
        out.say(of_lines(&listening(
            layout,
            protocol,
            request.port,
            block,
            buffer,
        )));
    }
    let served = server.run(stop.as_fd(), stop.as_fd());
    out.drain();
    errors.drain();
    Ok(served.map(drop)?)
}

/// As iperf2's server: no bound of time, nor of one address but that of all.
fn limits() -> ServerLimits {
    let limits = ServerLimits::default();
    ServerLimits {
        duration: UNBOUNDED,
        clients_per_address: limits.clients,
        ..limits
    }
}

/// What this kernel gives a new socket to receive with, bytes.
fn receive_buffer(request: &Iperf2Server) -> std::io::Result<u64> {
    let own = match request.family {
        Family::V6 => IpAddr::from(Ipv6Addr::LOCALHOST),
        Family::V4 | Family::Any => IpAddr::from(Ipv4Addr::LOCALHOST),
    };
    let bytes = match request.protocol {
        Protocol::Udp => socket::receive_buffer(UdpSocket::bind((own, 0))?)?,
        Protocol::Tcp | Protocol::Sctp => socket::receive_buffer(TcpListener::bind((own, 0))?)?,
    };
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Prints what the server's threads tell.
struct Teller {
    out: Outlet,
    errors: Outlet,
    output: Iperf2Output,
    tests: Mutex<HashMap<u64, Iperf2Text>>,
}

impl Teller {
    fn tell(&self, event: &ServerEvent) {
        let lines = match event {
            ServerEvent::Asked { test, plan } => {
                let settings = settings(Role::Server, &self.output, "");
                let text = Iperf2Text::new(settings, (**plan).clone());
                self.tests().insert(*test, text);
                return;
            }
            ServerEvent::Progress { test, event } => {
                let mut tests = self.tests();
                let text = tests.get_mut(test);
                text.map(|text| {
                    text.set_now(now());
                    text.event(event)
                })
            }
            ServerEvent::Finished { test, record, .. } => {
                let text = self.tests().remove(test);
                text.map(|mut text| {
                    text.set_now(now());
                    text.end(record)
                })
            }
            ServerEvent::Refused {
                test, peer, reason, ..
            } => {
                if let Some(test) = test {
                    self.tests().remove(test);
                }
                self.errors
                    .say(format!("linerate: warning: refused {peer}: {reason}"));
                return;
            }
            ServerEvent::Accepted { .. } => return,
        };
        let text = of_lines(&lines.unwrap_or_default());
        if !text.is_empty() {
            self.out.say(text);
        }
    }

    fn tests(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Iperf2Text>> {
        self.tests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
