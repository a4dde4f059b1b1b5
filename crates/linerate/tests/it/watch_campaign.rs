//! Regular tests over a lab's paths while these break: faults come one after another, and each has to be one cause, told
//! within three tests, until it is taken away.
//!
//! `make watch-campaign` repeats them in random order for hours. What the machine disturbed is made again, and said: each
//! fault leaves a pair alone, and what that one shows is the machine's doing.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use linerate_testing::{Need, skipped};
use serde_json::Value;

use super::harness::{
    LINERATE, LONG, alone, asked, lacks_programs, linerate, run, say, start, wait_until,
};
use super::hub::{Hub, text};
use super::star::Up;

/// The rate into each host, Mbit/s: also a machine that does other things keeps it full, and its queues with it.
const RATE: u64 = 10;
/// What a test shows of it: 1448 bytes of payload in 1538 on the wire.
const LEVEL: f64 = 10e6 * 1448.0 / 1538.0;
/// The rate of all else, Mbit/s.
const FAST: u64 = 60;
/// A pair that nothing is wrong with, and that shows less of its level than this, was disturbed.
const UNDISTURBED: f64 = 0.92;
/// So much of a time may programs wait for a CPU.
const PRESSURE: f64 = 0.6;
/// Each fault is tried so often while the machine disturbs it.
const ATTEMPTS: u32 = 3;
/// A fault has to be told within so many tests of a pair.
const WITHIN: usize = 3;
/// No fault takes longer than this, nor its end: rests of failing pairs grow to 8 periods.
const PATIENCE: Duration = Duration::from_secs(300);
/// Within this time an alert has what changed on its hosts.
const FACTS_WITHIN: Duration = Duration::from_secs(20);
/// What a host shows so long after an alert ended may have been the repair: no fault begins sooner after another.
const REPAIR: Duration = Duration::from_secs(11);
/// How often the hub is asked.
const LOOK: Duration = Duration::from_millis(300);
const PERIOD: Duration = Duration::from_secs(12);

/// Two hosts, and a third one that is 20 ms away. A path's queue is behind what delays packets: it hides a delay that the
/// machine adds.
fn star() -> String {
    format!(
        "name = \"campaign\"\nabout = \"two hosts and one 20 ms away\"\n\
         [star]\nrate = \"{FAST}M\"\nrate_in = \"{RATE}M\"\nqueue = \"200ms\"\n\
         tcp_wmem = \"{WINDOW}\"\n\
         [[star.switch]]\nname = \"rack1\"\nhosts = \"node[1-2]\"\n\
         [[star.switch]]\nname = \"rack2\"\nhosts = \"node3\"\ndelay = \"20ms\"\n\
         [[star.trunk]]\nbetween = [\"rack1\", \"rack2\"]\nrate = \"{FAST}M\"\n"
    )
}

const PLAN: &str = r#"
[[host]]
names = "node[1-3]"
reach = "ssh"
link = "10M"
[[task]]
name = "all"
pairs = [["node1", "node2"], ["node2", "node3"], ["node1", "node3"]]
test = "-t 1"
every = "12s"
expect = "auto"
"#;

/// `net.ipv4.tcp_wmem` as it is, and after the update of a kernel.
const WINDOW: &str = "4096 16384 4194304";
const SMALL_WINDOW: &str = "4096 8192 8192";

type Pair = (&'static str, &'static str);
const BETWEEN: Pair = ("node1", "node2");
const FAR: Pair = ("node2", "node3");
const FAR_TOO: Pair = ("node1", "node3");
const ALL: [Pair; 3] = [BETWEEN, FAR, FAR_TOO];

/// What breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The path into node3 carries 20 % less.
    Step,
    /// What node2 sends gets lost, more and more.
    Loss,
    /// The agent of node2 is killed, and nobody can start another.
    DeadAgent,
    /// The cable of node2 is out.
    DeadPath,
    /// An update gave node2 a small send buffer.
    Window,
}

