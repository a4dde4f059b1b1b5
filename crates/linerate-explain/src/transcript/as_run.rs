//! A test's intervals as the record of a run, which the rules judge as they judge our own.
//!
//! Where each interval of each sending stream has a round-trip time, a congestion window and retransmits (iperf3's JSON,
//! `iperf -e`), little is missing: the kernel's clocks and the bytes in flight. By Little's law rate × round-trip time
//! was in flight on average. Where that fills the smaller window ([`Windows`]), that window limited: the peer's, or the
//! congestion window. Where it does not, the output does not show what limited, and the record has no clocks: then
//! the rules see the CPU alone.
//!
//! Between samples a second apart single losses and round trips do not show, so the record has no column from which the
//! rules would take them. The least round-trip time that was printed may hold a queue itself. So a queue is also taken from
//! windows and round trips that vary while the rate stays, and none is ruled out where the round trips vary.

use std::collections::BTreeMap;

use linerate_analysis::evidence::Evidence;
use linerate_analysis::statistics::{mean, quantile};
use linerate_model::column::Column;
use linerate_model::finding::{Finding, Severity};
use linerate_model::plan::{Direction, End, MAX_STREAMS, Plan};
use linerate_model::record::{
    ControlFacts, CpuUse, EndRecord, Flow, HostFacts, Kind, Outcome, Role, RunRecord,
    SCHEMA_VERSION, Software, StreamRecord,
};
use linerate_model::series::Series;
use linerate_model::transcript::{Given, Row, Side, Span, Stream};
use linerate_model::units::{BitRate, Nanos, whole};

use super::digest::{Digest, variation};
use super::title::USUAL_BLOCK;
use super::windows::Windows;
use crate::draft::Draft;

/// Fewer intervals have no plateau.
const LEAST_ROWS: usize = 3;
/// Round trips of which 9 in 10 are within this ratio of the least are those of a path without a queue.
const VARIES: f64 = 1.1;
/// A rate that varies by less, standard deviation over mean, stays.
const STAYS: f64 = 0.03;
/// Rates are laid on a grid of this many points an interval, within each of which they are even.
const POINTS: u64 = 10;
/// From this version on iperf3 has a thread for each stream.
const THREADS_SINCE: (u32, u32) = (3, 16);
/// A segment where its size is not printed, bytes.
const USUAL_SEGMENT: f64 = 1448.0;

/// What the rules say of the intervals. Nothing where they do not hold enough, or where no rule knows the cause.
pub(super) fn judge(digest: &Digest<'_>, given: &Given) -> Vec<Finding> {
    let Some(sent) = Sent::of(digest, given) else {
        return Vec::new();
    };
    let Some(record) = sent.record() else {
        return Vec::new();
    };
    let mut findings = crate::explain(&Evidence::of(&record));
    // What the output lacks, and how its rates vary, is said of printed intervals ([`super::levels`]).
    findings.retain(|finding| {
        !matches!(finding.id.as_str(), "cannot-tell" | "unstable" | "bimodal")
            && (finding.id != "stall" || sent.shows_stalls())
    });
    if findings.iter().any(|finding| finding.id == "network-loss") && sent.round_trips_vary() {
        // The losses may be those of a queue that the least round trip holds as well.
        findings.retain(|finding| finding.severity == Severity::Note);
        findings.extend(sent.full());
    }
    findings
}

/// One interval of a stream, with all that is needed.
struct Interval<'a> {
    row: &'a Row,
    rtt_us: f64,
    congestion_window: f64,
    retransmits: u64,
}

impl<'a> Interval<'a> {
    fn of(row: &'a Row) -> Option<Self> {
        Some(Self {
            row,
            rtt_us: row.rtt_us?.value,
            congestion_window: row.window_bytes?.value,
            retransmits: row.retransmits?,
        })
    }

    /// Whether the peer's window is the smaller one.
    fn by_receive_window(&self) -> bool {
        let window = self.row.receive_window_bytes;
        window.is_some_and(|window| window.value < self.congestion_window)
    }
}

