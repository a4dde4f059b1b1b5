//! Reads and writes of one file by `io_uring(7)`, with the buffers that the kernel fills and empties.
#![expect(
    unsafe_code,
    reason = "the kernel reads and writes buffers while a request is under way"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use io_uring::{IoUring, Probe, opcode, squeue, types};
use linerate_model::probe::NoRing;
use linerate_model::units::Nanos;

use crate::aligned::Aligned;

/// Marks what is no request of a slot.
const STOP: u64 = u64::MAX;
const TICK: u64 = u64::MAX - 1;
/// Room beside the requests: the stop and the tick.
const OTHERS: u32 = 2;

/// What a [`Ring`] reports.
#[derive(Debug)]
pub enum RingEvent {
    /// The request of a slot has ended, with so many bytes.
    Done(usize, io::Result<usize>),
    /// The descriptor that ends the work is readable.
    Stop,
    /// The time of [`Ring::tick`] has passed.
    Tick,
}

/// Slots with a buffer each, and at most one request of each on its way.
pub struct Ring {
    uring: IoUring,
    slots: Vec<Slot>,
    file: File,
    /// The kernel reads it when it takes the request.
    time: Box<types::Timespec>,
    /// Kept open for the poll on it.
    stop: OwnedFd,
}

struct Slot {
    buffer: Aligned,
    busy: bool,
}

impl Ring {
    /// A ring on a file with `depth` buffers of `length` bytes, each at a multiple of `alignment`; it reports
    /// when `stop` becomes readable.
    ///
    /// # Errors
    /// Why this kernel has no ring for us.
    pub fn new(
        file: &File,
        [depth, length, alignment]: [usize; 3],
        stop: BorrowedFd<'_>,
    ) -> Result<Self, NoRing> {
        let entries = u32::try_from(depth).unwrap_or(u32::MAX / 2) + OTHERS;
        let uring = built(entries).map_err(|error| refusal(&error))?;
        let mut probe = Probe::new();
        // The question came with Linux 5.6, as plain reads and writes did.
        uring
            .submitter()
            .register_probe(&mut probe)
            .map_err(|_| NoRing::TooOld)?;
        let needed = [
            opcode::Read::CODE,
            opcode::Write::CODE,
            opcode::PollAdd::CODE,
            opcode::Timeout::CODE,
        ];
        if !needed.into_iter().all(|code| probe.is_supported(code)) {
            return Err(NoRing::TooOld);
        }
        let other = |error: io::Error| NoRing::Other {
            errno: error.raw_os_error().unwrap_or(0),
        };
        let stop = stop.try_clone_to_owned().map_err(other)?;
        let slots = (0..depth)
            .map(|_| Slot {
                buffer: Aligned::new(length, alignment),
                busy: false,
            })
            .collect();
        let mut ring = Self {
            uring,
            slots,
            time: Box::default(),
            file: file.try_clone().map_err(other)?,
            stop,
        };
        let poll = opcode::PollAdd::new(types::Fd(ring.stop.as_raw_fd()), libc::POLLIN as u32);
        ring.push(&poll.build().user_data(STOP)).map_err(other)?;
        Ok(ring)
    }

    /// The buffer of a slot; `None` while its request is under way.
    pub fn buffer(&mut self, slot: usize) -> Option<&mut [u8]> {
        let slot = self.slots.get_mut(slot).filter(|slot| !slot.busy)?;
        Some(slot.buffer.bytes())
    }

    /// Asks for a read of the first `length` bytes of a slot's buffer; [`Self::send`] or [`Self::wait`] sends it.
    ///
    /// # Errors
    /// `InvalidInput` for a slot whose request is under way, or too long a read.
    pub fn read(&mut self, slot: usize, length: usize, offset: u64) -> io::Result<()> {
        let file = types::Fd(self.file.as_raw_fd());
        let (pointer, length) = self.lend(slot, length)?;
        let request = opcode::Read::new(file, pointer, length).offset(offset);
        self.push(&request.build().user_data(slot as u64))
    }

