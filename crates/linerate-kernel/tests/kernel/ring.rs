//! `io_uring` where a filter of system calls forbids it.

use std::os::fd::AsFd as _;

use linerate_kernel::event::EventFd;
use linerate_kernel::ring::Ring;
use linerate_model::probe::NoRing;
use linerate_testing::{Need, skipped};

use super::filter::refuse_call;

#[test]
fn a_ring_that_is_forbidden_is_told_from_one_that_is_absent() {
    for (errno, expected) in [
        (libc::EPERM, NoRing::Forbidden),
        (libc::ENOSYS, NoRing::Absent),
    ] {
        // A filter holds for the thread that takes it.
        let seen = std::thread::spawn(move || {
            refuse_call(libc::SYS_io_uring_setup, errno)?;
            let file = tempfile::tempfile()?;
            let stop = EventFd::new()?;
            Ok::<_, std::io::Error>(Ring::new(&file, [1, 4096, 4096], stop.as_fd()).map(drop))
        });
        match seen.join().unwrap() {
            Err(why) => skipped(Need::Seccomp, "a kernel without io_uring", &why.to_string()),
            Ok(ring) => assert_eq!(ring, Err(expected)),
        }
    }
}
