//! Threads that move bytes and sample what the kernel says of them: the client and the server of a
//! test, over iperf3's wire and iperf2's; and one that watches the connections of other programs.
//!
//! What it is not: it prints nothing and explains nothing. A test gives a
//! [`RunRecord`](linerate_model::record::RunRecord) of raw facts; what happens meanwhile goes to an
//! observer as [`Event`](linerate_model::progress::Event)s.
//!
//! ```no_run
//! use linerate_engine::client::{self, ClientOptions};
//! use linerate_kernel::event::EventFd;
//! use linerate_model::plan::Plan;
//! use std::os::fd::AsFd;
//!
//! let stop = EventFd::new()?;
//! let ended = client::run(&Plan::new("192.0.2.1"), &ClientOptions::default(), stop.as_fd(), &mut |_| {})?;
//! println!("{} streams", ended.record.plan.streams);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod auth;
mod budget;
mod buffer;
pub mod client;
mod control;
mod error;
mod gate;
mod half;
mod host;
mod intervals;
pub mod latency;
mod live;
mod negotiation;
pub mod observe;
mod results;
mod sample_pool;
mod samples;
pub mod server;
mod sockets;
mod stream;
mod stream_file;
pub mod transfer;

pub use error::EngineError;

/// The version of iperf3 whose protocol is spoken, as a client tells it.
pub const IPERF3_VERSION: &str = "3.21";
