//! Applies that lose their network, their process or their power at each of their steps: afterwards all old values
//! are back.
//!
//! Nothing in the program stops it at a step. The disk is slowed from outside, so that what is synced between two
//! changes takes its time, and the guest stops the process (SIGSTOP) as soon as the journal says that a step is begun.

use std::ops::Range;

use crate::images::{Images, images};
use crate::machine::{Build, Card, Disk, Machine, System};
use crate::say;

/// Changes of every kind that a virtio card takes; the steps are its lines.
const PROFILE: &str = r#"
[sysctl]
"net.core.default_qdisc" = "fq"
"net.core.netdev_max_backlog" = 2000
"net.core.optmem_max" = 1048576
"net.core.rmem_max" = 67108864
"net.core.wmem_max" = 67108864
"net.ipv4.tcp_mtu_probing" = 1
"net.ipv4.tcp_no_metrics_save" = 1
"net.ipv4.tcp_notsent_lowat" = 131072
"net.ipv4.tcp_rmem" = "4096 131072 20000000"
"net.ipv4.tcp_slow_start_after_idle" = 0
"net.ipv4.tcp_wmem" = "4096 16384 20000000"

[interface.eth0]
mtu = 1450
txqueuelen = 2000
channels = 1
qdisc = "fq"
"#;
/// All lines of it are changes.
const STEPS: usize = 15;

/// All that the profile changes, and the network, as text.
const STATE: &str = "sysctl net.core.default_qdisc net.core.netdev_max_backlog net.core.optmem_max net.core.rmem_max \
    net.core.wmem_max net.ipv4.tcp_mtu_probing net.ipv4.tcp_no_metrics_save net.ipv4.tcp_notsent_lowat \
    net.ipv4.tcp_rmem net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_wmem; \
    ip -o link show eth0 | grep -o 'mtu [0-9]*'; ip -o link show eth0 | grep -o 'qlen [0-9]*'; \
    tc qdisc show dev eth0 | cut -d' ' -f2; ethtool -l eth0 | tail -5; \
    ip -o -4 address show eth0 | grep -o 'inet [^ ]*'; ip route show default | sed 's/ linkdown//'";

/// Operations a second of the slow disk.
const SLOW: u32 = 50;

/// A small guest with a gateway that answers, and the state before anything.
struct Guest<'d> {
    machine: Machine<'d>,
    before: String,
    /// Where the last apply keeps its old values.
    state: String,
    tries: u32,
}

/// What became of an apply that something was done to.
struct Struck {
    /// The exit code; 137 where it was killed.
    code: i32,
    /// Its output.
    said: String,
    /// Its journal.
    journal: String,
}

impl<'d> Guest<'d> {
    #[track_caller]
    fn boot(disk: &'d Disk) -> Self {
        let build = Build::new(System::Small, &[Card::Queues(2)]);
        let mut machine = Machine::boot(disk, &build);
        machine.ok(
            "ip address add 10.9.0.2/24 dev eth0 && ip link set eth0 up && ip route add default via 10.9.0.1 \
             && timeout 20 bash -c 'until ping -c1 -W1 10.9.0.1 >/dev/null; do :; done'",
        );
        machine.write("/root/profile.toml", PROFILE);
        machine.write("/run/state", STATE);
        let before = machine.ok("bash /run/state | tee /run/before");
        Self {
            machine,
            before,
            state: String::new(),
            tries: 0,
        }
    }

