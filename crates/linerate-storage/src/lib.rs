//! Block devices and files: what stands below a file, how fast it is ([`probe`]), and what a power cut leaves of it.
//!
//! What it is not: it judges nothing (that is for `linerate-explain`), prints nothing, and knows no other host.

pub mod probe;
