//! Questions and orders over netlink: one request, its answers, their attributes.
//!
//! Written here and not taken from the netlink-packet crates: those decode a whole message into
//! types and refuse it whole where a kernel newer than the crate sends one attribute in a new shape.
//! A counter must not vanish for that, so attributes are read one by one, and unknown ones skipped.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use linerate_model::units::Nanos;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send,
    socket_with,
};

use crate::address::array;
use crate::clock;
use crate::error::Explained;
use crate::option;

/// An answer is at most a page or 32 KiB; room for twice that.
const ROOM: usize = 65_536;
/// Bytes of `struct nlmsghdr`: length u32, type u16, flags u16, sequence u32, port u32.
const HEADER: usize = 16;
/// The kernel answers at once; this is against a kernel that does not.
const PATIENCE: Duration = Duration::from_secs(1);
/// Answers to one request are read in at most so many pieces: 10,000 × 32 KiB.
const MOST_PIECES: usize = 10_000;

const NLMSG_NOOP: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLMSGERR_ATTR_MSG: u16 = 1;
/// `NLM_F_CAPPED | NLM_F_ACK_TLVS`: of the request there is the head alone, and attributes follow.
const EXPLAINED: u16 = 0x300;
pub(crate) const NLM_F_REQUEST: u16 = 1;
const NLM_F_MULTI: u16 = 2;
const NLM_F_ACK: u16 = 4;
/// The list changed while it was told: something may be missing from it or in it twice.
const NLM_F_DUMP_INTR: u16 = 0x10;
/// Put it in the place of what is there; fail where something is; make it where nothing is.
pub(crate) const REPLACE: u16 = 0x100;
pub(crate) const EXCLUSIVE: u16 = 0x200;
pub(crate) const CREATE: u16 = 0x400;
const NLM_F_DUMP: u16 = 0x300;
/// Bits of an attribute's type that are no type: nested, byte order.
const ATTRIBUTE_TYPE: u16 = 0x3fff;
const NESTED: u16 = 0x8000;

/// One object or all of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    One,
    All,
}

