//! Writing what a transfer receives.

use std::any::Any;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_kernel::clock;
use linerate_kernel::directory::Directory;
use linerate_kernel::event::EventFd;
use linerate_model::plain_text::PlainText;
use linerate_model::transfer::{Medium, StageRecord, StageRole};
use linerate_model::units::{Bytes, Nanos};

use super::frame::{self, HEADER, Header, Kind};
use super::place::Place;
use super::ring::{Piece, Ring, Room, Waits};
use super::sink::Sink;
use super::source::{checksum, mostly};
use super::{Access, PIECE, RING, THREADS, TransferError};

/// What a target does when all is handed over.
const SYNCING: &str = "waiting for the disk (fsync)";

#[derive(Debug)]
struct Shared {
    ring: Ring,
    sink: Option<Sink>,
    place: Option<Place>,
    /// Threads that have not written their last piece.
    running: AtomicUsize,
    inlets: AtomicUsize,
    started: AtomicBool,
    finished: EventFd,
    began_ns: AtomicU64,
    handed_over_ns: AtomicU64,
    on_disk_ns: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
    checksum: Mutex<u128>,
    kept: Mutex<Option<Box<dyn Any + Send>>>,
}

/// What takes the pieces of a transfer: a folder, or nothing but a check of their digests.
#[derive(Debug, Clone)]
pub struct Target(Arc<Shared>);

impl Target {
    /// A folder, called `path`. Nothing in it is changed: a file whose name is taken ends the transfer. `nameless`: files
    /// are written without names, and are gone when the target is.
    ///
    /// # Errors
    /// Its file system takes no writes.
    pub fn in_folder(
        folder: Directory,
        path: &Path,
        access: Access,
        nameless: bool,
    ) -> Result<Self, TransferError> {
        let place = Place::of(&folder, &path.display().to_string(), StageRole::Target);
        if place.read_only {
            return Err(TransferError::ReadOnly {
                path: path.to_owned(),
            });
        }
        let sink = Sink::new(folder, access, nameless);
        Ok(Self::new(Some(sink), Some(place))?)
    }

    /// Memory: pieces are checked and dropped.
    ///
    /// # Errors
    /// No descriptors.
    pub fn in_memory() -> Result<Self, TransferError> {
        Ok(Self::new(None, None)?)
    }

    fn new(sink: Option<Sink>, place: Option<Place>) -> io::Result<Self> {
        Ok(Self(Arc::new(Shared {
            ring: Ring::new(RING)?,
            sink,
            place,
            running: AtomicUsize::new(0),
            inlets: AtomicUsize::new(0),
            started: AtomicBool::new(false),
            finished: EventFd::new()?,
            began_ns: AtomicU64::new(0),
            handed_over_ns: AtomicU64::new(0),
            on_disk_ns: AtomicU64::new(0),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            checksum: Mutex::new(0),
            kept: Mutex::new(None),
        })))
    }

    /// Begins to write.
    pub fn start(&self) {
        if self.0.started.swap(true, Ordering::AcqRel) {
            return;
        }
        self.0
            .began_ns
            .store(clock::monotonic().0, Ordering::Release);
        self.0.ring.begin();
        self.0.running.store(THREADS as usize, Ordering::Release);
        for number in 0..THREADS {
            let shared = Arc::clone(&self.0);
            let made = std::thread::Builder::new()
                .name(format!("target {number}"))
                .stack_size(256 << 10)
                .spawn(move || shared.write());
            if let Err(error) = made {
                self.0.fail("starting a thread that writes", &error);
                self.0.leave();
            }
        }
    }

    /// What one stream receives into. When all that were made before [`Target::start`] are gone, everything has come.
    pub fn inlet(&self) -> Inlet {
        self.0.inlets.fetch_add(1, Ordering::AcqRel);
        Inlet {
            shared: Arc::clone(&self.0),
            head: [0; HEADER],
            at: 0,
            header: None,
            name: Vec::new(),
            last: None,
            room: None,
            ticket: None,
            empty: Vec::new(),
            waits: Waits::default(),
        }
    }

    /// All streams have ended, also where there were none: what the ring holds is written, and then fsync. Returns at once.
    pub fn end(&self) {
        self.start();
        self.0.ring.end();
    }

