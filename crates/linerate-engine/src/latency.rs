//! How late this host wakes: timed waits as the streams wait, and one thread waking another.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering};

use linerate_kernel::event::EventFd;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::{clock, thread};
use linerate_model::host_limit::{Latency, TimerLateness};
use linerate_model::units::Nanos;

/// A partner that does not answer for so long is gone.
const PATIENCE: Nanos = Nanos::from_millis(10_000);

/// How late `count` waits of `asked` each end, with the timer slack that streams have (1 ns). It takes as long as the
/// waits, and never longer than `most` and one wait.
///
/// # Errors
/// Those of starting a thread and of ppoll(2); `InvalidInput` where nothing was to be measured.
pub fn timer(asked: Nanos, count: usize, most: Nanos) -> io::Result<TimerLateness> {
    let times = on_a_thread(|| {
        thread::set_timer_slack(Nanos(1))?;
        let began = clock::monotonic();
        let mut times = Vec::with_capacity(count);
        while times.len() < count && clock::monotonic().since(began) < most {
            let before = clock::monotonic();
            poll::wait(&mut [], Some(asked))?;
            let took = clock::monotonic().since(before);
            // A signal ends a wait early: that is no wake-up by the timer.
            if took >= asked {
                times.push(took.since(asked));
            }
        }
        Ok(times)
    })?;
    let late = Latency::of(times).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(TimerLateness {
        asked_ns: asked,
        late,
    })
}

/// How long it takes from the moment at which a thread raises an event until another thread, which slept in ppoll(2),
/// goes on: `count` times there and back, never longer than `most` together. On different CPUs where there are
/// several.
///
/// # Errors
/// Those of starting threads, of eventfd(2) and ppoll(2); `TimedOut` where a thread was not woken within 10 s.
pub fn wake_up(count: usize, most: Nanos) -> io::Result<Latency> {
    let (there, back) = (Bell::new()?, Bell::new()?);
    let cpus = thread::affinity().unwrap_or_default();
    let cpu = |end: Option<&usize>| end.copied().filter(|_| cpus.len() > 1);
    let (first, last) = (cpu(cpus.first()), cpu(cpus.last()));
    std::thread::scope(|scope| {
        let echo = std::thread::Builder::new().spawn_scoped(scope, || echo(&there, &back, last))?;
        let asked = std::thread::Builder::new()
            .spawn_scoped(scope, || ask(&there, &back, first, count, most))?
            .join();
        // Whatever became of the one that asks, the other one ends.
        there.finish();
        let echoed = echo.join();
        let panicked = |_| io::Error::other("a measuring thread panicked");
        let mut times = asked.map_err(panicked)??;
        times.extend(echoed.map_err(panicked)??);
        Latency::of(times).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    })
}

/// An event with the instant at which it was raised.
struct Bell {
    event: EventFd,
    rung: AtomicU64,
}

/// No instant: there is nothing more to come.
const FINISHED: u64 = u64::MAX;

impl Bell {
    fn new() -> io::Result<Self> {
        Ok(Self {
            event: EventFd::new()?,
            rung: AtomicU64::new(0),
        })
    }

    fn ring(&self) -> io::Result<()> {
        self.rung.store(clock::monotonic().0, Ordering::Release);
        self.event.raise()
    }

    fn finish(&self) {
        self.rung.store(FINISHED, Ordering::Release);
        drop(self.event.raise());
    }

    /// How long ago it was rung; `None`: it will not be any more.
    fn hear(&self) -> io::Result<Option<Nanos>> {
        let mut entries = [PollEntry::new(self.event.as_fd(), Interest::READ)];
        let until = clock::monotonic().plus(PATIENCE);
        while poll::wait(&mut entries, Some(PATIENCE))? == 0 {
            if clock::monotonic() >= until {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        let now = clock::monotonic();
        self.event.clear()?;
        let rung = self.rung.load(Ordering::Acquire);
        Ok((rung != FINISHED).then(|| now.since(Nanos(rung))))
    }
}

fn stay_on(cpu: Option<usize>) {
    if let Some(cpu) = cpu {
        // A CPU that a cpuset takes away meanwhile: then anywhere.
        drop(thread::set_affinity(&[cpu]));
    }
}

fn ask(
    there: &Bell,
    back: &Bell,
    cpu: Option<usize>,
    count: usize,
    most: Nanos,
) -> io::Result<Vec<Nanos>> {
    stay_on(cpu);
    let began = clock::monotonic();
    let mut times = Vec::with_capacity(count);
    while times.len() < count && clock::monotonic().since(began) < most {
        there.ring()?;
        times.extend(back.hear()?);
    }
    Ok(times)
}

fn echo(there: &Bell, back: &Bell, cpu: Option<usize>) -> io::Result<Vec<Nanos>> {
    stay_on(cpu);
    let mut times = Vec::new();
    // It ends when told so, and after 10 s of silence.
    while let Some(took) = there.hear()? {
        times.push(took);
        back.ring()?;
    }
    Ok(times)
}

/// Settings of a thread end with it.
fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work)?;
        let joined = thread.join();
        joined.unwrap_or_else(|_| Err(io::Error::other("a measuring thread panicked")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_and_bounded() {
        let asked = Nanos(50_000);
        let timer = timer(asked, 20, PATIENCE).unwrap();
        assert_eq!((timer.asked_ns, timer.late.count), (asked, 20));
        assert!(timer.late.median_ns <= timer.late.p99_ns);
        let error = super::timer(asked, 20, Nanos::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn both_threads_hear_each_other() {
        let latency = wake_up(30, PATIENCE).unwrap();
        assert_eq!(latency.count, 60, "there and back");
        assert!(Nanos::ZERO < latency.median_ns && latency.median_ns <= latency.max_ns);
    }
}
