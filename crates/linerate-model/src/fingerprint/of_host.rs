//! The fingerprint of a host's facts.

use std::collections::BTreeMap;

use crate::host::{self, HostFacts};
use crate::plain_text::PlainText;
use crate::record;

use super::{Fingerprint, Key, Subject, carrier, storage};

/// Settings of the kernel that the audit looks at and that bear on what a test measures. `net.ipv4.tcp_mem` is not among
/// them: its default comes from the memory that is free while the kernel starts (`tcp_init_mem` of net/ipv4/tcp.c), so that
/// each boot gives another one.
pub const SYSCTLS: [&str; 33] = [
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_forward",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_dsack",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv6.conf.all.forwarding",
    "vm.dirty_background_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.dirty_expire_centisecs",
    "vm.dirty_ratio",
    "vm.dirty_writeback_centisecs",
];

impl HostFacts {
    /// The fingerprint of this host for what is sent by an interface; of `None` that of its kernel, processors, settings and
    /// storage alone.
    pub fn fingerprint(&self, interface: Option<&str>) -> Fingerprint {
        let known = |subject, fact: &host::Fact<String>| {
            let value = fact.known()?;
            Some((Key::of(subject), value.as_str().into()))
        };
        let single = [
            known(Subject::Kernel, &self.system.kernel),
            known(Subject::KernelBuild, &self.system.kernel_build),
            known(Subject::Microcode, &self.processors.microcode),
        ];
        let mitigations = self.processors.mitigations.known().into_iter().flatten();
        let mitigations = mitigations
            .map(|(name, words)| (Key::named(Subject::Mitigation, name), words.as_str().into()));
        let sysctls = SYSCTLS.iter().filter_map(|key| {
            let value = self.sysctls.get(*key)?.known()?.as_str().into();
            Some((Key::named(Subject::Sysctl, key), value))
        });
        let carrier = interface.map(|name| carrier::facts(self, name));
        let facts = single.into_iter().flatten().chain(mitigations);
        let facts = facts.chain(sysctls).chain(storage::facts(self));
        Fingerprint::of(facts.chain(carrier.into_iter().flatten()))
    }

    /// The fingerprint for each interface with a device, and for that of the default route, by name.
    pub fn fingerprints(&self) -> BTreeMap<String, Fingerprint> {
        let routes = self.routes.known().into_iter().flatten();
        let default: Vec<&str> = routes
            .filter(|route| route.destination == "default")
            .filter_map(|route| route.interface.as_deref())
            .collect();
        let all = self.interfaces.known().into_iter().flatten();
        all.filter(|one| one.kind == "hardware" || default.contains(&one.name.as_str()))
            .map(|one| (one.name.clone(), self.fingerprint(Some(&one.name))))
            .collect()
    }
}

