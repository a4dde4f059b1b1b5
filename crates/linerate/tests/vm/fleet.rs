//! Several guests on one network, each with an sshd of its own, and this end that reaches them by the system's ssh with
//! a configuration of its own: `guest1` …
//!
//! Each guest has a card for its management (eth0, where its sshd is reached) and one for its data (eth1).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use tempfile::TempDir;

use crate::images::{Images, Kernel, images};
use crate::machine::{Build, Card, Disk, Machine, Model, System};
use crate::network::Network;
use crate::say;

/// The bridges, and the network of each.
const MANAGEMENT: (&str, &str) = ("management", "10.7.0");
const DATA: (&str, &str) = ("data", "10.7.1");
/// Guests whose kernels boot at the same time: more only wait for each other.
const AT_ONCE: usize = 2;

/// What its guests boot from, and their disks: they outlive the fleet.
pub(crate) struct Disks(Vec<Disk>);

impl Disks {
    pub(crate) fn new(images: &'static Images, count: usize) -> Self {
        Self((0..count).map(|_| Disk::new(images)).collect())
    }
}

/// Guests that run and can be reached.
pub(crate) struct Fleet<'d> {
    /// They end before their network does.
    pub(crate) guests: Vec<Machine<'d>>,
    pub(crate) network: Network,
    /// Keys and configuration of ssh, and a home for what runs at this end.
    folder: TempDir,
}

impl<'d> Fleet<'d> {
    /// Boots a guest with each of these cards, for management and data alike, and starts their sshd.
    #[track_caller]
    pub(crate) fn boot(disks: &'d Disks, models: &[Model]) -> Self {
        let began = Instant::now();
        assert_eq!(disks.0.len(), models.len());
        let network = Network::new();
        for (bridge, net) in [MANAGEMENT, DATA] {
            network.bridge(bridge, &format!("{net}.1/24"));
        }
        let mut fleet = Self {
            guests: Vec::new(),
            network,
            folder: TempDir::with_prefix("linerate-fleet-").unwrap(),
        };
        std::fs::create_dir(fleet.home()).unwrap();
        fleet.write_configuration(models.len());
        for first in (0..models.len()).step_by(AT_ONCE) {
            let wave = first..models.len().min(first + AT_ONCE);
            let builds: Vec<Build> = wave
                .clone()
                .map(|place| fleet.build(place, models[place]))
                .collect();
            for (place, build) in wave.clone().zip(&builds) {
                let machine = Machine::power_on(&disks.0[place], build);
                fleet.guests.push(machine);
            }
            for (place, build) in wave.zip(&builds) {
                fleet.guests[place].answers(build);
                fleet.start_sshd(place);
            }
        }
        say(&format!(
            "{} guests up in {:.1} s",
            models.len(),
            began.elapsed().as_secs_f64()
        ));
        fleet
    }

    fn build(&self, place: usize, model: Model) -> Build {
        let number = u8::try_from(place + 1).unwrap();
        let cards = [(MANAGEMENT, "m"), (DATA, "d")].map(|((bridge, _), letter)| {
            let tap = format!("{letter}{number}");
            self.network.tap(&tap, bridge, model == Model::Virtio);
            let card = u8::from(bridge == DATA.0);
            Card::Tap(model, tap, [number, card])
        });
        Build {
            memory_mib: 320,
            processors: 2,
            network: Some(self.network.holder()),
            kernel: match model {
                Model::Virtio => Kernel::Cloud,
                Model::E1000e => Kernel::Generic,
            },
            ..Build::new(System::Small, &cards)
        }
    }

    /// Keys of this end and of each guest, who they are, and how ssh reaches them.
    fn write_configuration(&self, count: usize) {
        self.key("user");
        let mut configuration = format!(
            "Host *\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  \
             GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n",
            self.file("user").display(),
            self.file("known").display(),
        );
        let mut known = String::new();
        for number in 1..=count {
            let host = format!("guest{number}");
            self.key(&host);
            let public = std::fs::read_to_string(self.file(&format!("{host}.pub"))).unwrap();
            let address = format!("{}.{}", MANAGEMENT.1, number + 10);
            let _ = writeln!(known, "{address} {public}");
            let _ = write!(configuration, "Host {host}\n  HostName {address}\n");
        }
        std::fs::write(self.file("known"), known).unwrap();
        std::fs::write(self.configuration(), configuration).unwrap();
    }

