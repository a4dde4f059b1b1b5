//! A cluster on this machine: hosts in network, process and mount namespaces of their own, each with an sshd, on the
//! ports of a bridge; this end is on the bridge. Only root can have them.
//!
//! The first process of each host reads its standard input, which the test holds. When the test ends, however it ends,
//! that process does, the kernel kills all others of the host with it, and the namespaces with their files are gone.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use linerate_testing::{Need, skipped};

use super::{Folder, LINERATE, lacks_programs};

/// The network of the hosts: node01 is its 1, this end its 254.
const NET: &str = "198.51.100";
const SSHD: &str = "/usr/sbin/sshd";
/// What a host's bridge and tc need.
const PROGRAMS: [&str; 8] = [
    "unshare",
    "nsenter",
    "ip",
    "tc",
    "ss",
    "ssh",
    "ssh-keygen",
    "strip",
];

/// What the first process of a host does: `$1` is the folder with its keys, `$2` its address, `$3` its sshd's port, `$4`
/// its name. It has its link when the test says so. All that runs there writes only into folders of its own in memory.
/// bash gathers what loses its parent.
const FIRST: &str = r#"
set -e
echo there
read -r _
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs -o mode=755 own /run
mkdir /run/sshd
install -m 600 "$1/host_key" "$1/authorized_keys" /run/sshd/
for folder in /tmp /var/tmp /dev/shm; do mount -t tmpfs -o mode=1777 own $folder; done
mount -t tmpfs -o mode=700 own /root
cd /
hostname "$4"
ip link set lo up
ip address add "$2/24" dev eth0
ip link set eth0 up
/usr/sbin/sshd -D -e -f /dev/null -p "$3" -o HostKey=/run/sshd/host_key -o AuthorizedKeysFile=/run/sshd/authorized_keys \
    -o PermitRootLogin=prohibit-password -o UsePAM=no -o UseDNS=no -o StrictModes=no -o PidFile=none \
    -o MaxStartups=1000 -o MaxSessions=100 </dev/null >/run/sshd/said 2>&1 &
until ss -Hltn "sport = :$3" | grep -q .; do kill -0 $! || { cat /run/sshd/said >&2; exit 1; }; sleep 0.02; done
echo ready
while read -r _; do :; done
"#;

/// A host.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) address: String,
    holder: Holder,
}

/// What holds namespaces: they live until this is dropped.
#[derive(Debug)]
struct Holder {
    process: Child,
    out: BufReader<ChildStdout>,
}

/// The hosts, and this end of their network.
#[derive(Debug)]
pub(crate) struct Bed {
    pub(crate) nodes: Vec<Node>,
    hub: Holder,
    folder: Folder,
}

impl Holder {
    fn start(command: &mut Command) -> Result<Self, String> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let out = BufReader::new(process.stdout.take().unwrap());
        Ok(Self { process, out })
    }

    /// Waits for a line of it; where it says another one or none, what its errors are.
    fn says(&mut self, wanted: &str) -> Result<(), String> {
        let mut line = String::new();
        let read = self.out.read_line(&mut line);
        if read.is_ok() && line.trim_end() == wanted {
            return Ok(());
        }
        drop(self.process.stdin.take());
        let mut error = String::new();
        let _ = std::io::Read::read_to_string(self.process.stderr.as_mut().unwrap(), &mut error);
        Err(format!("'{line}' for '{wanted}': {}", error.trim()))
    }

    fn tell(&mut self, line: &str) -> Result<(), String> {
        let input = self.process.stdin.as_mut().unwrap();
        writeln!(input, "{line}").map_err(|error| error.to_string())
    }

    /// A command in the namespaces of these kinds, in the words of nsenter.
    fn command(&self, kinds: &[&str], program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.process.id().to_string()]);
        command.args(kinds).args(["--", program]);
        command
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Node {
    /// A command in this host's network, with its files.
    pub(crate) fn command(&self, program: &str) -> Command {
        let kinds = ["--net", "--mount", "--uts"];
        self.holder.command(&kinds, program)
    }

    /// The processes on it besides the first and its sshd, each with its command line.
    pub(crate) fn processes(&self) -> Vec<String> {
        let holder = self.holder.process.id();
        let found = processes(&format!("/proc/{holder}/ns/pid_for_children"), "pid");
        let known = |words: &str| words.starts_with("bash -c ") || words.contains("sshd -D ");
        let others = found.into_iter().filter(|(_, words)| !known(words));
        others
            .map(|(pid, words)| format!("{pid}: {words}"))
            .collect()
    }

    /// A file of this host.
    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        let holder = self.holder.process.id();
        fs::read(format!("/proc/{holder}/root{path}")).unwrap()
    }

    /// The files and folders that were made on it.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut find = self.command("find");
        find.args(["/root", "/tmp", "/var/tmp", "/dev/shm", "/run"]);
        find.args(["-mindepth", "1", "-not", "-path", "/run/sshd*"]);
        // mount's own notes.
        find.args(["-not", "-path", "/run/mount*"]);
        let output = find.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines().map(str::to_owned).collect()
    }
}

