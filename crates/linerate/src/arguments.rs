//! The command line, and how it becomes a plan.
#![expect(clippy::doc_markdown, reason = "these comments are the help texts")]

mod plan;
mod requests;
mod values;

use crate::nodes::NodesArguments;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use linerate_engine::server::Network;
use linerate_experiment::sweep::share;
use linerate_model::plan::DEFAULT_PORT;
use linerate_model::units::{BitRate, Bytes, Nanos};

use crate::action::Action;
use crate::agent::AgentArguments;
use crate::archive::arguments::ArchiveArguments;
use crate::between::arguments::BetweenArguments;
use crate::between::reach::ReachArguments;
use crate::check::arguments::CheckArguments;
use crate::crash::arguments::CrashArguments;
use crate::disk::DiskArguments;
use crate::expect::arguments::ExpectArguments;
use crate::host::arguments::HostArguments;
use crate::host_limit::arguments::SelfArguments;
use crate::hub::arguments::HubArguments;
use crate::lab::arguments::LabArguments;
use crate::mesh::arguments::MeshArguments;
use crate::prove::arguments::ProveArguments;
use crate::report_files::ReportFiles;
use crate::sweep::arguments::SweepArguments;
use crate::transfer::TransferArguments;
use crate::tune::arguments::TuneArguments;
use crate::watch::WatchArguments;

pub(crate) use linerate_model::plan::values::{duration, seconds};
use plan::PlanArguments;
pub(crate) use requests::{Format, Runs, TestRequest};
pub(crate) use values::Budget;
pub(crate) use values::budget;
use values::{amount, amounts};

