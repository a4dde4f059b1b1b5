//! What stands below a device: partitions, arrays, logical volumes, files of loop devices.

use std::collections::BTreeSet;

use linerate_kernel::device_mapper::DeviceMapper;
use linerate_kernel::inventory::{Root, blocks};
use linerate_kernel::mount_table::{self, Mount};
use linerate_model::block::{BlockDevice, BlockKind};
use linerate_model::disk_watch::DiskPlaceKind;
use linerate_model::plain_text::PlainText;

use crate::{StorageError, place};

/// The block devices of a machine and what is mounted on it.
#[derive(Debug, Clone)]
pub struct Stack {
    root: Root,
    devices: Vec<BlockDevice>,
    mounts: Vec<Mount>,
}

impl Stack {
    /// Reads them.
    ///
    /// # Errors
    /// Where sysfs or `/proc` is not mounted.
    pub fn read(root: &Root) -> Result<Self, StorageError> {
        let refused = |reason| StorageError::Unreadable { reason };
        let mut stack = Self {
            root: root.clone(),
            devices: blocks::devices(root).map_err(refused)?,
            mounts: mount_table::below(root).map_err(refused)?,
        };
        if root.is_this_machine() {
            stack.read_tables();
        }
        stack.find_backing();
        Ok(stack)
    }

    /// All devices, in the order of their numbers.
    pub fn devices(&self) -> &[BlockDevice] {
        &self.devices
    }

    /// Without root a mapped device's table stays unknown.
    fn read_tables(&mut self) {
        let mut mapper = None;
        for device in &mut self.devices {
            let BlockKind::Mapped { table, .. } = &mut device.kind else {
                continue;
            };
            let mapper = mapper.get_or_insert_with(|| DeviceMapper::open().ok());
            let read = mapper
                .as_ref()
                .and_then(|mapper| mapper.table(device.number).ok());
            *table = read.unwrap_or_default();
        }
    }

    /// A loop device stands on what its file is on.
    fn find_backing(&mut self) {
        let below: Vec<Vec<PlainText>> = self
            .devices
            .iter()
            .map(|device| match &device.kind {
                BlockKind::Loop { file: Some(file) } => self.devices_of(file),
                _ => Vec::new(),
            })
            .collect();
        for (device, below) in self.devices.iter_mut().zip(below) {
            device.below.extend(below);
        }
    }

    /// The devices that a file is on; empty where it is gone, or on none.
    fn devices_of(&self, file: &str) -> Vec<PlainText> {
        let place = place::of(file, &self.root, &self.devices, &self.mounts);
        match place.map(|place| place.on) {
            Ok(DiskPlaceKind::FileSystem { devices, .. }) => devices,
            _ => Vec::new(),
        }
    }

    /// What a path, or a device's name, is on.
    ///
    /// # Errors
    /// As [`place::of`].
    pub fn place(&self, path: &str) -> Result<linerate_model::disk_watch::DiskPlace, StorageError> {
        place::of(path, &self.root, &self.devices, &self.mounts)
    }

    /// The devices of these names with all that is below them. A device that is not there any more, and one that stands
    /// on itself, end the way down.
    pub fn below(&self, names: &[PlainText]) -> Vec<&BlockDevice> {
        let mut wanted: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = names.iter().map(PlainText::as_str).collect();
        // Each device is taken once, and there are as many as there are.
        while let Some(name) = open.pop() {
            let mut all = self.devices.iter();
            if let Some(device) = all.find(|device| device.name == *name)
                && wanted.insert(device.name.as_str())
            {
                open.extend(device.below.iter().map(PlainText::as_str));
            }
        }
        let is_wanted = |device: &&BlockDevice| wanted.contains(device.name.as_str());
        self.devices.iter().filter(is_wanted).collect()
    }

    /// The devices directly above one.
    pub fn above<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a BlockDevice> {
        let stands_on_it =
            move |device: &&BlockDevice| device.below.iter().any(|one| *one == *name);
        self.devices.iter().filter(stands_on_it)
    }

