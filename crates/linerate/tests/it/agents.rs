//! Agents that dial in to `linerate hub` over TLS: enrolling, tests between two of them, their law, and what is refused.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use linerate_archive::{Archive, RunFilter};
use linerate_model::watch::{NotRun, WatchOutcome};

use crate::harness::{Folder, LONG, Running, linerate, run, start, wait_until};

/// On a loaded machine a few tests of a second take their time.
const PATIENCE: Duration = Duration::from_secs(300);

/// A folder with a hub's data, two hosts, and their laws.
struct Bed {
    folder: Folder,
    hosts: [String; 2],
    /// The port of the hub's agents, once it is known: a hub that starts again takes the same.
    port: AtomicU32,
}

/// The agent of a host that dials the hub at this address.
pub(crate) fn dialling(
    hub: &SocketAddr,
    folder: &Folder,
    host: &str,
    invitation: Option<&str>,
) -> Command {
    let mut command = linerate(&format!("agent --hub {hub}"));
    command
        .arg("--state")
        .arg(folder.file(&format!("state-{host}")))
        .env("LINERATE_HOST", host);
    if let Some(invitation) = invitation {
        command.args(["--enrol", invitation]);
    }
    command
}

impl Bed {
    fn new(test: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let host = |letter| format!("agents{}-{number}{letter}", std::process::id());
        let bed = Self {
            folder: Folder::new(),
            hosts: ["a", "b"].map(host),
            port: AtomicU32::new(0),
        };
        let [a, b] = &bed.hosts;
        bed.folder.with(
            "watch.toml",
            format!(
                "[[host]]\nnames = \"{a},{b}\"\n[[task]]\nname = \"pair\"\npairs = [[\"{a}\", \"{b}\"]]\n\
                 test = \"{test}\"\nevery = \"10s\"\n"
            ),
        );
        bed
    }

    fn data(&self) -> PathBuf {
        self.folder.file("data")
    }

    fn hub(&self) -> Hub {
        let port = self.port.load(Ordering::Relaxed);
        let mut command = linerate(&format!(
            "hub --listen 127.0.0.1:0 --agents 127.0.0.1:{port}"
        ));
        command
            .arg("--folder")
            .arg(self.data())
            .arg(self.folder.file("watch.toml"));
        let running = start(&mut command);
        let said = |out: &str| -> Option<SocketAddr> {
            let line = out
                .lines()
                .find_map(|line| line.strip_prefix("agents connect to "))?;
            line.parse().ok()
        };
        let told = wait_until(PATIENCE, || said(&running.out()).is_some());
        assert!(told, "{}{}", running.out(), running.error());
        let agents = said(&running.out()).unwrap();
        self.port.store(agents.port().into(), Ordering::Relaxed);
        Hub { running, agents }
    }

    fn hub_command(&self, words: &str) -> Command {
        let mut command = linerate(&format!("hub {words}"));
        command.arg("--folder").arg(self.data());
        command
    }

    fn invitation(&self, words: &str) -> String {
        let done = run(&mut self.hub_command(&format!("token new {words}")), LONG).expect(0);
        done.out.trim().to_owned()
    }

    /// The law of both hosts.
    fn law(&self, text: &str) -> PathBuf {
        self.law_file("agent.toml", text)
    }

