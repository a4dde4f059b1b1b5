//! iperf3's wire and linerate's extension of it: codecs, the two machines of the control
//! connection, and the arithmetic of a UDP test (pacing, sequence, jitter). And the frames by which
//! linerate asks a linerate on another host to do something ([`agent`]); and iperf2's wire ([`iperf2`]).
//!
//! What it is not: it opens no socket, reads no clock, no file, no environment and no random
//! source; bytes, instants and randomness are arguments. It holds no policy either: who may test,
//! how long and how fast is the engine's to say. Nothing here panics on what a peer sends.
//!
//! The two machines, [`control::ClientControl`] and [`control::ServerControl`], are the only
//! places that interpret what comes over a control connection. Feed them bytes in pieces of any
//! size, then drain events and output before the next call:
//!
//! ```
//! use linerate_wire::control::{ClientControl, ClientEvent, ServerControl, ServerEvent};
//! use linerate_wire::cookie::Cookie;
//! use linerate_wire::parameters::Parameters;
//!
//! # fn main() -> Result<(), linerate_wire::error::ProtocolError> {
//! let cookie = Cookie::from_random([7; 36]);
//! let mut client = ClientControl::new(cookie, Parameters::default());
//! let mut server = ServerControl::default();
//!
//! let first = client.poll_transmit().unwrap_or_default();
//! assert_eq!(first, cookie.as_bytes()); // the listener reads it, the machine does not
//!
//! server.ask_parameters()?;
//! while let Some(bytes) = server.poll_transmit() {
//!     client.handle_input(&bytes)?;
//! }
//! while let Some(bytes) = client.poll_transmit() {
//!     server.handle_input(&bytes)?;
//! }
//! assert!(matches!(server.poll_event(), Some(ServerEvent::Parameters(_))));
//!
//! server.create_streams()?;
//! while let Some(bytes) = server.poll_transmit() {
//!     client.handle_input(&bytes)?;
//! }
//! assert_eq!(client.poll_event(), Some(ClientEvent::CreateStreams));
//! # Ok(())
//! # }
//! ```

pub mod agent;
pub mod auth;
pub mod control;
pub mod cookie;
pub mod enrol;
pub mod error;
pub mod extension;
pub mod frame;
pub mod iperf2;
pub mod jitter;
mod json;
pub mod pacing;
pub mod parameters;
pub mod probe;
pub mod results;
pub mod sequence;
pub mod state;
pub mod transits;
pub mod udp;
