#![expect(unsafe_code, reason = "vmsplice shares memory with the kernel")]
//! Sending memory over and over without copying it: its pages wait in a pipe (vmsplice(2)), are duplicated into a second one
//! (tee(2)) and go from there into the socket (splice(2)). Looking the pages up anew for each send took a tenth of the time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::ioctl_fionbio;
use rustix::pipe::{
    IoSliceRaw, PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice,
    tee, vmsplice,
};

use crate::host;
use crate::socket::MOST_PARTS;

/// Since then a pipe's pages go into a socket as they are, many at a time (`MSG_SPLICE_PAGES`); before, one by one.
const SINCE: (u32, u32) = (6, 5);
/// A pipe that holds less than this, two of the largest segments that the kernel makes, is not worth its calls, bytes.
const WORTH: usize = 128 << 10;

/// Pipes that an area of memory passes through on its way into a socket.
#[derive(Debug)]
pub struct Spliced {
    /// Keeps the area's pages.
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
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Where both sizes are refused the pipe stays as it was.
        let _sized = fcntl_setpipe_size(&into, most).or_else(|_| fcntl_setpipe_size(&into, WORTH));
        let capacity = fcntl_getpipe_size(&into)?;
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
    /// The two together hold up to `most` bytes, at least 256 KiB; all pipes of an ordinary user share 64 MiB. The area is
    /// there as often as it fits, up to [`MOST_PARTS`] times, and should be whole pages, so that it takes no more of a
    /// pipe's slots than it has of them.
    ///
    /// # Errors
    /// `InvalidInput` for an empty area; `Unsupported` before Linux 6.5 and where no pipes of at least 128 KiB each are to
    /// be had (a user's pipes are limited by `fs.pipe-user-pages-soft`); `EMFILE`; `EPERM` or `ENOSYS` where vmsplice(2) or tee(2) is forbidden.
    pub fn new(socket: impl AsFd, area: &'static [u8], most: usize) -> io::Result<Self> {
        if host::release().is_none_or(|release| release < SINCE) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if area.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // The kernel makes a pipe larger, up to a power of two.
        let way = Pipe::new(1 << (most / 2).max(WORTH).ilog2())?;
        let pages = Pipe::new(way.capacity)?;
        ioctl_fionbio(&socket, true)?;
        let room = pages.capacity.min(way.capacity);
        let part = &area[..area.len().min(room)];
        let count = (room / part.len()).min(MOST_PARTS);
        let parts: [_; MOST_PARTS] = std::array::from_fn(|_| IoSliceRaw::from_slice(part));
        // SAFETY: the kernel takes references to the area's pages, which it only reads, as it is the pipe's writing
        // end; the area is never freed or written to, as a shared slice for the program's life.
        let length = unsafe { vmsplice(&pages.into, &parts[..count], SpliceFlags::NONBLOCK) }?;
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
        let flags = SpliceFlags::NONBLOCK;
        let sent = splice(&self.way.out, None, socket, None, asked, flags)?;
        self.held -= sent;
        Ok((sent, asked))
    }

    fn fill(&self) -> io::Result<usize> {
        let (pages, way) = (&self.pages.out, &self.way.into);
        Ok(tee(pages, way, self.length, SpliceFlags::NONBLOCK)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};
    use std::sync::LazyLock;

    use linerate_testing::{Need, skipped};

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

    fn through_a_pipe(socket: &TcpStream, area: &'static [u8]) -> Option<Spliced> {
        let made = Spliced::new(socket, area, 2 << 20);
        if let Err(error) = &made {
            skipped(Need::Pipes, "splicing", &error.to_string());
        }
        made.ok()
    }

    #[test]
    fn what_arrives_is_the_area_over_and_over() {
        for area in [&AREA[..], &AREA[..64 << 10], &AREA[..5000]] {
            arrives_over_and_over(area);
        }
    }

    fn arrives_over_and_over(area: &'static [u8]) {
        let (near, mut far) = pair();
        let Some(mut spliced) = through_a_pipe(&near, area) else {
            return;
        };
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            far.read_to_end(&mut all).map(|_| all)
        });
        let first = spliced.send(&near, 1).expect("room for a byte");
        assert_eq!(first, (1, 1));
        // An area that begins within a page does not fit as a whole, or not as often.
        let period = spliced.held + 1;
        assert!(period > area.len() || area.len() > 1 << 19);
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
        let sent = |pipeful: &[u8]| {
            pipeful
                .chunks(area.len())
                .all(|part| *part == area[..part.len()])
        };
        assert!(all.chunks(period).all(sent));
    }

    #[test]
    fn a_full_socket_takes_no_more_and_a_closed_one_says_so() {
        let (near, far) = pair();
        let Some(mut spliced) = through_a_pipe(&near, &AREA) else {
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
