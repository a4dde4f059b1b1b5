//! `linerate test`: run a plan, show it live, report it, keep its record.

use std::os::fd::AsFd as _;

use linerate_analysis::evidence::Evidence;
use linerate_analysis::judgement::Judgement;
use linerate_analysis::transfer::Transfer;
use linerate_engine::auth::{Credentials, Padding};
use linerate_engine::client::{self, ClientOptions, DatagramFit};
use linerate_experiment::{counter_test, diagnosis};
use linerate_explain::explain;
use linerate_model::counter_test::Diagnosis;
use linerate_model::finding::Finding;
use linerate_model::plan::Plan;
use linerate_model::progress::Event;
use linerate_model::record::{Outcome, RunRecord};
use linerate_model::wanted::Verdict;
use linerate_report::live::Block;
use linerate_report::progress::Progress;
use linerate_report::view::RunView;
use linerate_report::{json, record, stream, text};

use crate::action::Failure;
use crate::arguments::{Format, Runs, TestArguments, TestRequest};
use crate::counter_test::Setting;
use crate::input;
use crate::keep::{Keep, Kept};
use crate::printer::{Printer, columns};
use crate::report_files::OpenFiles;
use crate::transfer::Prepared;
use crate::{between, rfc6349, session_token, signals};

/// Runs what is asked.
pub(crate) fn start(arguments: TestArguments, printer: &Printer) -> Result<(), Failure> {
    let hosts = arguments.between.hosts(arguments.host.as_deref())?;
    let request = arguments.request().map_err(Failure::Usage)?;
    if let Some(hosts) = hosts {
        let means = &request.arguments.between.means;
        let reach = means.reach(request.plan.connect_timeout_ns)?;
        return between::start(&request, &hosts, &reach, printer);
    }
    match request.arguments.runs() {
        Runs::Rfc6349 => rfc6349::run(&request, printer),
        Runs::One | Runs::CounterTests | Runs::Diagnose(_) => run(&request, printer),
    }
}

fn run(request: &TestRequest, printer: &Printer) -> Result<(), Failure> {
    let arguments = &request.arguments;
    let (format, runs) = (arguments.format.format(), arguments.runs());
    let signals = signals::take_stops()?;
    let options = ClientOptions {
        credentials: credentials(arguments)?,
        cookie: session_token::given()?,
        iperf2: arguments.iperf2,
        fit_datagrams: (!arguments.has_length()).then_some(DatagramFit::NoFragments),
        ..ClientOptions::default()
    };
    let live_format = if arguments.report_elsewhere {
        Format::JsonStream
    } else {
        format
    };
    let record_file = arguments.output.as_deref();
    let mut outputs = Outputs::open(arguments)?;
    let mut plan = request.plan.clone();
    let transfer = arguments.transfer.begin(&mut plan)?;
    let options = ClientOptions {
        transfer: transfer.as_ref().map(Prepared::whole),
        ..options
    };
    let mut live = Live::new(&plan, live_format, printer);
    let ended = client::run(&plan, &options, signals.as_fd(), &mut |event| {
        if matches!(event, Event::Ending) && runs == Runs::One {
            signals::release(&signals, &[signals::INTERRUPT]);
        }
        live.show(event);
    })?;
    let mut record = ended.record;
    if let Some(transfer) = &transfer {
        record.cells = transfer.cells(&record, &options, &signals);
    }
    let lost = live.failed.take();
    let mut kept = Ok(());
    if runs != Runs::One {
        // Whatever becomes of the runs that follow, this one is kept.
        let file = outputs.keep.take_if(|keep| keep.is_replaced_at_once());
        let again = file.is_some();
        kept = file.map_or(Ok(()), |mut file| file.write(&record::to_json(&record)));
        let setting = Setting {
            options: &ClientOptions {
                fit_datagrams: Some(DatagramFit::NoFragments),
                ..options.clone()
            },
            stop: &signals,
            format,
            printer,
        };
        match runs {
            Runs::Diagnose(budget) => setting.diagnose(&mut record, budget),
            _ => setting.decide(&mut record),
        }
        signals::release(&signals, &[signals::INTERRUPT]);
        if let Some(path) = record_file.filter(|_| again && kept.is_ok()) {
            kept = Keep::open(path, Kept::Record).map(|file| outputs.keep = Some(file));
        }
    }
    outputs.report(&record, kept, lost, arguments, printer)
}

