//! Many hosts on switches with trunks between them, as a file: what a mesh of tests is run over.
//!
//! [`Star::parse`] reads the text of such a file into types that cannot be wrong; what is wrong in the text is named
//! with its line. [`keys`] defines every key once. [`Star::next_trunks`] says over which trunk a switch reaches each
//! other one.
//!
//! What it is not: it opens no file and makes no host; [`runner::star`](crate::runner::star) does. A path between two
//! hosts is a [`Scenario`](crate::scenario::Scenario).
//!
//! ```
//! use linerate_lab::star::Star;
//!
//! let text = "name = \"two\"\n[star]\nrate = \"50M\"\n[[star.switch]]\nname = \"rack1\"\nhosts = \"node[1-2]\"\n";
//! let star = Star::parse("two.toml", text).unwrap();
//! assert_eq!(star.hosts[1].name, "node2");
//!
//! let error = Star::parse("two.toml", &text.replace("50M", "50MB")).unwrap_err().to_string();
//! assert!(error.starts_with("two.toml:3: rate = \"50MB\": 'MB' reads as bytes"), "{error}");
//! ```

pub mod keys;
mod names;
mod read;
mod routes;
mod types;

pub use read::is_star;
pub use types::{Down, Expected, MOST_HOSTS, MOST_LINKS, Member, Star, StarHost, Switch, Trunk};
