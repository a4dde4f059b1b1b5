//! Two hosts: network namespaces inside one user namespace, each held by a process whose standard input
//! the test holds. When the test ends, however it ends, the processes do, and with them the namespaces.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use linerate_testing::{Need, skipped};

use super::{LINERATE, Server, lacks_programs};

/// The addresses of the two hosts.
pub(crate) const A: &str = "192.0.2.1";
pub(crate) const B: &str = "192.0.2.2";

/// A network namespace.
#[derive(Debug)]
pub(crate) struct Host {
    holder: Child,
}

/// Two hosts with a veth between them: `a0` on the first, `b0` on the second.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) a: Host,
    pub(crate) b: Host,
}

impl Host {
    /// Holds the namespaces that `command` makes before it runs its arguments.
    fn hold(mut command: Command) -> Result<Self, String> {
        let mut holder = command
            .args(["sh", "-c", "echo ready; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut line = String::new();
        let read = BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line);
        if read.is_ok() && line == "ready\n" {
            return Ok(Self { holder });
        }
        let output = holder
            .wait_with_output()
            .map_err(|error| error.to_string())?;
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }

    /// A host of its own, without any link but loopback, which is up.
    pub(crate) fn new(what: &str) -> Option<Self> {
        if lacks_programs(what, &["unshare", "nsenter", "ip", "tc"]) {
            return None;
        }
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net"]);
        match Self::hold(command) {
            Ok(host) => {
                host.ip("link set lo up");
                Some(host)
            }
            Err(why) => {
                skipped(Need::UserNamespaces, what, &why);
                None
            }
        }
    }

    /// The process that holds its namespaces.
    pub(crate) fn pid(&self) -> u32 {
        self.holder.id()
    }

    /// A command on this host.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.holder.id().to_string()]).args([
            "--user",
            "--net",
            "--preserve-credentials",
            "--",
            program,
        ]);
        command
    }

    /// Our binary on this host.
    pub(crate) fn linerate(&self, words: &str) -> Command {
        let mut command = self.command(LINERATE);
        command.args(words.split_whitespace());
        command
    }

    /// `linerate serve` on this host.
    pub(crate) fn serve(&self, words: &str) -> Server {
        Server::announced(&mut self.linerate(&format!("serve -p 0 {words}")))
    }

    /// Runs a set-up command.
    #[track_caller]
    fn set_up(&self, program: &str, words: &str) {
        let output = self
            .command(program)
            .args(words.split_whitespace())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{program} {words}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    #[track_caller]
    pub(crate) fn ip(&self, words: &str) {
        self.set_up("ip", words);
    }

    #[track_caller]
    pub(crate) fn tc(&self, words: &str) {
        self.set_up("tc", words);
    }

    /// Sets a sysctl of this namespace; the reason where it cannot be set.
    pub(crate) fn sysctl(&self, name: &str, value: &str) -> Result<(), String> {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        let output = self
            .command("sh")
            .args(["-c", &format!("echo {value} > {path}")])
            .output()
            .unwrap();
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        drop(self.holder.kill());
        drop(self.holder.wait());
    }
}

impl Hosts {
    /// Two hosts, or the word that they cannot be had.
    pub(crate) fn new(what: &str) -> Option<Self> {
        let a = Host::new(what)?;
        let mut second = a.command("unshare");
        second.arg("--net");
        let b = Host::hold(second).unwrap();
        b.ip("link set lo up");
        let hosts = Self { a, b };
        let there = hosts.b.holder.id();
        hosts
            .a
            .ip(&format!("link add a0 type veth peer name b0 netns {there}"));
        for (host, device, address) in [(&hosts.a, "a0", A), (&hosts.b, "b0", B)] {
            host.ip(&format!("address add {address}/30 dev {device}"));
            host.ip(&format!("link set {device} up"));
        }
        Some(hosts)
    }

    /// A client of ours on the first host, for a server on the second.
    pub(crate) fn client(&self, server: &Server, words: &str) -> Command {
        self.a
            .linerate(&format!("test {B} -p {} {words}", server.port))
    }
}
