//! From options, one after the other, to an action.

use linerate_kernel::tcp::Keepalive;
use linerate_model::plan::{Direction, End, Family, Plan, Protocol, options};
use linerate_model::units::{BitRate, Bytes, Nanos};

use super::error::Iperf3ArgumentError as Error;
use super::getopt::Found;
use super::options::{Meaning, Side};
use super::values;
use super::{BitrateLimit, Iperf3Client, Iperf3Common, Iperf3Server};

/// Longest test, s.
const MAX_TIME: i64 = 86_400;
/// The plan's longest interval, for `-i 0`.
const LONGEST_INTERVAL: Nanos = Nanos::from_millis(3_600_000);

/// What was read so far.
pub(super) struct Draft {
    pub(super) role: Option<Side>,
    /// An option that only one of the ends has, and how it was typed.
    pub(super) sided: Vec<(Side, String)>,
    pub(super) plan: Plan,
    pub(super) client: Iperf3Client,
    pub(super) server: Iperf3Server,
    pub(super) common: Iperf3Common,
    pub(super) time_given: bool,
    pub(super) bytes: u64,
    pub(super) blocks: u64,
    pub(super) length: Option<u64>,
    pub(super) rate: Option<u64>,
    pub(super) receive_timeout_given: bool,
    pub(super) skew_threshold: Option<u32>,
}

impl Default for Draft {
    fn default() -> Self {
        let client = Iperf3Client {
            plan: Plan::new(""),
            common: Iperf3Common::default(),
            length_given: false,
            end_given: false,
            endless: false,
            get_server_output: false,
            udp_counters_64bit: false,
            repeating_payload: false,
            gsro: false,
            burst: None,
            pacing_timer_us: 1000,
            username: None,
            rsa_public_key_path: None,
        };
        let server = Iperf3Server {
            common: Iperf3Common::default(),
            port: client.plan.port,
            family: Family::Any,
            bind: None,
            bind_device: None,
            sctp_bind: Vec::new(),
            mptcp: false,
            interval_ns: client.plan.interval_ns,
            one_off: false,
            daemon: false,
            idle_timeout_s: None,
            bitrate_limit: None,
            max_duration_s: None,
            rsa_private_key_path: None,
            authorized_users_path: None,
            time_skew_threshold_s: 10,
        };
        Self {
            role: None,
            sided: Vec::new(),
            plan: client.plan.clone(),
            client,
            server,
            common: Iperf3Common {
                receive_timeout_ms: 120_000,
                ..Iperf3Common::default()
            },
            time_given: false,
            bytes: 0,
            blocks: 0,
            length: None,
            rate: None,
            receive_timeout_given: false,
            skew_threshold: None,
        }
    }
}

impl Draft {
    /// Keeps something to say on stderr.
    pub(super) fn warn(&mut self, text: impl Into<String>) {
        self.common.warnings.push(text.into());
    }

    /// Takes an option in.
    pub(super) fn take(&mut self, found: &Found) -> Result<(), Error> {
        if let Some(side) = found.spelling.side {
            self.sided.push((side, found.shown()));
        }
        if found.spelling.meaning == Meaning::Plan {
            return self.take_as_test_does(found);
        }
        if self.take_flag(found)? || self.take_text(found)? {
            return Ok(());
        }
        self.take_number(found)
    }

    fn take_as_test_does(&mut self, found: &Found) -> Result<(), Error> {
        let name = format!("--{}", found.spelling.long);
        match options::named(&name) {
            Some(option) => option
                .read(&mut self.plan, &found.text())
                .map_err(|reason| found.refuse(reason)),
            None => Err(found.refuse("the option is known but not read")),
        }
    }

