//! Two hosts whose agents dial the hub, one that the hub reaches by a command, and a small disk for the hub.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use linerate_archive::Archive;
use linerate_testing::{Need, skipped};

use super::relay::Relay;
use crate::agents::dialling;
use crate::harness::{Folder, LINERATE, LONG, Running, free_port, run, start, wait_until};
use crate::hub::{Bed as Hosts, PATIENCE};

/// The period of all tests, ms.
pub(super) const PERIOD: u64 = 10_000;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Three hosts, a plan and a disk for a hub.
pub(super) struct Bed {
    folder: Folder,
    /// The first two dial, the hub reaches the third.
    pub(super) hosts: [String; 3],
    pages: u16,
    agents: u16,
    /// Between each host that dials and the hub.
    pub(super) relays: [Relay; 2],
    /// Keeps the namespace in which the hub's disk is; absent = the hub has the disk of this machine.
    disk: Option<Running>,
}

impl Bed {
    pub(super) fn new(seconds: u64) -> Self {
        let folder = Folder::new();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // A host takes one test at a time: no other test has these names.
        let host = |letter| format!("nemesis{}-{number}{letter}", std::process::id());
        let hosts = ["a", "b", "c"].map(host);
        let carrier = "#!/bin/sh\nexec env LINERATE_HOST=\"$1\" sh -c \"$2\"\n";
        let carrier = folder.with("carrier", carrier);
        std::fs::set_permissions(carrier, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::create_dir(folder.file("disk")).unwrap();
        let agents = free_port();
        let bed = Self {
            disk: disk(&folder, 24 + seconds / 30),
            folder,
            hosts,
            pages: free_port(),
            agents,
            relays: [Relay::to(agents), Relay::to(agents)],
        };
        bed.plan("ring", "");
        bed
    }

    /// A task in which each host sends to the next, paced to 20 Mbit/s; what `more` says stands in it.
    pub(super) fn plan(&self, task: &str, more: &str) {
        let [a, b, c] = &self.hosts;
        let text = format!(
            "[[host]]\nnames = \"{a},{b}\"\n[[host]]\nnames = \"{c}\"\nreach = \"ssh\"\n\
             [[task]]\nname = \"{task}\"\npairs = [[\"{a}\", \"{b}\"], [\"{b}\", \"{c}\"], [\"{c}\", \"{a}\"]]\n\
             test = \"-t 1 -b 20M\"\nevery = \"10s\"\n{more}\n"
        );
        self.folder.with("watch.toml", text);
    }

    /// Where the pages and the API are.
    pub(super) fn pages(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.pages))
    }

    pub(super) fn has_a_disk(&self) -> bool {
        self.disk.is_some()
    }

    fn data(&self) -> PathBuf {
        self.folder.file("disk").join("data")
    }

    /// A program that sees the hub's disk.
    fn inside(&self, program: &str) -> Command {
        let Some(disk) = &self.disk else {
            return Command::new(program);
        };
        let mut command = Command::new("nsenter");
        command
            .args(["--user", "--mount", "--preserve-credentials", "--target"])
            .arg(disk.pid().to_string())
            .arg(program);
        command
    }

    pub(super) fn hub(&self) -> Command {
        let beside = std::path::Path::new(LINERATE).parent().unwrap().display();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = self.inside(LINERATE);
        command
            .args(["hub", "--listen", &self.pages().to_string()])
            .args(["--agents", &format!("127.0.0.1:{}", self.agents)])
            .args(["--connect-timeout", "60s", "--folder"])
            .arg(self.data())
            .arg("--via")
            .arg(format!(
                "{} {{host}}",
                self.folder.file("carrier").display()
            ))
            .arg(self.folder.file("watch.toml"))
            .env("PATH", format!("{beside}:{path}"))
            .env("XDG_CACHE_HOME", "/dev/null");
        command
    }

    /// An invitation for both hosts that dial.
    pub(super) fn invitation(&self) -> String {
        let mut command = self.inside(LINERATE);
        command.args(["hub", "token", "new", "--uses", "2", "--folder"]);
        let done = run(command.arg(self.data()), LONG).expect(0);
        done.out.trim().to_owned()
    }

    /// The agent of one of the hosts that dial.
    pub(super) fn agent(&self, at: usize, invitation: Option<&str>) -> Command {
        let hub = &self.relays[at].address;
        dialling(hub, &self.folder, &self.hosts[at], invitation)
    }

    /// The processes of the host that the hub reaches.
    pub(super) fn reached(&self) -> Vec<u32> {
        Hosts::processes(&self.hosts[2])
    }

    /// Takes all space of the hub's disk; again, what has become free since.
    pub(super) fn fill_disk(&self) {
        let Some(filler) = self.filler() else { return };
        let file = File::options().append(true).create(true).open(filler);
        // The end is the error that there is no space, down to the last byte.
        let Ok(mut file) = file else { return };
        for piece in [1_u64 << 20, 4096, 1] {
            let mut zeros = std::io::repeat(0).take(1 << 30);
            let mut bytes = vec![0; usize::try_from(piece).unwrap()];
            while zeros.read_exact(&mut bytes).is_ok() && file.write_all(&bytes).is_ok() {}
        }
    }

    pub(super) fn empty_disk(&self) {
        if let Some(filler) = self.filler() {
            drop(std::fs::remove_file(filler));
        }
    }

    fn filler(&self) -> Option<PathBuf> {
        let disk = self.disk.as_ref()?;
        let path = self.folder.file("disk").join("filler");
        let path = path.strip_prefix("/").unwrap().to_owned();
        Some(PathBuf::from(format!("/proc/{}/root", disk.pid())).join(path))
    }

    /// What the hub left, once it has ended.
    pub(super) fn archive(&self) -> Archive {
        let copy = self.folder.file("copy");
        let mut command = self.inside("cp");
        run(command.arg("-a").arg(self.data()).arg(&copy), LONG).expect(0);
        Archive::open_existing(&copy).unwrap()
    }

    /// Nothing of the hub is left on the host that it reached.
    pub(super) fn assert_quiet(&self) {
        let quiet = wait_until(PATIENCE, || self.reached().is_empty());
        assert!(quiet, "{:?}", self.reached());
    }
}

/// A disk of so many MiB, in a namespace of its own.
fn disk(folder: &Folder, mebibytes: u64) -> Option<Running> {
    let script = format!(
        "mount -t tmpfs -o size={mebibytes}m,mode=700 none \"$0\" && echo mounted && exec sleep 100000"
    );
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "--", "sh", "-c"])
        .arg(script)
        .arg(folder.file("disk"));
    let mut disk = start(&mut command);
    let mut mounted = false;
    wait_until(LONG, || {
        mounted = disk.out().contains("mounted");
        mounted || disk.ended()
    });
    let enters = || {
        let mut enter = Command::new("nsenter");
        enter
            .args(["--user", "--mount", "--preserve-credentials", "--target"])
            .args([&disk.pid().to_string(), "true"]);
        run(&mut enter, LONG)
    };
    if mounted {
        let entered = enters();
        if entered.code() == Some(0) {
            return Some(disk);
        }
        skipped(Need::UserNamespaces, "a full disk of a hub", &entered.error);
        return None;
    }
    skipped(Need::UserNamespaces, "a full disk of a hub", &disk.error());
    None
}
