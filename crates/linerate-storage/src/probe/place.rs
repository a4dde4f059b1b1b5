//! Where a probe is to run, whether it may, and how large its file may be.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use linerate_kernel::directory::Directory;
use linerate_kernel::file_system::{self, FileSystem};
use linerate_kernel::inventory::Root;
use linerate_kernel::inventory::blocks;
use linerate_model::block::{BlockDevice, BlockKind, DeviceNumber};
use linerate_model::plain_text::PlainText;
use linerate_model::probe::ProbePlace;
use linerate_model::units::Bytes;

use super::error::ProbeError;

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

/// Opens the directory and refuses what is not to be probed.
pub(super) fn look(folder: &Path, network_allowed: bool) -> Result<Place, ProbeError> {
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
    if let Some(known) = network.filter(|_| !network_allowed) {
        return Err(ProbeError::Network {
            folder: folder.to_owned(),
            kind: kind(known),
        });
    }
    let (device, disk) = devices(found.device);
    if let Some(memory) = [&device, &disk].into_iter().flatten().find_map(memory_of) {
        return Err(ProbeError::Ram {
            folder: folder.to_owned(),
            kind: memory,
        });
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

/// The device of a number, and the disk that it is a partition of.
fn devices(number: DeviceNumber) -> (Option<BlockDevice>, Option<BlockDevice>) {
    // Major 0 is no block device; a hidden NVMe path has 0:0 as well.
    if number.major == 0 {
        return (None, None);
    }
    let mut all = blocks::devices(&Root::of_this_machine()).unwrap_or_default();
    let at = all.iter().position(|device| device.number == number);
    let Some(device) = at.map(|at| all.swap_remove(at)) else {
        return (None, None);
    };
    let disk = match device.kind {
        BlockKind::Partition { .. } => all
            .into_iter()
            .find(|disk| device.below.contains(&disk.name)),
        _ => None,
    };
    (Some(device), disk)
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

    #[test]
    fn devices_files_and_memory_are_refused() {
        let error = |path: &str| look(Path::new(path), true).unwrap_err().to_string();
        assert!(error("/dev/null").contains("never to a device"));
        assert!(error("/proc/version").contains("not a directory"));
        assert!(error("/no/such/folder").contains("No such file"));
    }
}
