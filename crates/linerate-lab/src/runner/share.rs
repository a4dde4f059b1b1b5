//! A program that gets only a share of a CPU: it is held to one, beside a thread that never rests, and the
//! weights of the two (their niceness) make the share.
//!
//! An ordinary user has no other way that leaves the program running: quotas of control groups need the
//! right to write there, and stopping it now and then would be a stall, not a shortage. What the program
//! sees is what it sees on a busy machine: it waits for its CPU (`run_delay`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use linerate_kernel::process::{self, ChildSettings};
use linerate_kernel::thread;

use super::error::LabError;

/// Weights of niceness 0 to 19 (kernel/sched/core.c, `sched_prio_to_weight`).
const WEIGHTS: [u32; 20] = [
    1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// Keeps a CPU busy until it is dropped.
#[derive(Debug)]
pub struct CpuShare {
    cpu: usize,
    /// Niceness of the program and of the thread beside it.
    nice: [usize; 2],
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CpuShare {
    /// Occupies a CPU so that a program of the right niceness gets about `share` of it, 0.02 to 0.98.
    ///
    /// # Errors
    /// [`LabError::Work`] where no thread can be started.
    pub fn occupy(cpu: usize, share: f64) -> Result<Self, LabError> {
        let nice = niceness(share);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let own = i32::try_from(nice[1]).unwrap_or(0);
        let thread = std::thread::Builder::new()
            .name("busy".to_owned())
            .spawn(move || {
                // Without either, the share is another one than was asked for; the run tells its CPU time.
                drop(thread::set_affinity(&[cpu]));
                drop(process::be_nicer(own));
                while !stopped.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
            .map_err(LabError::work("start", "a busy thread"))?;
        Ok(Self {
            cpu,
            nice,
            stop,
            thread: Some(thread),
        })
    }

    /// How the program is to be started.
    pub fn settings(&self) -> ChildSettings<'static> {
        ChildSettings {
            namespace: None,
            cpus: vec![self.cpu],
            nice: i32::try_from(self.nice[0]).unwrap_or(0),
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

fn share_of([program, beside]: [usize; 2]) -> f64 {
    let weight = |nice: usize| f64::from(WEIGHTS[nice.min(WEIGHTS.len() - 1)]);
    weight(program) / (weight(program) + weight(beside))
}

/// The niceness of both that comes closest; of equals the least.
fn niceness(share: f64) -> [usize; 2] {
    let places = 0..WEIGHTS.len();
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
    use super::*;

    #[test]
    fn weights_come_close_to_every_share() {
        for percent in 2..=98 {
            let share = f64::from(percent) / 100.0;
            let made = share_of(niceness(share));
            assert!((made - share).abs() < 0.03, "{share}: {made}");
        }
        assert_eq!(niceness(0.5), [0, 0]);
    }
}
