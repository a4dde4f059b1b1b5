//! `linerate hub` over children of this machine that stand for hosts: its rows, pages, alerts, channels, its own death.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use linerate_archive::Archive;
use serde_json::Value;

use crate::harness::{
    Folder, LINERATE, LONG, Running, beside, get, linerate, run, start, wait_until,
};

mod accepting;
mod login;

/// On a loaded machine a few tests of a second take their time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
/// The period of all tests here, ms: the shortest that a plan may have.
const PERIOD: u64 = 10_000;

/// Three hosts, a plan and a folder for a hub.
pub(crate) struct Bed {
    pub(crate) folder: Folder,
    pub(crate) hosts: [String; 3],
}

impl Bed {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // A host takes one test at a time: no other test has these names.
        let host = |letter| format!("hub{}-{number}{letter}", std::process::id());
        let folder = Folder::new();
        let at = folder.path().display();
        // A host is dead while a file of its name is there.
        let carrier = format!(
            "#!/bin/sh\n[ -e {at}/dead-$1 ] && {{ echo \"no route to $1\" >&2; exit 1; }}\n\
             exec env LINERATE_HOST=\"$1\" sh -c \"$2\"\n"
        );
        let carrier = folder.with("carrier", carrier);
        std::fs::set_permissions(carrier, PermissionsExt::from_mode(0o755)).unwrap();
        Self {
            folder,
            hosts: ["a", "b", "c"].map(host),
        }
    }

    /// Each host sends to the next, paced to 20 Mbit/s; what `more` says stands in the task, `behind` follows it.
    pub(crate) fn plan(&self, more: &str, behind: &str) {
        let [a, b, c] = &self.hosts;
        let text = format!(
            "[[host]]\nnames = \"{a},{b},{c}\"\nreach = \"ssh\"\n\
             [[task]]\nname = \"ring\"\npairs = [[\"{a}\", \"{b}\"], [\"{b}\", \"{c}\"], [\"{c}\", \"{a}\"]]\n\
             test = \"-t 1 -b 20M\"\nevery = \"10s\"\n{more}\n{behind}\n"
        );
        self.folder.with("watch.toml", text);
    }

    fn command(&self) -> Command {
        let beside = std::path::Path::new(LINERATE).parent().unwrap().display();
        let path = std::env::var("PATH").unwrap_or_default();
        let via = format!("{} {{host}}", self.folder.file("carrier").display());
        let mut command = linerate("hub --listen 127.0.0.1:0 --connect-timeout 60s");
        command
            .arg("--folder")
            .arg(self.folder.file("data"))
            .args(["--via", &via])
            .env("PATH", format!("{beside}:{path}"))
            .env("XDG_CACHE_HOME", "/dev/null");
        command
    }

    pub(crate) fn start(&self) -> Hub {
        let mut command = self.command();
        command.arg(self.folder.file("watch.toml"));
        Hub::of(start(&mut command))
    }

    fn archive(&self) -> Archive {
        Archive::open_existing(&self.folder.file("data")).unwrap()
    }

    /// The processes that run on a host.
    pub(crate) fn processes(host: &str) -> Vec<u32> {
        let mut found = Vec::new();
        let mark = format!("LINERATE_HOST={host}");
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            let Ok(pid) = name.parse::<u32>() else {
                continue;
            };
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let is_its = environment
                .split(|byte| *byte == 0)
                .any(|one| one == mark.as_bytes());
            if is_its {
                found.push(pid);
            }
        }
        found
    }

    /// Kills a host's agent, and lets nobody reach it.
    pub(crate) fn kill(&self, host: &str) {
        std::fs::write(self.folder.file(&format!("dead-{host}")), "").unwrap();
        for pid in Self::processes(host) {
            let killed = Command::new("kill").args(["-9", &pid.to_string()]).output();
            drop(killed);
        }
    }

    /// Nothing runs on any host once its hub has ended.
    #[track_caller]
    fn assert_quiet(&self) {
        let left = || -> Vec<u32> {
            self.hosts
                .iter()
                .flat_map(|host| Self::processes(host))
                .collect()
        };
        assert!(wait_until(PATIENCE, || left().is_empty()), "{:?}", left());
    }

    fn revive(&self, host: &str) {
        std::fs::remove_file(self.folder.file(&format!("dead-{host}"))).unwrap();
    }
}