/// Measures the throughput between two hosts, says why it is not higher, and states where each number was measured.
///
/// Run `linerate serve` on one host and `linerate test HOST` on the other. `linerate iperf3 …` accepts iperf3's arguments.
#[derive(Parser, Debug)]
#[command(
    name = "linerate",
    version,
    disable_help_subcommand = true,
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// Only the options of the command that is asked for are made: all of them take half a millisecond. They are made last, so a
// doc comment on one of their types would take the place of its description here.
#[derive(Subcommand, Debug)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Measure the path to a host that runs `linerate serve`, `iperf3 -s` or (--iperf2) `iperf -s`
    #[command(args_override_self = true)]
    Test(Box<TestArguments>),
    /// Serve tests, several at once, for linerate, iperf3 and iperf 2 clients
    #[command(args_override_self = true)]
    Serve(Box<ServeArguments>),
    /// Print the report of a saved record
    Show(ShowArguments),
    /// Compare saved records: figures with intervals, settings that differ, findings
    Compare(CompareArguments),
    /// Watch TCP connections of other programs and say what limits them
    Observe(Box<ObserveArguments>),
    /// Whether this node is well: mounts, disks, links, paths, hardware; for Slurm, Nagios, NHC, Prometheus
    #[command(args_override_self = true)]
    Check(Box<CheckArguments>),
    /// What block devices do, level by level, whether one is at its limit (watch); how fast a directory's disk is (probe)
    #[command(args_override_self = true)]
    Disk(Box<DiskArguments>),
    /// Make wide-area paths on this machine, and test across them
    Lab(Box<LabArguments>),
    /// Test every host of a set against every other, and name the host, group, trunk or pair that is slow
    Mesh(Box<MeshArguments>),
    /// Run the tests of a plan regularly, keep their results, raise alerts, and serve pages of it all
    #[command(args_override_self = true)]
    Hub(Box<HubArguments>),
    /// Check, export, copy and size an archive of regular tests, and compute its figures again
    Archive(Box<ArchiveArguments>),
    /// Files that a power cut left empty: find them, and test what a power cut does to file systems
    Crash(Box<CrashArguments>),
    /// Measure the local throughput limit (client and server on this host): loopback, a veth pair, CPU per gigabyte, timers, wake-ups
    #[command(name = "self")]
    HostLimit(Box<SelfArguments>),
    /// Describe this host, audit it for a task, compare two hosts
    Host(Box<HostArguments>),
    /// Change a host's settings with automatic rollback: plan, apply, confirm, revert, persist
    Tune(Box<TuneArguments>),
    /// Test whether a change helped: alternating runs without and with the change, effect with confidence interval
    Prove(Box<ProveArguments>),
    /// Measure every combination of settings, options and paths listed in a file
    Sweep(Box<SweepArguments>),
    /// Serve a hub that this host connects to: tests and facts, within the host's own law
    Agent(Box<AgentArguments>),
    /// Restore settings when the process that changed them is gone
    #[command(hide = true)]
    SettingsGuard,
    /// This host's addresses, and which addresses of others it can connect to, as JSON
    #[command(hide = true)]
    Reach(ReachArguments),
    /// Explain the output of another tool (iperf, iperf3, ss, iostat, DRBD and more), a packet capture, or a saved record
    Explain(Box<ExplainArguments>),
    /// Predict the rate of a healthy path, with this host's settings and with tuned ones
    Expect(Box<ExpectArguments>),
    /// Sets of host names such as node[01-64,70]: expand, fold, count
    Nodes(Box<NodesArguments>),
    /// Regular tests between many hosts: what a plan of them costs
    Watch(Box<WatchArguments>),
    /// Accept iperf 2's arguments and print iperf 2's output
    Iperf {
        /// iperf 2's arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Accept iperf3's arguments and print iperf3's output
    Iperf3 {
        /// iperf3's arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

// `linerate test`.
#[derive(Args, Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a switch of the command line each"
)]
pub(crate) struct TestArguments {
    /// The host: a name or an address. ssh://[USER@]HOST[:PORT] starts the server there as well
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    pub(crate) host: Option<String>,
    #[command(flatten)]
    pub(crate) between: BetweenArguments,
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// User name, if the server requires one; the password comes from LINERATE_PASSWORD or IPERF3_PASSWORD
    #[arg(
        long,
        value_name = "NAME",
        requires = "public_key",
        conflicts_with = "from"
    )]
    pub(crate) username: Option<String>,
    /// The server's public key (PEM)
    #[arg(long = "rsa-public-key-path", value_name = "FILE")]
    pub(crate) public_key: Option<PathBuf>,
    /// The server is an iperf 2 (2.0.5 or newer), on port 5001 unless -p says another; -R is its --reverse, --bidir its --full-duplex
    #[arg(long, conflicts_with_all = ["username", "from", "counter_test", "diagnose", "rfc6349"])]
    pub(crate) iperf2: bool,
    /// Use the credential padding of iperf3 servers before 3.17
    #[arg(long)]
    pub(crate) use_pkcs1_padding: bool,
    #[command(flatten)]
    pub(crate) transfer: TransferArguments,
    /// After the test, run more tests that confirm or refute the verdict: another window, -P 4, pacing …
    #[arg(long)]
    pub(crate) counter_test: bool,
    /// After the test, run the tests that best separate the likeliest causes, until one has 95 %
    #[arg(long, conflicts_with_all = ["counter_test", "udp", "bidir"])]
    pub(crate) diagnose: bool,
    /// Let --diagnose take no more than this: a time (90s) or an amount of data (2G) [default: 60s]
    #[arg(long, value_name = "LIMIT", requires = "diagnose", value_parser = values::budget)]
    pub(crate) budget: Option<Budget>,
    /// Instead of one test, the steps of RFC 6349: path MTU, base RTT, bottleneck, a sweep of windows
    #[arg(long, conflicts_with_all = ["counter_test", "diagnose", "output", "udp", "bytes", "blocks", "window", "parallel", "bitrate", "bidir", "json_stream", "precision", "expect", "provisioned"])]
    pub(crate) rfc6349: bool,
    /// Save the record to this file
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) files: ReportFiles,
    /// The whole report: hosts, where the rate went, every note, the ledger
    #[arg(short = 'v', long, conflicts_with_all = ["json", "json_stream", "rfc6349"])]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) format: FormatArguments,
    /// Print events as JSON and no report: another linerate makes it of the record
    #[arg(long, hide = true)]
    pub(crate) report_elsewhere: bool,
}

#[derive(Args, Debug, Clone, Copy)]
pub(crate) struct FormatArguments {
    /// One JSON document
    #[arg(long, alias = "json-document", conflicts_with = "json_stream")]
    json: bool,
    /// One JSON object per line, live
    #[arg(long)]
    json_stream: bool,
}

