//! `linerate lab selfcheck`: what was asked of the lab, and what it made of it.
//!
//! Delay is measured with probes from host to host, on the one clock that both have; rate from what the
//! path let pass while its queue stood; loss at the receiver; and one CUBIC flow under loss against the
//! model of Mathis (CCR 27(3), 1997) with C = 1.22, where CUBIC keeps to its Reno-friendly region (RFC 9438,
//! section 4.3).

use std::fmt::Write as _;

use linerate_kernel::process::ChildSettings;
use linerate_kernel::{clock, counters, poll};
use linerate_lab::path::Counters;
use linerate_lab::runner::{self, Isolation, Lab, Probes, Progress};
use linerate_lab::scenario::Scenario;
use linerate_model::units::{BitRate, Nanos};
use serde::Serialize;

use super::arguments::SelfcheckArguments;
use super::programs::{Program, Serving, linerate};
use super::run::{self, RunOptions};
use super::take_signals;
use crate::action::Failure;
use crate::printer::Printer;
use linerate_kernel::thread::SignalFd;

/// A check is made at most so often.
const ATTEMPTS: u32 = 4;
/// Stolen CPU time that is worth another attempt, ms.
const STOLEN: u64 = 20;

/// One thing that was asked for.
#[derive(Debug, Clone, Serialize)]
struct Check {
    name: &'static str,
    asked: f64,
    achieved: f64,
    unit: &'static str,
    /// The achieved may lie between these.
    least: f64,
    most: f64,
    holds: bool,
    /// What else was seen.
    note: String,
}

/// Makes one check.
type Measure = fn(Isolation, &SignalFd) -> Result<Check, Failure>;

impl Check {
    fn new(
        name: &'static str,
        unit: &'static str,
        asked: f64,
        achieved: f64,
        bounds: [f64; 2],
    ) -> Self {
        Self {
            name,
            asked,
            achieved,
            unit,
            least: bounds[0],
            most: bounds[1],
            holds: achieved >= bounds[0] && achieved <= bounds[1],
            note: String::new(),
        }
    }

    fn with(mut self, note: String) -> Self {
        self.note = note;
        self
    }
}

/// Runs all checks.
pub(super) fn run(arguments: &SelfcheckArguments, printer: &Printer) -> Result<(), Failure> {
    let signals = take_signals()?;
    let isolation = runner::isolate()?;
    let checks: [(&str, Measure); 5] = [
        ("delay of an idle path, 2 s", idle),
        ("delay under 1 Gbit/s packet by packet, 6 s", saturated),
        ("rate of a shaped path, 6 s", rate),
        ("loss, 6 s", loss),
        ("a CUBIC flow under loss, 22 s", cubic),
    ];
    let mut all = Vec::new();
    for (what, check) in checks {
        printer.tell(&format!("checking {what} …"));
        all.push(patiently(check, isolation, &signals, printer)?);
        if let Ok(Some(_)) = signals.read() {
            return Err(Failure::Lab("stopped by a signal".to_owned()));
        }
    }
    if arguments.json {
        printer.line(&serde_json::json!({ "checks": all }).to_string())?;
    } else {
        printer.print(&table(&all))?;
    }
    let missed = all.iter().filter(|check| !check.holds).count();
    if missed > 0 {
        return Err(Failure::Missed(format!(
            "{missed} of {} checks do not hold",
            all.len()
        )));
    }
    Ok(())
}

/// A hypervisor that gives the CPUs to others for tens of milliseconds delays what a lab lets go: no fault of
/// the lab's, and over in a while. So a check that does not hold while CPU time is stolen is made again.
fn patiently(
    check: Measure,
    isolation: Isolation,
    signals: &SignalFd,
    printer: &Printer,
) -> Result<Check, Failure> {
    for attempt in 1..ATTEMPTS {
        let before = stolen_time();
        let result = check(isolation, signals)?;
        let stolen = stolen_time().saturating_sub(before);
        if result.holds || stolen < STOLEN {
            return Ok(result);
        }
        printer.tell(&format!(
            "{} does not hold ({:.3} {}), and the hypervisor gave {stolen} ms of this machine's CPU time to others meanwhile: attempt {} of {ATTEMPTS} …",
            result.name, result.achieved, result.unit, attempt + 1
        ));
    }
    check(isolation, signals)
}

/// CPU time that went to other machines since this one started, ms.
fn stolen_time() -> u64 {
    counters::cpu().map_or(0, |cpus| cpus.iter().map(|cpu| cpu.steal).sum())
}

