//! From options, one after the other, to an action.

use linerate_kernel::tcp::Keepalive;
use linerate_model::plan::{Direction, End, Family, Plan, Protocol, options};
use linerate_model::units::{BitRate, Bytes, Nanos};

use super::error::Iperf3ArgumentError as Error;
use super::getopt::Found;
use super::options::Side;
use super::values;
use super::{BitrateLimit, Iperf3Client, Iperf3Common, Iperf3Server};

/// Longest test, s.
const MAX_TIME: i64 = 86_400;
/// The plan's longest interval, for `-i 0`.
const LONGEST_INTERVAL: Nanos = Nanos::from_millis(3_600_000);

/// What was read so far.
#[derive(Default)]
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
    pub(super) receive_timeout_ms: Option<u64>,
    pub(super) skew_threshold: Option<u32>,
}

impl Draft {
    /// Keeps something to say on stderr.
    pub(super) fn warn(&mut self, text: impl Into<String>) {
        self.common.warnings.push(text.into());
    }

    pub(super) fn take(&mut self, found: &Found) -> Result<(), Error> {
        if let Some(side) = found.spelling.side {
            self.sided.push((side, found.shown()));
        }
        self.take_flag(found)
    }

    /// What means for the plan what it means to `linerate test`.
    fn take_as_test_does(&mut self, found: &Found) -> Result<(), Error> {
        let name = format!("--{}", found.spelling.long);
        match options::named(&name) {
            Some(option) => option
                .read(&mut self.plan, &found.text())
                .map_err(|reason| found.refuse(reason)),
            None => Err(found.refuse("the option is known but not read")),
        }
    }

    fn take_flag(&mut self, found: &Found) -> Result<(), Error> {
        let (client, plan, common) = (&mut self.client, &mut self.plan, &mut self.common);
        match found.spelling.long {
            "daemon" => self.server.daemon = true,
            "one-off" => self.server.one_off = true,
            "verbose" => common.verbose = true,
            "json" => common.json = true,
            "json-stream" => (common.json, common.json_stream) = (true, true),
            "json-stream-full-output" => common.json_stream_full = true,
            "use-pkcs1-padding" => common.use_pkcs1_padding = true,
            "server" => self.become_side(Side::Server, found)?,
            "mptcp" => (plan.protocol, plan.mptcp) = (Protocol::Tcp, true),
            "reverse" => self.point(Direction::Receive, found)?,
            "bidir" => self.point(Direction::Both, found)?,
            "version4" => plan.family = Family::V4,
            "version6" => plan.family = Family::V6,
            // Taken and without effect: what is sent is random, and every line is written at once.
            "forceflush" | "repeating-payload" => {}
            "get-server-output" => client.get_server_output = true,
            "udp-counters-64bit" => client.udp_counters_64bit = true,
            "gsro" => client.gsro = true,
            "no-fq-socket-pacing" => plan.kernel_pacing_bps = None,
            "sctp" => plan.protocol = Protocol::Sctp,
            _ => self.take_text(found)?,
        }
        Ok(())
    }

    fn take_text(&mut self, found: &Found) -> Result<(), Error> {
        let (client, server, common) = (&mut self.client, &mut self.server, &mut self.common);
        match found.spelling.long {
            "client" => self.connect_to(found)?,
            "bind" => {
                let (address, device) = split_device(&found.text());
                self.plan.bind = Some(address.into());
                self.plan.bind_device = device.map(Into::into).or(self.plan.bind_device.take());
            }
            "xbind" => self.plan.sctp_bind.push(found.text().into()),
            "bind-dev" => self.plan.bind_device = Some(found.text().into()),
            "username" => client.username = Some(found.text()),
            "rsa-public-key-path" => client.rsa_public_key_path = Some(found.path()),
            "rsa-private-key-path" => server.rsa_private_key_path = Some(found.path()),
            "authorized-users-path" => server.authorized_users_path = Some(found.path()),
            "file" => common.file = Some(found.path()),
            "pidfile" => common.pidfile = Some(found.path()),
            "logfile" => common.logfile = Some(found.path()),
            "timestamps" => {
                common.timestamps = Some(if found.value.is_some() {
                    found.text()
                } else {
                    "%c ".to_owned()
                });
            }
            "format" => match found.text().chars().next() {
                Some(unit) if "kmgtKMGT".contains(unit) => common.format = Some(unit),
                _ => {
                    return Err(found
                        .refuse("bad format specifier (valid formats are in the set [kmgtKMGT])"));
                }
            },
            "cntl-ka" => common.control_keepalive = Some(keepalive(found)?),
            "debug" => {
                let level = values::whole(&found.text()).unwrap_or(4);
                common.debug_level = u8::try_from(level).unwrap_or(4).min(4);
            }
            _ => self.take_number(found)?,
        }
        Ok(())
    }

