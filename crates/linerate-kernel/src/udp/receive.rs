#![expect(unsafe_code, reason = "recvmmsg takes raw message headers")]
//! Receiving: many messages in one system call, into memory that is kept.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use linerate_model::units::Nanos;

use crate::address::{LONGEST, array, ip_address, socket_address};
use crate::control::{self, messages};
use crate::option::{check, clamp_int};

/// Where the kernel writes beside the data.
#[derive(Clone, Copy)]
#[repr(C)]
struct Beside {
    control: [u64; control::ROOM / 8],
    /// As `sockaddr_storage`: 128 bytes, aligned.
    source: [u64; 16],
}

/// Room for a batch of messages, used again and again.
///
/// For a measured flow with GRO, `Receiver::new(16, 65_536)`; for a listener, `Receiver::new(16, 2_048)`.
/// Memory that no message ever fills is never touched.
pub struct Receiver {
    data: Vec<u8>,
    each: usize,
    beside: Vec<Beside>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    received: usize,
}

// SAFETY: the raw pointers in `vectors` and `headers` point to the receiver's own memory, are
// written anew before each system call and never read in between.
unsafe impl Send for Receiver {}

/// One message of the last [`Receiver::receive`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The datagrams, one behind the other.
    pub data: &'a [u8],
    /// Bytes of each datagram, the last one possibly shorter; the whole length without GRO.
    pub segment: usize,
    /// Who sent it, as the kernel writes it: IPv4 on an IPv6 socket is mapped.
    pub source: Option<SocketAddr>,
    /// Where it was sent to, with [`super::enable_packet_info`]; IPv4 on an IPv6 socket is mapped.
    pub destination: Option<IpAddr>,
    /// Buffers dropped at the socket since it was made, when this message was queued; 32 bits that
    /// wrap. `None` without [`super::enable_drop_counter`]; with it `None` means 0, because the
    /// kernel sends the counter from its first drop on (`sock_recv_cmsgs`).
    pub drops: Option<u32>,
    /// When the kernel took it from the interface, ns since 1970 on the wall clock, with
    /// [`super::enable_arrival_times`].
    pub arrived: Option<Nanos>,
    /// The message was longer than the room for it, and its end is lost.
    pub truncated: bool,
}

impl<'a> Message<'a> {
    /// How many datagrams it holds, at least 1: an empty datagram is one.
    pub fn datagram_count(&self) -> usize {
        if self.segment == 0 {
            1
        } else {
            self.data.len().div_ceil(self.segment).max(1)
        }
    }

    /// The datagrams, in the order in which they came.
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let (data, segment) = (self.data, self.segment);
        (0..self.datagram_count()).map(move |index| {
            let begin = index * segment;
            &data[begin..data.len().min(begin + segment)]
        })
    }
}

impl Receiver {
    /// Room for `messages` (at least 1) of up to `bytes` each.
    pub fn new(messages: usize, bytes: usize) -> Self {
        let messages = messages.max(1);
        // SAFETY: headers and vectors of zeros are valid: null pointers with zero lengths.
        let (header, vector) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        Self {
            data: vec![0; messages * bytes],
            each: bytes,
            beside: vec![
                Beside {
                    control: [0; control::ROOM / 8],
                    source: [0; 16]
                };
                messages
            ],
            vectors: vec![vector; messages],
            headers: vec![header; messages],
            received: 0,
        }
    }

    /// Takes what is there, without waiting, and says how many messages came: at least 1.
    ///
    /// # Errors
    /// `WouldBlock` where nothing is there; `ConnectionRefused` on a connected socket whose peer's
    /// port is closed. After an error there are no messages.
    pub fn receive(&mut self, fd: impl AsFd) -> io::Result<usize> {
        self.received = 0;
        self.point_headers();
        let count = libc::c_uint::try_from(clamp_int(self.headers.len())).unwrap_or(0);
        // SAFETY: `point_headers` made every header point to its own part of `data` and `beside`,
        // with their sizes; `self` is borrowed mutably meanwhile. No timeout is passed.
        let received = check(unsafe {
            libc::recvmmsg(
                fd.as_fd().as_raw_fd(),
                self.headers.as_mut_ptr(),
                count,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        })?;
        self.received = usize::try_from(received).unwrap_or(0);
        Ok(self.received)
    }

    /// The kernel overwrote lengths and flags, so they are set before each call.
    fn point_headers(&mut self) {
        let data = self.data.as_mut_ptr();
        for (index, header) in self.headers.iter_mut().enumerate() {
            let vector = &mut self.vectors[index];
            let beside = &mut self.beside[index];
            // SAFETY: `data` holds `headers.len()` parts of `each` bytes.
            vector.iov_base = unsafe { data.add(index * self.each) }.cast();
            vector.iov_len = self.each;
            header.msg_len = 0;
            let header = &mut header.msg_hdr;
            header.msg_name = beside.source.as_mut_ptr().cast();
            header.msg_namelen = 128;
            header.msg_iov = std::ptr::from_mut(vector);
            header.msg_iovlen = 1;
            header.msg_control = beside.control.as_mut_ptr().cast();
            header.msg_controllen = control::ROOM as _;
            header.msg_flags = 0;
        }
    }

    /// How many messages the last [`Receiver::receive`] took.
    pub fn count(&self) -> usize {
        self.received
    }

    /// A message of the last [`Receiver::receive`].
    ///
    /// # Panics
    /// Where `index` is not below what that call returned.
    pub fn message(&self, index: usize) -> Message<'_> {
        assert!(
            index < self.received,
            "message {index} of {} was requested",
            self.received
        );
        let header = &self.headers[index];
        let length = (header.msg_len as usize).min(self.each);
        let data = &self.data[index * self.each..][..length];
        let beside = &self.beside[index];
        let control = beside.control.map(u64::to_ne_bytes);
        let control_length = control::length(&header.msg_hdr);
        let mut message = Message {
            data,
            segment: length,
            source: source(&beside.source, header.msg_hdr.msg_namelen as usize),
            destination: None,
            drops: None,
            arrived: None,
            truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        };
        message.read_control(&control.as_flattened()[..control_length]);
        message
    }

