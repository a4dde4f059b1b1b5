#![expect(unsafe_code, reason = "recvmmsg takes pointers to pointers")]
//! Packets that wait in the kernel until somebody says what becomes of them (NFQUEUE,
//! `nfnetlink_queue.h`): what a rule of [`crate::forward_rules`] sends to a queue is reported here, with its
//! first bytes, and let go or dropped by its number.
//!
//! It never blocks. What the kernel could not tell because this side did not listen is dropped by the
//! kernel and counted ([`PacketQueue::overruns`]).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, netlink, send, sendto, socket_with,
    sockopt,
};

use crate::KernelError;
use crate::address::{array, ip_address};
use crate::netlink::{
    NLM_F_REQUEST, Netlink, Order, attributes, messages, push_attribute, push_message, word,
};
use crate::option::check;
use crate::socket::set_receive_buffer;

/// `NFNL_SUBSYS_QUEUE`, in the upper byte of a message's type.
const SUBSYSTEM: u16 = 3 << 8;
const PACKET: u16 = SUBSYSTEM;
const VERDICT: u16 = SUBSYSTEM | 1;
const CONFIG: u16 = SUBSYSTEM | 2;
const VERDICT_BATCH: u16 = SUBSYSTEM | 3;
const NLMSG_ERROR: u16 = 2;
// enum nfqnl_attr_type
const NFQA_PACKET_HDR: u16 = 1;
const NFQA_VERDICT_HDR: u16 = 2;
const NFQA_IFINDEX_INDEV: u16 = 5;
const NFQA_PAYLOAD: u16 = 10;
const NFQA_CAP_LEN: u16 = 13;
const NFQA_SKB_INFO: u16 = 14;
/// `NFQA_SKB_GSO`: the packet is to be cut further down.
const SKB_GSO: u32 = 2;
// enum nfqnl_attr_config
const NFQA_CFG_CMD: u16 = 1;
const NFQA_CFG_PARAMS: u16 = 2;
const NFQA_CFG_QUEUE_MAXLEN: u16 = 3;
const NFQA_CFG_MASK: u16 = 4;
const NFQA_CFG_FLAGS: u16 = 5;
const COMMAND_BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
/// `NFQA_CFG_F_GSO`: large packets come whole.
const FLAG_GSO: u32 = 4;
const NF_DROP: u32 = 0;
const NF_ACCEPT: u32 = 1;
/// Bytes of `struct nfgenmsg`: family u8, version u8, queue be16.
const GENERIC: usize = 4;
/// What a message needs beside the copied bytes of its packet: headers, and attributes of about 150
/// bytes.
const MESSAGE_ROOM: usize = 512;
/// Packets taken in one call.
const BATCH: usize = 64;
const MOST: libc::c_uint = 64;
/// Verdicts are handed over at this many bytes: one message to the kernel, one walk through its checks.
const FULL: usize = 4096;

/// How packets are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueOptions {
    /// Bytes of each packet that are copied, from its IP header on; at most 65,000.
    pub copied: u32,
    /// Whether a large packet (GSO) comes whole, or cut into its segments first.
    pub whole: bool,
    /// Packets that may wait in each queue; the kernel drops what comes on top.
    pub longest: u32,
    /// Receive buffer asked for, bytes; the kernel grants at most `net.core.rmem_max`.
    pub receive_buffer: usize,
}

/// A packet that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedPacket<'a> {
    /// The queue that it waits in.
    pub queue: u16,
    /// Its number there: the numbers of a queue ascend by one, and wrap.
    pub id: u32,
    /// Index of the interface that it came in by.
    pub interface: u32,
    /// Its whole length from the IP header on, bytes.
    pub length: u32,
    /// Whether it stands for several packets on a wire.
    pub is_large: bool,
    /// Its first bytes.
    pub start: &'a [u8],
}

/// A socket that listens to queues.
#[derive(Debug)]
pub struct PacketQueue {
    fd: OwnedFd,
    slot: usize,
    memory: Vec<u8>,
    out: Vec<u8>,
    /// The message that is being written.
    body: Vec<u8>,
    overruns: u64,
    refused: u64,
}