    fn take_number(&mut self, found: &Found) -> Result<(), Error> {
        const PORTS: &str = "port number must be between 1 and 65535 inclusive";
        const DURATIONS: &str = "test duration valid values are 0 to 86400 seconds";
        match found.spelling.long {
            "port" => self.plan.port = whole(found, 1, 65_535, PORTS)?,
            "cport" => {
                self.plan.client_port = Some(whole(found, 1, 65_535, PORTS)?);
            }
            "parallel" => {
                let refusal = "invalid number of parallel streams (min = 1, max = 128)";
                self.plan.streams = whole(found, 1, 128, refusal)?;
            }
            "time" => {
                // `-t inf`: what is no number is a 0 to iperf3.
                let seconds: u32 = match values::whole(&found.text()) {
                    Some(_) => whole(found, 0, MAX_TIME, DURATIONS)?,
                    None => 0,
                };
                self.plan.end = End::TimeNs(seconds_ns(seconds));
                self.client.endless = seconds == 0;
                self.time_given = true;
            }
            "omit" => {
                let refusal = "bogus value for --omit (maximum = 600 seconds)";
                self.plan.omit_ns = seconds_ns(whole(found, 0, 600, refusal)?);
            }
            "set-mss" => {
                let mss: u16 = whole(
                    found,
                    0,
                    32_767,
                    "TCP MSS too large (maximum = 32767 bytes)",
                )?;
                self.plan.mss_bytes = Some(mss).filter(|mss| *mss > 0);
            }
            "server-max-duration" => {
                let seconds: u32 = whole(found, 0, MAX_TIME, DURATIONS)?;
                self.server.max_duration_s = Some(seconds).filter(|seconds| *seconds > 0);
            }
            "idle-timeout" => {
                let refusal = "idle timeout parameter is not positive or larger than allowed limit";
                self.server.idle_timeout_s = Some(whole(found, 1, MAX_TIME, refusal)?);
            }
            "time-skew-threshold" => {
                let refusal = "skew threshold must be a positive number";
                self.skew_threshold = Some(whole(found, 1, i64::from(u32::MAX), refusal)?);
            }
            "rcv-timeout" => {
                let refusal = "receive timeout value is incorrect or not in range";
                self.receive_timeout_ms = Some(whole(found, 100, MAX_TIME * 1000, refusal)?);
            }
            "snd-timeout" => {
                let refusal = "send timeout value is incorrect or not in range";
                let timeout: u64 = whole(found, 0, MAX_TIME * 1000, refusal)?;
                self.common.send_timeout_ms = Some(timeout).filter(|timeout| *timeout > 0);
            }
            _ => return self.take_amount(found),
        }
        Ok(())
    }