impl Fault {
    const EVERY: [Self; 5] = [
        Self::Step,
        Self::Loss,
        Self::DeadAgent,
        Self::DeadPath,
        Self::Window,
    ];

    /// The pairs that it breaks.
    const fn pairs(self) -> &'static [Pair] {
        match self {
            Self::Step => &[FAR, FAR_TOO],
            Self::Loss | Self::Window => &[FAR],
            Self::DeadAgent | Self::DeadPath => &[BETWEEN, FAR],
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Step | Self::Loss | Self::Window => "slow",
            Self::DeadAgent => "silent",
            Self::DeadPath => "failing",
        }
    }

    /// What its tests have to find first: one of these.
    const fn findings(self) -> &'static [&'static str] {
        match self {
            Self::Step => &["path-full"],
            // A test of a second has few losses: by chance some of them are close together.
            Self::Loss => &["random-loss", "network-loss"],
            Self::Window => &["send-buffer"],
            Self::DeadAgent | Self::DeadPath => &[],
        }
    }
}

/// A star, three hosts and a plan.
struct Bed {
    star: Up,
}

impl Bed {
    fn new() -> Option<Self> {
        let what = "regular tests over paths that break";
        if lacks_programs(what, &["tc", "ip"]) {
            return None;
        }
        let star = Up::new(what, &star())?;
        let at = star.folder.path().display();
        // An agent cannot be started on a host while a file of its name is there.
        let carrier = format!(
            "#!/bin/sh\n[ -e {at}/dead-$1 ] && {{ echo \"no route to $1\" >&2; exit 1; }}\n\
             XDG_RUNTIME_DIR={at} exec {LINERATE} lab exec x \"$1\" -- sh -c \"$2\"\n"
        );
        let carrier = star.folder.with("carrier", carrier);
        std::fs::set_permissions(carrier, PermissionsExt::from_mode(0o755)).unwrap();
        star.folder.with("watch.toml", PLAN);
        let bed = Self { star };
        for (place, interface) in [("rack1", "to-node1"), ("rack1", "to-node2")] {
            bed.shape(place, interface, RATE);
        }
        bed.shape("rack2", "to-node3", RATE);
        for (place, interface) in [
            ("node1", "eth0"),
            ("node2", "eth0"),
            ("node3", "eth0"),
            ("rack1", "trunk1-1"),
            ("rack2", "trunk1-1"),
        ] {
            bed.shape(place, interface, FAST);
        }
        Some(bed)
    }

    /// Runs a program on a host or a switch.
    #[track_caller]
    fn on(&self, place: &str, words: &str) {
        let words: Vec<&str> = words.split(' ').collect();
        run(&mut self.star.exec(place, &words), LONG).expect(0);
    }

    /// Gives an interface's way out a rate in Mbit/s. Its bucket holds 30 ms: a kernel that is late by less loses none of it.
    fn shape(&self, place: &str, interface: &str, rate: u64) {
        let (burst, queue) = (rate * 3_750, rate * 25_000);
        self.on(
            place,
            &format!(
                "tc qdisc replace dev {interface} root handle 2: stab overhead 24 tbf rate {rate}mbit burst {burst} limit {queue}"
            ),
        );
    }

    /// Loses so many in a thousand packets that node2 sends.
    fn lose(&self, thousandth: u64) {
        // A random number of 32 bits, and TC_ACT_SHOT below a threshold.
        let threshold = (1_u64 << 32) / 1000 * thousandth;
        let bytes = format!("4,32 0 0 4294963256,53 0 1 {threshold},6 0 0 4294967295,6 0 0 2");
        let filter = "tc filter replace dev to-node2 ingress pref 1 protocol all handle 1 bpf da";
        let mut words: Vec<&str> = filter.split(' ').collect();
        words.extend(["bytecode", &bytes]);
        run(&mut self.star.exec("rack1", &words), LONG).expect(0);
    }

