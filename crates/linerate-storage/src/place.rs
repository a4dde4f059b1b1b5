//! Which block devices a path is on.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use linerate_kernel::inventory::Root;
use linerate_kernel::mount_table::Mount;
use linerate_model::block::{BlockDevice, DeviceNumber};
use linerate_model::disk_watch::{DiskPlace, DiskPlaceKind};
use linerate_model::plain_text::PlainText;

use crate::StorageError;

/// Whoever does not answer in this time is not waited for: a link may lead to such a file system.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a path, or the name of a device such as `sda` or `vg0/home`, is on.
///
/// # Errors
/// Where there is nothing of this name, or it cannot be looked at.
pub fn of(
    path: &str,
    root: &Root,
    devices: &[BlockDevice],
    mounts: &[Mount],
) -> Result<DiskPlace, StorageError> {
    let place = |on| DiskPlace {
        path: path.into(),
        on,
    };
    let named = devices
        .iter()
        .find(|device| device.goes_by(path) || device.is_named(path));
    if let Some(device) = named {
        let name = device.name.clone();
        return Ok(place(DiskPlaceKind::Device { name }));
    }
    let full = absolute(path)?;
    // Before anything is asked of it: a server that does not answer holds whoever asks.
    if let Some(mount) = mount_of(&full, mounts).filter(|mount| is_network(mount)) {
        return Ok(place(file_system(mount, Vec::new())));
    }
    let (full, facts) = looked_at(path, &full)?;
    let held = mount_of(&full, mounts);
    if let Some(mount) = held.filter(|mount| is_network(mount)) {
        return Ok(place(file_system(mount, Vec::new())));
    }
    if facts.file_type().is_block_device() {
        let number = number(facts.rdev());
        let device = devices.iter().find(|device| device.number == number);
        let name = device.map(|device| device.name.clone());
        let name = name.ok_or_else(|| StorageError::Device {
            path: path.to_owned(),
            number,
        })?;
        return Ok(place(DiskPlaceKind::Device { name }));
    }
    let number = number(facts.dev());
    let device = devices.iter().find(|device| device.number == number);
    // The root of a container may be mounted from where this namespace sees no mount.
    let mount = mounts.iter().rev().find(|mount| mount.device == number);
    let mount = held
        .filter(|mount| mount.device == number)
        .or(mount)
        .or(held);
    let mount = mount.ok_or_else(|| StorageError::Mount {
        path: path.to_owned(),
    })?;
    let on = match device {
        Some(device) => vec![device.name.clone()],
        None if mount.kind == "btrfs" => btrfs(root, mount, devices),
        None => Vec::new(),
    };
    Ok(place(file_system(mount, on)))
}

fn file_system(mount: &Mount, devices: Vec<PlainText>) -> DiskPlaceKind {
    DiskPlaceKind::FileSystem {
        kind: mount.kind.as_str().into(),
        mounted_on: mount.mounted_on.as_str().into(),
        source: mount.source.as_str().into(),
        devices,
    }
}

fn is_network(mount: &Mount) -> bool {
    is_remote(&mount.kind)
}

/// Whether the files of such a file system are on a server, or with a program (FUSE), which may not answer.
pub(crate) fn is_remote(file_system: &str) -> bool {
    const REMOTE: [&str; 20] = [
        "9p",
        "afs",
        "autofs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "fuse",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "orangefs",
        "panfs",
        "pvfs2",
        "smb3",
        "smbfs",
        "vboxsf",
    ];
    // `fuse.sshfs`; what FUSE has on a block device is `fuseblk`.
    let name = file_system.split('.').next().unwrap_or_default();
    name == "virtiofs" || REMOTE.contains(&name)
}

/// Where a path leads, and what is there, asked by a thread that is not waited for: it ends with the program.
fn looked_at(path: &str, full: &Path) -> Result<(PathBuf, Metadata), StorageError> {
    let refused = |source: io::Error| {
        if source.kind() == io::ErrorKind::NotFound && !path.contains('/') {
            return StorageError::Nothing {
                reason: format!(
                    "there is no device and no file {path} here (`lsblk` lists the devices)"
                ),
            };
        }
        StorageError::Path {
            path: path.to_owned(),
            source,
        }
    };
    let (tell, told) = mpsc::channel();
    let asked = full.to_owned();
    let ask = move || {
        let found = fs::canonicalize(&asked);
        let found = found.and_then(|full| Ok((full.clone(), fs::metadata(full)?)));
        drop(tell.send(found));
    };
    let thread = std::thread::Builder::new()
        .name("stat".to_owned())
        .spawn(ask);
    thread.map_err(refused)?;
    match told.recv_timeout(PATIENCE) {
        Ok(found) => found.map_err(refused),
        Err(_) => Err(refused(io::Error::new(
            io::ErrorKind::TimedOut,
            "its file system did not answer in 2 s; name a device (`lsblk` lists them)",
        ))),
    }
}

