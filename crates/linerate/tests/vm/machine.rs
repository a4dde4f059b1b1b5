//! A virtual machine that ends with its test: booted, spoken with, cut off from its network or its power, booted again
//! from the same disk.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::images::{Images, Kernel};
use crate::monitor::Monitor;
use crate::port::{Done, Port};
use crate::say;

/// No boot takes longer, without KVM and beside other work.
const BOOT: Duration = Duration::from_secs(170);
/// No script of a test takes longer.
const LONG: Duration = Duration::from_secs(90);

/// What a guest runs as its first process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    /// A shell within seconds: no systemd, nothing configured.
    Small,
    /// Debian as it comes, with systemd and systemd-networkd.
    Debian,
}

/// A network card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Card {
    /// virtio on QEMU's own network: an address by DHCP, a gateway that answers, nothing behind it. No offloads.
    User,
    /// virtio with queues on a tap device of a network namespace that is the gateway 10.9.N.1; the guest is
    /// 10.9.N.2 where systemd-networkd runs. N is the card's number.
    Queues(u8),
    /// Intel's e1000e on QEMU's own network: real rings and coalescing. The generic kernel's.
    E1000e,
    /// virtio, joined with another machine's card: this one waits for the other.
    Listen(PathBuf),
    /// virtio, joined with the card that listens at this path.
    Connect(PathBuf),
    /// Connected to a tap device of the [`crate::network::Network`] that the machine is in; the two numbers are the end of its hardware
    /// address.
    Tap(Model, String, [u8; 2]),
}

/// A model of card on a tap device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Model {
    /// virtio with two pairs of queues.
    Virtio,
    /// Intel's e1000e, which has one. The generic kernel's.
    E1000e,
}

/// A disk of its own: `vdc` and those that follow.
#[derive(Debug, Clone)]
pub(crate) struct Drive {
    /// A disk that several machines may have, which none of them writes; else one that is empty at the first boot.
    pub(crate) image: Option<PathBuf>,
    /// Of one that is empty.
    pub(crate) mib: u64,
    /// What QEMU lets pass, as its `throttling` has it: `iops-total=120`, `bps-write=2097152`; empty = all. [`Monitor::throttle`]
    /// changes it.
    pub(crate) throttling: &'static str,
}

impl Drive {
    /// As fast as it comes.
    pub(crate) fn of(mib: u64) -> Self {
        Self::throttled(mib, "")
    }

    pub(crate) fn throttled(mib: u64, throttling: &'static str) -> Self {
        Self {
            image: None,
            mib,
            throttling,
        }
    }

    /// With what this file has.
    pub(crate) fn with(image: PathBuf) -> Self {
        Self {
            image: Some(image),
            ..Self::of(0)
        }
    }
}

/// What a machine has.
#[derive(Debug, Clone)]
pub(crate) struct Build {
    pub(crate) system: System,
    pub(crate) kernel: Kernel,
    pub(crate) memory_mib: u32,
    pub(crate) processors: u8,
    pub(crate) cards: Vec<Card>,
    pub(crate) drives: Vec<Drive>,
    /// The network that it is in, by the process that holds it; else one of its own.
    pub(crate) network: Option<u32>,
}

impl Build {
    pub(crate) fn new(system: System, cards: &[Card]) -> Self {
        Self {
            system,
            kernel: Kernel::Cloud,
            memory_mib: 768,
            processors: 2,
            cards: cards.to_vec(),
            drives: Vec::new(),
            network: None,
        }
    }
}

/// A folder with a machine's disk, which outlives the machine.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: TempDir,
    images: &'static Images,
}

