//! A test whose payload is files: telling the client how far the target is, and waiting for its disk.

use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_kernel::clock;
use linerate_model::units::Nanos;
use linerate_wire::control::ServerEvent as Said;
use linerate_wire::extension::Stored;

use crate::control::Turn;
use crate::transfer::{STORED_EVERY, SYNC_BOUND, Target};

use super::Cause;
use super::refusal::Refusal;
use super::session::Session;

/// When the client was last told.
#[derive(Default)]
pub(super) struct Storing {
    next: Nanos,
    told_error: bool,
}

impl Storing {
    /// What the client is to be told now: how far the target is now and then, and once that it goes on no more.
    pub(super) fn take(
        &mut self,
        now: Nanos,
        target: &dyn Target,
        error: Option<String>,
    ) -> Option<Stored> {
        let error = error.filter(|_| !self.told_error);
        if now < self.next && error.is_none() {
            return None;
        }
        self.next = now.plus(STORED_EVERY);
        self.told_error |= error.is_some();
        Some(Stored {
            bytes: target.progress().0,
            error: error.map(Into::into),
        })
    }
}

impl Session<'_> {
    pub(super) fn target(&self) -> Option<Arc<dyn Target>> {
        self.target.clone()
    }

    /// Waits until the target has everything on disk, or has failed; its error is in its record.
    pub(super) fn store_the_rest(&mut self, target: &dyn Target) -> Result<(), Refusal> {
        target.end();
        let terminate = self.shared.terminate.as_fd();
        let until = clock::monotonic().plus(SYNC_BOUND);
        let mut storing = Storing::default();
        loop {
            let now = clock::monotonic();
            if let Some(stored) = storing.take(now, target, target.failed()) {
                self.link.machine.send_stored(stored)?;
            }
            if now >= until {
                let reason = format!(
                    "its target had not written everything {SYNC_BOUND} after the last byte"
                );
                return Err(Refusal::new(Cause::Host, reason));
            }
            match self
                .link
                .turn(&[target.finished_fd(), terminate], now.plus(STORED_EVERY))?
            {
                Turn::Woken(0) => {
                    // A target that fails at the end says so as well.
                    if let Some(stored) = storing.take(now, target, target.failed()) {
                        self.link.machine.send_stored(stored)?;
                    }
                    return Ok(());
                }
                Turn::Woken(_) => return Err(Refusal::server_stopped()),
                Turn::Event(Said::ClientTerminated) => return Err(Refusal::client_stopped()),
                Turn::TimedOut | Turn::Event(_) => {}
            }
        }
    }
}