/// A hub that runs.
pub(crate) struct Hub {
    pub(crate) running: Running,
    pub(crate) address: String,
}

impl Hub {
    pub(crate) fn of(running: Running) -> Self {
        let said = |out: &str| {
            let line = out.lines().find_map(|line| line.split_once("http://"))?;
            Some(line.1.trim_end_matches('/').to_owned())
        };
        let told = wait_until(PATIENCE, || said(&running.out()).is_some());
        assert!(told, "{}{}", running.out(), running.error());
        let address = said(&running.out()).unwrap();
        Self { running, address }
    }

    /// The body of an answer.
    pub(crate) fn read(&self, path: &str) -> String {
        let (head, body) = get(&self.address, path, LONG).unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}\n{body}");
        body
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read(path)).unwrap()
    }

    pub(crate) fn runs(&self) -> Vec<Value> {
        let told = self.json("/api/v1/runs?limit=500");
        told["runs"].as_array().unwrap().clone()
    }

    /// How many tests of each pair came to this.
    pub(crate) fn counts(&self, outcome: &str) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for run in self.runs().iter().filter(|run| run["outcome"] == outcome) {
            let pair = format!("{} {}", text(&run["from"]), text(&run["to"]));
            *counts.entry(pair).or_insert(0) += 1;
        }
        counts
    }

    /// The alerts in a state.
    fn alerts(&self, state: &str) -> Vec<Value> {
        let told = self.json("/api/v1/alerts");
        let alerts = told["alerts"].as_array().unwrap().iter();
        alerts
            .filter(|alert| alert["state"] == state)
            .cloned()
            .collect()
    }

    #[track_caller]
    pub(crate) fn wait(&self, what: &str, holds: impl FnMut() -> bool) {
        let held = wait_until(PATIENCE, holds);
        assert!(held, "{what}: {:#?}\n{}", self.runs(), self.running.error());
    }

    /// Waits until each pair was measured so often.
    #[track_caller]
    pub(crate) fn wait_measured(&self, times: usize) {
        self.wait("tests", || {
            let counts = self.counts("measured");
            counts.len() == 3 && counts.values().all(|count| *count >= times)
        });
    }

    pub(crate) fn stop(self) {
        self.running.signal("TERM");
        self.running.wait(PATIENCE).expect(0);
    }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// In the folder's archive nothing is lost and nothing is there twice.
fn assert_sound(bed: &Bed) {
    let verified = bed.archive().verify().unwrap();
    assert!(verified.is_sound(), "{verified:?}");
}

