#![expect(
    unsafe_code,
    reason = "mmap, pipe2, vmsplice, tee and splice are raw calls"
)]
//! Sending memory over and over without copying it: its pages wait in a pipe (vmsplice(2)), are duplicated into a second one
//! (tee(2)) and go from there into the socket (splice(2)). Looking the pages up anew for each send took a tenth of the time.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{null_mut, slice_from_raw_parts_mut};

use crate::host;
use crate::option::{check, check_size};
use crate::socket::MOST_PARTS;

/// Since then a pipe's pages go into a socket as they are, many at a time (`MSG_SPLICE_PAGES`); before, one by one.
const SINCE: (u32, u32) = (6, 5);
/// A pipe that holds less than this, two of the largest segments that the kernel makes, is not worth its calls, bytes.
const WORTH: usize = 128 << 10;

/// What is sent over and over fills this share of a core's second cache, within these bounds, bytes. A receiver on the same
/// machine copies from the sender's pages, and finds them there. And each page has a counter of who refers to it, which every
/// send changes and a receiver waits for meanwhile: so the more pages, and the fewer senders to a page, the better. With a cache of
/// 2 MiB, 512 KiB carried a tenth more than 128 KiB; with one of 1.25 MiB, 1 MiB a fifth less than 128 KiB.
const SHARE_OF_CACHE: usize = 4;
const FEWEST: usize = 128 << 10;
const MOST: usize = 512 << 10;

/// Pages that nothing else has anything on.
struct Area(*mut [u8]);

impl Area {
    /// As often as it fits into `most` bytes, but at least once.
    fn filled(content: &[u8], most: usize) -> io::Result<Self> {
        let length = content.len() * (most / content.len()).max(1);
        // SAFETY: no address is asked for, and no file is mapped.
        let mapped = unsafe {
            libc::mmap(
                null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let area = Self(slice_from_raw_parts_mut(mapped.cast(), length));
        // Large pages have one counter for all of them. SAFETY: these pages are ours; where it is refused they stay as they were.
        let _ = unsafe { libc::madvise(mapped, length, libc::MADV_NOHUGEPAGE) };
        // SAFETY: mapped above, so long, zeroed by the kernel, and nobody else has it.
        let bytes = unsafe { &mut *area.0 };
        for part in bytes.chunks_exact_mut(content.len()) {
            part.copy_from_slice(content);
        }
        Ok(area)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: mapped by us, as long as this; nobody has a reference to it.
        unsafe { libc::munmap(self.0.cast(), self.0.len()) };
    }
}

/// Pipes that memory passes through on its way into a socket.
#[derive(Debug)]
pub struct Spliced {
    /// Keeps the pages.
    pages: Pipe,
    /// What is on its way.
    way: Pipe,
    /// Bytes in `pages`.
    length: usize,
    /// Bytes in `way`.
    held: usize,
}

#[derive(Debug)]
struct Pipe {
    into: OwnedFd,
    out: OwnedFd,
    capacity: usize,
}

impl Pipe {
    /// A pipe that holds `most` bytes, or less where the kernel gives less.
    fn new(most: usize) -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: the kernel writes two descriptors into the array.
        check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) })?;
        // SAFETY: both are open and nobody else's.
        let [out, into] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        for wanted in [most, WORTH] {
            let wanted = libc::c_int::try_from(wanted).unwrap_or(libc::c_int::MAX);
            // SAFETY: an integer is passed. Where it is refused the pipe stays as it was.
            if unsafe { libc::fcntl(into.as_raw_fd(), libc::F_SETPIPE_SZ, wanted) } >= 0 {
                break;
            }
        }
        // SAFETY: nothing is passed.
        let capacity = check(unsafe { libc::fcntl(into.as_raw_fd(), libc::F_GETPIPE_SZ) })?;
        let capacity = usize::try_from(capacity).unwrap_or(0);
        if capacity < WORTH {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self {
            into,
            out,
            capacity,
        })
    }
}

