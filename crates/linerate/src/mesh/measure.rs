//! Measures a mesh: announces it, runs its rounds, repeats what failed or looked odd, keeps and prints it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::SystemTime;

use linerate_kernel::clock;
use linerate_model::mesh::{Mesh, MeshCause, MeshOutcome, MeshTest, SCHEMA_VERSION};
use linerate_model::plain_text::PlainText;
use linerate_model::plan::{End, Plan};
use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_report::mesh as report;
use linerate_report::mesh::Page;
use linerate_watch::cause::{causes, to_confirm, to_repeat};
use linerate_watch::rounds::{Asked, Costs, Estimate, Pair, Schedule, schedule};

use super::arguments::{CommonArguments, MeasureArguments};
use super::field::Field;
use super::folder::{self, DOCUMENT, Folder};
use super::rounds::Tests;
use super::{print, verdict, viewed};
use crate::action::Failure;
use crate::arguments::Budget;
use crate::between::roles::of_the_client_alone;
use crate::place::HostPlace;
use crate::printer::Printer;
use crate::signals;

/// What a round takes beyond its tests: both ends start, connect and report. Measured with ssh over loopback.
const OVERHEAD: Nanos = Nanos::from_millis(1_500);
/// What a test is where nobody says.
const USUAL_TEST: [&str; 2] = ["-t", "5"];
/// Source ports begin here where they are spread: outside the kernel's own range (32768 to 60999 by default), which
/// other programs use.
const FIRST_PORT: u16 = 20_000;
/// Why a test has no result until its round.
const NOT_YET: &str = "the mesh ended before its round";
/// Pairs that failed or were busy are tried again once; and no more rounds than this are made of them.
const MOST_AGAIN: usize = 8;
/// So many of the slowest tests have a page of their own beside the mesh's; `linerate show RECORD --html` makes the others.
const MOST_PAGES: usize = 24;
/// No more pairs than this are repeated alone.
const MOST_ALONE: usize = 24;

pub(super) fn run(arguments: &MeasureArguments, printer: &Printer) -> Result<(), Failure> {
    let common = &arguments.common;
    let names = hosts(arguments)?;
    let asked = asked(arguments, &names)?;
    let Test { plan, words, port } = test(common, arguments.ports)?;
    let whole = schedule(names.len(), &asked, arguments.both, arguments.seed);
    if arguments.dry_run {
        printer.line(&announcement(names.len(), &whole, &plan))?;
        return Ok(());
    }
    if whole.rounds.iter().all(Vec::is_empty) {
        return Err(Failure::Usage(
            "--only leaves no pair of different hosts".to_owned(),
        ));
    }
    let path = common.output.clone().unwrap_or_else(default_folder);
    let folder = Folder::take(&path, !arguments.resume)?;
    let earlier = if arguments.resume {
        Some(same(folder::mesh(&path)?, arguments, &names, &words)?)
    } else {
        None
    };
    let stop = signals::take_stops()?;
    let field = Field::open(names, common, &stop, printer)?;
    let mut course = Course {
        mesh: Mesh {
            schema_version: SCHEMA_VERSION,
            started_unix_s: earlier
                .as_ref()
                .map_or_else(unix_s, |earlier| earlier.started_unix_s),
            hosts: field.hosts(),
            groups: field.groups(&common.reach.named_groups()?),
            rounds: 0,
            bound: 0,
            options: words.join(" ").into(),
            both: arguments.both,
            wave: arguments.wave,
            expected_bps: arguments.expect.map(|rate| rate.bits_per_second() as f64),
            via: common.reach.via().map(PlainText::from),
            tests: Vec::new(),
        },
        tests: Tests {
            plan: &plan,
            words: &words,
            both: arguments.both,
            wave: arguments.wave,
            first_port: arguments.ports.map(|_| FIRST_PORT),
            owner: &owner(),
            port,
            begun: clock::monotonic(),
            offset: earlier.as_ref().map_or(Nanos::ZERO, last_end),
            stop: &stop,
        },
        field,
        folder: &folder,
        budget: arguments.budget,
        printer,
        sent: Bytes(0),
        counted: 0,
    };
    let left = course.begin(earlier, whole, arguments.seed)?;
    course.run(&left)?;
    signals::release(&stop, &[signals::INTERRUPT]);
    let mesh = course.mesh;
    let causes = causes(&mesh);
    write_report(&folder, &mesh, &causes)?;
    print(&mesh, common.json, printer)?;
    printer.tell(&format!(
        "Records, report.html, mesh.svg and mesh.csv are in {}",
        folder.path().display()
    ));
    verdict(&mesh, &causes)
}

