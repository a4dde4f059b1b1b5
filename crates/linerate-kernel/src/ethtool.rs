#![expect(unsafe_code, reason = "ioctl takes pointers to pointers")]
//! The few facts of a device that ethtool alone knows, asked in the calling thread's network namespace.
//!
//! Not from /sys/class/net: a sysfs mounted in another namespace shows that namespace's devices.

use std::os::fd::AsRawFd;

use crate::address::array;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
/// Bytes of `struct ethtool_drvinfo`: the driver's name is the 32 bytes behind the command.
const DRIVER_LENGTH: usize = 196;
/// Bytes of `struct ethtool_link_settings` before the masks, and its longest: 3 masks of 127 words.
const LINK_LENGTH: usize = 48 + 3 * 4 * 127;
/// Where its number of mask words stands (i8), and its speed (u32, Mbit/s).
const MASK_WORDS: usize = 15;
const SPEED: usize = 4;

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

fn ask<const N: usize>(name: &str, request: &mut [u8; N]) -> Option<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")
        .or_else(|_| std::net::UdpSocket::bind("[::]:0"))
        .ok()?;
    // SAFETY: an ifreq of zeros is valid: a name and a union of plain data.
    let mut interface: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= interface.ifr_name.len() {
        return None;
    }
    for (to, from) in interface.ifr_name.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    interface.ifr_ifru.ifru_data = request.as_mut_ptr().cast();
    // SAFETY: the ifreq points to `request`; for the two commands above the kernel reads and writes
    // at most the length of the structure that the command names (for link settings with the number
    // of mask words that the request names), and both buffers are that long.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut interface) };
    (result == 0).then_some(())
}