fn table(checks: &[Check]) -> String {
    let mut out = format!(
        "{:<34} {:>10} {:>10} {:>22}  {}\n",
        "", "asked", "achieved", "wanted", "holds"
    );
    for check in checks {
        let wanted = format!("{:.4} to {:.4}", check.least, check.most);
        let holds = if check.holds { "yes" } else { "NO" };
        let what = format!("{}, {}", check.name, check.unit);
        let note = &check.note;
        let _ = writeln!(
            out,
            "{what:<34} {:>10.4} {:>10.4} {wanted:>22}  {holds}{}{note}",
            check.asked,
            check.achieved,
            if note.is_empty() { "" } else { "; " },
        );
    }
    out
}

fn scenario(text: &str) -> Result<Scenario, Failure> {
    Ok(Scenario::parse(
        "selfcheck",
        &format!("name = \"selfcheck\"\nabout = \"a check\"\n{text}"),
    )?)
}

/// The value that this share of all is not above, ms.
fn quantile_ms(times: &mut [Nanos], share: f64) -> f64 {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    let place = linerate_model::units::whole(last as f64 * share);
    let place = usize::try_from(place).unwrap_or(last).min(last);
    times
        .get(place)
        .map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

fn idle(isolation: Isolation, _: &SignalFd) -> Result<Check, Failure> {
    let lab = Lab::up(
        &scenario("mode = \"packet\"\n[path]\nrtt = \"20ms\"\n")?,
        isolation,
    )?;
    let probes = Probes {
        count: 200,
        interval: Nanos::from_millis(10),
    };
    let mut forward = runner::one_way(&lab, "sender", "receiver", probes)?;
    let lost = probes.count - forward.len();
    let median = quantile_ms(&mut forward, 0.5);
    let note = format!(
        "99 %: {:.3} ms, {lost} lost",
        quantile_ms(&mut forward, 0.99)
    );
    lab.down()?;
    Ok(Check::new("idle delay", "ms", 10.0, median, [10.0, 10.3]).with(note))
}

/// No bottleneck, so that nothing but the lab itself can delay a packet beyond its path.
fn saturated(isolation: Isolation, _: &SignalFd) -> Result<Check, Failure> {
    let text =
        "mode = \"packet\"\n[path]\nrtt = \"20ms\"\n[sender]\ntcp_wmem = \"4096 16384 33554432\"\n";
    let lab = Lab::up(&scenario(text)?, isolation)?;
    let receiver = lab.host("receiver")?;
    let serving = Serving::start(receiver, &[], &ChildSettings::default())?;
    let address = receiver
        .address(linerate_lab::scenario::Family::Ipv4)
        .to_string();
    let mut command = linerate(["test", &address, "-t", "5", "--fq-rate", "950M", "--json"]);
    command.stdout(std::process::Stdio::null());
    let program = Program::start(lab.host("sender")?, &mut command, &ChildSettings::default())?;
    wait_for(&serving)?;
    rest(Nanos::from_millis(1000))?;
    let before = lab.progress();
    let probes = Probes {
        count: 1500,
        interval: Nanos::from_millis(2),
    };
    let mut times = runner::one_way(&lab, "sender", "receiver", probes)?;
    let after = lab.progress();
    drop((program, serving));
    let carried = rate_between(&before, &after, |counters| counters.ours.delivered.bytes);
    let report = lab.down()?;
    let late = report.path.forward.lateness.p99;
    let stolen = report.stolen.map_or(String::new(), |share| {
        format!("; {:.1} % of CPU time stolen", 100.0 * share)
    });
    let p99 = quantile_ms(&mut times, 0.99);
    let note = format!(
        "carried {carried} of IP meanwhile, {} of {} probes; the engine's own lateness, 99 %: {late}{stolen}",
        times.len(),
        probes.count
    );
    Ok(Check::new("delay at 1 Gbit/s, 99 %", "ms", 10.0, p99, [10.0, 11.0]).with(note))
}

fn rate(isolation: Isolation, _: &SignalFd) -> Result<Check, Failure> {
    let text = "mode = \"packet\"\n[path]\nrate = \"200M\"\nrtt = \"10ms\"\n";
    let lab = Lab::up(&scenario(text)?, isolation)?;
    let receiver = lab.host("receiver")?;
    let serving = Serving::start(receiver, &[], &ChildSettings::default())?;
    let address = receiver
        .address(linerate_lab::scenario::Family::Ipv4)
        .to_string();
    // More than the path takes, so that its queue always stands.
    let mut command = linerate(["test", &address, "-t", "5", "-u", "-b", "220M", "--json"]);
    command.stdout(std::process::Stdio::null());
    let program = Program::start(lab.host("sender")?, &mut command, &ChildSettings::default())?;
    wait_for(&serving)?;
    rest(Nanos::from_millis(1500))?;
    let before = lab.progress();
    rest(Nanos::from_millis(3000))?;
    let after = lab.progress();
    drop((program, serving));
    lab.down()?;
    // As the path counts it: IP bytes and 38 a packet.
    let achieved = rate_between(&before, &after, |counters| {
        counters.ours.delivered.bytes + 38 * counters.ours.delivered.segments
    });
    let achieved = achieved.0 as f64 / 1e6;
    Ok(Check::new(
        "rate of a shaped path",
        "Mbit/s",
        200.0,
        achieved,
        [198.0, 202.0],
    ))
}

fn loss(isolation: Isolation, signals: &SignalFd) -> Result<Check, Failure> {
    let text = "mode = \"packet\"\nseed = 11\n[path]\nrtt = \"10ms\"\nloss = 0.01\n[test]\nargs = \"-u -b 40M -l 1400 -t 5\"\n";
    let options = RunOptions {
        document: true,
        ..RunOptions::default()
    };
    let ran = run::run(&scenario(text)?, isolation, &options, signals)?;
    let forward = &ran.lab.path.forward.counters;
    let (sent, lost) = (
        forward.ours.offered.segments as f64,
        forward.ours.dropped.loss.segments as f64,
    );
    let achieved = lost / sent.max(1.0);
    // 99 % of the binomial distribution.
    let half = 2.576 * (0.01 * 0.99 / sent.max(1.0)).sqrt();
    let note = format!("{lost} of {sent} packets");
    Ok(Check::new("loss", "share", 0.01, achieved, [0.01 - half, 0.01 + half]).with(note))
}

fn cubic(isolation: Isolation, signals: &SignalFd) -> Result<Check, Failure> {
    let (odds, rtt) = (0.002, 0.020);
    let text = "mode = \"packet\"\nseed = 5\n[path]\nrtt = \"20ms\"\nloss = 0.002\n[test]\nargs = \"-t 20 -O 1\"\n";
    let options = RunOptions {
        document: true,
        ..RunOptions::default()
    };
    let ran = run::run(&scenario(text)?, isolation, &options, signals)?;
    let document: serde_json::Value = serde_json::from_slice(&ran.document).unwrap_or_default();
    let whole = whole_rate(&document).ok_or_else(|| {
        Failure::Lab(format!(
            "the test under loss came to no figure: {}",
            ran.complaint
        ))
    })?;
    let model = 1448.0 * 8.0 / rtt * 1.22 / f64::sqrt(odds) / 1e6;
    let hits = ran.lab.path.forward.counters.loss_hits;
    let note = format!(
        "{hits} losses, cubic on the route: {}",
        ran.lab.in_force.hosts["sender"].route_congestion
    );
    let bounds = [0.75 * model, 1.25 * model];
    Ok(Check::new(
        "one CUBIC flow under loss",
        "Mbit/s",
        model,
        whole / 1e6,
        bounds,
    )
    .with(note))
}

/// Goodput of the whole run without the omitted part, bit/s.
fn whole_rate(document: &serde_json::Value) -> Option<f64> {
    document.pointer("/summary/whole_run_bps")?.as_f64()
}

fn rate_between(before: &Progress, after: &Progress, bytes: fn(&Counters) -> u64) -> BitRate {
    let moved = bytes(&after.forward.counters).saturating_sub(bytes(&before.forward.counters));
    let span = after.forward.at.since(before.forward.at);
    BitRate::of(linerate_model::units::Bytes(moved), span).unwrap_or_default()
}

/// Waits until the test's streams run.
fn wait_for(serving: &Serving) -> Result<(), Failure> {
    use linerate_kernel::poll::{Interest, PollEntry};
    use std::os::fd::AsFd as _;
    let mut entries = [PollEntry::new(serving.started.as_fd(), Interest::READ)];
    match poll::wait(&mut entries, Some(Nanos::from_millis(10_000))) {
        Ok(1..) => Ok(()),
        _ => Err(Failure::Lab(
            "the test did not begin within 10 s".to_owned(),
        )),
    }
}

/// Lets time pass, for a measurement that takes that long.
fn rest(span: Nanos) -> Result<(), Failure> {
    let end = clock::monotonic().plus(span);
    loop {
        let left = end.since(clock::monotonic());
        if left == Nanos::ZERO {
            return Ok(());
        }
        poll::wait(&mut [], Some(left))
            .map_err(|error| Failure::Lab(format!("cannot wait: {error}")))?;
    }
}
