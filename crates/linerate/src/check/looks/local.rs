//! Local file systems: their room, and whether the kernel made one read-only.

use std::path::Path;

use linerate_check::judge;
use linerate_check::settings::Room;
use linerate_kernel::directory::Directory;
use linerate_kernel::file_system;
use linerate_kernel::mount_table::{self, Mount};
use linerate_model::check::{Found, Item, State};

use super::{cannot_tell, nothing};

/// File systems on block devices, each once: that of a device which is mounted in several places is one.
fn mounts() -> Result<Vec<Mount>, Vec<Item>> {
    let all = mount_table::of_this_thread().map_err(|error| {
        vec![cannot_tell(
            "",
            format!("cannot read what is mounted: {error}"),
        )]
    })?;
    let mut local: Vec<Mount> = Vec::new();
    for mount in all.into_iter().filter(is_local) {
        if !local.iter().any(|known| known.source == mount.source) {
            local.push(mount);
        }
    }
    Ok(local)
}

/// btrfs, ZFS and others number their devices themselves; what was mounted tells.
fn is_local(mount: &Mount) -> bool {
    let is_image = ["squashfs", "iso9660", "erofs", "udf"].contains(&mount.kind.as_str());
    let is_disk = mount.device.major != 0 || mount.source.starts_with("/dev/");
    is_disk && !is_image && !mount.kind.starts_with("fuse") && mount.kind != "devtmpfs"
}

pub(super) fn space(wanted: Room) -> Vec<Item> {
    let mounts = match mounts() {
        Ok(mounts) => mounts,
        Err(items) => return items,
    };
    let writable = mounts.iter().filter(|mount| !is_read_only(mount));
    let items: Vec<Item> = writable.map(|mount| room(mount, wanted)).collect();
    if items.is_empty() { nothing() } else { items }
}

fn room(mount: &Mount, wanted: Room) -> Item {
    let on = mount.mounted_on.as_str();
    let here = Directory::open(Path::new(on)).and_then(|folder| file_system::of(&folder));
    match here {
        Ok(here) => judge::room(on, [here.free, here.size], Some(here.files), wanted),
        Err(error) => cannot_tell(on, format!("cannot look at {on}: {error}")),
    }
}

fn is_read_only(mount: &Mount) -> bool {
    mount.options.iter().any(|option| option == "ro")
}

/// What the kernel does to a file system after an error. Whoever mounts read-only says so of the mount as well; the kernel sets the file
/// system's flag alone (`SB_RDONLY` in `btrfs_handle_fs_error`, and in `ext4_handle_error` before Linux 6.12), or shows a word of its own
/// (`emergency_ro` and `shutdown` in `_ext4_show_options`, Linux 6.15).
fn turned(mount: &Mount) -> bool {
    // The mount's options stand before those of its file system.
    let place = |wanted: &str| mount.options.iter().position(|option| option == wanted);
    place("emergency_ro").is_some()
        || place("shutdown").is_some()
        || matches!((place("rw"), place("ro")), (Some(own), Some(system)) if own < system)
}

pub(super) fn read_only() -> Vec<Item> {
    let mounts = match mounts() {
        Ok(mounts) => mounts,
        Err(items) => return items,
    };
    let item = |mount: &Mount| {
        let device = mount.source.as_str().into();
        Item::new(
            mount.mounted_on.as_str(),
            State::Fail,
            Found::TurnedReadOnly { device },
        )
    };
    let items: Vec<Item> = mounts
        .iter()
        .filter(|mount| turned(mount))
        .map(item)
        .collect();
    if items.is_empty() {
        let count = mounts.len() as u64;
        return vec![Item::new("", State::Ok, Found::AllWell { count })];
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(options: &str) -> Mount {
        Mount {
            id: 1,
            device: "8:1".parse().unwrap(),
            shown: "/".to_owned(),
            mounted_on: "/data".to_owned(),
            kind: "ext4".to_owned(),
            source: "/dev/sda1".to_owned(),
            options: options.split(',').map(str::to_owned).collect(),
        }
    }

    #[test]
    fn what_the_kernel_made_read_only_is_told_from_what_was_mounted_so() {
        assert!(turned(&mount("rw,relatime,ro,errors=remount-ro")));
        assert!(turned(&mount("rw,relatime,errors=remount-ro,emergency_ro")));
        assert!(!turned(&mount("rw,relatime,errors=remount-ro")));
        assert!(!turned(&mount("ro,relatime")));
        assert!(
            !turned(&mount("ro,relatime,rw")),
            "a read-only view of a writable one"
        );
    }

    #[test]
    fn only_disks_are_local() {
        assert!(is_local(&mount("rw")));
        let mut other = mount("rw");
        other.kind = "squashfs".to_owned();
        assert!(!is_local(&other));
        other.kind = "nfs4".to_owned();
        other.device = "0:45".parse().unwrap();
        other.source = "server:/home".to_owned();
        assert!(!is_local(&other));
    }
}
