//! Where a probe is to run, whether it may, and how large its file may be.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use linerate_kernel::directory::Directory;
use linerate_kernel::file_system::{self, FileSystem};
use linerate_kernel::inventory::Root;
use linerate_model::block::{BlockDevice, BlockKind, DeviceNumber};
use linerate_model::disk_watch::{DiskPlace, DiskPlaceKind};
use linerate_model::plain_text::PlainText;
use linerate_model::probe::ProbePlace;
use linerate_model::units::Bytes;

use super::error::ProbeError;
use crate::StorageError;
use crate::place::is_remote;
use crate::stack::Stack;

/// Kinds of file systems in memory (`include/uapi/linux/magic.h`): tmpfs, ramfs, hugetlbfs.
const RAM: [(u64, &str); 3] = [
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0x9584_58f6, "hugetlbfs"),
];
/// Kinds whose files are on other hosts, or may be (FUSE); magic.h, and the headers of those that are not in it (GPFS, Lustre).
const NETWORK: [(u64, &str); 13] = [
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb3"),
    (0x00c3_6400, "ceph"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "afs"),
    (0x7375_7245, "coda"),
    (0x564c, "ncp"),
    (0x0102_1997, "9p"),
    (0x0bd0_0bd0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x6573_5546, "fuse"),
];
/// A smaller file is in every cache.
pub(super) const LEAST: Bytes = Bytes(16 << 20);
/// The size that is taken where none is asked for and there is room.
const USUAL: Bytes = Bytes(1 << 30);
const MIB: u64 = 1 << 20;
/// What is left free at least.
const LEFT: u64 = 1 << 30;

/// A directory in which a probe may run.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) directory: Directory,
    pub(super) facts: ProbePlace,
}

/// Opens the directory and refuses what is not to be probed, or not without `allowed` (--yes).
pub(super) fn look(folder: &Path, allowed: bool) -> Result<Place, ProbeError> {
    let stack = Stack::read(&Root::of_this_machine()).ok();
    // Before anything of it is opened: a server that does not answer holds whoever asks.
    let named = devices_of(stack.as_ref(), folder, allowed)?;
    let directory = Directory::open(folder).map_err(|source| no_directory(folder, source))?;
    let found = file_system::of(&directory).map_err(|source| ProbeError::Open {
        folder: folder.to_owned(),
        source,
    })?;
    let kind = |known: &str| found.name.as_deref().unwrap_or(known).to_owned();
    if let Some(known) = listed(&RAM, found.magic) {
        return Err(ProbeError::Ram {
            folder: folder.to_owned(),
            kind: kind(known),
        });
    }
    if let Some(below) = found.upper.as_deref().and_then(memory_below) {
        return Err(ProbeError::Ram {
            folder: folder.to_owned(),
            kind: format!("{} over {below}", kind("overlay")),
        });
    }
    if found.read_only {
        return Err(ProbeError::ReadOnly {
            folder: folder.to_owned(),
        });
    }
    // FUSE on a block device of this host.
    let local = found.name.as_deref() == Some("fuseblk");
    let network = listed(&NETWORK, found.magic).filter(|_| !local);
    if let Some(known) = network.filter(|_| !allowed) {
        return Err(ProbeError::Network {
            folder: folder.to_owned(),
            kind: kind(known),
        });
    }
    let (mut device, mut disk) = (None, None);
    if let Some(stack) = &stack {
        (device, disk) = devices(stack, found.device);
        let names = match (&device, &found.upper) {
            (Some(device), _) => vec![device.name.clone()],
            (None, Some(upper)) if named.is_empty() => devices_of(Some(stack), upper, allowed)?,
            _ => named,
        };
        judge(folder, &stack.below(&names), allowed)?;
    }
    let facts = facts(folder, found, network.is_some(), device, disk);
    Ok(Place { directory, facts })
}

fn facts(
    folder: &Path,
    found: FileSystem,
    network: bool,
    device: Option<BlockDevice>,
    disk: Option<BlockDevice>,
) -> ProbePlace {
    ProbePlace {
        folder: PlainText::from(folder.display().to_string()),
        file_system: found.name,
        mounted_at: found.mounted_at,
        size: found.size,
        free: found.free,
        network,
        device,
        disk,
    }
}