    fn window(&self, window: &str) {
        let write = format!("echo '{window}' > /proc/sys/net/ipv4/tcp_wmem");
        let words = ["sh", "-c", &write];
        run(&mut self.star.exec("node2", &words), LONG).expect(0);
    }

    fn begin(&self, fault: Fault) {
        match fault {
            Fault::Step => self.shape("rack2", "to-node3", RATE * 8 / 10),
            Fault::Loss => {
                self.on("rack1", "tc qdisc add dev to-node2 clsact");
                // It is there for long before it costs anything. Of 2 % a test of a second sees so little at times that its
                // path is full for most of it.
                self.lose(1);
                std::thread::sleep(PERIOD);
                self.lose(50);
            }
            Fault::DeadAgent => {
                std::fs::write(self.star.folder.file("dead-node2"), "").unwrap();
                for pid in self.processes("node2") {
                    let killed = Command::new("kill").args(["-9", &pid.to_string()]).output();
                    drop(killed);
                }
            }
            Fault::DeadPath => self.on("rack1", "ip link set to-node2 down"),
            Fault::Window => self.window(SMALL_WINDOW),
        }
    }

    fn end(&self, fault: Fault) {
        match fault {
            Fault::Step => self.shape("rack2", "to-node3", RATE),
            Fault::Loss => self.on("rack1", "tc qdisc del dev to-node2 clsact"),
            Fault::DeadAgent => {
                std::fs::remove_file(self.star.folder.file("dead-node2")).unwrap();
            }
            Fault::DeadPath => self.on("rack1", "ip link set to-node2 up"),
            Fault::Window => self.window(WINDOW),
        }
    }

    /// What runs on a host of this star.
    fn processes(&self, host: &str) -> Vec<u32> {
        let marks = [
            format!("LINERATE_LAB_HOST={host}"),
            format!("XDG_RUNTIME_DIR={}", self.star.folder.path().display()),
        ];
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| {
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let has = |mark: &String| {
                let mut all = environment.split(|byte| *byte == 0);
                all.any(|one| one == mark.as_bytes())
            };
            let pid = entry.file_name().into_string().ok()?.parse().ok()?;
            marks.iter().all(has).then_some(pid)
        });
        pids.collect()
    }

    fn hub(&self) -> Hub {
        let folder = &self.star.folder;
        let beside = Path::new(LINERATE).parent().unwrap().display();
        let path = std::env::var("PATH").unwrap_or_default();
        let via = format!("{} {{host}}", folder.file("carrier").display());
        let mut command = linerate("hub --listen 127.0.0.1:0 --connect-timeout 60s");
        command
            .arg("--folder")
            .arg(folder.file("data"))
            .args(["--via", &via])
            .arg(folder.file("watch.toml"))
            .env("PATH", format!("{beside}:{path}"))
            .env("XDG_CACHE_HOME", "/dev/null");
        Hub::of(start(&mut command))
    }
}

/// A moment as the hub counts it, ms since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.unwrap().as_millis()).unwrap()
}

/// How long programs of this machine waited for a CPU, µs; absent where the kernel does not count it.
fn waited() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let total = text.lines().next()?.rsplit_once("total=")?.1;
    total.trim().parse().ok()
}

/// A time during which the machine is looked at.
struct Witness {
    since: u64,
    began: Instant,
    waited: Option<u64>,
}

impl Witness {
    fn new() -> Self {
        Self {
            since: now(),
            began: Instant::now(),
            waited: waited(),
        }
    }