// `linerate serve`.
#[derive(Args, Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a switch of the command line each"
)]
pub(crate) struct ServeArguments {
    /// The port
    #[arg(short = 'p', long, default_value_t = DEFAULT_PORT)]
    pub(crate) port: u16,
    /// Where iperf 2's clients are answered, TCP and UDP, beside the server's own port; 0 = they are not answered at all
    /// [default: 5001; with another -p than 5201, on that port alone]
    #[arg(long, value_name = "PORT")]
    pub(crate) iperf2_port: Option<u16>,
    /// Listen on this address only
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,
    /// Listen on this interface only
    #[arg(long, value_name = "NAME")]
    pub(crate) bind_dev: Option<String>,
    /// IPv4 only
    #[arg(short = '4', conflicts_with = "v6")]
    pub(crate) v4: bool,
    /// IPv6 only
    #[arg(short = '6')]
    pub(crate) v6: bool,
    /// End after one test
    #[arg(short = '1', long)]
    pub(crate) one_off: bool,
    /// End when no test has begun for this long, counted from the start or from the end of the last test [default: never]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) wait: Option<Nanos>,
    /// Maximum number of simultaneous tests
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = positive)]
    pub(crate) max_clients: usize,
    /// Maximum number of simultaneous tests from one address (IPv6: from one /64)
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = positive)]
    pub(crate) max_clients_per_address: usize,
    /// Maximum streams of one test, both directions together
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) max_streams: u16,
    /// Maximum streams of all tests together, one thread each. One address may use half of them, or --max-streams if that is more
    /// [default: 256 per CPU, at least 512, at most 4096 and a fifth of the file-descriptor limit]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) max_total_streams: Option<usize>,
    /// Memory limit of all tests together (K, M, G of 1024); sampling becomes coarser before tests are refused [default: the
    /// smaller of 1/8 of the host's memory and 1/2 of the control group's limit, but at least 64M and at most 1G]
    #[arg(long, value_name = "BYTES", value_parser = server_memory)]
    pub(crate) max_memory: Option<Bytes>,
    /// Maximum samples per second of all streams together; with more streams each is sampled less often [default: 10000 for each CPU,
    /// at least 20000]
    #[arg(long, value_name = "N")]
    pub(crate) max_sample_rate: Option<u64>,
    /// Maximum test duration, without the omitted part; also ends unlimited tests [default: 1h, and 24h for a transfer of files]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) max_duration: Option<Nanos>,
    /// Maximum rate of a test, all streams together, averaged over 5 s
    #[arg(long, value_name = "RATE")]
    pub(crate) max_rate: Option<BitRate>,
    /// End a test that transfers less than 4 KiB per stream, or less than half of its requested rate, in this time (a transfer of
    /// files: in 120 s at least)
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub(crate) idle_timeout: Nanos,
    /// Networks that may test, such as 192.0.2.0/24; may be repeated [default: all]
    #[arg(long, value_name = "NETWORK")]
    pub(crate) allow: Vec<Network>,
    /// Take files of transfers (test --source --target) into this folder and those below it; may be repeated [default: none]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) allow_target: Vec<PathBuf>,
    /// On SIGTERM, give running tests this time to finish
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub(crate) grace: Nanos,
    /// Private key (PEM); with it and the users file, clients must authenticate
    #[arg(long = "rsa-private-key-path", value_name = "FILE", requires = "users")]
    pub(crate) private_key: Option<PathBuf>,
    /// One user per line: NAME,HASH. HASH is the SHA-256 of the name in braces and the password, as for iperf3
    #[arg(
        long = "authorized-users-path",
        value_name = "FILE",
        requires = "private_key"
    )]
    pub(crate) users: Option<PathBuf>,
    /// Expect credentials padded as by iperf3 before 3.17
    #[arg(long)]
    pub(crate) use_pkcs1_padding: bool,
    /// Maximum clock difference of a client, seconds [default: 10]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) time_skew_threshold: Option<u64>,
    /// Read no faster than this, all TCP streams of a test together: a slow application, for a lab
    #[arg(long, value_name = "RATE", hide = true)]
    pub(crate) read_rate: Option<BitRate>,
    /// Save a record of each test to this folder
    #[arg(short = 'o', long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// One JSON object per line, live
    #[arg(long)]
    pub(crate) json_stream: bool,
    /// Say where it listens and what it refuses, and nothing of its tests: their clients do
    #[arg(long, hide = true)]
    pub(crate) report_elsewhere: bool,
}

