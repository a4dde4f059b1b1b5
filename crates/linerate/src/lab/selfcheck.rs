//! `linerate lab selfcheck`: what was asked of the lab, and what it made of it.
//!
//! Nothing is believed of the path's own counters: delay is measured with probes from host to host, on the one clock
//! that both have; rate by the receiving application while the queue stood; loss by the datagrams that the receiver
//! missed; and one CUBIC flow under loss against the model of Mathis (CCR 27(3), 1997) with C = 1.22 and the odds
//! that came, where CUBIC keeps to its Reno-friendly region (RFC 9438, section 4.3). What is random has another seed
//! each time.

use std::fmt::Write as _;

use linerate_kernel::process::ChildSettings;
use linerate_kernel::{clock, counters, poll, thread};
use linerate_lab::path::Counters;
use linerate_lab::runner::{self, Account, Isolation, Lab, Passage, Probes};
use linerate_lab::scenario::{Scenario, Way};
use linerate_model::units::{BitRate, Nanos};
use serde::Serialize;

use super::programs::{Program, Serving, linerate};
use super::run::{self, RunOptions};
use crate::action::Failure;
use crate::printer::Printer;
use crate::signals;
use linerate_kernel::thread::SignalFd;
use linerate_model::words;

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
    /// Times that it was made: the last one counts, those before did not hold while CPU time was stolen.
    attempts: u32,
    /// What else was seen.
    note: String,
}

type Measure = fn(Isolation, &SignalFd, u32) -> Result<Check, Failure>;

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
            attempts: 1,
            note: String::new(),
        }
    }

    /// Without what was to be measured under, or enough to measure with, a figure shows nothing.
    fn only_if(mut self, measured: bool) -> Self {
        self.holds &= measured;
        self
    }

    fn with(mut self, note: String) -> Self {
        self.note = note;
        self
    }
}

pub(super) fn run(seed: Option<u32>, json: bool, printer: &Printer) -> Result<(), Failure> {
    let signals = signals::take_stops()?;
    let isolation = runner::isolate()?;
    let checks: [(&str, Measure); 5] = [
        ("delay of an idle path, 2 s", idle),
        ("delay under 1 Gbit/s packet by packet, 6 s", saturated),
        ("rate of a shaped path, 6 s", rate),
        ("loss, 6 s", loss),
        ("a CUBIC flow under loss, 32 s", cubic),
    ];
    let seed = match seed {
        Some(seed) => seed,
        None => another_seed()?,
    };
    let mut all = Vec::new();
    for (what, check) in checks {
        printer.tell(&format!("checking {what} …"));
        all.push(patiently(check, seed, isolation, &signals, printer)?);
        if let Ok(Some(_)) = signals.read() {
            return Err(Failure::Lab("stopped by a signal".to_owned()));
        }
    }
    if json {
        printer.json(&serde_json::json!({ "seed": seed, "checks": all }).to_string())?;
    } else {
        printer.print(&table(&all))?;
        printer.line(&format!("seed {seed}"))?;
    }
    let missed = all.iter().filter(|check| !check.holds).count();
    if missed > 0 {
        return Err(Failure::Missed(format!(
            "{missed} of {} checks failed",
            all.len()
        )));
    }
    Ok(())
}

/// A hypervisor that gives the CPUs to others for tens of milliseconds delays what a lab lets go: no fault of
/// the lab's, and over in a while. So a check that does not hold while CPU time is stolen is made again.
fn patiently(
    check: Measure,
    seed: u32,
    isolation: Isolation,
    signals: &SignalFd,
    printer: &Printer,
) -> Result<Check, Failure> {
    let made = |attempts| {
        let check = check(isolation, signals, seed.wrapping_add(attempts))?;
        Ok::<_, Failure>(Check { attempts, ..check })
    };
    for attempt in 1..ATTEMPTS {
        let before = stolen_time();
        let result = made(attempt)?;
        let stolen = stolen_time().saturating_sub(before);
        if result.holds || stolen < STOLEN {
            return Ok(result);
        }
        printer.tell(&format!(
            "{} failed ({:.3} {}), and the hypervisor gave {stolen} ms of this machine's CPU time to others: attempt \
             {} of {ATTEMPTS} …",
            result.name, result.achieved, result.unit, attempt + 1
        ));
    }
    made(ATTEMPTS)
}