impl PacketQueue {
    /// Listens to the queues of these numbers, in the calling thread's network namespace.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_ADMIN` or where another listens; `EINVAL` or `EPROTONOSUPPORT` where the
    /// kernel has no queues (`CONFIG_NETFILTER_NETLINK_QUEUE`, module `nfnetlink_queue`).
    pub fn open(queues: &[u16], options: QueueOptions) -> Result<Self, KernelError> {
        let mut netlink = Netlink::open_to(Some(netlink::NETFILTER))
            .map_err(KernelError::of("open", "a netfilter socket"))?;
        for queue in queues {
            netlink
                .order(&settings(*queue, options))
                .map_err(KernelError::of("bind the packet queue", &queue.to_string()))?;
        }
        let fd = netlink.into_fd();
        // Before root's bound where we are root of the machine, else up to the bound.
        sockopt::set_socket_recv_buffer_size_force(&fd, options.receive_buffer)
            .or_else(|_| set_receive_buffer(&fd, options.receive_buffer))
            .map_err(KernelError::of(
                "set the receive buffer of",
                "a packet queue",
            ))?;
        let slot = (options.copied as usize + MESSAGE_ROOM).next_multiple_of(64);
        Ok(Self {
            fd,
            slot,
            memory: vec![0; slot * BATCH],
            out: Vec::with_capacity(2 * FULL),
            body: Vec::new(),
            overruns: 0,
            refused: 0,
        })
    }

    /// Hands over up to 64 packets that have come, and says how many messages there were; 0 is none.
    ///
    /// # Errors
    /// Those of `recvmmsg` except its words for "nothing" and "too late", which are counted.
    pub fn receive(&mut self, mut take: impl FnMut(QueuedPacket<'_>)) -> io::Result<usize> {
        let mut vectors = self.memory.chunks_exact_mut(self.slot).map(|slot| {
            let base = slot.as_mut_ptr().cast();
            libc::iovec {
                iov_base: base,
                iov_len: slot.len(),
            }
        });
        let mut vectors: [libc::iovec; BATCH] = std::array::from_fn(|_| {
            vectors.next().unwrap_or(libc::iovec {
                iov_base: std::ptr::null_mut(),
                iov_len: 0,
            })
        });
        let mut headers: [libc::mmsghdr; BATCH] = std::array::from_fn(|at| {
            // SAFETY: a message header of zeros is valid: null pointers with zero lengths.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = &raw mut vectors[at];
            header.msg_hdr.msg_iovlen = 1;
            header
        });
        // SAFETY: each header points to one vector, and each vector to a slot of `memory` of its own, all
        // of which live through the call; there are BATCH headers; no timeout is passed.
        let count = check(unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                headers.as_mut_ptr(),
                MOST,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        });
        let count = match count {
            Ok(count) => usize::try_from(count).unwrap_or(0),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                self.overruns += 1;
                return Ok(1);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                return Ok(0);
            }
            Err(error) => return Err(error),
        };
        for (header, slot) in headers
            .iter()
            .zip(self.memory.chunks_exact(self.slot))
            .take(count)
        {
            let length = usize::try_from(header.msg_len).unwrap_or(0).min(slot.len());
            for message in messages(&slot[..length]) {
                match message.kind {
                    PACKET => {
                        if let Some(packet) = parse(message.body) {
                            take(packet);
                        }
                    }
                    NLMSG_ERROR => self.refused += 1,
                    _ => {}
                }
            }
        }
        Ok(count)
    }

    /// Lets a packet go on.
    ///
    /// # Errors
    /// Those of [`flush`](Self::flush).
    pub fn accept(&mut self, queue: u16, id: u32) -> io::Result<()> {
        self.decide(VERDICT, queue, id, NF_ACCEPT, &[])
    }

    /// Lets a packet go on with other bytes in the place of all of its own.
    ///
    /// # Errors
    /// Those of [`flush`](Self::flush).
    pub fn accept_changed(&mut self, queue: u16, id: u32, packet: &[u8]) -> io::Result<()> {
        self.decide(VERDICT, queue, id, NF_ACCEPT, packet)
    }

    /// Lets all packets of a queue go on up to this one, oldest first.
    ///
    /// # Errors
    /// Those of [`flush`](Self::flush).
    pub fn accept_until(&mut self, queue: u16, id: u32) -> io::Result<()> {
        self.decide(VERDICT_BATCH, queue, id, NF_ACCEPT, &[])
    }

    /// Drops a packet.
    ///
    /// # Errors
    /// Those of [`flush`](Self::flush).
    pub fn discard(&mut self, queue: u16, id: u32) -> io::Result<()> {
        self.decide(VERDICT, queue, id, NF_DROP, &[])
    }

    /// Hands the verdicts to the kernel, which carries them out before this returns.
    ///
    /// # Errors
    /// Those of `send`; what the kernel says of a single verdict is counted ([`refused`](Self::refused)).
    pub fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let sent = send(&self.fd, &self.out, SendFlags::empty());
        self.out.clear();
        Ok(sent.map(drop)?)
    }

    /// Times that the kernel found the receive buffer full: packets were lost then that nobody decided on.
    pub const fn overruns(&self) -> u64 {
        self.overruns
    }

    /// Verdicts that the kernel refused, as for a packet that is gone with its interface.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    fn decide(
        &mut self,
        kind: u16,
        queue: u16,
        id: u32,
        verdict: u32,
        packet: &[u8],
    ) -> io::Result<()> {
        let mut header = [0; 8];
        header[..4].copy_from_slice(&verdict.to_be_bytes());
        header[4..].copy_from_slice(&id.to_be_bytes());
        self.body.clear();
        self.body.extend(generic(queue));
        push_attribute(&mut self.body, NFQA_VERDICT_HDR, &header);
        if !packet.is_empty() {
            push_attribute(&mut self.body, NFQA_PAYLOAD, packet);
        }
        push_message(&mut self.out, kind, NLM_F_REQUEST, 0, &self.body)?;
        if self.out.len() >= FULL {
            self.flush()?;
        }
        Ok(())
    }
}