impl Disk {
    /// A new disk with an untouched system on it.
    pub(crate) fn new(images: &'static Images) -> Self {
        let folder = TempDir::with_prefix("linerate-vm-").unwrap();
        let disk = Self { folder, images };
        let made = Command::new("qemu-img")
            .args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b"])
            .arg(images.system())
            .arg(disk.file("disk"))
            .status();
        assert!(made.unwrap().success(), "qemu-img create");
        disk
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// A machine that runs.
#[derive(Debug)]
pub(crate) struct Machine<'d> {
    qemu: Child,
    port: Port,
    pub(crate) monitor: Monitor,
    disk: &'d Disk,
    /// The guest's boot id.
    pub(crate) boot: String,
    began: Instant,
}

impl<'d> Machine<'d> {
    /// Boots, and waits until the guest answers.
    #[track_caller]
    pub(crate) fn boot(disk: &'d Disk, build: &Build) -> Self {
        let mut machine = Self::power_on(disk, build);
        machine.answers(build);
        machine
    }

    /// Gives it power, and waits for nothing of its guest: [`Self::answers`] does.
    #[track_caller]
    pub(crate) fn power_on(disk: &'d Disk, build: &Build) -> Self {
        let began = Instant::now();
        for name in ["port", "monitor"] {
            drop(std::fs::remove_file(disk.file(name)));
        }
        let errors = std::fs::File::create(disk.file("errors")).unwrap();
        let mut qemu = command(disk, build)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .unwrap();
        let port = connect(&mut qemu, disk, "port");
        let monitor = Monitor::new(connect(&mut qemu, disk, "monitor"));
        Self {
            qemu,
            port: Port::new(port),
            monitor,
            disk,
            boot: String::new(),
            began,
        }
    }

    /// Waits until the guest answers, the first time after [`Self::power_on`].
    #[track_caller]
    pub(crate) fn answers(&mut self, build: &Build) {
        self.greets(build, BOOT);
    }

    /// Waits until the guest answers after it has restarted itself: it goes down first.
    #[track_caller]
    pub(crate) fn comes_back(&mut self, build: &Build) {
        self.greets(build, 3 * BOOT);
    }

    #[track_caller]
    fn greets(&mut self, build: &Build, limit: Duration) {
        match self.port.greeting(limit) {
            Ok(boot) => self.boot = boot,
            Err(why) => panic!("{why}\n{}", self.last_words()),
        }
        if build.system == System::Debian {
            // systemd-networkd gives addresses while the rest of the system is up already.
            self.ok(&format!(
                "timeout 60 bash -c 'until [ $(ip -4 -brief address show | grep -c \"^en.*/\") = {} ]; do sleep 0.05; done'",
                build.cards.len()
            ));
        }
        say(&format!(
            "{:?} guest up in {:.1} s ({})",
            build.system,
            self.began.elapsed().as_secs_f64(),
            self.disk.images.accelerator
        ));
    }

    /// Has the guest run a script of bash.
    #[track_caller]
    pub(crate) fn run(&mut self, script: &str) -> Done {
        self.run_for(script, LONG)
    }

    /// The same of a script that may take as long as this.
    #[track_caller]
    pub(crate) fn run_for(&mut self, script: &str, limit: Duration) -> Done {
        match self.port.run(script, limit) {
            Ok(done) => done,
            Err(why) => panic!("{script}: {why}\n{}", self.last_words()),
        }
    }

    /// The same, and it must succeed; its output.
    #[track_caller]
    pub(crate) fn ok(&mut self, script: &str) -> String {
        let done = self.run(script);
        assert_eq!(done.code, 0, "{script}\n{}", done.text);
        done.text.trim_end().to_owned()
    }

    /// Writes a file in the guest.
    #[track_caller]
    pub(crate) fn write(&mut self, path: &str, text: &str) {
        assert!(!text.contains("END_OF_FILE"));
        self.ok(&format!(
            "mkdir -p \"$(dirname '{path}')\"; cat > '{path}' <<'END_OF_FILE'\n{text}\nEND_OF_FILE"
        ));
    }