/// The processes in a namespace, each with its id and its command line: `space` is the namespace, `kind` its name below
/// `/proc/PID/ns`.
fn processes(space: &str, kind: &str) -> Vec<(u32, String)> {
    let ours = fs::read_link(space).unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let its = fs::read_link(format!("/proc/{pid}/ns/{kind}"));
        if its.is_ok_and(|its| its == ours) {
            // What has ended and is not gathered yet has no command line.
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            found.push((pid, words.trim_end().to_owned()));
        }
    }
    found.retain(|(_, words)| !words.is_empty());
    found
}

/// A port of its own for each sshd.
fn port(number: u8) -> u16 {
    2200 + u16::from(number)
}

impl Bed {
    /// As many hosts, `node01` and so on, whose links carry `rate` each way, in the words of tc, or what the machine
    /// does; `None` where they cannot be had.
    pub(crate) fn new(what: &str, count: u8, rate: Option<&str>) -> Option<Self> {
        if lacks_programs(what, &PROGRAMS) {
            return None;
        }
        if !Path::new(SSHD).exists() {
            let why = "sshd is not installed (scripts/test-deps.sh)";
            skipped(Need::Programs, what, why);
            return None;
        }
        let made = Self::made(count, rate);
        made.map_err(|why| {
            let tbf = why.contains("qdisc");
            skipped(if tbf { Need::Tbf } else { Need::Root }, what, &why);
        })
        .ok()
    }

    fn made(count: u8, rate: Option<&str>) -> Result<Self, String> {
        let mut hub = Command::new("unshare");
        hub.args(["--net", "sh", "-c"])
            .arg("ip link set lo up && echo ready && exec cat");
        let mut hub = Holder::start(&mut hub)?;
        hub.says("ready")?;
        let mut bed = Self {
            nodes: Vec::new(),
            hub,
            folder: Folder::new(),
        };
        bed.ip("link add hub type bridge forward_delay 0")?;
        bed.ip(&format!("address add {NET}.254/24 dev hub"))?;
        bed.ip("link set hub up")?;
        let mut strip = Command::new("strip");
        strip.arg("-o").arg(bed.folder.file("linerate"));
        done(strip.arg(LINERATE))?;
        key("user", &bed.folder.file("user"))?;
        let mut known = String::new();
        let mut configuration = bed.common_configuration();
        for number in 1..=count {
            let node = bed.node(number, rate)?;
            let (name, address, port) = (&node.name, &node.address, port(number));
            let public = bed.folder.file(name).join("host_key.pub");
            let public = fs::read_to_string(public).unwrap();
            let _ = write!(known, "[{address}]:{port} {public}");
            let _ = write!(
                configuration,
                "Host {name}\n  HostName {address}\n  Port {port}\n"
            );
            bed.nodes.push(node);
        }
        for node in &mut bed.nodes {
            node.holder.says("ready")?;
        }
        bed.folder.with("known", known);
        bed.folder.with("ssh_config", configuration);
        Ok(bed)
    }

