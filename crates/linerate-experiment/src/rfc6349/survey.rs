//! Which run comes next, and what the report makes of those that were made.

use linerate_analysis::evidence::Evidence;
use linerate_model::plan::{End, Plan, Protocol};
use linerate_model::record::{Outcome, RunRecord};
use linerate_model::units::{BitRate, Bytes, Nanos, whole};

use super::metrics::{self, HEADERS, TIMESTAMPS};
use super::probes::{Fate, LARGEST, Search, below, fate};
use super::{Found, Metrics, Report, Throughput};

/// Windows, as shares of the bandwidth-delay product.
const SWEEP: [f64; 5] = [0.25, 0.5, 0.75, 1.0, 1.25];
/// Connections that find the bottleneck, and that share one window afterwards.
const SEVERAL: u16 = 4;
/// A probe of datagrams, and the quiet run: length and rate.
const PROBE: Nanos = Nanos::from_millis(300);
const PROBE_RATE: BitRate = BitRate(1_000_000);
const QUIET: Nanos = Nanos::from_millis(1000);
/// What a run takes beside its own time.
const AROUND: Nanos = Nanos::from_millis(1000);
/// The RFC advises runs of at least this length (§3.3).
const ADVISED: Nanos = Nanos::from_millis(30_000);
/// Smallest window that is asked for, bytes.
const LEAST_WINDOW: u64 = 8192;

/// A run that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Datagrams of this size of IP packet, not to be cut.
    Probe {
        /// Bytes.
        mtu: u32,
    },
    /// Little load, for the base round trip.
    Quiet,
    /// Several connections, for the bottleneck.
    Bottleneck,
    /// A window of this share of the bandwidth-delay product, shared by so many connections.
    Window {
        /// Of the bandwidth-delay product, 0.25 to 1.25.
        share: f64,
        /// How many share it.
        connections: u16,
    },
    /// No window asked for: as far as autotuning goes, where the hosts grant no socket of the product's size.
    Autotuned,
}

/// What a run gave: its record, or why there is none.
pub type Gave = Result<RunRecord, String>;

/// The steps, one after the other.
#[derive(Debug, Clone)]
pub struct Survey {
    base: Plan,
    /// MTU of the sender's interface towards its peer; `None` = not known.
    interface_mtu: Option<u32>,
    /// Bytes of IP and UDP headers.
    udp_headers: u32,
    waiting: Vec<Step>,
    search: Search,
    report: Report,
    /// The largest socket buffer that the hosts grant, bytes.
    granted: Option<u64>,
    /// Whether windows are swept once the path is known.
    sweeps: bool,
}

impl Survey {
    /// A survey of the path of `plan`, whose length each throughput run has.
    pub fn new(plan: &Plan) -> Self {
        Self {
            base: plan.clone(),
            interface_mtu: None,
            udp_headers: 28,
            waiting: vec![Step::Bottleneck, Step::Quiet],
            search: Search::default(),
            report: Report::default(),
            granted: None,
            sweeps: true,
        }
    }

    /// Only what the path is: its round trip, its largest packet, its bottleneck.
    pub(crate) fn of_path(plan: &Plan) -> Self {
        Self {
            sweeps: false,
            ..Self::new(plan)
        }
    }

    /// What was found until now.
    pub(crate) fn so_far(&self) -> &Report {
        &self.report
    }

    /// What the quiet run says of the way to the peer, and the probes that follow from it, the largest one first.
    fn prepare_probes(&mut self, record: &RunRecord) {
        let sender = record.plan.flow_of(0).sender();
        let interface = record.end(sender).and_then(|end| end.interface.as_ref());
        self.interface_mtu = interface.and_then(|interface| interface.mtu_bytes);
        if record.control.remote.starts_with('[') {
            self.udp_headers = 48;
        }
        let largest = self.interface_mtu.unwrap_or(1500).min(LARGEST);
        let sizes = below(largest).rev();
        self.waiting.extend(sizes.map(|mtu| Step::Probe { mtu }));
        self.waiting.push(Step::Probe { mtu: largest });
    }

