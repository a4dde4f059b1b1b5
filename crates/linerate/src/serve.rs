//! `linerate serve`: one line for each test, or one JSON object for each event.

use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;

use linerate_engine::auth::{Padding, Verifier};
use linerate_engine::server::{Server, ServerEvent, ServerLimits, ServerOptions};
use linerate_explain::explain;
use linerate_kernel::activation;
use linerate_model::evidence::Evidence;
use linerate_model::record::RunRecord;
use linerate_report::view::RunView;
use linerate_report::{record, stream, text};

use crate::action::Failure;
use crate::arguments::ServeRequest;
use crate::input;
use crate::keep::{Keep, Kept};
use crate::outlet::{self, Outlet};
use crate::printer::Printer;
use crate::signals;

/// Serves until it is stopped.
pub(crate) fn run(request: ServeRequest, printer: &Printer) -> Result<(), Failure> {
    let signals = signals::take(&[&[signals::TERMINATE], &[signals::INTERRUPT]])?;
    if let Some(folder) = &request.output {
        let usable = std::fs::create_dir_all(folder);
        usable.map_err(|error| {
            Failure::File(format!(
                "cannot keep records in {}: {error}",
                folder.display()
            ))
        })?;
    }
    let verifier = verifier(&request, printer)?;
    let json_stream = request.json_stream;
    let folder = request.output.clone();
    let options = ServerOptions {
        port: request.port,
        bind: request.bind,
        bind_device: request.bind_device,
        family: request.family,
        inherited: activation::sockets().into_iter().map(Arc::new).collect(),
        one_off: request.one_off,
        limits: request.limits,
        verifier,
        grace: request.grace,
        read_rate: request.read_rate,
        ..ServerOptions::default()
    };
    let errors = Outlet::of_errors(Printer::new())?;
    let out = standard_output(json_stream, &errors)?;
    let teller = Teller {
        out: out.clone(),
        errors: errors.clone(),
        json_stream,
        folder,
    };
    let server = Server::bind(options, Arc::new(move |event| teller.tell(&event)))?;
    for address in server.addresses() {
        let line = if json_stream {
            serde_json::json!({ "event": "listening", "address": address.to_string() }).to_string()
        } else {
            format!("listening on {address}, TCP and UDP")
        };
        out.say(line + "\n");
    }
    out.say(bounds(server.limits(), json_stream) + "\n");
    let served = server.run(signals[0].as_fd(), signals[1].as_fd());
    out.drain();
    errors.drain();
    Ok(served?)
}

/// Standard output for the lines of tests. The server serves whether or not it can be written.
fn standard_output(json_stream: bool, errors: &Outlet) -> Result<Outlet, Failure> {
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
        "limits: {clients} tests, {clients_per_address} of an address, {duration} each; {all_streams} streams, \
         {streams} of a test; {memory} of memory, {samples_per_second} samples a second"
    )
}

fn verifier(request: &ServeRequest, printer: &Printer) -> Result<Option<Arc<Verifier>>, Failure> {
    let (Some(key), Some(users)) = (&request.private_key, &request.users) else {
        return Ok(None);
    };
    let read = |path: &PathBuf| {
        input::string(path, input::WRITTEN)
            .map_err(|error| Failure::File(format!("reading {}: {error}", path.display())))
    };
    let padding = if request.pkcs1 {
        Padding::Pkcs1
    } else {
        Padding::Oaep
    };
    let (verifier, warnings) =
        Verifier::new(&read(key)?, &read(users)?, padding, request.skew_seconds)?;
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
    folder: Option<PathBuf>,
}

impl Teller {
    fn tell(&self, event: &ServerEvent) {
        match event {
            ServerEvent::Accepted { test, peer, user, .. } => self.line(|| {
                let user = user.as_ref().map_or(String::new(), |user| format!(", user {user}"));
                format!("test {test}: from {peer}{user}")
            }, || serde_json::json!({ "event": "accepted", "test": test, "peer": peer.to_string(), "user": user })),
            ServerEvent::Refused { peer, reason, .. } => self.line(
                || format!("refused {peer}: {reason}"),
                || serde_json::json!({ "event": "refused", "peer": peer.to_string(), "reason": reason }),
            ),
            ServerEvent::Progress { test, event } if self.json_stream => {
                let value: serde_json::Value = serde_json::from_str(&stream::line(event)).unwrap_or_default();
                self.out.say(format!("{}\n", serde_json::json!({ "event": "progress", "test": test, "of": value })));
            }
            ServerEvent::Progress { .. } => {}
            ServerEvent::Finished { test, record } => self.finished(*test, record),
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
        self.line(
            || format!("test {test}: {}", text::one_line(&view)),
            || {
                let value: serde_json::Value =
                    serde_json::from_str(&stream::end_line(&view, run)).unwrap_or_default();
                serde_json::json!({ "event": "finished", "test": test, "of": value })
            },
        );
    }
}