    fn law_file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.with(name, text);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        path
    }

    fn agent(&self, hub: &Hub, host: &str, invitation: Option<&str>) -> Command {
        let mut command = dialling(&hub.agents, &self.folder, host, invitation);
        let own = self.folder.file(&format!("agent-{host}.toml"));
        let laws = [own, self.folder.file("agent.toml")];
        if let Some(law) = laws.iter().find(|law| law.exists()) {
            command.arg("--law").arg(law);
        }
        command
    }

    /// Both agents, enrolled and connected.
    fn agents(&self, hub: &Hub) -> [Running; 2] {
        let invitation = self.invitation("--uses 2");
        let agents = self
            .hosts
            .each_ref()
            .map(|host| start(&mut self.agent(hub, host, Some(&invitation))));
        for agent in &agents {
            wait_for(agent, "connected to");
        }
        agents
    }

    fn measured(&self) -> usize {
        self.outcomes(|outcome| matches!(outcome, WatchOutcome::Measured(_)))
            .len()
    }

    /// What the rows that were refused say.
    fn refused(&self) -> Vec<String> {
        self.outcomes(|outcome| {
            matches!(
                outcome,
                WatchOutcome::NotRun {
                    reason: NotRun::Refused,
                    ..
                }
            )
        })
    }

    fn outcomes(&self, wanted: impl Fn(&WatchOutcome) -> bool) -> Vec<String> {
        let Ok(archive) = Archive::open_existing(&self.data()) else {
            return Vec::new();
        };
        let runs = archive.runs(&RunFilter::default()).unwrap();
        let runs = runs.into_iter().map(|stored| stored.run.outcome);
        runs.filter(|outcome| wanted(outcome))
            .map(|outcome| format!("{outcome:?}"))
            .collect()
    }

    fn wait_measured(&self, hub: &Hub, more_than: usize) {
        let reached = wait_until(PATIENCE, || self.measured() > more_than);
        assert!(
            reached,
            "{}\n{:?}",
            hub.running.error(),
            self.outcomes(|_| true)
        );
    }
}

struct Hub {
    running: Running,
    agents: SocketAddr,
}

fn wait_for(agent: &Running, what: &str) {
    let said = wait_until(PATIENCE, || agent.error().contains(what));
    assert!(said, "{what}: {}", agent.error());
}

#[test]
fn two_agents_that_dial_in_are_tested_and_come_back_from_every_death() {
    let bed = Bed::new("-t 1 -b 20M");
    let mut hub = bed.hub();
    let [mut a, b] = bed.agents(&hub);
    bed.wait_measured(&hub, 0);
    // An agent is killed; the invitation is not needed again.
    a.kill();
    let before = bed.measured();
    let _a = start(&mut bed.agent(&hub, &bed.hosts[0], None));
    bed.wait_measured(&hub, before);
    // The hub is killed; its agents come back.
    hub.running.kill();
    let before = bed.measured();
    let hub = bed.hub();
    bed.wait_measured(&hub, before);
    // A revoked agent's connection ends at once, and it does not come back.
    let done = run(
        &mut bed.hub_command(&format!("agent revoke {}", bed.hosts[1])),
        LONG,
    );
    done.expect(0);
    wait_for(&b, "revoked");
    let listed = run(&mut bed.hub_command("agent list"), LONG).expect(0).out;
    assert!(
        listed.contains(&format!("{}: revoked", bed.hosts[1])),
        "{listed}"
    );
    // Its name is free for a host that is set up anew; its key is not.
    let state = bed.folder.file(&format!("state-{}", bed.hosts[1]));
    drop(b);
    std::fs::remove_dir_all(state).unwrap();
    let invitation = bed.invitation("--uses 1");
    let again = start(&mut bed.agent(&hub, &bed.hosts[1], Some(&invitation)));
    wait_for(&again, "connected to");
    let before = bed.measured();
    bed.wait_measured(&hub, before);
}

