//! `linerate self`: what this host carries with both ends on it, what that costs, and how late it wakes.

pub(crate) mod arguments;
mod runs;
pub(crate) mod serving;
mod veth;

use std::io;

use linerate_engine::latency;
use linerate_kernel::host;
use linerate_kernel::thread::SignalFd;
use linerate_model::host_limit::{
    CpuTime, HostLimit, LocalPath, PathLimit, SCHEMA_VERSION, TimerLateness,
};
use linerate_model::units::Nanos;
use linerate_report::host_limit::report;

use crate::action::Failure;
use crate::on;
use crate::printer::Printer;
use crate::signals;
use arguments::SelfArguments;
use runs::{Kind, LOOPBACK, Runs};

/// Timed waits: how long, and how often.
const WAITS: [(Nanos, usize); 2] = [(Nanos(100_000), 3000), (Nanos(1_000_000), 500)];
/// Wake-ups there and back.
const WAKE_UPS: usize = 3000;
/// None of these lasts longer.
const LONGEST: Nanos = Nanos::from_millis(2000);

pub(crate) fn run(arguments: &SelfArguments, printer: &Printer) -> Result<(), Failure> {
    if let Some(hosts) = arguments.on.hosts()? {
        return on::run(&hosts, &arguments.on.reach, on::Kind::Text, printer);
    }
    let signals = signals::take_stops()?;
    let limit = measure(arguments.time, &signals, printer)?;
    Ok(printer.outcome(arguments.json, ("host_limit", &limit), || report(&limit))?)
}

/// The veth pair comes last: for it the process leaves this host's network for good.
fn measure(time: Nanos, stop: &SignalFd, printer: &Printer) -> Result<HostLimit, Failure> {
    let facts = host::facts();
    let mut left_out = Vec::new();
    let mut timers = Vec::new();
    for (asked, count) in WAITS {
        let late = latency::timer(asked, count, LONGEST);
        timers.extend(kept::<TimerLateness>(late, "timed waits", &mut left_out));
    }
    let wake_up = latency::wake_up(WAKE_UPS, LONGEST);
    let wake_up = kept(wake_up, "wake-ups across threads", &mut left_out);
    let runs = Runs {
        time,
        stop,
        printer,
    };
    let mut paths = vec![runs.along(LocalPath::Loopback, LOOPBACK, &Kind::ALL)?];
    match veth::apart() {
        Ok(pair) => match runs.along_pair(&pair) {
            Ok(path) => paths.push(path),
            Err(ended @ (Failure::Incomplete(_) | Failure::Output(_))) => return Err(ended),
            Err(why) => left_out.push(format!("a veth pair: {why}")),
        },
        Err(why) => left_out.push(format!("a veth pair: {why}")),
    }
    let shares = paths.iter().flat_map(|path: &PathLimit| &path.runs);
    let shares: Vec<CpuTime> = shares.filter_map(|run| run.cpu_time).collect();
    Ok(HostLimit {
        schema_version: SCHEMA_VERSION,
        kernel: facts.kernel.map(String::from),
        cpus: facts.cpus,
        run_ns: time,
        paths,
        timers,
        wake_up,
        left_out,
        cpu_time: CpuTime::mean(&shares),
    })
}

/// What was measured; else a word on why not.
fn kept<T>(measured: io::Result<T>, what: &str, left_out: &mut Vec<String>) -> Option<T> {
    measured
        .map_err(|error| left_out.push(format!("{what}: {error}")))
        .ok()
}
