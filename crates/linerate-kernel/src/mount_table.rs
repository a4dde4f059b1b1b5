//! What is mounted where (`proc_pid_mountinfo(5)`).

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

use linerate_model::block::DeviceNumber;

use crate::inventory::Root;

/// A line of mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its number, as `statx` and `/proc/PID/fdinfo` have it.
    pub id: u64,
    /// The device that files on it report; major 0 is no block device.
    pub device: DeviceNumber,
    /// The part of the file system that is shown there: `/` is all of it.
    pub shown: String,
    /// Where it is mounted.
    pub mounted_on: String,
    /// The file system: `ext4`, `nfs4`, `fuse.sshfs`.
    pub kind: String,
    /// What was mounted: `/dev/vda1`, `server:/export`.
    pub source: String,
    /// Options of the mount, then those of the file system, each once.
    pub options: Vec<String>,
}

/// The mounts of the calling thread's namespace, the later ones on top.
///
/// # Errors
/// Where `/proc` is not mounted.
pub fn of_this_thread() -> io::Result<Vec<Mount>> {
    let bytes = std::fs::read("/proc/thread-self/mountinfo")?;
    Ok(parse(&String::from_utf8_lossy(&bytes)))
}

/// The mount that a descriptor's file or directory is on, by its number (`proc_pid_fdinfo(5)`); `None` where mountinfo does not
/// list it.
///
/// # Errors
/// Where `/proc` is not mounted.
pub fn of_descriptor(descriptor: impl AsFd) -> io::Result<Option<Mount>> {
    let number = descriptor.as_fd().as_raw_fd();
    let info = std::fs::read_to_string(format!("/proc/thread-self/fdinfo/{number}"))?;
    let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    let id = id.and_then(|id| id.trim().parse().ok());
    Ok(of_this_thread()?
        .into_iter()
        .find(|mount| Some(mount.id) == id))
}

/// The mounts of this process's namespace, or of the machine whose files are below a folder.
///
/// # Errors
/// Where there is no `/proc/self/mountinfo`.
pub fn below(root: &Root) -> Result<Vec<Mount>, String> {
    root.text("/proc/self/mountinfo").map(|text| parse(&text))
}

/// Lines of another layout are left out.
pub(crate) fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(mount).collect()
}

/// `36 35 98:0 / /mnt rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn mount(line: &str) -> Option<Mount> {
    // Optional fields end with a hyphen that stands alone.
    let (place, system) = line.split_once(" - ")?;
    let place: Vec<&str> = place.split(' ').collect();
    let [id, _, device, shown, mounted_on, own, ..] = place[..] else {
        return None;
    };
    let mut system = system.splitn(3, ' ');
    let (kind, source, more) = (system.next()?, system.next()?, system.next());
    let mut options: Vec<String> = Vec::new();
    for option in own.split(',').chain(more.unwrap_or_default().split(',')) {
        let option = unescaped(option);
        // `rw` is an option of both.
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount {
        id: id.parse().ok()?,
        device: device.parse().ok()?,
        shown: unescaped(shown),
        mounted_on: unescaped(mounted_on),
        kind: kind.to_owned(),
        source: unescaped(source),
        options,
    })
}

/// Blanks, line ends and backslashes are three octal digits behind a backslash (`mangle` of `fs/seq_file.c`).
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            rest = &after[3..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_its_escapes_whatever_optional_fields_it_has() {
        let text = r"36 35 98:0 /a /mnt\0402 rw,noatime master:1 shared:2 - fuse.sshfs u@h:/x\134y rw,user_id=0";
        let found = mount(text).unwrap();
        assert_eq!(
            (found.id, found.device.to_string()),
            (36, "98:0".to_owned())
        );
        assert_eq!((&*found.shown, &*found.mounted_on), ("/a", "/mnt 2"));
        assert_eq!((&*found.kind, &*found.source), ("fuse.sshfs", r"u@h:/x\y"));
        assert_eq!(found.options, ["rw", "noatime", "user_id=0"]);
        assert_eq!(
            mount("22 1 0:20 / /proc rw - proc proc rw").unwrap().kind,
            "proc"
        );
        for text in [
            "",
            "1 2 3",
            "36 35 98 / / rw - ext4 x rw",
            r"a \",
            "garbage",
        ] {
            assert_eq!(mount(text), None, "{text}");
        }
        assert_eq!(unescaped(r"a\04"), r"a\04");
        assert_eq!(unescaped(r"\é\777\"), r"\é\777\");
        assert_eq!(unescaped(r"a\040b\134\9\"), r"a b\\9\");
    }

    #[test]
    fn this_machine_has_a_root() {
        let here = below(&Root::of_this_machine()).unwrap();
        assert!(here.iter().any(|mount| mount.mounted_on == "/"));
        assert!(!of_this_thread().unwrap().is_empty());
        let status = std::fs::File::open("/proc/self/status").unwrap();
        assert_eq!(of_descriptor(status).unwrap().unwrap().kind, "proc");
    }
}
