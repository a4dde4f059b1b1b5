//! One direction of a run, as the rules ask about it.

use linerate_model::evidence::{DirectionEvidence, Evidence, PathFigures, Place, TimeBudget};
use linerate_model::finding::{Figure, Finding, Remedy, Severity};
use linerate_model::plan::{Plan, Protocol};
use linerate_model::record::{EndRecord, Role, RunRecord, StreamRecord};
use linerate_model::statistics;

use crate::command;
use crate::limit::Limit;

/// Kinds of interface whose speed is made up.
const VIRTUAL: [&str; 6] = ["veth", "loopback", "tun", "bridge", "dummy", "macvlan"];

/// A direction and the run that it belongs to.
#[derive(Clone)]
pub(crate) struct Case<'a> {
    pub(crate) evidence: &'a Evidence<'a>,
    pub(crate) direction: &'a DirectionEvidence,
    /// What limited it, where that can be told.
    pub(crate) limit: Option<Limit>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(evidence: &'a Evidence<'a>, direction: &'a DirectionEvidence) -> Self {
        let mut case = Self {
            evidence,
            direction,
            limit: None,
        };
        case.limit = Limit::of(&case);
        case
    }

    pub(crate) fn record(&self) -> &'a RunRecord {
        self.evidence.record
    }

    pub(crate) fn plan(&self) -> &'a Plan {
        &self.evidence.record.plan
    }

    pub(crate) fn udp(&self) -> bool {
        self.plan().protocol == Protocol::Udp
    }

    pub(crate) fn sender(&self) -> Option<&'a EndRecord> {
        self.record().end(self.direction.flow.sender())
    }

    pub(crate) fn receiver(&self) -> Option<&'a EndRecord> {
        self.record().end(self.direction.flow.receiver())
    }

    /// The plateau's rate, or the whole run's where there is no plateau, bit/s.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.direction
            .plateau
            .map(|plateau| plateau.estimate.mean)
            .or_else(|| self.direction.whole_run_bps())
    }

    /// The rate asked for, all streams of the direction together, bit/s of payload.
    pub(crate) fn asked(&self) -> Option<f64> {
        let each = [self.plan().rate_bps, self.plan().kernel_pacing_bps]
            .into_iter()
            .flatten()
            .min()?;
        Some(each.bits_per_second() as f64 * f64::from(self.plan().streams))
    }

    /// The rate at which the sending application sent, bit/s.
    pub(crate) fn sent_bps(&self) -> Option<f64> {
        let flow = self.direction.flow;
        if let Some(end) = self.sender() {
            let omitted = self.plan().omit_ns.0;
            let span = end.end_ns.since(end.start_ns).0.saturating_sub(omitted);
            let bytes: f64 = end
                .streams_of(flow)
                .map(|stream| stream.app_bytes.saturating_sub(stream.omitted_bytes) as f64)
                .sum();
            return (span > 0).then(|| bytes * 8e9 / span as f64);
        }
        let told = &self.record().peer_results.as_ref()?.streams;
        let ids: Vec<u32> = self
            .receiver()?
            .streams_of(flow)
            .map(|stream| stream.id)
            .collect();
        let rate = |id: &u32| {
            let stream = told.iter().find(|stream| stream.id == *id)?;
            (stream.end_time_s > 0.0).then(|| stream.bytes as f64 * 8.0 / stream.end_time_s)
        };
        ids.iter().map(rate).sum()
    }

    pub(crate) fn budget(&self) -> Option<&'a TimeBudget> {
        self.direction.budget.as_ref().ok()
    }

    pub(crate) fn path(&self) -> PathFigures {
        self.direction.path.unwrap_or_default()
    }

    /// Mean over the plateau and least of the run, µs, where the sender's kernel measured both.
    pub(crate) fn round_trips(&self) -> Option<(f64, f64)> {
        self.path()
            .rtt_us
            .zip(self.path().min_rtt_us)
            .filter(|(mean, least)| *mean > 0.0 && *least > 0.0)
    }

    /// Share of the segments that was sent again.
    pub(crate) fn repeated_share(&self) -> Option<f64> {
        let (again, all) = self.path().retransmits.zip(self.path().data_segments)?;
        (all > 0).then(|| again as f64 / all as f64)
    }

    /// Whether both ends ran on one machine, in one network namespace or in two: they share its CPUs.
    /// Names decide nothing: many hosts are called the same.
    pub(crate) fn one_host(&self) -> bool {
        let boot = |end: &'a EndRecord| end.host.boot_id.as_deref();
        let boots = self
            .sender()
            .and_then(boot)
            .zip(self.receiver().and_then(boot));
        boots.map_or_else(|| self.over_loopback(), |(a, b)| a == b)
    }

    /// Whether nothing but this machine's own stack lay between the ends.
    pub(crate) fn without_network(&self) -> bool {
        let space = |end: &EndRecord| end.host.network_namespace;
        let spaces = self
            .sender()
            .and_then(space)
            .zip(self.receiver().and_then(space));
        let one_space = spaces.is_none_or(|(a, b)| a == b);
        self.over_loopback() || (self.one_host() && one_space)
    }

    fn over_loopback(&self) -> bool {
        let loopback = |end: &EndRecord| {
            end.interface
                .as_ref()
                .is_some_and(|interface| interface.name == "lo")
        };
        self.sender().is_some_and(loopback) || self.receiver().is_some_and(loopback)
    }

    /// The slower of both ends' interfaces, bit/s; virtual ones have no speed.
    pub(crate) fn link_bps(&self) -> Option<f64> {
        let speed = |end: &EndRecord| {
            let interface = end.interface.as_ref()?;
            let real = !interface
                .kind
                .as_deref()
                .is_some_and(|kind| VIRTUAL.contains(&kind));
            interface
                .speed_mbit_per_s
                .filter(|speed| real && *speed > 0)
                .map(|speed| speed as f64 * 1e6)
        };
        [self.sender(), self.receiver()]
            .into_iter()
            .flatten()
            .filter_map(speed)
            .reduce(f64::min)
    }

    /// CPU time of an end's threads of this direction over the run: their mean share of a core, or the
    /// share of all the host's cores that they fill together, whichever is larger.
    pub(crate) fn cpu_share(&self, role: Role) -> Option<f64> {
        let end = self.record().end(role)?;
        let elapsed = end.end_ns.since(end.start_ns).0 as f64;
        let used = |stream: &StreamRecord| stream.cpu.user_ns as f64 + stream.cpu.system_ns as f64;
        let threads: Vec<f64> = end.streams_of(self.direction.flow).map(used).collect();
        let all: f64 = end.streams.iter().map(used).sum();
        // No thread runs for nothing: zero is a figure that is missing.
        if threads.is_empty() || all <= 0.0 || elapsed <= 0.0 {
            return None;
        }
        let host = end
            .host
            .cpus
            .map_or(0.0, |cpus| all / elapsed / f64::from(cpus.max(1)));
        Some((statistics::mean(&threads) / elapsed).max(host))
    }

    /// Share of the run in which an end's threads of this direction could have run and waited for a
    /// CPU (the kernel's run delay), on average.
    pub(crate) fn cpu_wait_share(&self, role: Role) -> Option<f64> {
        let end = self.record().end(role)?;
        let elapsed = end.end_ns.since(end.start_ns).0 as f64;
        let waits: Option<Vec<f64>> = end
            .streams_of(self.direction.flow)
            .map(|stream| {
                stream
                    .samples
                    .growth("thread_wait_ns")
                    .map(|wait| wait as f64)
            })
            .collect();
        let waits = waits.filter(|waits| !waits.is_empty() && elapsed > 0.0)?;
        Some(statistics::mean(&waits) / elapsed)
    }

    /// An end with its host's name: `the server (beta)`.
    pub(crate) fn host(&self, role: Role) -> String {
        let known = self
            .record()
            .end(role)
            .and_then(|end| end.host.hostname.as_deref());
        match known.filter(|name| !self.one_host() && !name.is_empty()) {
            Some(name) => format!("{} ({name})", role_word(role)),
            None => role_word(role).to_owned(),
        }
    }

    pub(crate) fn sending_host(&self) -> String {
        self.host(self.direction.flow.sender())
    }

    pub(crate) fn receiving_host(&self) -> String {
        self.host(self.direction.flow.receiver())
    }

    /// Where the direction's rate was measured.
    pub(crate) fn rate_place(&self) -> String {
        let flow = self.direction.flow;
        match self.direction.measured_at {
            Place::ReceivingApplication => format!("{} application", bare(flow.receiver())),
            Place::Acknowledged => format!("{} kernel", bare(flow.sender())),
            Place::SendingApplication => format!("{} application", bare(flow.sender())),
        }
    }

    /// A figure of the sending kernel.
    pub(crate) fn sender_figure(&self, name: &str, value: Option<f64>) -> Option<Figure> {
        let place = format!("{} kernel", bare(self.direction.flow.sender()));
        Some(Figure {
            name: name.to_owned(),
            value: value.filter(|value| value.is_finite())?,
            place,
        })
    }

    /// A figure of the receiving host.
    pub(crate) fn receiver_figure(&self, name: &str, value: Option<f64>) -> Option<Figure> {
        let place = format!("{} kernel", bare(self.direction.flow.receiver()));
        Some(Figure {
            name: name.to_owned(),
            value: value.filter(|value| value.is_finite())?,
            place,
        })
    }

    /// The rate as a figure.
    pub(crate) fn rate_figure(&self) -> Option<Figure> {
        Some(Figure {
            name: "goodput of the plateau, bit/s".to_owned(),
            value: self.rate()?,
            place: self.rate_place(),
        })
    }

    /// The same test again, with one thing changed.
    pub(crate) fn again(&self, change: impl FnOnce(&mut Plan)) -> String {
        let mut plan = self.plan().clone();
        change(&mut plan);
        command::test(&plan)
    }

    /// A finding about this direction, resting on the plateau.
    pub(crate) fn finding(&self, id: &str, severity: Severity, sentence: String) -> Draft {
        Draft(Finding {
            id: id.to_owned(),
            severity,
            flow: Some(self.direction.flow),
            sentence,
            share_of_time: None,
            span_ns: self.span_since_start(),
            figures: Vec::new(),
            remedy: None,
            next: None,
        })
    }

    /// The plateau, ns since the streams were let go at the measuring end.
    fn span_since_start(&self) -> Option<[u64; 2]> {
        let flow = self.direction.flow;
        let role = match self.direction.measured_at {
            Place::ReceivingApplication => flow.receiver(),
            Place::Acknowledged | Place::SendingApplication => flow.sender(),
        };
        let start = self.record().end(role)?.start_ns.0;
        Some(
            self.direction
                .plateau_span_ns()?
                .map(|at| at.saturating_sub(start)),
        )
    }
}

