//! A program that gets only a share of a CPU: it is held to one, beside a thread that never rests, and the
//! weights of the two (their niceness) make the share.
//!
//! An ordinary user has no other way that leaves the program running: quotas of control groups need the
//! right to write there, and stopping it now and then would be a stall, not a shortage. What the program
//! sees is what it sees on a busy machine: it waits for its CPU (`run_delay`).
//!
//! The weights divide what the two get. The lab's own thread on that CPU, and what the kernel does in interrupts,
//! come off both, so a run tells what the program really had ([`CpuInForce`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use linerate_kernel::process::{self, ChildSettings};
use linerate_kernel::{KernelError, thread};
use linerate_model::units::Nanos;
use serde::Serialize;

use super::error::LabError;

/// Weights of niceness 0 to 19 (kernel/sched/core.c, `sched_prio_to_weight`).
const WEIGHTS: [u32; 20] = [
    1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// The largest niceness.
const NICEST: i32 = 19;
/// A share that the weights miss by more is another one.
const NEAR: f64 = 0.03;

/// A share as it was asked for, and as it was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CpuInForce {
    /// What the scenario asks, 0 to 1 of a core.
    pub asked: f64,
    /// What the weights of the program and the thread beside it make.
    pub weights: f64,
    /// CPU time of the program over the time from the streams' start to its last sign of life; `None` where it was
    /// gone before it could be looked at twice.
    pub used: Option<f64>,
}

/// A program's use of CPU time, looked at now and then.
#[derive(Debug, Clone, Copy)]
pub struct CpuMeter {
    pid: u32,
    first: Option<[Nanos; 2]>,
    last: Option<[Nanos; 2]>,
}

impl CpuMeter {
    /// Of this process.
    pub const fn of(pid: u32) -> Self {
        Self {
            pid,
            first: None,
            last: None,
        }
    }

    /// Looks at it, at `now` on the monotonic clock. One that has ended stays as it was seen last.
    pub fn look(&mut self, now: Nanos) {
        if let Some(time) = process::cpu_time(self.pid) {
            self.first.get_or_insert([now, time]);
            self.last = Some([now, time]);
        }
    }

    /// Its share of one core between the first look and the last; above 1 where it has several.
    pub fn share(&self) -> Option<f64> {
        let ([from, used], [to, all]) = self.first.zip(self.last)?;
        let span = to.since(from);
        (span > Nanos::ZERO).then(|| all.since(used).as_secs_f64() / span.as_secs_f64())
    }
}

