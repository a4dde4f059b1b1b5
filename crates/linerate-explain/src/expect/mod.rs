//! What a healthy path gives, computed from a few figures before anything is measured.
//!
//! The path is one link of a rate with a round trip and nothing else on it; both hosts are as the settings say
//! and never the limit by their CPUs. What that leaves out stands in the answer's notes. Framing is exact
//! arithmetic, windows follow the kernel's rules for buffers, loss the response functions, the ramp is followed
//! round by round.
//!
//! ```
//! use linerate_explain::expect::{expect, question};
//! use linerate_model::expectation::{Bound, HostSettings};
//! use linerate_model::units::{BitRate, Nanos};
//!
//! let asked = question(BitRate(1_000_000_000), Nanos::from_millis(60));
//! let small = HostSettings { tcp_rmem: Some([4096, 131_072, 1 << 20]), tcp_wmem: Some([4096, 16_384, 16 << 20]), ..Default::default() };
//! let answer = expect(&asked, &small)?;
//! assert_eq!(answer.framing.goodput_bps.round(), 941_482_445.0);
//! assert_eq!(answer.configured.map(|course| course.bound), Some(Bound::ReceiveWindow));
//! assert_eq!(answer.tuned.bound, Bound::Path);
//! # Ok::<(), linerate_explain::expect::ExpectError>(())
//! ```

mod buffers;
mod ramp;

use linerate_model::expectation::{
    Bound, Course, Expectation, Framing, HostSettings, LossBudget, Need, Question,
};
use linerate_model::plain_text::PlainText;
use linerate_model::plan::MAX_STREAMS;
use linerate_model::units::{BitRate, Bytes, Nanos};

use crate::facts::response;
use crate::words;

/// Preamble 8, Ethernet header 14, frame check 4, gap 12: IEEE 802.3.
const FRAMING: u32 = 38;
/// TCP's header; with timestamps its options take 12 more (RFC 7323, padded).
const TCP: u32 = 20;
const TIMESTAMPS: u32 = 12;
/// Least MTU of IPv4 that leaves a payload worth the name (RFC 791: 576 must be taken), and of IPv6 (RFC 8200).
const LEAST_MTU: [u32; 2] = [128, 1280];
const MOST_MTU: u32 = 65_535;
/// Longest round trip and test that are believed.
const MOST_RTT: Nanos = Nanos::from_millis(60_000);
const MOST_TIME: Nanos = Nanos::from_millis(86_400_000);
/// The largest buffer that can be asked for: the kernel doubles it and counts it in an `int` (`sock_setsockopt`).
const MOST_ASKED: Bytes = Bytes((1 << 30) - 1);
/// The largest share of lost packets that the response functions are good for.
const MOST_LOSS: f64 = 0.1;
/// The largest window that TCP can tell: 65,535 << 14 (RFC 7323 §2.3).
const MOST_WINDOW: f64 = 1_073_725_440.0;
/// The congestion window falls to this share after a loss.
const CUBIC_FALLS_TO: f64 = 0.7;
/// CUBIC's C, segments/s³.
const CUBIC_C: f64 = 0.4;

/// A question that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {reason}")]
pub struct ExpectError {
    /// The option at fault, as typed.
    pub option: &'static str,
    /// What is wrong and what would be right.
    pub reason: String,
}

/// A question with everything but rate and round trip at its default: MTU 1500, IPv4, one stream, CUBIC, 10 s.
pub fn question(rate: BitRate, rtt: Nanos) -> Question {
    Question {
        rate_bps: rate,
        rtt_ns: rtt,
        mtu_bytes: 1500,
        ipv6: false,
        streams: 1,
        time_ns: Nanos::from_millis(10_000),
        window_bytes: None,
        loss: None,
        congestion: "cubic".to_owned(),
    }
}

/// Answers, or says which figure of the question cannot be.
pub fn expect(asked: &Question, settings: &HostSettings) -> Result<Expectation, ExpectError> {
    check(asked)?;
    let path = Path::of(asked, settings);
    let need = path.need();
    let as_it_is = buffers::configured(asked, settings);
    let tuned = path.course(&buffers::tuned(asked, settings, &need));
    let configured = as_it_is.map(|limits| path.course(&limits));
    Ok(Expectation {
        question: asked.clone(),
        settings: settings.clone(),
        framing: path.framing,
        bdp_bytes: words::whole(asked.rate_bps.0 as f64 * path.rtt_s / 8.0),
        need,
        loss: path.loss_budget(),
        queue_bytes: path.queue_bytes(),
        notes: path.notes(settings, configured.as_ref(), &tuned),
        configured,
        tuned,
    })
}

