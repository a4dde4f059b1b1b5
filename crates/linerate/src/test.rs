//! `linerate test`: run a plan, show it live, report it, keep its record.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use linerate_engine::auth::{Credentials, Padding};
use linerate_engine::client::{self, ClientOptions, DatagramFit};
use linerate_explain::explain;
use linerate_model::evidence::Evidence;
use linerate_model::progress::Event;
use linerate_model::record::{Outcome, RunRecord};
use linerate_model::wanted::{Judgement, Verdict};
use linerate_report::progress::Progress;
use linerate_report::view::RunView;
use linerate_report::{json, record, stream, text};

use crate::action::Failure;
use crate::arguments::{Format, TestRequest};
use crate::printer::{Printer, columns};
use crate::signals;

/// Runs the test.
pub(crate) fn run(request: &TestRequest, printer: &mut Printer) -> Result<(), Failure> {
    let signals = signals::take(&[&[signals::INTERRUPT, signals::TERMINATE]])?;
    let options = ClientOptions {
        credentials: credentials(request)?,
        fit_datagrams: request.fit_datagrams.then_some(DatagramFit::NoFragments),
        ..ClientOptions::default()
    };
    // Before the test, so that nothing that was measured is lost to a wrong path.
    let mut keep = request.output.as_deref().map(Keep::open).transpose()?;
    let mut live = Live::new(request, printer);
    let record = client::run(&request.plan, &options, signals[0].as_fd(), &mut |event| {
        if matches!(event, Event::Ending) {
            signals::release(&signals[0], &[signals::INTERRUPT]);
        }
        live.show(event);
    })?;
    let lost = live.failed.take();
    let kept = keep.as_mut().map_or(Ok(()), |keep| keep.write(&record));
    show(&record, request.format, printer)?;
    kept?;
    lost.map_or(Ok(()), |error| Err(Failure::Output(error)))?;
    verdict(&record)
}

/// Prints what there is to say about a record, as a test does at its end and `show` does again.
pub(crate) fn show(run: &RunRecord, format: Format, printer: &Printer) -> Result<(), Failure> {
    let evidence = Evidence::of(run);
    let findings = explain(&evidence);
    let view = RunView::of(run, &findings);
    match format {
        Format::Text => printer.print(&text::report(&view))?,
        Format::Json => printer.line(&json::document(&view, run))?,
        Format::JsonStream => printer.line(&stream::end_line(&view, run))?,
    }
    Ok(())
}

/// What the exit code says of a record.
fn verdict(run: &RunRecord) -> Result<(), Failure> {
    match &run.outcome {
        Outcome::Completed | Outcome::Interrupted => {}
        Outcome::PeerInterrupted => {
            return Err(Failure::Incomplete(
                "the server was stopped during the test; what was measured until then is above"
                    .to_owned(),
            ));
        }
        Outcome::Failed { error } => {
            return Err(Failure::Incomplete(format!(
                "the test failed on the way: {error}; what was measured until then is above"
            )));
        }
    }
    let evidence = Evidence::of(run);
    let broken = evidence.ledger.broken().count();
    if broken > 0 {
        return Err(Failure::Unbalanced(format!(
            "{broken} of the ledger's equations do not hold; the report says which, and which figure to trust"
        )));
    }
    let Some(judgement) = Judgement::of(&evidence) else {
        return Ok(());
    };
    match judgement.verdict {
        Verdict::Pass => Ok(()),
        Verdict::Fail => Err(Failure::Unexpected(format!(
            "the goodput is not {}; the report says what it is and why",
            judgement.wanted
        ))),
        Verdict::Inconclusive => Err(Failure::Undecided(format!(
            "this run does not decide whether the goodput is {}; a longer one may (-t, or --precision)",
            judgement.wanted
        ))),
    }
}

fn credentials(request: &TestRequest) -> Result<Option<Credentials>, Failure> {
    let (Some(user), Some(key)) = (&request.user, &request.public_key) else {
        return Ok(None);
    };
    let password = std::env::var("LINERATE_PASSWORD").or_else(|_| std::env::var("IPERF3_PASSWORD")).map_err(|_| {
        Failure::Usage("--username needs a password in the environment: LINERATE_PASSWORD or IPERF3_PASSWORD".to_owned())
    })?;
    let public_key_pem = std::fs::read_to_string(key).map_err(|error| {
        Failure::File(format!("reading the public key {}: {error}", key.display()))
    })?;
    let padding = if request.pkcs1 {
        Padding::Pkcs1
    } else {
        Padding::Oaep
    };
    Ok(Some(Credentials {
        user: user.clone(),
        password,
        public_key_pem,
        padding,
    }))
}

