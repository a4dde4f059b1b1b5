//! The fully static program where little is: in a root with nothing else, and on the oldest kernel that Debian's archive
//! still has.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use linerate_testing::{Need, skipped};
use serde_json::Value;
use tempfile::TempDir;

use crate::images::{Images, images};
use crate::machine::{Build, Disk, Machine, System};
use crate::network::Network;
use crate::say;

/// The images, where there is a static program.
fn with_static(what: &str) -> Option<&'static Images> {
    let images = images(what)?;
    match images.fully_static() {
        Ok(_) => Some(images),
        Err(why) => {
            skipped(Need::StaticBinary, what, &why);
            None
        }
    }
}

/// A root that has one file, and a network with loopback alone.
struct EmptyRoot {
    network: Network,
    folder: TempDir,
}

impl EmptyRoot {
    fn new(program: &Path) -> Self {
        let folder = TempDir::with_prefix("linerate-root-").unwrap();
        std::fs::copy(program, folder.path().join("linerate")).unwrap();
        Self {
            network: Network::new(),
            folder,
        }
    }

    /// The program in it; `prepare` is a script that is run before, outside of the root, where it is `$1`.
    fn command(&self, prepare: &str, words: &str) -> Command {
        let mut command = self.network.command("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "unshare", "--mount"]);
        let script = format!("set -e; {prepare}\nexec /usr/sbin/chroot \"$1\" /linerate {words}");
        command.args(["sh", "-c", &script, "sh"]);
        command.arg(self.folder.path());
        command
    }

    #[track_caller]
    fn run(&self, prepare: &str, words: &str) -> Output {
        let output = self.command(prepare, words).output().unwrap();
        assert!(output.status.success(), "{words}: {output:?}");
        output
    }

    #[track_caller]
    fn json(&self, prepare: &str, words: &str) -> Value {
        serde_json::from_slice(&self.run(prepare, words).stdout).unwrap()
    }
}

/// What a container has whose image is one file.
const CONTAINER: &str = "cd \"$1\"; mkdir proc dev; touch dev/null; mount --rbind /proc proc; mount --bind /dev/null dev/null";

#[test]
fn the_static_program_runs_in_an_empty_root() {
    let Some(images) = with_static("the_static_program_runs_in_an_empty_root") else {
        return;
    };
    let root = EmptyRoot::new(&images.fully_static().unwrap());
    assert!(root.run("", "--version").stdout.starts_with(b"linerate "));
    // There is no /proc: what cannot be known is said to be unknown.
    let host = root.json("", "host --json");
    assert!(host["system"]["kernel"]["unknown"].is_string(), "{host}");

    let mut server = root.command("", "serve --one-off --json-stream");
    let mut server = server.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let out = server.stdout.as_mut().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    assert!(line.contains("listening"), "{line}");
    let run = root.json("", "test 127.0.0.1 -t 0.5 --json");
    let rate = run["summary"]["goodput_bps"].as_f64();
    assert!(rate.is_some_and(|rate| rate > 0.0), "{run:#}");
    assert!(server.wait().unwrap().success());

    let files: Vec<_> = std::fs::read_dir(root.folder.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "it left something: {files:?}");
    let local = root.json(CONTAINER, "self -t 0.5 --json");
    assert_eq!(local["kind"], "host_limit", "{local}");
}

#[test]
fn the_static_program_runs_on_the_oldest_kernel() {
    let what = "the_static_program_runs_on_the_oldest_kernel";
    let Some(images) = with_static(what) else {
        return;
    };
    let oldest = match images.oldest() {
        Ok(oldest) => oldest,
        Err(why) => return skipped(Need::Qemu, what, &why),
    };
    let disk = Disk::new(images);
    let build = Build {
        kernel: oldest,
        ..Build::new(System::Small, &[])
    };
    let mut machine = Machine::boot(&disk, &build);
    let release = machine.ok("uname -r");
    say(&format!("kernel {release}"));
    machine.ok("ln -s /opt/linerate/linerate-static /usr/local/bin/static");

    let host: Value = serde_json::from_str(&machine.ok("static host --json")).unwrap();
    assert_eq!(host["system"]["kernel"], release.as_str(), "{host}");
    machine.ok("static host audit");

    let text = machine.ok("static self -t 0.5 2>&1");
    say(&text);
    assert!(text.contains("Loopback, MTU"), "{text}");

    machine.ok("static serve > /run/serve 2>&1 & \
        timeout 30 bash -c 'until ss -ltn | grep -q :5201; do sleep 0.1; done'");
    for options in ["", "-R", "-u -b 10M", "--bidir -P 2", "-C bbr", "-Z"] {
        let done = machine.run(&format!(
            "static test 127.0.0.1 -t 1 {options} --json 2>/run/errors || {{ cat /run/errors; exit 1; }}"
        ));
        assert_eq!(done.code, 0, "{options}: {}", done.text);
        let run: Value = serde_json::from_str(&done.text).unwrap();
        let rate = run["summary"]["goodput_bps"].as_f64();
        assert!(rate.is_some_and(|rate| rate > 0.0), "{options}: {run:#}");
        say(&format!("{options}: {rate:?} bit/s"));
    }
    // A change of settings, and back: netlink and ethtool of that kernel.
    machine.write(
        "/root/profile.toml",
        "[sysctl]\n\"net.core.rmem_max\" = 67108864\n[interface.lo]\nmtu = 9000\n",
    );
    machine.ok("static tune apply /root/profile.toml --allow link-flap --confirm-within 60s && static tune revert");
    let dead = machine.run("dmesg | grep -E 'segfault|linerate.*trap'");
    assert_eq!(dead.code, 1, "{}", dead.text);
    machine.power_off();
}