impl AsFd for PacketQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn generic(queue: u16) -> [u8; GENERIC] {
    let [high, low] = queue.to_be_bytes();
    [0, 0, high, low]
}

fn settings(queue: u16, options: QueueOptions) -> Vec<Order> {
    let order = |kind, value: &[u8]| {
        let mut body = generic(queue).to_vec();
        push_attribute(&mut body, kind, value);
        body
    };
    let mut parameters = options.copied.to_be_bytes().to_vec();
    parameters.push(COPY_PACKET);
    let flags = if options.whole { FLAG_GSO } else { 0 };
    let mut flag = order(NFQA_CFG_MASK, &FLAG_GSO.to_be_bytes());
    push_attribute(&mut flag, NFQA_CFG_FLAGS, &flags.to_be_bytes());
    [
        // struct nfqnl_msg_config_cmd: command u8, padding u8, family be16.
        order(NFQA_CFG_CMD, &[COMMAND_BIND, 0, 0, 0]),
        order(NFQA_CFG_PARAMS, &parameters),
        order(NFQA_CFG_QUEUE_MAXLEN, &options.longest.to_be_bytes()),
        flag,
    ]
    .into_iter()
    .map(|body| Order {
        kind: CONFIG,
        flags: 0,
        answered: true,
        body,
    })
    .collect()
}

/// `struct nfgenmsg`, then attributes, all in the network's order.
fn parse(body: &[u8]) -> Option<QueuedPacket<'_>> {
    let big = |value: &[u8]| word(value, 0).map(u32::from_be);
    let (mut id, mut interface, mut whole, mut info) = (None, 0, None, 0);
    let mut start: &[u8] = &[];
    for (kind, value) in attributes(body.get(GENERIC..)?) {
        match kind {
            NFQA_PACKET_HDR => id = big(value),
            NFQA_IFINDEX_INDEV => interface = big(value).unwrap_or(0),
            NFQA_PAYLOAD => start = value,
            NFQA_CAP_LEN => whole = big(value),
            NFQA_SKB_INFO => info = big(value).unwrap_or(0),
            _ => {}
        }
    }
    Some(QueuedPacket {
        queue: u16::from_be_bytes(array(body, 2)?),
        id: id?,
        interface,
        // Said only where the copy is shorter than the packet.
        length: whole.unwrap_or_else(|| u32::try_from(start.len()).unwrap_or(u32::MAX)),
        is_large: info & SKB_GSO != 0,
        start,
    })
}

