//! Which sockets a process holds, and who holds a socket, by way of /proc/PID/fd.
//!
//! An ordinary user sees the descriptors of its own processes, root those of all (`ptrace` access, proc(5)).

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::proc_file::word;

/// A process by its number and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name (`/proc/PID/comm`), at most 15 bytes.
    pub name: String,
}

/// The inodes of the sockets that a process holds.
///
/// # Errors
/// `NotFound` where there is no such process, `PermissionDenied` where it is another user's.
pub fn sockets_of(pid: u32) -> io::Result<BTreeSet<u64>> {
    let mut inodes = BTreeSet::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        // A descriptor that was closed since, or the whole process: what is left was held.
        let Ok(entry) = entry else { break };
        if let Ok(target) = std::fs::read_link(entry.path()) {
            inodes.extend(target.to_str().and_then(inode_in));
        }
    }
    Ok(inodes)
}

/// `socket:[4711]`.
fn inode_in(target: &str) -> Option<u64> {
    target
        .strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// A process and all that descend from it, as far as their parents still run.
pub fn family_of(pid: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in processes() {
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        next += 1;
        // A number that came round again while we read must not lead in circles.
        let fresh = children.remove(&parent).unwrap_or_default();
        family.extend(fresh);
    }
    family
}

/// Who holds each of these sockets: the process with the lowest number, of those that may be looked at.
pub fn holders(inodes: &BTreeSet<u64>) -> BTreeMap<u64, Process> {
    let mut found: BTreeMap<u64, Process> = BTreeMap::new();
    for pid in processes() {
        let Ok(held) = sockets_of(pid) else { continue };
        for inode in held.intersection(inodes) {
            found.entry(*inode).or_insert_with(|| Process {
                pid,
                name: name_of(pid),
            });
        }
    }
    found
}

/// A process's name; empty where it has ended.
pub fn name_of(pid: u32) -> String {
    word(format!("/proc/{pid}/comm")).unwrap_or_default()
}

pub(crate) fn processes() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut pids: Vec<u32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    pids
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, also brackets and blanks; then come state and parent.
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::fs::MetadataExt as _;
    use std::process::{Command, Stdio};

    #[test]
    fn a_socket_is_found_with_its_holder() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&listener);
        let inode = std::fs::metadata(format!("/proc/self/fd/{fd}"))
            .unwrap()
            .ino();
        let own = std::process::id();
        assert!(sockets_of(own).unwrap().contains(&inode));
        let holders = holders(&BTreeSet::from([inode]));
        assert_eq!(holders[&inode].pid, own);
        assert!(!holders[&inode].name.is_empty());
    }

    #[test]
    fn children_belong_to_the_family() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let family = family_of(std::process::id());
        assert!(family.contains(&child.id()), "{family:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(family_of(u32::MAX), [u32::MAX]);
        assert_eq!(
            sockets_of(u32::MAX).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn only_sockets_have_inodes_here() {
        assert_eq!(inode_in("socket:[4711]"), Some(4711));
        assert_eq!(inode_in("pipe:[4711]"), None);
        assert_eq!(inode_in("socket:[]"), None);
    }
}