    /// What disturbed the tests since then; `untouched`: pairs that nothing is wrong with.
    fn disturbance(&self, hub: &Hub, untouched: &[Pair]) -> Option<String> {
        let slow = hub.runs().into_iter().find(|run| {
            let its = untouched.iter().any(|pair| is_of(run, *pair));
            let level = run["goodput_bps"].as_f64().unwrap_or(LEVEL);
            let lost = run["outcome"] == "failed" || run["outcome"] == "invalid";
            its && millis(run, "started").is_some_and(|at| at >= self.since)
                && (lost || level < UNDISTURBED * LEVEL)
        });
        if let Some(run) = slow {
            let (from, to) = (text(&run["from"]), text(&run["to"]));
            return Some(format!(
                "{from} > {to}, with which nothing was wrong, was {} {}",
                text(&run["outcome"]),
                run["goodput_bps"]
            ));
        }
        let waited = waited()?.saturating_sub(self.waited?) as f64 / 1e6;
        let share = waited / self.began.elapsed().as_secs_f64();
        (share > PRESSURE).then(|| {
            format!(
                "programs waited for a CPU {:.0} % of the time",
                share * 100.0
            )
        })
    }
}

fn millis(run: &Value, key: &str) -> Option<u64> {
    run[key].as_u64()
}

fn is_of(value: &Value, (from, to): Pair) -> bool {
    value["from"] == from && value["to"] == to
}

/// The alerts that fire.
fn firing(hub: &Hub) -> Vec<Value> {
    open(hub, "firing")
}

fn open(hub: &Hub, state: &str) -> Vec<Value> {
    let told = hub.json("/api/v1/alerts");
    let all = told["alerts"].as_array().unwrap().iter();
    all.filter(|alert| alert["state"] == state)
        .cloned()
        .collect()
}

/// The pairs that an alert fires for.
fn pairs_of(alert: &Value) -> Vec<Pair> {
    let inside = alert["pairs"].as_array().unwrap().iter();
    let inside = inside.filter(|pair| pair["state"] == "firing");
    inside
        .filter_map(|pair| ALL.into_iter().find(|one| is_of(pair, *one)))
        .collect()
}

/// Tests of a pair that were due since a moment and have a row; those for which the hub had no time are none.
fn tests_since(hub: &Hub, pair: Pair, since: u64) -> usize {
    let runs = hub.runs();
    let later = runs.iter().filter(|run| {
        let at = millis(run, "started").or_else(|| millis(run, "due"));
        is_of(run, pair) && run["reason"] != "missed" && at.is_some_and(|at| at >= since)
    });
    later.count()
}

/// An alert in one line.
fn brief(alert: &Value) -> String {
    let why = alert["why"].as_array().unwrap().iter();
    let why: Vec<&str> = why.map(text).collect();
    format!("{}: {}", text(&alert["title"]), why.join(" | "))
}

/// What an attempt showed.
enum Shown {
    /// Tests of each pair until it fired.
    Right(BTreeMap<Pair, usize>),
    Wrong(String),
}

struct Campaign {
    bed: Bed,
    hub: Hub,
    /// No fault begins after this.
    until: Instant,
    /// What each fault came to, for the summary.
    lines: Vec<String>,
}

impl Campaign {
    fn new(lasts: Duration) -> Option<Self> {
        let until = Instant::now() + lasts;
        let bed = Bed::new()?;
        let hub = bed.hub();
        Some(Self {
            bed,
            hub,
            until,
            lines: Vec::new(),
        })
    }

