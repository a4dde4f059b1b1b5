//! Which network namespace the calling thread is in.

use std::io;
use std::os::unix::fs::MetadataExt;

/// The inode of the calling thread's network namespace: equal numbers mean the same namespace, on one
/// host and between two boots.
///
/// # Errors
/// `NotFound` where /proc is not mounted or the kernel has no namespaces.
pub fn network_id() -> io::Result<u64> {
    std::fs::metadata("/proc/thread-self/ns/net").map(|metadata| metadata.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_process_share_the_namespace() {
        let own = network_id().unwrap();
        assert!(own > 0);
        assert_eq!(
            std::thread::spawn(|| network_id().unwrap()).join().unwrap(),
            own
        );
    }
}