    fn take_flag(&mut self, found: &Found) -> Result<bool, Error> {
        let (client, plan, common) = (&mut self.client, &mut self.plan, &mut self.common);
        match found.spelling.meaning {
            Meaning::Daemon => self.server.daemon = true,
            Meaning::OneOff => self.server.one_off = true,
            Meaning::Verbose => common.verbose = true,
            Meaning::Json => common.json = true,
            Meaning::JsonStream => (common.json, common.json_stream) = (true, true),
            Meaning::JsonStreamFullOutput => common.json_stream_full = true,
            Meaning::ForceFlush => common.force_flush = true,
            Meaning::UsePkcs1Padding => common.use_pkcs1_padding = true,
            Meaning::Server => self.become_side(Side::Server, found)?,
            Meaning::Mptcp => (plan.protocol, plan.mptcp) = (Protocol::Tcp, true),
            Meaning::Reverse => self.point(Direction::Receive, found)?,
            Meaning::Bidirectional => self.point(Direction::Both, found)?,
            Meaning::Version4 => plan.family = Family::V4,
            Meaning::Version6 => plan.family = Family::V6,
            Meaning::RepeatingPayload => client.repeating_payload = true,
            Meaning::GetServerOutput => client.get_server_output = true,
            Meaning::UdpCounters64Bit => client.udp_counters_64bit = true,
            Meaning::Gsro => client.gsro = true,
            Meaning::NoFqSocketPacing => plan.kernel_pacing_bps = None,
            Meaning::Sctp => plan.protocol = Protocol::Sctp,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_text(&mut self, found: &Found) -> Result<bool, Error> {
        let (client, server, common) = (&mut self.client, &mut self.server, &mut self.common);
        match found.spelling.meaning {
            Meaning::Client => self.connect_to(found)?,
            Meaning::Bind => {
                let (address, device) = split_device(&found.text());
                self.plan.bind = Some(address.into());
                self.plan.bind_device = device.map(Into::into).or(self.plan.bind_device.take());
            }
            Meaning::SctpBind => self.plan.sctp_bind.push(found.text().into()),
            Meaning::BindDevice => self.plan.bind_device = Some(found.text().into()),
            Meaning::Username => client.username = Some(found.text()),
            Meaning::RsaPublicKeyPath => client.rsa_public_key_path = Some(found.path()),
            Meaning::RsaPrivateKeyPath => server.rsa_private_key_path = Some(found.path()),
            Meaning::AuthorizedUsersPath => server.authorized_users_path = Some(found.path()),
            Meaning::File => common.file = Some(found.path()),
            Meaning::Pidfile => common.pidfile = Some(found.path()),
            Meaning::Logfile => common.logfile = Some(found.path()),
            Meaning::Timestamps => {
                common.timestamps = Some(if found.value.is_some() {
                    found.text()
                } else {
                    "%c ".to_owned()
                });
            }
            Meaning::Format => match found.text().chars().next() {
                Some(unit) if "kmgtKMGT".contains(unit) => common.format = Some(unit),
                _ => {
                    return Err(found
                        .refuse("bad format specifier (valid formats are in the set [kmgtKMGT])"));
                }
            },
            Meaning::ControlKeepalive => common.control_keepalive = Some(keepalive(found)?),
            Meaning::Debug => {
                let level = values::whole(&found.text()).map_or(4, |leading| leading.number);
                common.debug_level = u8::try_from(level).unwrap_or(4).min(4);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_number(&mut self, found: &Found) -> Result<(), Error> {
        const PORTS: &str = "port number must be between 1 and 65535 inclusive";
        const DURATIONS: &str = "test duration valid values are 0 to 86400 seconds";
        match found.spelling.meaning {
            Meaning::Port => self.plan.port = whole(found, 1, 65_535, PORTS)?,
            Meaning::ClientPort => {
                self.plan.client_port = Some(whole(found, 1, 65_535, PORTS)?);
            }
            Meaning::Parallel => {
                let refusal = "invalid number of parallel streams (min = 1, max = 128)";
                self.plan.streams = whole(found, 1, 128, refusal)?;
            }
            Meaning::Time => {
                // `-t inf`: what is no number is a 0 to iperf3.
                let seconds: u32 = match values::whole(&found.text()) {
                    Some(_) => whole(found, 0, MAX_TIME, DURATIONS)?,
                    None => 0,
                };
                self.plan.end = End::TimeNs(seconds_ns(seconds));
                self.client.endless = seconds == 0;
                self.time_given = true;
            }
            Meaning::Omit => {
                let refusal = "bogus value for --omit (maximum = 600 seconds)";
                self.plan.omit_ns = seconds_ns(whole(found, 0, 600, refusal)?);
            }
            Meaning::MaximumSegmentSize => {
                let mss: u16 = whole(
                    found,
                    0,
                    32_767,
                    "TCP MSS too large (maximum = 32767 bytes)",
                )?;
                self.plan.mss_bytes = Some(mss).filter(|mss| *mss > 0);
            }
            Meaning::ServerMaxDuration => {
                let seconds: u32 = whole(found, 0, MAX_TIME, DURATIONS)?;
                self.server.max_duration_s = Some(seconds).filter(|seconds| *seconds > 0);
            }
            Meaning::IdleTimeout => {
                let refusal = "idle timeout parameter is not positive or larger than allowed limit";
                self.server.idle_timeout_s = Some(whole(found, 1, MAX_TIME, refusal)?);
            }
            Meaning::TimeSkewThreshold => {
                let refusal = "skew threshold must be a positive number";
                self.skew_threshold = Some(whole(found, 1, i64::from(u32::MAX), refusal)?);
            }
            Meaning::ReceiveTimeout => {
                let refusal = "receive timeout value is incorrect or not in range";
                self.common.receive_timeout_ms = whole(found, 100, MAX_TIME * 1000, refusal)?;
                self.receive_timeout_given = true;
            }
            Meaning::SendTimeout => {
                let refusal = "send timeout value is incorrect or not in range";
                let timeout: u64 = whole(found, 0, MAX_TIME * 1000, refusal)?;
                self.common.send_timeout_ms = Some(timeout).filter(|timeout| *timeout > 0);
            }
            _ => return self.take_amount(found),
        }
        Ok(())
    }

    fn take_amount(&mut self, found: &Found) -> Result<(), Error> {
        match found.spelling.meaning {
            Meaning::Bytes => self.bytes = amount(found, &found.text(), 1024)?,
            Meaning::SctpStreams => {
                let streams = amount(found, &found.text(), 1024)?;
                let streams = u16::try_from(streams).unwrap_or(u16::MAX);
                self.plan.sctp_streams = Some(streams).filter(|streams| *streams > 0);
            }
            Meaning::BlockCount => self.blocks = amount(found, &found.text(), 1024)?,
            Meaning::Length => {
                self.length = Some(amount(found, &found.text(), 1024)?).filter(|l| *l > 0);
            }
            Meaning::PacingTimer => {
                self.client.pacing_timer_us = amount(found, &found.text(), 1024)?;
            }
            Meaning::ConnectTimeout => {
                self.plan.connect_timeout_ns =
                    Nanos::from_millis(amount(found, &found.text(), 1024)?);
            }
            Meaning::Window => {
                let bytes = amount(found, &found.text(), 1024)?;
                if bytes > 512 << 20 {
                    return Err(
                        found.refuse("socket buffer size too large (maximum = 536870912 bytes)")
                    );
                }
                self.plan.window_bytes = Some(Bytes(bytes)).filter(|bytes| bytes.count() > 0);
            }
            Meaning::FqRate => {
                let rate = amount(found, &found.text(), 1000)?;
                self.plan.kernel_pacing_bps = Some(BitRate(rate)).filter(|_| rate > 0);
            }
            Meaning::Bitrate => self.take_bitrate(found)?,
            Meaning::ServerBitrateLimit => self.take_bitrate_limit(found)?,
            Meaning::Interval => self.take_interval(found)?,
            _ => self.take_header_field(found)?,
        }
        Ok(())
    }

    fn take_header_field(&mut self, found: &Found) -> Result<(), Error> {
        let text = found.text();
        let number = |low: i64, high: i64| {
            values::any_base(&text)
                .map(|leading| leading.number)
                .filter(|number| (low..=high).contains(number))
        };
        match found.spelling.meaning {
            Meaning::Tos => {
                let tos = number(0, 255).and_then(|tos| u8::try_from(tos).ok());
                let refusal = "bad TOS value (must be between 0 and 255 inclusive)";
                self.plan.tos = tos.ok_or_else(|| found.refuse(refusal))?;
            }
            Meaning::Dscp => {
                let refusal = "bad DSCP value (numeric: 0-63 inclusive, symbolic: one of [af11-13, af21-23, \
                               af31-33, af41-43, cs1-7, ef, va, lowdelay, throughput, reliability])";
                self.plan.tos = values::dscp(&text).ok_or_else(|| found.refuse(refusal))?;
            }
            Meaning::FlowLabel => {
                let label = number(1, 0xF_FFFF).and_then(|label| u32::try_from(label).ok());
                let label = label.ok_or_else(|| found.refuse("unable to set IPv6 flow label"))?;
                self.plan.flow_label = Some(label);
            }
            Meaning::Affinity => {
                let cpu = |number: Option<i64>| number.and_then(|cpu| u16::try_from(cpu).ok());
                let refuse = || found.refuse("unable to set CPU affinity");
                let own = cpu(number(0, 1024)).ok_or_else(refuse)?;
                (self.common.affinity, self.plan.client_cpu) = (Some(own), Some(own));
                if let Some((_, server)) = text.split_once(',') {
                    let server = values::whole(server).map(|leading| leading.number);
                    let server =
                        cpu(server.filter(|cpu| (0..=1024).contains(cpu))).ok_or_else(refuse)?;
                    self.plan.server_cpu = Some(server);
                    self.sided.push((Side::Client, found.shown()));
                }
            }
            meaning => {
                return Err(found.refuse(format!("the option is known but not read: {meaning:?}")));
            }
        }
        Ok(())
    }

    fn take_bitrate(&mut self, found: &Found) -> Result<(), Error> {
        let text = found.text();
        let (rate, burst) = split_slash(&text);
        if let Some(burst) = burst {
            let count = values::whole(burst)
                .map(|leading| leading.number)
                .filter(|count| (1..=1000).contains(count));
            let count = count.and_then(|count| u32::try_from(count).ok());
            self.client.burst =
                Some(count.ok_or_else(|| found.refuse("invalid burst count (maximum = 1000)"))?);
        }
        self.rate = Some(amount(found, rate, 1000)?);
        Ok(())
    }

    fn take_bitrate_limit(&mut self, found: &Found) -> Result<(), Error> {
        let text = found.text();
        let (rate, seconds) = split_slash(&text);
        let seconds = match seconds {
            None => 5.0,
            Some(seconds) => values::decimal_or_zero(seconds)
                .filter(|seconds| *seconds == 0.0 || (0.1..=60.0).contains(seconds))
                .ok_or_else(|| {
                    found.refuse("invalid time interval for calculating average data rate")
                })?,
        };
        // A negative number is a very large one to iperf3.
        let rate = match rate.strip_prefix('-') {
            Some(rate) => amount(found, rate, 1000).map(|_| BitRate(u64::MAX))?,
            None => BitRate(amount(found, rate, 1000)?),
        };
        let limit = BitrateLimit {
            rate,
            averaged_over: Nanos::from_secs_f64(seconds),
        };
        self.server.bitrate_limit = Some(limit).filter(|limit| limit.rate.bits_per_second() > 0);
        Ok(())
    }

    fn take_interval(&mut self, found: &Found) -> Result<(), Error> {
        let text = found.text();
        let number = values::decimal_or_zero(&text)
            .filter(|number| *number == 0.0 || (0.1..=60.0).contains(number))
            .ok_or_else(|| found.refuse("invalid report interval (min = 0.1, max = 60 seconds)"))?;
        self.common.without_intervals = number == 0.0;
        self.plan.interval_ns = if self.common.without_intervals {
            LONGEST_INTERVAL
        } else {
            Nanos::from_secs_f64(number)
        };
        Ok(())
    }

    fn become_side(&mut self, side: Side, found: &Found) -> Result<(), Error> {
        if self.role.is_some_and(|role| role != side) {
            return Err(found.refuse("cannot be both server and client"));
        }
        self.role = Some(side);
        Ok(())
    }

    fn connect_to(&mut self, found: &Found) -> Result<(), Error> {
        self.become_side(Side::Client, found)?;
        let (host, device) = split_device(&found.text());
        self.plan.host = host.into();
        self.plan.bind_device = device.map(Into::into).or(self.plan.bind_device.take());
        Ok(())
    }

    fn point(&mut self, direction: Direction, found: &Found) -> Result<(), Error> {
        if self.plan.direction != Direction::Send && self.plan.direction != direction {
            return Err(found.refuse("cannot be both reverse and bidirectional"));
        }
        self.plan.direction = direction;
        Ok(())
    }
}

/// A whole number between two bounds; iperf3's refusal otherwise.
fn whole<T: TryFrom<i64>>(found: &Found, low: i64, high: i64, refusal: &str) -> Result<T, Error> {
    let text = found.text();
    let leading = values::whole(&text).filter(|leading| (low..=high).contains(&leading.number));
    let number = leading.ok_or_else(|| found.refuse(refusal))?.number;
    T::try_from(number).map_err(|_| found.refuse(refusal))
}

fn amount(found: &Found, text: &str, base: u32) -> Result<u64, Error> {
    let refusal = || found.refuse(format!("invalid unit value or suffix: '{text}'"));
    values::amount(text, base)
        .map(|leading| leading.number)
        .ok_or_else(refusal)
}

/// `host%device`; a link-local IPv6 address keeps its zone.
fn split_device(text: &str) -> (String, Option<String>) {
    match text.split_once('%') {
        Some((host, device)) if !host.is_empty() && !device.is_empty() && !is_link_local(host) => {
            (host.to_owned(), Some(device.to_owned()))
        }
        _ => (text.to_owned(), None),
    }
}

fn is_link_local(host: &str) -> bool {
    host.parse::<std::net::Ipv6Addr>()
        .is_ok_and(|address| address.segments()[0] & 0xffc0 == 0xfe80)
}

fn split_slash(text: &str) -> (&str, Option<&str>) {
    text.split_once('/')
        .map_or((text, None), |(head, tail)| (head, Some(tail)))
}

fn keepalive(found: &Found) -> Result<Keepalive, Error> {
    let text = found.text();
    let mut parts = text
        .splitn(3, '/')
        .map(|part| values::whole(part).map_or(0, |leading| leading.number));
    let mut next = || parts.next().unwrap_or(0);
    let (idle, interval, count) = (next(), next(), next());
    let asked = |number: i64| u32::try_from(number).ok().filter(|number| *number > 0);
    let asked = Keepalive {
        idle_s: asked(idle),
        interval_s: asked(interval),
        count: asked(count),
    };
    if idle != 0 && idle <= interval.saturating_mul(count) {
        let refusal = "control connection Keepalive period should be larger than the full retry period (interval * count): ";
        return Err(found.refuse(refusal));
    }
    Ok(asked)
}

fn seconds_ns(seconds: u32) -> Nanos {
    Nanos::from_millis(u64::from(seconds) * 1000)
}
