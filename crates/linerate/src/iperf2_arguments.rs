//! iperf2's command line: the words of `linerate iperf …`, or of the program started as `iperf`. What this end cannot do is
//! refused by its name.

use std::ffi::OsString;

use clap::Parser;
use linerate_model::plan::{Direction, End, Family, Plan, Protocol};
use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_report::iperf2::Layout;
use linerate_wire::iperf2::{DEFAULT_PORT, DEFAULT_UDP_BLOCK, DEFAULT_UDP_RATE};

/// Bytes of a TCP write unless `-l` is given.
const TCP_BLOCK: u64 = 128 << 10;
/// Bytes of a datagram to an IPv6 address unless `-l` is given.
const UDP_BLOCK_V6: u64 = 1450;

/// iperf2's options
#[derive(Debug, Parser)]
#[command(
    name = "iperf",
    disable_version_flag = true,
    // The last of several counts, as getopt has it.
    args_override_self = true,
    override_usage = "iperf [-s|-c HOST] [OPTIONS]",
    about = "Run a test with iperf 2's options and output"
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a flag of the command line each"
)]
struct Words {
    /// Run as a client of HOST
    #[arg(
        short = 'c',
        long = "client",
        value_name = "HOST",
        conflicts_with = "server"
    )]
    client: Option<String>,
    /// Run as a server
    #[arg(short = 's', long = "server")]
    server: bool,
    /// UDP instead of TCP
    #[arg(short = 'u', long = "udp")]
    udp: bool,
    /// Seconds between reports, 0.01 to 3600; 0 = none
    #[arg(short = 'i', long, value_name = "SECONDS", value_parser = seconds)]
    interval: Option<Nanos>,
    /// The server's port
    #[arg(short = 'p', long, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    port: u16,
    /// Seconds to send for, up to 86,400; 0 = as long [default: 10]
    #[arg(short = 't', long, value_name = "SECONDS", value_parser = seconds)]
    time: Option<Nanos>,
    /// Bytes to send instead, of each stream (K, M, G: 1024s; k, m, g: 1000s)
    #[arg(short = 'n', long = "num", value_name = "BYTES", value_parser = bytes)]
    num: Option<u64>,
    /// Bytes of a write or a datagram
    #[arg(short = 'l', long = "len", value_name = "BYTES", value_parser = bytes)]
    length: Option<u64>,
    /// Bit/s of each stream (K, M, G of 1024, k, m, g of 1000) [default over UDP: 1.05 Mbit/s]
    #[arg(short = 'b', long = "bandwidth", value_name = "RATE")]
    rate: Option<String>,
    /// Socket buffers, bytes
    #[arg(short = 'w', long, value_name = "BYTES", value_parser = bytes)]
    window: Option<u64>,
    /// TCP maximum segment size, bytes
    #[arg(short = 'M', long = "mss", value_name = "BYTES")]
    mss: Option<u16>,
    /// Turn Nagle's algorithm off
    #[arg(short = 'N', long)]
    nodelay: bool,
    /// The type-of-service byte
    #[arg(short = 'S', long, value_name = "TOS", value_parser = tos)]
    tos: Option<u8>,
    /// Streams
    #[arg(short = 'P', long, value_name = "STREAMS")]
    parallel: Option<u16>,
    /// The server sends instead
    #[arg(short = 'R', long)]
    reverse: bool,
    /// Both send, on the same connections
    #[arg(long)]
    full_duplex: bool,
    /// The local address
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    bind: Option<String>,
    /// IPv6
    #[arg(short = 'V', long = "ipv6_domain")]
    ipv6: bool,
    /// Congestion control
    #[arg(short = 'Z', long = "linux-congestion", value_name = "NAME")]
    congestion: Option<String>,
    /// Units: k, m, g, t for bits, K, M, G, T for bytes, a and A for the best
    #[arg(short = 'f', long, value_name = "UNIT", value_parser = unit)]
    format: Option<char>,
    /// C: comma-separated values
    #[arg(short = 'y', long = "reportstyle", value_name = "STYLE", value_parser = ["C", "c"])]
    style: Option<String>,
    /// Accepted; the layout stays the plain one
    #[arg(short = 'e', long)]
    enhanced: bool,
    /// Accepted: a server takes several clients at once in any case
    #[arg(short = 'U', long = "single_udp", hide = true)]
    single: bool,
    /// Run as a daemon (server)
    #[arg(short = 'D', long)]
    daemon: bool,
    /// Print as this version does: 2.0 (up to 2.0.12), 2.1 (Debian's) or 2.2
    #[arg(long, value_name = "VERSION", default_value = "2.2", value_parser = ["2.0", "2.1", "2.2"])]
    iperf_version: String,
    /// Print the version
    #[arg(short = 'v', long = "version")]
    version: bool,
    /// What else iperf2 knows
    #[command(flatten)]
    other: Other,
}