    fn key(&self, name: &str) {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"])
            .arg(self.file(name))
            .stdin(Stdio::null())
            .status();
        assert!(made.unwrap().success(), "ssh-keygen");
    }

    fn start_sshd(&mut self, place: usize) {
        let number = place + 1;
        let host = std::fs::read_to_string(self.file(&format!("guest{number}"))).unwrap();
        let user = std::fs::read_to_string(self.file("user.pub")).unwrap();
        let guest = &mut self.guests[place];
        guest.ok(&format!("hostname guest{number}"));
        for (card, (_, net)) in [MANAGEMENT, DATA].iter().enumerate() {
            guest.ok(&format!(
                "ip address add {net}.{}/24 dev eth{card} && ip link set eth{card} up",
                number + 10
            ));
        }
        guest.write("/etc/ssh/ssh_host_ed25519_key", &host);
        guest.write("/root/.ssh/authorized_keys", &user);
        guest.ok(
            "chmod 600 /etc/ssh/ssh_host_ed25519_key; chmod 700 /root/.ssh; mkdir -p /run/sshd; \
             /usr/sbin/sshd -h /etc/ssh/ssh_host_ed25519_key -o UsePAM=no -o PermitRootLogin=prohibit-password",
        );
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The configuration of ssh with which `guest1` … are reached.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.file("ssh_config")
    }

    /// ssh at this end, for a guest by its number from 1.
    pub(crate) fn ssh(&self, number: usize, script: &str) -> Output {
        self.network
            .command("ssh")
            .arg("-F")
            .arg(self.configuration())
            .args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=60"])
            .args([&format!("guest{number}"), script])
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// A program at this end that reaches the guests, with a home of its own.
    pub(crate) fn near(&self, program: &Path) -> Command {
        let mut command = self.network.command("env");
        command
            .args(["-u", "XDG_STATE_HOME", "-u", "XDG_CACHE_HOME"])
            .arg(format!("HOME={}", self.home().display()))
            .arg(program);
        command
    }

    /// The home of what runs at this end.
    pub(crate) fn home(&self) -> PathBuf {
        self.file("home")
    }

    pub(crate) fn power_off(self) {
        for guest in self.guests {
            guest.power_off();
        }
    }
}

/// Each guest answers as itself, by its name; a management link that is taken down is taken down for that guest alone.
#[track_caller]
fn reached_by_ssh(count: usize) {
    let Some(images) = images("a fleet reached by ssh") else {
        return;
    };
    let disks = Disks::new(images, count);
    let mut models = vec![Model::Virtio; count];
    models[count - 1] = Model::E1000e;
    let mut fleet = Fleet::boot(&disks, &models);
    for number in 1..=count {
        let output = fleet.ssh(number, "hostname; linerate --version");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            said.starts_with(&format!("guest{number}\nlinerate ")),
            "{output:?}"
        );
    }
    fleet.guests[0].ok("ping -c1 -W20 10.7.1.12");
    fleet.guests[0].monitor.link(0, false);
    fleet.guests[0].ok(
        "timeout 20 bash -c 'until [ $(</sys/class/net/eth0/carrier) = 0 ]; do :; done'; ping -c1 -W20 10.7.1.12",
    );
    assert!(fleet.ssh(2, "true").status.success());
    fleet.guests[0].monitor.link(0, true);
    fleet.guests[0]
        .ok("timeout 20 bash -c 'until [ $(</sys/class/net/eth0/carrier) = 1 ]; do :; done'");
    assert!(fleet.ssh(1, "true").status.success());
    fleet.power_off();
}

#[test]
fn three_guests_are_reached_by_ssh() {
    reached_by_ssh(3);
}

#[test]
#[ignore = "eight guests: make test-vm-fleet"]
fn eight_guests_are_reached_by_ssh() {
    reached_by_ssh(8);
}
