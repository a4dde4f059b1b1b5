//! The hub's dashboard: pages, JSON, CSV, events and metrics over HTTP.
//!
//! Everything is drawn from the same views, so that a page, the API and Prometheus cannot disagree. A pair that fails has
//! no goodput anywhere: absent in metrics, null in JSON, empty in CSV, a sign and a word on the page. Pages are complete
//! without JavaScript; a script only redraws the chart of a pair and loads the page again when something happened.
//!
//! What it is not: it starts no test, and writes nothing to the archive but silences. The hub's driver does, tells
//! [`live::Live`] what runs, and wakes the open pages by [`live::Live::wake`]; it is asked for tests by [`shared::Shared`]. [`serve`] asks for no login and listens on loopback alone;
//! [`serve_behind`] takes a [`access::Door`] with users, and listens elsewhere only with those and TLS.
//!
//! ```
//! use std::sync::Arc;
//! use linerate_hub::{memory::MemoryStore, serve, shared::Shared};
//! use linerate_model::watch::UnixMillis;
//!
//! let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
//! let shared = Shared::new(Arc::new(MemoryStore::default()), || UnixMillis(1_795_578_012_345));
//! let serving = serve(listener, Arc::new(shared)).unwrap();
//! assert!(serving.address().ip().is_loopback());
//! serving.stop();
//! ```

pub mod access;
mod archive;
mod csv;
mod guard;
pub mod live;
pub mod memory;
mod metrics;
mod moment;
mod page;
mod regimes;
mod route;
mod server;
pub mod shared;
pub mod store;
mod view;
pub mod words;

pub use server::{ServeError, Serving, serve, serve_behind};
