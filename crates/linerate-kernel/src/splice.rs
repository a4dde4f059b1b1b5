#![expect(unsafe_code, reason = "pipe2, vmsplice and splice are raw calls")]
//! Sending memory over and over without copying it: its pages go through a pipe into the socket (vmsplice(2), splice(2)).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::host;
use crate::option::{check, check_size};

/// Since then a pipe's pages go into a socket as they are, many at a time (`MSG_SPLICE_PAGES`); before, one by one.
const SINCE: (u32, u32) = (6, 5);
/// A pipe that holds less than this is not worth its calls, bytes.
const WORTH: usize = 256 << 10;

/// A pipe that an area of memory passes through on its way into a socket.
#[derive(Debug)]
pub struct Spliced {
    area: &'static [u8],
    into: OwnedFd,
    out: OwnedFd,
    /// Bytes in the pipe.
    held: usize,
    capacity: usize,
}

impl Spliced {
    /// Makes the pipe, and the socket's descriptor non-blocking, as splice(2) knows no other way to ask for that.
    /// The area should begin at a page, so that it takes no more of the pipe's slots than it has pages. The pipe holds up to
    /// `most` bytes, at least 256 KiB; all pipes of an ordinary user share 64 MiB.
    ///
    /// # Errors
    /// `Unsupported` before Linux 6.5 and where no pipe of at least 256 KiB is to be had (a user's pipes are limited
    /// by `fs.pipe-user-pages-soft`); `EMFILE`; `EPERM` or `ENOSYS` where vmsplice(2) is forbidden.
    pub fn new(socket: impl AsFd, area: &'static [u8], most: usize) -> io::Result<Self> {
        if host::release().is_none_or(|release| release < SINCE) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut ends = [0; 2];
        // SAFETY: the kernel writes two descriptors into the array.
        check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) })?;
        // SAFETY: both are open and nobody else's.
        let [out, into] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        for wanted in [most.clamp(WORTH, area.len().max(WORTH)), WORTH] {
            let wanted = libc::c_int::try_from(wanted).unwrap_or(libc::c_int::MAX);
            // SAFETY: an integer is passed. Where it is refused the pipe stays as it was.
            if unsafe { libc::fcntl(into.as_raw_fd(), libc::F_SETPIPE_SZ, wanted) } >= 0 {
                break;
            }
        }
        // SAFETY: nothing is passed.
        let capacity = check(unsafe { libc::fcntl(into.as_raw_fd(), libc::F_GETPIPE_SZ) })?;
        let capacity = usize::try_from(capacity).unwrap_or(0).min(area.len());
        if capacity < WORTH {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let socket = socket.as_fd().as_raw_fd();
        // SAFETY: nothing is passed; the flags come back.
        let flags = check(unsafe { libc::fcntl(socket, libc::F_GETFL) })?;
        // SAFETY: an integer is passed.
        check(unsafe { libc::fcntl(socket, libc::F_SETFL, flags | libc::O_NONBLOCK) })?;
        let mut made = Self {
            area,
            into,
            out,
            held: 0,
            capacity,
        };
        made.held = made.fill()?;
        Ok(made)
    }

    /// Hands up to `length` bytes to the socket without waiting; says how many it took, and how many it was asked to.
    ///
    /// # Errors
    /// `WouldBlock` where the send buffer is full; `BrokenPipe` (where `SIGPIPE` is ignored), `ConnectionReset` …
    pub fn send(&mut self, socket: impl AsFd, length: usize) -> io::Result<(usize, usize)> {
        if self.held == 0 {
            self.held = self.fill()?;
        }
        let asked = length.min(self.held);
        // SAFETY: no offsets are passed; both descriptors are open.
        let sent = check_size(unsafe {
            libc::splice(
                self.out.as_raw_fd(),
                std::ptr::null_mut(),
                socket.as_fd().as_raw_fd(),
                std::ptr::null_mut(),
                asked,
                libc::SPLICE_F_NONBLOCK,
            )
        })?;
        self.held -= sent;
        Ok((sent, asked))
    }

    fn fill(&self) -> io::Result<usize> {
        let part = libc::iovec {
            iov_base: self.area.as_ptr().cast_mut().cast(),
            iov_len: self.capacity,
        };
        // SAFETY: the kernel takes references to the area's pages, which it only reads; the area is never freed or
        // written to, as a shared slice for the program's life.
        check_size(unsafe {
            libc::vmsplice(
                self.into.as_raw_fd(),
                &raw const part,
                1,
                libc::SPLICE_F_NONBLOCK,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};
    use std::sync::LazyLock;

    use super::*;

    static AREA: LazyLock<Box<[u8]>> = LazyLock::new(|| {
        (0..(1_u32 << 20))
            .map(|n| n.to_le_bytes()[n as usize % 3])
            .collect()
    });

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let near = TcpStream::connect(listener.local_addr().expect("an address"));
        (
            near.expect("a connection"),
            listener.accept().expect("a connection").0,
        )
    }

    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn through_a_pipe(socket: &TcpStream) -> Option<Spliced> {
        let made = Spliced::new(socket, &AREA, AREA.len());
        if let Err(error) = &made {
            eprintln!(
                "skipped: this kernel, or this user's limit of pipes, does not allow it: {error}"
            );
        }
        made.ok()
    }

    #[test]
    fn what_arrives_is_the_area_over_and_over() {
        let (near, mut far) = pair();
        let Some(mut spliced) = through_a_pipe(&near) else {
            return;
        };
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            far.read_to_end(&mut all).map(|_| all)
        });
        let first = spliced.send(&near, 1).expect("room for a byte");
        assert_eq!(first, (1, 1));
        // An area that begins within a page does not fit as a whole.
        let period = spliced.held + 1;
        let (mut left, mut calls) = (3_000_000, 0);
        while left > 0 {
            match spliced.send(&near, left) {
                Ok((sent, asked)) => {
                    assert!(sent > 0 && sent <= asked && asked <= left);
                    left -= sent;
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
            calls += 1;
        }
        assert!(calls > 2);
        drop(near);
        let all = reader.join().expect("no panic").expect("all of it");
        assert_eq!(all.len(), 3_000_001);
        assert!(all.chunks(period).all(|part| *part == AREA[..part.len()]));
    }

    #[test]
    fn a_full_socket_takes_no_more_and_a_closed_one_says_so() {
        let (near, far) = pair();
        let Some(mut spliced) = through_a_pipe(&near) else {
            return;
        };
        let full = loop {
            if let Err(error) = spliced.send(&near, 1 << 20) {
                break error;
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        drop(far);
        let ended = loop {
            match spliced.send(&near, 1 << 20) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => break error.kind(),
                _ => {}
            }
        };
        assert!(
            matches!(
                ended,
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
            ),
            "{ended:?}"
        );
    }
}