impl Spliced {
    /// Makes the pipes, and the socket's descriptor non-blocking, as splice(2) knows no other way to ask for that.
    /// The two together hold up to `most` bytes, at least 256 KiB; all pipes of an ordinary user share 64 MiB. What is sent over
    /// and over is a copy of `content`, which should be whole pages, on pages that only the pipes refer to.
    ///
    /// # Errors
    /// `InvalidInput` for no content, and for more than a pipe takes; `Unsupported` before Linux 6.5 and where no pipes of at least 128 KiB each are to
    /// be had (a user's pipes are limited by `fs.pipe-user-pages-soft`); `EMFILE`; `ENOMEM`; `EPERM` or `ENOSYS` where vmsplice(2) or tee(2) is forbidden.
    pub fn new(socket: impl AsFd, content: &[u8], most: usize) -> io::Result<Self> {
        if host::release().is_none_or(|release| release < SINCE) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // The kernel makes a pipe larger, up to a power of two.
        let way = Pipe::new(1 << (most / 2).max(WORTH).ilog2())?;
        let pages = Pipe::new(way.capacity)?;
        let room = pages.capacity.min(way.capacity);
        if content.is_empty() || content.len() > room {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let socket = socket.as_fd().as_raw_fd();
        // SAFETY: nothing is passed; the flags come back.
        let flags = check(unsafe { libc::fcntl(socket, libc::F_GETFL) })?;
        // SAFETY: an integer is passed.
        check(unsafe { libc::fcntl(socket, libc::F_SETFL, flags | libc::O_NONBLOCK) })?;
        let cache = host::second_cache_bytes().unwrap_or(0) / SHARE_OF_CACHE;
        let area = Area::filled(content, cache.clamp(FEWEST, MOST).min(room))?;
        let part = libc::iovec {
            iov_base: area.0.cast(),
            iov_len: area.0.len(),
        };
        let parts = [part; MOST_PARTS];
        let count = (room / part.iov_len).min(MOST_PARTS);
        let into = pages.into.as_raw_fd();
        // SAFETY: the area is mapped; the kernel takes references to its pages, which outlive the area and are only read.
        let length = check_size(unsafe {
            libc::vmsplice(into, parts.as_ptr(), count, libc::SPLICE_F_NONBLOCK)
        })?;
        let mut made = Self {
            pages,
            way,
            length,
            held: 0,
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
                self.way.out.as_raw_fd(),
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
        // SAFETY: both descriptors are open; the kernel takes references to pages that a pipe holds.
        check_size(unsafe {
            libc::tee(
                self.pages.out.as_raw_fd(),
                self.way.into.as_raw_fd(),
                self.length,
                libc::SPLICE_F_NONBLOCK,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn content(length: u32) -> Vec<u8> {
        (0..length)
            .map(|n| n.to_le_bytes()[n as usize % 3])
            .collect()
    }

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let near = TcpStream::connect(listener.local_addr().expect("an address"));
        (
            near.expect("a connection"),
            listener.accept().expect("a connection").0,
        )
    }

    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn through_a_pipe(socket: &TcpStream, content: &[u8]) -> Option<Spliced> {
        let made = Spliced::new(socket, content, 2 << 20);
        if let Err(error) = &made {
            eprintln!(
                "skipped: this kernel, or this user's limit of pipes, does not allow it: {error}"
            );
        }
        made.ok()
    }

    #[test]
    fn what_arrives_is_the_content_over_and_over() {
        for length in [128 << 10, 64 << 10, 5000] {
            arrives_over_and_over(&content(length));
        }
    }

    fn arrives_over_and_over(content: &[u8]) {
        let (near, mut far) = pair();
        let Some(mut spliced) = through_a_pipe(&near, content) else {
            return;
        };
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            far.read_to_end(&mut all).map(|_| all)
        });
        let first = spliced.send(&near, 1).expect("room for a byte");
        assert_eq!(first, (1, 1));
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
        assert!(
            all.chunks(content.len())
                .all(|part| *part == content[..part.len()])
        );
    }

    #[test]
    fn what_no_pipe_takes_is_refused() {
        let (near, _far) = pair();
        if through_a_pipe(&near, &content(5000)).is_none() {
            return;
        }
        for length in [0, 64 << 20] {
            let refused =
                Spliced::new(&near, &content(length), 2 << 20).map_err(|error| error.kind());
            assert_eq!(refused.err(), Some(io::ErrorKind::InvalidInput));
        }
    }

    #[test]
    fn a_full_socket_takes_no_more_and_a_closed_one_says_so() {
        let (near, far) = pair();
        let Some(mut spliced) = through_a_pipe(&near, &content(64 << 10)) else {
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
