#![expect(unsafe_code, reason = "ioctl takes pointers to pointers")]
//! The few facts and switches of a device that ethtool alone knows, in the calling thread's network namespace.
//!
//! Not from /sys/class/net: a sysfs mounted in another namespace shows that namespace's devices.

use std::io;
use std::os::fd::AsRawFd;

use crate::address::array;
use crate::option::check;

pub(crate) mod change;
pub(crate) mod facts;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGRO: u32 = 0x2c;
/// Bytes of `struct ethtool_drvinfo`: the driver's name is the 32 bytes behind the command.
const DRIVER_LENGTH: usize = 196;
/// Bytes of `struct ethtool_link_settings` before the masks, and its longest: 3 masks of 127 words.
const LINK_LENGTH: usize = 48 + 3 * 4 * 127;
/// Where its number of mask words stands (i8), and its speed (u32, Mbit/s).
const MASK_WORDS: usize = 15;
const SPEED: usize = 4;
/// `tx-udp-segmentation`, in the words of the kernel (`netdev_features_strings`, `net/ethtool/common.c`).
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";

/// The driver's name; `None` where the device has none or there is no such device.
pub(crate) fn driver(name: &str) -> Option<String> {
    let mut request = [0_u8; DRIVER_LENGTH];
    request[..4].copy_from_slice(&ETHTOOL_GDRVINFO.to_ne_bytes());
    ask(name, &mut request)?;
    let text = crate::netlink::text(&request[4..36]);
    (!text.is_empty()).then_some(text)
}

/// The link's speed, Mbit/s; `None` where the device has none or does not know it (link down).
pub(crate) fn speed_mbps(name: &str) -> Option<u32> {
    let mut request = [0_u8; LINK_LENGTH];
    request[..4].copy_from_slice(&ETHTOOL_GLINKSETTINGS.to_ne_bytes());
    // The first question is answered by the number of mask words, negated; the second has to name it.
    ask(name, &mut request)?;
    let words = i8::from_ne_bytes(array(&request, MASK_WORDS)?)
        .checked_neg()
        .filter(|n| *n > 0)?;
    request = [0; LINK_LENGTH];
    request[..4].copy_from_slice(&ETHTOOL_GLINKSETTINGS.to_ne_bytes());
    request[MASK_WORDS] = words.cast_unsigned();
    ask(name, &mut request)?;
    let speed = u32::from_ne_bytes(array(&request, SPEED)?);
    (speed != 0 && speed != u32::MAX).then_some(speed)
}

/// Has the stack cut batches of datagrams before they reach the device, which neither TSO nor GSO switches. A kernel
/// without the feature (before 4.18) makes no such batches.
pub(crate) fn cut_datagrams(name: &str) -> io::Result<()> {
    let at_work = || -> io::Result<bool> {
        let features = change::features(name)?;
        Ok(features.get(UDP_SEGMENTATION).is_some_and(|one| one.active))
    };
    if !at_work()? {
        return Ok(());
    }
    change::set_features(name, &[(UDP_SEGMENTATION.to_owned(), false)])?;
    // What a device has fixed is left as it is, without an error.
    if at_work()? {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    Ok(())
}

/// Switches TSO and GRO. GSO, which cuts what the stack made large before it reaches the device, stays.
pub(crate) fn set_offloads(name: &str, on: bool) -> io::Result<()> {
    for command in [ETHTOOL_STSO, ETHTOOL_SGRO] {
        // struct ethtool_value: the command and its value.
        let mut request = [0_u8; 8];
        request[..4].copy_from_slice(&command.to_ne_bytes());
        request[4..].copy_from_slice(&u32::from(on).to_ne_bytes());
        call(name, &mut request)?;
    }
    Ok(())
}

fn ask(name: &str, request: &mut [u8]) -> Option<()> {
    call(name, request).ok()
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
