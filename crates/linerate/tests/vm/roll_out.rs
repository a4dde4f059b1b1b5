//! One profile on a whole fleet: good on most guests, it takes the management link from one, and the card of another does
//! not know one of its settings. Afterwards each guest has all of its old values or all of the new ones, and what the
//! command says of each is so; also where this end is killed.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fleet::{Disks, Fleet};
use crate::images::{Images, images};
use crate::machine::{Machine, Model};
use crate::say;

/// Both cards and the kernel. e1000e has no pairs of queues to choose.
const PROFILE: &str = r#"
[sysctl]
"net.core.rmem_max" = 67108864
"net.ipv4.tcp_notsent_lowat" = 131072
"net.ipv4.tcp_wmem" = "4096 16384 20000000"

[interface.eth0]
txqueuelen = 2000

[interface.eth1]
mtu = 1450
channels = 1
"#;
/// What [`STATE`] says where all of it is on.
const NEW: &str = "67108864|131072|4096 16384 20000000|2000|1450|1";
/// All that it changes, in one line.
const STATE: &str = "cat /proc/sys/net/core/rmem_max /proc/sys/net/ipv4/tcp_notsent_lowat; tr '\\t' ' ' < /proc/sys/net/ipv4/tcp_wmem; \
    cat /sys/class/net/eth0/tx_queue_len /sys/class/net/eth1/mtu; \
    ethtool -l eth1 2>/dev/null | awk '/^Combined:/ { now = $2 } END { print now }'";
/// A guest that is not confirmed goes back after this time, which must be enough for all of them where QEMU is slow.
const CONFIRM_WITHIN: &str = "90s";
/// A card that has carrier and lets nothing through while its queue has the new length. Old values bring it back.
const FAULT: &str = r#"
while :; do
    if [ "$(</sys/class/net/eth0/tx_queue_len)" = 2000 ]; then
        if [ ! -e /run/lost ]; then
            touch /run/lost /run/was-lost
            tc qdisc add dev eth0 clsact
            tc filter add dev eth0 ingress matchall action drop
            tc filter add dev eth0 egress matchall action drop
        fi
    elif [ -e /run/lost ]; then
        tc qdisc del dev eth0 clsact
        rm /run/lost
    fi
    sleep 0.05
done
"#;
/// Everything is decided in this time: the guests' own and what the load of the machine adds.
const LONG: Duration = Duration::from_secs(420);

/// The fleet, its profile, and what each guest had before.
struct Cluster<'d> {
    fleet: Fleet<'d>,
    images: &'static Images,
    before: Vec<String>,
    /// The guest that loses its link by the change, from 1.
    loses: usize,
    /// The guest whose card lacks a setting, from 1.
    lacks: usize,
}

fn state(guest: &mut Machine<'_>) -> String {
    guest.ok(STATE).replace('\n', "|")
}

impl<'d> Cluster<'d> {
    #[track_caller]
    fn boot(images: &'static Images, disks: &'d Disks, count: usize) -> Self {
        let (loses, lacks) = (count - 1, count);
        let models: Vec<Model> = (1..=count)
            .map(|number| {
                if number == lacks {
                    Model::E1000e
                } else {
                    Model::Virtio
                }
            })
            .collect();
        let mut fleet = Fleet::boot(disks, &models);
        let before: Vec<String> = fleet.guests.iter_mut().map(state).collect();
        let loser = &mut fleet.guests[loses - 1];
        loser.write("/run/fault", FAULT);
        loser.ok("bash /run/fault >/run/fault-said 2>&1 </dev/null & true");
        std::fs::write(fleet.file("profile.toml"), PROFILE).unwrap();
        Self {
            fleet,
            images,
            before,
            loses,
            lacks,
        }
    }

    fn hosts(&self) -> String {
        format!("guest[1-{}]", self.before.len())
    }

    /// A command of ours for all guests.
    fn on_all(&self, words: &[&str]) -> Command {
        let mut command = self.fleet.near(&self.images.stripped());
        command.args(words);
        command.args(["--on", &self.hosts(), "--connect-timeout", "60s", "--via"]);
        command.arg(format!(
            "ssh -F {} -o BatchMode=yes -o ConnectTimeout=60 {{host}} --",
            self.fleet.configuration().display()
        ));
        command.stdin(Stdio::null());
        command
    }

    fn profile(&self) -> PathBuf {
        self.fleet.file("profile.toml")
    }