/// A mesh that is being measured.
struct Course<'a> {
    mesh: Mesh,
    tests: Tests<'a>,
    field: Field,
    folder: &'a Folder,
    budget: Option<Budget>,
    printer: &'a Printer,
    /// Payload of the tests so far.
    sent: Bytes,
    /// How many tests that is.
    counted: u64,
}

impl Course<'_> {
    /// Takes over what an earlier run measured, books all other tests as not run, and plans those that can be.
    fn begin(
        &mut self,
        earlier: Option<Mesh>,
        whole: Schedule,
        seed: u64,
    ) -> Result<Schedule, Failure> {
        let all = self.field.len();
        let due: Vec<Pair> = whole.rounds.into_iter().flatten().collect();
        let kept = earlier
            .map(|earlier| measured(earlier, self.tests.both))
            .unwrap_or_default();
        let is_left = |pair: &&Pair| {
            let of = |test: &MeshTest| (test.from, test.to) == (pair.from, pair.to);
            !kept.iter().any(of)
        };
        let stands = |host: usize| self.field.at(host).is_ok();
        let (left, lost): (Vec<Pair>, Vec<Pair>) = due
            .iter()
            .filter(is_left)
            .partition(|pair| stands(pair.from) && stands(pair.to));
        for pair in lost {
            let why = [pair.from, pair.to].into_iter().find_map(|host| {
                let why = self.field.at(host).err()?;
                Some(format!("{} was not reached: {why}", self.field.name(host)))
            });
            self.book(pair, why.unwrap_or_default());
        }
        for pair in &left {
            self.book(*pair, NOT_YET.to_owned());
        }
        let schedule = schedule(all, &Asked::These(left), self.tests.both, seed);
        let next = kept.iter().map(|test| test.round + 1).max().unwrap_or(0);
        self.mesh.rounds = next + to_u32(schedule.rounds.len());
        self.mesh.bound = to_u32(if kept.is_empty() {
            schedule.bound
        } else {
            whole.bound
        });
        self.mesh.tests.extend(kept);
        self.save()?;
        Ok(schedule)
    }

    /// Takes results: each in the place of its test, unless that was measured.
    fn take(&mut self, results: Vec<MeshTest>) {
        for result in results {
            let same = |test: &&mut MeshTest| {
                !test.alone && (test.from, test.to) == (result.from, result.to)
            };
            if let Some(booked) = self.mesh.tests.iter_mut().find(same)
                && !matches!(booked.outcome, MeshOutcome::Measured(_))
            {
                *booked = result;
            }
        }
    }

    fn run(&mut self, schedule: &Schedule) -> Result<(), Failure> {
        let standing = self.field.standing().len();
        self.printer
            .tell(&announcement(standing, schedule, self.tests.plan));
        self.tests.begun = clock::monotonic();
        let all = schedule.rounds.len();
        let first = self.mesh.rounds - to_u32(all);
        for (at, pairs) in schedule.rounds.iter().enumerate() {
            if let Some(why) = self.ended(pairs.len()) {
                for pair in schedule.rounds[at..].iter().flatten() {
                    self.take(vec![not_run(*pair, why.clone())]);
                }
                break;
            }
            self.round(pairs, first + to_u32(at), all - at)?;
        }
        self.again()?;
        self.together()?;
        self.alone()?;
        self.mesh.hosts = self.field.hosts();
        self.save()
    }

    fn round(&mut self, pairs: &[Pair], number: u32, left: usize) -> Result<(), Failure> {
        let round = round_time(self.tests.plan);
        let line = report::round_line(&report::Round {
            number: number + 1,
            rounds: self.mesh.rounds,
            tests: pairs.len(),
            left: Some(Nanos(round.0.saturating_mul(left as u64))),
        });
        // The output may be gone; the last write says so.
        drop(self.printer.status(&line));
        let tests = self.made(pairs, number, false)?;
        self.take(tests);
        self.save()
    }

    /// Runs tests, counts what they sent, and connects again to hosts that were lost meanwhile.
    fn made(&mut self, pairs: &[Pair], number: u32, alone: bool) -> Result<Vec<MeshTest>, Failure> {
        let tests = self
            .tests
            .round(&self.field, pairs, number, alone, self.folder)?;
        for test in &tests {
            match &test.outcome {
                MeshOutcome::Measured(figures) => {
                    let bytes = amount(self.tests.plan, figures.goodput_bps);
                    self.sent = Bytes(self.sent.0.saturating_add(bytes.0));
                    self.counted += 1;
                }
                MeshOutcome::Failed { .. } | MeshOutcome::NotRun { .. } => {
                    let names = (self.field.name(test.from), self.field.name(test.to));
                    self.printer
                        .tell(&report::ended_line(names.0, names.1, test));
                }
            }
        }
        self.field.mend(self.tests.stop, false);
        Ok(tests)
    }

    /// Why no further round begins; `None` where one may.
    fn ended(&self, tests: usize) -> Option<String> {
        if crate::between::asked(self.tests.stop) {
            return Some("the mesh was stopped".to_owned());
        }
        let spent = clock::monotonic().since(self.tests.begun);
        match self.budget? {
            Budget::Time(time) if spent.plus(round_time(self.tests.plan)) > time => {
                Some(format!("the budget of {time} was used up"))
            }
            Budget::Data(most) => {
                let next = (self.sent.0 / self.counted.max(1)).saturating_mul(tests as u64);
                (self.sent.0.saturating_add(next) > most.0)
                    .then(|| format!("the budget of {most} was used up"))
            }
            Budget::Time(_) => None,
        }
    }

    /// Tries pairs without a result once more, where their hosts answer now.
    fn again(&mut self) -> Result<(), Failure> {
        if self.ended(1).is_some() {
            return Ok(());
        }
        self.field.mend(self.tests.stop, true);
        let mut pairs = Vec::new();
        for test in &self.mesh.tests {
            let measured = matches!(test.outcome, MeshOutcome::Measured(_));
            let stand = [test.from, test.to].map(|host| self.field.at(host).is_ok());
            if !measured && stand == [true, true] {
                pairs.push(Pair::new(test.from, test.to));
            }
        }
        let hosts = self.field.len();
        let schedule = schedule(hosts, &Asked::These(pairs), self.tests.both, 0);
        for (at, pairs) in schedule.rounds.iter().take(MOST_AGAIN).enumerate() {
            if self.ended(pairs.len()).is_some() {
                return Ok(());
            }
            let tests = self.made(pairs, self.mesh.rounds + to_u32(at), false)?;
            self.take(tests);
            self.save()?;
        }
        Ok(())
    }

    /// Repeats rounds whose tests seem to share a link.
    fn together(&mut self) -> Result<(), Failure> {
        if self.tests.both {
            return Ok(());
        }
        for pairs in to_repeat(&self.mesh) {
            if self.ended(pairs.len()).is_some() {
                return Ok(());
            }
            let last = self.mesh.tests.iter().map(|test| test.round).max();
            let line = format!(
                "repeating a round of {} tests that seem to share a link",
                pairs.len()
            );
            drop(self.printer.status(&line));
            let tests = self.made(&pairs, last.unwrap_or(0) + 1, false)?;
            self.mesh.tests.extend(tests);
            self.save()?;
        }
        Ok(())
    }

    /// Repeats alone what decides between causes.
    fn alone(&mut self) -> Result<(), Failure> {
        // Ends: each turn repeats at least one pair that was not repeated.
        let mut made = 0;
        loop {
            let pairs = to_confirm(&self.mesh);
            if pairs.is_empty() || made >= MOST_ALONE || self.tests.both {
                return Ok(());
            }
            for pair in pairs.into_iter().take(MOST_ALONE - made) {
                if self.ended(1).is_some() {
                    return Ok(());
                }
                let (from, to) = (self.field.name(pair.from), self.field.name(pair.to));
                let line = format!("repeating {from} → {to} while nothing else runs");
                drop(self.printer.status(&line));
                made += 1;
                let number = self.mesh.rounds;
                let tests = self.made(&[pair], number, true)?;
                self.mesh.tests.extend(tests);
            }
            self.save()?;
        }
    }

    /// Books a test that does not begin.
    fn book(&mut self, pair: Pair, why: String) {
        self.mesh.tests.push(not_run(pair, why));
    }

    fn save(&self) -> Result<(), Failure> {
        let document = viewed(&self.mesh, &[], report::json);
        self.folder.write(DOCUMENT, document.as_bytes())
    }
}