    /// Applies, and stops the process as soon as a step is begun.
    #[track_caller]
    fn apply_until(&mut self, step: usize, confirm_within: &str) {
        self.tries += 1;
        self.state = format!("/var/lib/linerate/try-{}", self.tries);
        let state = &self.state;
        // Whatever is needed meanwhile is read once before the disk is slow.
        self.machine
            .ok("rm -f /run/code /run/said /run/pid; linerate tune status > /dev/null; mkdir -p /var/lib/linerate; sync");
        self.machine.monitor.disk(SLOW);
        let begun = self.machine.run(&format!(
            "( linerate tune apply /root/profile.toml --allow link-flap --state {state} --confirm-within {confirm_within} \
               >/run/said 2>&1 3>&- & echo $! >/run/pid; wait $!; echo $? >/run/code ) >/dev/null 2>&1 &
            until [ -s /run/pid ]; do :; done
            apply=$(</run/pid)
            journal=
            until [ -e \"$journal\" ]; do
                [ -e /run/code ] && {{ cat /run/said; exit 1; }}
                for journal in {state}/*.journal; do :; done
            done
            # Only what is added is read: what is to be stopped has no more time than one sync takes.
            exec 4<\"$journal\"
            line=
            until [[ $line == *'\"entry\":\"applying\",\"step\":{step}'[,}}]* ]]; do
                [ -e /run/code ] && {{ cat /run/said; exit 1; }}
                read -r line <&4
            done
            kill -STOP $apply
            grep -c '\"entry\":\"applying\"' {state}/*.journal"
        ));
        self.machine.monitor.disk(0);
        assert_eq!(
            (begun.code, begun.text.trim()),
            (0, (step + 1).to_string().as_str()),
            "it did not stop at step {step}"
        );
    }

    /// Lets it go on to its end.
    #[track_caller]
    fn end(&mut self, how: &str) -> Struck {
        let code = self.machine.ok(&format!(
            "kill -{how} $(</run/pid); timeout 60 bash -c 'until [ -s /run/code ]; do sleep 0.05; done'; cat /run/code"
        ));
        let said = self.machine.ok("cat /run/said");
        Struck {
            code: code.parse().unwrap_or_else(|_| panic!("{code}: {said}")),
            said,
            journal: self.machine.ok(&format!("cat {}/*.journal", self.state)),
        }
    }

    /// Waits until all is as it was.
    #[track_caller]
    fn all_is_back(&mut self, what: &str) {
        let done = self.machine.run(
            "timeout 40 bash -c 'until bash /run/state > /run/now 2>&1; diff /run/before /run/now > /run/diff; do sleep 0.3; done'; cat /run/diff",
        );
        assert_eq!(done.text, "", "{what}: not all is back");
    }
}

/// What takes the network from an apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Link,
    Address,
    DefaultRoute,
}

impl Loss {
    fn strike(self, machine: &mut Machine<'_>) {
        match self {
            Self::Link => {
                machine.monitor.link(0, false);
                machine.ok("timeout 20 bash -c 'until [ $(</sys/class/net/eth0/carrier) = 0 ]; do :; done'");
            }
            Self::Address => drop(machine.ok("ip address del 10.9.0.2/24 dev eth0")),
            Self::DefaultRoute => drop(machine.ok("ip route del default")),
        }
    }

    /// Gives back what was taken; settings are no part of it.
    fn mend(self, machine: &mut Machine<'_>) {
        let script = match self {
            Self::Link => {
                machine.monitor.link(0, true);
                "timeout 20 bash -c 'until [ $(</sys/class/net/eth0/carrier) = 1 ]; do :; done'"
            }
            Self::Address => {
                "ip address add 10.9.0.2/24 dev eth0; ip route replace default via 10.9.0.1"
            }
            Self::DefaultRoute => "ip route add default via 10.9.0.1",
        };
        machine.ok(script);
    }
}

/// Steps that are asked for: `LINERATE_VM_STEPS=0-4`, else all of them.
fn every_step() -> Range<usize> {
    let asked = std::env::var("LINERATE_VM_STEPS").ok();
    let Some((first, last)) = asked.as_deref().and_then(|text| text.split_once('-')) else {
        return 0..STEPS;
    };
    let last: usize = last.parse().unwrap();
    first.parse().unwrap()..STEPS.min(last + 1)
}

fn guest(what: &str) -> Option<(&'static Images, Disk)> {
    let images = images(what)?;
    Some((images, Disk::new(images)))
}

/// A lost network fails the probes at the end, and everything goes back at once.
#[track_caller]
fn loses_its_network(losses: &[Loss], steps: &[usize]) {
    let Some((_, disk)) = guest("an apply that loses its network") else {
        return;
    };
    let mut guest = Guest::boot(&disk);
    for &loss in losses {
        for &step in steps {
            guest.apply_until(step, "120s");
            loss.strike(&mut guest.machine);
            let struck = guest.end("CONT");
            assert_eq!(struck.code, 9, "{loss:?} at {step}: {}", struck.said);
            assert!(
                struck.journal.contains("\"entry\":\"rolled_back\""),
                "{loss:?} at {step}: {}",
                struck.journal
            );
            loss.mend(&mut guest.machine);
            guest.all_is_back(&format!("{loss:?} at {step}"));
            say(&format!("{loss:?} lost at step {step}: taken back"));
        }
    }
    guest.machine.power_off();
}

/// A killed process is rolled back by the one that waits outside of it.
#[track_caller]
fn is_killed(steps: &[usize]) {
    let Some((_, disk)) = guest("an apply that is killed") else {
        return;
    };
    let mut guest = Guest::boot(&disk);
    for &step in steps {
        guest.apply_until(step, "12s");
        let struck = guest.end("KILL");
        assert_eq!(struck.code, 137, "at {step}: {}", struck.said);
        assert!(
            !struck.journal.contains("\"entry\":\"complete\""),
            "it was done before it was killed: {}",
            struck.journal
        );
        guest.all_is_back(&format!("killed at {step}"));
        say(&format!("killed at step {step}: rolled back in time"));
    }
    guest.machine.power_off();
}

/// After a power cut the next boot has the old values, a journal that can be read, and room for the next apply.
#[track_caller]
fn loses_its_power(steps: &[usize]) {
    let Some((_, disk)) = guest("an apply that loses its power") else {
        return;
    };
    for &step in steps {
        let mut guest = Guest::boot(&disk);
        let before = guest.before.clone();
        guest.apply_until(step, "120s");
        let state = guest.state.clone();
        guest.machine.cut_power();
        let mut guest = Guest::boot(&disk);
        assert_eq!(guest.before, before, "power cut at {step}");
        let recovered = guest
            .machine
            .ok(&format!("linerate tune recover --state {state}"));
        let status = guest
            .machine
            .ok(&format!("linerate tune status --json --state {state}"));
        assert!(
            status.contains("\"ended\""),
            "power cut at {step}: {recovered}\n{status}"
        );
        let again = guest
            .machine
            .ok(&format!("linerate tune apply /root/profile.toml --allow link-flap --confirm-within 60s --state {state} && linerate tune revert --state {state}"));
        // The process that waited to roll back may still be writing there.
        guest.machine.ok(&format!(
            "timeout 30 sh -c 'until rm -r {state}; do sleep 0.1; done'"
        ));
        guest.all_is_back(&format!("after the power cut at {step}: {again}"));
        say(&format!(
            "power cut at step {step}: the old state after the boot"
        ));
        guest.machine.power_off();
    }
}

/// Confirmed: it stays. Not confirmed: it goes back when its time is over.
#[test]
fn what_nobody_confirms_goes_back() {
    let Some((_, disk)) = guest("what_nobody_confirms_goes_back") else {
        return;
    };
    let mut guest = Guest::boot(&disk);
    guest
        .machine
        .ok("linerate tune apply /root/profile.toml --allow link-flap --confirm-within 15s");
    assert_ne!(guest.machine.ok(STATE), guest.before);
    guest.all_is_back("not confirmed");
    guest.machine.ok(
        "linerate tune apply /root/profile.toml --allow link-flap --confirm-within 60s && linerate tune confirm",
    );
    assert_ne!(guest.machine.ok(STATE), guest.before);
    guest.machine.ok("linerate tune verify");
    guest.machine.ok("linerate tune revert");
    guest.all_is_back("reverted");
    // A cable that is pulled while it waits for its confirmation: nobody can confirm, and the timer brings all back.
    guest
        .machine
        .ok("linerate tune apply /root/profile.toml --allow link-flap --confirm-within 15s");
    guest.machine.monitor.link(0, false);
    guest
        .machine
        .ok("timeout 20 bash -c 'until [ $(cat /sys/class/net/eth0/carrier) = 0 ]; do :; done'");
    guest.all_is_back("the cable was pulled");
    guest.machine.monitor.link(0, true);
    guest.machine.power_off();
}

#[test]
fn the_network_is_lost_at_some_steps() {
    loses_its_network(&[Loss::Address, Loss::DefaultRoute], &[STEPS - 1]);
    loses_its_network(&[Loss::Link], &[4]);
}

#[test]
fn the_process_is_killed_at_some_steps() {
    is_killed(&[0, STEPS - 1]);
}

#[test]
fn the_power_is_cut_at_some_steps() {
    loses_its_power(&[7]);
}

#[test]
#[ignore = "the whole matrix"]
fn the_link_is_lost_at_every_step() {
    loses_its_network(&[Loss::Link], &every_step().collect::<Vec<_>>());
}

#[test]
#[ignore = "the whole matrix"]
fn the_address_is_lost_at_every_step() {
    loses_its_network(&[Loss::Address], &every_step().collect::<Vec<_>>());
}

#[test]
#[ignore = "the whole matrix"]
fn the_default_route_is_lost_at_every_step() {
    loses_its_network(&[Loss::DefaultRoute], &every_step().collect::<Vec<_>>());
}

#[test]
#[ignore = "the whole matrix"]
fn the_process_is_killed_at_every_step() {
    is_killed(&every_step().collect::<Vec<_>>());
}

#[test]
#[ignore = "the whole matrix"]
fn the_power_is_cut_at_every_step() {
    loses_its_power(&every_step().collect::<Vec<_>>());
}
