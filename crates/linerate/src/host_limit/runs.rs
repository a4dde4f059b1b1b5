//! The runs along a path inside this host: a server in a process of its own, the client here.

use linerate_analysis::evidence::{DirectionEvidence, Evidence};
use linerate_engine::client::ClientOptions;
use linerate_kernel::counters::{self, MachineTime};
use linerate_kernel::thread::SignalFd;
use linerate_model::host_limit::{Carried, CpuTime, DatagramCounts, LocalPath, PathLimit, Sending};
use linerate_model::plan::Protocol;
use linerate_model::record::{EndRecord, Outcome, RunRecord, StreamRecord};
use linerate_model::units::Nanos;
use linerate_report::view::{CpuView, RunView};

use super::serving::Serving;
use super::veth::Pair;
use crate::action::Failure;
use crate::place::HostPlace;
use crate::printer::Printer;
use crate::successive;

/// Where this host reaches itself.
pub(super) const LOOPBACK: &str = "127.0.0.1";

/// One kind of traffic.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    traffic: &'static str,
    options: &'static str,
}

impl Kind {
    /// All of them, each by another way through the kernel.
    pub(super) const ALL: [Self; 6] = [
        Self::of("TCP, 1 stream", ""),
        Self::of("TCP, copied (-l 512K)", "-l 512K"),
        Self::of("TCP, zero-copy sends (-Z)", "-Z"),
        Self::of("TCP, discarded (--skip-rx-copy)", "--skip-rx-copy"),
        Self::of("TCP, 2 streams (-P 2)", "-P 2"),
        Self::of("UDP, 1460 bytes (-u -b 0)", "-u -b 0 -l 1460"),
    ];

    const fn of(traffic: &'static str, options: &'static str) -> Self {
        Self { traffic, options }
    }
}

/// How the runs are made.
pub(super) struct Runs<'a> {
    pub(super) time: Nanos,
    pub(super) stop: &'a SignalFd,
    pub(super) printer: &'a Printer,
}

impl Runs<'_> {
    /// The runs to an address of this network namespace.
    pub(super) fn along(
        &self,
        path: LocalPath,
        address: &str,
        kinds: &[Kind],
    ) -> Result<PathLimit, Failure> {
        let server = Serving::start(address, self.stop)?;
        self.runs_to(&server, path, address, kinds)
    }

    /// The runs over a veth pair, from its other side.
    pub(super) fn along_pair(&self, pair: &Pair) -> Result<PathLimit, Failure> {
        let server = Serving::start(&pair.server_address, self.stop)?;
        pair.cross().map_err(Failure::Lab)?;
        let made = self.runs_to(&server, LocalPath::Veth, &pair.server_address, &Kind::ALL)?;
        Ok(PathLimit {
            mtu_bytes: Some(pair.mtu),
            ..made
        })
    }

    fn runs_to(
        &self,
        server: &Serving,
        path: LocalPath,
        address: &str,
        kinds: &[Kind],
    ) -> Result<PathLimit, Failure> {
        let (mut runs, mut mtu_bytes) = (Vec::new(), None);
        for kind in kinds {
            let way = match path {
                LocalPath::Loopback => "loopback",
                LocalPath::Veth => "veth pair",
            };
            self.printer.status(&format!("{way}: {}", kind.traffic))?;
            let (carried, mtu) = self.carry(*kind, server, address)?;
            runs.push(carried);
            mtu_bytes = mtu_bytes.or(mtu);
        }
        Ok(PathLimit {
            path,
            mtu_bytes,
            runs,
        })
    }

    /// One run, and the MTU of the interface that it took.
    fn carry(
        &self,
        kind: Kind,
        server: &Serving,
        address: &str,
    ) -> Result<(Carried, Option<u32>), Failure> {
        let words = kind.options.split_whitespace().map(str::to_owned);
        let words: Vec<String> = words
            .chain(["-p".to_owned(), server.port.clone()])
            .chain(["-t".to_owned(), self.time.as_secs_f64().to_string()])
            .collect();
        let plan = HostPlace::request(address, &words)?.plan;
        let before = counters::machine().ok();
        let made = successive::run(&plan, &ClientOptions::default(), self.stop);
        let after = counters::machine().ok();
        let record = match made {
            Ok(Some(record)) if record.outcome != Outcome::Interrupted => record,
            Ok(_) => return Err(stopped()),
            Err(why) => return Ok((failed(kind, why), None)),
        };
        if let Outcome::Failed { error } = &record.outcome {
            return Ok((failed(kind, error.to_string()), None));
        }
        let mut carried = carried(kind, &record);
        carried.cpu_time = cpu_time(before, after, &record);
        let interface = record.client.and_then(|end| end.interface);
        Ok((carried, interface.and_then(|interface| interface.mtu_bytes)))
    }
}

/// What is said after Ctrl-C.
pub(super) fn stopped() -> Failure {
    Failure::Incomplete("stopped before all runs were made".to_owned())
}

fn failed(kind: Kind, why: String) -> Carried {
    Carried {
        traffic: kind.traffic.to_owned(),
        options: kind.options.to_owned(),
        error: Some(why),
        ..Carried::default()
    }
}

fn carried(kind: Kind, record: &RunRecord) -> Carried {
    let evidence = Evidence::of(record);
    let view = RunView::of(&evidence, &[]);
    let cost = |cpu: &Option<CpuView>| cpu.as_ref().and_then(|cpu| cpu.seconds_per_gigabyte);
    let stream = record.client.as_ref().and_then(|end| end.streams.first());
    Carried {
        traffic: kind.traffic.to_owned(),
        options: kind.options.to_owned(),
        goodput_bps: view.summary.figures.goodput_bps,
        // What TCP was given last is delivered after the end, and none of it is lost.
        sent_bps: view
            .summary
            .figures
            .sent_bps
            .filter(|_| record.plan.protocol == Protocol::Udp),
        datagrams: evidence.directions.first().and_then(datagrams),
        sender_seconds_per_gigabyte: cost(&view.summary.cpu.client),
        receiver_seconds_per_gigabyte: cost(&view.summary.cpu.server),
        sending: stream.map(sending),
        ..Carried::default()
    }
}

fn datagrams(direction: &DirectionEvidence) -> Option<DatagramCounts> {
    let counts = direction.ledger.total.datagrams.as_ref()?;
    Some(DatagramCounts {
        sent: counts.sent?,
        lost: counts.lost?,
        socket_dropped: counts.socket_dropped,
    })
}

fn sending(stream: &StreamRecord) -> Sending {
    match &stream.zerocopy {
        // More than half of the completions say so.
        Some(counts) if counts.copied * 2 > counts.completed => Sending::ZerocopyCopied,
        Some(counts) if counts.asked > 0 => Sending::Zerocopy,
        _ if stream.spliced => Sending::Spliced,
        _ => Sending::Copied,
    }
}

fn cpu_time(
    before: Option<MachineTime>,
    after: Option<MachineTime>,
    of: &RunRecord,
) -> Option<CpuTime> {
    let machine = after?.since(before?);
    let used = |end: &EndRecord| end.cpu.user_ns + end.cpu.system_ns;
    let own = used(of.client.as_ref()?) + used(of.server.as_ref()?);
    CpuTime::of(machine.busy, machine.stolen, machine.all, own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_a_test_that_can_be_asked_for() {
        for kind in Kind::ALL {
            let words: Vec<String> = kind.options.split_whitespace().map(str::to_owned).collect();
            assert!(HostPlace::request(LOOPBACK, &words).is_ok(), "{kind:?}");
        }
    }
}
