//! `linerate test --counter-test`: the next runs, which decide the first finding.

use linerate_analysis::counter_run::counter_run;
use linerate_analysis::evidence::{DirectionEvidence, Evidence};
use linerate_engine::client::ClientOptions;
use linerate_experiment::counter_test::{self, Schedule, Trial};
use linerate_experiment::diagnosis::{self, Next};
use linerate_explain::explain;
use linerate_kernel::clock;
use linerate_kernel::thread::SignalFd;
use linerate_model::counter_test::{CounterRun, Variation};
use linerate_model::finding::Finding;
use linerate_model::plan::Plan;
use linerate_model::record::{Flow, Outcome, RunRecord};
use linerate_model::units::{BitRate, Nanos, grouped, whole};
use linerate_model::words;

use crate::arguments::{Budget, Format};
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

    /// Runs what separates the causes, one test after the other, and adds them to the record.
    pub(crate) fn diagnose(&self, record: &mut RunRecord, budget: Budget) {
        if record.outcome != Outcome::Completed {
            self.tell("No diagnosis is made: the test itself did not come to its end.");
            return;
        }
        let (began, mut moved) = (clock::monotonic(), 0.0);
        loop {
            let evidence = Evidence::of(record);
            let findings = explain(&evidence);
            let Some(first) = findings.first() else {
                return;
            };
            let variation = match diagnosis::next(&findings, &evidence) {
                Next::Run(variation) => variation,
                Next::End(_) => return,
                Next::OutOfScope => {
                    self.tell(&format!(
                        "No further run is made: none of this kind can decide {}; its page says what can: {}",
                        first.id, first.page
                    ));
                    return;
                }
            };
            let direction = evidence.directions.first();
            let ramp = direction.and_then(DirectionEvidence::ramp_ns).map(Nanos);
            let plan = counter_test::follow_up(&record.plan, ramp, &variation);
            let takes = counter_test::takes(&plan);
            let most_bps = moves(&plan, direction.and_then(DirectionEvidence::whole_run_bps));
            let within = match budget {
                Budget::Time(limit) => clock::monotonic().since(began).plus(takes) <= limit,
                Budget::Data(limit) => {
                    moved + most_bps / 8.0 * takes.as_secs_f64() <= limit.count() as f64
                }
            };
            if !within {
                self.tell("The budget is used up: no further run is made (--budget).");
                return;
            }
            if record.counter_runs.is_empty() {
                self.tell(&format!(
                    "\nThe first finding is {}. Runs of {} each follow until one cause has 95 % or more. Ctrl-C ends them and \
                     keeps the measurements.",
                    first.id, takes
                ));
            }
            self.status(&format!("  {variation} …"));
            let flow = first.flow.unwrap_or(record.plan.flow_of(0));
            let run = match self.one(&plan, Some(&variation), flow) {
                Ok(Some(run)) => run,
                Ok(None) => return,
                Err(error) => CounterRun::failed(Some(variation), error),
            };
            moved += run.goodput_bps.unwrap_or(0.0) / 8.0 * run.span_ns.as_secs_f64();
            record.counter_runs.push(run);
        }
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
        let waited = words::with(run.passage, |passage| {
            format!(", in a queue for {}", Nanos(whole(passage.waited_us * 1e3)))
        });
        let rtt = words::with(run.rtt_us, |us| format!(", RTT {}", Nanos(whole(us * 1e3))));
        if self.format == Format::JsonStream {
            let mut line = serde_json::json!(run);
            line["event"] = "counter_run".into();
            // The end's line holds it too.
            drop(self.printer.json(&line.to_string()));
        } else {
            self.tell(&format!("  {what}: {rate}{lost}{waited}{rtt}"));
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

/// The most that a run is expected to send, bit/s.
fn moves(plan: &Plan, reached_bps: Option<f64>) -> f64 {
    let asked = plan
        .rate_bps
        .map(|each| each.0 as f64 * f64::from(plan.streams));
    asked
        .or(reached_bps.map(|bps| bps * f64::from(plan.streams)))
        .unwrap_or(0.0)
}

fn named(variation: Option<&Variation>) -> String {
    variation.map_or_else(|| "as it was".to_owned(), ToString::to_string)
}