/// A test that does not begin.
fn not_run(pair: Pair, why: String) -> MeshTest {
    MeshTest {
        from: pair.from,
        to: pair.to,
        round: 0,
        alone: false,
        source_port: None,
        span: None,
        outcome: MeshOutcome::NotRun { why: why.into() },
        record: None,
    }
}

/// The mesh of a folder, where its hosts and options are those of now: two different ones are never mixed.
fn same(
    earlier: Mesh,
    arguments: &MeasureArguments,
    names: &[String],
    words: &[String],
) -> Result<Mesh, Failure> {
    let hosts = earlier.hosts.iter().map(|host| host.name.as_ref());
    let what = if !hosts.eq(names.iter().map(String::as_str)) {
        "hosts"
    } else if *earlier.options != *words.join(" ") {
        "options of its tests"
    } else if (earlier.both, earlier.wave) != (arguments.both, arguments.wave) {
        "--both or --wave"
    } else {
        return Ok(earlier);
    };
    Err(Failure::Usage(format!(
        "the mesh in this folder has other {what}: its hosts are {}, its options {}; --resume goes on with the same ones",
        super::folded(
            &earlier
                .hosts
                .iter()
                .map(|host| host.name.as_ref())
                .collect::<Vec<_>>()
        ),
        earlier.options
    )))
}

