#![expect(unsafe_code, reason = "unshare is unsafe for some of its flags")]
//! Network namespaces: which one the calling thread is in, new ones, and work inside another.
//!
//! A namespace lives as long as a descriptor, a process or a thread holds it; none of these has a name
//! in a file system, so the kernel removes what is in it (interfaces, rules) as soon as its holders have
//! ended, however they did.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{getegid, geteuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::KernelError;

/// The inode of the calling thread's network namespace: equal numbers mean the same namespace, on one
/// host and between two boots.
///
/// # Errors
/// `NotFound` where /proc is not mounted or the kernel has no namespaces.
pub fn network_id() -> io::Result<u64> {
    std::fs::metadata("/proc/thread-self/ns/net").map(|metadata| metadata.ino())
}

/// A network namespace, held by a descriptor.
#[derive(Debug)]
pub struct NetworkNamespace {
    file: File,
}

impl NetworkNamespace {
    /// The calling thread's.
    ///
    /// # Errors
    /// As [`network_id`].
    pub fn current() -> io::Result<Self> {
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// The one behind a file: `/proc/PID/ns/net`, or another process's descriptor of one.
    ///
    /// # Errors
    /// `NotFound`, or `PermissionDenied` where the process is another user's.
    pub fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(|file| Self { file })
    }

    /// A new one, with a loopback that is down. The calling thread stays where it is.
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_SYS_ADMIN` in the user namespace, see [`own_user`]; `ENOSPC` at
    /// the bound `user.max_net_namespaces`; `EINVAL` where the kernel has none (`CONFIG_NET_NS`).
    pub fn make() -> io::Result<Self> {
        on_a_thread(|| {
            unshare(UnshareFlags::NEWNET)?;
            Self::current()
        })
    }

    /// As [`network_id`] says it.
    ///
    /// # Errors
    /// None is known for an open descriptor.
    pub fn id(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.ino())
    }

    /// Does `work` on a thread of its own inside: sockets that it makes stay inside for ever.
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_SYS_ADMIN` over the namespace; those of starting a thread.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_a_thread(|| self.enter().map(|()| work()))
    }

    /// Takes the calling thread inside, for good.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn enter(&self) -> io::Result<()> {
        let network = Some(LinkNameSpaceType::Network);
        Ok(move_into_link_name_space(self.as_fd(), network)?)
    }
}

impl AsFd for NetworkNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Takes the whole process into a new user namespace, in which its user is root, and nobody else is
/// anybody; and into a new network namespace in that. Files are reached as before: root inside is the
/// same user outside. To be called while the process has one thread.
///
/// # Errors
/// They name the step. `PermissionDenied` where the machine forbids user namespaces; `ENOSPC` at the
/// bound `user.max_user_namespaces`; `EINVAL` with a second thread running, or without `CONFIG_USER_NS`.
pub fn own_user() -> Result<(), KernelError> {
    let (user, group) = (geteuid(), getegid());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)
        .map_err(KernelError::of("make", "a user namespace"))?;
    for (file, text) in [
        // Without this an ordinary user may not write the next but one (user_namespaces(7)).
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ] {
        std::fs::write(file, text).map_err(KernelError::of("write", file))?;
    }
    Ok(())
}

/// Takes the whole process into a new network namespace, as root may. To be called while the process has
/// one thread.
///
/// # Errors
/// As [`NetworkNamespace::make`].
pub fn own_network() -> Result<(), KernelError> {
    unshare(UnshareFlags::NEWNET).map_err(KernelError::of("make", "a network namespace"))
}

/// Takes the calling process, which has one thread, into the user namespace behind a file:
/// `/proc/PID/ns/user`. Being there already is no error.
///
/// # Errors
/// `PermissionDenied` where it belongs to another user; `EINVAL` with a second thread running.
pub fn enter_user(path: &Path) -> Result<(), KernelError> {
    let object = path.display().to_string();
    let there = File::open(path).map_err(KernelError::of("open", &object))?;
    let inode = |file: &File| file.metadata().map(|metadata| metadata.ino());
    let own = File::open("/proc/self/ns/user").and_then(|own| inode(&own));
    if inode(&there).ok() == own.ok() {
        return Ok(());
    }
    move_into_link_name_space(there.as_fd(), Some(LinkNameSpaceType::User))
        .map_err(io::Error::from)
        .map_err(KernelError::of("enter", &object))
}

/// Whether the process is root, of the machine or of its user namespace.
pub fn is_root() -> bool {
    geteuid().is_root()
}

fn unshare(what: UnshareFlags) -> io::Result<()> {
    // SAFETY: no caller asks for a table of descriptors of its own (`FILES`).
    Ok(unsafe { unshare_unsafe(what) }?)
}

/// A namespace is a thread's: what changes it runs on a thread that ends.
fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work)?;
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
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
        assert_eq!(NetworkNamespace::current().unwrap().id().unwrap(), own);
    }

    #[test]
    fn a_file_that_is_no_namespace_cannot_be_entered() {
        let file = NetworkNamespace::open(Path::new("/proc/self/status")).unwrap();
        assert!(file.run(|| ()).is_err());
        assert!(enter_user(Path::new("/proc/self/no-such-thing")).is_err());
    }
}