fn check(asked: &Question) -> Result<(), ExpectError> {
    let refuse = |option, reason: String| Err(ExpectError { option, reason });
    if asked.rate_bps.0 == 0 {
        return refuse("--rate", "a path of 0 bit/s carries nothing".to_owned());
    }
    if asked.rtt_ns.0 == 0 || asked.rtt_ns > MOST_RTT {
        let reason = format!(
            "a round trip of {} requested; more than 0 and at most {MOST_RTT} is possible",
            asked.rtt_ns
        );
        return refuse("--rtt", reason);
    }
    let least = LEAST_MTU[usize::from(asked.ipv6)];
    if !(least..=MOST_MTU).contains(&asked.mtu_bytes) {
        let reason = format!(
            "packets of {} bytes requested; {least} to {MOST_MTU} are possible",
            asked.mtu_bytes
        );
        return refuse("--mtu", reason);
    }
    if asked.streams == 0 || asked.streams > MAX_STREAMS {
        let reason = format!(
            "{} streams requested; 1 to {MAX_STREAMS} can be run",
            asked.streams
        );
        return refuse("-P", reason);
    }
    if asked.time_ns.0 == 0 || asked.time_ns > MOST_TIME {
        let reason = format!(
            "a test of {} requested; more than 0 and at most 86400 s is possible",
            asked.time_ns
        );
        return refuse("-t", reason);
    }
    if asked.window_bytes == Some(Bytes(0)) {
        return refuse("--window", "a window of 0 bytes carries nothing".to_owned());
    }
    if asked.window_bytes > Some(MOST_ASKED) {
        let reason = format!(
            "buffers of {} requested; a kernel accepts at most {MOST_ASKED}",
            asked.window_bytes.unwrap_or_default()
        );
        return refuse("--window", reason);
    }
    if asked.loss.is_some_and(|share| share > MOST_LOSS) {
        return refuse(
            "--loss",
            "above 10 % packet loss timeouts decide, and no formula applies: at most 0.1 is accepted"
                .to_owned(),
        );
    }
    if asked.loss.is_some_and(|share| !(0.0..1.0).contains(&share)) {
        return refuse(
            "--loss",
            "give a share of the packets, from 0 to less than 1, such as 1e-6 or 0.01%".to_owned(),
        );
    }
    Ok(())
}

/// What is in force for a stream: bytes that its window offers and its send buffer holds, least and most.
#[derive(Debug, Clone, Copy)]
struct Limits {
    window: [f64; 2],
    send: [f64; 2],
}

/// The question, with what follows from it.
struct Path<'a> {
    asked: &'a Question,
    framing: Framing,
    rtt_s: f64,
    streams: f64,
}

impl<'a> Path<'a> {
    fn of(asked: &'a Question, settings: &HostSettings) -> Self {
        let timestamps = settings.timestamps.unwrap_or(true);
        let options = if timestamps { TIMESTAMPS } else { 0 };
        let address = if asked.ipv6 { 40 } else { 20 };
        let payload = asked.mtu_bytes - address - TCP - options;
        let wire = asked.mtu_bytes + FRAMING;
        let share = f64::from(payload) / f64::from(wire);
        Self {
            asked,
            framing: Framing {
                payload_bytes: payload,
                wire_bytes: wire,
                timestamps,
                goodput_bps: asked.rate_bps.0 as f64 * share,
            },
            rtt_s: asked.rtt_ns.as_secs_f64(),
            streams: f64::from(asked.streams),
        }
    }

    fn mss(&self) -> f64 {
        f64::from(self.framing.payload_bytes)
    }

    /// Payload that one stream has in flight at its share of the path, bytes.
    fn in_flight(&self) -> f64 {
        self.framing.goodput_bps / self.streams * self.rtt_s / 8.0
    }

    fn need(&self) -> Need {
        let in_flight = self.in_flight();
        let receive = in_flight / buffers::LEAST_OFFERED;
        let send = in_flight / buffers::LEAST_FILLED;
        let together = in_flight * self.streams;
        Need {
            in_flight_bytes: words::whole(in_flight),
            receive_buffer_bytes: words::whole(receive.ceil()),
            send_buffer_bytes: words::whole(send.ceil()),
            advised_rmem_bytes: buffers::advised(receive),
            advised_wmem_bytes: buffers::advised(send),
            least_streams: u16::try_from(words::whole((together / MOST_WINDOW).ceil()).max(1))
                .unwrap_or(u16::MAX),
        }
    }

    /// How a test goes with these limits.
    fn course(&self, limits: &Limits) -> Course {
        let carries = |bytes: f64| bytes.min(MOST_WINDOW) * 8.0 / self.rtt_s * self.streams;
        let path = self.framing.goodput_bps;
        let loss = self.loss_allows_bps().unwrap_or(f64::INFINITY);
        let bounds = |end: usize| {
            [
                (path, Bound::Path),
                (carries(limits.window[end]), Bound::ReceiveWindow),
                (carries(limits.send[end]), Bound::SendBuffer),
                (loss, Bound::Loss),
            ]
            .into_iter()
            .reduce(|a, b| if b.0 < a.0 { b } else { a })
            .unwrap_or((path, Bound::Path))
        };
        let (low, high) = (bounds(0), bounds(1));
        let plateau = [low.0, high.0];
        let (mss, streams) = (self.mss(), self.streams);
        let each = path / streams;
        // Random loss ends slow start somewhere below: nothing can be said of a ramp.
        let ramp =
            (low.1 != Bound::Loss).then(|| ramp::of(self.asked, mss, each, high.0 / streams));
        let whole = |end: usize, slowest: bool| {
            if ramp.is_none() {
                return plateau[end];
            }
            streams * ramp::average(self.asked, mss, each, plateau[end] / streams, slowest)
        };
        Course {
            window_bytes: limits.window.map(words::whole),
            send_bytes: limits.send.map(words::whole),
            plateau_bps: plateau,
            bound: low.1,
            whole_run_bps: [whole(0, true), whole(1, false)],
            ramp,
        }
    }