/// A direction of the record that is being made.
struct Sent<'a> {
    digest: &'a Digest<'a>,
    role: Role,
    streams: Vec<(u32, Vec<Interval<'a>>)>,
    /// Least round-trip time that was printed or given, µs.
    least_rtt_us: f64,
    mss: f64,
}

fn end_ns(row: &Row) -> u64 {
    whole(row.end_s.value * 1e9)
}

impl<'a> Sent<'a> {
    fn of(digest: &'a Digest<'a>, given: &Given) -> Option<Self> {
        let many = digest.streams.len() > usize::from(MAX_STREAMS);
        if many || digest.is_udp() || !digest.printed_by_the_sender() {
            return None;
        }
        let streams: Vec<(u32, Vec<Interval<'_>>)> = digest
            .streams
            .iter()
            .map(|id| {
                let rows = digest.intervals.get(&Stream::One(*id))?;
                let rows = rows.iter().map(|row| Interval::of(row));
                Some((*id, rows.collect::<Option<Vec<_>>>()?))
            })
            .collect::<Option<_>>()?;
        let sound = |rows: &[Interval<'_>]| {
            let sorted = rows.is_sorted_by(|a, b| end_ns(a.row) < end_ns(b.row));
            rows.len() >= LEAST_ROWS && sorted && end_ns(rows[0].row) > 0
        };
        if streams.is_empty() || !streams.iter().all(|(_, rows)| sound(rows)) {
            return None;
        }
        let rows = digest
            .test
            .rows
            .iter()
            .filter(|row| row.span != Span::Total);
        let printed = rows.filter_map(|row| Some(row.rtt_us?.value));
        let connect = digest.test.connect_ms.map(|ms| ms * 1e3);
        let given = given.rtt.map(|rtt| rtt.as_secs_f64() * 1e6).or(connect);
        Some(Self {
            digest,
            role: match digest.test.side {
                Some(Side::Server) => Role::Server,
                _ => Role::Client,
            },
            streams,
            least_rtt_us: printed.chain(given).fold(f64::INFINITY, f64::min),
            mss: digest.test.mss_bytes.unwrap_or(USUAL_SEGMENT),
        })
    }

    fn rows(&self) -> impl Iterator<Item = &'a Row> {
        let intervals = self.streams.iter().flat_map(|(_, rows)| rows);
        intervals.map(|interval| interval.row)
    }

    fn software(&self) -> Software {
        Software {
            name: self.digest.test.tool.name().into(),
            version: self.digest.test.version.clone().unwrap_or_default(),
        }
    }

    fn plan(&self) -> Option<Plan> {
        let asked = &self.digest.test.asked;
        let mut plan = Plan::new(self.digest.peer());
        plan.direction = match self.role {
            Role::Client => Direction::Send,
            Role::Server => Direction::Receive,
        };
        plan.streams = u16::try_from(self.streams.len()).ok()?;
        let length = self.rows().map(end_ns).max()?;
        plan.end = End::TimeNs(Nanos(whole((length as f64 / 1e9).round() * 1e9)));
        plan.rate_bps = asked.rate_bps.map(|bps| BitRate(whole(bps)));
        let shortest = self.rows().map(|row| whole(row.seconds() * 1e9)).min()?;
        plan.sample_ns = Nanos((shortest / POINTS).max(1));
        Some(plan)
    }

    /// Whether a time without bytes is one: a program that writes in blocks shows none within the time of a block.
    fn shows_stalls(&self) -> bool {
        let block = self.digest.test.asked.length_bytes.unwrap_or(USUAL_BLOCK);
        let each = self.digest.average().unwrap_or(0.0) / 8.0 / self.streams.len() as f64;
        each >= 2.0 * block
    }

