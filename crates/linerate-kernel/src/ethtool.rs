#![expect(unsafe_code, reason = "ioctl takes pointers to pointers")]
//! The few facts and switches of a device that ethtool alone knows, in the calling thread's network namespace.
//!
//! Not from /sys/class/net: a sysfs mounted in another namespace shows that namespace's devices.

use std::io;
use std::os::fd::AsRawFd;

use crate::KernelError;
use crate::option::check;

pub(crate) mod change;
pub(crate) mod facts;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGRO: u32 = 0x2c;
/// `tx-udp-segmentation`, in the words of the kernel (`netdev_features_strings`, `net/ethtool/common.c`).
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";

/// Has batches of datagrams (`UDP_SEGMENT`, udp(7)) cut before they leave by an interface, which neither TSO nor GSO
/// switches, so that each crosses its link by itself. A kernel without the feature (before 4.18) makes no such batches.
///
/// # Errors
/// `ENODEV`, `EPERM`, `EOPNOTSUPP` for a driver that cannot.
pub fn cut_datagrams(name: &str) -> Result<(), KernelError> {
    let at_work = || -> io::Result<bool> {
        let features = change::all_features(name)?;
        Ok(features.get(UDP_SEGMENTATION).is_some_and(|one| one.active))
    };
    let attempt = || {
        if !at_work()? {
            return Ok(());
        }
        change::switch_features(name, &[(UDP_SEGMENTATION.to_owned(), false)])?;
        // What a device has fixed is left as it is, without an error.
        if at_work()? {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        Ok(())
    };
    attempt().map_err(KernelError::of("switch off UDP segmentation of", name))
}

/// Switches the merging and the cutting of packets (TSO, GRO) of an interface on or off. Off, each segment on the link
/// is at most its MTU: GSO, which stays, cuts what the stack made large before it reaches the device. Batches of
/// datagrams stay until [`cut_datagrams`].
///
/// # Errors
/// `ENODEV`, `EPERM`, `EOPNOTSUPP` for a driver that cannot.
pub fn set_offloads(name: &str, on: bool) -> Result<(), KernelError> {
    let operation = if on {
        "switch on the offloads of"
    } else {
        "switch off the offloads of"
    };
    for command in [ETHTOOL_STSO, ETHTOOL_SGRO] {
        // struct ethtool_value: the command and its value.
        let mut request = question(command, 8);
        set_word(&mut request, 1, usize::from(on));
        call(name, &mut request).map_err(KernelError::of(operation, name))?;
    }
    Ok(())
}

/// A structure of so many bytes that begins with its command.
fn question(command: u32, length: usize) -> Vec<u8> {
    let mut request = vec![0; length];
    request[..4].copy_from_slice(&command.to_ne_bytes());
    request
}

/// The word of this number in a structure of words.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    crate::netlink::word(bytes, at * 4)
}

fn set_word(bytes: &mut [u8], at: usize, value: usize) {
    let value = u32::try_from(value).unwrap_or(u32::MAX);
    bytes[at * 4..at * 4 + 4].copy_from_slice(&value.to_ne_bytes());
}

/// Puts a question or an order to the driver.
///
/// `request` begins with its command and is at least as long as the structure of that command, with what the
/// kernel appends to it.
fn call(name: &str, request: &mut [u8]) -> io::Result<()> {
    let socket =
        std::net::UdpSocket::bind("0.0.0.0:0").or_else(|_| std::net::UdpSocket::bind("[::]:0"))?;
    // SAFETY: an ifreq of zeros is valid: a name and a union of plain data.
    let mut interface: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= interface.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in interface.ifr_name.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    interface.ifr_ifru.ifru_data = request.as_mut_ptr().cast();
    // SAFETY: the ifreq points to `request`; for the commands above the kernel reads and writes at most
    // the length of the structure that the command names (for link settings with the number of mask
    // words that the request names), and each buffer is that long; `facts` says how it knows the length of
    // those that the driver fills.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut interface) };
    check(result).map(drop)
}