    /// Readable where all is on disk, or the target has failed.
    pub fn finished_fd(&self) -> BorrowedFd<'_> {
        self.0.finished.as_fd()
    }

    /// Bytes of files that were written.
    pub fn progress(&self) -> Bytes {
        Bytes(self.0.bytes.load(Ordering::Acquire))
    }

    /// Why nothing more is written.
    pub fn failed(&self) -> Option<String> {
        self.0.ring.failed()
    }

    /// Ends writing, without waiting for a disk: what was not finished by then has failed.
    pub fn stop(&self) {
        if self.0.on_disk_ns.load(Ordering::Acquire) == 0 {
            let error = "it was stopped before everything was written".to_owned();
            self.0.ring.fail(error, 0);
            drop(self.0.finished.raise());
        }
    }

    /// Keeps this for as long as any part of the target is in memory: its threads that wait for a disk end when that answers.
    pub fn keep(&self, what: Box<dyn Any + Send>) {
        *self.0.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }

    /// What was written so far.
    pub fn record(&self) -> StageRecord {
        let shared = &self.0;
        let load = |value: &AtomicU64| value.load(Ordering::Acquire);
        let time = |which: fn(&Sink) -> &AtomicU64| {
            shared.sink.as_ref().map_or(0, |sink| load(which(sink)))
        };
        let bytes = load(&shared.bytes);
        let direct = mostly(time(|sink| &sink.direct_bytes), bytes);
        let on_disk = Some(Nanos(load(&shared.on_disk_ns)));
        StageRecord {
            role: StageRole::Target,
            medium: shared
                .place
                .as_ref()
                .map_or(Medium::Memory, |place| Medium::Disk(place.now(direct))),
            files: load(&shared.files),
            left_out: 0,
            changed: 0,
            bytes: Bytes(bytes),
            piece: Bytes(PIECE as u64),
            threads: THREADS,
            moving: Nanos(time(|sink| &sink.moving_ns)),
            opening: Nanos(time(|sink| &sink.opening_ns)),
            began: Nanos(load(&shared.began_ns)),
            handed_over: Nanos(load(&shared.handed_over_ns)),
            on_disk: on_disk.filter(|at| shared.sink.is_some() && at.0 > 0),
            checksum: checksum(&shared.checksum),
            ring: shared.ring.record(),
            error: shared.ring.failed().map(PlainText::from),
        }
    }
}

impl Shared {
    /// A thread that writes; the last one to end syncs.
    fn write(&self) {
        while let Some(mut piece) = self.ring.take_waiting() {
            if frame::digest(piece.data()) != piece.header.digest {
                let name = piece.name.escape_ascii().to_string();
                let at = piece.header.offset;
                let error =
                    format!("{name}: what arrived at byte {at} is not what was read (checksum)");
                self.ring.fail(error, 0);
                break;
            }
            let written = match &self.sink {
                Some(sink) => sink.write(&mut piece),
                None => Ok(piece.header.is_last()),
            };
            match written {
                Ok(whole) => {
                    let is_file = piece.header.kind == Kind::Part;
                    self.files
                        .fetch_add(u64::from(whole && is_file), Ordering::AcqRel);
                }
                Err(error) => {
                    self.fail(&format!("writing {}", piece.name.escape_ascii()), &error);
                    break;
                }
            }
            let length = u64::from(piece.header.length);
            let weight = frame::weight(&unnamed(piece.header), &piece.name);
            let mut sum = self.checksum.lock().unwrap_or_else(PoisonError::into_inner);
            *sum = sum.wrapping_add(weight);
            drop(sum);
            self.bytes.fetch_add(length, Ordering::AcqRel);
            self.handed_over_ns
                .fetch_max(clock::monotonic().0, Ordering::AcqRel);
            self.ring.give_back(piece.room, length);
            if let Err(error) = self.sink.as_ref().map_or(Ok(()), Sink::sync_some) {
                self.fail(SYNCING, &error);
                break;
            }
        }
        self.leave();
    }

    /// A thread ends; the last one waits for the disk.
    fn leave(&self) {
        if self.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.conclude();
        }
    }

    fn conclude(&self) {
        if self.ring.failed().is_none() {
            match self.sink.as_ref().map_or(Ok(0), Sink::sync) {
                Ok(0) => {
                    self.on_disk_ns
                        .store(clock::monotonic().0, Ordering::Release);
                }
                Ok(files) => self
                    .ring
                    .fail(format!("{files} files did not arrive whole"), 0),
                Err(error) => self.fail(SYNCING, &error),
            }
        }
        if let Some(sink) = self.sink.as_ref().filter(|_| self.ring.failed().is_some()) {
            sink.clean_up();
        }
        drop(self.finished.raise());
    }

    fn fail(&self, doing: &str, error: &io::Error) {
        let errno = error.raw_os_error().unwrap_or(0);
        self.ring.fail(format!("{doing}: {error}"), errno);
        drop(self.finished.raise());
    }
}