#[test]
fn what_a_hub_and_an_agent_refuse_while_enrolling() {
    let bed = Bed::new("-t 1 -b 20M");
    let hub = bed.hub();
    let refused = |invitation: &str, host: &str, why: &str| {
        let done = run(&mut bed.agent(&hub, host, Some(invitation)), LONG).expect(3);
        assert!(done.error.contains(why), "{why}: {}", done.error);
        let state = bed.folder.file(&format!("state-{host}"));
        assert!(!state.join("identity.json").exists());
    };
    let once = bed.invitation("--uses 1");
    // A forged token.
    let (before, rest) = once.rsplit_once('/').unwrap();
    let (token, pin) = rest.split_once('#').unwrap();
    let forged = format!("{before}/{}#{pin}", "0".repeat(64));
    refused(&forged, "x1", "unknown or used-up token");
    // A hub with another key.
    let other = format!("{before}/{token}#{}", "0".repeat(64));
    refused(
        &other,
        "x1",
        "this is not the hub that issued the invitation: its CA certificate has another SHA-256",
    );
    // One that has expired.
    let short = bed.invitation("--ttl 1ms");
    refused(&short, "x1", "expired");
    // The token was not taken by any of them; it is good once.
    let enrolled = start(&mut bed.agent(&hub, "x1", Some(&once)));
    wait_for(&enrolled, "connected to");
    // The hub says that its plan does not have this host.
    wait_for(&hub.running, "no host of this name");
    let alone = run(&mut linerate("agent"), LONG).expect(2);
    assert!(alone.error.contains("--hub"), "{}", alone.error);
    refused(&once, "x2", "as often as it may be");
    // Nobody takes a name that another has.
    let more = bed.invitation("--uses 5");
    let mut twin = linerate(&format!(
        "agent --hub {} --name x1 --enrol {more}",
        hub.agents
    ));
    twin.arg("--state").arg(bed.folder.file("state-twin"));
    let done = run(&mut twin, LONG).expect(3);
    assert!(done.error.contains("is enrolled already"), "{}", done.error);
    // The secret is nowhere on the hub's disk.
    let kept = std::fs::read_to_string(bed.data().join("agents/agents.json")).unwrap();
    assert!(!kept.contains(token), "{kept}");
}

#[test]
fn an_agent_and_a_hub_that_do_not_belong_together_refuse_each_other() {
    let (one, two) = (Bed::new("-t 1"), Bed::new("-t 1"));
    let (first, second) = (one.hub(), two.hub());
    let invitation = one.invitation("--uses 1");
    let enrolled = start(&mut one.agent(&first, "x", Some(&invitation)));
    wait_for(&enrolled, "connected to");
    drop(enrolled);
    // The agent of the first hub at the second: it does not accept the second's authority.
    let astray = start(&mut one.agent(&second, "x", None));
    wait_for(&astray, "TLS");
    assert!(
        !astray.error().contains("connected to"),
        "{}",
        astray.error()
    );
    let listed = run(&mut two.hub_command("agent list"), LONG).expect(0).out;
    assert!(listed.contains("no agent"), "{listed}");
}

#[test]
fn each_rule_of_a_hosts_law_makes_rows_that_name_it() {
    let laws = [
        ("max_rate = \"10M\"", "max_rate"),
        ("verbs = [\"facts\"]", "verbs"),
        ("peers = [\"192.0.2.0/24\"]", "peers"),
        ("max_seconds = 1", "max_seconds"),
    ];
    for (text, rule) in laws {
        let bed = Bed::new("-t 2 -b 20M");
        bed.law(text);
        let hub = bed.hub();
        let _agents = bed.agents(&hub);
        let names = |rows: &[String]| rows.iter().any(|row| row.contains(&format!("({rule})")));
        let told = wait_until(PATIENCE, || names(&bed.refused()));
        assert!(
            told,
            "{text}: {:?}\n{}",
            bed.outcomes(|_| true),
            hub.running.error()
        );
        assert_eq!(bed.measured(), 0, "{text}");
    }
}

#[test]
fn the_law_of_the_host_that_serves_refuses_the_test_by_its_name() {
    let bed = Bed::new("-t 1 -b 50M");
    let serves = format!("agent-{}.toml", bed.hosts[1]);
    bed.law_file(&serves, "max_rate = \"20M\"");
    let hub = bed.hub();
    let _agents = bed.agents(&hub);
    let told = wait_until(PATIENCE, || !bed.refused().is_empty());
    let all = bed.outcomes(|_| true);
    assert!(told, "{all:?}\n{}", hub.running.error());
    let rows = bed.refused();
    let names = |row: &String| row.contains(&bed.hosts[1]) && row.contains("(max_rate)");
    assert!(rows.iter().all(names), "{rows:?}");
    assert_eq!(bed.measured(), 0);
}