/// Options of iperf2 that nothing here carries out.
#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a flag of the command line each"
)]
struct Other {
    #[arg(short = 'd', long = "dualtest", hide = true)]
    dual: bool,
    #[arg(short = 'r', long = "tradeoff", hide = true)]
    tradeoff: bool,
    #[arg(short = 'L', long = "listenport", value_name = "PORT", hide = true)]
    listen_port: Option<u16>,
    #[arg(short = 'm', long = "print_mss", hide = true)]
    print_mss: bool,
    #[arg(short = 'x', long = "reportexclude", value_name = "KINDS", hide = true)]
    exclude: Option<String>,
    #[arg(short = 'o', long = "output", value_name = "FILE", hide = true)]
    output: Option<OsString>,
    #[arg(short = '1', long = "singleclient", hide = true)]
    one: bool,
    #[arg(short = 'z', long = "realtime", hide = true)]
    realtime: bool,
    #[arg(short = 'X', long = "peerdetect", hide = true)]
    peer: bool,
    #[arg(short = 'F', long = "fileinput", value_name = "FILE", hide = true)]
    file: Option<OsString>,
    #[arg(short = 'I', long = "stdin", hide = true)]
    input: bool,
    #[arg(short = 'T', long = "ttl", value_name = "TTL", hide = true)]
    ttl: Option<u8>,
    #[arg(short = 'C', long = "compatibility", hide = true)]
    compatibility: bool,
    #[arg(long, hide = true)]
    trip_times: bool,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    isochronous: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    bounceback: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    permit_key: Option<String>,
}

impl Other {
    /// The first of them that was given, and what to do instead.
    fn given(&self) -> Option<(&'static str, &'static str)> {
        let all = [
            (
                self.dual,
                "-d",
                "use --full-duplex, which needs no connection back",
            ),
            (self.tradeoff, "-r", "run it once plain and once with -R"),
            (self.listen_port.is_some(), "-L", "no connection comes back"),
            (
                self.print_mss,
                "-m",
                "linerate test --iperf2 shows the segment size",
            ),
            (self.exclude.is_some(), "-x", "leave it out"),
            (self.output.is_some(), "-o", "redirect the output"),
            (
                self.one,
                "-1",
                "use linerate serve -p 5001 -1, which takes its one test over TCP",
            ),
            (self.realtime, "-z", "leave it out, or use chrt"),
            (self.peer, "-X", "leave it out"),
            (self.file.is_some(), "-F", "use linerate test --source"),
            (self.input, "-I", "use linerate test --source"),
            (self.ttl.is_some(), "-T", "multicast is not sent"),
            (
                self.compatibility,
                "-C",
                "leave it out: each version is answered as it calls",
            ),
            (
                self.trip_times,
                "--trip-times",
                "one-way delay is not measured",
            ),
            (
                self.isochronous.is_some(),
                "--isochronous",
                "frames are not sent",
            ),
            (
                self.bounceback.is_some(),
                "--bounceback",
                "messages are not sent back and forth",
            ),
            (
                self.permit_key.is_some(),
                "--permit-key",
                "use linerate serve with users",
            ),
        ];
        let found = all.into_iter().find(|(given, ..)| *given);
        found.map(|(_, option, instead)| (option, instead))
    }
}

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Iperf2Action {
    Client(Box<Iperf2Client>),
    Server(Iperf2Server),
    /// Print this version's banner.
    Version(String),
    /// Print this on standard output.
    Help(String),
}

