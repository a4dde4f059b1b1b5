//! Every option of `linerate test` that is kept in a plan, defined once: its names, its help, how its value is
//! read into a plan, and how a plan's command says it again.
//!
//! The command line is made from it, so are the commands that findings suggest; scenarios and iperf3's command
//! line use it for what they have in common with it. An option that says where a record is kept or how a report
//! looks is not here.

use super::values::{affinity, dscp, duration, pace, precision, seconds, tos};
use super::{
    DEFAULT_PORT, DEFAULT_SCTP_BLOCK, DEFAULT_TCP_BLOCK, DEFAULT_UDP_BLOCK, DEFAULT_UDP_RATE,
    Direction, End, Family, Pace, Plan, PlanError, Protocol,
};
use crate::plain_text::PlainText;
use crate::precision::DEFAULT_MOST;
use crate::units::{BitRate, Bytes, Nanos};

/// An option of `linerate test`: clap's definition, suggested commands and scenarios all come from it.
#[derive(Debug, Clone, Copy)]
pub struct PlanOption {
    /// Its letter: `-P`; empty where it has none.
    pub short: &'static str,
    /// Its name: `--parallel`.
    pub long: &'static str,
    /// Another name; empty where it has none.
    pub alias: &'static str,
    /// What it does, for the help.
    pub help: &'static str,
    /// The value that it has where it is not given, for the help.
    pub default: Option<&'static str>,
    /// Options, by their long names, that cannot be given beside it.
    pub conflicts: &'static [&'static str],
    /// How it is read and said.
    pub form: Form,
}

/// Whether an option has a value.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// It has none.
    Switch {
        /// Writes the switch into a plan.
        set: fn(&mut Plan),
        /// Whether a plan's command says it.
        said: fn(&Plan) -> bool,
    },
    /// It has one.
    Value {
        /// The value's name in the help.
        name: &'static str,
        /// Reads it into a plan, or says what is expected instead.
        read: fn(&mut Plan, &str) -> Result<(), String>,
        /// The value as a plan's command says it, fit for a shell; `None` where it is the default, or where the
        /// test is the same without it.
        said: fn(&Plan) -> Option<String>,
    },
}

impl PlanOption {
    /// The name to write: the letter where it has one.
    pub const fn name(&self) -> &'static str {
        if self.short.is_empty() {
            self.long
        } else {
            self.short
        }
    }

    /// Whether it is written so: `-P`, `--parallel`.
    pub fn is(&self, name: &str) -> bool {
        !name.is_empty() && [self.short, self.long, self.alias].contains(&name)
    }

    /// Whether a value follows it.
    pub const fn has_value(&self) -> bool {
        matches!(self.form, Form::Value { .. })
    }

    /// Reads it into a plan. A switch has no text.
    ///
    /// # Errors
    /// What is expected instead.
    pub fn read(&self, plan: &mut Plan, text: &str) -> Result<(), String> {
        match self.form {
            Form::Switch { set, .. } => {
                set(plan);
                Ok(())
            }
            Form::Value { read, .. } => read(plan, text),
        }
    }

    /// As the plan's command says it.
    fn said(&self, plan: &Plan) -> Option<String> {
        match self.form {
            Form::Switch { said, .. } => said(plan).then(|| self.name().to_owned()),
            Form::Value { said, .. } => said(plan).map(|value| format!("{} {value}", self.name())),
        }
    }

    const fn switch(
        short: &'static str,
        long: &'static str,
        help: &'static str,
        set: fn(&mut Plan),
        said: fn(&Plan) -> bool,
    ) -> Self {
        Self {
            short,
            long,
            alias: "",
            help,
            default: None,
            conflicts: &[],
            form: Form::Switch { set, said },
        }
    }

    const fn value(
        short: &'static str,
        long: &'static str,
        name: &'static str,
        help: &'static str,
        read: fn(&mut Plan, &str) -> Result<(), String>,
        said: fn(&Plan) -> Option<String>,
    ) -> Self {
        Self {
            short,
            long,
            alias: "",
            help,
            default: None,
            conflicts: &[],
            form: Form::Value { name, read, said },
        }
    }

    const fn unless(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }

    const fn not_with(mut self, options: &'static [&'static str]) -> Self {
        self.conflicts = options;
        self
    }

    const fn also(mut self, alias: &'static str) -> Self {
        self.alias = alias;
        self
    }
}

