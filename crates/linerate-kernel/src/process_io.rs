//! What processes read and write (`/proc/PID/io`, `proc_pid_io(5)`).
//!
//! An ordinary user sees its own processes, root all (`ptrace` access). A process that waited for a child has what the child
//! did among its own figures from then on (kernel/exit.c, `wait_task_zombie`).

use std::io::ErrorKind;

use crate::process_sockets::{name_of, processes};

/// What a process did since it began, with all its threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessIo {
    /// Its number.
    pub pid: u32,
    /// When it began, in clock ticks since boot: with the number it names a process for ever.
    pub began: u64,
    /// Its parent.
    pub parent: u32,
    /// What it had fetched from storage, bytes.
    pub read_bytes: u64,
    /// What it caused to be sent to storage, bytes.
    pub written_bytes: u64,
    /// Of that, what was truncated away before it was sent, bytes.
    pub cancelled_bytes: u64,
}

/// All processes that may be asked and moved something, and how many may not be asked.
pub fn all() -> (Vec<ProcessIo>, u64) {
    let mut all = Vec::new();
    let mut unreadable = 0;
    for pid in processes() {
        match std::fs::read_to_string(format!("/proc/{pid}/io")) {
            Ok(text) => all.extend(parse(pid, &text)),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => unreadable += 1,
            // It has ended.
            Err(_) => {}
        }
    }
    (all, unreadable)
}

/// What one process did; `None` where it moved nothing, has ended, or may not be asked.
pub fn of(pid: u32) -> Option<ProcessIo> {
    parse(
        pid,
        &std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?,
    )
}

/// A process's name; empty where it has ended.
pub fn name(pid: u32) -> String {
    name_of(pid)
}

fn parse(pid: u32, text: &str) -> Option<ProcessIo> {
    let value = |key: &str| -> Option<u64> {
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line?.trim().parse().ok()
    };
    let (read_bytes, written_bytes) = (value("read_bytes")?, value("write_bytes")?);
    if read_bytes == 0 && written_bytes == 0 {
        return None;
    }
    let (parent, began) = descent(pid)?;
    Some(ProcessIo {
        pid,
        began,
        parent,
        read_bytes,
        written_bytes,
        cancelled_bytes: value("cancelled_write_bytes")?,
    })
}

/// Its parent and when it began.
fn descent(pid: u32) -> Option<(u32, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The 4th and the 22nd field; the name, which may hold anything, is the second.
    let mut rest = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
    let parent = rest.next()?.parse().ok()?;
    Some((parent, rest.nth(17)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_process_does_is_counted() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 12\n";
        let io = parse(std::process::id(), text).unwrap();
        assert_eq!((io.read_bytes, io.written_bytes), (4096, 8192));
        assert_eq!(io.cancelled_bytes, 12);
        assert!(io.began > 0);
        assert_eq!(io.parent, std::os::unix::process::parent_id());
        assert_eq!(parse(1, "read_bytes: 0\nwrite_bytes: 0\n"), None);
        assert_eq!(parse(1, "garbage"), None);
    }

    #[test]
    fn what_a_process_writes_is_counted() {
        use std::io::Write as _;
        let own = std::process::id();
        let before = of(own).map_or(0, |io| io.written_bytes);
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all(&[1; 8192]).unwrap();
        file.sync_all().unwrap();
        let after = of(own).unwrap();
        assert!(after.written_bytes >= before + 8192, "{after:?}");
        assert!(
            all()
                .0
                .iter()
                .any(|io| io.pid == own && io.began == after.began)
        );
        assert!(!name(own).is_empty());
        assert_eq!((of(u32::MAX), name(u32::MAX)), (None, String::new()));
    }
}
