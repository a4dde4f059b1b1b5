//! Tests of the crate from outside: captured sessions, the CVE list, pairs of machines, properties.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod captured;
mod cves;
mod iperf2;
mod pair;
mod properties;
mod session;