/// The option that is written so: `-P` or `--parallel`.
pub fn named(name: &str) -> Option<&'static PlanOption> {
    OPTIONS.iter().find(|option| option.is(name))
}

/// A test of `host` with these options and the texts of their values; what depends on several options is settled
/// then, and the whole is checked.
///
/// # Errors
/// The option at fault, and what is wrong with it.
pub fn plan<'a>(
    host: impl Into<PlainText>,
    given: impl IntoIterator<Item = (&'static PlanOption, &'a str)>,
) -> Result<Plan, PlanError> {
    let mut plan = Plan::new(host);
    let mut names = Vec::new();
    for (option, text) in given {
        option.read(&mut plan, text).map_err(|reason| PlanError {
            option: option.name(),
            reason,
        })?;
        names.push(option.long);
    }
    let is_given = |name: &str| names.contains(&name);
    let udp = plan.protocol == Protocol::Udp;
    if !is_given("--length") {
        plan.block_bytes = default_block(plan.protocol);
    }
    if udp && !is_given("--bitrate") {
        plan.rate_is_default = true;
        plan.rate_bps = Some(DEFAULT_UDP_RATE);
    }
    if plan.precision.is_some() && !["--time", "--bytes", "--blocks"].into_iter().any(is_given) {
        plan.end = End::TimeNs(DEFAULT_MOST);
    }
    if udp && plan.pace == Pace::Spin && plan.rate_bps.is_none() {
        return Err(PlanError {
            option: "--pace",
            reason: "without a rate nothing is paced: give one with -b".to_owned(),
        });
    }
    plan.check()?;
    Ok(plan)
}

/// The options with which `linerate test` runs the plan again, a word or two each; what is a default stays out.
pub fn said(plan: &Plan) -> impl Iterator<Item = String> + '_ {
    OPTIONS.iter().filter_map(|option| option.said(plan))
}

/// A word that a shell takes as it is; records may come from strangers.
pub fn plain(text: &str) -> Option<&str> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '_' | '-' | '%');
    (!text.is_empty() && !text.starts_with('-') && text.chars().all(fine)).then_some(text)
}

const fn default_block(protocol: Protocol) -> Bytes {
    match protocol {
        Protocol::Tcp => DEFAULT_TCP_BLOCK,
        Protocol::Udp => DEFAULT_UDP_BLOCK,
        Protocol::Sctp => DEFAULT_SCTP_BLOCK,
    }
}

fn number<T: std::str::FromStr>(text: &str, expected: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected {expected}"))
}

/// A size or a rate.
fn amount<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Seconds as they are typed.
fn in_seconds(span: Nanos) -> String {
    span.as_secs_f64().to_string()
}