    fn common_configuration(&self) -> String {
        format!(
            "Host *\n  User root\n  BatchMode yes\n  ConnectTimeout 20\n  IdentityFile {}\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n",
            self.folder.file("user").display(),
            self.folder.file("known").display(),
        )
    }

    /// Makes a host and its link, and has it start its sshd.
    fn node(&self, number: u8, rate: Option<&str>) -> Result<Node, String> {
        let name = format!("node{number:02}");
        let address = format!("{NET}.{number}");
        let keys = self.folder.file(&name);
        fs::create_dir(&keys).unwrap();
        key(&name, &keys.join("host_key"))?;
        fs::copy(self.folder.file("user.pub"), keys.join("authorized_keys")).unwrap();
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--uts", "--pid", "--fork"]);
        command.args(["--kill-child", "bash", "-c", FIRST, "bash"]);
        command.arg(&keys).arg(&address);
        command.args([&port(number).to_string(), &name]);
        let mut holder = Holder::start(&mut command)?;
        holder.says("there")?;
        let pid = holder.process.id();
        let card = format!("n{number}");
        self.ip(&format!(
            "link add {card} type veth peer name eth0 netns {pid}"
        ))?;
        self.ip(&format!("link set {card} master hub up"))?;
        let net = ["--net"];
        let ends = [(&self.hub, card.as_str()), (&holder, "eth0")];
        for (rate, (holder, device)) in ends.into_iter().filter_map(|end| Some((rate?, end))) {
            let mut tc = holder.command(&net, "tc");
            tc.args(["qdisc", "add", "dev", device, "root", "tbf", "rate", rate]);
            done(tc.args(["burst", "64kb", "latency", "20ms"]))?;
        }
        holder.tell("go on")?;
        Ok(Node {
            name,
            address,
            holder,
        })
    }

    fn ip(&self, words: &str) -> Result<(), String> {
        done(self.command("ip").args(words.split_whitespace()))
    }

    /// A program at this end.
    pub(crate) fn command(&self, program: &str) -> Command {
        self.hub.command(&["--net"], program)
    }

    /// Our binary at this end, without its symbols, as hosts get it; it has a home of its own.
    pub(crate) fn linerate(&self, words: &str) -> Command {
        let mut command = self.command(self.program().to_str().unwrap());
        command.args(words.split_whitespace());
        command.env("HOME", self.folder.path());
        command
    }

    /// The same for a set of hosts, reached by ssh.
    pub(crate) fn on(&self, hosts: &str, words: &str) -> Command {
        let mut command = self.linerate(words);
        command.args(["--on", hosts, "--via", &self.via()]);
        command
    }

    /// What runs at this end of the network, each with its command line.
    pub(crate) fn processes(&self) -> Vec<String> {
        let holder = self.hub.process.id();
        let found = processes(&format!("/proc/{holder}/ns/net"), "net");
        let others = found.into_iter().filter(|(pid, _)| *pid != holder);
        others
            .map(|(pid, words)| format!("{pid}: {words}"))
            .collect()
    }

    /// The configuration with which ssh reaches the hosts.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.folder.file("ssh_config")
    }

    /// A folder that ends with it.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Our binary without its symbols.
    pub(crate) fn program(&self) -> PathBuf {
        self.folder.file("linerate")
    }

    /// What to give as `--via`.
    pub(crate) fn via(&self) -> String {
        format!("ssh -F {} {{host}} --", self.configuration().display())
    }

    /// ssh at this end.
    pub(crate) fn ssh(&self, host: &str, script: &str) -> Output {
        let mut command = self.command("ssh");
        command.arg("-F").arg(self.configuration());
        command.args([host, script]).stdin(Stdio::null());
        command.output().unwrap()
    }
}

fn key(name: &str, path: &Path) -> Result<(), String> {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]);
    done(command.arg(path))
}

fn done(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}", error.trim()))
}