/// What a record without a fingerprint tells of the same facts.
pub(super) fn older(
    host: &record::HostFacts,
    interface: Option<&record::InterfaceFacts>,
) -> Fingerprint {
    let three = |bounds: Option<[u64; 3]>| {
        bounds.map(|[least, first, most]| format!("{least} {first} {most}").into())
    };
    let number = |value: Option<u64>| value.map(|value| value.to_string().into());
    let sysctls: [(&str, Option<PlainText>); 6] = [
        ("net.ipv4.tcp_rmem", three(host.tcp_rmem)),
        ("net.ipv4.tcp_wmem", three(host.tcp_wmem)),
        ("net.core.rmem_max", number(host.rmem_max)),
        ("net.core.wmem_max", number(host.wmem_max)),
        ("net.ipv4.tcp_congestion_control", host.congestion.clone()),
        ("net.core.default_qdisc", host.default_qdisc.clone()),
    ];
    let sysctls = sysctls
        .into_iter()
        .filter_map(|(key, value)| Some((Key::named(Subject::Sysctl, key), value?)));
    let driver = interface.and_then(|one| one.driver.clone());
    let single = [
        (Subject::Kernel, host.kernel.clone()),
        (Subject::Driver, driver),
    ];
    let single = single
        .into_iter()
        .filter_map(|(subject, value)| Some((Key::of(subject), value?)));
    Fingerprint::of(sysctls.chain(single))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockDevice, BlockKind, DeviceNumber};
    use crate::host::{
        BlockQueue, Channels, Coalescing, Driver, Fact, Feature, Interface, Interrupt, Keeper,
        LinkCounters, Mount, Qdisc, Queue, QueueSide, Rings, RouteFacts, Scheduler, StorageDevice,
    };
    use crate::units::Bytes;

    fn known(text: &str) -> Fact<String> {
        Fact::Known(text.to_owned())
    }

    fn interrupt(queue: u32) -> Interrupt {
        Interrupt {
            number: 24 + queue,
            name: format!("eth0-TxRx-{queue}"),
            queue: Some(queue),
            allowed: Fact::Known([queue].into_iter().collect()),
            effective: Fact::Known([queue].into_iter().collect()),
            count: 7,
            busiest_cpu: Some(0),
        }
    }

    fn nic(name: &str) -> Interface {
        let qdisc = |kind: &str, parent: &str, leaf| Qdisc {
            kind: kind.to_owned(),
            parent: parent.to_owned(),
            leaf,
            ..Qdisc::default()
        };
        let queue = |side, index| Queue {
            side,
            index,
            cpus: Fact::Known([index].into_iter().collect()),
        };
        Interface {
            name: name.to_owned(),
            kind: "hardware".to_owned(),
            driver: Fact::Known(Driver {
                name: "ixgbe".to_owned(),
                version: Some("5.1.0-k".to_owned()),
                firmware: Some("0x8000".to_owned()),
                bus: Some("0000:3b:00.0".to_owned()),
            }),
            rings: Fact::Known(Rings {
                rx: 512,
                tx: 512,
                ..Rings::default()
            }),
            channels: Fact::Known(Channels {
                combined: 2,
                ..Channels::default()
            }),
            coalescing: Fact::Known(Coalescing {
                rx_usecs: 50,
                ..Coalescing::default()
            }),
            features: Fact::Known(
                [(
                    "rx-gro".to_owned(),
                    Feature {
                        on: true,
                        fixed: false,
                    },
                )]
                .into(),
            ),
            qdiscs: Fact::Known(vec![
                qdisc("mq", "root", false),
                qdisc("fq_codel", ":1", true),
                qdisc("fq_codel", ":2", true),
            ]),
            queues: Fact::Known(vec![
                queue(QueueSide::Rx, 0),
                queue(QueueSide::Rx, 1),
                queue(QueueSide::Tx, 0),
                queue(QueueSide::Tx, 1),
            ]),
            interrupts: Fact::Known(vec![interrupt(0), interrupt(1)]),
            ..Interface::default()
        }
    }

    fn disk(name: &str, kind: BlockKind, below: &[&str]) -> StorageDevice {
        StorageDevice {
            device: BlockDevice {
                name: name.into(),
                number: DeviceNumber { major: 8, minor: 0 },
                kind,
                below: below.iter().map(|name| (*name).into()).collect(),
                size: Some(Bytes(1)),
                model: None,
                rotational: None,
                queue_requests: None,
                hardware_queues: None,
                counted: None,
                hidden: false,
            },
            queue: BlockQueue {
                scheduler: Some(Scheduler {
                    chosen: "mq-deadline".into(),
                    offered: Vec::new(),
                }),
                read_ahead_kib: Some(128),
                ..BlockQueue::default()
            },
            alignment_offset: None,
            start: None,
            array: None,
        }
    }

    fn host() -> HostFacts {
        let mut host = HostFacts {
            interfaces: Fact::Known(vec![nic("eth0")]),
            routes: Fact::Known(vec![RouteFacts {
                destination: "default".to_owned(),
                interface: Some("eth0".to_owned()),
                ..RouteFacts::default()
            }]),
            sysctls: [("net.ipv4.tcp_rmem".to_owned(), known("4096 131072 6291456"))].into(),
            ..HostFacts::default()
        };
        host.system.kernel = known("6.1.0-41-amd64");
        host.system.kernel_build = known("#1 SMP Debian 6.1.158-1");
        host.processors.microcode = known("0xf4");
        host.processors.mitigations =
            Fact::Known([("spectre_v2".to_owned(), "Mitigation: Retpolines".to_owned())].into());
        let part = BlockKind::Partition { number: 1 };
        host.storage.devices = Fact::Known(vec![
            disk("sda1", part, &["sda"]),
            disk("sda", BlockKind::Disk, &[]),
            disk("loop0", BlockKind::Loop { file: None }, &[]),
        ]);
        host.storage.mounts = Fact::Known(vec![mount("/home", "sda1")]);
        host
    }

    fn mount(place: &str, device: &str) -> Mount {
        Mount {
            place: place.into(),
            file_system: "ext4".into(),
            devices: vec![device.into()],
            options: vec!["rw".into()],
            ext4: None,
        }
    }

    fn eth0(host: &mut HostFacts) -> &mut Interface {
        match &mut host.interfaces {
            Fact::Known(all) => &mut all[0],
            Fact::Unknown { .. } => panic!("it has interfaces"),
        }
    }

    fn of<T>(fact: &mut Fact<T>) -> &mut T {
        match fact {
            Fact::Known(value) => value,
            Fact::Unknown { unknown } => panic!("{unknown}"),
        }
    }

    /// Keys whose values differ.
    fn changed(by: impl FnOnce(&mut HostFacts)) -> Vec<String> {
        let (before, mut after) = (host(), host());
        by(&mut after);
        let (before, after) = (
            before.fingerprint(Some("eth0")),
            after.fingerprint(Some("eth0")),
        );
        let all = before.facts().chain(after.facts()).map(|(key, _)| key);
        let all = all.filter(|key| before.fact(key) != after.fact(key));
        let all: std::collections::BTreeSet<&Key> = all.collect();
        assert_eq!(before.hash == after.hash, all.is_empty());
        all.into_iter().map(ToString::to_string).collect()
    }

    type Change = (&'static str, fn(&mut HostFacts));

    #[test]
    fn each_fact_changes_the_hash() {
        let cases: [Change; 18] = [
            ("kernel", |host| host.system.kernel = known("6.6.1")),
            ("kernel-build", |host| {
                host.system.kernel_build = known("#2");
            }),
            ("microcode", |host| {
                host.processors.microcode = known("0xf6");
            }),
            ("mitigation.spectre_v2", |host| {
                of(&mut host.processors.mitigations)
                    .insert("spectre_v2".to_owned(), "Vulnerable".to_owned());
            }),
            ("driver", |host| {
                of(&mut eth0(host).driver).name = "i40e".to_owned();
            }),
            ("driver-version", |host| {
                of(&mut eth0(host).driver).version = Some("5.2".to_owned());
            }),
            ("firmware", |host| {
                of(&mut eth0(host).driver).firmware = Some("0x9000".to_owned());
            }),
            ("offload.rx-gro", |host| {
                of(&mut eth0(host).features).get_mut("rx-gro").unwrap().on = false;
            }),
            ("coalescing.rx-usecs", |host| {
                of(&mut eth0(host).coalescing).rx_usecs = 0;
            }),
            ("ring.rx", |host| of(&mut eth0(host).rings).rx = 4096),
            ("ring.tx", |host| of(&mut eth0(host).rings).tx = 4096),
            ("queues.combined", |host| {
                of(&mut eth0(host).channels).combined = 1;
            }),
            ("queues.irq-cpus", |host| {
                of(&mut eth0(host).interrupts)[1].allowed = Fact::Known([0].into_iter().collect());
            }),
            ("queues.rps-cpus", |host| {
                of(&mut eth0(host).queues)[0].cpus = Fact::Known([0, 1].into_iter().collect());
            }),
            ("queues.xps-cpus", |host| {
                of(&mut eth0(host).queues)[2].cpus = Fact::Known([1].into_iter().collect());
            }),
            ("qdisc", |host| {
                of(&mut eth0(host).qdiscs)[1].kind = "fq".to_owned();
            }),
            ("sysctl.net.ipv4.tcp_rmem", |host| {
                host.sysctls
                    .insert("net.ipv4.tcp_rmem".to_owned(), known("4096 87380 16777216"));
            }),
            ("storage./home", |host| {
                of(&mut host.storage.devices)[1].queue.scheduler = Some(Scheduler {
                    chosen: "bfq".into(),
                    offered: Vec::new(),
                });
            }),
        ];
        for (key, by) in cases {
            assert_eq!(changed(by), [key]);
        }
    }

    #[test]
    fn what_varies_by_itself_does_not() {
        let cases: [Change; 8] = [
            ("counters and times", |host| {
                host.taken_unix_s = 9;
                host.counters = Fact::Known([("Tcp.RetransSegs".to_owned(), 9)].into());
                eth0(host).counters = Fact::Known(LinkCounters {
                    rx_bytes: 9,
                    ..LinkCounters::default()
                });
                eth0(host).statistics = Fact::Known([("rx".to_owned(), 9)].into());
                of(&mut eth0(host).interrupts)[0].count = 9;
                of(&mut eth0(host).interrupts)[0].busiest_cpu = Some(1);
                of(&mut eth0(host).qdiscs)[0].drops = 9;
            }),
            ("the boot", |host| {
                host.system.boot_id = known("x");
                of(&mut eth0(host).qdiscs)[0].handle = "8001:".to_owned();
                eth0(host).index = 9;
                of(&mut eth0(host).interrupts)[0].number = 99;
            }),
            ("where interrupts are at the moment", |host| {
                of(&mut eth0(host).interrupts)[0].effective =
                    Fact::Known([1].into_iter().collect());
            }),
            ("addresses", |host| {
                eth0(host).addresses = Fact::Known(vec!["192.0.2.7/24".to_owned()]);
                eth0(host).carrier_changes = Fact::Known(9);
            }),
            ("an interface of a container", |host| {
                let veth = Interface {
                    kind: "veth".to_owned(),
                    ..nic("veth7")
                };
                of(&mut host.interfaces).push(veth);
            }),
            ("a file system in a file", |host| {
                of(&mut host.storage.mounts).push(mount("/snap/x", "loop0"));
            }),
            ("a stick", |host| {
                of(&mut host.storage.devices).push(disk("sdb", BlockKind::Disk, &[]));
                of(&mut host.storage.mounts).push(mount("/media/ann/stick", "sdb"));
            }),
            ("the names of disks", |host| {
                of(&mut host.storage.devices)[1].device.name = "sdz".into();
                of(&mut host.storage.devices)[0].device.below = vec!["sdz".into()];
            }),
        ];
        for (what, by) in cases {
            assert_eq!(changed(by), [""; 0], "{what}");
        }
    }

    #[test]
    fn what_a_driver_or_irqbalance_chooses_is_not_a_setting() {
        let chosen = |usecs: u32, cpu: u32| {
            let mut host = host();
            *of(&mut eth0(&mut host).coalescing) = Coalescing {
                adaptive_rx: true,
                rx_usecs: usecs,
                ..Coalescing::default()
            };
            of(&mut eth0(&mut host).interrupts)[0].allowed =
                Fact::Known([cpu].into_iter().collect());
            host.keepers.push(Keeper {
                name: "irqbalance".to_owned(),
                running: Fact::Known(true),
                told: Fact::Known(None),
            });
            host.fingerprint(Some("eth0"))
        };
        assert_eq!(chosen(10, 0), chosen(90, 1));
        let key = Key::named(Subject::Queues, "irq-cpus");
        assert_eq!(&**chosen(10, 0).fact(&key).unwrap(), "chosen by irqbalance");
    }

    #[test]
    fn a_confined_service_has_the_fingerprint_of_its_host() {
        let seen = |options: &[&str]| {
            let mut host = host();
            of(&mut host.storage.mounts)[0].options =
                options.iter().map(|one| (*one).into()).collect();
            host.fingerprint(None)
        };
        let own = seen(&["rw", "relatime", "stripe=8"]);
        assert_eq!(own, seen(&["ro", "nosuid", "relatime", "rw", "stripe=8"]));
        assert_ne!(own, seen(&["ro", "relatime", "stripe=8"]));
        let by_an_error = seen(&["rw", "relatime", "ro", "stripe=8"]);
        assert_ne!(own, by_an_error);
        assert_ne!(own, seen(&["rw", "noatime", "stripe=8"]));
    }

    #[test]
    fn where_it_is_not_known_whether_irqbalance_runs_no_interrupts_are_told() {
        let mut host = host();
        host.keepers.push(Keeper {
            name: "irqbalance".to_owned(),
            running: Fact::unknown("not all processes are to be seen"),
            told: Fact::Known(None),
        });
        let key = Key::named(Subject::Queues, "irq-cpus");
        assert_eq!(host.fingerprint(Some("eth0")).fact(&key), None);
    }

    #[test]
    fn a_kernel_s_own_driver_has_no_version_of_its_own() {
        let mut host = host();
        of(&mut eth0(&mut host).driver).version = Some("6.1.0-41-amd64".to_owned());
        let version = Key::of(Subject::DriverVersion);
        assert_eq!(host.fingerprint(Some("eth0")).fact(&version), None);
    }

    #[test]
    fn a_vlan_over_a_bond_has_the_facts_of_the_devices_below() {
        let mut host = host();
        let stacked = |name: &str, kind: &str, parent: Option<&str>| Interface {
            name: name.to_owned(),
            kind: kind.to_owned(),
            parent: Fact::Known(parent.map(str::to_owned)),
            ..Interface::default()
        };
        let all = of(&mut host.interfaces);
        all[0].master = Some("bond0".to_owned());
        let mut second = nic("eth1");
        second.master = Some("bond0".to_owned());
        second.driver = Fact::Known(Driver {
            name: "i40e".to_owned(),
            ..Driver::default()
        });
        all.extend([
            second,
            stacked("bond0", "bond", None),
            stacked("bond0.7", "vlan", Some("bond0")),
        ]);
        let fingerprint = host.fingerprint(Some("bond0.7"));
        let fact = |subject| fingerprint.fact(&Key::of(subject)).map(|value| &**value);
        assert_eq!(fact(Subject::Driver), Some("i40e / ixgbe"));
        let ring = Key::named(Subject::Ring, "rx");
        assert_eq!(&**fingerprint.fact(&ring).unwrap(), "512");
    }

    #[test]
    fn a_host_has_one_for_each_device() {
        let mut host = host();
        let veth = Interface {
            kind: "veth".to_owned(),
            ..nic("veth7")
        };
        of(&mut host.interfaces).push(veth);
        let all = host.fingerprints();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["eth0"]);
        assert_eq!(all["eth0"], host.fingerprint(Some("eth0")));
        let alone = host.fingerprint(None);
        assert!(alone.fact(&Key::of(Subject::Driver)).is_none());
        let stack = Key::named(Subject::Storage, "/home");
        assert_eq!(
            &**alone.fact(&stack).unwrap(),
            "ext4 rw on disk (mq-deadline, read-ahead 128 KiB)"
        );
    }
}
