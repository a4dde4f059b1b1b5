//! The machine that all tests share: most run beside one another, so many at a time; one that measures has it for itself.
//!
//! Those that measure wait until no other runs. With more threads than tests that measure (`scripts/test.sh` sees to it) they
//! come after all others, and nobody waits for them.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::{available_parallelism, current};
use std::time::Instant;

/// Most tests wait rather than compute.
const BESIDE_PER_CPU: usize = 2;

static BESIDE: LazyLock<usize> =
    LazyLock::new(|| BESIDE_PER_CPU * available_parallelism().map_or(1, usize::from));
static RUNNING: Mutex<Running> = Mutex::new(Running::Beside(0));
static ENDED: Condvar = Condvar::new();

/// The tests that run.
enum Running {
    Beside(usize),
    Alone,
}

/// A file to which each test appends how long its turn took, `SECONDS alone|beside NAME`: `scripts/test.sh` lists the longest.
const TURNS: &str = "LINERATE_TURNS";

/// A test's turn, until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Turn {
    begun: Instant,
}

impl Turn {
    fn when(may_begin: impl Fn(&Running) -> bool, begin: impl FnOnce(&mut Running)) -> Self {
        let running = ENDED.wait_while(lock(), |running| !may_begin(running));
        begin(&mut running.unwrap_or_else(PoisonError::into_inner));
        Self {
            begun: Instant::now(),
        }
    }

    /// What cannot be written is not worth a test.
    fn tell(&self, running: &Running) {
        let Some(file) = std::env::var_os(TURNS) else {
            return;
        };
        let kind = match running {
            Running::Alone => "alone",
            Running::Beside(_) => "beside",
        };
        let seconds = self.begun.elapsed().as_secs_f64();
        let line = format!("{seconds:.1} {kind} {}\n", current().name().unwrap_or("?"));
        let file = OpenOptions::new().create(true).append(true).open(file);
        drop(file.and_then(|mut file| file.write_all(line.as_bytes())));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut running = lock();
        self.tell(&running);
        *running = match *running {
            Running::Beside(others) => Running::Beside(others.saturating_sub(1)),
            Running::Alone => Running::Beside(0),
        };
        ENDED.notify_all();
    }
}

fn lock() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps all other tests away while this one measures.
pub(crate) fn alone() -> Turn {
    Turn::when(
        |running| matches!(running, Running::Beside(0)),
        |running| *running = Running::Alone,
    )
}

/// For tests that others do not disturb.
pub(crate) fn beside() -> Turn {
    Turn::when(
        |running| matches!(running, Running::Beside(count) if count < &*BESIDE),
        |running| {
            if let Running::Beside(count) = running {
                *count += 1;
            }
        },
    )
}
