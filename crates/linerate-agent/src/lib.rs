//! What a host does for a hub.
//!
//! [`identity`] keeps the host's key and certificate, [`enrol`] gets the first one by an invitation and later ones by the one
//! before, [`dial`] connects, and [`gate`] stands between the hub's frames and the agent that runs commands
//! (`linerate agent --stdio`): every ask is checked by the host's own [`law`] before it goes on.
//!
//! What it is not: it runs no command itself and reads no command line; the binary says what the words of an ask amount to
//! ([`law::Deed`]).
//!
//! ```
//! use linerate_agent::law::{Law, Rule};
//!
//! let law = Law::parse("agent.toml", "max_rate = \"1G\"\nmax_seconds = 30\npeers = [\"10.0.0.0/8\"]")?;
//! let load = linerate_agent::law::Load {
//!     peer: Some("10.0.0.7".parse()?),
//!     seconds: linerate_model::units::Nanos::from_millis(10_000),
//!     rate: Some(linerate_model::units::BitRate(2_000_000_000)),
//!     ..Default::default()
//! };
//! let books = linerate_agent::law::Books::default();
//! let now = linerate_model::watch::UnixMillis(0);
//! let refusal = law.permit(&linerate_agent::law::Deed::Test(load), now, &books).unwrap_err();
//! assert_eq!(refusal.rule, Rule::MaxRate);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod dial;
pub mod enrol;
pub mod error;
pub mod gate;
pub mod identity;
pub mod law;

pub use error::AgentError;

#[cfg(test)]
mod tests;
