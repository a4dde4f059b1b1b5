//! What is watched, from the file `watch.toml`; and what it costs.

mod channels;
pub mod cost;
mod hours;
pub mod keys;
mod read;
mod tasks;
pub mod test_options;
mod times;

pub use read::{Groups, MOST_HOSTS, NodeSets, parse};
pub use tasks::MOST_PAIRS;