    fn take_amount(&mut self, found: &Found) -> Result<(), Error> {
        match found.spelling.long {
            "bytes" => self.bytes = amount(found, &found.text(), 1024)?,
            "nstreams" => {
                let streams = amount(found, &found.text(), 1024)?;
                let streams = u16::try_from(streams).unwrap_or(u16::MAX);
                self.plan.sctp_streams = Some(streams).filter(|streams| *streams > 0);
            }
            "blockcount" => self.blocks = amount(found, &found.text(), 1024)?,
            "length" => {
                self.length = Some(amount(found, &found.text(), 1024)?).filter(|l| *l > 0);
            }
            // Passed on to old servers by iperf3 alone.
            "pacing-timer" => drop(amount(found, &found.text(), 1024)?),
            "connect-timeout" => {
                self.plan.connect_timeout_ns =
                    Nanos::from_millis(amount(found, &found.text(), 1024)?);
            }
            "window" => {
                let bytes = amount(found, &found.text(), 1024)?;
                if bytes > 512 << 20 {
                    return Err(
                        found.refuse("socket buffer size too large (maximum = 536870912 bytes)")
                    );
                }
                self.plan.window_bytes = Some(Bytes(bytes)).filter(|bytes| bytes.count() > 0);
            }
            "fq-rate" => {
                let rate = amount(found, &found.text(), 1000)?;
                self.plan.kernel_pacing_bps = Some(BitRate(rate)).filter(|_| rate > 0);
            }
            "bitrate" | "bandwidth" => self.take_bitrate(found)?,
            "server-bitrate-limit" => self.take_bitrate_limit(found)?,
            "interval" => self.take_interval(found)?,
            _ => self.take_header_field(found)?,
        }
        Ok(())
    }

    fn take_header_field(&mut self, found: &Found) -> Result<(), Error> {
        let text = found.text();
        let number = |low: i64, high: i64| {
            values::any_base(&text)
                .map(|(number, _)| number)
                .filter(|number| (low..=high).contains(number))
        };
        match found.spelling.long {
            "tos" => {
                let tos = number(0, 255).and_then(|tos| u8::try_from(tos).ok());
                let refusal = "bad TOS value (must be between 0 and 255 inclusive)";
                self.plan.tos = tos.ok_or_else(|| found.refuse(refusal))?;
            }
            "dscp" => {
                let refusal = "bad DSCP value (numeric: 0-63 inclusive, symbolic: one of [af11-13, af21-23, \
                               af31-33, af41-43, cs1-7, ef, va, lowdelay, throughput, reliability])";
                self.plan.tos = values::dscp(&text).ok_or_else(|| found.refuse(refusal))?;
            }
            "flowlabel" => {
                let label = number(1, 0xF_FFFF).and_then(|label| u32::try_from(label).ok());
                let label = label.ok_or_else(|| found.refuse("unable to set IPv6 flow label"))?;
                self.plan.flow_label = Some(label);
            }
            "affinity" => {
                let cpu = |number: Option<i64>| number.and_then(|cpu| u16::try_from(cpu).ok());
                let refuse = || found.refuse("unable to set CPU affinity");
                let own = cpu(number(0, 1024)).ok_or_else(refuse)?;
                (self.common.affinity, self.plan.client_cpu) = (Some(own), Some(own));
                if let Some((_, server)) = text.split_once(',') {
                    let server = values::whole(server);
                    let server =
                        cpu(server.filter(|cpu| (0..=1024).contains(cpu))).ok_or_else(refuse)?;
                    self.plan.server_cpu = Some(server);
                    self.sided.push((Side::Client, found.shown()));
                }
            }
            _ => self.take_as_test_does(found)?,
        }
        Ok(())
    }

    fn take_bitrate(&mut self, found: &Found) -> Result<(), Error> {
        let text = found.text();
        let (rate, burst) = split_slash(&text);
        if let Some(burst) = burst {
            values::whole(burst)
                .filter(|count| (1..=1000).contains(count))
                .ok_or_else(|| found.refuse("invalid burst count (maximum = 1000)"))?;
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
    let number = values::whole(&text).filter(|number| (low..=high).contains(number));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| found.refuse(refusal))
}

fn amount(found: &Found, text: &str, base: u32) -> Result<u64, Error> {
    let refusal = || found.refuse(format!("invalid unit value or suffix: '{text}'"));
    values::amount(text, base).ok_or_else(refusal)
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
        .map(|part| values::whole(part).unwrap_or(0));
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