/// How both ends print.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Iperf2Output {
    pub(crate) layout: Layout,
    pub(crate) csv: bool,
    pub(crate) format: Option<char>,
    pub(crate) intervals: bool,
    /// `-e` was given.
    pub(crate) enhanced: bool,
}

/// `iperf -c`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Iperf2Client {
    pub(crate) plan: Plan,
    pub(crate) output: Iperf2Output,
}

/// `iperf -s`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Iperf2Server {
    pub(crate) output: Iperf2Output,
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
    pub(crate) bind: Option<std::net::IpAddr>,
    pub(crate) family: Family,
    pub(crate) interval: Nanos,
    pub(crate) daemon: bool,
}

/// Where no interval was asked for: the longest that there is. None of them is shown.
const NO_INTERVAL: Nanos = Nanos::from_millis(3_600_000);
/// The longest test that a plan can have.
const LONGEST: Nanos = Nanos::from_millis(86_400_000);

/// Reads the words after the program's name; an error is what to print.
pub(crate) fn parse(arguments: Vec<OsString>) -> Result<Iperf2Action, String> {
    let named = std::iter::once(OsString::from("iperf")).chain(arguments);
    let words = match Words::try_parse_from(named) {
        Ok(words) => words,
        Err(error) if error.use_stderr() => return Err(error.to_string()),
        Err(error) => return Ok(Iperf2Action::Help(error.to_string())),
    };
    if words.version {
        return Ok(Iperf2Action::Version(words.iperf_version));
    }
    if let Some((option, instead)) = words.other.given() {
        return Err(format!(
            "iperf: {option} is not carried out here: {instead}"
        ));
    }
    match (&words.client, words.server) {
        (Some(host), _) => client(&words, host).map(|client| Iperf2Action::Client(Box::new(client))),
        (None, true) => server(&words).map(Iperf2Action::Server),
        (None, false) => Err(
            "iperf: one of -s (serve) and -c HOST (test) is needed; `iperf --help` lists the options"
                .to_owned(),
        ),
    }
}

fn output(words: &Words) -> Iperf2Output {
    Iperf2Output {
        layout: layout(words),
        csv: words.style.is_some(),
        format: words.format,
        intervals: interval(words).is_some(),
        enhanced: words.enhanced,
    }
}

/// Between two reports; 0 is none.
fn interval(words: &Words) -> Option<Nanos> {
    words.interval.filter(|every| *every > Nanos::ZERO)
}

fn layout(words: &Words) -> Layout {
    match words.iperf_version.as_str() {
        "2.0" => Layout::V2_0,
        "2.1" => Layout::V2_1,
        _ => Layout::V2_2,
    }
}

fn client(words: &Words, host: &str) -> Result<Iperf2Client, String> {
    let mut plan = Plan::new(host);
    plan.port = words.port;
    // Without -V names are looked up for IPv4 alone.
    let is_v6 = words.ipv6 || host.parse::<std::net::Ipv6Addr>().is_ok();
    plan.family = if is_v6 { Family::V6 } else { Family::V4 };
    plan.streams = words.parallel.unwrap_or(1);
    plan.direction = match (words.reverse, words.full_duplex) {
        (true, true) => return Err("iperf: -R and --full-duplex exclude each other".to_owned()),
        (true, false) => Direction::Receive,
        (false, true) => Direction::Both,
        (false, false) => Direction::Send,
    };
    plan.end = match (words.num, words.time) {
        // Of each stream.
        (Some(bytes), _) => End::Bytes(Bytes(bytes.saturating_mul(u64::from(plan.streams)))),
        (None, Some(time)) if time > Nanos::ZERO => End::TimeNs(time),
        (None, Some(_)) => End::TimeNs(LONGEST),
        (None, None) => End::TimeNs(Plan::DEFAULT_TIME),
    };
    plan.interval_ns = interval(words).unwrap_or(NO_INTERVAL);
    let rate = words.rate.as_deref().map(|text| rate(text, layout(words)));
    let rate = rate.transpose()?;
    if words.udp {
        plan.protocol = Protocol::Udp;
        let block = if is_v6 {
            UDP_BLOCK_V6
        } else {
            DEFAULT_UDP_BLOCK
        };
        plan.block_bytes = Bytes(words.length.unwrap_or(block));
        plan.rate_bps = Some(BitRate(rate.unwrap_or(DEFAULT_UDP_RATE)));
        plan.rate_is_default = rate.is_none();
    } else {
        plan.block_bytes = Bytes(words.length.unwrap_or(TCP_BLOCK));
        plan.rate_bps = rate.map(BitRate);
    }
    plan.window_bytes = words.window.map(Bytes);
    plan.mss_bytes = words.mss;
    plan.nodelay = words.nodelay;
    plan.tos = words.tos.unwrap_or(0);
    plan.congestion = words.congestion.as_deref().map(Into::into);
    plan.bind = words.bind.as_deref().map(Into::into);
    plan.check().map_err(|error| format!("iperf: {error}"))?;
    Ok(Iperf2Client {
        plan,
        output: output(words),
    })
}