    /// Throughput runs that a whole survey makes, and the time that all of it takes, about: the probes are short.
    pub fn announced(&self) -> (usize, Nanos) {
        let runs = SWEEP.len() + 2;
        let each = self.span(&Step::Bottleneck).plus(AROUND);
        let total = each.0.saturating_mul(runs as u64);
        (runs, Nanos(total).plus(QUIET).plus(AROUND).plus(AROUND))
    }

    fn span(&self, step: &Step) -> Nanos {
        match step {
            Step::Probe { .. } => PROBE,
            Step::Quiet => QUIET,
            Step::Bottleneck | Step::Window { .. } | Step::Autotuned => match self.base.end {
                End::TimeNs(span) => span,
                End::Bytes(_) | End::Blocks(_) => Nanos::from_millis(10_000),
            },
        }
    }

    /// The next run; `None` = there is none.
    pub fn upcoming(&self) -> Option<(Step, Plan)> {
        let step = self.waiting.last()?.clone();
        let plan = self.plan(&step);
        Some((step, plan))
    }

    fn plan(&self, step: &Step) -> Plan {
        let mut plan = self.base.clone();
        plan.end = End::TimeNs(self.span(step));
        plan.window_bytes = None;
        plan.rate_bps = None;
        plan.rate_is_default = false;
        plan.streams = 1;
        match step {
            Step::Probe { mtu } => {
                plan.protocol = Protocol::Udp;
                plan.rate_bps = Some(PROBE_RATE);
                plan.block_bytes = Bytes(u64::from(mtu.saturating_sub(self.udp_headers).max(16)));
                plan.dont_fragment = true;
                (plan.mss_bytes, plan.congestion) = (None, None);
                (plan.mptcp, plan.nodelay, plan.zerocopy) = (false, false, false);
                plan.omit_ns = Nanos::ZERO;
            }
            Step::Quiet => plan.rate_bps = Some(PROBE_RATE),
            Step::Bottleneck => plan.streams = SEVERAL,
            Step::Autotuned => {}
            Step::Window { share, connections } => {
                plan.streams = *connections;
                plan.window_bytes = Some(self.window(*share, *connections));
            }
        }
        plan
    }

    /// Window of each connection.
    fn window(&self, share: f64, connections: u16) -> Bytes {
        let bdp = self.report.bdp.map_or(0, Bytes::count) as f64;
        let each = whole(share * bdp / f64::from(connections.max(1)));
        Bytes(each.max(LEAST_WINDOW))
    }

    /// Takes what the last step of [`upcoming`](Self::upcoming) gave.
    pub fn took(&mut self, gave: Gave) {
        let Some(step) = self.waiting.pop() else {
            return;
        };
        match (&step, gave) {
            (Step::Probe { mtu }, gave) => self.probed(*mtu, &gave),
            (_, Err(why)) => {
                let what = step.words();
                self.report.remarks.push(format!("{what} failed: {why}"));
                // Without these nothing else can be computed.
                if matches!(step, Step::Quiet | Step::Bottleneck) {
                    self.waiting.clear();
                }
            }
            (Step::Quiet, Ok(record)) => self.rested(&record),
            (Step::Bottleneck, Ok(record)) => self.filled(&record),
            (Step::Window { share, connections }, Ok(record)) => {
                self.measured(Some(*share), *connections, &record);
            }
            (Step::Autotuned, Ok(record)) => self.measured(None, 1, &record),
        }
    }

    fn probed(&mut self, mtu: u32, gave: &Gave) {
        match fate(gave) {
            Fate::NotRun(why) => return self.probes_end(mtu, &why),
            Fate::Arrived => {
                self.search.arrived = Some(mtu);
                self.waiting.retain(|step| !step.is_probe());
            }
            Fate::Vanished => self.search.vanished = Some(mtu),
        }
        match (self.search.between(), self.search.found()) {
            (Some(mtu), _) => self.waiting.push(Step::Probe { mtu }),
            (None, Some(found)) => self.report.path_mtu = Some(found),
            (None, None) if self.waiting.iter().any(Step::is_probe) => {}
            (None, None) => self.report.remarks.push(format!(
                "no datagram with Don't Fragment arrived, of any size: UDP does not pass, or not on this port{}",
                self.instead()
            )),
        }
    }

