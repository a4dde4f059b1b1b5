//! `linerate iperf3 …`, or the binary under the name `iperf3`: iperf3's arguments, lines, documents
//! and exit codes around our engine.

mod failure;
mod granted;
mod output;
mod pidfile;
mod server;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::Path;

use linerate_engine::EngineError;
use linerate_engine::auth::Credentials;
use linerate_engine::client::{self, ClientOptions, DatagramFit, Ended};
use linerate_kernel::{clock, host, process};
use linerate_model::plan::Plan;
use linerate_model::progress::Event;
use linerate_model::record::{Outcome, Role};
use linerate_model::units::Nanos;
use linerate_report::iperf3::{Iperf3Settings, Json, Text};

use crate::action::Failure;
use crate::input;
use crate::iperf3_arguments::{
    self, Iperf3Action, Iperf3ArgumentError, Iperf3Client, Iperf3Common,
};
use crate::printer::Printer;
use crate::signals;
use crate::test::padding;

use failure::{Wrong, signal_of};
use output::Output;
use pidfile::Pidfile;

/// The longest test where none was asked for: ten years.
pub(crate) const UNBOUNDED: Nanos = Nanos::from_millis(315_360_000_000);

/// Does what iperf3 would do.
pub(crate) fn run(arguments: Vec<OsString>, printer: &mut Printer) -> Result<(), Failure> {
    match iperf3_arguments::parse(arguments) {
        Err(error) => Err(refuse_arguments(&error, printer)),
        Ok(Iperf3Action::Help) => Ok(printer.print(&iperf3_arguments::help_text())?),
        Ok(Iperf3Action::Version) => {
            let text = iperf3_arguments::version_text(env!("CARGO_PKG_VERSION"), &system());
            Ok(printer.print(&text)?)
        }
        Ok(Iperf3Action::Client(mut request)) => {
            granted::end_with_file(&mut request);
            run_client(&request, printer)
        }
        Ok(Iperf3Action::Server(request)) => server::run(&request, printer),
    }
}

/// The system as `uname -srnvm` prints it.
fn system() -> String {
    let facts = host::facts();
    let version = std::fs::read_to_string("/proc/sys/kernel/version").unwrap_or_default();
    format!(
        "Linux {} {} {} {}",
        facts.hostname.unwrap_or_default(),
        facts.kernel.unwrap_or_default(),
        version.trim(),
        facts.architecture.unwrap_or_default()
    )
}

/// What iperf3 warns of, before anything else.
fn warn(common: &Iperf3Common, printer: &Printer) {
    for warning in &common.warnings {
        printer.tell(&format!("warning: {warning}"));
    }
}

/// A command line that cannot be carried out.
fn refuse_arguments(error: &Iperf3ArgumentError, printer: &Printer) -> Failure {
    let stamp = error
        .timestamps()
        .map(|format| process::local_label(clock::wall(), format));
    printer.tell(error.report(&stamp.unwrap_or_default()).trim_end());
    Failure::Said
}

/// Before there is an output.
fn refuse(printer: &Printer, wrong: &Wrong) -> Failure {
    printer.tell(&wrong.lines().join("\n"));
    Failure::Said
}

fn settings(role: Role, common: &Iperf3Common) -> Iperf3Settings {
    Iperf3Settings {
        system_info: system(),
        format: common.format,
        verbose: common.verbose,
        json_stream: common.json_stream,
        json_stream_full: common.json_stream_full,
        without_intervals: common.without_intervals,
        file: common.file.as_ref().map(|path| path.display().to_string()),
        ..Iperf3Settings::new(role)
    }
}

fn read(path: &Path, what: &str) -> Result<String, String> {
    input::string(path, input::WRITTEN)
        .map_err(|error| format!("cannot read {what} {}: {error}", path.display()))
}

/// The credentials that a server gets; the error says why there are none.
fn credentials(request: &Iperf3Client) -> Result<Option<Credentials>, String> {
    let (Some(user), Some(key)) = (&request.username, &request.rsa_public_key_path) else {
        return Ok(None);
    };
    let password = std::env::var("IPERF3_PASSWORD").map_err(
        |_| "a password is needed for --username; put it in the environment as IPERF3_PASSWORD",
    )?;
    let credentials = Credentials {
        user: user.clone(),
        password,
        public_key_pem: read(key, "the public key")?,
        padding: padding(request.common.use_pkcs1_padding),
    };
    credentials.check().map_err(|error| error.to_string())?;
    Ok(Some(credentials))
}

