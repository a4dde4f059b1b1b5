//! A network for several machines: bridges in a namespace of its own, and this end of it, from which the machines are
//! reached. It ends with its test.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::machine::inside;

/// A user and network namespace, held by a process whose standard input the test holds.
#[derive(Debug)]
pub(crate) struct Network {
    holder: Child,
}

impl Network {
    /// A network without anything but loopback.
    #[track_caller]
    pub(crate) fn new() -> Self {
        let mut holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--net", "--", "sh", "-c"])
            .arg("ip link set lo up && echo ready && exec cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "ready\n", "a namespace for the machines' network");
        Self { holder }
    }

    /// The process that holds it, for [`crate::machine::Build::network`].
    pub(crate) fn holder(&self) -> u32 {
        self.holder.id()
    }

    /// A command at this end of the network.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = inside(self.holder());
        command.arg(program);
        command
    }

    /// A bridge that has an address, with its prefix length, at this end.
    #[track_caller]
    pub(crate) fn bridge(&self, name: &str, address: &str) {
        self.sh(&format!(
            "ip link add {name} type bridge forward_delay 0 && ip link set {name} up && ip address add {address} dev {name}"
        ));
    }

    /// A tap device with queues, connected to a bridge.
    #[track_caller]
    pub(crate) fn tap(&self, name: &str, bridge: &str, many_queues: bool) {
        let queues = if many_queues { "multi_queue" } else { "" };
        self.sh(&format!(
            "ip tuntap add {name} mode tap {queues} && ip link set {name} master {bridge} up"
        ));
    }

    #[track_caller]
    pub(crate) fn sh(&self, script: &str) -> String {
        let output = self.command("sh").args(["-c", script]).output().unwrap();
        assert!(
            output.status.success(),
            "{script}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        drop(self.holder.kill());
        drop(self.holder.wait());
    }
}
