//! A drawn path before it is a scenario, and its text.

use std::fmt::Write as _;

/// Bytes of Ethernet around an IP packet.
const ETHERNET: f64 = 38.0;
/// Bytes of a TCP header with timestamps.
const TCP: f64 = 32.0;
/// The largest `tcp_wmem` and `tcp_rmem` of a host whose buffers are not to limit, bytes.
pub(super) const AMPLE: u64 = 268_435_456;

/// What a draw decided. Data goes from `data sender` to `data receiver`, whichever of the two hosts that is.
#[derive(Debug, Clone)]
pub(super) struct Sketch {
    pub(super) ipv6: bool,
    /// Whether the server sends (`-R`).
    pub(super) reversed: bool,
    pub(super) mtu: u32,
    /// `-M`, bytes; `None` = as the MTU allows.
    pub(super) mss: Option<u32>,
    pub(super) streams: u16,
    pub(super) congestion: &'static str,
    /// Rate of the bottleneck both ways, bit/s; 0 = unlimited.
    pub(super) rate: f64,
    /// Seconds.
    pub(super) rtt: f64,
    /// Bytes.
    pub(super) queue: f64,
    /// Seconds, each way.
    pub(super) jitter: f64,
    /// Other keys of the direction of the data.
    pub(super) data_way: Vec<String>,
    /// Later settings of the direction of the data, or of both.
    pub(super) changes: Vec<Change>,
    /// Competing traffic in the direction of the data: the keys of a table.
    pub(super) cross: Vec<String>,
    /// The largest send buffer of the data's sender, and the largest receive buffer of its receiver, bytes.
    pub(super) wmem: u64,
    pub(super) rmem: u64,
    /// Other keys of the host that sends the data, and of the one that receives it.
    pub(super) data_sender: Vec<String>,
    pub(super) data_receiver: Vec<String>,
    /// Seconds that are measured.
    pub(super) seconds: f64,
    /// More arguments of the test.
    pub(super) args: String,
    /// Acceptable first findings.
    pub(super) top: &'static [&'static str],
    /// Findings that have to stand beside the first one.
    pub(super) with: &'static [&'static str],
    /// What part of the bottleneck's rate the path has to carry, where the truth depends on it.
    pub(super) utilisation: Option<[f64; 2]>,
    /// Why that is the truth, one sentence a line.
    pub(super) truth: Vec<String>,
}

/// New settings at a time.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// Seconds after the start.
    pub(super) at: f64,
    /// Whether both directions change.
    pub(super) both: bool,
    /// A key and its value.
    pub(super) setting: String,
}

impl Sketch {
    /// Headers of a packet beside its payload, bytes.
    fn headers(&self) -> f64 {
        TCP + if self.ipv6 { 40.0 } else { 20.0 }
    }

    /// Payload of a full segment, bytes.
    pub(super) fn payload(&self) -> f64 {
        let most = f64::from(self.mtu) - self.headers();
        // -M counts the timestamps in.
        self.mss
            .map_or(most, |mss| most.min(f64::from(mss) - (TCP - 20.0)))
    }

    /// What a full segment takes of the bottleneck, bytes.
    pub(super) fn wire(&self) -> f64 {
        self.payload() + self.headers() + ETHERNET
    }

    /// Goodput of the full bottleneck, bit/s.
    pub(super) fn capacity(&self) -> f64 {
        self.goodput_of(self.rate)
    }

    /// Goodput of a rate that counts as the bottleneck's does, bit/s.
    pub(super) fn goodput_of(&self, rate: f64) -> f64 {
        rate * self.payload() / self.wire()
    }

    /// Bytes that fill the path without a queue.
    pub(super) fn bdp(&self) -> f64 {
        self.rate * self.rtt / 8.0
    }

    /// The same in segments.
    pub(super) fn bdp_segments(&self) -> f64 {
        self.bdp() / self.wire()
    }

    /// How long a full queue takes, seconds.
    pub(super) fn queue_time(&self) -> f64 {
        self.queue * 8.0 / self.rate
    }

    /// Slow start from ten segments a stream to `segments` in all, seconds: it doubles each round trip.
    pub(super) fn slow_start(&self, segments: f64) -> f64 {
        let begin = 10.0 * f64::from(self.streams);
        self.rtt * (1.0 + (segments / begin).max(1.0).log2())
    }

