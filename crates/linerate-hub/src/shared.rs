//! What the hub's driver and its pages share.

use std::sync::Arc;

use linerate_model::watch::{RunId, UnixMillis};
use linerate_watch::alert::PairName;

use crate::live::Live;
use crate::store::Store;

/// The archive, the state of the running hub, and its clock.
pub struct Shared {
    store: Arc<dyn Store>,
    live: Live,
    now: Box<dyn Fn() -> UnixMillis + Send + Sync>,
    asks: Box<Asks>,
}

/// Asks for a test of a pair now; the id that its row will have, or why there is none.
type Asks = dyn Fn(PairName) -> Result<RunId, String> + Send + Sync;

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
            asks: Box::new(|_| Err("This hub runs no tests.".to_owned())),
        }
    }

    /// With somebody who makes tests that are asked for.
    #[must_use]
    pub fn with_tests(
        mut self,
        asks: impl Fn(PairName) -> Result<RunId, String> + Send + Sync + 'static,
    ) -> Self {
        self.asks = Box::new(asks);
        self
    }

    /// Asks for a test; may block for some seconds.
    pub(crate) fn ask(&self, wanted: PairName) -> Result<RunId, String> {
        (self.asks)(wanted)
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
