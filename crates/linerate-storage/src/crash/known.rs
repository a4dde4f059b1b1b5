//! Names that a file has on purpose without data, and file systems by what they are.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use crate::place::is_remote;

/// Names of files that mark or lock something, or keep a directory.
const NAMES: [&[u8]; 22] = [
    b".keep",
    b".gitkeep",
    b".hgkeep",
    b".placeholder",
    b".empty",
    b".nomedia",
    b".nojekyll",
    b".hushlogin",
    b".lock",
    b"lock",
    b"LOCK",
    b".pwd.lock",
    b"__init__.py",
    b"__init__.pyi",
    b"py.typed",
    b"REQUESTED",
    b"_SUCCESS",
    b".stamp",
    b"stamp",
    b".updated",
    b".done",
    b"done",
];
const ENDS: [&[u8]; 6] = [b".lock", b".lck", b".pid", b".stamp", b".done", b".keep"];
/// journald allocates its files in steps of 8 MiB (`journal_file_allocate` of systemd).
const PREALLOCATED: [&[u8]; 2] = [b".journal", b".journal~"];

/// Whether an empty file of this name is usual.
pub(super) fn is_empty_on_purpose(name: &OsStr) -> bool {
    let name = name.as_bytes();
    NAMES.contains(&name) || ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether a program writes files of this name into space that it has allocated before.
pub(super) fn is_preallocated(name: &OsStr) -> bool {
    let name = name.as_bytes();
    PREALLOCATED.iter().any(|end| name.ends_with(end))
}

/// Whether a server has what is on such a file system, or may have it (FUSE), or several hosts write to it.
pub(super) fn is_network(file_system: &str) -> bool {
    is_remote(file_system) || matches!(file_system, "ocfs2" | "gfs2")
}

/// Whether such a file system is memory, or none at all.
pub(super) fn is_memory(file_system: &str) -> bool {
    matches!(
        file_system,
        "tmpfs"
            | "ramfs"
            | "devtmpfs"
            | "devpts"
            | "proc"
            | "sysfs"
            | "cgroup"
            | "cgroup2"
            | "securityfs"
            | "debugfs"
            | "tracefs"
            | "bpf"
            | "pstore"
            | "configfs"
            | "fusectl"
            | "mqueue"
            | "hugetlbfs"
            | "autofs"
            | "binfmt_misc"
            | "efivarfs"
            | "nsfs"
            | "rpc_pipefs"
            | "selinuxfs"
            | "nfsd"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_file_systems_are_told_apart() {
        for (name, expected) in [
            ("__init__.py", true),
            ("x.lock", true),
            ("lock", true),
            ("clock", false),
            ("init.py", false),
            ("blk_1073741825", false),
        ] {
            assert_eq!(is_empty_on_purpose(OsStr::new(name)), expected, "{name}");
        }
        assert!(is_preallocated(OsStr::new("system@0-1.journal~")));
        assert!(is_network("fuse.sshfs") && is_network("nfs4") && !is_network("fuseblk"));
        assert!(is_memory("tmpfs") && !is_memory("ext4"));
    }
}