/// Keeps a CPU busy until it is dropped.
#[derive(Debug)]
pub struct CpuShare {
    cpu: usize,
    /// Added to the niceness of the program and of the thread beside it.
    nice: [usize; 2],
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CpuShare {
    /// Occupies a CPU so that a program of the right niceness gets about `share` of it, 0.02 to 0.98.
    ///
    /// # Errors
    /// [`LabError::Share`] where this process is so nice already that no weights make that share;
    /// [`LabError::Work`] where the CPU is forbidden or no thread can be started.
    pub fn occupy(cpu: usize, share: f64) -> Result<Self, LabError> {
        let own = process::niceness().map_err(LabError::work("read", "the niceness"))?;
        let most = usize::try_from(NICEST - own.max(0)).unwrap_or(0);
        let nice = niceness(share, most);
        let made = share_of(nice);
        if (made - share).abs() > NEAR {
            return Err(LabError::Share {
                asked: share,
                made,
                niceness: own,
            });
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let by = i32::try_from(nice[1]).unwrap_or(0);
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("busy".to_owned())
            .spawn(move || {
                let ready = set_apart(cpu, by);
                let works = ready.is_ok();
                drop(tell.send(ready));
                while works && !stopped.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
            .map_err(LabError::work("start", "a busy thread"))?;
        let this = Self {
            cpu,
            nice,
            stop,
            thread: Some(thread),
        };
        match told.recv() {
            Ok(Err(error)) => Err(LabError::work("occupy", format!("CPU {cpu}"))(error.source)),
            // It ends after it has told.
            Ok(Ok(())) | Err(_) => Ok(this),
        }
    }

    /// How the program is to be started.
    pub fn settings(&self) -> ChildSettings<'static> {
        ChildSettings {
            namespace: None,
            cpus: vec![self.cpu],
            nice: i32::try_from(self.nice[0]).unwrap_or(0),
            ..ChildSettings::default()
        }
    }

    /// The share that the weights make.
    pub fn share(&self) -> f64 {
        share_of(self.nice)
    }
}

impl Drop for CpuShare {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn set_apart(cpu: usize, by: i32) -> Result<(), KernelError> {
    thread::set_affinity(&[cpu])?;
    process::be_nicer(by).map_err(|source| KernelError {
        operation: "lower the weight of",
        object: "a busy thread".to_owned(),
        source,
    })
}

fn share_of([program, beside]: [usize; 2]) -> f64 {
    let weight = |nice: usize| f64::from(WEIGHTS[nice.min(WEIGHTS.len() - 1)]);
    weight(program) / (weight(program) + weight(beside))
}

/// What is to be added to the niceness of both, up to `most`, to come closest; of equals the least.
fn niceness(share: f64, most: usize) -> [usize; 2] {
    let places = 0..=most.min(WEIGHTS.len() - 1);
    let pairs = places
        .clone()
        .flat_map(|program| places.clone().map(move |beside| [program, beside]));
    let error = |pair: &[usize; 2]| (share_of(*pair) - share).abs();
    pairs
        .min_by(|one, other| {
            error(one)
                .total_cmp(&error(other))
                .then_with(|| (one[0] + one[1]).cmp(&(other[0] + other[1])))
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use linerate_testing::{Need, skipped};

    use super::*;

    #[test]
    fn weights_come_close_to_every_share() {
        for percent in 2..=98 {
            let share = f64::from(percent) / 100.0;
            let made = share_of(niceness(share, 19));
            assert!((made - share).abs() < NEAR, "{share}: {made}");
        }
        assert_eq!(niceness(0.5, 19), [0, 0]);
    }

    #[test]
    fn a_nice_process_makes_the_share_or_says_that_it_cannot() {
        // In a thread of its own, which is all that it changes.
        std::thread::spawn(|| {
            let cpu = thread::affinity().unwrap()[0];
            let before = process::niceness().unwrap();
            if before > 15 {
                let why = format!("these tests run at a niceness of {before}, above 15");
                return skipped(Need::Niceness, "a share of a CPU by niceness", &why);
            }
            process::be_nicer(15 - before).unwrap();
            // Four steps are left: 1.25^4 to 1, 0.29 to 0.71.
            let share = CpuShare::occupy(cpu, 0.3).unwrap();
            assert!((share.share() - 0.3).abs() < NEAR);
            assert_eq!(share.settings().nice, 4);
            drop(share);
            let error = CpuShare::occupy(cpu, 0.05).unwrap_err().to_string();
            for words in ["0.05", "niceness of 15", "nice"] {
                assert!(error.contains(words), "{words}: {error}");
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_meter_tells_the_share_between_its_looks() {
        let mut meter = CpuMeter::of(std::process::id());
        assert_eq!(meter.share(), None);
        meter.look(Nanos::from_millis(1000));
        assert_eq!(meter.share(), None);
        meter.look(Nanos::from_millis(2000));
        assert!(meter.share().is_some());
        let mut meter = CpuMeter {
            pid: u32::MAX,
            first: Some([Nanos::ZERO, Nanos::from_millis(100)]),
            last: Some([Nanos::from_millis(1000), Nanos::from_millis(400)]),
        };
        meter.look(Nanos::from_millis(5000));
        assert!((meter.share().unwrap() - 0.3).abs() < 1e-9);
    }
}
