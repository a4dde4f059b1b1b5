//! Settings of the kernel: files below `/proc/sys`, those of `net` of the calling thread's network namespace.

use std::io;

use crate::KernelError;
use crate::inventory::Root;

/// The file of a key with dots, by its path from `/`; `None` of what is no key. A slash in a key is a dot in a name:
/// `net.ipv4.conf.eth0/5.forwarding`.
pub fn path_of(key: &str) -> Option<String> {
    let path: String = key
        .chars()
        .map(|c| match c {
            '.' => '/',
            '/' => '.',
            other => other,
        })
        .collect();
    let whole = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    path.split('/')
        .all(whole)
        .then(|| format!("/proc/sys/{path}"))
}

/// The value of a key now, blanks made single.
///
/// # Errors
/// `NotFound` for a key that this kernel or this namespace does not have; `PermissionDenied`.
pub fn sysctl(root: &Root, key: &str) -> Result<String, KernelError> {
    let path = path(key).map_err(KernelError::of("read", key))?;
    let text = root
        .whole_text(&path)
        .map_err(KernelError::of("read", key))?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Gives a key a value.
///
/// # Errors
/// `NotFound` for a key that is not there, and of names of algorithms for one that the kernel does not have;
/// `PermissionDenied` without the right to it; `InvalidInput` for a value that the kernel refuses.
pub fn set_sysctl(root: &Root, key: &str, value: &str) -> Result<(), KernelError> {
    path(key)
        .and_then(|path| root.write(&path, value))
        .map_err(KernelError::of("set", key))
}

fn path(key: &str) -> io::Result<String> {
    path_of(key).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is not a key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_paths_and_never_leave_their_folder() {
        assert_eq!(
            path_of("net.ipv4.conf.eth0/5.forwarding").as_deref(),
            Some("/proc/sys/net/ipv4/conf/eth0.5/forwarding")
        );
        for wrong in ["", "net..x", ".net", "net.//.x", "net.\0"] {
            assert_eq!(path_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_key_that_is_not_there_is_named() {
        let root = Root::of_this_machine();
        let error = sysctl(&root, "net.ipv4.no_such_key").unwrap_err();
        assert_eq!(error.code(), Some(libc::ENOENT));
        assert!(error.to_string().contains("net.ipv4.no_such_key"));
        assert!(set_sysctl(&root, "net.ipv4.no_such_key", "1").is_err());
        assert_eq!(sysctl(&root, "kernel.ostype").unwrap(), "Linux");
    }
}
