//! `linerate serve`: one line for each test, or one JSON object for each event.

use std::borrow::Cow;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use linerate_analysis::evidence::Evidence;
use linerate_engine::auth::Verifier;
use linerate_engine::server::{Server, ServerEnd, ServerEvent, ServerLimits, ServerOptions};
use linerate_explain::explain;
use linerate_kernel::activation;
use linerate_model::plan::DEFAULT_PORT;
use linerate_model::record::{EndRecord, RunRecord};
use linerate_report::view::RunView;
use linerate_report::{record, stream, text};
use linerate_wire::iperf2;

use crate::action::Failure;
use crate::announcement::Announcement;
use crate::arguments::ServeArguments;
use crate::input;
use crate::keep::{Keep, Kept};
use crate::outlet::{self, Outlet};
use crate::printer::Printer;
use crate::test::padding;
use crate::{session_token, signals, transfer};

/// Serves until it is stopped, or its one test is over, or nobody comes.
pub(crate) fn run(arguments: ServeArguments, printer: &Printer) -> Result<(), Failure> {
    let [grace, at_once] =
        [signals::TERMINATE, signals::INTERRUPT].map(|one| signals::take(&[one]));
    let (grace, at_once) = (grace?, at_once?);
    if let Some(folder) = &arguments.output {
        let usable = std::fs::create_dir_all(folder);
        usable.map_err(|error| Failure::cannot("keep records in", folder, &error))?;
    }
    let verifier = verifier(&arguments, printer)?;
    let limits = arguments.limits();
    let json_stream = arguments.json_stream;
    let folder = arguments.output.clone();
    // As a tree of values each takes some 100 bytes.
    let most_cells = usize::try_from(limits.memory.count() / 1024).unwrap_or(usize::MAX);
    let iperf2_port = iperf2_port(&arguments);
    let options = ServerOptions {
        port: arguments.port,
        bind: arguments.bind,
        family: arguments.family(),
        bind_device: arguments.bind_dev,
        inherited: activation::sockets().into_iter().map(Arc::new).collect(),
        iperf2: arguments.iperf2_port != Some(0),
        iperf2_port,
        one_off: arguments.one_off,
        limits,
        verifier,
        grace: arguments.grace,
        read_rate: arguments.read_rate.filter(|rate| rate.0 > 0),
        token: session_token::given()?,
        wait: arguments.wait,
        targets: Some(transfer::targets(&arguments.allow_target)?),
        ..ServerOptions::default()
    };
    let errors = Outlet::of_errors(Printer::new())?;
    let out = standard_output(json_stream, &errors)?;
    let teller = Teller {
        out: out.clone(),
        errors: errors.clone(),
        json_stream,
        is_quiet: arguments.report_elsewhere,
        folder,
        most_cells,
        turn: Mutex::new(()),
    };
    let mut server = Server::bind(options, Arc::new(move |event| teller.tell(&event)))?;
    for address in server.addresses() {
        let line = if json_stream {
            let port = address.port();
            Announcement::Listening { address, port }.line()
        } else {
            format!("listening on {address}, TCP and UDP")
        };
        out.say(line + "\n");
    }
    tell_of_iperf2(
        &mut server,
        arguments.iperf2_port.is_some(),
        json_stream,
        &out,
        &errors,
    )?;
    out.say(bounds(server.limits(), json_stream) + "\n");
    let served = server.run(grace.as_fd(), at_once.as_fd());
    out.drain();
    errors.drain();
    match (served?, arguments.wait) {
        (ServerEnd::NoTest, Some(wait)) => {
            Err(Failure::NoTest(format!("no test began within {wait}")))
        }
        _ => Ok(()),
    }
}

/// The port of iperf 2's clients. A server on a port of its own choice may be one of several, which would take it from each other.
fn iperf2_port(arguments: &ServeArguments) -> Option<u16> {
    let usual = arguments.port == DEFAULT_PORT;
    let default = usual.then_some(iperf2::DEFAULT_PORT);
    arguments.iperf2_port.or(default).filter(|port| *port != 0)
}

/// Says where iperf 2's clients are answered. A port that the user asked for must be had; without the usual one the server goes
/// on.
fn tell_of_iperf2(
    server: &mut Server,
    must: bool,
    json: bool,
    out: &Outlet,
    errors: &Outlet,
) -> Result<(), Failure> {
    match server.take_iperf2_failure() {
        Some(error) if must => return Err(error.into()),
        Some(error) => errors.say(format!(
            "linerate: warning: {error}; the server goes on, and answers iperf 2 on its other port (--iperf2-port PORT for \
             another one, 0 for none)"
        )),
        None => {}
    }
    for address in server.iperf2_addresses() {
        let line = if json {
            let (port, address) = (address.port(), address.to_string());
            serde_json::json!({ "event": "listening_for_iperf2", "address": address, "port": port })
                .to_string()
        } else {
            format!("listening on {address}, TCP and UDP, for iperf 2")
        };
        out.say(line + "\n");
    }
    Ok(())
}

/// Standard output for the lines of tests. The server serves whether or not it can be written.
pub(crate) fn standard_output(json_stream: bool, errors: &Outlet) -> Result<Outlet, Failure> {
    let (printer, errors) = (Printer::new(), errors.clone());
    let missing = move |lines: usize| {
        if json_stream {
            format!(
                "{}\n",
                serde_json::json!({ "event": "dropped", "lines": lines })
            )
        } else {
            format!("{}\n", outlet::missing_text(lines))
        }
    };
    Ok(Outlet::start(
        move |text| {
            if json_stream {
                printer.json(text.trim_end_matches('\n'))
            } else {
                printer.print(text)
            }
        },
        missing,
        move |error| {
            errors.say(format!(
                "linerate: warning: cannot write standard output: {error}; the server goes on without it"
            ));
        },
    )?)
}

