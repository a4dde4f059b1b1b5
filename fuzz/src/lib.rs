//! What the fuzz targets do with an input: a module a target. `fuzz_targets/` hands them libFuzzer's inputs,
//! `tests/seeds.rs` the seeds and what [`mutate`] makes of them, with stable Rust.

pub mod agent_frame;
pub mod auth;
pub mod capture;
pub mod control_client;
pub mod control_server;
pub mod end_record;
pub mod extension;
pub mod host_facts;
pub mod interfaces;
pub mod iperf2;
pub mod iperf3_arguments;
pub mod journal;
pub mod mutate;
pub mod node_set;
pub mod parameters;
pub mod profile;
pub mod psconfig;
pub mod record;
pub mod results;
pub mod scenario;
pub mod sweep;
pub mod transcript;
pub mod transfer_frame;
pub mod udp_header;
pub mod watch_plan;

/// A target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name: of its binary in `fuzz_targets/` and of its folder in `seeds/`.
    pub name: &'static str,
    /// Feeds it one input; panics where the program is wrong.
    pub run: fn(&[u8]),
}

/// Hands the names of all targets, in their order, to a macro.
#[macro_export]
macro_rules! each_target {
    ($then:ident) => {
        $then![
            agent_frame,
            auth,
            capture,
            control_client,
            control_server,
            end_record,
            extension,
            host_facts,
            interfaces,
            iperf2,
            iperf3_arguments,
            journal,
            node_set,
            parameters,
            profile,
            psconfig,
            record,
            results,
            scenario,
            sweep,
            transcript,
            transfer_frame,
            udp_header,
            watch_plan,
        ];
    };
}

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        /// All targets, in the order of their names.
        pub const TARGETS: &[Target] = &[$(Target { name: stringify!($name), run: $name::run }),*];
    };
}

each_target!(targets);