#[test]
fn what_is_measured_is_on_pages_in_the_api_and_in_the_archive() {
    let _beside = beside();
    let bed = Bed::new();
    bed.plan("", "");
    let hub = bed.start();
    hub.wait_measured(2);
    let mut best = 0.0_f64;
    for run in hub.runs() {
        let goodput = run["goodput_bps"].as_f64();
        match text(&run["outcome"]) {
            "measured" => {
                let goodput = goodput.unwrap();
                assert!(goodput > 0.0 && goodput < 25e6, "{run}");
                best = best.max(goodput);
                let id = text(&run["id"]);
                let record = hub.json(&format!("/api/v1/runs/{id}/record"));
                assert_eq!(record["host_names"]["client"], run["from"], "{record}");
            }
            _ => assert_eq!(goodput, None, "{run}"),
        }
    }
    // Other tests run beside this one: a single result may be slow.
    assert!(best > 5e6, "{:#?}", hub.runs());
    let page = hub.read("/");
    let metrics = hub.read("/metrics");
    for host in &bed.hosts {
        assert!(page.contains(host.as_str()), "{page}");
        let goodput = format!("linerate_goodput_bytes_per_second{{task=\"ring\",source=\"{host}\"");
        assert!(metrics.contains(&goodput), "{metrics}");
    }
    hub.wait("facts of each host", || {
        let told = hub.json("/api/v1/hosts");
        let hosts = told["hosts"].as_array().unwrap();
        hosts.len() == 3 && hosts.iter().all(|host| !host["facts_at"].is_null())
    });
    // A plan that became wrong is not in force, and everybody who asks hears why.
    bed.plan("evry = \"1h\"", "");
    let trouble = || hub.json("/api/v1/plan")["plan_trouble"].clone();
    hub.wait("trouble with the plan", || {
        text(&trouble()).contains("'evry'")
    });
    assert!(hub.read("/plan").contains("is not in force"));
    let data = bed.folder.file("data");
    let status = || {
        run(linerate("watch status").arg("--folder").arg(&data), LONG)
            .expect(0)
            .out
    };
    hub.wait("the status", || {
        status().contains("changed and is not in force: ")
    });
    bed.plan("", "");
    hub.wait("a plan in force", || trouble().is_null());
    // It ends in the middle of a test, which has a row all the same.
    let mut cut = Vec::new();
    hub.wait("a running test", || {
        let running = &hub.json("/api/v1/plan")["running"];
        let ids = running.as_array().unwrap().iter();
        cut = ids.map(|test| text(&test["id"]).to_owned()).collect();
        !cut.is_empty()
    });
    hub.stop();
    bed.assert_quiet();
    assert_sound(&bed);
    let all = bed.archive().runs(&linerate_archive::RunFilter::default());
    let all = all.unwrap();
    let all = all.iter().map(|stored| serde_json::to_value(&stored.run));
    let all: Vec<Value> = all.map(Result::unwrap).collect();
    for id in cut {
        let rows = all.iter().filter(|run| run["id"] == *id);
        assert_eq!(rows.count(), 1, "{id}: {all:#?}");
    }
    for run in &all {
        let invalid = text(&run["outcome"]) == "invalid";
        assert!(!invalid || text(&run["why"]).contains("stopped"), "{run}");
    }
}

#[test]
fn a_host_that_dies_is_away_and_an_alert_until_it_is_back() {
    let _beside = beside();
    let bed = Bed::new();
    bed.plan("", "");
    let hub = bed.start();
    hub.wait_measured(1);
    let [a, b, c] = &bed.hosts;
    bed.kill(c);
    let into = format!("{b} {c}");
    // A test that was due before the hub's first connection may have the same reason.
    let is_away = |run: &Value| {
        run["reason"] == "agent-away"
            && run["to"] == c.as_str()
            && text(&run["why"]).contains(c.as_str())
    };
    hub.wait("a row of the dead host", || hub.runs().iter().any(is_away));
    let runs = hub.runs();
    let away = runs.iter().find(|run| is_away(run)).unwrap();
    assert!(away["goodput_bps"].is_null(), "{away}");
    let of = |alert: &Value, pair: &str| {
        let pairs = alert["pairs"].as_array().unwrap().iter();
        pairs
            .map(|one| format!("{} {}", text(&one["from"]), text(&one["to"])))
            .any(|name| name == pair)
    };
    hub.wait("an alert", || {
        hub.alerts("firing").iter().any(|alert| of(alert, &into))
    });
    // The pair of the two others is none of it.
    let firing = hub.alerts("firing");
    let other = format!("{a} {b}");
    assert!(!firing.iter().any(|alert| of(alert, &other)), "{firing:?}");
    // The archive says the same to those who ask on the command line.
    let data = bed.folder.file("data");
    let asked = |words: &str| run(linerate(words).arg("--folder").arg(&data), LONG).expect(0);
    let why = asked(&format!("watch why {b} {c}"));
    assert!(why.out.contains("did not run (agent-away)"), "{}", why.out);
    let status = asked("watch status");
    assert!(status.out.contains("firing: "), "{}", status.out);
    assert!(status.out.contains("The hub runs"), "{}", status.out);
    let metrics = hub.read("/metrics");
    let gone =
        format!("linerate_goodput_bytes_per_second{{task=\"ring\",source=\"{b}\",dest=\"{c}\"");
    assert!(!metrics.contains(&gone), "{metrics}");
    let before = hub.counts("measured").get(&into).copied();
    bed.revive(c);
    hub.wait("tests of the host that is back", || {
        hub.counts("measured").get(&into).copied() > before
    });
    hub.wait("the end of the alert", || hub.alerts("firing").is_empty());
    let over = hub.alerts("resolved");
    assert!(over.iter().any(|alert| of(alert, &into)), "{over:?}");
    hub.stop();
    assert_sound(&bed);
}