fn another_seed() -> Result<u32, Failure> {
    let mut bytes = [0; 4];
    thread::random(&mut bytes)
        .map_err(|error| Failure::Lab(format!("cannot draw a seed: {error}")))?;
    Ok(u32::from_ne_bytes(bytes))
}

/// CPU time that went to other machines since this one started, ms.
fn stolen_time() -> u64 {
    counters::machine().map_or(0, |machine| machine.stolen)
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
        let note = match check.attempts {
            1 => check.note.clone(),
            attempts => format!("attempt {attempts}; {}", check.note),
        };
        let _ = writeln!(
            out,
            "{what:<34} {:>10.4} {:>10.4} {wanted:>22}  {holds}{}{note}",
            check.asked,
            check.achieved,
            words::when(!note.is_empty(), "; "),
        );
    }
    out
}

fn scenario(text: &str) -> Result<Scenario, Failure> {
    Ok(Scenario::parse(
        "selfcheck",
        &format!("name = \"selfcheck\"\nabout = \"a check\"\nengine = \"nfqueue\"\n{text}"),
    )?)
}

/// Of IP; 950 Mbit/s of payload are asked for, which are 985.
const LOAD: BitRate = BitRate(950_000_000);
/// Of the probes.
const CAME: f64 = 0.99;

/// Whether a quantile of those that came is one of all.
fn enough_came(passages: &[Passage], probes: Probes) -> bool {
    passages.len() as f64 >= CAME * probes.count as f64
}

/// When the probes arrived and when they were read, each ascending.
fn times(passages: &[Passage]) -> (Vec<Nanos>, Vec<Nanos>) {
    let ascending = |time: fn(&Passage) -> Nanos| {
        let mut times: Vec<Nanos> = passages.iter().map(time).collect();
        times.sort_unstable();
        times
    };
    (ascending(|one| one.arrived), ascending(|one| one.read))
}