/// `the client`, `the server`.
pub(crate) fn role_word(role: Role) -> &'static str {
    match role {
        Role::Client => "the client",
        Role::Server => "the server",
    }
}

/// `client`, `server`.
pub(crate) fn bare(role: Role) -> &'static str {
    match role {
        Role::Client => "client",
        Role::Server => "server",
    }
}

/// A sentence's first letter made large.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

/// A finding being written.
pub(crate) struct Draft(Finding);

impl Draft {
    pub(crate) fn share(mut self, share: f64) -> Self {
        self.0.share_of_time = Some(share.clamp(0.0, 1.0));
        self
    }

    pub(crate) fn figures(mut self, figures: impl IntoIterator<Item = Option<Figure>>) -> Self {
        self.0.figures.extend(figures.into_iter().flatten());
        self
    }

    pub(crate) fn remedy(mut self, host: Role, setting: &str, value: String) -> Self {
        self.0.remedy = Some(Remedy {
            host,
            setting: setting.to_owned(),
            value,
        });
        self
    }

    pub(crate) fn next(mut self, command: String) -> Self {
        self.0.next = Some(command);
        self
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "the last word of every rule, each of which may find nothing"
    )]
    pub(crate) fn done(self) -> Option<Finding> {
        Some(self.0)
    }
}
