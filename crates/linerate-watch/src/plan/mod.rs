//! What is watched, from a file: `watch.toml`; and what it costs.
pub mod test_options;