    /// Asks for a write of the first `length` bytes of a slot's buffer; [`Self::send`] or [`Self::wait`] sends it.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn write(&mut self, slot: usize, length: usize, offset: u64) -> io::Result<()> {
        let file = types::Fd(self.file.as_raw_fd());
        let (pointer, length) = self.lend(slot, length)?;
        let request = opcode::Write::new(file, pointer, length).offset(offset);
        self.push(&request.build().user_data(slot as u64))
    }

    /// Asks for a [`RingEvent::Tick`] after this time.
    ///
    /// # Errors
    /// Those of sending requests.
    pub fn tick(&mut self, after: Nanos) -> io::Result<()> {
        let after = after.as_duration();
        *self.time = types::Timespec::new()
            .sec(after.as_secs())
            .nsec(after.subsec_nanos());
        let request = opcode::Timeout::new(&raw const *self.time);
        self.push(&request.build().user_data(TICK))
    }

    /// Sends what was asked for, without waiting.
    ///
    /// # Errors
    /// Those of `io_uring_enter(2)`.
    pub fn send(&mut self) -> io::Result<()> {
        match self.uring.submit() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            other => other.map(drop),
        }
    }

    /// Sends what was asked for, waits until something is to report, and adds it to `events`. A signal ends the wait.
    ///
    /// # Errors
    /// Those of `io_uring_enter(2)`.
    pub fn wait(&mut self, events: &mut Vec<RingEvent>) -> io::Result<()> {
        match self.uring.submit_and_wait(1) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => drop(other?),
        }
        for entry in self.uring.completion() {
            events.push(match entry.user_data() {
                STOP => RingEvent::Stop,
                TICK => RingEvent::Tick,
                slot => {
                    let slot = usize::try_from(slot).unwrap_or(usize::MAX);
                    if let Some(slot) = self.slots.get_mut(slot) {
                        slot.busy = false;
                    }
                    RingEvent::Done(slot, answer(entry.result()))
                }
            });
        }
        Ok(())
    }

    /// Requests that are under way.
    pub fn under_way(&self) -> usize {
        self.slots.iter().filter(|slot| slot.busy).count()
    }

    /// Gives the kernel a slot's buffer.
    fn lend(&mut self, slot: usize, length: usize) -> io::Result<(*mut u8, u32)> {
        let slot = self.slots.get_mut(slot).filter(|slot| !slot.busy);
        let slot = slot.ok_or(io::ErrorKind::InvalidInput)?;
        let buffer = slot.buffer.bytes();
        if length > buffer.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let length = u32::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?;
        let pointer = buffer.as_mut_ptr();
        slot.busy = true;
        Ok((pointer, length))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: a request's buffer is lent: it belongs to `slots`, is not touched until the completion has come
        // (`buffer`, `lend`), and outlives the ring (`drop`). The descriptors and the time live as long as the ring.
        unsafe { self.uring.submission().push(entry) }.map_err(io::Error::other)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // What the kernel still reads or fills stays where it is, for ever.
        for slot in self.slots.drain(..).filter(|slot| slot.busy) {
            std::mem::forget(slot.buffer);
        }
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("depth", &self.slots.len())
            .field("under_way", &self.under_way())
            .finish_non_exhaustive()
    }
}

/// Without interrupts for each completion where the kernel knows that (Linux 5.19).
fn built(entries: u32) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.setup_coop_taskrun();
    match builder.build(entries) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries),
        other => other,
    }
}

/// `io_uring_setup(2)`: EPERM by `kernel.io_uring_disabled` or a filter of system calls (which may also choose ENOSYS), ENOMEM
/// by `RLIMIT_MEMLOCK` before Linux 5.12.
fn refusal(error: &io::Error) -> NoRing {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => NoRing::Forbidden,
        Some(libc::ENOSYS) => NoRing::Absent,
        Some(libc::ENOMEM) => NoRing::NoMemory,
        code => NoRing::Other {
            errno: code.unwrap_or(0),
        },
    }
}

fn answer(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileExt as _;

    use super::*;
    use crate::event::EventFd;

    fn ring(file: &File, stop: &EventFd) -> Option<Ring> {
        match Ring::new(file, [2, 8192, 4096], stop.as_fd()) {
            Ok(ring) => Some(ring),
            Err(why) => {
                let why = format!("{why:?}");
                linerate_testing::skipped(linerate_testing::Need::Ring, "io_uring", &why);
                None
            }
        }
    }

    /// Every request and tick ends, so every wait does.
    fn next(ring: &mut Ring) -> RingEvent {
        let mut events = Vec::new();
        while events.is_empty() {
            ring.wait(&mut events).unwrap();
        }
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let file = tempfile::tempfile().unwrap();
        let stop = EventFd::new().unwrap();
        let Some(mut ring) = ring(&file, &stop) else {
            return;
        };
        let buffer = ring.buffer(0).unwrap();
        assert_eq!(buffer.as_ptr().align_offset(4096), 0);
        buffer.fill(7);
        ring.write(0, 8192, 4096).unwrap();
        assert_eq!(ring.under_way(), 1);
        assert!(ring.buffer(0).is_none(), "the kernel has it");
        assert!(ring.read(0, 1, 0).is_err() && ring.read(1, 8193, 0).is_err());
        assert!(matches!(next(&mut ring), RingEvent::Done(0, Ok(8192))));
        ring.read(1, 4096, 8192).unwrap();
        assert!(matches!(next(&mut ring), RingEvent::Done(1, Ok(4096))));
        assert!(
            ring.buffer(1).unwrap()[..4096]
                .iter()
                .all(|byte| *byte == 7)
        );
        let mut first = [1; 4];
        file.read_exact_at(&mut first, 0).unwrap();
        assert_eq!(first, [0; 4]);
    }

    #[test]
    fn errors_ticks_and_the_stop_are_reported() {
        let file = File::open("/dev/null").unwrap();
        let stop = EventFd::new().unwrap();
        let Some(mut ring) = ring(&file, &stop) else {
            return;
        };
        ring.write(0, 16, 0).unwrap();
        let RingEvent::Done(0, Err(error)) = next(&mut ring) else {
            panic!("a file that is open for reading was written");
        };
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        ring.tick(Nanos(1_000_000)).unwrap();
        assert!(matches!(next(&mut ring), RingEvent::Tick));
        stop.raise().unwrap();
        assert!(matches!(next(&mut ring), RingEvent::Stop));
    }
}