fn listed(list: &[(u64, &'static str)], magic: u64) -> Option<&'static str> {
    let known = list.iter().find(|(number, _)| *number == magic);
    known.map(|(_, name)| *name)
}

fn no_directory(folder: &Path, source: io::Error) -> ProbeError {
    if source.kind() == io::ErrorKind::NotADirectory
        && let Ok(facts) = fs::metadata(folder)
    {
        let path = folder.to_owned();
        let kind = facts.file_type();
        return if kind.is_block_device() || kind.is_char_device() {
            ProbeError::Device { path }
        } else {
            ProbeError::NotDirectory { path }
        };
    }
    ProbeError::Open {
        folder: folder.to_owned(),
        source,
    }
}

/// The devices that a folder is on, by what is mounted where; none where that is not known.
fn devices_of(
    stack: Option<&Stack>,
    folder: &Path,
    allowed: bool,
) -> Result<Vec<PlainText>, ProbeError> {
    let Some((stack, full)) = stack.zip(std::path::absolute(folder).ok()) else {
        return Ok(Vec::new());
    };
    let found = stack.place(&full.to_string_lossy());
    answered(folder, found, allowed)
}

/// The devices of a place, unless it is on a server, or whoever has its files did not answer.
fn answered(
    folder: &Path,
    found: Result<DiskPlace, StorageError>,
    allowed: bool,
) -> Result<Vec<PlainText>, ProbeError> {
    match found.map(|place| place.on) {
        Ok(DiskPlaceKind::FileSystem { kind, .. }) if is_remote(&kind) && !allowed => {
            Err(ProbeError::Network {
                folder: folder.to_owned(),
                kind: kind.as_str().to_owned(),
            })
        }
        Ok(DiskPlaceKind::FileSystem { devices, .. }) => Ok(devices),
        Err(StorageError::Path { source, .. })
            if source.kind() == io::ErrorKind::TimedOut && !allowed =>
        {
            Err(ProbeError::Open {
                folder: folder.to_owned(),
                source: io::Error::new(source.kind(), "its file system did not answer in 2 s"),
            })
        }
        // A path that is no directory, or is not there, says so when it is opened.
        Ok(DiskPlaceKind::Device { .. }) | Err(_) => Ok(Vec::new()),
    }
}

/// The device of a number, and the disk that it is a partition of.
fn devices(stack: &Stack, number: DeviceNumber) -> (Option<BlockDevice>, Option<BlockDevice>) {
    // Major 0 is no block device; a hidden NVMe path has 0:0 as well.
    if number.major == 0 {
        return (None, None);
    }
    let all = stack.devices();
    let device = all.iter().find(|device| device.number == number);
    let disk = device
        .filter(|device| matches!(device.kind, BlockKind::Partition { .. }))
        .and_then(|device| all.iter().find(|disk| device.below.contains(&disk.name)));
    (device.cloned(), disk.cloned())
}

/// Refuses a directory for what is below it: memory always, other hosts and shared room unless they are allowed.
fn judge(folder: &Path, below: &[&BlockDevice], allowed: bool) -> Result<(), ProbeError> {
    let folder = folder.to_owned();
    if let Some(kind) = below.iter().find_map(|device| memory_of(device)) {
        return Err(ProbeError::Ram { folder, kind });
    }
    if allowed {
        return Ok(());
    }
    let elsewhere = below.iter().find_map(|device| match device.kind {
        BlockKind::Drbd => Some(format!("{}, which DRBD replicates", device.name)),
        BlockKind::Network => Some(format!("the network block device {}", device.name)),
        _ => None,
    });
    if let Some(kind) = elsewhere {
        return Err(ProbeError::Network { folder, kind });
    }
    let shared = below
        .iter()
        .find_map(|device| Some((shared_room(device)?, device.name.to_string())));
    shared.map_or(Ok(()), |(pool, device)| {
        Err(ProbeError::SharedRoom {
            folder,
            pool,
            device,
        })
    })
}

/// What of LVM a device takes room of, or is a layer of: `layer_name` and `build_dm_uuid` of its `dev_manager.c` write the
/// layer behind the name and the uuid.
fn shared_room(device: &BlockDevice) -> Option<&'static str> {
    let BlockKind::Mapped { name, uuid, table } = &device.kind else {
        return None;
    };
    let targets = |of: [&str; 2]| table.iter().any(|line| of.contains(&line.target.as_str()));
    // The name of a volume may end so by chance, an uuid does not.
    let layer = if uuid.starts_with("LVM-") { uuid } else { name };
    let is_thin = layer.ends_with("-tpool")
        || name.ends_with("-tpool")
        || name.ends_with("_tdata")
        || targets(["thin", "thin-pool"]);
    if is_thin {
        return Some("a thin pool");
    }
    let is_snapshot = layer.ends_with("-cow")
        || layer.ends_with("-real")
        || targets(["snapshot", "snapshot-origin"]);
    is_snapshot.then_some("a snapshot or its origin")
}

/// The kind of file system in memory that a directory is in.
fn memory_below(folder: &Path) -> Option<&'static str> {
    let below = file_system::of(Directory::open(folder).ok()?).ok()?;
    listed(&RAM, below.magic)
}

/// What holds a device in memory: itself, or the file of a loop device.
fn memory_of(device: &BlockDevice) -> Option<String> {
    match &device.kind {
        BlockKind::Memory => Some(device.name.to_string()),
        BlockKind::Loop { file: Some(file) } => {
            let kind = memory_below(Path::new(file.as_str()).parent()?)?;
            Some(format!("{} is a file in {kind}", device.name))
        }
        _ => None,
    }
}

/// How large the file is to be, in whole MiB.
pub(super) fn file_size(
    folder: &Path,
    place: &ProbePlace,
    asked: Option<Bytes>,
) -> Result<Bytes, ProbeError> {
    if place.size.0 == 0 {
        return Err(ProbeError::NoDisk {
            folder: folder.to_owned(),
            kind: place.file_system.as_deref().unwrap_or("unknown").to_owned(),
        });
    }
    let most = largest(place.size, place.free);
    if most < LEAST {
        return Err(ProbeError::TooFull {
            folder: folder.to_owned(),
            free: place.free,
            most,
            least: LEAST,
        });
    }
    let size = match asked {
        None => USUAL.min(most),
        Some(asked) if asked > most => {
            return Err(ProbeError::TooLarge {
                folder: folder.to_owned(),
                asked,
                most,
            });
        }
        Some(asked) => asked,
    };
    let size = Bytes(size.0 / MIB * MIB);
    if size < LEAST {
        return Err(ProbeError::TooSmall {
            asked: size,
            least: LEAST,
        });
    }
    Ok(size)
}

/// A tenth of what is free, where 5 % of the file system and 1 GiB stay free; whole MiB.
fn largest(size: Bytes, free: Bytes) -> Bytes {
    let kept = (size.0 / 20).max(LEFT);
    let most = (free.0 / 10).min(free.0.saturating_sub(kept));
    Bytes(most / MIB * MIB)
}

#[cfg(test)]
mod tests {
    use linerate_model::block::MappedTarget;
    use linerate_testing::disks::device;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn place(size: u64, free: u64) -> ProbePlace {
        ProbePlace {
            folder: "/data".into(),
            file_system: None,
            mounted_at: None,
            size: Bytes(size),
            free: Bytes(free),
            network: false,
            device: None,
            disk: None,
        }
    }

    #[test]
    fn a_tenth_is_taken_and_the_rest_is_left() {
        // A tenth; all but 1 GiB; all but 5 % of the whole; nothing.
        assert_eq!(largest(Bytes(100 * GIB), Bytes(40 * GIB)), Bytes(4 * GIB));
        assert_eq!(
            largest(Bytes(2 * GIB), Bytes(GIB + 64 * MIB)),
            Bytes(64 * MIB)
        );
        let most = largest(Bytes(1000 * GIB), Bytes(50 * GIB + 3 * MIB / 2));
        assert_eq!(most, Bytes(MIB));
        assert_eq!(largest(Bytes(1000 * GIB), Bytes(49 * GIB)), Bytes(0));
    }

    #[test]
    fn sizes_are_refused_with_what_is_possible() {
        let folder = Path::new("/data");
        let roomy = place(100 * GIB, 40 * GIB);
        let size = |asked: Option<u64>| file_size(folder, &roomy, asked.map(Bytes));
        assert_eq!(size(None).unwrap(), USUAL);
        assert_eq!(size(Some(4 * GIB)).unwrap(), Bytes(4 * GIB));
        let error = size(Some(4 * GIB + 1)).unwrap_err().to_string();
        assert!(error.contains("--size 4G or less"), "{error}");
        assert!(matches!(size(Some(MIB)), Err(ProbeError::TooSmall { .. })));
        assert_eq!(size(Some(17 * MIB + 5)).unwrap(), Bytes(17 * MIB));
        let full = place(100 * GIB, 5 * GIB);
        let error = file_size(folder, &full, None).unwrap_err().to_string();
        assert!(error.contains("nearly full"), "{error}");
    }

    fn mapped(name: &str, uuid: &str, target: Option<&str>) -> BlockDevice {
        let table = target.map(|target| MappedTarget {
            target: target.into(),
            size: Bytes(GIB),
            raid: None,
            members: None,
            copies: None,
        });
        let kind = BlockKind::Mapped {
            name: name.into(),
            uuid: uuid.into(),
            table: table.into_iter().collect(),
        };
        device("dm-3", kind, &[])
    }

    #[test]
    fn what_shares_its_room_needs_a_yes() {
        for (name, uuid, target) in [
            ("vg-pool-tpool", "LVM-a1-tpool", None),
            ("vg-pool-tpool", "", None),
            ("vg-pool_tdata", "LVM-a1-tdata", None),
            ("docker", "", Some("thin")),
            ("vg-home-real", "LVM-a1-real", None),
            ("vg-snap-cow", "LVM-a1-cow", None),
            ("vg-home", "LVM-a1", Some("snapshot-origin")),
        ] {
            let disk = device("sda", BlockKind::Disk, &[]);
            let one = mapped(name, uuid, target);
            let error = judge(Path::new("/data"), &[&disk, &one], false).unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains("data_percent") && text.contains("(dm-3)") && text.contains("--yes"),
                "{name}: {text}"
            );
            assert!(judge(Path::new("/data"), &[&one], true).is_ok(), "{name}");
        }
        for (name, uuid, target) in [
            ("vg-home", "LVM-a1", Some("linear")),
            // A volume of this name.
            ("vg-real", "LVM-a1", None),
            ("crypt", "CRYPT-LUKS2-a1", Some("crypt")),
        ] {
            let one = mapped(name, uuid, target);
            assert!(judge(Path::new("/data"), &[&one], false).is_ok(), "{name}");
        }
    }

    #[test]
    fn memory_and_other_hosts_are_found_below_other_devices() {
        let md = device("md0", BlockKind::Disk, &["x"]);
        let judged = |kind: BlockKind, allowed| {
            judge(
                Path::new("/data"),
                &[&md, &device("x0", kind, &[])],
                allowed,
            )
            .map_err(|error| error.to_string())
        };
        for allowed in [false, true] {
            let error = judged(BlockKind::Memory, allowed).unwrap_err();
            assert!(error.contains("in RAM (x0)"), "{error}");
        }
        for kind in [BlockKind::Drbd, BlockKind::Network] {
            let error = judged(kind.clone(), false).unwrap_err();
            assert!(
                error.contains("another host") && error.contains("x0") && error.contains("--yes"),
                "{error}"
            );
            assert_eq!(judged(kind, true), Ok(()));
        }
        assert_eq!(judged(BlockKind::Disk, false), Ok(()));
    }

    #[test]
    fn a_server_is_not_asked_without_a_yes() {
        let on = |kind: &str| {
            Ok(DiskPlace {
                path: "/data".into(),
                on: DiskPlaceKind::FileSystem {
                    kind: kind.into(),
                    mounted_on: "/data".into(),
                    source: "none".into(),
                    devices: vec!["sda1".into()],
                },
            })
        };
        let silent = || {
            Err(StorageError::Path {
                path: "/data".to_owned(),
                source: io::ErrorKind::TimedOut.into(),
            })
        };
        let folder = Path::new("/data");
        for kind in ["nfs4", "fuse.sshfs"] {
            let refused = answered(folder, on(kind), false);
            assert!(matches!(refused, Err(ProbeError::Network { .. })), "{kind}");
            assert!(answered(folder, on(kind), true).is_ok());
        }
        for kind in ["ext4", "fuseblk"] {
            assert_eq!(answered(folder, on(kind), false).unwrap(), ["sda1"]);
        }
        let error = answered(folder, silent(), false).unwrap_err().to_string();
        assert!(error.contains("did not answer"), "{error}");
        assert!(answered(folder, silent(), true).is_ok());
    }

    #[test]
    fn devices_files_and_memory_are_refused() {
        let error = |path: &str| look(Path::new(path), true).unwrap_err().to_string();
        assert!(error("/dev/null").contains("never to a device"));
        assert!(error("/proc/version").contains("not a directory"));
        assert!(error("/no/such/folder").contains("No such file"));
    }
}