/// The files that a test writes, open.
pub(crate) struct Outputs {
    keep: Option<Keep>,
    files: OpenFiles,
}

impl Outputs {
    /// Opens them before the test, so that nothing that was measured is lost to a wrong path.
    pub(crate) fn open(arguments: &TestArguments) -> Result<Self, Failure> {
        let record_file = arguments.output.as_deref();
        let keep = record_file
            .map(|path| Keep::open(path, Kept::Record))
            .transpose()?;
        let files = OpenFiles::open(&arguments.files, record_file)?;
        Ok(Self { keep, files })
    }

    /// Writes the record and the files, prints the report, and judges. `kept` and `lost`: what could not be written so far.
    pub(crate) fn report(
        mut self,
        record: &RunRecord,
        kept: Result<(), Failure>,
        lost: Option<std::io::Error>,
        arguments: &TestArguments,
        printer: &Printer,
    ) -> Result<(), Failure> {
        let kept = kept.and(
            self.keep
                .as_mut()
                .map_or(Ok(()), |keep| keep.write(&record::to_json(record))),
        );
        let evidence = Evidence::of(record);
        let view = view(&evidence);
        let written = self.files.write(&view, &evidence);
        if !arguments.report_elsewhere {
            let format = arguments.format.format();
            print(&view, record, format, arguments.full, printer)?;
        }
        kept?;
        written?;
        lost.map_or(Ok(()), |error| Err(Failure::Output(error)))?;
        if arguments.report_elsewhere {
            return Ok(());
        }
        verdict(&evidence)
    }
}

/// Prints what there is to say about a record, as a test does at its end and `show` does again. `full` = the text has all
/// of it, and not only what fits a screen.
pub(crate) fn print(
    view: &RunView,
    run: &RunRecord,
    format: Format,
    full: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    match format {
        Format::Text if full => printer.print(&text::report(view, printer.style()))?,
        Format::Text => printer.print(&text::brief(view, printer.style()))?,
        Format::Json => printer.json(&json::document(view, run))?,
        Format::JsonStream => printer.json(&stream::end_line(view, run))?,
    }
    Ok(())
}

/// What a record says, with what its counter-tests decided.
pub(crate) fn view(evidence: &Evidence<'_>) -> RunView {
    let (findings, diagnosis) = findings(evidence);
    RunView {
        diagnosis,
        ..RunView::of(evidence, &findings)
    }
}

/// What a record and the runs that followed its test say, the verdict first.
pub(crate) fn findings(evidence: &Evidence<'_>) -> (Vec<Finding>, Option<Diagnosis>) {
    let alone = explain(evidence);
    let mut findings = alone.clone();
    counter_test::judge(&mut findings, evidence);
    diagnosis::lead(&alone, &mut findings, evidence);
    (findings, diagnosis::of(&alone, evidence))
}

