//! Reads TOML documents so that an error names the file, the line, the key, what was found, what is wrong with it and
//! what is expected.
//!
//! A [`Section`] lists the keys that a table may have; [`Table`] refuses every other key, and [`Value`] reads one value
//! as the type that its caller asks for. Scenarios, sweeps, profiles and declarations of interfaces are all read here.
//!
//! What it is not: it opens no file, and it writes no TOML.
//!
//! ```
//! use linerate_document::{Document, Key, Section, Value};
//!
//! const TOP: Section = Section::of("the file", &[&[Key::of("mtu", "68 to 65535"), Key::of("name", "text")]]);
//! let mtu = |text| {
//!     let document = Document::parse("hosts.toml", text, &[&TOP])?;
//!     document.top(&TOP)?.read("mtu", |value| value.whole(68..=65_535))
//! };
//! assert_eq!(mtu("mtu = 9000"), Ok(Some(9000)));
//! assert_eq!(
//!     mtu("mut = 9000").unwrap_err().to_string(),
//!     "hosts.toml:1: unknown key 'mut' in the file: did you mean 'mtu'?"
//! );
//! assert_eq!(
//!     mtu("name = \"x\"\nmtu = 1").unwrap_err().to_string(),
//!     "hosts.toml:2: mtu = 1: not a whole number from 68 to 65535"
//! );
//! ```

mod document;
mod error;
mod section;
mod value;

pub use document::{Document, Table};
pub use error::DocumentError;
pub use section::{Key, Section};
pub use value::{Value, words};