    /// Powers off in good order.
    #[track_caller]
    pub(crate) fn power_off(mut self) {
        self.port
            .begin("sync; [ -d /run/systemd/system ] && exec systemctl poweroff; exec poweroff -f")
            .unwrap();
        let end = Instant::now() + BOOT;
        while self.qemu.try_wait().unwrap().is_none() {
            assert!(
                Instant::now() < end,
                "it does not power off\n{}",
                self.last_words()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until it has ended by itself: QEMU ends where a guest resets the machine.
    #[track_caller]
    pub(crate) fn ends(&mut self, limit: Duration) {
        let end = Instant::now() + limit;
        while self.qemu.try_wait().unwrap().is_none() {
            assert!(
                Instant::now() < end,
                "it did not end in {limit:?}\n{}",
                self.last_words()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Takes its power: what the guest had not flushed is lost.
    pub(crate) fn cut_power(self) {
        drop(self);
    }

    /// For how long QEMU's threads have had a CPU of this machine, and for how long they have waited for one, ns.
    pub(crate) fn scheduled(&self) -> [u64; 2] {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.qemu.id())).unwrap();
        let mut sum = [0; 2];
        // A thread may have ended meanwhile.
        for text in tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
        {
            let words = text.split(' ').map(str::parse::<u64>);
            for (sum, word) in sum.iter_mut().zip(words) {
                *sum += word.unwrap();
            }
        }
        sum
    }

    /// The end of its console and what QEMU said.
    fn last_words(&self) -> String {
        let console = std::fs::read(self.disk.file("console")).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        let lines: Vec<&str> = console.lines().collect();
        let errors = std::fs::read_to_string(self.disk.file("errors")).unwrap_or_default();
        format!(
            "{}\n{errors}",
            lines[lines.len().saturating_sub(25)..].join("\n")
        )
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        drop(self.qemu.kill());
        drop(self.qemu.wait());
    }
}

fn connect(qemu: &mut Child, disk: &Disk, name: &str) -> UnixStream {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Ok(stream) = UnixStream::connect(disk.file(name)) {
            return stream;
        }
        let ended = qemu.try_wait().unwrap();
        assert!(
            ended.is_none() && Instant::now() < end,
            "QEMU: {ended:?} {}",
            std::fs::read_to_string(disk.file("errors")).unwrap_or_default()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A command in the user and network namespace that a process holds.
pub(crate) fn inside(holder: u32) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["-t", &holder.to_string(), "--user", "--net"]);
    command.args(["--preserve-credentials", "--"]);
    command
}

/// What runs in a user and network namespace of its own, or of the build's network, and is bound to the life of this
/// thread.
fn bound(build: &Build) -> Command {
    let mut prepare = String::from("set -e; ip link set lo up; ");
    for (number, card) in build.cards.iter().enumerate() {
        if let Card::Queues(_) = card {
            let _ = write!(
                prepare,
                "ip tuntap add tap{number} mode tap multi_queue; ip address add 10.9.{number}.1/24 dev tap{number}; ip link set tap{number} up; "
            );
        }
    }
    prepare += "exec setpriv --pdeathsig KILL -- \"$@\"";
    let mut command = if let Some(holder) = build.network {
        inside(holder)
    } else {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--"]);
        command
    };
    command.args(["sh", "-c", prepare.as_str(), "sh"]);
    command
}

/// QEMU's command line.
fn command(disk: &Disk, build: &Build) -> Command {
    let images = disk.images;
    let mut command = bound(build);
    command.args([
        "qemu-system-x86_64",
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
    ]);
    command.args([
        "-machine",
        "q35",
        "-accel",
        images.accelerator,
        "-cpu",
        "max",
    ]);
    command.args(["-smp", &build.processors.to_string()]);
    command.args(["-m", &build.memory_mib.to_string()]);
    command.arg("-kernel").arg(images.kernel(build.kernel));
    command.arg("-initrd").arg(images.first_stage(build.kernel));
    let init = match build.system {
        System::Small => " init=/usr/local/lib/linerate-vm/small-init",
        System::Debian => "",
    };
    // A guest that waits for its CPUs while it boots finds its timer broken, unless it does not look.
    command.arg("-append").arg(format!(
        "console=ttyS0 root=/dev/vda mitigations=off panic=-1 no_timer_check net.ifnames={}{init}",
        u8::from(build.system == System::Debian)
    ));
    for (path, more) in [
        (disk.file("disk"), "format=qcow2,id=system"),
        (images.program(), "format=raw,readonly=on,id=program"),
    ] {
        command.arg("-drive");
        command.arg(format!("file={},if=virtio,{more}", path.display()));
    }
    for (number, drive) in build.drives.iter().enumerate() {
        drives(&mut command, disk, number, drive);
    }
    let socket = |name: &str| format!("path={},server=on,wait=off", disk.file(name).display());
    command.args(["-device", "virtio-serial", "-chardev"]);
    command.arg(format!("socket,id=port,{}", socket("port")));
    command.args(["-device", "virtserialport,chardev=port,name=test", "-qmp"]);
    command.arg(format!(
        "unix:{}",
        socket("monitor").trim_start_matches("path=")
    ));
    command.arg("-serial");
    command.arg(format!("file:{}", disk.file("console").display()));
    for (number, card) in build.cards.iter().enumerate() {
        cards(&mut command, number, card);
    }
    command
}

fn drives(command: &mut Command, disk: &Disk, number: usize, drive: &Drive) {
    let (file, more) = match &drive.image {
        Some(image) => (image.clone(), ",readonly=on"),
        None => (disk.file(&format!("drive{number}")), ""),
    };
    if drive.image.is_none() {
        // What a machine wrote before its power was cut stays.
        let opened = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&file);
        let made = opened.and_then(|file| file.set_len(drive.mib << 20));
        assert!(made.is_ok(), "{}: {made:?}", file.display());
    }
    let throttling = match drive.throttling {
        "" => String::new(),
        what => format!(",throttling.{what}"),
    };
    command.arg("-drive").arg(format!(
        "file={},if=virtio,id=drive{number},format=raw,cache=unsafe{more}{throttling}",
        file.display()
    ));
}

const VIRTIO: &str = "virtio-net-pci,romfile=";
const QUEUES: &str = "virtio-net-pci,romfile=,mq=on";
const E1000E: &str = "e1000e,romfile=";

fn cards(command: &mut Command, number: usize, card: &Card) {
    let stream = |path: &Path, server: &str| {
        format!(
            "stream,id=net{number},server={server},addr.type=unix,addr.path={}",
            path.display()
        )
    };
    let tap = |device: &str, queues: u8| {
        format!(
            "tap,id=net{number},ifname={device},script=no,downscript=no,vhost=off,queues={queues}"
        )
    };
    let (net, device, queues) = match card {
        Card::User => (format!("user,id=net{number}"), VIRTIO, None),
        Card::E1000e => (format!("user,id=net{number}"), E1000E, None),
        Card::Queues(queues) => (tap(&format!("tap{number}"), *queues), QUEUES, Some(*queues)),
        Card::Tap(Model::Virtio, device, _) => (tap(device, 2), QUEUES, Some(2)),
        Card::Tap(Model::E1000e, device, _) => (tap(device, 1), E1000E, None),
        Card::Listen(path) => (stream(path, "on"), VIRTIO, None),
        Card::Connect(path) => (stream(path, "off"), VIRTIO, None),
    };
    let vectors = queues.map_or_else(String::new, |queues| {
        format!(",vectors={}", 2 * u32::from(queues) + 2)
    });
    // systemd-networkd in the guest knows cards on tap devices of its own by their address.
    let kind = u8::from(matches!(card, Card::Queues(_))) * 9;
    let address = match card {
        Card::Tap(_, _, [machine, card]) => format!("52:54:01:00:{machine:02x}:{card:02x}"),
        _ => format!("52:54:00:{kind:02x}:00:{number:02x}"),
    };
    command.args(["-netdev", &net, "-device"]);
    command.arg(format!(
        "{device}{vectors},id=card{number},netdev=net{number},mac={address}"
    ));
}
