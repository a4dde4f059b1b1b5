//! The binary against itself and against iperf3, on loopback and in network namespaces.
//!
//! Tests that measure hold [`harness::alone`]; the others hold [`harness::beside`]. What a machine cannot
//! run reports that it is skipped, and why (`linerate_testing`). Everything that is started ends by its own id, also
//! after a panic, and namespaces live only as long as the processes in them.

#[cfg(test)]
mod agents;
#[cfg(test)]
mod archive;
#[cfg(test)]
mod auth;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod between;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod campaign;
#[cfg(test)]
mod check;
#[cfg(test)]
mod clocks;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod compare;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod crowd;
#[cfg(test)]
mod delay;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod disk_probe;
#[cfg(test)]
#[path = "../dropin/mod.rs"]
#[cfg(test)]
mod dropin;
#[cfg(test)]
mod expect;
#[cfg(test)]
mod experiments;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod files;
#[cfg(test)]
mod fleet;
#[cfg(test)]
mod foreign_text;
#[cfg(test)]
mod forged_flows;
#[cfg(test)]
mod gluster;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod host;
#[cfg(test)]
mod host_limit;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod hub;
#[cfg(test)]
mod interfaces;
#[cfg(test)]
mod iperf2;
#[cfg(test)]
mod iperf2_mode;
#[cfg(test)]
mod ipv6;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod ledger_campaign;
#[cfg(test)]
mod matrix;
#[cfg(test)]
mod mesh;
#[cfg(test)]
mod nemesis;
#[cfg(test)]
mod nodes;
#[cfg(test)]
mod observe;
#[cfg(test)]
mod output;
#[cfg(test)]
mod pictures;
#[cfg(test)]
mod precision;
#[cfg(test)]
mod prometheus;
#[cfg(test)]
mod prove;
#[cfg(test)]
mod record;
#[cfg(test)]
mod roll_out;
#[cfg(test)]
mod sampling;
#[cfg(test)]
mod server;
#[cfg(test)]
mod session_token;
#[cfg(test)]
mod star;
#[cfg(test)]
mod transfer;
#[cfg(test)]
mod transfer_cases;
#[cfg(test)]
mod tune;
#[cfg(test)]
mod verdict;
#[cfg(test)]
mod watch;
#[cfg(test)]
mod watch_campaign;
#[cfg(test)]
mod working_latency;
