//! One direction of a run, as the rules ask about it.

use std::cell::OnceCell;

use linerate_analysis::credit::Credit;
use linerate_analysis::ends::Ends;
use linerate_analysis::evidence::{DirectionEvidence, Evidence, KernelClocks, PathFigures, Place};
use linerate_analysis::losses::Losses;
use linerate_analysis::statistics;
use linerate_analysis::time_budget::{Class, TimeBudget};
use linerate_analysis::waterfall::{LineRate, StepKind};
use linerate_model::column::Column;
use linerate_model::finding::{Finding, Severity};
use linerate_model::plan::{Plan, Protocol};
use linerate_model::record::{EndRecord, Kind, Role, RunRecord, StreamRecord};

use crate::command;
use crate::draft::Draft;
use crate::facts::bucket;
use crate::facts::full::Full;
use crate::facts::limit::Limit;
use crate::facts::slices::{self, Slice};
use crate::facts::stall::{self, Gap};
use crate::facts::stretches::Stretches;

/// Fewer datagrams than this are too few to tell a rate from.
const LEAST_DATAGRAMS: u64 = 20;

/// A direction and the run that it belongs to.
#[derive(Clone)]
pub(crate) struct Case<'a> {
    pub(crate) evidence: &'a Evidence<'a>,
    pub(crate) direction: &'a DirectionEvidence,
    /// What limited it, where that can be told.
    pub(crate) limit: Option<Limit>,
    /// Cut once, for all rules that ask.
    slices: OnceCell<Option<Vec<Slice>>>,
    stretches: OnceCell<Option<Stretches>>,
    losses: OnceCell<Option<Vec<Losses>>>,
    pooled_losses: OnceCell<Option<Losses>>,
    losses_in_common: OnceCell<Option<Losses>>,
    credit: OnceCell<Option<Credit>>,
    stall: OnceCell<Option<Gap>>,
    full: OnceCell<Option<Full>>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(evidence: &'a Evidence<'a>, direction: &'a DirectionEvidence) -> Self {
        let mut case = Self {
            evidence,
            direction,
            limit: None,
            slices: OnceCell::new(),
            stretches: OnceCell::new(),
            losses: OnceCell::new(),
            pooled_losses: OnceCell::new(),
            losses_in_common: OnceCell::new(),
            credit: OnceCell::new(),
            stall: OnceCell::new(),
            full: OnceCell::new(),
        };
        case.limit = Limit::of(&case);
        case
    }

    /// The slices of the whole run; `None` where the sender's kernel does not tell enough.
    pub(crate) fn slices(&self) -> Option<&[Slice]> {
        self.slices.get_or_init(|| slices::cut(self)).as_deref()
    }

    /// The plateau's stretches, where the path was full at times only; `None` too where the sender's kernel
    /// does not tell enough.
    pub(crate) fn full_in_stretches(&self) -> Option<&Stretches> {
        let stretches = self
            .stretches
            .get_or_init(|| Stretches::of(self))
            .as_ref()?;
        stretches.hide_in(self.rate()?).then_some(stretches)
    }

    /// The same, where the sender was as fast as it could and mostly had nothing to send: its program waited for room
    /// in the send buffer.
    pub(crate) fn waits_for_room(&self) -> Option<&Stretches> {
        self.full_in_stretches()
            .filter(|stretches| self.asked().is_none() && stretches.nothing_waits())
    }

    /// The same, where it went past its send buffer in bursts.
    pub(crate) fn bursts(&self) -> Option<&Stretches> {
        let buffer = self.path().send_buffer_bytes? as f64;
        let buffers = buffer * self.streams();
        self.waits_for_room()
            .filter(|stretches| stretches.past_buffers(buffers))
    }

    /// The longest time in which nothing came through, where that is a stall.
    pub(crate) fn stall(&self) -> Option<&Gap> {
        self.stall.get_or_init(|| stall::of(self)).as_ref()
    }

    /// Whether the path carried what it can, whatever made it carry no more, and what shows it.
    pub(crate) fn full(&self) -> Option<Full> {
        *self.full.get_or_init(|| Full::of(self))
    }

    /// The losses of each sending stream of the direction that had any.
    pub(crate) fn losses(&self) -> Option<&[Losses]> {
        let derive = || {
            let streams = self.sender()?.streams_of(self.direction.flow);
            let losses: Vec<Losses> = streams.filter_map(Losses::of).collect();
            (!losses.is_empty()).then_some(losses)
        };
        self.losses.get_or_init(derive).as_deref()
    }

    /// When the first loss of any stream came, ns on the sender's clock.
    pub(crate) fn first_loss_ns(&self) -> Option<u64> {
        let first = self.losses()?.iter().filter_map(|one| one.episodes.first());
        first.map(|episode| episode.from_ns).min()
    }

    /// The losses of all streams of the direction as if they were one: what a bucket or a queue that they share sees.
    pub(crate) fn pooled_losses(&self) -> Option<&Losses> {
        self.pooled_losses
            .get_or_init(|| self.of_all(Losses::pooled))
            .as_ref()
    }

    /// The same, those of several streams being one where they begin within a round trip.
    pub(crate) fn losses_in_common(&self) -> Option<&Losses> {
        self.losses_in_common
            .get_or_init(|| self.of_all(Losses::in_common))
            .as_ref()
    }

    /// What was delivered beyond the rate that the losses left, and how constant that was.
    pub(crate) fn credit(&self) -> Option<&Credit> {
        let derive = || {
            let streams = self.sender()?.streams_of(self.direction.flow);
            Credit::of(&streams.collect::<Vec<_>>(), bucket::more(self.reno()))
        };
        self.credit.get_or_init(derive).as_ref()
    }

    /// Whether a stream of the direction halves its window at a loss.
    pub(crate) fn reno(&self) -> bool {
        let streams = self.sender().into_iter();
        streams
            .flat_map(|sender| sender.streams_of(self.direction.flow))
            .any(|stream| stream.congestion.as_deref() == Some("reno"))
    }

    /// One stream's losses, or what `several` makes of theirs.
    fn of_all(&self, several: fn(&[&StreamRecord]) -> Option<Losses>) -> Option<Losses> {
        let streams = self.sender()?.streams_of(self.direction.flow);
        match streams.collect::<Vec<_>>().as_slice() {
            [one] => Losses::of(one),
            streams => several(streams),
        }
    }

    /// Datagrams of the direction that are known not to have arrived.
    pub(crate) fn datagrams_lost(&self) -> Option<u64> {
        self.direction.ledger.total.datagrams.as_ref()?.lost
    }

    /// Whether fewer were sent than tell a rate.
    pub(crate) fn few_datagrams(&self) -> bool {
        let counts = self.direction.ledger.total.datagrams.as_ref();
        let sent = counts.and_then(|counts| counts.sent);
        sent.is_some_and(|sent| sent < LEAST_DATAGRAMS)
    }

    pub(crate) fn record(&self) -> &'a RunRecord {
        self.evidence.record
    }

    pub(crate) fn plan(&self) -> &'a Plan {
        &self.evidence.record.plan
    }

    /// Streams of each direction, at least 1.
    pub(crate) fn streams(&self) -> f64 {
        f64::from(self.plan().streams.max(1))
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
        self.direction.sent_bps
    }

    pub(crate) fn budget(&self) -> Option<&'a KernelClocks> {
        self.direction.clocks.as_ref().ok()
    }

    /// A share by the kernel's clocks, where the kernel itself counted: another program's output has no clocks.
    pub(crate) fn clock_of_kernel(&self, share: f64) -> Option<f64> {
        (self.record().kind != Kind::Transcript).then_some(share)
    }

    /// The share of the plateau that something took, by the classified samples; by the kernel's clock where the
    /// samples do not tell, or see less than half of what the clock does: a cause that was found all the same was
    /// found by the clock and by what the other end tells.
    fn held(
        &self,
        class: impl Fn(&TimeBudget) -> f64,
        clock: impl Fn(&KernelClocks) -> f64,
    ) -> Option<f64> {
        let clock = self.budget().map(clock);
        let class = self.direction.budget.as_ref().ok().map(class);
        class
            .filter(|class| clock.is_none_or(|clock| *class >= 0.5 * clock))
            .or(clock)
    }

    /// The share of the plateau that the network took: congestion window, recovery, timeouts, a full path.
    pub(crate) fn network_share(&self) -> Option<f64> {
        self.held(TimeBudget::network, |clocks| clocks.network)
    }

    /// The share of the plateau that the receive window took.
    pub(crate) fn receive_window_share(&self) -> Option<f64> {
        self.held(
            |budget| budget.share(Class::ReceiveWindow),
            |clocks| clocks.receive_window,
        )
    }

    /// The share of the plateau that the send buffer took.
    pub(crate) fn send_buffer_share(&self) -> Option<f64> {
        self.held(
            |budget| budget.share(Class::SendBuffer),
            |clocks| clocks.send_buffer,
        )
    }

    /// The share of the plateau in which there was nothing to send.
    pub(crate) fn application_share(&self) -> Option<f64> {
        self.held(
            |budget| budget.share(Class::Application),
            |clocks| clocks.application,
        )
    }

    /// A finding whose promise is no more than the line carries, where its rate is known and the remedy leaves the
    /// segments as they are.
    pub(crate) fn within_the_line(&self, mut finding: Finding) -> Finding {
        let reframed = finding
            .remedy
            .as_ref()
            .is_some_and(|remedy| remedy.fix.resizes_segments());
        let Some(line) = self.line_payload_bps().filter(|_| !reframed) else {
            return finding;
        };
        // An interface's speed is a bound; what passed while the path was seen full is no more than it carried once.
        let seen = self.line_seen_full();
        let carried = self.full_in_stretches().filter(|_| seen);
        let most = line.max(carried.map_or(0.0, |one| one.carried_bps));
        if let Some(expected) = &mut finding.expected {
            if expected.rate_bps > most {
                "the path, which is full then".clone_into(&mut expected.then);
            }
            for bps in [
                &mut expected.rate_bps,
                &mut expected.low_bps,
                &mut expected.high_bps,
            ] {
                *bps = bps.min(most);
            }
        }
        finding
    }

    /// What the line carries of payload, bit/s, where its rate is known or was seen while it was full.
    fn line_seen_full(&self) -> bool {
        let waterfall = self.direction.waterfall.as_ref();
        waterfall.is_ok_and(|waterfall| waterfall.line == LineRate::PathSeenFull)
    }

    fn line_payload_bps(&self) -> Option<f64> {
        let waterfall = self.direction.waterfall.as_ref().ok()?;
        let framing = waterfall
            .steps
            .iter()
            .find(|step| step.kind == StepKind::Framing)?;
        (waterfall.line != LineRate::MostSeen)
            .then_some(waterfall.line_bps as f64 - framing.bps as f64)
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

    /// Segments that were sent again although they had arrived; none where the kernel does not tell, where it
    /// saw none overtake another, or where more came twice than were sent again: then the path duplicates.
    pub(crate) fn needless(&self) -> u64 {
        let path = self.path();
        let overtaken = path.overtaken.is_some_and(|times| times > 0);
        path.received_twice
            .filter(|twice| overtaken && *twice <= path.retransmits.unwrap_or(0))
            .unwrap_or(0)
    }

    /// Share of the segments that was lost, as far as is known: sent again and not for nothing.
    pub(crate) fn lost_share(&self) -> Option<f64> {
        let (again, all) = self.path().retransmits.zip(self.path().data_segments)?;
        (all > 0).then(|| again.saturating_sub(self.needless()) as f64 / all as f64)
    }

    /// Segments that the receiver reported as marked (ECN), all streams; `None` where the kernel does not tell.
    pub(crate) fn marked(&self) -> Option<u64> {
        self.sender()?
            .streams_of(self.direction.flow)
            .map(|stream| stream.samples.last(Column::delivered_ce_packets))
            .sum()
    }

    /// Whether both ends ran on one machine.
    pub(crate) fn one_host(&self) -> bool {
        self.direction.ends.one_host()
    }

    /// Whether nothing but this machine's own stack lay between the ends.
    pub(crate) fn without_network(&self) -> bool {
        self.direction.ends == Ends::OneStack
    }

    /// Whether the ends are so close on one machine that scheduling alone decides what their kernels' clocks show.
    pub(crate) fn next_door(&self) -> bool {
        self.direction.ends.next_door()
    }

    /// The slower of both ends' interfaces, bit/s; virtual ones have no speed.
    pub(crate) fn link_bps(&self) -> Option<f64> {
        self.direction.link_bps.map(|bps| bps as f64)
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

    /// How an end's threads of this direction spent the run, on average. `None` where the kernel did not
    /// tell how long they waited for a CPU (its run delay).
    pub(crate) fn threads(&self, role: Role) -> Option<Threads> {
        let end = self.record().end(role)?;
        let one = |stream: &StreamRecord| {
            let at = stream.samples.at_ns();
            let elapsed = at.last()?.saturating_sub(*at.first()?);
            let share = |column: Column| {
                let growth = stream.samples.growth(column)?;
                (elapsed > 0).then(|| growth as f64 / elapsed as f64)
            };
            Some((
                share(Column::thread_cpu_ns)?,
                share(Column::thread_wait_ns)?,
            ))
        };
        let all: Option<Vec<(f64, f64)>> = end.streams_of(self.direction.flow).map(one).collect();
        let (computes, waits): (Vec<f64>, Vec<f64>) = all?.into_iter().unzip();
        (!computes.is_empty()).then(|| Threads {
            computes: statistics::mean(&computes),
            waits: statistics::mean(&waits),
        })
    }

    /// An end with its host's name: `the server (beta)`.
    pub(crate) fn host(&self, role: Role) -> String {
        if self.record().is_observation() {
            return self.watched_host(role);
        }
        let known = self
            .record()
            .end(role)
            .and_then(|end| end.host.hostname.as_deref());
        match known.filter(|name| !self.one_host() && !name.is_empty()) {
            Some(name) => format!("{} ({name})", role_word(role)),
            None => role_word(role).to_owned(),
        }
    }

    /// An end of a connection that was only watched.
    fn watched_host(&self, role: Role) -> String {
        if role == self.record().written_by {
            return "this host".to_owned();
        }
        let peer = &self.plan().host;
        if self.one_host() {
            "the other end".to_owned()
        } else {
            format!("the peer ({peer})")
        }
    }

    /// An end as the place of a figure: `client`, `server`; `this host`, `peer`.
    pub(crate) fn place(&self, role: Role) -> &'static str {
        match (self.record().is_observation(), role) {
            (true, role) if role == self.record().written_by => "this host's",
            (true, _) => "peer's",
            (false, role) => bare(role),
        }
    }

    pub(crate) fn sending_host(&self) -> String {
        self.host(self.direction.flow.sender())
    }

    pub(crate) fn receiving_host(&self) -> String {
        self.host(self.direction.flow.receiver())
    }

    /// The end at which the direction's rate was measured.
    pub(crate) fn measuring_end(&self) -> Option<&'a EndRecord> {
        let role = self.direction.measured_at.end(self.direction.flow);
        self.record().end(role)
    }

    /// Where the direction's rate was measured.
    pub(crate) fn rate_place(&self) -> String {
        let measured_at = self.direction.measured_at;
        let end = self.place(measured_at.end(self.direction.flow));
        match measured_at {
            Place::Acknowledged => format!("{end} kernel"),
            Place::ReceivingApplication | Place::SendingApplication => format!("{end} application"),
        }
    }

    /// An end's kernel as the place of a figure.
    pub(crate) fn kernel(&self, role: Role) -> String {
        format!("{} kernel", self.place(role))
    }

    /// The direction's rates as means over a time that is at least `span_ns`.
    pub(crate) fn means(&self, span_ns: u64) -> Means {
        let step_ns = self.direction.grid_step_ns;
        let points = usize::try_from(span_ns / step_ns.max(1))
            .unwrap_or(1)
            .max(1);
        let rates = self.direction.rates_bps.chunks_exact(points);
        Means {
            bps: rates.map(statistics::mean).collect(),
            span_ns: points as u64 * step_ns,
        }
    }

    /// The same test again, with one thing changed; of a connection that was only watched, a test between the same
    /// hosts, for as long as a test usually takes.
    pub(crate) fn again(&self, change: impl FnOnce(&mut Plan)) -> String {
        let mut plan = self.plan().clone();
        if self
            .record()
            .client
            .as_ref()
            .is_some_and(|end| end.stage.is_some())
        {
            // The path alone is tested again, without the files.
            plan.end = Plan::new("").end;
        }
        if self.record().is_observation() {
            plan.end = Plan::new("").end;
            // It is the program that is paced, not the path.
            plan.kernel_pacing_bps = None;
        }
        change(&mut plan);
        command::test(&plan)
    }

    /// A finding about this direction, resting on the plateau.
    pub(crate) fn finding(&self, id: &str, severity: Severity, sentence: String) -> Draft<&Self> {
        Draft {
            finding: Finding {
                flow: Some(self.direction.flow),
                span_ns: self.span_since_start(),
                ..Finding::new(id, severity, sentence)
            },
            about: self,
        }
    }

    /// The plateau, ns since the streams were let go at the measuring end.
    fn span_since_start(&self) -> Option<[u64; 2]> {
        let start = self.measuring_end()?.start_ns.0;
        Some(
            self.direction
                .plateau_span_ns()?
                .map(|at| at.saturating_sub(start)),
        )
    }
}

/// Rates as means over equal spans of time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Means {
    /// The means, bit/s.
    pub(crate) bps: Vec<f64>,
    /// What each is taken over, ns.
    pub(crate) span_ns: u64,
}

/// The ramp is over with the first mean that reaches this share of the highest.
const RAMPED: f64 = 0.8;

impl Means {
    /// How many means the ramp takes; `None` where nothing moved.
    pub(crate) fn ramp(&self) -> Option<usize> {
        let most = self.bps.iter().copied().fold(0.0, f64::max);
        let over = |mean: &f64| *mean >= RAMPED * most;
        (most > 0.0)
            .then(|| self.bps.iter().position(over))
            .flatten()
    }
}

/// How threads spent their time, shares of 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Threads {
    /// On a CPU.
    pub(crate) computes: f64,
    /// Ready to run, and none was free.
    pub(crate) waits: f64,
}

impl Threads {
    /// Whether they waited for a CPU so long that it is worth a word.
    pub(crate) fn waited(&self) -> bool {
        self.waits >= 0.05
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