    /// What the congestion control gets at `share` of segments lost by chance, all streams, bit/s: 1.22/√p segments a
    /// round trip (Mathis et al. 1997, with the constant of CUBIC's Reno-friendly floor), or CUBIC's 1.054·(RTT/p)^¾
    /// where that is more (RFC 9438, section 5.1).
    pub(super) fn under_loss(&self, share: f64) -> f64 {
        let reno = 1.22 / share.sqrt();
        let cubic = 1.054 * (self.rtt / share).powf(0.75);
        let window = if self.congestion == "reno" {
            reno
        } else {
            reno.max(cubic)
        };
        window * self.payload() * 8.0 / self.rtt * f64::from(self.streams)
    }

    /// How long congestion avoidance takes from half of what fills the path to all of it, seconds: CUBIC's
    /// ∛(W/2/0.4), or one segment a round trip where that is sooner or it is Reno.
    pub(super) fn regrowth(&self) -> f64 {
        let half = self.bdp_segments() / f64::from(self.streams) / 2.0;
        let reno = half * self.rtt;
        if self.congestion == "reno" {
            reno
        } else {
            reno.min((half / 0.4).cbrt())
        }
    }

    /// Segments that `rate` of goodput sends in the measured time.
    pub(super) fn segments_at(&self, goodput: f64) -> f64 {
        goodput * self.seconds / 8.0 / self.payload()
    }

    /// The scenario's file.
    pub(super) fn text(&self, name: &str, number: u64) -> String {
        let mut text = format!("name = \"{name}\"\n");
        let mut line = |line: String| {
            let _ = writeln!(text, "{line}");
        };
        line(format!("about = \"drawn at random, number {number}\""));
        line(format!("seed = {number}"));
        if self.ipv6 {
            line("family = \"ipv6\"".to_owned());
        }
        line("[path]".to_owned());
        if self.rate > 0.0 {
            line(format!("rate = \"{:.0}k\"", self.rate / 1e3));
            line(format!("queue = {:.0}", self.queue));
        }
        line(format!("rtt = \"{:.0}us\"", self.rtt * 1e6));
        if self.jitter > 0.0 {
            line(format!("jitter = \"{:.0}us\"", self.jitter * 1e6));
        }
        let way = if self.reversed { "back" } else { "forward" };
        if !self.data_way.is_empty() {
            line(format!("[path.{way}]"));
            self.data_way.iter().cloned().for_each(&mut line);
        }
        for change in &self.changes {
            line(if change.both {
                "[[path.change]]".to_owned()
            } else {
                format!("[[path.{way}.change]]")
            });
            line(format!("at = \"{:.2}s\"", change.at));
            line(change.setting.clone());
        }
        for cross in &self.cross {
            line(format!("[[path.cross]]\ndirection = \"{way}\"\n{cross}"));
        }
        let buffers = [
            format!(
                "tcp_wmem = \"4096 {} {}\"",
                self.wmem.min(16_384),
                self.wmem
            ),
            format!(
                "tcp_rmem = \"4096 {} {}\"",
                self.rmem.min(131_072),
                self.rmem
            ),
        ];
        let [wmem, rmem] = buffers;
        let mut hosts = [
            (vec![wmem], &self.data_sender),
            (vec![rmem], &self.data_receiver),
        ];
        if self.reversed {
            hosts.reverse();
        }
        for (title, (own, more)) in ["[sender]", "[receiver]"].into_iter().zip(hosts) {
            line(title.to_owned());
            line(format!("congestion = \"{}\"", self.congestion));
            if self.mtu != 1500 {
                line(format!("mtu = {}", self.mtu));
            }
            own.iter().chain(more).cloned().for_each(&mut line);
        }
        line(format!("[test]\nargs = \"{}\"", self.arguments()));
        line(format!(
            "[expect]\ntop = [{}]\nalso = \"any\"",
            quoted(self.top)
        ));
        if !self.with.is_empty() {
            line(format!("with = [{}]", quoted(self.with)));
        }
        if let Some([least, most]) = self.utilisation {
            line(format!("utilisation = \"{least:.2}..{most:.2}\""));
        }
        for truth in &self.truth {
            line(format!("# {truth}"));
        }
        text
    }

    fn arguments(&self) -> String {
        let mut all = format!("-t {:.0}", self.seconds);
        if self.reversed {
            all.push_str(" -R");
        }
        if self.streams > 1 {
            let _ = write!(all, " -P {}", self.streams);
        }
        if let Some(mss) = self.mss {
            let _ = write!(all, " -M {mss}");
        }
        if !self.args.is_empty() {
            let _ = write!(all, " {}", self.args);
        }
        all
    }
}

fn quoted(ids: &[&str]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("\"{id}\"")).collect();
    ids.join(", ")
}