/// Packets that the kernel dropped before these queues' listener heard of them, in the calling thread's
/// network namespace: the queue was full, or the listener's buffer was. `None` where the kernel does not
/// say (`/proc/net/netfilter/nfnetlink_queue`), or a queue has no listener any more.
pub fn dropped(queues: &[u16]) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue").ok()?;
    queues.iter().map(|queue| dropped_in(&text, *queue)).sum()
}

/// A line a queue: number, listener, packets waiting, copy mode, copied bytes, dropped by the queue, dropped
/// by the listener's buffer, last number, 1.
fn dropped_in(text: &str, queue: u16) -> Option<u64> {
    let fields = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|fields| fields.first().and_then(|field| field.parse().ok()) == Some(queue))?;
    let count = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(count(5)? + count(6)?)
}

/// A socket that sends IP packets as they are given, with their headers, from the calling thread's
/// network namespace: past the rules for forwarded packets.
#[derive(Debug)]
pub struct RawSender {
    v4: OwnedFd,
    v6: OwnedFd,
}

impl RawSender {
    /// Opens it.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_RAW`; `EAFNOSUPPORT` where the kernel lacks IPv6.
    pub fn open() -> Result<Self, KernelError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let open = |family| socket_with(family, SocketType::RAW, flags, Some(ipproto::RAW));
        let attempt = || -> io::Result<Self> {
            Ok(Self {
                v4: open(AddressFamily::INET)?,
                v6: open(AddressFamily::INET6)?,
            })
        };
        attempt().map_err(KernelError::of("open", "a raw socket"))
    }

    /// Sends a whole packet, IPv4 or IPv6 by its first bits, to the destination in its header.
    ///
    /// # Errors
    /// `InvalidInput` for what is no IP packet; `WouldBlock`, `EMSGSIZE`, `ENETUNREACH` …
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        let (fd, destination) = match packet.first().map(|first| first >> 4) {
            Some(4) => (&self.v4, packet.get(16..20)),
            Some(6) => (&self.v6, packet.get(24..40)),
            _ => (&self.v4, None),
        };
        let destination = destination.and_then(ip_address);
        let destination = SocketAddr::new(destination.ok_or(io::ErrorKind::InvalidInput)?, 0);
        sendto(fd, packet, SendFlags::NOSIGNAL, &destination)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(length: Option<u32>, info: u32) -> Vec<u8> {
        let mut body = vec![2, 0, 0, 7];
        push_attribute(&mut body, NFQA_PACKET_HDR, &[0, 0, 1, 0, 8, 0, 2]);
        push_attribute(&mut body, NFQA_IFINDEX_INDEV, &3_u32.to_be_bytes());
        push_attribute(&mut body, NFQA_SKB_INFO, &info.to_be_bytes());
        if let Some(length) = length {
            push_attribute(&mut body, NFQA_CAP_LEN, &length.to_be_bytes());
        }
        push_attribute(&mut body, NFQA_PAYLOAD, &[0x45; 64]);
        body
    }

    #[test]
    fn a_packet_is_read_with_its_whole_length() {
        let body = told(Some(60_000), SKB_GSO);
        let packet = parse(&body).unwrap();
        assert_eq!((packet.queue, packet.id, packet.interface), (7, 256, 3));
        assert_eq!(
            (packet.length, packet.is_large, packet.start.len()),
            (60_000, true, 64)
        );
        let body = told(None, 0);
        let packet = parse(&body).unwrap();
        assert_eq!((packet.length, packet.is_large), (64, false));
    }

    #[test]
    fn drops_are_summed_by_queue() {
        let text = "    0  18437     0 2    68     3     4     1000  1\n    1  18437     0 2    68     0     1       10  1\n";
        assert_eq!(dropped_in(text, 0), Some(7));
        assert_eq!(dropped_in(text, 1), Some(1));
        assert_eq!(dropped_in(text, 2), None);
        assert_eq!(dropped_in("0 1 2", 0), None);
        assert_eq!(dropped(&[9]), None);
    }

    #[test]
    fn cut_messages_are_no_packets() {
        let body = told(None, 0);
        for end in 0..15 {
            assert_eq!(parse(&body[..end]), None);
        }
    }
}