    /// Waits until nothing is wrong and each pair showed its level `times` times since now; nothing fires that did not before.
    /// Tests of each of these pairs until nothing of it fired.
    fn settle(&self, times: usize, before: &[Pair]) -> BTreeMap<Pair, usize> {
        let (since, witness) = (now(), Witness::new());
        let mut resolved = BTreeMap::new();
        let end = Instant::now() + PATIENCE;
        loop {
            let fires: Vec<Pair> = firing(&self.hub).iter().flat_map(pairs_of).collect();
            for pair in before {
                if !fires.contains(pair) && !resolved.contains_key(pair) {
                    resolved.insert(*pair, tests_since(&self.hub, *pair, since));
                }
            }
            if let Some(pair) = fires.iter().find(|pair| !before.contains(pair)) {
                let why = witness.disturbance(&self.hub, &ALL);
                let told = brief(&firing(&self.hub)[0]);
                assert!(why.is_some(), "{pair:?} fires: {told}");
                say(&format!("a false alert ({told}): {}", why.unwrap()));
            }
            let runs = self.hub.runs();
            let measured = |pair: &Pair| {
                let good = runs.iter().filter(|run| {
                    is_of(run, *pair)
                        && run["goodput_bps"].as_f64() > Some(UNDISTURBED * LEVEL)
                        && millis(run, "started").is_some_and(|at| at >= since)
                });
                good.count() >= times
            };
            if fires.is_empty() && open(&self.hub, "suspect").is_empty() && ALL.iter().all(measured)
            {
                std::thread::sleep(REPAIR);
                return resolved;
            }
            let told = firing(&self.hub).iter().map(brief).collect::<Vec<_>>();
            assert!(
                Instant::now() < end,
                "it does not settle: {told:?}, {:#?}\n{}",
                runs,
                self.hub.running.error()
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Breaks something until it is told right, and mends it. False where the machine let nothing be seen.
    fn show(&mut self, fault: Fault) -> bool {
        for attempt in 1..=ATTEMPTS {
            if Instant::now() > self.until {
                break;
            }
            let witness = Witness::new();
            self.bed.begin(fault);
            let began = Instant::now();
            let shown = self.watch(fault, now());
            let took = began.elapsed().as_secs();
            let untouched: Vec<Pair> = ALL
                .into_iter()
                .filter(|pair| !fault.pairs().contains(pair))
                .collect();
            let disturbance = witness.disturbance(&self.hub, &untouched);
            self.bed.end(fault);
            match (shown, disturbance) {
                (Shown::Right(tests), _) => {
                    let resolved = self.settle(1, fault.pairs());
                    let line = format!(
                        "{fault:?}: tests until it fired {}, {took} s; until it ended {}",
                        counts(&tests),
                        counts(&resolved)
                    );
                    say(&line);
                    self.lines.push(line);
                    return true;
                }
                (Shown::Wrong(why), Some(disturbance)) => {
                    let line =
                        format!("{fault:?}, attempt {attempt}: {why}; disturbed: {disturbance}");
                    say(&line);
                    self.lines.push(line);
                    self.settle(1, &ALL);
                }
                (Shown::Wrong(why), None) => {
                    panic!("{fault:?}: {why}\n{:#?}", self.hub.runs());
                }
            }
        }
        false
    }

    /// What an alert says that the fault is not, for as long as facts of hosts may take.
    fn wrong_for_long(&self, fault: Fault, id: Option<&str>) -> Option<String> {
        let mut why = Some("it is over".to_owned());
        wait_until(FACTS_WITHIN, || {
            std::thread::sleep(LOOK);
            let alerts = firing(&self.hub);
            let alert = alerts.iter().find(|alert| alert["id"].as_str() == id);
            why = alert.map_or(why.take(), |alert| wrong(fault, alert));
            why.is_none()
        });
        why
    }

    /// Looks at the alerts until all pairs of the fault fire.
    fn watch(&self, fault: Fault, since: u64) -> Shown {
        let mut tests = BTreeMap::new();
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            for alert in firing(&self.hub) {
                for pair in pairs_of(&alert) {
                    if !fault.pairs().contains(&pair) {
                        return Shown::Wrong(format!("{pair:?} fires: {}", brief(&alert)));
                    }
                    if tests.contains_key(&pair) {
                        continue;
                    }
                    let tests_before = tests_since(&self.hub, pair, since);
                    let mut why = wrong(fault, &alert);
                    if fault == Fault::Window && why.is_some() {
                        // A host says what it is like no more often than every few seconds.
                        why = self.wrong_for_long(fault, alert["id"].as_str());
                    }
                    if let Some(why) = why {
                        return Shown::Wrong(format!("{why}: {}", brief(&alert)));
                    }
                    say(&format!("{fault:?}: {}", brief(&alert)));
                    tests.insert(pair, tests_before);
                }
            }
            for pair in fault.pairs() {
                let so_far = tests_since(&self.hub, *pair, since);
                let told = tests.get(pair).copied();
                if told.unwrap_or(so_far) > WITHIN {
                    return Shown::Wrong(format!("{pair:?} took {told:?} of {so_far} tests"));
                }
            }
            if tests.len() == fault.pairs().len() {
                return Shown::Right(tests);
            }
            std::thread::sleep(LOOK);
        }
        Shown::Wrong("nothing fires".to_owned())
    }
}

/// What an alert says that the fault is not.
fn wrong(fault: Fault, alert: &Value) -> Option<String> {
    if alert["kind"] != fault.kind() {
        return Some(format!("the kind is {}", alert["kind"]));
    }
    let finding = alert["finding"]["id"].as_str();
    let is_right = finding.map_or(fault.findings().is_empty(), |finding| {
        fault.findings().contains(&finding)
    });
    if !is_right {
        return Some(format!("the finding is {finding:?}"));
    }
    let changes = alert["host_changes"].as_array().cloned();
    let changes = changes.unwrap_or_default();
    let is_it =
        |change: &Value| change["host"] == "node2" && text(&change["fact"]).contains("tcp_wmem");
    match fault {
        Fault::Window if !changes.iter().any(is_it) => Some(format!("changes are {changes:?}")),
        Fault::Window if alert["finding"]["host"] != "node2" => {
            Some(format!("the host is {}", alert["finding"]["host"]))
        }
        // The state of its link is one of a host's facts.
        Fault::Window | Fault::DeadPath => None,
        _ if !changes.is_empty() => Some(format!("changes are {changes:?}")),
        _ => None,
    }
}

fn counts(tests: &BTreeMap<Pair, usize>) -> String {
    let each = tests
        .iter()
        .map(|((from, to), count)| format!("{from} > {to} {count}"));
    each.collect::<Vec<_>>().join(", ")
}

/// All faults in an order that the seed decides.
fn shuffled(seed: &mut u64) -> Vec<Fault> {
    let mut order = Fault::EVERY.to_vec();
    for at in (1..order.len()).rev() {
        // Marsaglia's xorshift of 64 bits.
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        let with = usize::try_from(*seed % (at as u64 + 1)).unwrap();
        order.swap(at, with);
    }
    order
}

#[test]
fn each_fault_of_a_path_is_told_within_three_tests_until_it_is_over() {
    let _alone = alone();
    let minutes = asked("LINERATE_WATCH_MINUTES");
    let seed = asked("LINERATE_WATCH_SEED").unwrap_or_else(now);
    // What an ordinary test may take, but for the end of what began.
    let lasts = Duration::from_secs(minutes.map_or(200, |minutes| 60 * minutes));
    let Some(mut campaign) = Campaign::new(lasts) else {
        return;
    };
    campaign.settle(5, &[]);
    if minutes.is_none() {
        if !campaign.show(Fault::Step) {
            let why = "the machine disturbed it, or what was before it";
            skipped(Need::QuietMachine, "regular tests: a step", why);
        }
        campaign.hub.stop();
        return;
    }
    say(&format!("LINERATE_WATCH_SEED={seed}"));
    let (mut seed, mut missing) = (seed.max(1), Fault::EVERY.to_vec());
    while Instant::now() < campaign.until {
        for fault in shuffled(&mut seed) {
            if campaign.show(fault) {
                missing.retain(|one| *one != fault);
            }
        }
    }
    say(&campaign.lines.join("\n"));
    assert!(missing.is_empty(), "never seen undisturbed: {missing:?}");
    campaign.hub.stop();
}