/// A socket to the kernel, with the memory for its answers.
#[derive(Debug)]
pub(crate) struct Netlink {
    fd: OwnedFd,
    sequence: u32,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Netlink {
    /// A socket to rtnetlink in the calling thread's network namespace; it stays there.
    pub(crate) fn open() -> io::Result<Self> {
        Self::open_to(None)
    }

    /// The same to another part of the kernel: `NETLINK_NETFILTER` … `None` is rtnetlink.
    pub(crate) fn open_to(protocol: Option<Protocol>) -> io::Result<Self> {
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        let fd = socket_with(family, kind, SocketFlags::CLOEXEC, protocol)?;
        set_socket_timeout(&fd, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self {
            fd,
            sequence: 0,
            request: Vec::new(),
            answer: vec![0; ROOM],
        })
    }

    /// The same as [`open`](Self::open); refusals come with the kernel's words, where it has any (Linux 4.12).
    pub(crate) fn open_explained() -> io::Result<Self> {
        let netlink = Self::open()?;
        // Without the request in the answer, which would stand before the words.
        for kind in [libc::NETLINK_CAP_ACK, libc::NETLINK_EXT_ACK] {
            option::set(&netlink.fd, libc::SOL_NETLINK, kind, 1_i32)?;
        }
        Ok(netlink)
    }

    /// The socket, for a conversation that goes on by itself.
    pub(crate) fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// Sends a request of type `kind` and hands the body of each answer to `take`.
    ///
    /// Errors: the kernel's, `ENODEV` or `ENETUNREACH` for what does not exist; `WouldBlock` after a
    /// second without an answer.
    pub(crate) fn ask(
        &mut self,
        kind: u16,
        ask: Ask,
        body: &[u8],
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.send(kind, ask, body)?;
        for _ in 0..MOST_PIECES {
            let length = self.receive()?;
            for message in messages(&self.answer[..length]) {
                // An answer to an earlier question that was given up.
                if message.sequence != self.sequence {
                    continue;
                }
                match message.kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => return error_of(&message),
                    NLMSG_NOOP => {}
                    _ => take(message.body),
                }
                if ask == Ask::One && message.flags & NLM_F_MULTI == 0 {
                    return Ok(());
                }
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    /// Asks for all objects of a kind and hands each to `take` with the instant at which the kernel looked;
    /// whether the list is whole (false: it changed meanwhile, `NLM_F_DUMP_INTR`).
    ///
    /// The kernel fills the first piece while it takes the request, and each further one while it hands over
    /// the piece before (`netlink_dump`), so an object's instant is the end of that call.
    ///
    /// Errors: the kernel's, also for a list that it broke off; `WouldBlock` after a second without an answer.
    pub(crate) fn dump(
        &mut self,
        kind: u16,
        body: &[u8],
        mut take: impl FnMut(Nanos, &[u8]),
    ) -> io::Result<bool> {
        self.send(kind, Ask::All, body)?;
        let mut looked = clock::monotonic();
        let mut whole = true;
        for _ in 0..MOST_PIECES {
            let length = self.receive()?;
            let next = clock::monotonic();
            for message in messages(&self.answer[..length]) {
                if message.sequence != self.sequence {
                    continue;
                }
                whole &= message.flags & NLM_F_DUMP_INTR == 0;
                match message.kind {
                    // Its body is the length told, or what broke the list off.
                    NLMSG_DONE => return done(message.body).map(|()| whole),
                    NLMSG_ERROR => return error_of(&message).map(|()| whole),
                    NLMSG_NOOP => {}
                    _ => take(looked, message.body),
                }
            }
            looked = next;
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    /// Hears from now on what the kernel tells to these groups, a bit each.
    pub(crate) fn join(&self, groups: u32) -> io::Result<()> {
        Ok(bind(&self.fd, &SocketAddrNetlink::new(0, groups))?)
    }

    /// Hands over what the groups were told since the last time, without waiting: whether there was anything.
    ///
    /// Errors: `ENOBUFS` where more was told than the socket holds; what came since then follows.
    pub(crate) fn heard(&mut self, mut take: impl FnMut(u16, &[u8])) -> io::Result<bool> {
        match self.receive_with(RecvFlags::DONTWAIT) {
            Ok(length) => {
                for message in messages(&self.answer[..length]) {
                    take(message.kind, message.body);
                }
                Ok(length > 0)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives orders, all in one piece, and waits until the kernel has said of each that it is done. With
    /// none done before it, nfnetlink's batches are all or nothing.
    ///
    /// Errors: the kernel's for the first that it refuses; `WouldBlock` after a second without an answer.
    pub(crate) fn order(&mut self, orders: &[Order]) -> io::Result<()> {
        let first = self.sequence.wrapping_add(1);
        self.request.clear();
        for order in orders {
            self.sequence = self.sequence.wrapping_add(1);
            let flags = NLM_F_REQUEST | order.flags | if order.answered { NLM_F_ACK } else { 0 };
            push_message(
                &mut self.request,
                order.kind,
                flags,
                self.sequence,
                &order.body,
            )?;
        }
        send(&self.fd, &self.request, SendFlags::empty())?;
        let mut missing = orders.iter().filter(|order| order.answered).count();
        for _ in 0..MOST_PIECES {
            if missing == 0 {
                return Ok(());
            }
            let length = self.receive()?;
            for message in messages(&self.answer[..length]) {
                let ours = self.sequence.wrapping_sub(message.sequence)
                    <= self.sequence.wrapping_sub(first);
                if ours && message.kind == NLMSG_ERROR {
                    error_of(&message)?;
                    missing = missing.saturating_sub(1);
                }
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    fn send(&mut self, kind: u16, ask: Ask, body: &[u8]) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let flags = NLM_F_REQUEST | if ask == Ask::All { NLM_F_DUMP } else { 0 };
        self.request.clear();
        push_message(&mut self.request, kind, flags, self.sequence, body)?;
        // An unconnected netlink socket sends to the kernel.
        send(&self.fd, &self.request, SendFlags::empty())?;
        Ok(())
    }

    /// One piece of the answer into `self.answer`; its length.
    fn receive(&mut self) -> io::Result<usize> {
        self.receive_with(RecvFlags::empty())
    }

    fn receive_with(&mut self, flags: RecvFlags) -> io::Result<usize> {
        match recv(
            &self.fd,
            self.answer.as_mut_slice(),
            flags | RecvFlags::TRUNC,
        ) {
            Ok((_, length)) if length > self.answer.len() => Err(io::ErrorKind::InvalidData.into()),
            Ok((_, length)) => Ok(length),
            // The caller's loop is bounded, so a storm of signals is as well.
            Err(Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A change for the kernel to make.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) kind: u16,
    /// [`CREATE`], [`EXCLUSIVE`].
    pub(crate) flags: u16,
    /// Whether the kernel answers it: all but the brackets of a batch.
    pub(crate) answered: bool,
    pub(crate) body: Vec<u8>,
}

/// Gives rtnetlink one order on a socket of its own; a refusal comes with the kernel's words, where it has any.
///
/// Errors: those of [`Netlink::order`].
pub(crate) fn order(kind: u16, flags: u16, body: Vec<u8>) -> io::Result<()> {
    Netlink::open_explained()?.order(&[Order {
        kind,
        flags,
        answered: true,
        body,
    }])
}

/// Appends a message with its header.
pub(crate) fn push_message(
    to: &mut Vec<u8>,
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &[u8],
) -> io::Result<()> {
    let length = u32::try_from(HEADER + body.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(flags.to_ne_bytes());
    to.extend(sequence.to_ne_bytes());
    to.extend([0; 4]);
    to.extend(body);
    to.resize(to.len().next_multiple_of(4), 0);
    Ok(())
}

/// The object is not there: no such device, no route.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    let absent = [
        libc::ENODEV,
        libc::ENETUNREACH,
        libc::EHOSTUNREACH,
        libc::ENOENT,
        libc::ESRCH,
    ];
    error
        .raw_os_error()
        .is_some_and(|code| absent.contains(&code))
}

/// A message from the kernel.
pub(crate) struct Received<'a> {
    pub(crate) kind: u16,
    flags: u16,
    sequence: u32,
    pub(crate) body: &'a [u8],
}

/// The messages in a piece; it ends at the first that is cut off.
pub(crate) fn messages(bytes: &[u8]) -> impl Iterator<Item = Received<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::try_from(u32::from_ne_bytes(array(rest, 0)?)).ok()?;
        let message = Received {
            kind: u16::from_ne_bytes(array(rest, 4)?),
            flags: u16::from_ne_bytes(array(rest, 6)?),
            sequence: u32::from_ne_bytes(array(rest, 8)?),
            body: rest.get(HEADER..length)?,
        };
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

fn done(body: &[u8]) -> io::Result<()> {
    match array(body, 0).map(i32::from_ne_bytes) {
        Some(code) if code < 0 => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        _ => Ok(()),
    }
}

/// `struct nlmsgerr`: a negative number, the head of the request; then attributes, where they were asked for.
fn error_of(message: &Received<'_>) -> io::Result<()> {
    let body = message.body;
    match array(body, 0).map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => {
            let code = code.saturating_neg();
            let explained = message.flags & EXPLAINED == EXPLAINED;
            let words = body
                .get(4 + HEADER..)
                .filter(|_| explained)
                .and_then(|list| attribute(list, NLMSGERR_ATTR_MSG));
            Err(match words.map(text).filter(|words| !words.is_empty()) {
                Some(words) => Explained { code, words }.into(),
                None => io::Error::from_raw_os_error(code),
            })
        }
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The attributes in `bytes`, as type and value; it ends at the first that is cut off.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(array(rest, 0)?));
        let kind = u16::from_ne_bytes(array(rest, 2)?) & ATTRIBUTE_TYPE;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The attribute of one type.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes)
        .find(|(each, _)| *each == kind)
        .map(|(_, value)| value)
}

/// Appends an attribute to a request.
pub(crate) fn push_attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    body.extend(length.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Appends an attribute that holds others, which `fill` appends.
pub(crate) fn push_nested(body: &mut Vec<u8>, kind: u16, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = body.len();
    push_attribute(body, kind | NESTED, &[]);
    fill(body);
    let length = u16::try_from(body.len() - start).unwrap_or(u16::MAX);
    body[start..start + 2].copy_from_slice(&length.to_ne_bytes());
}

/// 32 bits in host order at byte `at`; `None` where the message ends before.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_ne_bytes)
}

/// A text that may end with a zero.
pub(crate) fn text(value: &[u8]) -> String {
    let value = value.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_written_and_read() {
        let mut body = Vec::new();
        push_attribute(&mut body, 3, b"veth0\0");
        push_attribute(&mut body, 4 | 0x8000, &1500_u32.to_ne_bytes());
        assert_eq!(body.len(), 12 + 8);
        assert_eq!(text(attribute(&body, 3).unwrap()), "veth0");
        assert_eq!(word(attribute(&body, 4).unwrap(), 0), Some(1500));
        assert_eq!(attribute(&body, 5), None);
    }

    #[test]
    fn attributes_hold_others() {
        let mut body = Vec::new();
        push_nested(&mut body, 4, |body| push_attribute(body, 1, b"queue"));
        let inner = attribute(&body, 4).unwrap();
        assert_eq!(attribute(inner, 1), Some(b"queue".as_slice()));
        assert_eq!(body.len(), 4 + 12);
    }

    #[test]
    fn cut_or_absurd_lengths_end_the_list() {
        let mut body = Vec::new();
        push_attribute(&mut body, 3, b"abcd");
        for end in 0..8 {
            assert_eq!(attributes(&body[..end]).count(), 0);
        }
        for length in [0_u16, 3, 9, u16::MAX] {
            body[..2].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(attributes(&body).count(), 0);
        }
        assert_eq!(messages(&[0; 40]).count(), 0);
        assert_eq!(messages(&[0xff; 40]).count(), 0);
    }

    #[test]
    fn an_error_answer_is_an_error() {
        let mut netlink = Netlink::open().unwrap();
        let error = netlink
            .ask(u16::MAX, Ask::One, &[0; 16], |_| {})
            .unwrap_err();
        assert!(error.raw_os_error().is_some(), "{error}");
    }
}