fn server(words: &Words) -> Result<Iperf2Server, String> {
    let client_s = [
        (words.time.is_some(), "-t"),
        (words.num.is_some(), "-n"),
        (words.rate.is_some(), "-b"),
        (words.parallel.is_some(), "-P"),
        (words.reverse, "-R"),
        (words.full_duplex, "--full-duplex"),
        (words.window.is_some(), "-w"),
        (words.mss.is_some(), "-M"),
        (words.nodelay, "-N"),
        (words.tos.is_some(), "-S"),
        (words.congestion.is_some(), "-Z"),
    ];
    if let Some((_, option)) = client_s.into_iter().find(|(given, _)| *given) {
        return Err(format!(
            "iperf: {option} is not carried out by this server; a server for one test is `linerate serve -p 5001 -1`"
        ));
    }
    let bind = words.bind.as_deref().map(|text| {
        text.parse()
            .map_err(|_| format!("iperf: -B {text}: a server wants an address of its host"))
    });
    Ok(Iperf2Server {
        output: output(words),
        protocol: if words.udp {
            Protocol::Udp
        } else {
            Protocol::Tcp
        },
        port: words.port,
        bind: bind.transpose()?,
        family: if words.ipv6 { Family::V6 } else { Family::V4 },
        interval: interval(words).unwrap_or(NO_INTERVAL),
        daemon: words.daemon,
    })
}

fn seconds(text: &str) -> Result<Nanos, String> {
    let value: f64 = text.parse().map_err(|_| "not a number of seconds")?;
    if !(0.0..=1e7).contains(&value) {
        return Err("0 to 10,000,000 seconds".to_owned());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was looked at above"
    )]
    Ok(Nanos((value * 1e9).round() as u64))
}

/// A number with a unit: of 1024s where it is written large, of 1000s where small (`byte_atoi` of iperf2's `lib/stdio.c`).
fn amount(text: &str, large: f64) -> Result<u64, String> {
    let wrong = || format!("'{text}' is no amount such as 128K, 10m or 1G");
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let value: f64 = digits.parse().map_err(|_| wrong())?;
    let unit = text.get(digits.len()..).unwrap_or_default();
    let power = |letters: &str| letters.find(unit).and_then(|at| i32::try_from(at + 1).ok());
    let factor = match unit {
        "" => 1.0,
        _ if unit.len() > 1 => return Err(wrong()),
        _ => match (power("KMGT"), power("kmgt")) {
            (Some(power), _) => large.powi(power),
            (None, Some(power)) => 1000_f64.powi(power),
            (None, None) => return Err(wrong()),
        },
    };
    let all = value * factor;
    if !(0.0..=1e18).contains(&all) {
        return Err(wrong());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was looked at above"
    )]
    Ok(all.round() as u64)
}

fn bytes(text: &str) -> Result<u64, String> {
    amount(text, 1024.0)
}

/// Bits a second: before 2.0.13 always of 1000s.
fn rate(text: &str, layout: Layout) -> Result<u64, String> {
    if text.ends_with("pps") {
        return Err(format!(
            "iperf: -b {text}: a rate in packets is not carried out here; give bits a second"
        ));
    }
    let large = match layout {
        Layout::V2_0 => 1000.0,
        Layout::V2_1 | Layout::V2_2 => 1024.0,
    };
    amount(text, large).map_err(|why| format!("iperf: -b {why}"))
}