/// The header as its source weighs it: which stream names the file is no part of it.
const fn unnamed(header: Header) -> Header {
    Header { name: 0, ..header }
}

impl Drop for Inlet {
    /// The last stream's end is the target's, so that its fsync waits for no word of the other host.
    fn drop(&mut self) {
        let last = self.shared.inlets.fetch_sub(1, Ordering::AcqRel) == 1;
        if last && self.shared.started.load(Ordering::Acquire) {
            self.shared.ring.end();
        }
    }
}

/// What one stream receives into.
#[derive(Debug)]
pub struct Inlet {
    shared: Arc<Shared>,
    head: [u8; HEADER],
    /// Bytes of the header, then of the name, then of the part that have come.
    at: usize,
    header: Option<Header>,
    name: Vec<u8>,
    /// The file that this stream named last.
    last: Option<(u32, Arc<[u8]>)>,
    room: Option<Room>,
    /// For a part without bytes: taken before its header, so that nothing waits for room behind it.
    ticket: Option<Room>,
    empty: Vec<u8>,
    waits: Waits,
}

impl Inlet {
    /// Readable where [`Inlet::room`] would give some.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.shared.ring.room_fd()
    }

    /// Where to receive next: a header, a name, or straight into the memory that is written; nothing where the ring is full.
    ///
    /// # Errors
    /// The target has failed.
    pub fn room(&mut self) -> io::Result<Option<&mut [u8]>> {
        let Some(header) = self.header else {
            if self.ticket.is_none() {
                self.ticket = self.shared.ring.reserve(0, &mut self.waits)?;
            } else if let Some(error) = self.shared.ring.failed() {
                return Err(io::Error::other(error));
            }
            let head = &mut self.head[self.at..];
            return Ok(self.ticket.is_some().then_some(head));
        };
        if self.name.len() < usize::from(header.name) {
            self.empty
                .resize(usize::from(header.name) - self.name.len(), 0);
            return Ok(Some(&mut self.empty));
        }
        let length = header.length as usize;
        if self.room.is_none() {
            self.room = self.shared.ring.reserve(length, &mut self.waits)?;
        }
        Ok(self
            .room
            .as_mut()
            .map(|room| &mut room.bytes()[self.at..length]))
    }

    /// So many bytes were received there.
    ///
    /// # Errors
    /// They are no frame, or name a place outside of the target.
    pub fn received(&mut self, bytes: usize) -> io::Result<()> {
        match self.header {
            None => {
                self.at += bytes;
                if self.at == HEADER {
                    self.header =
                        Some(Header::decode(&self.head).map_err(|error| self.refuse(error))?);
                    self.at = 0;
                    self.name.clear();
                }
            }
            Some(header) if self.name.len() < usize::from(header.name) => {
                self.name.extend_from_slice(&self.empty[..bytes]);
                if self.name.len() == usize::from(header.name) {
                    frame::check_name(&self.name).map_err(|error| self.refuse(error))?;
                    self.last = Some((header.file, self.name.as_slice().into()));
                }
            }
            Some(_) => self.at += bytes,
        }
        self.pass_on()
    }

    /// Puts a part that is complete into the ring.
    fn pass_on(&mut self) -> io::Result<()> {
        let Some(header) = self.header else {
            return Ok(());
        };
        let named = self.name.len() == usize::from(header.name);
        if !named || self.at < header.length as usize {
            return Ok(());
        }
        let Some(room) = self.room.take().or_else(|| self.ticket.take()) else {
            return Err(self.refuse("a part of a file came without room for it"));
        };
        let name = match &self.last {
            Some((file, name)) if *file == header.file => Arc::clone(name),
            _ => return Err(self.refuse("a part of a file came without the file's name")),
        };
        self.shared.ring.put(Piece { header, name, room });
        (self.header, self.at) = (None, 0);
        Ok(())
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// It ended within a frame.
    pub fn ended(&mut self) -> io::Result<()> {
        if self.header.is_some() || self.at > 0 {
            return Err(self.refuse("a data stream ended within a part of a file"));
        }
        Ok(())
    }

    /// Ends the whole target.
    fn refuse(&self, why: impl std::fmt::Display) -> io::Error {
        self.shared.ring.fail(why.to_string(), 0);
        drop(self.shared.finished.raise());
        io::Error::other(why.to_string())
    }
}