/// When the last test of an earlier run ended.
fn last_end(mesh: &Mesh) -> Nanos {
    let ends = mesh.tests.iter().filter_map(|test| Some(test.span?.end));
    ends.max().unwrap_or(Nanos::ZERO)
}

/// The report of a mesh in all its forms.
fn write_report(folder: &Folder, mesh: &Mesh, causes: &[MeshCause]) -> Result<(), Failure> {
    let pages = pages(folder, mesh)?;
    let (json, html, svg) = viewed(mesh, causes, |source, view| {
        let kept = folder.path().display().to_string();
        let page = Page {
            view,
            report: &|record| pages.get(record).cloned(),
            kept: Some(&kept),
        };
        (
            report::json(source, view),
            report::html(&page),
            report::svg(view),
        )
    });
    folder.write(DOCUMENT, json.as_bytes())?;
    folder.write("report.html", html.as_bytes())?;
    folder.write("mesh.svg", svg.as_bytes())?;
    folder.write("mesh.csv", report::csv(mesh).as_bytes())
}

/// Reports of the slowest tests, by the names of their records.
fn pages(folder: &Folder, mesh: &Mesh) -> Result<BTreeMap<String, String>, Failure> {
    let mut rates: Vec<(f64, &str)> = Vec::new();
    for test in &mesh.tests {
        if let (MeshOutcome::Measured(figures), Some(record)) = (&test.outcome, &test.record) {
            rates.push((figures.goodput_bps, record.as_ref()));
        }
    }
    rates.sort_by(|one, other| one.0.total_cmp(&other.0));
    let slowest = rates.iter().take(MOST_PAGES);
    slowest
        .map(|(_, record)| Ok(((*record).to_owned(), folder.page(record)?)))
        .collect()
}

