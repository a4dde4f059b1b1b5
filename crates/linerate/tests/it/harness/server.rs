//! Servers, ours and iperf3's, each on a port of its own.

use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use super::{Done, LINERATE, Running, start, wait_until};

/// A server that listens.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) process: Running,
    pub(crate) port: u16,
    /// Clients that a stock server was asked to be free for.
    came: Option<AtomicUsize>,
}

/// A port that nobody listens on now, given out once: below those that the kernel gives to clients, which would take
/// it before the server does.
pub(crate) fn free_port() -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 10_000;
    const COUNT: u16 = 20_000;
    // Two runs of these tests begin at different ports.
    let begin = std::process::id() % u32::from(COUNT);
    let begin = u16::try_from(begin).unwrap();
    (0..COUNT)
        .map(|_| FIRST + (begin + GIVEN.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT)
        .find(|port| TcpListener::bind(("0.0.0.0", *port)).is_ok())
        .expect("a free port")
}

impl Server {
    /// `linerate serve` on a port that the kernel chooses.
    pub(crate) fn linerate(words: &[&str]) -> Self {
        let mut command = Command::new(LINERATE);
        command.args(["serve", "-p", "0"]).args(words);
        Self::announced(&mut command)
    }

    /// A server of ours that says where it listens.
    #[track_caller]
    pub(crate) fn announced(command: &mut Command) -> Self {
        Self::heard(start(command))
    }

    /// A server of ours that was started.
    #[track_caller]
    pub(crate) fn heard(mut process: Running) -> Self {
        let mut port = None;
        wait_until(Duration::from_secs(20), || {
            port = process.out().lines().find_map(port_of);
            port.is_some() || process.ended()
        });
        let port =
            port.unwrap_or_else(|| panic!("no server: {}{}", process.out(), process.error()));
        Self {
            process,
            port,
            came: None,
        }
    }

    /// Something that takes `-s -p PORT`; it listens when the kernel says so. Where another program has taken the port
    /// meanwhile, it gets another.
    pub(crate) fn iperf3(command: &mut Command) -> Self {
        command.arg("-s");
        for _ in 0..5 {
            let port = free_port();
            // The last of several ports counts.
            let mut process = start(command.args(["-p", &port.to_string()]));
            let pid = process.pid();
            let there = wait_until(Duration::from_secs(20), || {
                listens(pid, port) || process.ended()
            });
            if there && !process.ended() {
                return Self {
                    process,
                    port,
                    came: None,
                };
            }
            let told = process.wait(Duration::from_secs(20));
            let told = format!("{}{}", told.out, told.error);
            assert!(
                told.contains("Address already in use"),
                "{command:?}: {told}"
            );
        }
        panic!("{command:?}: no port was free");
    }

    /// A stock iperf3, which takes one test at a time.
    pub(crate) fn stock(command: &mut Command) -> Self {
        Self {
            came: Some(AtomicUsize::new(0)),
            ..Self::iperf3(command.arg("--forceflush"))
        }
    }

    /// Before each test: waits until a stock server listens for it. After a test it closes its listener and opens another,
    /// and refuses, resets or sends away who comes in between.
    #[track_caller]
    pub(crate) fn free(&self) -> &Self {
        if let Some(came) = &self.came {
            let tests = came.fetch_add(1, Ordering::Relaxed) + 1;
            self.tells("Server listening on", tests);
        }
        self
    }

    /// Waits until the server has told something so many times.
    #[track_caller]
    pub(crate) fn tells(&self, what: &str, times: usize) {
        let told = wait_until(Duration::from_secs(20), || {
            self.process.out().matches(what).count() == times
        });
        assert!(told, "not {times} times '{what}':\n{}", self.process.out());
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The address to give to a client as two words.
    pub(crate) fn at(&self) -> String {
        format!("127.0.0.1 -p {}", self.port)
    }

    /// A client of ours for this server, over IPv4.
    pub(crate) fn client(&self, words: &str) -> Command {
        super::linerate(&format!("test {} {words}", self.at()))
    }

    /// The end of a server that ends by itself.
    #[track_caller]
    pub(crate) fn ends(self) -> Done {
        self.process.wait(Duration::from_secs(30))
    }
}

fn port_of(line: &str) -> Option<u16> {
    let address = match line.strip_prefix("listening on ") {
        Some(text) => text.split(',').next()?,
        None => line
            .split_once("\"listening\",\"address\":\"")?
            .1
            .split('"')
            .next()?,
    };
    address.rsplit(':').next()?.parse().ok()
}

/// Whether a port listens in the process's network namespace.
fn listens(pid: u32, port: u16) -> bool {
    ["tcp", "tcp6"].iter().any(|table| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        text.lines().skip(1).any(|line| {
            let mut fields = line.split_whitespace();
            let local = fields.nth(1).unwrap_or_default();
            let state = fields.nth(1).unwrap_or_default();
            local.ends_with(&format!(":{port:04X}")) && state == "0A"
        })
    })
}
