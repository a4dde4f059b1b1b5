//! Who reads the API all the time, and remembers what it said.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::harness::get;
use crate::hub::text;

/// How often it asks.
const EVERY: Duration = Duration::from_millis(300);

/// The tests that the API showed as ended, by id, each as it was shown first.
pub(super) type Shown = BTreeMap<String, Value>;

/// The thread that reads.
pub(super) struct Watcher {
    over: Arc<AtomicBool>,
    shown: Arc<Mutex<Shown>>,
    thread: JoinHandle<()>,
}

impl Watcher {
    pub(super) fn start(address: SocketAddr) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let shown: Arc<Mutex<Shown>> = Arc::default();
        let (its_over, its_shown) = (over.clone(), shown.clone());
        let thread = std::thread::spawn(move || {
            while !its_over.load(Ordering::Relaxed) {
                // The hub may be dead.
                for run in runs(address).unwrap_or_default() {
                    let id = text(&run["id"]).to_owned();
                    its_shown.lock().unwrap().entry(id).or_insert(run);
                }
                std::thread::sleep(EVERY);
            }
        });
        Self {
            over,
            shown,
            thread,
        }
    }

    /// How many tests that it saw measured something.
    pub(super) fn measured(&self) -> usize {
        let shown = self.shown.lock().unwrap();
        let measured = shown.values().filter(|run| run["outcome"] == "measured");
        measured.count()
    }

    pub(super) fn stop(self) -> Shown {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        std::mem::take(&mut self.shown.lock().unwrap())
    }
}

/// The newest tests; `None` where the hub does not say all of them.
fn runs(address: SocketAddr) -> Option<Vec<Value>> {
    let told = ask(address, "/api/v1/runs?limit=60")?;
    told["runs"].as_array().cloned()
}

/// What the API answers; `None` where there is no whole answer.
pub(super) fn ask(address: SocketAddr, path: &str) -> Option<Value> {
    let (head, body) = get(&address.to_string(), path, Duration::from_secs(10))?;
    let is_well = head.starts_with("HTTP/1.1 200");
    is_well.then(|| serde_json::from_str(&body).ok())?
}