    /// Devices that are worth watching where nobody names any: a loop device without a file and a device of size 0 are
    /// none.
    pub fn in_use(&self) -> Vec<&BlockDevice> {
        let is_used = |device: &&BlockDevice| {
            let has_file = !matches!(device.kind, BlockKind::Loop { file: None });
            has_file && device.size.is_none_or(|size| size.0 > 0)
        };
        self.devices.iter().filter(is_used).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use linerate_testing::disks::device;

    /// A device of a folder that stands for a machine: files of its folder in sysfs, and what it stands on.
    fn add(machine: &Path, at: &str, number: &str, files: &[(&str, &str)], below: &[&str]) {
        let name = at.rsplit('/').next().unwrap();
        let real = machine.join("sys/devices").join(at);
        fs::create_dir_all(real.join("slaves")).unwrap();
        for (file, text) in [("dev", number), ("size", "2048")].iter().chain(files) {
            let file = real.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        for name in below {
            fs::create_dir(real.join("slaves").join(name)).unwrap();
        }
        let class = machine.join("sys/class/block");
        fs::create_dir_all(&class).unwrap();
        symlink(format!("../../devices/{at}"), class.join(name)).unwrap();
    }

    #[test]
    fn stacks_of_all_kinds_are_followed_down_to_their_disks() {
        let folder = tempfile::tempdir().unwrap();
        let machine = folder.path();
        for disk in ["sda", "sdb", "sdc", "sdd", "sde", "sdf"] {
            let number = format!("8:{}", 16 * (disk.as_bytes()[2] - b'a'));
            add(machine, disk, &number, &[], &[]);
        }
        add(machine, "sda/sda1", "8:1", &[("partition", "1")], &[]);
        add(machine, "sdb/sdb1", "8:17", &[("partition", "1")], &[]);
        let md = [("md/level", "raid10"), ("md/raid_disks", "2")];
        add(machine, "md0", "9:0", &md, &["sda1", "sdb1"]);
        let lvm = [("dm/name", "vg0-home"), ("dm/uuid", "LVM-x")];
        add(machine, "dm-0", "253:0", &lvm, &["md0"]);
        let crypt = [("dm/name", "safe"), ("dm/uuid", "CRYPT-LUKS2-x")];
        add(machine, "dm-1", "253:1", &crypt, &["dm-0"]);
        let mpath = [("dm/name", "mpatha"), ("dm/uuid", "mpath-36")];
        add(machine, "dm-2", "253:2", &mpath, &["sdc", "sdd"]);
        add(machine, "drbd0", "147:0", &[], &["dm-1"]);
        let image = [("loop/backing_file", "/no/such/image")];
        add(machine, "loop0", "7:0", &image, &[]);
        add(machine, "nvme0n1", "259:0", &[], &[]);
        for (path, number) in [("nvme0c0n1", "259:1"), ("nvme0c1n1", "259:2")] {
            add(machine, path, number, &[("hidden", "1")], &[]);
        }
        let btrfs = machine.join("sys/fs/btrfs/an-id/devices");
        fs::create_dir_all(btrfs.join("sde")).unwrap();
        fs::create_dir_all(btrfs.join("sdf")).unwrap();
        fs::create_dir_all(machine.join("proc/self")).unwrap();
        fs::write(machine.join("proc/self/mountinfo"), "").unwrap();
        let root = Root::at(machine).unwrap();
        let stack = Stack::read(&root).unwrap();
        let below = |name: &str| -> Vec<String> {
            let below = stack.below(&[name.into()]).into_iter();
            let mut names: Vec<String> = below.map(|device| device.name.to_string()).collect();
            names.sort();
            names.retain(|one| one != name);
            names
        };
        assert_eq!(below("sda1"), ["sda"]);
        assert_eq!(below("md0"), ["sda", "sda1", "sdb", "sdb1"]);
        assert_eq!(below("dm-2"), ["sdc", "sdd"]);
        assert_eq!(
            below("drbd0"),
            ["dm-0", "dm-1", "md0", "sda", "sda1", "sdb", "sdb1"]
        );
        assert_eq!(below("nvme0n1"), ["nvme0c0n1", "nvme0c1n1"]);
        assert_eq!(below("loop0"), Vec::<String>::new());
        assert_eq!(
            blocks::of_btrfs(&root),
            [["sde", "sdf"].map(PlainText::from)]
        );
        let kind = |name: &str| {
            let device = stack.devices().iter().find(|one| one.name == *name);
            device.unwrap().kind.clone()
        };
        assert_eq!(kind("sda1"), BlockKind::Partition { number: 1 });
        assert!(matches!(kind("md0"), BlockKind::Md { disks: Some(2), .. }));
        assert!(matches!(kind("dm-1"), BlockKind::Mapped { name, .. } if name == "safe"));
        assert!(matches!(kind("loop0"), BlockKind::Loop { file: Some(_) }));
        assert_eq!(kind("drbd0"), BlockKind::Drbd);
        assert_eq!(kind("nvme0n1"), BlockKind::NvmeMultipath);
        assert_eq!(kind("sdc"), BlockKind::Disk);
    }

    #[test]
    fn all_that_is_below_is_found_once_and_circles_end() {
        let stack = Stack {
            root: Root::of_this_machine(),
            devices: vec![
                device("sda", BlockKind::Disk, &[]),
                device("sdb", BlockKind::Disk, &["md0"]),
                device("sdc", BlockKind::Disk, &[]),
                device("md0", BlockKind::Disk, &["sda", "sdb", "gone"]),
            ],
            mounts: Vec::new(),
        };
        let names = |of: &str| -> Vec<String> {
            let below = stack.below(&[of.into()]);
            below.iter().map(|device| device.name.to_string()).collect()
        };
        assert_eq!(names("md0"), ["sda", "sdb", "md0"]);
        assert_eq!(names("sdc"), ["sdc"]);
        assert_eq!(names("none"), Vec::<String>::new());
    }
}