/// A path without looking at it.
fn absolute(path: &str) -> Result<PathBuf, StorageError> {
    std::path::absolute(path).map_err(|source| StorageError::Path {
        path: path.to_owned(),
        source,
    })
}

/// The mount with the longest path above; of several on one folder the last one hides the others.
fn mount_of<'a>(path: &Path, mounts: &'a [Mount]) -> Option<&'a Mount> {
    let above = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.mounted_on));
    above.max_by_key(|mount| mount.mounted_on.len())
}

/// As `makedev` packs it (sysmacros.h).
fn number(packed: u64) -> DeviceNumber {
    DeviceNumber {
        major: rustix::fs::major(packed),
        minor: rustix::fs::minor(packed),
    }
}

/// The devices of a btrfs, which has no number of its own: those of the file system that its source belongs to.
fn btrfs(root: &Root, mount: &Mount, devices: &[BlockDevice]) -> Vec<PlainText> {
    let source = fs::metadata(&mount.source).map(|facts| number(facts.rdev()));
    let source = source
        .ok()
        .and_then(|number| devices.iter().find(|device| device.number == number));
    let Some(source) = source else {
        return Vec::new();
    };
    let all = linerate_kernel::inventory::blocks::of_btrfs(root);
    all.into_iter()
        .find(|its| its.contains(&source.name))
        .unwrap_or_else(|| vec![source.name.clone()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_kernel::inventory::blocks;
    use linerate_kernel::mount_table;
    use linerate_model::block::BlockKind;

    fn here(path: &str) -> Result<DiskPlace, StorageError> {
        let root = Root::of_this_machine();
        let devices = blocks::devices(&root).unwrap();
        of(path, &root, &devices, &mount_table::below(&root).unwrap())
    }

    #[test]
    fn memory_has_no_disk() {
        let DiskPlaceKind::FileSystem { kind, devices, .. } = here("/proc/self").unwrap().on else {
            panic!("a folder is no device");
        };
        assert_eq!((&*kind, devices.len()), ("proc", 0));
    }

    #[test]
    fn devices_go_by_all_their_names() {
        let mut mapped = linerate_testing::disks::device("dm-2", BlockKind::Disk, &[]);
        mapped.kind = BlockKind::Mapped {
            name: "vg--a-home".into(),
            uuid: "LVM-x".into(),
            table: Vec::new(),
        };
        for name in [
            "dm-2",
            "/dev/dm-2",
            "vg-a/home",
            "/dev/vg-a/home",
            "vg--a-home",
            "/dev/mapper/vg--a-home",
        ] {
            assert!((mapped.goes_by(name) || mapped.is_named(name)), "{name}");
        }
        for name in ["home", "vg-a", "vg/a-home", "dm-20", ""] {
            assert!(!(mapped.goes_by(name) || mapped.is_named(name)), "{name}");
        }
        let raid = linerate_testing::disks::device("cciss!c0d0", BlockKind::Disk, &[]);
        assert!(raid.goes_by("/dev/cciss/c0d0"));
        let error = here("sdzzz").unwrap_err().to_string();
        assert!(
            error.starts_with("there is no device and no file sdzzz"),
            "{error}"
        );
    }

    #[test]
    fn what_is_not_there_says_so() {
        let error = here("/no/such/file").unwrap_err().to_string();
        assert!(error.contains("/no/such/file"), "{error}");
        assert!(error.contains("No such file"), "{error}");
    }

    #[test]
    fn the_mount_that_was_made_last_counts() {
        let mount = |mounted_on: &str, kind: &str| Mount {
            id: 1,
            shown: "/".to_owned(),
            device: DeviceNumber { major: 0, minor: 1 },
            mounted_on: mounted_on.to_owned(),
            kind: kind.to_owned(),
            source: String::new(),
            options: Vec::new(),
        };
        let mounts = [
            mount("/", "ext4"),
            mount("/home", "xfs"),
            mount("/home", "nfs4"),
            mount("/homes", "zfs"),
        ];
        let kind = |path: &str| mount_of(Path::new(path), &mounts).unwrap().kind.clone();
        assert_eq!(kind("/home/a"), "nfs4");
        assert_eq!(kind("/homes/a"), "zfs");
        assert_eq!(kind("/var"), "ext4");
    }
}