/// The bounds in force, as a line.
fn bounds(limits: &ServerLimits, json: bool) -> String {
    let ServerLimits {
        clients,
        clients_per_address,
        streams,
        all_streams,
        memory,
        samples_per_second,
        duration,
        rate,
        allowed,
        ..
    } = limits;
    if json {
        let value = serde_json::json!({
            "event": "limits",
            "clients": clients,
            "clients_per_address": clients_per_address,
            "streams": streams,
            "total_streams": all_streams,
            "memory_bytes": memory.count(),
            "samples_per_second": samples_per_second,
            "duration_ns": duration.0,
        });
        return value.to_string();
    }
    format!(
        "limits: {clients} tests, {clients_per_address} from one address, {duration} each; {all_streams} streams, \
         {streams} in one test; {memory} of memory; {samples_per_second} samples a second; {}; {}",
        rate.map_or_else(
            || "no rate limit".to_owned(),
            |rate| format!("{rate} a test")
        ),
        match allowed.len() {
            0 => "open to every network".to_owned(),
            1 => "open to 1 network".to_owned(),
            networks => format!("open to {networks} networks"),
        },
    )
}

fn verifier(
    arguments: &ServeArguments,
    printer: &Printer,
) -> Result<Option<Arc<Verifier>>, Failure> {
    let (Some(key), Some(users)) = (&arguments.private_key, &arguments.users) else {
        return Ok(None);
    };
    let read = |path: &PathBuf| {
        input::string(path, input::WRITTEN)
            .map_err(|error| Failure::File(format!("reading {}: {error}", path.display())))
    };
    let padding = padding(arguments.use_pkcs1_padding);
    let (verifier, warnings) = Verifier::new(
        &read(key)?,
        &read(users)?,
        padding,
        arguments.time_skew_threshold,
    )?;
    for warning in warnings {
        printer.tell(&format!(
            "linerate: warning: {}: {warning}",
            users.display()
        ));
    }
    Ok(Some(Arc::new(verifier)))
}

/// Tells what the server's threads tell.
struct Teller {
    out: Outlet,
    errors: Outlet,
    json_stream: bool,
    /// Whether nothing is said of tests.
    is_quiet: bool,
    folder: Option<PathBuf>,
    /// Values of samples that a line may have.
    most_cells: usize,
    /// Records are looked at one at a time: that takes several times their memory.
    turn: Mutex<()>,
}

impl Teller {
    fn tell(&self, event: &ServerEvent) {
        match event {
            ServerEvent::Accepted { .. } | ServerEvent::Progress { .. } if self.is_quiet => {}
            ServerEvent::Finished { .. } if self.is_quiet && self.folder.is_none() => {}
            ServerEvent::Accepted { test, peer, user, .. } => self.line(|| {
                let user = user.as_ref().map_or(String::new(), |user| format!(", user {user}"));
                format!("test {test}: from {peer}{user}")
            }, || serde_json::json!({ "event": "accepted", "test": test, "peer": peer.to_string(), "user": user })),
            ServerEvent::Refused { peer, reason, .. } => self.line(
                || format!("refused {peer}: {reason}"),
                || serde_json::json!({ "event": "refused", "peer": peer.to_string(), "reason": reason }),
            ),
            ServerEvent::Progress { test, event } if self.json_stream => {
                self.out.say(of_test("progress", *test, &stream::line(event)) + "\n");
            }
            ServerEvent::Asked { .. } | ServerEvent::Progress { .. } => {}
            ServerEvent::Finished { test, record, .. } => self.finished(*test, record),
        }
    }

    fn line(&self, text: impl FnOnce() -> String, json: impl FnOnce() -> serde_json::Value) {
        let line = if self.json_stream {
            json().to_string()
        } else {
            text()
        };
        self.out.say(line + "\n");
    }

    fn finished(&self, test: u64, run: &RunRecord) {
        let _turn = self.turn.lock();
        if let Some(folder) = &self.folder {
            let path = folder.join(format!("{}-{test}.json", run.started_at_unix_ms));
            let kept = Keep::open(&path, Kept::Record)
                .and_then(|mut keep| keep.write(&record::to_json(run)));
            if let Err(failure) = kept {
                self.errors
                    .say(format!("linerate: error: test {test}: {failure}"));
            }
        }
        let evidence = Evidence::of(run);
        let findings = explain(&evidence);
        let view = RunView::of(&evidence, &findings);
        let line = if self.json_stream {
            let end = stream::end_line(&view, &self.within(run));
            of_test("finished", test, &end)
        } else {
            format!("test {test}: {}", text::one_line(&view))
        };
        self.out.say(line + "\n");
    }

    /// The record with so many of its samples as a line may have.
    fn within<'a>(&self, run: &'a RunRecord) -> Cow<'a, RunRecord> {
        let cells = run.server.as_ref().map_or(0, EndRecord::cells);
        if cells <= self.most_cells {
            return Cow::Borrowed(run);
        }
        let factor = cells.div_ceil(self.most_cells.max(1));
        Cow::Owned(RunRecord {
            server: run.server.as_ref().map(|half| half.thinned(factor)),
            ..run.clone()
        })
    }
}

/// A line of a test around a JSON document.
fn of_test(event: &str, test: u64, document: &str) -> String {
    let document = document.trim_end();
    format!("{{\"event\":\"{event}\",\"test\":{test},\"of\":{document}}}")
}