fn tos(text: &str) -> Result<u8, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "0 to 255, or 0x00 to 0xff".to_owned())
}

fn unit(text: &str) -> Result<char, String> {
    let one = Some(text).filter(|text| text.len() == 1);
    let letter = one.and_then(|text| text.chars().next());
    letter
        .filter(|letter| "kmgtaKMGTA".contains(*letter))
        .ok_or_else(|| "one of k, m, g, t, a, K, M, G, T, A".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> Result<Iperf2Action, String> {
        parse(words.split_whitespace().map(OsString::from).collect())
    }

    fn plan(words: &str) -> Plan {
        match of(words) {
            Ok(Iperf2Action::Client(client)) => client.plan,
            other => panic!("{words}: {other:?}"),
        }
    }

    #[test]
    fn defaults_are_iperf2_s() {
        let tcp = plan("-c host");
        assert_eq!((tcp.port, tcp.block_bytes), (5001, Bytes(131_072)));
        assert_eq!(
            (tcp.end, tcp.rate_bps),
            (End::TimeNs(Plan::DEFAULT_TIME), None)
        );
        let udp = plan("-uc host");
        assert_eq!(udp.block_bytes, Bytes(1470));
        assert_eq!(udp.rate_bps, Some(BitRate(1_048_576)));
        assert_eq!(plan("-u -V -c host").block_bytes, Bytes(1450));
    }

    #[test]
    fn letters_mean_what_they_mean_in_iperf2() {
        let plan_of =
            plan("-c host -P4 -n 1M -w 64K -l 8k -i1 -S 0x10 -N -Z reno -B 127.0.0.1 -p 5002");
        assert_eq!(plan_of.end, End::Bytes(Bytes(4 << 20)), "of each stream");
        assert_eq!(plan_of.window_bytes, Some(Bytes(65_536)));
        assert_eq!((plan_of.block_bytes, plan_of.tos), (Bytes(8000), 16));
        assert!(plan_of.nodelay && plan_of.port == 5002 && plan_of.streams == 4);
        assert_eq!(plan("-c h -u -b 1M").rate_bps, Some(BitRate(1_048_576)));
        assert_eq!(plan("-c h -u -b 1m").rate_bps, Some(BitRate(1_000_000)));
        let old = plan("-c h -u -b 1M --iperf-version 2.0");
        assert_eq!(old.rate_bps, Some(BitRate(1_000_000)));
        assert_eq!(
            plan("-c h -t 0.5").end,
            End::TimeNs(Nanos::from_millis(500))
        );
        assert_eq!(plan("-c h -R").direction, Direction::Receive);
        assert_eq!(plan("-c h --full-duplex").direction, Direction::Both);
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        for (words, said) in [
            ("", "one of -s"),
            ("-c h -d", "--full-duplex"),
            ("-c h -r", "once with -R"),
            ("-c h --bounceback", "--bounceback"),
            ("-c h -b 100pps", "packets"),
            ("-c h -n 1X", "no amount"),
            ("-c h -t x", "seconds"),
            ("-c h -s", "cannot be used with"),
            ("-s -t 5", "not carried out by this server"),
            ("-s -B name", "an address of its host"),
            ("-c h -R --full-duplex", "exclude"),
            ("-c h --unheard-of", "unexpected argument"),
        ] {
            let refused = of(words).unwrap_err();
            assert!(refused.contains(said), "{words}: {refused}");
        }
        assert!(matches!(of("--help"), Ok(Iperf2Action::Help(text)) if text.contains("-P")));
        assert_eq!(of("-v"), Ok(Iperf2Action::Version("2.2".to_owned())));
        assert_eq!(
            plan("-t 3 -c h -t 0.5").end,
            End::TimeNs(Nanos::from_millis(500))
        );
        assert_eq!(
            (plan("-c h").family, plan("-c ::1").family),
            (Family::V4, Family::V6)
        );
    }
}
