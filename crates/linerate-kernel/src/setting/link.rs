//! Settings of an interface that rtnetlink holds.

use std::io;

use crate::KernelError;
use crate::netlink::{order, push_attribute};
use crate::route::index_or_error;

const LINK_HEADER: usize = 16;
// include/uapi/linux/if_link.h
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_GSO_MAX_SEGS: u16 = 40;

/// Sets an interface's largest packet, IP header included, bytes.
///
/// Interfaces that stand on it (VLANs) are made smaller with it by the kernel, and never larger again.
///
/// # Errors
/// `ENODEV`, `EPERM`; `EINVAL` or `ERANGE` beyond what the driver or the interface below can.
pub fn set_mtu(interface: &str, bytes: u32) -> Result<(), KernelError> {
    set(interface, IFLA_MTU, bytes).map_err(KernelError::of("set the MTU of", interface))
}

/// Sets the length of an interface's transmit queue, packets.
///
/// # Errors
/// `ENODEV`, `EPERM`.
pub fn set_tx_queue_len(interface: &str, packets: u32) -> Result<(), KernelError> {
    set(interface, IFLA_TXQLEN, packets)
        .map_err(KernelError::of("set the transmit queue of", interface))
}

/// Sets how many segments the stack hands over in one piece: with 1, TCP sends single packets, and what counts packets
/// on the way out counts those of the wire. Linux 4.16.
///
/// # Errors
/// `ENODEV`, `EPERM`; `EINVAL` beyond what the driver can.
pub fn set_gso_max_segments(interface: &str, segments: u32) -> Result<(), KernelError> {
    set(interface, IFLA_GSO_MAX_SEGS, segments).map_err(KernelError::of(
        "set the longest segmentation batch of",
        interface,
    ))
}

/// Gives an interface another name.
///
/// # Errors
/// `EEXIST` for a name that is taken, `EBUSY` for an interface that is up before Linux 6.2; `ENODEV`, `EPERM`.
pub fn rename(interface: &str, name: &str) -> Result<(), KernelError> {
    let attempt = || {
        let mut text = name.as_bytes().to_vec();
        text.push(0);
        let mut body = message(index_or_error(interface)?, None);
        push_attribute(&mut body, IFLA_IFNAME, &text);
        order(libc::RTM_NEWLINK, 0, body)
    };
    attempt().map_err(KernelError::of("rename", interface))
}

/// Brings an interface up or down.
///
/// # Errors
/// `ENODEV`, `EPERM`; `ENETDOWN` for a VLAN whose interface below is down.
pub fn set_up(interface: &str, up: bool) -> Result<(), KernelError> {
    let attempt = || {
        let mut body = message(index_or_error(interface)?, None);
        let flag = libc::IFF_UP.cast_unsigned().to_ne_bytes();
        // Flags at 8, and at 12 which of them change.
        if up {
            body[8..12].copy_from_slice(&flag);
        }
        body[12..16].copy_from_slice(&flag);
        order(libc::RTM_NEWLINK, 0, body)
    };
    attempt().map_err(KernelError::of(
        if up { "bring up" } else { "bring down" },
        interface,
    ))
}

fn set(interface: &str, attribute: u16, value: u32) -> io::Result<()> {
    let body = message(index_or_error(interface)?, Some((attribute, value)));
    order(libc::RTM_NEWLINK, 0, body)
}

/// `struct ifinfomsg` with the index at 4; flags stay as they are (no change in their mask).
fn message(index: u32, change: Option<(u16, u32)>) -> Vec<u8> {
    let mut body = vec![0; LINK_HEADER];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    if let Some((attribute, value)) = change {
        push_attribute(&mut body, attribute, &value.to_ne_bytes());
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_index_and_one_attribute() {
        let body = message(7, Some((IFLA_MTU, 9000)));
        assert_eq!(body.len(), 16 + 8);
        assert_eq!(body[4..8], 7_u32.to_ne_bytes());
        assert_eq!(body[8..16], [0; 8]);
        assert_eq!(
            body[16..20],
            [8_u16.to_ne_bytes(), 4_u16.to_ne_bytes()].concat()
        );
        assert_eq!(body[20..], 9000_u32.to_ne_bytes());
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let error = set_mtu("no-such-link", 1500).unwrap_err();
        assert_eq!(error.code(), Some(libc::ENODEV));
        assert!(error.to_string().contains("no-such-link"));
    }
}
