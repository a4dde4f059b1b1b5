//! What the hub's driver and its pages share.

use std::sync::Arc;

use linerate_model::watch::UnixMillis;

use crate::live::Live;
use crate::store::Store;

/// The archive, the state of the running hub, and its clock.
pub struct Shared {
    store: Arc<dyn Store>,
    live: Live,
    now: Box<dyn Fn() -> UnixMillis + Send + Sync>,
}

impl Shared {
    /// Of an archive and the hub's clock: one reading of the wall clock at its start plus the monotonic clock.
    pub fn new(
        store: Arc<dyn Store>,
        now: impl Fn() -> UnixMillis + Send + Sync + 'static,
    ) -> Self {
        Self {
            store,
            live: Live::default(),
            now: Box::new(now),
        }
    }

    /// The archive.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// What the hub does at the moment.
    pub const fn live(&self) -> &Live {
        &self.live
    }

    /// The hub's time.
    pub fn now(&self) -> UnixMillis {
        (self.now)()
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("live", &self.live)
            .finish_non_exhaustive()
    }
}
