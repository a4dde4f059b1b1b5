//! A real sshd on loopback, with its own configuration, keys and port.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use linerate_testing::{Need, skipped};

use super::{Children, PATIENCE, ran};
use crate::harness::{LINERATE, Running, alone, free_port, say, start, wait_until};

const SSHD: &str = "/usr/sbin/sshd";

/// An sshd, and a client that knows it under any name.
struct Sshd {
    children: Children,
    _server: Running,
    port: u16,
}

impl Sshd {
    /// `None` where this machine has none.
    fn start(what: &str) -> Option<Self> {
        if !Path::new(SSHD).exists() {
            skipped(
                Need::Programs,
                what,
                "sshd is not installed (scripts/test-deps.sh)",
            );
            return None;
        }
        if linerate_kernel::process::user() != 0 {
            skipped(Need::Root, what, "an sshd that starts sessions is root's");
            return None;
        }
        let children = Children::new();
        std::fs::create_dir_all("/run/sshd").unwrap();
        for key in ["host_key", "other_key", "user_key"] {
            key_pair(&children.home.file(key));
        }
        let folder = children.home.path().display().to_string();
        let port = free_port();
        children.home.with("sshd_config", format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\nAuthorizedKeysFile {folder}/user_key.pub\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\nMaxStartups 200\n\
             SetEnv {} XDG_CACHE_HOME={folder}/.cache TMPDIR={folder}/tmp\n",
            children.mark
        ));
        children.home.with("ssh_config", format!(
            "Host *\n    HostName 127.0.0.1\n    Port {port}\n    User root\n    IdentityFile {folder}/user_key\n    \
             IdentitiesOnly yes\n    HostKeyAlias lab\n    UserKnownHostsFile {folder}/known_hosts\n    \
             GlobalKnownHostsFile /dev/null\n    StrictHostKeyChecking yes\n"
        ));
        let key = std::fs::read_to_string(children.home.file("host_key.pub")).unwrap();
        children.home.with("known_hosts", format!("lab {key}"));
        // The system's ssh with this configuration.
        super::trouble::executable(&children.home.with(
            "ssh",
            format!("#!/bin/sh\nexec /usr/bin/ssh -F {folder}/ssh_config \"$@\"\n"),
        ));
        let mut command = Command::new(SSHD);
        command
            .args(["-D", "-e", "-f"])
            .arg(children.home.file("sshd_config"));
        let server = start(&mut command);
        let listens = wait_until(PATIENCE, || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        assert!(listens, "{}", server.error());
        Some(Self {
            children,
            _server: server,
            port,
        })
    }

    /// `linerate` with these words on these hosts, by ssh.
    fn linerate(&self, on: &str, words: &str) -> Command {
        let mut command = Command::new(LINERATE);
        command
            .args(words.split_whitespace())
            .args(["--on", on, "--connect-timeout", "60s"]);
        let path = std::env::var("PATH").unwrap();
        command.env(
            "PATH",
            format!("{}:{path}", self.children.home.path().display()),
        );
        command
    }
}

fn key_pair(path: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .stdout(Stdio::null())
        .status();
    assert!(made.unwrap().success());
}

#[test]
fn ssh_brings_linerate_to_a_host_that_never_had_it_and_leaves_nothing_else() {
    let _alone = alone();
    let Some(sshd) = Sshd::start("hosts behind sshd") else {
        return;
    };
    let words = "expect --rate 10G --rtt 60ms";
    let done = ran(&mut sshd.linerate("n1", words));
    assert_eq!(done.code(), Some(0), "{}", done.error);
    say(&format!(
        "over sshd on loopback, copied first: {:.2} s",
        done.took.as_secs_f64()
    ));
    let done = ran(&mut sshd.linerate("n[1-8]", words));
    assert!(
        done.out.starts_with("n[1-8]:\n"),
        "{}{}",
        done.out,
        done.error
    );
    say(&format!(
        "eight hosts that have it: {:.2} s",
        done.took.as_secs_f64()
    ));
    sshd.children.assert_gone("after ssh");

    // This end is killed while commands run there.
    let near = start(&mut sshd.linerate("n[1-4]", "host audit --for 1000s"));
    let running = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("--for")
    };
    let begun = wait_until(PATIENCE, || {
        sshd.children
            .processes()
            .iter()
            .filter(|pid| running(pid))
            .count()
            == 4
    });
    assert!(begun, "{}", near.error());
    near.signal("KILL");
    sshd.children.assert_gone("after kill -9");
}

#[test]
fn a_host_key_that_changed_is_an_error_of_that_host() {
    let _alone = alone();
    let Some(sshd) = Sshd::start("a changed host key") else {
        return;
    };
    let other = std::fs::read_to_string(sshd.children.home.file("other_key.pub")).unwrap();
    sshd.children
        .home
        .with("known_hosts", format!("lab {other}"));
    let done = ran(&mut sshd.linerate("n[1-2]", "expect --rate 10G --rtt 60ms"));
    assert_eq!(done.code(), Some(11));
    assert!(
        done.error.contains(
            "n[1-2]: the connection ended while connecting: Host key verification failed."
        ),
        "{}",
        done.error
    );
    assert!(
        done.error.contains("2 of 2 hosts did not answer"),
        "{}",
        done.error
    );
    assert_eq!(done.out, "");
}

#[test]
fn a_port_where_nobody_listens_is_an_error_in_sshs_words() {
    let _alone = alone();
    let Some(sshd) = Sshd::start("a host without sshd") else {
        return;
    };
    let config = std::fs::read_to_string(sshd.children.home.file("ssh_config")).unwrap();
    let nobody = free_port();
    sshd.children.home.with(
        "ssh_config",
        config.replace(&sshd.port.to_string(), &nobody.to_string()),
    );
    let done = ran(&mut sshd.linerate("n1", "expect --rate 10G --rtt 60ms"));
    assert!(done.error.contains("Connection refused"), "{}", done.error);
    assert!(
        done.took < Duration::from_secs(60),
        "it did not wait for its timeout: {:?}",
        done.took
    );
}
