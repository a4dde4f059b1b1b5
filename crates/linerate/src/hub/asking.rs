//! Tests that alerts ask for, to confirm and to decide what limits, and that people ask for.

use linerate_model::watch::{RunClass, RunId, UnixMillis, WatchRun};
use linerate_watch::alert::PairName;
use linerate_watch::dispatch::{Dispatcher, OVERHEAD_MILLIS, Request};
use linerate_watch::watched::Watched;

use super::folder::Asked;

/// How long a test that was asked for may wait for its hosts, ms.
const WAIT_MILLIS: u64 = 600_000;
/// A counter-test makes this many runs at most, one after the other.
const COUNTER_RUNS: u64 = 8;
/// Apart from the load, each of them takes so long, ms.
const BETWEEN_RUNS_MILLIS: u64 = 2_000;

/// People may wait for so many tests at the same time.
const MOST_BY_HAND: usize = 32;

/// The tests that were asked for and have no row yet.
#[derive(Debug, Default)]
pub(super) struct Asking {
    open: Vec<Asked>,
}

impl Asking {
    pub(super) fn of(open: Vec<Asked>) -> Self {
        Self { open }
    }

    pub(super) fn open(&self) -> &[Asked] {
        &self.open
    }

    /// The finding that a test's counter-tests are to decide; absent = it has none.
    pub(super) fn finding(&self, run: RunId) -> Option<&str> {
        let asked = self.open.iter().find(|asked| asked.run == run)?;
        asked.finding.as_deref()
    }

    /// Asks for a test of a pair at a moment; with a finding, for one with counter-tests.
    pub(super) fn ask(
        &mut self,
        dispatcher: &mut Dispatcher,
        now: UnixMillis,
        pair: &PairName,
        at: UnixMillis,
        finding: Option<String>,
    ) {
        let Some(load) = load(dispatcher.watched(), pair) else {
            return;
        };
        let takes = match &finding {
            Some(_) => (load + BETWEEN_RUNS_MILLIS) * COUNTER_RUNS,
            None => load,
        };
        let due = at.max(now);
        let request = Request {
            number: u64::from(finding.is_some()),
            load_millis: finding.is_some().then_some(takes),
            ..request(pair, RunClass::Confirm, due, takes)
        };
        // A pair that has just left the plan needs no test.
        if let Ok(run) = dispatcher.handle_request(now, &request) {
            self.open.retain(|asked| asked.run != run);
            self.open.push(Asked {
                run,
                request,
                finding,
            });
        }
    }

    /// Somebody asks for a test of a pair now; the id that its row will have. One that waits is not asked for twice.
    pub(super) fn ask_now(
        &mut self,
        dispatcher: &mut Dispatcher,
        now: UnixMillis,
        pair: &PairName,
    ) -> Result<RunId, String> {
        let by_hand = |asked: &&Asked| asked.request.class == RunClass::OnDemand;
        let same = |asked: &&Asked| {
            let request = &asked.request;
            (&request.task, &request.from, &request.to) == (&pair.task, &pair.from, &pair.to)
        };
        let mut waiting = self.open.iter().filter(by_hand);
        if let Some(asked) = waiting.clone().find(same) {
            return Ok(asked.run);
        }
        if waiting.nth(MOST_BY_HAND - 1).is_some() {
            return Err(format!(
                "{MOST_BY_HAND} tests that were asked for wait already; try again when some have ended."
            ));
        }
        // The dispatcher says where the plan does not have the pair.
        let takes = load(dispatcher.watched(), pair).unwrap_or_default();
        let request = request(pair, RunClass::OnDemand, now, takes);
        let run = dispatcher.handle_request(now, &request);
        let run = run.map_err(|error| error.to_string())?;
        self.open.push(Asked {
            run,
            request,
            finding: None,
        });
        Ok(run)
    }

    /// A test has its row; the finding that its counter-tests were to decide.
    pub(super) fn ended(&mut self, run: &WatchRun) -> Option<String> {
        let at = self.open.iter().position(|asked| asked.run == run.id)?;
        self.open.swap_remove(at).finding
    }
}

/// A request for a test that takes so long, ms, beside what every test books.
fn request(pair: &PairName, class: RunClass, due: UnixMillis, takes: u64) -> Request {
    Request {
        task: pair.task.clone(),
        from: pair.from.clone(),
        to: pair.to.clone(),
        class,
        due,
        deadline: due.plus_millis(takes + OVERHEAD_MILLIS + WAIT_MILLIS),
        number: 0,
        load_millis: None,
    }
}

fn load(watched: &Watched, pair: &PairName) -> Option<u64> {
    let task = watched.tasks.iter().find(|task| task.name == pair.task)?;
    Some(task.load_millis)
}