    /// What the loss that was asked about allows all streams, bit/s.
    fn loss_allows_bps(&self) -> Option<f64> {
        let share = self.asked.loss.filter(|share| *share > 0.0)?;
        let one = response::rate(&self.asked.congestion, self.mss(), self.rtt_s, share);
        one.is_finite().then_some(one * self.streams)
    }

    fn loss_budget(&self) -> LossBudget {
        let algorithm = self.asked.congestion.as_str();
        let each = self.framing.goodput_bps / self.streams;
        let window = self.in_flight() / self.mss();
        let share = self.asked.loss.filter(|share| *share > 0.0);
        let longest = share
            .map(|share| response::longest_rtt_s(algorithm, self.mss(), share, each))
            .filter(|rtt| *rtt <= MOST_RTT.as_secs_f64());
        let recovery = match algorithm {
            // A segment a round trip, from half.
            "reno" => Some(window / 2.0 * self.rtt_s),
            _ if algorithm.starts_with("bbr") => None,
            // RFC 9438 §4.2: K.
            _ => Some((window * (1.0 - CUBIC_FALLS_TO) / CUBIC_C).cbrt()),
        };
        LossBudget {
            bears: response::bearable(algorithm, self.mss(), self.rtt_s, each),
            allows_bps: self.loss_allows_bps(),
            longest_rtt_ns: longest.map(|rtt| Nanos::from_secs_f64(rtt).0),
            recovery_ns: recovery.map(|time| Nanos::from_secs_f64(time).0),
        }
    }

    /// What must wait in front of the link so that it stays busy when the window falls: (1/β − 1) of the
    /// product of rate and round trip, by the root of the number of streams less where they fall at different
    /// times (Appenzeller et al., SIGCOMM 2004).
    fn queue_bytes(&self) -> Option<u64> {
        let falls_to = match self.asked.congestion.as_str() {
            "reno" => 0.5,
            name if name.starts_with("bbr") => return None,
            _ => CUBIC_FALLS_TO,
        };
        let bdp = self.asked.rate_bps.0 as f64 * self.rtt_s / 8.0;
        Some(words::whole(
            (1.0 / falls_to - 1.0) * bdp / self.streams.sqrt(),
        ))
    }

    fn notes(
        &self,
        settings: &HostSettings,
        configured: Option<&Course>,
        tuned: &Course,
    ) -> Vec<String> {
        let algorithm = self.asked.congestion.as_str();
        let mut notes = Vec::new();
        if configured.is_none() {
            notes.push(
                "this host's settings of socket buffers could not be read, so there is no prediction for its present \
                 settings"
                    .to_owned(),
            );
        }
        if tuned
            .ramp
            .is_some_and(|ramp| ramp.hystart && ramp.ns[0] < ramp.ns[1])
        {
            notes.push(
                "the longer ramp is that of HyStart, which may leave slow start at half of what fills the path"
                    .to_owned(),
            );
        }
        if algorithm.starts_with("bbr") {
            notes.push(
                "BBR follows bandwidth and RTT, not loss: version 1 tolerates 15 to 20 %, version 3 about 2 %, and \
                 both have the same name; no formula is known here for its rate under loss or the queue that it needs"
                    .to_owned(),
            );
        } else if !matches!(algorithm, "cubic" | "reno") {
            notes.push(format!(
                "no response to loss is known for {}: it is calculated as CUBIC",
                algorithm.chars().take(32).collect::<PlainText>()
            ));
        }
        if settings.moderate_rcvbuf == Some(false) && self.asked.window_bytes.is_none() {
            notes.push(
                "tcp_moderate_rcvbuf is off: the receive buffer stays at the second value of tcp_rmem".to_owned(),
            );
        }
        if settings.window_scaling == Some(false) {
            notes.push(
                "tcp_window_scaling is off: no window is larger than 64 KiB, on either column"
                    .to_owned(),
            );
        }
        if self.asked.window_bytes.is_some() {
            notes.push(
                "requested buffers switch autotuning off; both hosts must grant them (net.core.rmem_max, wmem_max)"
                    .to_owned(),
            );
        }
        if self.need().least_streams > self.asked.streams {
            notes.push(format!(
                "TCP's largest window is 1 GiB: at least {} streams are needed to fill this path",
                self.need().least_streams
            ));
        }
        notes.push(
            "not in these figures: the hosts' CPUs, interfaces and disks, other traffic, shapers and policers, and a \
             peer with other settings"
                .to_owned(),
        );
        notes
    }
}

#[cfg(test)]
mod tests;
