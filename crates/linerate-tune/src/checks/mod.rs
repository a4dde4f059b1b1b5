//! The checks: what each reads, when it fires, what it recommends, and where the knowledge is from.

mod arrays;
mod buffers;
mod device;
mod disks;
mod links;
mod mounts;
mod old_advice;
mod owners;
mod processors;
mod qdiscs;
mod tcp;
mod volumes;

use linerate_model::audit::{Area, Outcome, Risk, Verdict};
use linerate_model::host::{Fact, Interface, Mount, StorageDevice};

use crate::case::{Answer, Case, Place, does_not_apply};
use old_advice::Answers;
pub(crate) use owners::BPFTUNE;

/// A check of an audit.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Its stable name: `T01`.
    pub id: &'static str,
    /// What it reads.
    pub reads: &'static str,
    /// When it fires.
    pub fires: &'static str,
    /// What it recommends.
    pub recommends: &'static str,
    /// 1 is worst, 4 least; a check may give a milder one in a mild case.
    pub severity: u8,
    /// What applying may cost.
    pub risk: Risk,
    /// Where it applies: `B` bare metal, `V` a virtual machine, `K` a container.
    pub scope: &'static str,
    /// Where the knowledge is from.
    pub source: &'static str,
    judge: Judge,
}

#[derive(Debug, Clone, Copy)]
enum Judge {
    /// One answer for the host.
    Host(fn(&Case<'_>) -> Answer),
    /// One for each interface that the traffic may take.
    Interface(fn(&Case<'_>, &Interface) -> Answer),
    /// One for each key or line.
    Many(fn(&Case<'_>) -> Answers),
    /// One answer for the host's storage.
    Store(fn(&Case<'_>) -> Answer),
    /// One for each part of its storage.
    Stores(fn(&Case<'_>) -> Answers),
    /// One for each block device that it applies to.
    Device(fn(&Case<'_>, &StorageDevice) -> Answer),
    /// One for each array of md that it applies to.
    Array(fn(&Case<'_>, &StorageDevice) -> Answer),
    /// One for each file system that it applies to.
    Mounted(fn(&Case<'_>, &Mount) -> Answer),
}

macro_rules! check {
    ($id:literal, $judge:expr, $reads:literal, $fires:literal, $recommends:literal, $severity:literal / $risk:ident, $scope:literal, $source:expr) => {
        Check {
            id: $id,
            reads: $reads,
            fires: $fires,
            recommends: $recommends,
            severity: $severity,
            risk: Risk::$risk,
            scope: $scope,
            source: $source,
            judge: $judge,
        }
    };
}

use Judge::{Array, Device, Host, Interface as Link, Many, Mounted, Store, Stores};

/// All checks, in the order of their names.
#[rustfmt::skip]
pub const CHECKS: [Check; 66] = [
    check!("T01", Host(buffers::receive), "net.ipv4.tcp_rmem[2]", "it is below BDP/ρ (milder from three quarters of it on)", "2·BDP/ρ, at most 2^31−1 and what memory allows", 1 / None, "BVK",
        "ESnet's guide; net/ipv4/tcp_input.c (tcp_rcv_space_adjust, scaling_ratio)"),
    check!("T02", Host(buffers::send), "net.ipv4.tcp_wmem[2]", "it is below 2·BDP (milder from BDP on)", "2·BDP, with BBR 3·BDP", 1 / None, "BVK",
        "net/ipv4/tcp_input.c (tcp_sndbuf_expand)"),
    check!("T03", Host(buffers::fixed), "net.core.rmem_max, wmem_max", "applications set their buffers and it is below BDP/2ρ", "BDP/ρ", 2 / None, "BV",
        "socket(7) SO_RCVBUF; net/core/sock.c doubles the requested size"),
    check!("T04", Host(tcp::autotuning), "net.ipv4.tcp_moderate_rcvbuf", "0", "1", 1 / None, "BVK", "Documentation/networking/ip-sysctl.rst"),
    check!("T05", Host(tcp::scaling), "net.ipv4.tcp_window_scaling", "0", "1", 1 / None, "BVK", "RFC 7323, section 2"),
    check!("T06", Host(buffers::window), "the target compared with TCP's maximum window", "a flow's BDP is above 1 GiB", "at least BDP/1 GiB flows", 2 / Nothing, "BVK",
        "RFC 7323, section 2.3: 65535 << 14"),
    check!("T07", Host(tcp::control), "net.ipv4.tcp_congestion_control", "neither cubic nor bbr", "cubic; compare with bbr where there is loss and the round trip is above 20 ms", 2 / None, "BVK",
        "RFC 9438; ESnet's guide no longer sets htcp"),
    check!("T09", Host(tcp::probing), "net.ipv4.tcp_mtu_probing", "0 with an MTU above 8000, or 2", "1", 3 / None, "BVK", "RFC 4821; ip-sysctl.rst"),
    check!("T10", Host(tcp::metrics), "net.ipv4.tcp_no_metrics_save", "0 on a measurement host", "1", 4 / None, "BVK", "net/ipv4/tcp_metrics.c; ESnet's guide"),
    check!("T11", Host(buffers::ancillary), "net.core.optmem_max", "zero-copy is likely (40 Gbit/s and more) and it is below 1 MiB", "1 MiB", 3 / None, "BVK",
        "Documentation/networking/msg_zerocopy.rst; ESnet's guide"),
    check!("T12", Host(tcp::after_idle), "net.ipv4.tcp_slow_start_after_idle", "1 on a server, whose transfers pause", "0, together with fq", 4 / None, "BVK", "RFC 5681, section 4.1; ip-sysctl.rst"),
    check!("T13", Host(buffers::budget), "flows × buffer, net.ipv4.tcp_mem[1], the control group's memory", "the buffers do not fit", "fewer flows, smaller buffers or more memory", 1 / None, "BVK",
        "tcp(7) tcp_mem; Documentation/admin-guide/cgroup-v2.rst (sock)"),
    check!("T14", Host(tcp::rack), "net.ipv4.tcp_recovery, before Linux 6.17", "its first bit is 0", "the same with the first bit set", 2 / None, "BVK",
        "RFC 8985; Documentation/networking/ip-sysctl.rst"),
    check!("Q01", Link(qdiscs::pacing), "the qdisc of every leaf", "pacing is wanted and a leaf qdisc is not fq (less severe with bbr, which paces itself)", "fq on every leaf", 2 / QueueReset, "BV",
        "tc-fq(8); ESnet's guide"),
    check!("Q02", Link(qdiscs::multiqueue), "the root qdisc, transmit queues", "it is not mq with several queues from 25 Gbit/s on", "mq with fq on its leaves", 1 / QueueReset, "BV",
        "net/sched/sch_mq.c"),
    check!("Q05", Link(qdiscs::bucket), "the rate of a tbf", "above the link, or 8 times the plan and more", "bits instead of bytes", 2 / None, "BV", "tc(8), units"),
    check!("Q06", Link(qdiscs::drops), "qdisc drops", "they rise", "a larger limit", 3 / None, "BV", "tc -s; include/uapi/linux/gen_stats.h"),
    check!("L01", Link(links::jumbo), "the MTU", "below 9000 from 10 Gbit/s on where the path carries 9000", "9000, after a Don't Fragment probe", 2 / LinkFlap, "BV", "ESnet's guide"),
    check!("L02", Link(links::probe), "result of a Don't Fragment probe", "a size below the MTU fails", "one size along the path", 1 / LinkFlap, "BVK", "RFC 8899; RFC 4821"),
    check!("L03", Link(links::below_carries), "the MTU and state of a VLAN's parent and a bond's members", "the MTU is above theirs, or one is down", "the one below first", 1 / LinkFlap, "BV", "net/8021q/vlan_dev.c"),
    check!("L04", Link(links::vlan_offloads), "offloads of a VLAN and its parent", "TSO or checksums are lost on the VLAN", "txvlan on the parent", 2 / QueueReset, "BV", "net/8021q/vlan_dev.c (vlan_features)"),
    check!("L05", Link(links::speed), "speed, duplex, modes of both ends", "below the best common mode, half duplex, or no link carries the rate", "cable, optic, autonegotiation", 1 / LinkFlap, "B", "ethtool(8); IEEE 802.3 clause 28"),
    check!("L06", Link(links::uncorrectable), "the driver's counters of FEC and PCS", "uncorrectable errors rise", "optic, cable", 1 / Nothing, "B", "IEEE 802.3 clause 91; the driver's counters"),
    check!("L08", Link(links::carrier), "carrier changes", "they rise", "investigate", 2 / Nothing, "BV", "Documentation/ABI/testing/sysfs-class-net"),
    check!("L09", Link(links::pause), "pause frames sent; packets missed where pause is off", "they rise", "the receiving side, or policy", 3 / LinkFlap, "B", "IEEE 802.3 annex 31B"),
    check!("L10", Link(links::bond_hash), "the hash of a bond", "layer2 with several flows", "layer3+4", 3 / None, "B", "Documentation/networking/bonding.rst"),
    check!("N01", Link(device::receive_ring), "packets missed, the receive ring", "they rise and the ring is below its maximum", "double it, up to the maximum", 2 / QueueReset, "BV", "ethtool(8) -G; struct rtnl_link_stats64"),
    check!("N02", Link(device::transmit_ring), "stops of the transmit queues, the transmit ring", "they rise and the ring is below its maximum", "double it, up to the maximum", 2 / QueueReset, "BV", "ethtool(8) -G; the driver's counters"),
    check!("N03", Link(device::channels), "channels, CPUs of the device's node", "not the lesser of the maximum and the local CPUs", "that", 2 / LinkFlap, "BV", "ethtool(8) -L; Documentation/networking/scaling.rst"),
    check!("N04", Link(device::coalescing), "interrupt coalescing", "not adaptive and below 8 µs", "adaptive, else 32 to 84 µs", 3 / None, "BV", "ethtool(8) -C; vendors' guides"),
    check!("N05", Link(device::offloads), "TSO, GSO, GRO, checksums", "one is off that could be on", "on", 1 / QueueReset, "BV", "Documentation/networking/segmentation-offloads.rst"),
    check!("N06", Link(device::large_receive), "LRO, forwarding, bridges", "on where the host forwards or bridges", "off", 2 / QueueReset, "BV", "ethtool(8) lro; net/core/dev.c (dev_disable_lro)"),
    check!("N07", Link(device::big_segments), "gso_max_size, gro_max_size, tso_max_size", "64 KiB from 100 Gbit/s on where the device could do more", "compare with larger ones", 4 / None, "BV", "BIG TCP, Linux 5.19 and 6.3"),
    check!("N08", Link(processors::spreading_table), "the table that spreads flows over queues", "queues have unequal shares", "an equal table", 2 / None, "BV", "ethtool(8) -X; scaling.rst"),
    check!("N09", Link(qdiscs::length), "txqueuelen, the qdisc", "above 2000 on pfifo_fast, pfifo or bfifo; raised on others, where it has no effect", "1000, or no effect", 3 / None, "BV", "net/sched/sch_generic.c, sch_fifo.c"),
    check!("C01", Link(processors::affinity), "CPUs of the device's interrupts, its NUMA node", "to another node", "the CPUs of its node", 2 / None, "BV", "Documentation/core-api/irq/irq-affinity.rst"),
    check!("C02", Link(processors::spread), "interrupt CPUs of busy queues", "two on one CPU while others are free", "one core for a queue", 2 / None, "BV", "scaling.rst"),
    check!("C03", Host(processors::balancer), "irqbalance, start-up files that pin interrupts", "pinned and not banned", "a ban (with ENA leave it on)", 3 / None, "BV", "irqbalance(1) --policyscript"),
    check!("C04", Link(processors::steering), "RPS, queues, CPUs", "on with as many queues as CPUs, or off with a quarter as many", "off; on within the node", 3 / None, "BV", "scaling.rst"),
    check!("C05", Host(processors::governor), "the frequency governor", "not performance", "performance", 2 / None, "B", "Documentation/admin-guide/pm/cpufreq.rst"),
    check!("C07", Host(processors::squeeze), "time_squeeze of /proc/net/softnet_stat", "it rises under load", "double the budget, measure again", 3 / None, "BV", "net/core/dev.c (net_rx_action)"),
    check!("P01", Link(device::slot), "the PCI Express link", "below its maximum, or below the card's ports", "another slot", 1 / Reboot, "B", "PCI Express base specification: GT/s × lanes × 128/130 × 0.85"),
    check!("P02", Host(device::iommu), "the kernel's command line", "an IOMMU is on without pt from 40 Gbit/s on", "iommu=pt", 3 / Reboot, "B", "Documentation/admin-guide/kernel-parameters.txt"),
    check!("V01", Link(device::allowance), "allowance_exceeded of ENA", "they rise", "a larger instance", 2 / Nothing, "V", "Amazon EC2 user guide, ENA metrics"),
    check!("H01", Many(old_advice::switched_off), "net.ipv4.tcp_timestamps, tcp_sack, tcp_dsack, running and in files", "0", "1", 1 / None, "BVK", "RFC 7323, RFC 2018, RFC 2883"),
    check!("H02", Many(old_advice::dead_keys), "obsolete keys in files, or workarounds for fixed bugs", "one is set", "remove", 4 / None, "BVK", "kernel history: 4.12, 4.14, 4.15, 6.6"),
    check!("H03", Host(old_advice::tcp_mem), "net.ipv4.tcp_mem, running and in files", "in any file, or more than the memory", "remove", 1 / None, "BV", "tcp(7): the unit is pages"),
    check!("H04", Many(old_advice::defaults_raised), "rmem_default, wmem_default, tcp_rmem[1], tcp_wmem[1], running and in files", "above 1 MiB", "the kernel's default", 2 / None, "BVK", "socket(7); net/core/sock.c"),
    check!("H05", Host(old_advice::backlog), "net.core.netdev_max_backlog, drops in softnet_stat", "above 10000 and nothing was ever dropped", "1000", 4 / None, "BV", "net/core/dev.c (enqueue_to_backlog)"),
    check!("H06", Many(old_advice::below_default), "maximum buffer sizes, running and in files", "below this kernel's own default", "remove", 2 / None, "BVK", "net/ipv4/tcp.c (tcp_init), net/core/sock.c"),
    check!("H07", Many(owners::owners), "owners of a key: sysctl.d, tuned, cloud-init, bpftune", "more than one", "one", 2 / None, "BV", "sysctl.d(5), tuned.conf(5), bpftune(8)"),
    check!("H08", Many(owners::drift), "network keys in files compared with running values", "they differ", "where it comes from", 3 / None, "BVK", "sysctl.d(5)"),
    check!("S01", Device(disks::scheduler), "queue/scheduler, queue/zoned", "a zoned device without mq-deadline before Linux 6.10; less severe: NVMe with another than none, bfq or cfq elsewhere; least: kyber, and a rotating disk of bare metal with none", "mq-deadline for a zoned device and where it rotates; none for NVMe", 1 / None, "BVK",
        "zonedstorage.io, Kernel Configuration (Write Ordering Control); Red Hat Enterprise Linux 8, 9, 10, setting the disk scheduler; Documentation/block/switching-sched.rst"),
    check!("S02", Device(disks::read_ahead), "queue/read_ahead_kb of striped arrays that nothing stands on (role transfer)", "below two stripes (less severe below 4096)", "two stripes, at least 4096", 3 / None, "BVK",
        "block/blk-settings.c (blk_apply_bdi_limits); tuned, readahead=>4096"),
    check!("S03", Device(disks::queue), "device/queue_depth, queue/nomerges, queue/iostats", "one command at a time where the controller takes more; not merging on a rotating disk; not counted", "up to 32; 0; 1", 3 / None, "BVK",
        "Documentation/ABI/stable/sysfs-block; Documentation/scsi/scsi_mid_low_api.rst"),
    check!("S05", Mounted(mounts::barriers), "mount options, queue/write_cache and scsi_disk/*/cache_type of the disks below", "barriers are off and a cache is volatile; the kernel was told write through and the disk says write back", "barriers; write back", 1 / None, "BVK",
        "Documentation/admin-guide/ext4.rst (barrier); Documentation/block/writeback_cache_control.rst; Documentation/ABI/stable/sysfs-block (write_cache)"),
    check!("S07", Mounted(mounts::xfs_stripe), "XFS's sunit and swidth, the device's minimum_io_size and optimal_io_size", "they differ, or XFS has none on an array (less severe without parity)", "mount options where it can grow to it, else mkfs", 3 / Data, "BVK",
        "Documentation/admin-guide/xfs.rst (sunit, swidth)"),
    check!("S08", Mounted(mounts::ext4_stripe), "ext4's stripe, the device's optimal_io_size", "they differ, or ext4 has none on an array (less severe without parity)", "the mount option stripe", 3 / None, "BVK",
        "Documentation/admin-guide/ext4.rst (stripe)"),
    check!("S09", Device(disks::preferred_size), "optimal_io_size, minimum_io_size of disks", "33553920, or not a multiple of the minimum", "alignment and stripe by hand", 3 / Data, "BVK",
        "drivers/scsi/sd.c (SD_DEF_XFER_BLOCKS, sd_validate_opt_xfer_size); Documentation/ABI/stable/sysfs-block"),
    check!("S10", Mounted(mounts::crash_exposure), "ext4's options", "noauto_da_alloc, data=writeback, or (less severe) commit above vm.dirty_expire_centisecs; less severe: no journal", "the defaults; a journal", 2 / None, "BVK",
        "Documentation/admin-guide/ext4.rst (auto_da_alloc, data, commit); tune2fs(8) -O has_journal"),
    check!("S11", Device(disks::alignment), "alignment_offset, starts of partitions in use", "not aligned to physical blocks, to 4096 bytes, or to the stripe of a parity RAID", "1 MiB, or whole stripes, when it is made anew", 2 / Data, "BVK",
        "Documentation/ABI/stable/sysfs-block (alignment_offset)"),
    check!("S12", Array(arrays::health), "md/degraded, md/mismatch_cnt", "a member is missing; members differ (less severe on mirrors, not where swap is on them)", "the cause first", 1 / Data, "BVK",
        "Documentation/admin-guide/md.rst; md(4), scrubbing and mismatches"),
    check!("S13", Array(arrays::synchronisation), "md/sync_speed, its limits", "within 5 % of sync_speed_max, or at sync_speed_min", "raise the limit for the night", 4 / None, "BVK",
        "Documentation/admin-guide/md.rst (sync_speed_min, sync_speed_max); drivers/md/md.c (is_mddev_idle)"),
    check!("S14", Array(arrays::after_a_crash), "md/consistency_policy, bitmap, stripe_cache_size", "no bitmap with members of 100 GiB and more; the default cache with parity before Linux 4.1, where it does not grow", "an internal bitmap; a larger cache, measured", 3 / None, "BVK",
        "mdadm(8) --bitmap; Documentation/admin-guide/md.rst; drivers/md/raid5.c (R5_ALLOC_MORE)"),
    check!("S15", Stores(volumes::logical), "names of LVM's parts; the rest is for lvs", "a mirror of the old kind", "raid1", 3 / Data, "BVK", "lvmraid(7); lvconvert(8); lvm(8), reserved names"),
    check!("S16", Store(volumes::dirty_pages), "vm.dirty_bytes, vm.dirty_ratio of the memory, --disk-rate", "the disks need longer for it than vm.dirty_expire_centisecs", "dirty_bytes of 10 s, dirty_background_bytes of 5 s of the disks", 3 / None, "BVK",
        "Documentation/admin-guide/sysctl/vm.rst"),
];

impl Check {
    /// Which audit it belongs to.
    pub const fn area(&self) -> Area {
        match self.judge {
            Host(_) | Link(_) | Many(_) => Area::Network,
            Store(_) | Stores(_) | Device(_) | Array(_) | Mounted(_) => Area::Storage,
        }
    }

    /// All verdicts of this check on a host.
    pub(crate) fn verdicts(&self, case: &Case<'_>) -> Vec<Verdict> {
        let place = match self.area() {
            Area::Network => case.place(),
            Area::Storage => case.storage_place(),
        };
        let (letter, place) = match place {
            Place::BareMetal => ('B', "bare metal"),
            Place::VirtualMachine => ('V', "a virtual machine"),
            Place::Container => ('K', "a container or network namespace"),
        };
        if !self.scope.contains(letter) {
            let answer = does_not_apply(format!("not applicable in {place}"));
            return vec![self.verdict(None, answer)];
        }
        match self.judge {
            Host(judge) | Store(judge) => vec![self.verdict(None, judge(case))],
            Device(judge) => self.of_each(
                &case.facts.storage.devices,
                "it has no block devices",
                |one| (one.device.name.to_string(), judge(case, one)),
            ),
            Array(judge) => {
                let arrays = case.facts.storage.devices.map(|all| {
                    let arrays = all.iter().filter(|one| one.array.is_some());
                    arrays.cloned().collect()
                });
                self.of_each(&arrays, "it has no array of md", |one| {
                    (one.device.name.to_string(), judge(case, one))
                })
            }
            Mounted(judge) => self.of_each(
                &case.facts.storage.mounts,
                "no file system of its devices is mounted",
                |one| (one.place.to_string(), judge(case, one)),
            ),
            Many(judge) | Stores(judge) => judge(case)
                .into_iter()
                .map(|(subject, answer)| self.verdict(subject, answer))
                .collect(),
            Link(judge) => {
                if let Err(why) = case.facts.interfaces.ask() {
                    return vec![self.verdict(None, Err(why))];
                }
                if case.interfaces.is_empty() {
                    let why = "no interface with an address is up".to_owned();
                    return vec![self.verdict(None, Err(why))];
                }
                case.interfaces
                    .iter()
                    .map(|interface| {
                        self.verdict(Some(interface.name.clone()), judge(case, interface))
                    })
                    .collect()
            }
        }
    }

    /// Verdicts on those things that the check applies to; one that says why, where it applies to none.
    fn of_each<T>(
        &self,
        all: &Fact<Vec<T>>,
        none: &str,
        judge: impl Fn(&T) -> (String, Answer),
    ) -> Vec<Verdict> {
        let all = match all.ask() {
            Ok(all) => all,
            Err(why) => return vec![self.verdict(None, Err(why))],
        };
        let verdicts = all.iter().map(|one| {
            let (subject, answer) = judge(one);
            self.verdict(Some(subject), answer)
        });
        let (apart, mut verdicts): (Vec<Verdict>, Vec<Verdict>) =
            verdicts.partition(|one| matches!(one.outcome, Outcome::DoesNotApply { .. }));
        let same = apart.windows(2).all(|two| two[0].outcome == two[1].outcome);
        if verdicts.is_empty() {
            verdicts.push(match apart.into_iter().next() {
                // Of several reasons none is that of all.
                Some(mut first) if same => {
                    first.subject = None;
                    first
                }
                Some(_) => self.verdict(None, does_not_apply("it applies to none of them")),
                None => self.verdict(None, does_not_apply(none)),
            });
        }
        verdicts
    }

    fn verdict(&self, subject: Option<String>, answer: Answer) -> Verdict {
        let outcome = match answer {
            Err(why) => Outcome::CannotKnow { why },
            // What a check leaves open is as the table has it.
            Ok(Outcome::Fires {
                sentence,
                changes,
                severity,
                risk,
                set_by,
            }) => Outcome::Fires {
                sentence,
                changes,
                severity: if severity == 0 {
                    self.severity
                } else {
                    severity
                },
                risk: if risk == Risk::Nothing {
                    self.risk
                } else {
                    risk
                },
                set_by,
            },
            Ok(outcome) => outcome,
        };
        Verdict {
            check: self.id.to_owned(),
            title: self.reads.to_owned(),
            subject,
            outcome,
            source: self.source.to_owned(),
        }
    }
}