/// The file that keeps the record. It is made before the test and written after it, by way of a
/// second file, so that an older record is replaced whole or not at all.
pub(crate) struct Keep {
    path: PathBuf,
    /// Where a regular file grows until it is whole; none where the path is a device or a pipe, or where
    /// this program's own output goes, which is written as it stands: renaming over it would replace it.
    temporary: Option<PathBuf>,
    file: File,
}

impl Keep {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::File(format!(
                "cannot keep the record in {}: {error}",
                path.display()
            ))
        };
        if let Some(file) = as_it_stands(path) {
            let file = file.map_err(failed)?;
            return Ok(Self {
                path: path.to_path_buf(),
                temporary: None,
                file,
            });
        }
        let path = behind_links(path);
        let mut name = path
            .file_name()
            .map(OsStr::to_os_string)
            .unwrap_or_default();
        name.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(name);
        let file = File::create(&temporary).map_err(failed)?;
        Ok(Self {
            path,
            temporary: Some(temporary),
            file,
        })
    }

    pub(crate) fn write(&mut self, run: &RunRecord) -> Result<(), Failure> {
        self.write_bytes(&record::to_json(run))
    }

    /// Writes a record of another kind.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.file.write_all(bytes).and_then(|()| {
            let Some(temporary) = &self.temporary else {
                return Ok(());
            };
            self.file.sync_all()?;
            std::fs::rename(temporary, &self.path)
        });
        written.map_err(|error| {
            Failure::File(format!(
                "cannot keep the record in {}: {error}; the report on standard output is complete, and --json there holds all samples",
                self.path.display()
            ))
        })
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Gone already where the record was written.
            drop(std::fs::remove_file(temporary));
        }
    }
}

/// What the path names, opened, where that is no regular file, or the one that standard output or error goes
/// to: then by the same descriptor, so that neither overwrites the other.
fn as_it_stands(path: &Path) -> Option<std::io::Result<File>> {
    let there = std::fs::metadata(path).ok()?;
    let same = |output: &str| {
        std::fs::metadata(output)
            .is_ok_and(|output| (output.dev(), output.ino()) == (there.dev(), there.ino()))
    };
    if same("/dev/stdout") {
        return Some(
            std::io::stdout()
                .as_fd()
                .try_clone_to_owned()
                .map(File::from),
        );
    }
    if same("/dev/stderr") {
        return Some(
            std::io::stderr()
                .as_fd()
                .try_clone_to_owned()
                .map(File::from),
        );
    }
    (!there.is_file()).then(|| linerate_kernel::file::append_without_waiting(path))
}

/// Where a path leads, also where nothing is there yet; so a link still is one afterwards.
fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&path) {
            // An absolute one replaces the whole path.
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => break,
        }
    }
    path
}

/// Links that the kernel follows, at most (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

/// Shows events while the test runs.
struct Live<'a> {
    printer: &'a Printer,
    format: Format,
    progress: Progress,
    failed: Option<std::io::Error>,
}

impl<'a> Live<'a> {
    fn new(request: &TestRequest, printer: &'a Printer) -> Self {
        Self {
            printer,
            format: request.format,
            progress: Progress::new(&request.plan),
            failed: None,
        }
    }

    fn show(&mut self, event: &Event) {
        let shown = match self.format {
            Format::Json => Ok(()),
            Format::JsonStream => self.printer.line(&stream::line(event)),
            Format::Text if self.printer.is_terminal() => {
                match self.progress.status(event, columns()) {
                    Some(text) => self.printer.status(&text),
                    None => Ok(()),
                }
            }
            Format::Text => self
                .progress
                .line(event)
                .map_or(Ok(()), |text| self.printer.line(&text)),
        };
        if let (Event::Warning { text }, Format::Text | Format::Json) = (event, self.format) {
            self.printer.tell(&format!("linerate: warning: {text}"));
        }
        if let Err(error) = shown {
            self.failed.get_or_insert(error);
        }
    }
}