/// A server that takes each POST: its head and body.
fn receiver() -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (told, news) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let Some(request) = request(&mut stream) else {
                continue;
            };
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            drop(stream.write_all(answer.as_bytes()));
            if told.send(request).is_err() {
                return;
            }
        }
    });
    (address, news)
}

/// A mail server without TLS (RFC 5321): all that clients said to it in one session.
fn mail_server() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (told, news) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let told = stream.ok().map(mail_session).map(|said| told.send(said));
            if told.is_some_and(|sent| sent.is_err()) {
                return;
            }
        }
    });
    (address, news)
}

fn mail_session(stream: TcpStream) -> String {
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut answers = stream.try_clone().unwrap();
    let mut answer = |text: &str| drop(answers.write_all(format!("{text}\r\n").as_bytes()));
    answer("220 mail.example.org ESMTP");
    let (mut said, mut in_data) = (String::new(), false);
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        said.push_str(&line);
        said.push('\n');
        match line.split(' ').next().unwrap_or_default() {
            "." if in_data => {
                in_data = false;
                answer("250 taken");
            }
            _ if in_data => {}
            "DATA" => {
                in_data = true;
                answer("354 go on");
            }
            "QUIT" => answer("221 bye"),
            _ => answer("250 mail.example.org"),
        }
    }
    said
}

fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    stream.set_read_timeout(Some(LONG)).ok()?;
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&all).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse::<usize>().ok())?
            })?;
            if body.len() >= length {
                return Some((head.to_ascii_lowercase(), body.to_owned()));
            }
        }
        let read = stream.read(&mut part).ok().filter(|read| *read > 0)?;
        all.extend_from_slice(&part[..read]);
    }
}