/// Every option, in the order of the help and of suggested commands.
pub const OPTIONS: &[PlanOption] = &[
    PlanOption::value(
        "-p",
        "--port",
        "PORT",
        "The server's port",
        |plan, text| number(text, "a port, 1 to 65535").map(|value| plan.port = value),
        |plan| (plan.port != DEFAULT_PORT).then(|| plan.port.to_string()),
    )
    .unless("5201"),
    PlanOption::switch(
        "-4",
        "--version4",
        "IPv4 only",
        |plan| plan.family = Family::V4,
        |plan| plan.family == Family::V4,
    )
    .not_with(&["--version6"]),
    PlanOption::switch(
        "-6",
        "--version6",
        "IPv6 only",
        |plan| plan.family = Family::V6,
        |plan| plan.family == Family::V6,
    ),
    PlanOption::value(
        "-B",
        "--bind",
        "HOST",
        "Local address or name",
        |plan, text| {
            plan.bind = Some(text.into());
            Ok(())
        },
        |plan| plan.bind.as_deref().and_then(plain).map(str::to_owned),
    ),
    PlanOption::value(
        "",
        "--bind-dev",
        "NAME",
        "Local interface (SO_BINDTODEVICE)",
        |plan, text| {
            plan.bind_device = Some(text.into());
            Ok(())
        },
        |plan| plan.bind_device.as_deref().and_then(plain).map(str::to_owned),
    ),
    PlanOption::value(
        "",
        "--cport",
        "PORT",
        "First local port of the data streams",
        |plan, text| number(text, "a port, 1 to 65535").map(|value| plan.client_port = Some(value)),
        |plan| plan.client_port.map(|port| port.to_string()),
    ),
    PlanOption::switch(
        "-u",
        "--udp",
        "UDP instead of TCP",
        |plan| plan.protocol = Protocol::Udp,
        |plan| plan.protocol == Protocol::Udp,
    ),
    PlanOption::switch(
        "-R",
        "--reverse",
        "The server sends, the client receives",
        |plan| plan.direction = Direction::Receive,
        |plan| plan.direction == Direction::Receive,
    )
    .not_with(&["--bidir"]),
    PlanOption::switch(
        "",
        "--bidir",
        "Both directions at once",
        |plan| plan.direction = Direction::Both,
        |plan| plan.direction == Direction::Both,
    ),
    PlanOption::value(
        "-P",
        "--parallel",
        "PARALLEL",
        "Streams in each direction, 1 to 128",
        |plan, text| number(text, "a number of streams, 1 to 128").map(|value| plan.streams = value),
        |plan| (plan.streams > 1).then(|| plan.streams.to_string()),
    )
    .unless("1"),
    PlanOption::value(
        "-b",
        "--bitrate",
        "RATE",
        "Rate of each stream in bit/s (K, M, G of 1000; 0 = unlimited) [default: unlimited, UDP: 1M]",
        |plan, text| amount(text).map(|value| plan.rate_bps = Some(value).filter(|rate| *rate != BitRate(0))),
        |plan| match plan.rate_bps {
            Some(_) if plan.rate_is_default => None,
            None if plan.protocol == Protocol::Udp => Some("0".to_owned()),
            rate => rate.map(BitRate::as_option),
        },
    )
    .also("--bandwidth"),
    PlanOption::value(
        "",
        "--pace",
        "HOW",
        "How the UDP sender waits between datagrams: sleep, or spin (poll the clock; one core per stream). A sending server spins only if at least one of its CPUs stays free",
        |plan, text| pace(text).map(|value| plan.pace = value),
        // Where a rate is left out for the next run, nothing is paced.
        |plan| (plan.pace == Pace::Spin && plan.rate_bps.is_some()).then(|| "spin".to_owned()),
    )
    .unless("sleep"),
    PlanOption::value(
        "",
        "--fq-rate",
        "RATE",
        "Pacing rate of each stream in the kernel, bit/s",
        |plan, text| amount(text).map(|value| plan.kernel_pacing_bps = Some(value).filter(|rate| *rate != BitRate(0))),
        |plan| plan.kernel_pacing_bps.map(BitRate::as_option),
    ),
    PlanOption::value(
        "-w",
        "--window",
        "BYTES",
        "Socket buffers of both ends (K, M, G of 1024). Switches autotuning off",
        |plan, text| amount(text).map(|value| plan.window_bytes = Some(value).filter(|window| *window != Bytes(0))),
        |plan| plan.window_bytes.map(Bytes::as_option),
    ),
    PlanOption::value(
        "-l",
        "--length",
        "BYTES",
        "Block size, or datagram payload, bytes [default: TCP 128K, UDP 1460]",
        |plan, text| amount(text).map(|value| plan.block_bytes = value),
        |plan| {
            let own = plan.block_bytes != default_block(plan.protocol);
            own.then(|| plan.block_bytes.as_option())
        },
    ),
    PlanOption::value(
        "-M",
        "--set-mss",
        "BYTES",
        "Maximum segment size, bytes",
        |plan, text| number(text, "a segment size, 88 to 32767 bytes").map(|value| plan.mss_bytes = Some(value)),
        |plan| plan.mss_bytes.map(|mss| mss.to_string()),
    ),
    PlanOption::switch(
        "-N",
        "--no-delay",
        "Send small segments at once (TCP_NODELAY)",
        |plan| plan.nodelay = true,
        |plan| plan.nodelay,
    ),
    PlanOption::value(
        "-C",
        "--congestion",
        "NAME",
        "Congestion control of the sender: cubic, bbr …",
        |plan, text| {
            plan.congestion = Some(text.into());
            Ok(())
        },
        |plan| {
            let name = plan.congestion.as_deref()?;
            Some(plain(name).unwrap_or("ALGORITHM").to_owned())
        },
    )
    .also("--linux-congestion"),
    PlanOption::switch(
        "",
        "--mptcp",
        "Multipath TCP",
        |plan| plan.mptcp = true,
        |plan| plan.mptcp,
    ),
    PlanOption::switch(
        "-Z",
        "--zerocopy",
        "Send without copying (MSG_ZEROCOPY) where the kernel can",
        |plan| plan.zerocopy = true,
        |plan| plan.zerocopy,
    ),
    PlanOption::switch(
        "",
        "--skip-rx-copy",
        "The receiver lets the kernel discard the payload",
        |plan| plan.skip_receive_copy = true,
        |plan| plan.skip_receive_copy,
    ),
    PlanOption::switch(
        "",
        "--dont-fragment",
        "Set the Don't Fragment bit (UDP over IPv4)",
        |plan| plan.dont_fragment = true,
        |plan| plan.dont_fragment,
    ),
    PlanOption::value(
        "-S",
        "--tos",
        "TOS",
        "IP type of service, 0 to 255 (decimal, hexadecimal 0x…, octal 0…)",
        |plan, text| tos(text).map(|value| plan.tos = value),
        |plan| (plan.tos > 0).then(|| plan.tos.to_string()),
    )
    .not_with(&["--dscp"]),
    PlanOption::value(
        "",
        "--dscp",
        "DSCP",
        "DSCP: 0 to 63, or a name such as ef, cs1, af11",
        |plan, text| dscp(text).map(|value| plan.tos = value << 2),
        // `-S` says it.
        |_| None,
    ),
    PlanOption::value(
        "-L",
        "--flowlabel",
        "LABEL",
        "IPv6 flow label, 1 to 1048575",
        |plan, text| number(text, "a flow label, 1 to 1048575").map(|value| plan.flow_label = Some(value)),
        |plan| plan.flow_label.map(|label| label.to_string()),
    ),
    PlanOption::value(
        "-A",
        "--affinity",
        "N[,M]",
        "CPU for the client's streams; with N,M, M is the CPU for the server's",
        |plan, text| {
            let (client, server) = affinity(text)?;
            (plan.client_cpu, plan.server_cpu) = (Some(client), server);
            Ok(())
        },
        |plan| match (plan.client_cpu?, plan.server_cpu) {
            (client, Some(server)) => Some(format!("{client},{server}")),
            (client, None) => Some(client.to_string()),
        },
    ),
    PlanOption::value(
        "-t",
        "--time",
        "SECONDS",
        "Seconds to measure, after the omitted part [default: 10]",
        |plan, text| seconds(text).map(|span| plan.end = End::TimeNs(span)),
        |plan| {
            let default = match plan.precision {
                Some(_) => DEFAULT_MOST,
                None => Plan::DEFAULT_TIME,
            };
            match plan.end {
                End::TimeNs(span) if span != default => Some(in_seconds(span)),
                _ => None,
            }
        },
    )
    .not_with(&["--bytes", "--blocks"]),
    PlanOption::value(
        "-n",
        "--bytes",
        "BYTES",
        "Move exactly this many bytes in each direction (K, M, G of 1024)",
        |plan, text| amount(text).map(|bytes| plan.end = End::Bytes(bytes)),
        |plan| match plan.end {
            End::Bytes(bytes) => Some(bytes.as_option()),
            _ => None,
        },
    )
    .not_with(&["--blocks"]),
    PlanOption::value(
        "-k",
        "--blocks",
        "BLOCKS",
        "Move exactly this many blocks of -l bytes in each direction (K, M, G of 1024)",
        |plan, text| {
            plan.end = End::Blocks(amount::<Bytes>(text)?.count());
            Ok(())
        },
        |plan| match plan.end {
            End::Blocks(blocks) => Some(blocks.to_string()),
            _ => None,
        },
    ),
    PlanOption::value(
        "-O",
        "--omit",
        "SECONDS",
        "Discard the first N seconds (whole seconds). Plateau detection does not need it",
        |plan, text| {
            let seconds: u16 = number(text, "a number of whole seconds")?;
            plan.omit_ns = Nanos::from_millis(u64::from(seconds) * 1000);
            Ok(())
        },
        |plan| (plan.omit_ns > Nanos::ZERO).then(|| in_seconds(plan.omit_ns)),
    )
    .unless("0"),
    PlanOption::value(
        "",
        "--precision",
        "PERCENT",
        "Run until the 95 % interval of the plateau's goodput is within ± this percentage, such as 2%. Runs for 7.5 s to -t [default of -t here: 120 s]",
        |plan, text| precision(text).map(|value| plan.precision = Some(value)),
        // Hundredths of a percent, as typed: 0.07 × 100 is not 7.
        |plan| Some(format!("{}%", (plan.precision? * 1e4).round() / 100.0)),
    ),
    PlanOption::switch(
        "",
        "--latency",
        "Measure the working latency: round trips of small messages and new connections to the server, idle for 1 s before the load, under it and for 1 s after it. Needs linerate at both ends",
        |plan| plan.latency = true,
        |plan| plan.latency,
    ),
    PlanOption::value(
        "",
        "--provisioned",
        "RATE",
        "Contracted rate: the report says whether the path delivers less, as much, or more",
        |plan, text| amount(text).map(|value| plan.provisioned_bps = Some(value)),
        |plan| plan.provisioned_bps.map(BitRate::as_option),
    ),
    PlanOption::value(
        "",
        "--expect",
        "RATE",
        "Required goodput: '>= 9G', '> 900M', '9G..10G', or '>= 90%' of --provisioned. Result PASS, FAIL (exit code 7) or INCONCLUSIVE (8) by the 95 % interval",
        |plan, text| amount(text).map(|value| plan.expect = Some(value)),
        |plan| plan.expect.map(|wanted| format!("'{wanted}'")),
    ),
    PlanOption::value(
        "-i",
        "--interval",
        "SECONDS",
        "Seconds between two lines of progress",
        |plan, text| seconds(text).map(|value| plan.interval_ns = value),
        |_| None,
    )
    .unless("1"),
    PlanOption::value(
        "",
        "--sample",
        "TIME",
        "Sampling interval of a stream, 1ms to 1s",
        |plan, text| duration(text).map(|value| plan.sample_ns = value),
        |_| None,
    )
    .unless("10ms"),
    PlanOption::value(
        "",
        "--connect-timeout",
        "TIME",
        "Connection timeout",
        |plan, text| duration(text).map(|value| plan.connect_timeout_ns = value),
        |_| None,
    )
    .unless("10s"),
    PlanOption::value(
        "",
        "--idle-timeout",
        "TIME",
        "With -n or -k: end the test, keeping its results, if less than 1 KiB, or less than half of what -b requests, was transferred in this time",
        |plan, text| duration(text).map(|value| plan.idle_timeout_ns = value),
        |_| None,
    )
    .unless("60s"),
    PlanOption::value(
        "-T",
        "--title",
        "TITLE",
        "A title for the record",
        |plan, text| {
            plan.title = Some(text.into());
            Ok(())
        },
        |_| None,
    ),
    PlanOption::value(
        "",
        "--extra-data",
        "TEXT",
        "Text that both ends keep in their records: a ticket, a task's id",
        |plan, text| {
            plan.extra_data = Some(text.into());
            Ok(())
        },
        |_| None,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan from words of which each second one is a value, unless the option is a switch.
    fn read(line: &str) -> Result<Plan, PlanError> {
        let mut words = line.split_whitespace();
        let mut given = Vec::new();
        while let Some(word) = words.next() {
            let option = named(word).unwrap_or_else(|| panic!("no option {word}"));
            let value = option.has_value().then(|| words.next().unwrap());
            given.push((option, value.unwrap_or_default()));
        }
        plan("server", given)
    }

    #[test]
    fn what_is_said_is_read_again_as_the_same_plan() {
        for line in [
            "",
            "-p 5202 -R -P 4 -b 100M -w 32M -t 30",
            "-4 -B 192.0.2.1 --bind-dev eth0 --cport 6000 -M 1400 -N -C cubic -n 5M",
            "-6 -u -b 0 -l 1200 --dont-fragment -S 184 -L 7 -A 2,3 -k 1000",
            "-u --bidir -b 1G --pace spin -O 2",
            "--precision 2% -t 10",
            "--latency -R",
            "--fq-rate 50M --mptcp -Z --skip-rx-copy --precision 0.07% --provisioned 1G -A 1",
        ] {
            let plan = read(line).unwrap();
            let again: Vec<String> = said(&plan).collect();
            assert_eq!(read(&again.join(" ")).unwrap(), plan, "{line}: {again:?}");
            for word in line.split_whitespace() {
                assert!(again.join(" ").contains(word), "{word}: {again:?}");
            }
        }
    }

    #[test]
    fn a_default_is_what_a_plan_has() {
        for option in OPTIONS {
            let mut plan = Plan::new("h");
            if let Some(default) = option.default {
                option.read(&mut plan, default).unwrap();
            }
            assert_eq!(plan, Plan::new("h"), "{}", option.long);
        }
    }

    #[test]
    fn names_are_unique_and_found() {
        for option in OPTIONS {
            for name in [option.short, option.long, option.alias] {
                let found = named(name).map(|found| found.long);
                let expected = (!name.is_empty()).then_some(option.long);
                assert_eq!(found, expected, "{name}");
            }
            for other in option.conflicts {
                assert!(named(other).is_some(), "{other}");
            }
        }
        assert!(named("-").is_none() && named("-x").is_none() && named("port").is_none());
    }

    #[test]
    fn what_depends_on_several_options_is_settled() {
        let plan = read("-u").unwrap();
        assert_eq!(
            (plan.rate_bps, plan.rate_is_default, plan.block_bytes),
            (Some(DEFAULT_UDP_RATE), true, DEFAULT_UDP_BLOCK)
        );
        assert_eq!(read("-u -b 0").unwrap().rate_bps, None);
        let long = read("--precision 2%").unwrap();
        assert_eq!(long.end, End::TimeNs(DEFAULT_MOST));
        assert_eq!(read("-P 0").unwrap_err().option, "-P");
        assert_eq!(read("-b 10Q").unwrap_err().option, "-b");
    }
}
