//! A test that is due and waits, and what it waits for.

use linerate_model::plain_text::PlainText;
use linerate_model::watch::{NotRun, RunClass, RunId, UnixMillis};

use super::lease::End;

/// A test that is due and has no row yet.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) id: RunId,
    pub(super) class: RunClass,
    /// With tests of which class it takes turns.
    pub(super) turn: RunClass,
    /// Its pair's place in the compiled plan.
    pub(super) pair: usize,
    pub(super) due: UnixMillis,
    pub(super) deadline: UnixMillis,
    pub(super) load: u64,
    pub(super) booked: u64,
    /// Decides between tests that are alike otherwise.
    pub(super) tie: u64,
    /// Whether it is not looked at until something that it waits for changes.
    pub(super) parked: bool,
    blocked: Option<(Block, UnixMillis)>,
    waited: Vec<(Block, u64)>,
}

/// What a test waits for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    /// The hub has just been started, and tests of its predecessor may still run.
    Settling,
    Maintenance(PlainText),
    Away(End),
    PairFailed,
    HostFailed(End),
    Hours,
    OtherHub(End),
    Budget(PlainText),
    BusyLink(End),
    Resources,
}

impl Block {
    pub(super) const fn reason(&self) -> NotRun {
        match self {
            Self::Settling => NotRun::HubAway,
            Self::Maintenance(_) => NotRun::Maintenance,
            Self::Away(_) => NotRun::AgentAway,
            Self::PairFailed | Self::HostFailed(_) => NotRun::BackingOff,
            Self::Hours => NotRun::Hours,
            Self::OtherHub(_) | Self::Resources => NotRun::Missed,
            Self::Budget(_) => NotRun::Budget,
            Self::BusyLink(_) => NotRun::BusyLink,
        }
    }
}

impl Pending {
    pub(super) const fn new(
        id: RunId,
        class: RunClass,
        pair: usize,
        deadline: UnixMillis,
        [load, booked]: [u64; 2],
        tie: u64,
    ) -> Self {
        Self {
            id,
            class,
            turn: class,
            pair,
            due: id.due(),
            deadline,
            load,
            booked,
            tie,
            parked: false,
            blocked: None,
            waited: Vec::new(),
        }
    }

    /// The last moment at which it can start.
    pub(super) const fn latest_start(&self) -> UnixMillis {
        UnixMillis(self.deadline.0.saturating_sub(self.booked))
    }

    /// From now on this keeps it waiting.
    pub(super) fn wait_for(&mut self, block: Option<Block>, now: UnixMillis) {
        match (&self.blocked, &block) {
            (Some((old, _)), Some(new)) if old == new => return,
            (None, None) => return,
            _ => {}
        }
        let since = block.map(|block| (block, now.max(self.due)));
        if let Some((block, since)) = std::mem::replace(&mut self.blocked, since) {
            let millis = now.since(since);
            match self.waited.iter_mut().find(|(known, _)| *known == block) {
                Some((_, sum)) => *sum += millis,
                None => self.waited.push((block, millis)),
            }
        }
    }

    /// What it waits for, and since when.
    pub(super) const fn waits_for(&self) -> Option<&(Block, UnixMillis)> {
        self.blocked.as_ref()
    }

    /// What kept it waiting the longest, and for how long in all, ms. The later one where two are alike.
    pub(super) fn cause(&mut self, now: UnixMillis) -> Option<(Block, u64)> {
        self.wait_for(None, now);
        let mut sums: Vec<(NotRun, u64)> = Vec::new();
        for (block, millis) in &self.waited {
            match sums
                .iter_mut()
                .find(|(reason, _)| *reason == block.reason())
            {
                Some((_, sum)) => *sum += millis,
                None => sums.push((block.reason(), *millis)),
            }
        }
        let (reason, sum) = sums.into_iter().max_by_key(|(_, sum)| *sum)?;
        let of_reason = self
            .waited
            .iter()
            .filter(|(block, _)| block.reason() == reason);
        let longest = of_reason.max_by_key(|(_, millis)| *millis)?;
        Some((longest.0.clone(), sum))
    }
}