fn run_client(request: &Iperf3Client, printer: &Printer) -> Result<(), Failure> {
    let common = &request.common;
    warn(common, printer);
    let stop = signals::take(&signals::OF_IPERF)?;
    let output = Output::open(common).map_err(|wrong| refuse(printer, &wrong))?;
    let credentials = credentials(request).map_err(|reason| {
        refuse_arguments(&Iperf3ArgumentError::client_keys(Some(reason)), printer)
    })?;
    let options = ClientOptions {
        credentials,
        want_server_output: request.get_server_output,
        wide_counters: request.udp_counters_64bit,
        file: common.file.clone(),
        control_keepalive: common.control_keepalive,
        strict: true,
        fit_datagrams: (!request.length_given).then_some(DatagramFit::Segment),
        endless: request.endless,
        leave_at_once: true,
        ..ClientOptions::default()
    };
    let settings = Iperf3Settings {
        title: request.plan.title.as_deref().map(str::to_owned),
        length_given: request.length_given,
        endless: request.endless,
        gsro: request.gsro,
        get_server_output: request.get_server_output,
        ..settings(Role::Client, common)
    };
    let mut shown = Shown::new(common.json, settings, request);
    let pidfile = common.pidfile.as_deref().map(Pidfile::create).transpose();
    let _pidfile = match pidfile {
        Ok(pidfile) => pidfile,
        Err(wrong) => return shown.failed(&wrong, &output),
    };
    let granted = granted::bind_to_cpu(common)
        .and_then(|()| granted::check_sctp(&request.plan))
        .and_then(|()| granted::keepalive_line(common));
    let keepalive = match granted {
        Ok(keepalive) => keepalive,
        Err(wrong) => return shown.failed(&wrong, &output),
    };
    output.lines(&shown.begin())?;
    output.lines(&keepalive)?;
    let mut lost = None;
    let run = client::run(&request.plan, &options, stop.as_fd(), &mut |event| {
        if let Event::Connected { control, .. } = event {
            shown.connected(&request.plan, options.fit_datagrams, &control.remote);
        }
        if let Err(error) = output.lines(&shown.event(event)) {
            lost.get_or_insert(error);
        }
    });
    match run {
        Ok(ended) => {
            let wrong = Wrong::of_ended(&ended, signal_of(&stop));
            if let Some(warning) = wrong.as_ref().and_then(Wrong::warning) {
                printer.tell(&format!("warning: {warning}"));
            }
            output.lines(&shown.end(&ended, wrong.as_ref()))?;
            if let (Some(wrong), false) = (wrong, common.json) {
                output.complain(&wrong);
            }
            lost.map_or(Ok(()), |error| Err(Failure::Output(error)))?;
            match ended.record.outcome {
                Outcome::Completed | Outcome::Interrupted => Ok(()),
                Outcome::PeerInterrupted | Outcome::Failed { .. } => Err(Failure::Said),
            }
        }
        Err(EngineError::StoppedEarly) => {
            let wrong = Wrong::interrupted(Role::Client, signal_of(&stop));
            Ok(shown.stopped_early(&wrong, &output)?)
        }
        Err(error) => shown.failed(&Wrong::of_client(&error), &output),
    }
}

/// A run in iperf3's text or in its JSON.
enum Shown {
    Text(Box<Text>),
    Json(Box<Json>),
}

impl Shown {
    fn new(json: bool, settings: Iperf3Settings, request: &Iperf3Client) -> Self {
        let plan = Some(request.plan.clone());
        if json {
            Self::Json(Box::new(Json::new(settings, plan)))
        } else {
            Self::Text(Box::new(Text::new(settings, plan)))
        }
    }

    fn begin(&self) -> Vec<String> {
        match self {
            Self::Text(text) => text.begin(),
            Self::Json(_) => Vec::new(),
        }
    }

    /// The length of datagrams is known since the server's address is.
    fn connected(&mut self, plan: &Plan, how: Option<DatagramFit>, server: &str) {
        let Ok(server) = server.parse::<SocketAddr>() else {
            return;
        };
        let plan = client::fit(plan, how, server.ip());
        match self {
            Self::Text(text) => text.set_plan(&plan),
            Self::Json(json) => json.set_plan(&plan),
        }
    }

    fn event(&mut self, event: &Event) -> Vec<String> {
        match self {
            Self::Text(text) => text.event(event),
            Self::Json(json) => json.event(event),
        }
    }

    /// As iperf3 has it, a test that broke off has no summary; one that its file ended says what of it went over.
    fn end(&mut self, ended: &Ended, wrong: Option<&Wrong>) -> Vec<String> {
        let record = &ended.record;
        let broke_off = matches!(record.outcome, Outcome::Failed { .. })
            && !matches!(ended.failure, Some(EngineError::File { .. }));
        match self {
            Self::Text(_) if broke_off => Vec::new(),
            Self::Text(text) => text.end(record),
            Self::Json(json) => {
                let error = wrong.map(|wrong| wrong.sentence.as_str());
                if broke_off {
                    return json.failed(error);
                }
                if let Some(error) = error {
                    json.set_error(error.to_owned());
                }
                json.end(record)
            }
        }
    }

    /// A test that was stopped before its streams ran.
    fn stopped_early(&mut self, wrong: &Wrong, output: &Output) -> std::io::Result<()> {
        match self {
            Self::Text(text) => {
                output.lines(&text.stopped_early())?;
                output.complain(wrong);
                Ok(())
            }
            Self::Json(json) => output.lines(&json.stopped_early(&wrong.sentence)),
        }
    }

    /// A test that came to nothing.
    fn failed(&mut self, wrong: &Wrong, output: &Output) -> Result<(), Failure> {
        match self {
            Self::Text(_) => output.complain(wrong),
            Self::Json(json) => output.lines(&json.failed(Some(&wrong.sentence)))?,
        }
        Err(Failure::Said)
    }
}
