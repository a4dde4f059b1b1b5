//! `linerate test --counter-test`: the next runs, which decide the first finding.

use linerate_analysis::counter_run::counter_run;
use linerate_analysis::evidence::{DirectionEvidence, Evidence};
use linerate_engine::client::ClientOptions;
use linerate_experiment::counter_test::{self, Schedule, Trial};
use linerate_explain::explain;
use linerate_kernel::thread::SignalFd;
use linerate_model::counter_test::{CounterRun, Variation};
use linerate_model::finding::Finding;
use linerate_model::plan::Plan;
use linerate_model::record::{Flow, Outcome, RunRecord};
use linerate_model::units::{BitRate, Nanos, grouped, whole};
use linerate_model::words;

use crate::arguments::Format;
use crate::printer::Printer;
use crate::successive;

/// What counter-tests need beside the test.
pub(crate) struct Setting<'a> {
    pub(crate) options: &'a ClientOptions,
    /// Readable once the user wants no more.
    pub(crate) stop: &'a SignalFd,
    pub(crate) format: Format,
    pub(crate) printer: &'a Printer,
}

impl Setting<'_> {
    /// Runs what would decide the findings of a test, and adds it to its record.
    pub(crate) fn decide(&self, record: &mut RunRecord) {
        let evidence = Evidence::of(record);
        let findings = explain(&evidence);
        let Some(first) = findings.first() else {
            return;
        };
        if record.outcome != Outcome::Completed {
            self.tell("No counter-test is made: the test itself did not come to its end.");
            return;
        }
        let trials = counter_test::trials(&findings, &evidence);
        if trials.is_empty() {
            self.tell(&format!(
                "No run of this kind can decide {}; its page says what can: {}",
                first.id, first.page
            ));
            return;
        }
        let direction = evidence.directions.first();
        let ramp = direction.and_then(DirectionEvidence::ramp_ns).map(Nanos);
        let schedule = Schedule::of(&record.plan, &trials, ramp);
        self.announce(&findings, &trials, &schedule);
        let flow = first.flow.unwrap_or(record.plan.flow_of(0));
        let of = schedule.runs.len();
        record.counter_runs = schedule.make(
            |plan, variation| self.one(plan, variation, flow),
            |number, variation| {
                let what = named(variation);
                self.status(&format!("  {} of {of}: {what} …", number + 1));
            },
        );
    }

    fn announce(&self, findings: &[Finding], trials: &[Trial], schedule: &Schedule) {
        let mut names: Vec<&str> = trials.iter().map(|trial| trial.finding.as_str()).collect();
        names.dedup();
        let mut changes: Vec<String> = Vec::new();
        for trial in trials {
            let change = trial.variation.to_string();
            if !changes.contains(&change) {
                changes.push(change);
            }
        }
        let first = findings.first().map_or("", |finding| finding.id.as_str());
        self.tell(&format!(
            "\nThe first finding is {first}. Counter-tests of {}: {}; {} runs of {}, alternating with the unchanged \
             test, about {} in total. Ctrl-C ends them and keeps the measurements.",
            names.join(" and "),
            changes.join(", "),
            schedule.runs.len(),
            schedule.span(),
            schedule.total()
        ));
    }

    /// One run. `None`: the user wants no more.
    fn one(
        &self,
        plan: &Plan,
        variation: Option<&Variation>,
        flow: Flow,
    ) -> Result<Option<CounterRun>, String> {
        match successive::run(plan, self.options, self.stop) {
            Ok(Some(record)) => {
                let run = counter_run(&record, variation.cloned(), flow);
                self.show(&run);
                // What was cut short by the user is compared with nothing.
                let stopped = record.outcome == Outcome::Interrupted;
                Ok((!stopped).then_some(run))
            }
            Ok(None) => Ok(None),
            Err(why) => Err(self.failed(variation, &why)),
        }
    }

    fn failed(&self, variation: Option<&Variation>, why: &str) -> String {
        let what = named(variation);
        self.tell(&format!("  {what}: failed: {why}"));
        why.to_owned()
    }

    fn show(&self, run: &CounterRun) {
        let what = named(run.variation.as_ref());
        let rate = run.goodput_bps.map_or("goodput unknown".to_owned(), |bps| {
            BitRate(whole(bps)).to_string()
        });
        let lost = words::with(run.lost.zip(run.sent), |(lost, sent)| {
            let how = match run.variation {
                Some(Variation::Datagrams { .. }) => "lost",
                _ => "retransmitted",
            };
            format!(", {} of {} {how}", grouped(lost), grouped(sent))
        });
        let rtt = words::with(run.rtt_us, |us| format!(", RTT {}", Nanos(whole(us * 1e3))));
        if self.format == Format::JsonStream {
            let mut line = serde_json::json!(run);
            line["event"] = "counter_run".into();
            // The end's line holds it too.
            drop(self.printer.json(&line.to_string()));
        } else {
            self.tell(&format!("  {what}: {rate}{lost}{rtt}"));
        }
    }

    fn tell(&self, text: &str) {
        self.printer.tell(text);
    }

    /// On a terminal, until the next line.
    fn status(&self, text: &str) {
        if self.format == Format::Text {
            drop(self.printer.status(text));
        }
    }
}

fn named(variation: Option<&Variation>) -> String {
    variation.map_or_else(|| "as it was".to_owned(), ToString::to_string)
}