    /// `tune apply` on all guests.
    fn apply(&self) -> Command {
        let profile = self.profile();
        let mut command = self.on_all(&[
            "tune",
            "apply",
            profile.to_str().unwrap(),
            "--allow",
            "link-flap",
            "--confirm-within",
            CONFIRM_WITHIN,
            "--json",
        ]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// What became of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Became {
    Old,
    New,
}

impl Cluster<'_> {
    /// Waits until no guest has a change that may still go back. What each has then: all of the old, or all of the new.
    #[track_caller]
    fn settled(&mut self) -> Vec<Became> {
        let end = Instant::now() + LONG;
        let waits = "pgrep -f \"tune (apply|rollback)\" >/dev/null";
        let mut became = Vec::new();
        for (place, guest) in self.fleet.guests.iter_mut().enumerate() {
            while guest
                .run(&format!(
                    "timeout 20 bash -c 'while {waits}; do sleep 0.3; done'"
                ))
                .code
                != 0
            {
                assert!(
                    Instant::now() < end,
                    "guest{}: {}",
                    place + 1,
                    guest.ok("ps ax")
                );
            }
            let now = state(guest);
            became.push(if now == self.before[place] {
                Became::Old
            } else {
                let journals = guest.ok("tail -n 20 /var/lib/linerate/tune/*.journal");
                assert_eq!(
                    now,
                    NEW,
                    "guest{}: neither old nor new\n{journals}",
                    place + 1
                );
                Became::New
            });
        }
        say(&format!("{became:?}"));
        became
    }

    /// Undoes what was confirmed, by the guests' own hands.
    #[track_caller]
    fn start_over(&mut self) {
        for (guest, before) in self.fleet.guests.iter_mut().zip(&self.before) {
            guest.ok("if compgen -G '/var/lib/linerate/tune/*' >/dev/null; then linerate tune revert >/dev/null 2>&1; fi; \
                rm -rf /var/lib/linerate/tune");
            assert_eq!(state(guest), *before);
        }
        drop(std::fs::remove_dir_all(self.fleet.home()));
        std::fs::create_dir(self.fleet.home()).unwrap();
    }
}

/// What the roll-out's table says of each guest, in their order.
#[track_caller]
fn outcomes(output: &Output, count: usize) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let document: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{}", told(output)));
    (1..=count)
        .map(|number| {
            let name = format!("guest{number}");
            let hosts = document["hosts"].as_array().unwrap();
            let host = hosts.iter().find(|host| host["name"] == name.as_str());
            let host = host.unwrap_or_else(|| panic!("no {name} in {document:#}"));
            say(&format!("{name}: {} {}", host["outcome"], host["why"]));
            host["outcome"].as_str().unwrap().to_owned()
        })
        .collect()
}

/// What the table says of each guest is so.
#[track_caller]
fn the_table_holds(outcomes: &[String], became: &[Became]) {
    for (place, (outcome, became)) in outcomes.iter().zip(became).enumerate() {
        let said = match outcome.as_str() {
            "changed" => Some(Became::New),
            "unchanged" | "rolled_back" | "unreachable" => Some(Became::Old),
            "unknown" => None,
            other => panic!("guest{}: '{other}'", place + 1),
        };
        assert!(
            said.is_none_or(|said| said == *became),
            "guest{} is {became:?}, and the table says {outcome}",
            place + 1
        );
    }
}

/// A roll-out to its end: the good guests have it, the others have their old values, and the table says so.
#[track_caller]
fn rolled_out(count: usize) {
    let Some(images) = images("a roll-out over a fleet") else {
        return;
    };
    let disks = Disks::new(images, count);
    let mut cluster = Cluster::boot(images, &disks, count);
    let output = cluster.roll_out().output().unwrap();
    say(&told(&output));
    let outcomes = outcomes(&output, count);
    let became = cluster.settled();
    the_table_holds(&outcomes, &became);
    for (place, outcome) in outcomes.iter().enumerate() {
        let number = place + 1;
        if number == cluster.lacks {
            assert_eq!(outcome, "unchanged", "guest{number}");
        } else if number == cluster.loses {
            assert!(
                ["rolled_back", "unknown"].contains(&outcome.as_str()),
                "guest{number}: {outcome}"
            );
        } else {
            assert_eq!(outcome, "changed", "guest{number}");
        }
    }
    assert!(!output.status.success(), "not every guest has it");
    cluster.fleet.guests[cluster.loses - 1].ok("[ -e /run/was-lost ] && [ ! -e /run/lost ]");
    cluster.fleet.power_off();
}

/// What a roll-out does with a guest, in the words of its journal.
const STEPS: [&str; 6] = ["batch", "measure", "apply", "reconnect", "test", "confirm"];

/// This end is killed as soon as its journal says that it begins such a step: no guest is left between old and new.
#[track_caller]
fn killed_at(count: usize, steps: &[&str]) {
    let Some(images) = images("a roll-out that is killed") else {
        return;
    };
    let disks = Disks::new(images, count);
    let mut cluster = Cluster::boot(images, &disks, count);
    for step in steps {
        let mut near = cluster.roll_out();
        near.stdout(Stdio::null());
        let mut near = near.spawn().unwrap();
        let end = Instant::now() + LONG;
        let begun = format!("\"action\":\"{step}\"");
        while !cluster.journal().contains(&begun) {
            let ended = near.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < end,
                "{step} was never begun: {ended:?}\n{}",
                cluster.journal()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        near.kill().unwrap();
        near.wait().unwrap();
        let became = cluster.settled();
        assert_eq!(became[cluster.loses - 1], Became::Old, "killed at {step}");
        assert_eq!(became[cluster.lacks - 1], Became::Old, "killed at {step}");
        say(&format!("killed at {step}: {became:?}"));
        cluster.start_over();
    }
    cluster.fleet.power_off();
}

impl Cluster<'_> {
    /// The roll-out of the profile over all guests.
    fn roll_out(&self) -> Command {
        let mut command = self.apply();
        let failures = self.before.len().to_string();
        command.args(["--batch", "3", "--max-failures", &failures]);
        // What an emulated guest reaches says more of the machine that emulates it than of its settings.
        command.args(["--tolerance", "99"]);
        command
    }

    /// What journals this end has written.
    fn journal(&self) -> String {
        let mut folders = vec![self.fleet.home()];
        let mut text = String::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "jsonl") {
                    text += &std::fs::read_to_string(&path).unwrap_or_default();
                }
            }
        }
        text
    }
}

fn told(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn three_guests_have_a_roll_out() {
    rolled_out(3);
}

#[test]
#[ignore = "some minutes: make test-vm-fleet"]
fn eight_guests_have_a_roll_out() {
    rolled_out(8);
}

#[test]
#[ignore = "some minutes: make test-vm-fleet"]
fn three_guests_have_a_roll_out_that_is_killed_at_each_step() {
    killed_at(3, &STEPS);
}

#[test]
#[ignore = "some minutes: make test-vm-fleet"]
fn eight_guests_have_a_roll_out_that_is_killed_at_each_step() {
    killed_at(8, &STEPS);
}