/// The value that this share of all, which ascend, is not above, ms.
fn quantile_ms(times: &[Nanos], share: f64) -> f64 {
    let last = times.len().saturating_sub(1);
    let place = linerate_model::units::whole(last as f64 * share);
    let place = usize::try_from(place).unwrap_or(last).min(last);
    times
        .get(place)
        .map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

fn idle(isolation: Isolation, _: &SignalFd, _: u32) -> Result<Check, Failure> {
    let lab = Lab::up(
        &scenario("mode = \"packet\"\n[path]\nrtt = \"20ms\"\n")?,
        isolation,
    )?;
    let probes = Probes {
        count: 200,
        interval: Nanos::from_millis(10),
    };
    let passages = runner::one_way(&lab, "sender", "receiver", probes)?;
    let (arrived, read) = times(&passages);
    let median = quantile_ms(&arrived, 0.5);
    let note = format!(
        "99 %: {:.3} ms, {} lost; read by a program: {:.3} ms",
        quantile_ms(&arrived, 0.99),
        probes.count - passages.len(),
        quantile_ms(&read, 0.5),
    );
    lab.down()?;
    let check = Check::new("idle delay", "ms", 10.0, median, [10.0, 10.3]);
    Ok(check.only_if(enough_came(&passages, probes)).with(note))
}

/// No bottleneck, so that nothing but the lab itself can delay a packet beyond its path.
fn saturated(isolation: Isolation, _: &SignalFd, _: u32) -> Result<Check, Failure> {
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
    let passages = runner::one_way(&lab, "sender", "receiver", probes)?;
    let after = lab.progress();
    drop((program, serving));
    let carried = rate_between(&before, &after, |counters| counters.ours.delivered.bytes)
        .ok_or_else(by_queues)?;
    let report = lab.down()?;
    let late = match &report.path {
        Account::Queues(path) => path.forward.lateness.p99,
        Account::Disciplines(_) => return Err(by_queues()),
    };
    let stolen = report.stolen.map_or(String::new(), |share| {
        format!("; {:.1} % of CPU time stolen", 100.0 * share)
    });
    let (arrived, read) = times(&passages);
    let p99 = quantile_ms(&arrived, 0.99);
    let note = format!(
        "carried {carried} of IP meanwhile, {} of {} probes; read by a program: {:.3} ms; the engine's own lateness, 99 %: {late}{stolen}",
        passages.len(),
        probes.count,
        quantile_ms(&read, 0.99),
    );
    let loaded = carried >= LOAD && enough_came(&passages, probes);
    let check = Check::new("delay at 1 Gbit/s, 99 %", "ms", 10.0, p99, [10.0, 11.0]);
    Ok(check.only_if(loaded).with(note))
}

/// Datagrams of this payload in the checks of rate and loss, and what each costs beside it on the path: headers of
/// UDP and IPv4, and the path's overhead.
const PAYLOAD: f64 = 1400.0;
const BESIDE: f64 = 28.0 + 38.0;

/// Runs a test across a path and reads its document.
fn tested(
    text: &str,
    isolation: Isolation,
    signals: &SignalFd,
) -> Result<(run::Ran, serde_json::Value), Failure> {
    let options = RunOptions {
        document: true,
        ..RunOptions::default()
    };
    let ran = run::run(&scenario(text)?, isolation, &options, signals)?;
    let document = serde_json::from_slice(&ran.document).map_err(|_| no_figure(&ran))?;
    Ok((ran, document))
}

fn no_figure(ran: &run::Ran) -> Failure {
    Failure::Lab(format!("the test came to no figure: {}", ran.complaint))
}

/// More is sent than the path takes, so that its queue always stands from the first second on.
fn rate(isolation: Isolation, signals: &SignalFd, _: u32) -> Result<Check, Failure> {
    let text = "mode = \"packet\"\n[path]\nrate = \"200M\"\nrtt = \"10ms\"\n[test]\nargs = \"-u -b 210M -l 1400 -t 5\"\n";
    let (ran, document) = tested(text, isolation, signals)?;
    let payload =
        received(&document, [1_000_000_000, 5_000_000_000]).ok_or_else(|| no_figure(&ran))?;
    let achieved = payload * (PAYLOAD + BESIDE) / PAYLOAD / 1e6;
    Ok(Check::new(
        "rate of a shaped path",
        "Mbit/s",
        200.0,
        achieved,
        [198.0, 202.0],
    )
    .with("by the receiving application".to_owned()))
}

/// What the receiving application read in whole intervals between two instants, bit/s.
fn received(document: &serde_json::Value, [from, to]: [u64; 2]) -> Option<f64> {
    let within = document["intervals"].as_array()?.iter().filter(|interval| {
        let at = |key: &str| interval[key].as_u64();
        interval["measured_at"] == "receiving_application"
            && at("from_ns").is_some_and(|at| at >= from)
            && at("to_ns").is_some_and(|at| at <= to)
    });
    let (bytes, span) = within.fold((0, 0), |(bytes, span), interval| {
        let of = |key: &str| interval[key].as_u64().unwrap_or(0);
        (bytes + of("bytes"), span + of("to_ns") - of("from_ns"))
    });
    (span > 0).then(|| bytes as f64 * 8e9 / span as f64)
}

fn loss(isolation: Isolation, signals: &SignalFd, seed: u32) -> Result<Check, Failure> {
    let text = format!(
        "mode = \"packet\"\nseed = {seed}\n[path]\nrtt = \"10ms\"\nloss = 0.01\n[test]\nargs = \"-u -b 40M -l 1400 -t 5\"\n"
    );
    let (ran, document) = tested(&text, isolation, signals)?;
    let datagrams = |key: &str| {
        document
            .pointer(&format!("/summary/directions/0/datagrams/{key}"))
            .and_then(serde_json::Value::as_f64)
            .ok_or_else(|| no_figure(&ran))
    };
    let (sent, lost) = (datagrams("sent")?, datagrams("path_lost")?);
    // 99.9 % of the binomial distribution: by chance one run in a thousand is outside.
    let half = 3.29 * (0.01 * 0.99 / sent.max(1.0)).sqrt();
    let note = format!("the receiver missed {lost} of {sent} datagrams, seed {seed}");
    Ok(Check::new(
        "loss",
        "share",
        0.01,
        lost / sent.max(1.0),
        [0.01 - half, 0.01 + half],
    )
    .with(note))
}

fn cubic(isolation: Isolation, signals: &SignalFd, seed: u32) -> Result<Check, Failure> {
    let rtt = 0.020;
    let text = format!(
        "mode = \"packet\"\nseed = {seed}\n[path]\nrtt = \"20ms\"\n[path.forward]\nloss = 0.002\n[test]\nargs = \"-t 30 -O 1\"\n"
    );
    let (ran, document) = tested(&text, isolation, signals)?;
    let whole = whole_rate(&document).ok_or_else(|| no_figure(&ran))?;
    let counters = ran.lab.path.counters(Way::Forward).ok_or_else(by_queues)?;
    let (hits, trials) = (counters.loss_hits, counters.loss_trials);
    let odds = hits.max(1) as f64 / trials.max(1) as f64;
    let model = 1448.0 * 8.0 / rtt * 1.22 / odds.sqrt() / 1e6;
    let used = document.pointer("/summary/directions/0/congestion/0");
    let used = used.and_then(serde_json::Value::as_str);
    let note = format!(
        "{hits} losses of {trials}; the sender's socket used {}, seed {seed}",
        used.unwrap_or("an unknown congestion control")
    );
    let bounds = [0.75 * model, 1.25 * model];
    let check = Check::new(
        "one CUBIC flow under loss",
        "Mbit/s",
        model,
        whole / 1e6,
        bounds,
    );
    Ok(Check {
        holds: check.holds && used == Some("cubic"),
        ..check.with(note)
    })
}

/// Goodput of the whole run without the omitted part, bit/s.
fn whole_rate(document: &serde_json::Value) -> Option<f64> {
    document.pointer("/summary/whole_run_bps")?.as_f64()
}

/// `None` of an engine that does not count it.
fn rate_between(before: &Account, after: &Account, bytes: fn(&Counters) -> u64) -> Option<BitRate> {
    let (Account::Queues(before), Account::Queues(after)) = (before, after) else {
        return None;
    };
    let moved = bytes(&after.forward.counters).saturating_sub(bytes(&before.forward.counters));
    let span = after.forward.at.since(before.forward.at);
    Some(BitRate::of(linerate_model::units::Bytes(moved), span).unwrap_or_default())
}

/// The checks ask for the engine by packet queues, whose counters they read.
fn by_queues() -> Failure {
    Failure::Lab("the check needs the engine by packet queues".to_owned())
}

/// Waits until the test's streams run.
fn wait_for(serving: &Serving) -> Result<(), Failure> {
    use linerate_kernel::poll::{Interest, PollEntry};
    use std::os::fd::AsFd as _;
    let mut entries = [PollEntry::new(serving.news.as_fd(), Interest::READ)];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_what_the_application_read_in_whole_intervals() {
        let interval = |from: u64, to: u64, bytes: u64| {
            serde_json::json!({
                "measured_at": "receiving_application",
                "from_ns": from, "to_ns": to, "bytes": bytes
            })
        };
        let second = 1_000_000_000;
        let document = serde_json::json!({ "intervals": [
            interval(0, second, 9_000_000),
            interval(second, 2 * second, 1_000_000),
            interval(2 * second, 3 * second, 3_000_000),
            interval(3 * second, 4 * second + 1, 9_000_000),
        ] });
        assert_eq!(received(&document, [second, 4 * second]), Some(16e6));
        assert_eq!(received(&document, [9 * second, 10 * second]), None);
    }

    #[test]
    fn a_table_tells_of_further_attempts() {
        let check = Check {
            attempts: 3,
            ..Check::new("loss", "share", 0.01, 0.02, [0.008, 0.012])
        };
        let text = table(&[check.with("some".to_owned())]);
        assert!(text.contains("NO; attempt 3; some"), "{text}");
    }
}