    /// The least round-trip time, and the one that 9 of 10 samples do not exceed, µs.
    fn round_trips(&self) -> [f64; 2] {
        let samples = self.streams.iter().flat_map(|(_, rows)| rows);
        let samples: Vec<f64> = samples.map(|interval| interval.rtt_us).collect();
        let high = quantile(&samples, 0.9).unwrap_or(0.0);
        [self.least_rtt_us, high]
    }

    fn round_trips_vary(&self) -> bool {
        let [least, high] = self.round_trips();
        high >= VARIES * least
    }

    /// `path-full`, where the rate stays although windows and round trips vary: what is more in flight waits in a queue.
    fn full(&self) -> Option<Finding> {
        let later: Vec<f64> = self
            .digest
            .rates
            .iter()
            .skip(1)
            .map(|each| each.bps)
            .collect();
        variation(&later).filter(|share| *share < STAYS)?;
        let [least, high] = self.round_trips().map(|us| Nanos(whole(us * 1e3)));
        let rate = mean(&later);
        let sentence = format!(
            "The path is full at {}: the rate stays while the RTT varies with the congestion window ({least} to \
             {high}), so a queue stands in the path",
            self.digest.rate(rate)
        );
        Draft::new("path-full", Severity::Healthy, sentence)
            .figure("rate after the first interval, bit/s", rate, "all streams")
            .figure("least rtt printed, µs", self.least_rtt_us, "sender")
            .figure(
                "rtt that 9 of 10 samples do not exceed, µs",
                self.round_trips()[1],
                "sender",
            )
            .done()
    }

    fn record(&self) -> Option<RunRecord> {
        let end = EndRecord {
            role: self.role,
            software: self.software(),
            host: HostFacts::default(),
            interface: None,
            start_ns: Nanos(0),
            end_ns: Nanos(self.rows().map(end_ns).max()?),
            cpu: CpuUse::default(),
            streams: self.stream_records()?,
            counters: Series::default(),
            interface_counters: None,
            protocol_growth: BTreeMap::new(),
            stage: None,
        };
        let (client, server) = match self.role {
            Role::Client => (Some(end), None),
            Role::Server => (None, Some(end)),
        };
        Some(RunRecord {
            schema_version: SCHEMA_VERSION,
            kind: Kind::Transcript,
            written_by: self.role,
            software: self.software(),
            started_at_unix_ms: 0,
            plan: self.plan()?,
            outcome: Outcome::Completed,
            cookie: "".into(),
            control: ControlFacts::default(),
            client,
            server,
            peer_results: None,
            clock: None,
            notes: Vec::new(),
            latency: None,
            counter_runs: Vec::new(),
            cells: Vec::new(),
            host_names: None,
        })
    }

    /// CPU time of a stream's thread, ns: where one thread serves all streams, that thread's.
    fn thread_ns(&self) -> u64 {
        let test = self.digest.test;
        let Some(percent) = test.cpu_percent else {
            return 0;
        };
        let numbers = test.version.as_deref().and_then(|version| {
            let (major, rest) = version.split_once('.')?;
            let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        });
        let threads = if numbers.is_none_or(|numbers: (u32, u32)| numbers >= THREADS_SINCE) {
            self.streams.len() as f64
        } else {
            1.0
        };
        let length = self.rows().map(end_ns).max().unwrap_or(0) as f64;
        whole(percent / 100.0 * length / threads)
    }