/// Tests of an earlier run that were measured; of pairs that run both ways at once only those with both.
fn measured(earlier: Mesh, both: bool) -> Vec<MeshTest> {
    let is_measured = |test: &MeshTest| matches!(test.outcome, MeshOutcome::Measured(_));
    let ways: BTreeSet<(usize, usize)> = earlier
        .tests
        .iter()
        .filter(|test| is_measured(test))
        .map(|test| (test.from, test.to))
        .collect();
    let tests = earlier.tests.into_iter();
    tests
        .filter(|test| is_measured(test) && (!both || ways.contains(&(test.to, test.from))))
        .collect()
}

fn hosts(arguments: &MeasureArguments) -> Result<Vec<String>, Failure> {
    if arguments.nodes.is_empty() {
        return Err(Failure::Usage(
            "no hosts were given: linerate mesh node[01-16]".to_owned(),
        ));
    }
    let names = arguments.common.reach.hosts(&arguments.nodes.join(","))?;
    match names.len() {
        0 | 1 => Err(Failure::Usage(format!(
            "a mesh needs two hosts at least, and {} is {}",
            arguments.nodes.join(","),
            names.len()
        ))),
        _ => Ok(names),
    }
}

/// Which pairs.
fn asked(arguments: &MeasureArguments, names: &[String]) -> Result<Asked, Failure> {
    let Some(only) = &arguments.only else {
        return Ok(Asked::All);
    };
    let wrong = |why: String| Failure::Usage(format!("--only {only}: {why}"));
    if only == "ring" {
        return Ok(Asked::Ring);
    }
    if let Some(count) = only.strip_prefix("random:") {
        let count: usize = count
            .parse()
            .map_err(|_| wrong("write random:3 for three others of each host".to_owned()))?;
        let most = names.len() - 1;
        return if (1..=most).contains(&count) {
            Ok(Asked::Random(count))
        } else {
            Err(wrong(format!("each host has 1 to {most} others")))
        };
    }
    let (from, to) = only
        .split_once(':')
        .ok_or_else(|| wrong("it is none of ring, random:N and FROM:TO".to_owned()))?;
    let places = |set: &str| -> Result<Vec<usize>, Failure> {
        let hosts = arguments.common.reach.hosts(set)?;
        let place = |host: &String| {
            let place = names.iter().position(|name| name == host);
            place.ok_or_else(|| wrong(format!("{host} is not among the hosts of this mesh")))
        };
        hosts.iter().map(place).collect()
    };
    Ok(Asked::Between(places(from)?, places(to)?))
}

/// What each test is.
pub(super) struct Test {
    pub(super) plan: Plan,
    /// Its options, as `linerate test` reads them.
    pub(super) words: Vec<String>,
    /// The port to serve on, where one was asked for.
    pub(super) port: Option<u16>,
}