    /// The messages of the last [`Receiver::receive`].
    pub fn messages(&self) -> impl ExactSizeIterator<Item = Message<'_>> {
        (0..self.received).map(|index| self.message(index))
    }
}

impl Message<'_> {
    fn read_control(&mut self, control: &[u8]) {
        for beside in messages(control) {
            match (beside.level, beside.kind) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let segment = beside.word().and_then(|word| usize::try_from(word).ok());
                    self.segment = segment.filter(|size| *size > 0).unwrap_or(self.segment);
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => self.drops = beside.word(),
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => self.arrived = instant(beside.data),
                // struct in_pktinfo: interface, local address, the header's destination.
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    self.destination = array::<4>(beside.data, 8).map(IpAddr::from);
                }
                // struct in6_pktinfo: address, interface.
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    self.destination = beside.data.get(..16).and_then(ip_address);
                }
                _ => {}
            }
        }
    }
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver")
            .field("messages", &self.headers.len())
            .field("bytes_each", &self.each)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

/// Of a `struct timespec` of two words.
fn instant(data: &[u8]) -> Option<Nanos> {
    let seconds = u64::from_ne_bytes(array(data, 0)?);
    let nanos = u64::from_ne_bytes(array(data, 8)?);
    Some(Nanos(
        seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?,
    ))
}

fn source(raw: &[u64; 16], length: usize) -> Option<SocketAddr> {
    let mut bytes = [0; LONGEST.next_multiple_of(8)];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(raw) {
        chunk.copy_from_slice(&word.to_ne_bytes());
    }
    socket_address(&bytes[..length.min(LONGEST)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(data: &[u8], segment: usize) -> Message<'_> {
        Message {
            data,
            segment,
            source: None,
            destination: None,
            drops: None,
            arrived: None,
            truncated: false,
        }
    }

    #[test]
    fn a_message_is_cut_into_its_datagrams() {
        let cut = |data: &[u8], segment| -> Vec<usize> {
            message(data, segment)
                .datagrams()
                .map(<[u8]>::len)
                .collect()
        };
        assert_eq!(cut(&[0; 7], 3), [3, 3, 1]);
        assert_eq!(cut(&[0; 6], 3), [3, 3]);
        assert_eq!(cut(&[], 0), [0]);
        assert_eq!(cut(&[0; 2], 9), [2]);
    }

    #[test]
    fn a_time_of_arrival_is_read_whole_or_not_at_all() {
        let mut raw = 3_u64.to_ne_bytes().to_vec();
        raw.extend(7_u64.to_ne_bytes());
        assert_eq!(instant(&raw), Some(Nanos(3_000_000_007)));
        assert_eq!(instant(&raw[..12]), None);
        assert_eq!(instant(&[0xff; 16]), None);
    }

    #[test]
    fn a_hostile_control_message_changes_nothing() {
        let mut one = message(&[0; 10], 10);
        let mut raw = (control::HEADER + 4).to_ne_bytes().to_vec();
        raw.extend(libc::SOL_UDP.to_ne_bytes());
        raw.extend(libc::UDP_GRO.to_ne_bytes());
        raw.extend(0_u32.to_ne_bytes());
        one.read_control(&raw);
        one.read_control(&raw[..control::HEADER + 2]);
        assert_eq!(one.datagram_count(), 1);
    }

    #[test]
    #[should_panic(expected = "message 0 of 0")]
    fn there_is_no_message_before_the_first() {
        Receiver::new(1, 1).message(0);
    }
}
