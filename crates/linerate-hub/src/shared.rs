//! What the hub's driver and its pages share.

use std::sync::Arc;

use linerate_model::alert::AlertId;
use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunId, UnixMillis};
use linerate_watch::alert::PairName;

use crate::live::Live;
use crate::store::Store;

/// The archive, the state of the running hub, and its clock.
pub struct Shared {
    store: Arc<dyn Store>,
    live: Live,
    now: Box<dyn Fn() -> UnixMillis + Send + Sync>,
    driver: Box<dyn Requests>,
}

/// What the hub's driver does for those who ask by a page or by the API. A call may block for some seconds.
pub trait Requests: Send + Sync {
    /// Runs a test of a pair now; the id that its row will have.
    ///
    /// # Errors
    /// Why there is none, as a sentence.
    fn test(&self, pair: PairName) -> Result<RunId, String>;

    /// Takes the level that an alert's pairs show now for the right one, as somebody says; of how many pairs.
    ///
    /// # Errors
    /// Why it does not, as a sentence.
    fn accept(&self, alert: AlertId, by: PlainText) -> Result<usize, String>;

    /// Silences are others than before.
    fn silences_changed(&self);
}

/// A hub without a driver.
struct Nobody;

impl Requests for Nobody {
    fn test(&self, _: PairName) -> Result<RunId, String> {
        Err("This hub runs no tests.".to_owned())
    }

    fn accept(&self, _: AlertId, _: PlainText) -> Result<usize, String> {
        Err("This hub runs no tests.".to_owned())
    }

    fn silences_changed(&self) {}
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
            driver: Box::new(Nobody),
        }
    }

    /// With a driver.
    #[must_use]
    pub fn with_driver(mut self, driver: impl Requests + 'static) -> Self {
        self.driver = Box::new(driver);
        self
    }

    pub(crate) fn driver(&self) -> &dyn Requests {
        &*self.driver
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