    fn stream_records(&self) -> Option<Vec<StreamRecord>> {
        let clocked = Windows::of(self.digest)?.are_filled();
        let record = |(id, rows): &(u32, Vec<Interval<'_>>)| {
            let test = self.digest.test;
            let connection = test.connections.iter().find(|one| one.id == *id);
            let address = |far: bool| {
                connection.map_or_else(String::new, |one| {
                    if far {
                        format!("{}:{}", one.remote, one.remote_port)
                    } else {
                        format!("{}:{}", one.local, one.local_port)
                    }
                })
            };
            let samples = self.samples(rows, clocked)?;
            Some(StreamRecord {
                id: *id,
                flow: Flow::sent_by(self.role),
                sends: true,
                local: address(false).into(),
                remote: address(true).into(),
                congestion: test.congestion.clone(),
                mss_bytes: u32::try_from(whole(self.mss)).ok(),
                path_mtu_bytes: test
                    .path_mtu_bytes
                    .and_then(|bytes| u32::try_from(whole(bytes)).ok()),
                window_asked_bytes: None,
                send_buffer_bytes: None,
                receive_buffer_bytes: None,
                first_byte_ns: samples.at_ns().first().copied().map(Nanos),
                last_byte_ns: samples.at_ns().last().copied().map(Nanos),
                omit_until_ns: None,
                app_bytes: samples.last(Column::app_bytes)?,
                omitted_bytes: 0,
                file_bytes: None,
                cookie_bytes: 0,
                active_opener: self.role == Role::Client,
                unread_bytes: None,
                drained: false,
                tcp: None,
                udp: None,
                spliced: false,
                zerocopy: None,
                cpu: CpuUse {
                    user_ns: self.thread_ns(),
                    system_ns: 0,
                },
                samples,
                thinned: 1,
                sampling_ns: 0,
                error: None,
                too_long: false,
            })
        };
        self.streams.iter().map(record).collect()
    }

    /// A sample at the end of each interval, and one at the beginning of the first.
    fn samples(&self, rows: &[Interval<'_>], clocked: bool) -> Option<Series> {
        let start = whole(rows.first()?.row.start_s.value * 1e9);
        let ends = rows.iter().map(|interval| end_ns(interval.row));
        let mut series = Series::new(std::iter::once(start).chain(ends).collect());
        let mut insert = |column: Column, values: Vec<u64>| series.insert(column, values).ok();
        let gauge = |of: &dyn Fn(&Interval<'_>) -> f64| -> Vec<u64> {
            let first = rows.first().into_iter();
            first.chain(rows).map(|row| whole(of(row))).collect()
        };
        let counter = |of: &dyn Fn(&Interval<'_>) -> f64| -> Vec<u64> {
            let sums = rows.iter().scan(0.0, |sum, row| {
                *sum += of(row);
                Some(whole(*sum))
            });
            std::iter::once(0).chain(sums).collect()
        };
        let (mss, least) = (self.mss, self.least_rtt_us);
        let again = |interval: &Interval<'_>| interval.retransmits as f64;
        let bytes = |interval: &Interval<'_>| interval.row.bytes.value;
        insert(Column::app_bytes, counter(&bytes))?;
        insert(Column::rtt_us, gauge(&|interval| interval.rtt_us))?;
        insert(Column::min_rtt_us, gauge(&|_| least))?;
        insert(Column::snd_mss_bytes, gauge(&|_| mss))?;
        insert(
            Column::snd_cwnd_packets,
            gauge(&|interval| interval.congestion_window / mss),
        )?;
        insert(Column::total_retrans_packets, counter(&again))?;
        let segments = |interval: &Interval<'_>| bytes(interval) / mss + again(interval);
        insert(Column::data_segs_out, counter(&segments))?;
        if rows
            .iter()
            .all(|row| row.row.receive_window_bytes.is_some())
        {
            let window = |interval: &Interval<'_>| {
                interval
                    .row
                    .receive_window_bytes
                    .map_or(0.0, |window| window.value)
            };
            insert(Column::snd_wnd_bytes, gauge(&window))?;
        }
        if clocked {
            let micros = |interval: &Interval<'_>| interval.row.seconds() * 1e6;
            let held = |interval: &Interval<'_>| {
                if interval.by_receive_window() {
                    micros(interval)
                } else {
                    0.0
                }
            };
            insert(Column::busy_time_us, counter(&micros))?;
            insert(Column::rwnd_limited_us, counter(&held))?;
            insert(Column::sndbuf_limited_us, counter(&|_| 0.0))?;
        }
        Some(series)
    }
}