/// Reads what each test is asked for.
pub(super) fn test(common: &CommonArguments, ports: Option<u16>) -> Result<Test, Failure> {
    let mut typed: Vec<String> = if common.test.is_empty() {
        USUAL_TEST.map(str::to_owned).to_vec()
    } else {
        common.test.clone()
    };
    let own = HostPlace::request("host", &typed)?;
    if let Some(option) = of_the_client_alone(&own.plan) {
        return Err(Failure::Usage(format!(
            "{option} names something of one host, and the tests of a mesh have many"
        )));
    }
    if let Some(ports) = ports {
        typed.extend(["-P".to_owned(), ports.to_string()]);
        typed.extend(["--cport".to_owned(), FIRST_PORT.to_string()]);
    }
    let request = HostPlace::request("host", &typed)?;
    if request.plan.direction != linerate_model::plan::Direction::Send {
        return Err(Failure::Usage(
            "-R and --bidir are not for the tests of a mesh, which measures both directions; --both runs them at once"
                .to_owned(),
        ));
    }
    let arguments = &request.arguments;
    Ok(Test {
        words: crate::between::words(arguments),
        port: arguments.plan.has("-p").then_some(request.plan.port),
        plan: request.plan,
    })
}

/// What is about to happen, before it does.
fn announcement(hosts: usize, schedule: &Schedule, plan: &Plan) -> String {
    let per_test = plan.rate_bps.filter(|rate| rate.0 > 0);
    let streams = u64::from(plan.streams.max(1));
    let rate = per_test.map(|rate| BitRate(rate.0.saturating_mul(streams)));
    let estimate = estimate(schedule, plan, rate.unwrap_or(BitRate(0)));
    let line = report::plan_line(&report::Plan {
        hosts,
        tests: estimate.tests,
        rounds: to_u32(schedule.rounds.len()),
        bound: to_u32(schedule.bound),
        time: estimate.time,
        bytes: rate.map(|_| estimate.bytes),
    });
    if rate.is_some() {
        return line;
    }
    if let Some(amount) = asked_amount(plan) {
        let bytes = amount.0.saturating_mul(estimate.tests as u64);
        return format!("{line}, {} in all", Bytes(bytes));
    }
    let at_ten = self::estimate(schedule, plan, BitRate(10_000_000_000));
    format!(
        "{line}; if each test runs at 10 Gbit/s it sends {} in all, and the busiest host sends and receives {} together",
        at_ten.bytes, at_ten.busiest
    )
}

fn estimate(schedule: &Schedule, plan: &Plan, rate: BitRate) -> Estimate {
    schedule.estimate(&Costs {
        test: test_time(plan),
        overhead: OVERHEAD,
        rate,
    })
}

fn round_time(plan: &Plan) -> Nanos {
    test_time(plan).plus(OVERHEAD)
}

/// How long data flows in a test; of one that ends by an amount a guess.
fn test_time(plan: &Plan) -> Nanos {
    match plan.end {
        End::TimeNs(time) => time.plus(plan.omit_ns),
        End::Bytes(_) | End::Blocks(_) => Nanos::from_millis(10_000),
    }
}

/// Whose mesh it is, as others read it who want the same hosts.
pub(super) fn owner() -> String {
    crate::between::owner_of("mesh")
}

/// What a test at this rate sends.
#[expect(
    clippy::cast_possible_truncation,
    reason = "it saturates: what a test sends fits 64 bits"
)]
fn amount(plan: &Plan, goodput_bps: f64) -> Bytes {
    match plan.end {
        End::TimeNs(_) => {
            let seconds = test_time(plan).0 as f64 / 1e9;
            Bytes((goodput_bps * seconds / 8.0).max(0.0) as u64)
        }
        End::Bytes(_) | End::Blocks(_) => asked_amount(plan).unwrap_or(Bytes(0)),
    }
}

/// What a test sends that ends by an amount, where that is known beforehand.
fn asked_amount(plan: &Plan) -> Option<Bytes> {
    match plan.end {
        End::TimeNs(_) => None,
        End::Bytes(bytes) => Some(bytes),
        End::Blocks(blocks) => Some(Bytes(blocks.saturating_mul(plan.block_bytes.0))),
    }
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

pub(super) fn unix_s() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

pub(super) fn default_folder() -> PathBuf {
    let now = Nanos(unix_s().saturating_mul(1_000_000_000));
    linerate_kernel::process::local_label(now, "mesh-%Y%m%d-%H%M%S").into()
}
