//! How many bytes a direction may still send, shared by its streams: `-n` and `-k` move exactly that.

use std::sync::atomic::{AtomicU64, Ordering};

/// Claimed before writing, so that the streams together never write one byte too many.
#[derive(Debug)]
pub(crate) struct Budget(Option<AtomicU64>);

impl Budget {
    pub(crate) fn new(bytes: Option<u64>) -> Self {
        Self(bytes.map(AtomicU64::new))
    }

    /// Takes up to `wanted` bytes; 0 = nothing is left.
    pub(crate) fn claim(&self, wanted: u64) -> u64 {
        let Some(left) = &self.0 else { return wanted };
        let taken = left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
            Some(left.saturating_sub(wanted))
        });
        taken.unwrap_or(0).min(wanted)
    }

    /// Gives back what was claimed and could not be written.
    pub(crate) fn give_back(&self, unused: u64) {
        if let Some(left) = &self.0 {
            left.fetch_add(unused, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn threads_together_claim_exactly_the_budget() {
        let budget = Arc::new(Budget::new(Some(1_000_003)));
        let claimed: u64 = (0..4)
            .map(|_| {
                let budget = Arc::clone(&budget);
                std::thread::spawn(move || {
                    std::iter::repeat_with(|| budget.claim(7))
                        .take_while(|claim| *claim > 0)
                        .sum::<u64>()
                })
            })
            .collect::<Vec<_>>()
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum();
        assert_eq!(claimed, 1_000_003);
    }

    #[test]
    fn without_a_bound_everything_is_granted() {
        let budget = Budget::new(None);
        assert_eq!(budget.claim(9), 9);
    }
}
