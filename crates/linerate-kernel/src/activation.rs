//! Sockets that were passed to this process by a service manager (`sd_listen_fds(3)`).
#![expect(unsafe_code, reason = "the descriptors come by number")]

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Once;

/// The first descriptor that is passed.
const FIRST: i32 = 3;
/// More than this many are not taken.
const MOST: i32 = 64;

/// The sockets that were passed in, in their order. They are given out once: a second call gives none.
pub fn sockets() -> Vec<OwnedFd> {
    static TAKEN: Once = Once::new();
    let mut sockets = Vec::new();
    TAKEN.call_once(|| {
        let number = |name: &str| std::env::var(name).ok();
        let count = passed(
            number("LISTEN_PID").as_deref(),
            number("LISTEN_FDS").as_deref(),
            std::process::id(),
        );
        // SAFETY: LISTEN_PID names this process, so these descriptors were opened for it and are its
        // own; `TAKEN` lets nobody take them twice.
        sockets.extend((FIRST..FIRST + count).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
    });
    sockets
}

/// How many descriptors were passed to the process `pid`.
fn passed(listen_pid: Option<&str>, listen_fds: Option<&str>, pid: u32) -> i32 {
    let ours = listen_pid.and_then(|text| text.parse().ok()) == Some(pid);
    let count = listen_fds
        .and_then(|text| text.parse::<i32>().ok())
        .filter(|_| ours);
    count.map_or(0, |count| count.clamp(0, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_meant_for_another_process_are_left_alone() {
        assert_eq!(passed(Some("7"), Some("2"), 7), 2);
        assert_eq!(passed(Some("8"), Some("2"), 7), 0);
        assert_eq!(passed(None, Some("2"), 7), 0);
        assert_eq!(passed(Some("7"), Some("-1"), 7), 0);
        assert_eq!(passed(Some("7"), Some("x"), 7), 0);
        assert_eq!(passed(Some("7"), Some("1000"), 7), MOST);
    }
}