// `linerate show`.
#[derive(Args, Debug, Clone)]
pub(crate) struct ShowArguments {
    /// The record's file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) files: ReportFiles,
    /// The whole report: hosts, where the rate went, every note, the ledger
    #[arg(short = 'v', long, conflicts_with = "json")]
    pub(crate) full: bool,
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

// `linerate compare`.
#[derive(Args, Debug, Clone)]
pub(crate) struct CompareArguments {
    /// Records, or folders of them: a folder's records are several runs of one kind. The others are
    /// compared with the first. With --by one folder is enough
    #[arg(required = true, num_args = 1.., value_name = "RECORD")]
    pub(crate) paths: Vec<PathBuf>,
    /// Put all records into groups by the value of this fact and compare the groups: kernel, driver, firmware, qdisc,
    /// link-speed, sysctl.net.ipv4.tcp_rmem, plan.streams and every other name that a fingerprint or a comparison lists;
    /// client. or server. before it selects an end
    #[arg(long, value_name = "KEY", conflicts_with = "html")]
    pub(crate) by: Option<String>,
    /// With --by: the smallest effect of interest; a smaller one counts as none
    #[arg(long = "min-effect", value_name = "PERCENT", default_value = "5%", value_parser = share, requires = "by")]
    pub(crate) least: f64,
    /// Write the comparison as one HTML file, the charts side by side on the same axes
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

// `linerate observe`.
#[derive(Args, Debug, Clone)]
pub(crate) struct ObserveArguments {
    /// Connections with this port at either end; may be repeated
    #[arg(short = 'p', long, value_name = "PORT", action = clap::ArgAction::Append)]
    pub(crate) port: Vec<u16>,
    /// Connections of this process and its descendants
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Connections to this peer: a name, an address or a network such as 192.0.2.0/24; may be repeated
    #[arg(long, value_name = "HOST", action = clap::ArgAction::Append)]
    pub(crate) to: Vec<String>,
    /// Connections accepted by this host's listening ports
    #[arg(long)]
    pub(crate) listen: bool,
    /// Seconds to watch [default: until Ctrl-C]
    #[arg(short = 't', long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) time: Option<Nanos>,
    /// Sampling interval, 1ms to 10s
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10ms")]
    pub(crate) interval: Nanos,
    /// Interval of progress lines
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub(crate) progress: Nanos,
    /// Save the record to this file
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArguments,
}

// `linerate explain`.
#[derive(Args, Debug, Clone)]
pub(crate) struct ExplainArguments {
    /// Pasted output or captures; without a file, or with `-`, standard input is read. Several files are compared
    pub(crate) files: Vec<PathBuf>,
    /// Round-trip time of the path
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) rtt: Option<Nanos>,
    /// Rate of the slowest link, bit/s (K, M, G of 1000)
    #[arg(long, value_name = "RATE")]
    pub(crate) link: Option<BitRate>,
    /// Socket buffer size used in the test (K, M, G of 1024)
    #[arg(long, value_name = "BYTES")]
    pub(crate) buffer: Option<Bytes>,
    /// Bytes that the kernel counted for the transfer, such as 65284.93754MiB
    #[arg(long, value_name = "BYTES", value_parser = amount)]
    pub(crate) kernel_bytes: Option<Bytes>,
    /// Requested rate of each stream, bit/s, if the output has no command line
    #[arg(long, value_name = "RATE")]
    pub(crate) asked: Option<BitRate>,
    /// Amount requested for each row of a table, such as 1536M:5632M:512M
    #[arg(long, value_name = "FIRST:LAST:STEP", value_parser = amounts)]
    pub(crate) asked_amounts: Option<[Bytes; 3]>,
    /// Mean queue depth of the disk, as iostat prints it
    #[arg(long, value_name = "N")]
    pub(crate) queue_depth: Option<f64>,
    /// Files that all hosts together wrote per second before a power cut
    #[arg(long, value_name = "N")]
    pub(crate) files_per_second: Option<f64>,
    /// Files that are said to be lost in the power cut
    #[arg(long, value_name = "N")]
    pub(crate) files_lost: Option<f64>,
    /// What changed between the files, such as 'sysctls'
    #[arg(long, value_name = "WHAT")]
    pub(crate) changed: Option<String>,
    /// A JSON document for each saved record, and one for all other inputs
    #[arg(long)]
    pub(crate) json: bool,
}

/// Understands the arguments, or says what is wrong with them.
pub(crate) fn parse(arguments: Vec<OsString>) -> Action {
    match Cli::try_parse_from(arguments) {
        Ok(cli) => Action::Run(cli.command),
        Err(error) if error.use_stderr() => Action::Refuse(without_prefix(&error.to_string())),
        Err(error) => Action::Print(error.to_string()),
    }
}

/// The definition of the command line, and what these arguments say by it.
///
/// # Errors
/// What clap says of arguments that it does not understand.
pub(crate) fn matches(
    arguments: Vec<OsString>,
) -> Result<(clap::Command, clap::ArgMatches), clap::Error> {
    let mut command = <Cli as clap::CommandFactory>::command();
    command.build();
    let matches = command.try_get_matches_from_mut(arguments)?;
    Ok((command, matches))
}

/// A number of at least one.
fn positive(text: &str) -> Result<usize, String> {
    let number = text
        .parse()
        .map_err(|_| "expected a whole number".to_owned())?;
    if number == 0 {
        return Err("no test could run then; 1 and more are possible".to_owned());
    }
    Ok(number)
}

/// Memory with which a server can run some tests.
fn server_memory(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if bytes.count() < 64 << 20 {
        return Err(format!(
            "{bytes} are too few for a few tests; 64M and more are possible"
        ));
    }
    Ok(bytes)
}

/// clap begins its messages with `error: `, and so does our printer.
fn without_prefix(text: &str) -> String {
    text.strip_prefix("error: ")
        .unwrap_or(text)
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod reference;

#[cfg(test)]
mod tests {
    use linerate_model::plan::{DEFAULT_UDP_RATE, Direction, End, Plan};

    use super::*;
    use clap::CommandFactory as _;

    fn plan(line: &str) -> Result<Plan, String> {
        let words = format!("linerate test {line}");
        match parse(words.split_whitespace().map(OsString::from).collect()) {
            Action::Run(Command::Test(arguments)) => Ok(arguments.request()?.plan),
            Action::Refuse(text) => Err(text),
            _ => panic!("another action"),
        }
    }

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn iperf3s_letters_mean_the_same() {
        let plan =
            plan("h -p 99 -t 2.5 -b 1G -l 64K -w 32M -P 3 -R -M 1400 -N -C cubic --dscp ef -A 0,1")
                .unwrap();
        assert_eq!(plan.end, End::TimeNs(Nanos::from_millis(2500)));
        assert_eq!(plan.rate_bps, Some(BitRate(1_000_000_000)));
        assert_eq!(plan.window_bytes, Some(Bytes(32 << 20)));
        assert_eq!(
            (plan.tos, plan.client_cpu, plan.server_cpu),
            (184, Some(0), Some(1))
        );
        assert_eq!(plan.direction, Direction::Receive);
    }

    #[test]
    fn udp_without_a_rate_says_that_the_rate_is_a_default() {
        let default = plan("h -u").unwrap();
        assert_eq!(
            (default.rate_bps, default.rate_is_default),
            (Some(DEFAULT_UDP_RATE), true)
        );
        assert_eq!(plan("h -u -b 0").unwrap().rate_bps, None);
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (line, names) in [
            ("h -P 0", "-P"),
            ("h -t 5 -n 5M", "--bytes"),
            ("h -n 1X", "1X"),
            ("h -b 10Q", "10Q"),
            ("h -R --bidir", "--bidir"),
            ("h -u -C cubic", "-C"),
            ("h -t 0", "-t"),
            ("h -4 -6", "--version6"),
            ("h --sample 1us", "--sample"),
            ("h -M 10", "-M"),
            ("h --pace spin", "--pace"),
            ("h -u -b 0 --pace spin", "--pace"),
            ("h -u --pace hop", "--pace"),
            ("h --precision 2", "--precision"),
            ("h --precision 0%", "--precision"),
            ("h --precision=-1%", "--precision"),
            ("h --precision 2% -t 5", "--precision"),
            ("h --precision 2% -n 5M", "--precision"),
            ("h --precision 99%", "--precision"),
            ("h --expect 9G", "--expect"),
            ("h --expect >=90%", "--provisioned"),
            ("h --expect 10G..9G", "--expect"),
            ("h --provisioned 0", "--provisioned"),
            ("h --provisioned x", "--provisioned"),
        ] {
            let text = plan(line).unwrap_err();
            assert!(text.contains(names), "{line}: {text}");
        }
    }

    #[test]
    fn a_precision_has_its_own_longest_time() {
        let default = plan("h --precision 2%").unwrap();
        assert_eq!(default.end, End::TimeNs(Nanos::from_millis(120_000)));
        assert_eq!(default.precision, Some(0.02));
        let bound = plan("h --precision 0.5% -t 30").unwrap();
        assert_eq!(bound.end, End::TimeNs(Nanos::from_millis(30_000)));
    }

    #[test]
    fn what_is_wanted_and_what_was_bought_stand_in_the_plan() {
        let plan = plan("h --expect >=90% --provisioned 5G").unwrap();
        assert_eq!(plan.expect.unwrap().to_string(), ">= 90%");
        assert_eq!(plan.provisioned_bps, Some(BitRate(5_000_000_000)));
    }
}