#[test]
fn a_floor_that_cannot_be_reached_fires_with_the_finding_and_is_sent() {
    let _beside = beside();
    let bed = Bed::new();
    let (hook, hooked) = receiver();
    let (manager, managed) = receiver();
    let (post, posted) = mail_server();
    let secret = bed.folder.with("secret", "key\n");
    // Nobody listens at the third.
    let nowhere = "127.0.0.1:1";
    let channels = format!(
        "[[channel]]\nkind = \"webhook\"\nurl = \"http://{hook}/alert\"\nsecret_file = \"{}\"\n\
         [[channel]]\nkind = \"alertmanager\"\nurl = \"http://{manager}/\"\n\
         [[channel]]\nkind = \"mail\"\nurl = \"smtp://{post}\"\nfrom = \"hub@example.org\"\n\
         to = [\"noc@example.org\", \"ada@example.org\"]\n\
         [[channel]]\nname = \"broken\"\nkind = \"webhook\"\nurl = \"http://{nowhere}/\"\n",
        secret.display()
    );
    bed.plan("expect = \">= 1G\"", &channels);
    let hub = bed.start();
    hub.wait("an alert", || !hub.alerts("firing").is_empty());
    let alert = hub.alerts("firing").remove(0);
    assert_eq!(alert["kind"], "slow", "{alert}");
    // Paced tests on a machine with load are `rate-capped`, or `unstable`: whatever it is, a test of the pair says it.
    let finding = text(&alert["finding"]["id"]);
    assert!(!finding.is_empty() && !text(&alert["finding"]["sentence"]).is_empty());
    let runs = hub.runs();
    let says = |run: &Value| {
        let findings = run["findings"].as_array().unwrap();
        findings.iter().any(|one| one == finding)
    };
    assert!(runs.iter().any(says), "{alert}");
    assert_eq!(alert["pairs"][0]["compared"]["floor_bps"], 1e9, "{alert}");
    let (head, body) = hooked.recv_timeout(PATIENCE).unwrap();
    let told: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(told["event"], "firing", "{told}");
    assert!(!text(&told["alert"]["finding"]["id"]).is_empty(), "{told}");
    assert!(
        told["why"].as_array().is_some_and(|why| !why.is_empty()),
        "{told}"
    );
    assert!(head.contains("linerate-signature: sha256="), "{head}");
    assert!(head.contains("linerate-timestamp: "), "{head}");
    let (head, body) = managed.recv_timeout(PATIENCE).unwrap();
    assert!(head.starts_with("post /api/v2/alerts "), "{head}");
    let told: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(told[0]["labels"]["alertname"], "LinerateSlow", "{told}");
    assert!(
        text(&told[0]["annotations"]["summary"]).contains("slow"),
        "{told}"
    );
    let mail = posted.recv_timeout(PATIENCE).unwrap();
    // Quoted-printable (RFC 2045) cuts long lines.
    let mail = mail.replace("=\n", "");
    assert!(mail.contains("RCPT TO:<noc@example.org>"), "{mail}");
    assert!(mail.contains("RCPT TO:<ada@example.org>"), "{mail}");
    assert!(mail.contains("Subject: [linerate] firing: "), "{mail}");
    assert!(mail.contains("expected at least 1.00 Gbit/s"), "{mail}");
    // A channel that is broken is shown, and tests go on.
    hub.wait("a channel that is broken", || {
        let plan = hub.json("/api/v1/plan");
        let mut channels = plan["channels"].as_array().unwrap().iter();
        let broken = channels.find(|one| one["name"] == "broken").unwrap();
        text(&broken["broken"]).contains("cannot send")
    });
    let before: usize = hub.counts("measured").values().sum();
    hub.wait("more tests", || {
        hub.counts("measured").values().sum::<usize>() > before + 1
    });
    // The floor goes: the alerts end, and that is sent as well.
    bed.plan(
        "",
        &format!("[[channel]]\nkind = \"webhook\"\nurl = \"http://{hook}/alert\"\n"),
    );
    hub.wait("the end of the alerts", || hub.alerts("firing").is_empty());
    let ended = std::iter::from_fn(|| hooked.recv_timeout(PATIENCE).ok());
    let mut ended = ended.filter_map(|(_, body)| serde_json::from_str::<Value>(&body).ok());
    assert!(ended.any(|told| told["event"] == "resolved"));
    hub.stop();
    assert_sound(&bed);
}

#[test]
fn a_hub_that_is_killed_goes_on_and_each_due_test_has_one_row() {
    let _beside = beside();
    let bed = Bed::new();
    bed.plan("", "");
    let mut hub = bed.start();
    hub.wait_measured(1);
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    for _ in 0..3 {
        for run in hub.runs() {
            known.insert(text(&run["id"]).to_owned(), run);
        }
        hub.running.kill();
        drop(hub);
        // Rows that the hub had and this test did not see count as well.
        let archive = bed.archive();
        for stored in archive
            .runs(&linerate_archive::RunFilter::default())
            .unwrap()
        {
            let run = serde_json::to_value(&stored.run).unwrap();
            known.entry(stored.run.id.to_string()).or_insert(run);
        }
        drop(archive);
        hub = bed.start();
        let before: usize = hub.counts("measured").values().sum();
        hub.wait("tests after the restart", || {
            hub.counts("measured").values().sum::<usize>() > before + 2
        });
    }
    hub.stop();
    assert_sound(&bed);
    let stored = bed
        .archive()
        .runs(&linerate_archive::RunFilter::default())
        .unwrap();
    let ids: BTreeSet<String> = stored.iter().map(|one| one.run.id.to_string()).collect();
    assert_eq!(ids.len(), stored.len());
    for (id, run) in &known {
        let now = stored.iter().find(|one| one.run.id.to_string() == *id);
        let now = serde_json::to_value(&now.unwrap().run).unwrap();
        assert_eq!(now["outcome"], run["outcome"], "{run} became {now}");
    }
    // Each period from a pair's first to its last has exactly one regular test.
    let mut periods: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let regular = stored.iter().map(|one| &one.run);
    for run in regular.filter(|run| run.class == linerate_model::watch::RunClass::Regular) {
        let pair = format!("{} {}", run.from, run.to);
        periods.entry(pair).or_default().push(run.due.0 / PERIOD);
    }
    assert_eq!(periods.len(), 3);
    for (pair, mut had) in periods {
        had.sort_unstable();
        let all: Vec<u64> = (had[0]..=had[had.len() - 1]).collect();
        assert_eq!(had, all, "{pair}");
    }
}

