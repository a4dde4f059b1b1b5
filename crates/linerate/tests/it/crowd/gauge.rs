//! What a process uses, and how long its pages take.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::harness::{LONG, get};

/// How often each page is read.
const EVERY: Duration = Duration::from_secs(5);

/// What a process used until now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Usage {
    at: Instant,
    /// CPU time of all its threads, user and system, seconds.
    cpu: f64,
    /// Resident memory now, and the most that it ever was, MB (10^6 bytes).
    pub(super) resident: f64,
    pub(super) most: f64,
    pub(super) threads: u64,
}

impl Usage {
    pub(super) fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let number = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.and_then(|word| word.parse().ok()).unwrap_or(0)
        };
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // The name of the program, which may have spaces, is in parentheses; user and system time are fields 14 and 15.
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: f64 = ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
        Self {
            at: Instant::now(),
            // USER_HZ is 100 on every Linux.
            cpu: ticks / 100.0,
            resident: number("VmRSS:") as f64 * 1.024e-3,
            most: number("VmHWM:") as f64 * 1.024e-3,
            threads: number("Threads:"),
        }
    }

    /// Cores that were used since then.
    pub(super) fn cores_since(&self, before: &Self) -> f64 {
        let passed = self.at.duration_since(before.at).as_secs_f64();
        (self.cpu - before.cpu) / passed
    }
}

/// The times that each page took.
type Taken = Vec<(String, Vec<Duration>)>;

/// Reads pages again and again.
pub(super) struct Reader {
    over: Arc<AtomicBool>,
    taken: Arc<Mutex<Taken>>,
    thread: JoinHandle<()>,
}

impl Reader {
    pub(super) fn start(address: &str, paths: &[String]) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let none = paths.iter().map(|path| (path.clone(), Vec::new()));
        let taken = Arc::new(Mutex::new(none.collect::<Taken>()));
        let (address, paths) = (address.to_owned(), paths.to_owned());
        let (its_over, its_taken) = (over.clone(), taken.clone());
        let thread = std::thread::spawn(move || {
            while !its_over.load(Ordering::SeqCst) {
                for (at, path) in paths.iter().enumerate() {
                    let began = Instant::now();
                    let (head, body) = get(&address, path, LONG).unwrap();
                    let took = began.elapsed();
                    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}\n{body}");
                    its_taken.lock().unwrap()[at].1.push(took);
                }
                std::thread::sleep(EVERY);
            }
        });
        Self {
            over,
            taken,
            thread,
        }
    }

    /// What each page took, in words.
    pub(super) fn stop(self) -> String {
        self.over.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
        let taken = self.taken.lock().unwrap();
        let each = taken.iter().map(|(path, times)| {
            let millis = times.iter().map(|time| time.as_secs_f64() * 1e3);
            let of = Spread::of(millis.collect());
            format!("{path} {of} ms ({} times)", times.len())
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

/// Median, 95th percentile and largest of some values.
pub(super) struct Spread([f64; 3]);

impl Spread {
    pub(super) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let place = (values.len() * percent).div_ceil(100).saturating_sub(1);
            values.get(place).copied().unwrap_or(f64::NAN)
        };
        Self([at(50), at(95), at(100)])
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [median, late, most] = self.0;
        write!(out, "median {median:.1}, p95 {late:.1}, at most {most:.1}")
    }
}