/// What the exit code says of a record.
fn verdict(evidence: &Evidence<'_>) -> Result<(), Failure> {
    match &evidence.record.outcome {
        Outcome::Completed | Outcome::Interrupted => {}
        Outcome::PeerInterrupted => {
            return Err(Failure::Incomplete(
                "the server was stopped during the test; the measurements so far are above"
                    .to_owned(),
            ));
        }
        Outcome::Failed { error } => {
            return Err(Failure::Incomplete(format!(
                "the test failed before its end: {error}; the measurements so far are above"
            )));
        }
    }
    let transfer = Transfer::of(evidence.record);
    if transfer.is_some_and(|transfer| transfer.checksums_agree == Some(false)) {
        return Err(Failure::Incomplete(
            "what the target wrote is not what the source read; do not use the files, and transfer them again".to_owned(),
        ));
    }
    let broken = evidence.ledger.broken().count();
    if broken > 0 {
        return Err(Failure::Unbalanced(format!(
            "{broken} of the ledger's equations do not hold; the report shows which, and which figure to trust"
        )));
    }
    let Some(judgement) = Judgement::of(evidence) else {
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

pub(crate) fn credentials(arguments: &TestArguments) -> Result<Option<Credentials>, Failure> {
    let (Some(user), Some(key)) = (&arguments.username, &arguments.public_key) else {
        return Ok(None);
    };
    let password = std::env::var("LINERATE_PASSWORD").or_else(|_| std::env::var("IPERF3_PASSWORD")).map_err(|_| {
        Failure::Usage("--username needs a password in the environment: LINERATE_PASSWORD or IPERF3_PASSWORD".to_owned())
    })?;
    let public_key_pem = input::string(key, input::WRITTEN).map_err(|error| {
        Failure::File(format!("reading the public key {}: {error}", key.display()))
    })?;
    Ok(Some(Credentials {
        user: user.clone(),
        password,
        public_key_pem,
        padding: padding(arguments.use_pkcs1_padding),
    }))
}

/// Of credentials, as `--use-pkcs1-padding` says.
pub(crate) const fn padding(pkcs1: bool) -> Padding {
    if pkcs1 { Padding::Pkcs1 } else { Padding::Oaep }
}

/// Shows events while the test runs.
pub(crate) struct Live<'a> {
    printer: &'a Printer,
    format: Format,
    progress: Progress,
    block: Block,
    /// The first line that could not be written, and why.
    pub(crate) failed: Option<std::io::Error>,
}

impl<'a> Live<'a> {
    pub(crate) fn new(plan: &Plan, format: Format, printer: &'a Printer) -> Self {
        Self {
            printer,
            format,
            progress: Progress::new(plan),
            block: Block::new(plan, printer.style()),
            failed: None,
        }
    }

    pub(crate) fn show(&mut self, event: &Event) {
        let shown = match self.format {
            Format::Json => Ok(()),
            Format::JsonStream => self.printer.json(&stream::line(event)),
            Format::Text if self.printer.is_terminal() => match self.block.show(event, columns()) {
                Some(lines) => self.printer.table(&lines),
                None => Ok(()),
            },
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

#[cfg(test)]
mod tests {
    use linerate_model::transfer::{StageRecord, StageRole};
    use linerate_model::units::Bytes;
    use linerate_testing::fixture;

    use super::*;

    fn stage(role: StageRole, bytes: u64, checksum: &str) -> StageRecord {
        StageRecord {
            bytes: Bytes(bytes),
            checksum: checksum.into(),
            ..fixture::stage(role)
        }
    }

    #[test]
    fn files_that_did_not_arrive_as_they_were_are_no_success() {
        let plan = Plan::new("server");
        for (bytes, checksum, differs) in [(7, "5", false), (7, "6", true), (6, "5", true)] {
            let mut record = fixture::run(&plan, &fixture::Traffic::window_limited());
            let [client, server] = [&mut record.client, &mut record.server];
            client.as_mut().unwrap().stage = Some(stage(StageRole::Source, 7, "5"));
            server.as_mut().unwrap().stage = Some(stage(StageRole::Target, bytes, checksum));
            let said = verdict(&Evidence::of(&record));
            let is_right = matches!(said, Err(Failure::Incomplete(_))) == differs;
            assert!(is_right, "{bytes} {checksum}: {said:?}");
            record.outcome = Outcome::Interrupted;
            let said = verdict(&Evidence::of(&record));
            assert!(said.is_ok(), "stopped by the user: {said:?}");
        }
    }
}