#[test]
fn what_a_hub_refuses_and_what_it_says_without_a_plan() {
    let _beside = beside();
    let bed = Bed::new();
    let mut open = bed.command();
    // The last one of an option counts.
    open.args(["--listen", "0.0.0.0:0"]);
    let refused = run(&mut open, LONG).expect(2);
    assert!(
        refused.error.contains("linerate hub user add"),
        "{}",
        refused.error
    );
    bed.folder.with("watch.toml", "[[host]]\nname = \"a\"\n");
    let mut wrong = bed.command();
    wrong.arg(bed.folder.file("watch.toml"));
    let refused = run(&mut wrong, LONG).expect(5);
    assert!(refused.error.contains("watch.toml:2"), "{}", refused.error);
    let hub = Hub::of(start(&mut bed.command()));
    assert!(
        hub.running.out().contains("[[task]]"),
        "{}",
        hub.running.out()
    );
    assert!(hub.read("/").contains("<html"));
    let second = run(&mut bed.command(), LONG).expect(2);
    assert!(second.error.contains("another hub"), "{}", second.error);
    hub.stop();
}

#[test]
fn a_test_that_needs_a_quiet_link_waits_for_others() {
    let _beside = beside();
    let bed = Bed::new();
    let [a, b, c] = &bed.hosts;
    // On a link of 100 Tbit/s nobody disturbs; on one of 1 kbit/s the pages that this test reads do.
    let text = format!(
        "[[host]]\nnames = \"{a},{b}\"\nreach = \"ssh\"\nlink = \"100T\"\n\
         [[host]]\nnames = \"{c}\"\nreach = \"ssh\"\nlink = \"1K\"\n\
         [[task]]\nname = \"quiet\"\npairs = [[\"{a}\", \"{b}\"], [\"{a}\", \"{c}\"]]\n\
         test = \"-t 1 -b 20M\"\nevery = \"20s\"\nquiet = \"10%\"\n"
    );
    bed.folder.with("watch.toml", text);
    let hub = bed.start();
    let to = |host: &str, runs: &[Value]| -> Vec<Value> {
        let runs = runs.iter().filter(|run| run["to"] == *host);
        runs.cloned().collect()
    };
    hub.wait(
        "a test over the quiet link, and one that found others",
        || {
            let runs = hub.runs();
            let measured = |run: &Value| run["outcome"] == "measured";
            let disturbed =
                |run: &Value| run["reason"] == "busy-link" || run["with_traffic"] == true;
            to(b, &runs).iter().any(measured) && to(c, &runs).iter().any(disturbed)
        },
    );
    let runs = to(c, &hub.runs());
    let waited = runs.iter().find(|run| run["reason"] == "busy-link");
    if let Some(waited) = waited {
        assert!(text_of_traffic(waited, c), "{waited}");
    }
    let beside = |run: &&Value| run["outcome"] == "measured";
    for run in runs.iter().filter(beside) {
        assert_eq!(run["with_traffic"], true, "{run}");
    }
    hub.stop();
    assert_sound(&bed);
}

fn text_of_traffic(run: &Value, host: &str) -> bool {
    let why = text(&run["why"]);
    why.contains("other traffic used the link of") && why.contains(host)
}
