//! A wide-area path on one machine: delay, rate, queue, loss and whatever else a path does to packets,
//! between the TCP of real kernels.
//!
//! [`path`] decides what happens to each packet and when; [`scenario`] reads the files that describe a
//! lab; [`draw`] makes such files at random, with their truth; [`star`] reads those of many hosts on switches. All four
//! are pure: time and seed are arguments. The namespaces, interfaces and queues around them are the runner's, the only
//! part of this room that touches a kernel or reads a clock.
//!
//! What it is not: it moves no bytes of a test itself and judges no run.
//!
//! ```
//! use linerate_lab::path::{Direction, DirectionSpec, Ecn, Fate, Packet};
//! use linerate_model::units::Nanos;
//!
//! let mut spec = DirectionSpec::default();
//! spec.settings.delay = Nanos::from_millis(30);
//! let mut direction = Direction::new(&spec, 7);
//! let packet = Packet { id: 1, bytes: 1500, segments: 1, ecn: Ecn::NotCapable, dont_fragment: true, cross: false };
//! direction.handle_packet(Nanos(0), packet);
//! assert_eq!(direction.poll(), None);
//! assert_eq!(direction.poll_timeout(), Some(Nanos::from_millis(30)));
//! direction.handle_timeout(Nanos::from_millis(30));
//! assert_eq!(direction.poll().map(|verdict| verdict.fate), Some(Fate::Deliver));
//! ```

pub mod draw;
pub mod path;
#[expect(clippy::disallowed_types, reason = "the runner is not the pure part")]
pub mod runner;
pub mod scenario;
pub mod star;