#[test]
fn a_server_takes_no_more_of_a_day_than_its_test() {
    // A test of 1 s at 20 Mbit/s takes 2.5 MB at each end; nothing of the longest test that the law allows is booked.
    let bed = Bed::new("-t 1 -b 20M");
    bed.law("max_rate = \"20M\"\nbytes_a_day = \"12M\"");
    let hub = bed.hub();
    let _agents = bed.agents(&hub);
    let seen = wait_until(PATIENCE, || bed.measured() > 2 || !bed.refused().is_empty());
    let all = bed.outcomes(|_| true);
    assert!(seen && bed.measured() > 2, "{all:?}");
}

#[test]
fn bytes_of_a_day_stay_spent_across_restarts() {
    // A test of 1 s at 80 Mbit/s takes 10 MB at each end.
    let bed = Bed::new("-t 1 -b 80M");
    bed.law("max_rate = \"80M\"\nmax_seconds = 1\nbytes_a_day = \"30M\"");
    let hub = bed.hub();
    let [mut a, _b] = bed.agents(&hub);
    let refused = |at_least: usize| {
        let told = wait_until(PATIENCE, || bed.refused().len() >= at_least);
        let rows = bed.refused();
        assert!(
            told,
            "{:?}\n{}",
            bed.outcomes(|_| true),
            hub.running.error()
        );
        assert!(
            rows.iter().all(|row| row.contains("(bytes_a_day)")),
            "{rows:?}"
        );
        rows.len()
    };
    let seen = refused(1);
    let measured = bed.measured();
    assert!((1..=3).contains(&measured), "{measured}");
    a.kill();
    let _a = start(&mut bed.agent(&hub, &bed.hosts[0], None));
    refused(seen + 2);
    assert_eq!(bed.measured(), measured);
}

#[test]
fn strangers_are_bounded_and_agents_still_come_in() {
    let bed = Bed::new("-t 1 -b 20M");
    let hub = bed.hub();
    // What is no TLS, and a header of 10 MB, is closed and costs the hub nothing.
    let long = vec![0x16; 10 << 20];
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096], &long] {
        let mut stream = TcpStream::connect(hub.agents).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        // The hub may close it while it is written.
        drop(stream.write_all(garbage));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        assert!(answer.len() < 64, "{answer:?}");
    }
    let idle: Vec<TcpStream> = (0..500)
        .map(|_| TcpStream::connect(hub.agents).unwrap())
        .collect();
    let threads = || {
        let path = format!("/proc/{}/task", hub.running.pid());
        std::fs::read_dir(path).map_or(0, Iterator::count)
    };
    let closed = || {
        idle.iter()
            .filter(|stream| {
                stream.set_nonblocking(true).unwrap();
                let mut piece = [0; 64];
                !matches!(stream.peek(&mut piece), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
            })
            .count()
    };
    // All but 64 are closed at once, the others after ten seconds.
    assert!(
        wait_until(PATIENCE, || closed() >= 500 - 64),
        "{}",
        closed()
    );
    assert!(threads() < 64 + 40, "{}", threads());
    let _agents = bed.agents(&hub);
    bed.wait_measured(&hub, 0);
    assert!(wait_until(PATIENCE, || closed() == 500), "{}", closed());
}

#[test]
fn a_law_that_others_can_change_is_not_used() {
    let bed = Bed::new("-t 1");
    let law = bed.law("max_seconds = 5");
    std::fs::set_permissions(&law, PermissionsExt::from_mode(0o666)).unwrap();
    let mut command = linerate("agent --hub 127.0.0.1:1");
    command
        .arg("--law")
        .arg(&law)
        .arg("--state")
        .arg(bed.folder.file("state"));
    let done = run(&mut command, LONG).expect(2);
    assert!(done.error.contains("lets others"), "{}", done.error);
}
