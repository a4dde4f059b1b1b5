//! `linerate test --rfc6349`: the steps of the RFC, one run after the other, and its report.

use linerate_engine::client::ClientOptions;
use linerate_experiment::rfc6349::Survey;
use linerate_model::record::Outcome;

use crate::action::Failure;
use crate::arguments::{Format, TestRequest};
use crate::printer::Printer;
use crate::{session_token, signals, successive, test};

/// Runs all steps and reports.
pub(crate) fn run(request: &TestRequest, printer: &Printer) -> Result<(), Failure> {
    let signals = signals::take_stops()?;
    let options = ClientOptions {
        credentials: test::credentials(&request.arguments)?,
        cookie: session_token::given()?,
        ..ClientOptions::default()
    };
    let mut survey = Survey::new(&request.plan);
    let (runs, total) = survey.announced();
    printer.tell(&format!(
        "RFC 6349: path MTU, base round trip, bottleneck, then windows of 25 to 125 % of the bandwidth-delay \
         product: {runs} throughput runs, about {total} in all (-t sets the length of each). Ctrl-C ends it and \
         reports the measurements."
    ));
    // It ends with the last step, each of which bounds itself.
    while let Some((step, plan)) = survey.upcoming() {
        printer.tell(&format!("  {} …", step.words()));
        let gave = match successive::run(&plan, &options, &signals) {
            Ok(Some(record)) if record.outcome != Outcome::Interrupted => Ok(record),
            Ok(_) => {
                survey.stopped();
                break;
            }
            Err(why) => Err(why),
        };
        survey.took(gave);
    }
    signals::release(&signals, &[signals::INTERRUPT]);
    let report = survey.report();
    match request.arguments.format.format() {
        Format::Json | Format::JsonStream => {
            let document = serde_json::json!({
                "software": linerate_model::record::Software::this_program(),
                "plan": request.plan,
                "rfc6349": report,
            });
            printer.json(&document.to_string())?;
        }
        Format::Text => printer.print(&report.text())?,
    }
    if report.runs.is_empty() {
        return Err(Failure::Incomplete(
            "no throughput run could be made; the report says why".to_owned(),
        ));
    }
    Ok(())
}