    /// A size that could not be tried is none that did not arrive: nothing is known then.
    fn probes_end(&mut self, mtu: u32, why: &str) {
        self.waiting.retain(|step| !step.is_probe());
        let until_then = self
            .search
            .arrived
            .map(|arrived| format!(" ({arrived} bytes arrived)"))
            .unwrap_or_default();
        self.report.remarks.push(format!(
            "the path MTU was not found{until_then}: datagrams of {mtu} bytes of IP could not be tried: {why}{}",
            self.instead()
        ));
    }

    /// What stands in for the path MTU where it was not probed.
    fn instead(&self) -> &'static str {
        if self.sweeps {
            "; the path MTU is the one that the sender's kernel believes in"
        } else {
            ""
        }
    }

    fn rested(&mut self, record: &RunRecord) {
        self.prepare_probes(record);
        let evidence = Evidence::of(record);
        let path = evidence.directions.first().and_then(|one| one.path);
        let least = path.and_then(|path| path.min_rtt_us).or_else(|| {
            let connect = record.control.connect_ns?;
            Some(connect.0 as f64 / 1e3)
        });
        let Some(least) = least.filter(|us| *us > 0.0) else {
            self.report
                .remarks
                .push("no round trip could be measured".to_owned());
            self.waiting.clear();
            return;
        };
        let how = if path.and_then(|path| path.min_rtt_us).is_some() {
            "the minimum that the sending kernel saw at 1 Mbit/s"
        } else {
            "the time that the control connection took to open: the sending kernel is not known"
        };
        self.report.base_rtt = Some(Found {
            value: Nanos(whole(least * 1e3)),
            how: how.to_owned(),
        });
    }

    fn filled(&mut self, record: &RunRecord) {
        let evidence = Evidence::of(record);
        let Some(direction) = evidence.directions.first() else {
            return;
        };
        self.granted = [
            record
                .end(direction.flow.receiver())
                .map(|end| end.host.rmem_max),
            record
                .end(direction.flow.sender())
                .map(|end| end.host.wmem_max),
        ]
        .into_iter()
        .flatten()
        .flatten()
        .min();
        let sender = record.end(direction.flow.sender());
        let stream = sender.and_then(|end| end.streams_of(direction.flow).next());
        if self.report.path_mtu.is_none()
            && let Some(mtu) = stream.and_then(|stream| stream.path_mtu_bytes)
        {
            self.report.path_mtu = Some(Found {
                value: mtu,
                how: "what the sender's kernel believes in (RFC 1191); not probed".to_owned(),
            });
        }
        let mtu = self
            .report
            .path_mtu
            .as_ref()
            .map_or(1500, |found| found.value);
        let rate = direction.plateau.map(|plateau| plateau.estimate.mean);
        let (Some(payload), Some(base)) = (
            rate.filter(|rate| *rate > 0.0),
            self.report.base_rtt.as_ref().map(|found| found.value),
        ) else {
            self.report
                .remarks
                .push("nothing arrived of the run that was to find the bottleneck".to_owned());
            return;
        };
        let headers = HEADERS + TIMESTAMPS;
        let bandwidth = metrics::bandwidth_bps(payload, mtu, headers);
        let bdp = Bytes(whole(bandwidth * base.as_secs_f64() / 8.0));
        self.report.bottleneck = Some(Found {
            value: BitRate(whole(bandwidth)),
            how: format!(
                "plateau of {SEVERAL} connections, {} of payload, with the headers and frames around it; no stateless test",
                BitRate(whole(payload))
            ),
        });
        self.report.achievable_bps = Some(metrics::achievable_bps(bandwidth, mtu));
        self.report.bdp = Some(bdp);
        let span = self.span(&Step::Bottleneck);
        self.report.run_span = Some(span);
        if !self.sweeps {
            return;
        }
        if span < ADVISED {
            self.report.remarks.push(format!(
                "each run measured {span}; section 3.3 advises at least 30 s, so that slow start weighs little (-t 30)"
            ));
        }
        self.plan_sweep();
    }

    /// Windows that the hosts grant, the smallest one first; what they do not grant is left to autotuning.
    fn plan_sweep(&mut self) {
        let granted = |survey: &Self, share, connections| {
            let window = survey.window(share, connections);
            survey.granted.is_none_or(|granted| window.0 <= granted)
        };
        let refused: Vec<String> = SWEEP
            .into_iter()
            .filter(|share| !granted(self, *share, 1))
            .map(|share| format!("{:.0} %", 100.0 * share))
            .collect();
        let several = Step::Window {
            share: 1.0,
            connections: SEVERAL,
        };
        if granted(self, 1.0, SEVERAL) {
            self.waiting.push(several);
        }
        if let (false, Some(most)) = (refused.is_empty(), self.granted) {
            self.waiting.push(Step::Autotuned);
            self.report.remarks.push(format!(
                "windows of {} of the product were not tested: the hosts grant sockets of {} (net.core.rmem_max, \
                 wmem_max); one run leaves the window to autotuning instead",
                refused.join(", "),
                Bytes(most)
            ));
        }
        for share in SWEEP.into_iter().rev() {
            if granted(self, share, 1) {
                self.waiting.push(Step::Window {
                    share,
                    connections: 1,
                });
            }
        }
    }

    /// `share`: of the product; `None` = autotuned.
    fn measured(&mut self, share: Option<f64>, connections: u16, record: &RunRecord) {
        let window = share.map(|share| self.window(share, connections));
        let evidence = Evidence::of(record);
        let Some(direction) = evidence.directions.first() else {
            return;
        };
        if record.outcome != Outcome::Completed {
            self.report
                .remarks
                .push("a run did not come to its end; its figures are those until then".to_owned());
        }
        let base = self
            .report
            .base_rtt
            .as_ref()
            .map_or(Nanos::ZERO, |found| found.value);
        let path = direction.path.unwrap_or_default();
        let asked = window.map_or(f64::INFINITY, |window| {
            window.0.saturating_mul(u64::from(connections)) as f64
        });
        // The kernel grants more than was asked for: what really was in flight decides what was possible.
        let flight = path
            .in_flight_bytes
            .map(|bytes| bytes * f64::from(connections));
        let achieved = direction.whole_run_bps().unwrap_or(0.0);
        let achievable = self.report.achievable_bps.unwrap_or(f64::INFINITY);
        let ideal = metrics::ideal_bps(
            flight.map_or(asked, |flight| flight.max(asked)),
            base.as_secs_f64(),
            achievable,
        );
        let total = &direction.ledger.total;
        let bytes = total.bytes_sent.zip(total.bytes_retrans);
        self.report.runs.push(Throughput {
            window,
            share_of_bdp: share,
            connections,
            in_flight_bytes: path.in_flight_bytes,
            achieved_bps: achieved,
            ideal_bps: ideal,
            metrics: Metrics {
                transfer_time_ratio: metrics::transfer_time_ratio(achieved, ideal),
                efficiency_percent: bytes
                    .and_then(|(sent, again)| metrics::efficiency_percent(sent, again)),
                buffer_delay_percent: path
                    .rtt_us
                    .and_then(|rtt| metrics::buffer_delay_percent(rtt, base.0 as f64 / 1e3)),
            },
        });
    }

    /// The user wants no more: what was measured is the report.
    pub fn stopped(&mut self) {
        self.waiting.clear();
        self.report
            .remarks
            .push("stopped by the user; what was measured until then is here".to_owned());
    }

    /// What was measured.
    pub fn report(self) -> Report {
        self.report
    }
}

impl Step {
    fn is_probe(&self) -> bool {
        matches!(self, Self::Probe { .. })
    }

    /// What it is, in words.
    pub fn words(&self) -> String {
        match self {
            Self::Probe { mtu } => format!("datagrams of {mtu} bytes of IP with Don't Fragment"),
            Self::Quiet => "base round trip, at 1 Mbit/s".to_owned(),
            Self::Bottleneck => format!("bottleneck, with {SEVERAL} connections"),
            Self::Autotuned => "window left to autotuning, one connection".to_owned(),
            Self::Window { share, connections } => {
                let connections = match connections {
                    1 => "one connection".to_owned(),
                    more => format!("{more} connections together"),
                };
                format!(
                    "window of {:.0} % of the product, {connections}",
                    100.0 * share
                )
            }
        }
    }
}
