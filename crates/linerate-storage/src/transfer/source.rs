//! Reading what a transfer sends.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_kernel::{clock, file_system};
use linerate_model::plain_text::PlainText;
use linerate_model::transfer::{Medium, StageRecord, StageRole};
use linerate_model::units::{Bytes, Nanos};

use super::frame::{self, Header, Kind};
use super::place::{self, Place};
use super::ring::{Piece, Ring, Taken, Waits};
use super::{ALIGNMENT, Access, Filled, PIECE, RING, THREADS, TransferError};
use crate::probe::noise::Noise;

/// What a listing holds at most: some 200 MB of names.
const MOST_ENTRIES: usize = 1_000_000;
/// Below this a part costs more than its bytes.
const SHORTEST_PIECE: usize = 64 << 10;
/// `O_NOFOLLOW | O_NONBLOCK` on Linux: a file that became a link or a pipe since it was listed is not waited for.
const NO_FOLLOW: i32 = 0o400_000 | 0o4000;

/// A file or folder to send.
#[derive(Debug)]
struct Entry {
    /// Nothing where its bytes are made.
    path: Option<PathBuf>,
    name: Arc<[u8]>,
    kind: Kind,
    size: u64,
    mode: u32,
    /// When its bytes were changed last, as it was listed: seconds and nanoseconds.
    modified: (i64, i64),
    changed: AtomicBool,
}

/// What threads read next.
#[derive(Debug, Default)]
struct Cursor {
    entry: usize,
    offset: u64,
}

#[derive(Debug)]
struct Shared {
    ring: Ring,
    entries: Vec<Entry>,
    left_out: u64,
    bytes: u64,
    access: Access,
    place: Option<Place>,
    cursor: Mutex<Cursor>,
    running: AtomicUsize,
    stopped: AtomicBool,
    started: AtomicBool,
    streams: AtomicUsize,
    /// The longest part, by then.
    piece: AtomicUsize,
    /// Bytes that were read past the page cache.
    direct_bytes: AtomicU64,
    moving_ns: AtomicU64,
    opening_ns: AtomicU64,
    began_ns: AtomicU64,
    ended_ns: AtomicU64,
    files_read: AtomicU64,
    files_changed: AtomicU64,
    bytes_read: AtomicU64,
    checksum: Mutex<u128>,
}

/// What is sent: files, or as many bytes from memory. Threads read ahead of the streams by a ring's worth.
#[derive(Debug, Clone)]
pub struct Source(Arc<Shared>);

impl Source {
    /// A file, or a folder with all that is in it. Links, sockets, pipes and devices below it are left out and counted.
    ///
    /// # Errors
    /// It is neither, or cannot be listed.
    pub fn of_files(path: &Path, access: Access) -> Result<Self, TransferError> {
        let failed = |source| TransferError::Source {
            path: path.to_owned(),
            source,
        };
        let facts = fs::metadata(path).map_err(failed)?;
        let mut listing = Listing::default();
        let full = path.canonicalize().map_err(failed)?;
        let name = full.file_name().unwrap_or_else(|| "root".as_ref());
        if facts.is_file() {
            listing.file(full.clone(), name.as_bytes().into(), &facts);
        } else if facts.is_dir() {
            listing.folder(&full, name.as_bytes(), &facts, path)?;
        } else {
            return Err(TransferError::NoFile {
                path: path.to_owned(),
            });
        }
        let opened = File::open(&full).map_err(failed)?;
        let mut place = Place::of(&opened, &path.display().to_string(), StageRole::Source);
        (place.facts.cached, place.facts.still_cached) = cached(&listing.entries);
        Ok(Self::new(listing, access, Some(place))?)
    }

    /// As many files of the same sizes, whose bytes are made, and that nothing compresses.
    ///
    /// # Errors
    /// No descriptors.
    pub fn in_memory(&self) -> Result<Self, TransferError> {
        let entries = self.0.entries.iter().map(|entry| Entry {
            path: None,
            name: Arc::clone(&entry.name),
            changed: AtomicBool::new(false),
            ..*entry
        });
        let listing = Listing {
            entries: entries.collect(),
            ..Listing::default()
        };
        Ok(Self::new(listing, Access::Buffered, None)?)
    }

    fn new(listing: Listing, access: Access, place: Option<Place>) -> io::Result<Self> {
        let bytes = listing.entries.iter().map(|entry| entry.size).sum();
        Ok(Self(Arc::new(Shared {
            ring: Ring::new(RING)?,
            entries: listing.entries,
            left_out: listing.left_out,
            bytes,
            access,
            place,
            cursor: Mutex::default(),
            running: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            started: AtomicBool::new(false),
            streams: AtomicUsize::new(0),
            piece: AtomicUsize::new(PIECE),
            direct_bytes: AtomicU64::new(0),
            moving_ns: AtomicU64::new(0),
            opening_ns: AtomicU64::new(0),
            began_ns: AtomicU64::new(0),
            ended_ns: AtomicU64::new(0),
            files_read: AtomicU64::new(0),
            files_changed: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            checksum: Mutex::new(0),
        })))
    }

    /// Bytes of files that will be read.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.0.bytes)
    }

    /// Begins to read, for the streams whose [`Source::outlet`]s were made until then.
    pub fn start(&self) {
        if self.0.started.swap(true, Ordering::AcqRel) {
            return;
        }
        let piece = piece(self.0.streams.load(Ordering::Acquire));
        self.0.piece.store(piece, Ordering::Release);
        self.0
            .began_ns
            .store(clock::monotonic().0, Ordering::Release);
        self.0.ring.begin();
        self.0.running.store(THREADS as usize, Ordering::Release);
        for number in 0..THREADS {
            let shared = Arc::clone(&self.0);
            let made = std::thread::Builder::new()
                .name(format!("source {number}"))
                .stack_size(256 << 10)
                .spawn(move || shared.read(u64::from(number)));
            if let Err(error) = made {
                let errno = error.raw_os_error().unwrap_or(0);
                self.0
                    .ring
                    .fail(format!("starting a thread that reads: {error}"), errno);
            }
        }
    }

    /// What one stream sends.
    pub fn outlet(&self) -> Outlet {
        self.0.streams.fetch_add(1, Ordering::AcqRel);
        Outlet {
            shared: Arc::clone(&self.0),
            piece: None,
            head: Vec::new(),
            sent: 0,
            waits: Waits::default(),
            named: None,
        }
    }

    /// Ends reading, without waiting for a disk.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Release);
        self.0.ring.end();
    }

    /// What was read so far.
    pub fn record(&self) -> StageRecord {
        let shared = &self.0;
        let load = |value: &AtomicU64| value.load(Ordering::Acquire);
        let bytes = load(&shared.bytes_read);
        let direct = mostly(load(&shared.direct_bytes), bytes);
        StageRecord {
            role: StageRole::Source,
            medium: shared
                .place
                .as_ref()
                .map_or(Medium::Memory, |place| Medium::Disk(place.now(direct))),
            files: load(&shared.files_read),
            left_out: shared.left_out,
            changed: load(&shared.files_changed),
            bytes: Bytes(bytes),
            piece: Bytes(shared.piece.load(Ordering::Acquire) as u64),
            threads: THREADS,
            moving: Nanos(load(&shared.moving_ns)),
            opening: Nanos(load(&shared.opening_ns)),
            began: Nanos(load(&shared.began_ns)),
            handed_over: Nanos(load(&shared.ended_ns)),
            on_disk: None,
            checksum: checksum(&shared.checksum),
            ring: shared.ring.record(),
            error: shared.ring.failed().map(PlainText::from),
        }
    }
}

/// How long parts are for so many streams: the target has room set aside for the part that each of them is receiving, and these
/// are to be no more than a quarter of its ring.
fn piece(streams: usize) -> usize {
    let each = RING / 4 / streams.max(1);
    let power = each.checked_ilog2().map_or(0, |log| 1 << log);
    power.clamp(SHORTEST_PIECE, PIECE)
}

/// Whether a stage's bytes went past the page cache: more than half of them.
pub(super) const fn mostly(direct: u64, all: u64) -> bool {
    direct > all / 2
}

/// A checksum as a record has it.
pub(super) fn checksum(sum: &Mutex<u128>) -> PlainText {
    let sum = *sum.lock().unwrap_or_else(PoisonError::into_inner);
    format!("{sum:032x}").into()
}

impl Shared {
    /// A thread that reads.
    fn read(&self, number: u64) {
        let mut open: Option<(usize, File, bool)> = None;
        let mut noise = Noise::new(clock::monotonic().0 ^ number);
        let most = self.piece.load(Ordering::Acquire);
        while let Some((index, offset)) = self.next(most) {
            let entry = &self.entries[index];
            let left = entry.size - offset;
            // What it read last is not kept while it waits for room.
            if open.as_ref().is_some_and(|(at, ..)| *at != index) {
                self.leave(open.take());
            }
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(most);
            let Some(mut room) = self.ring.reserve_waiting(length) else {
                break;
            };
            let filled = match &entry.path {
                Some(path) if entry.kind == Kind::Part => {
                    self.fill(index, path, offset, length, room.bytes(), &mut open)
                }
                Some(_) => Ok(()),
                None => {
                    noise.fill(&mut room.bytes()[..length]);
                    Ok(())
                }
            };
            if let Err(error) = filled {
                let path = entry.path.as_deref().unwrap_or_else(|| Path::new("memory"));
                let errno = error.raw_os_error().unwrap_or(0);
                self.ring
                    .fail(format!("reading {}: {error}", path.display()), errno);
                break;
            }
            let header = Header {
                kind: entry.kind,
                name: 0,
                file: u32::try_from(index).unwrap_or(u32::MAX),
                length: u32::try_from(length).unwrap_or(u32::MAX),
                offset,
                size: entry.size,
                mode: entry.mode,
                digest: frame::digest(&room.bytes()[..length]),
            };
            let weight = frame::weight(&header, &entry.name);
            let mut sum = self.checksum.lock().unwrap_or_else(PoisonError::into_inner);
            *sum = sum.wrapping_add(weight);
            drop(sum);
            self.bytes_read.fetch_add(length as u64, Ordering::AcqRel);
            if entry.kind == Kind::Part && offset + length as u64 == entry.size {
                self.leave(open.take());
                self.files_read.fetch_add(1, Ordering::AcqRel);
            }
            self.ended_ns
                .fetch_max(clock::monotonic().0, Ordering::AcqRel);
            self.ring.put(Piece {
                header,
                name: Arc::clone(&entry.name),
                room,
            });
        }
        self.leave(open);
        if self.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.ring.end();
        }
    }

    /// A thread has read all that it will of a file: whether that is still what was listed.
    fn leave(&self, read: Option<(usize, File, bool)>) {
        let Some((index, file, _)) = read else { return };
        let entry = &self.entries[index];
        let is_as_listed = file.metadata().is_ok_and(|now| {
            let modified = (now.mtime(), now.mtime_nsec());
            now.len() == entry.size && modified == entry.modified
        });
        if !is_as_listed && !entry.changed.swap(true, Ordering::AcqRel) {
            self.files_changed.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The next part to read.
    fn next(&self, most: usize) -> Option<(usize, u64)> {
        if self.stopped.load(Ordering::Acquire) {
            return None;
        }
        let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = self.entries.get(cursor.entry)?;
        let part = (cursor.entry, cursor.offset);
        cursor.offset += most as u64;
        if cursor.offset >= entry.size {
            *cursor = Cursor {
                entry: part.0 + 1,
                offset: 0,
            };
        }
        Some(part)
    }

    /// Reads a part of a file, which stays open for the parts behind it.
    fn fill(
        &self,
        index: usize,
        path: &Path,
        offset: u64,
        length: usize,
        memory: &mut [u8],
        open: &mut Option<(usize, File, bool)>,
    ) -> io::Result<()> {
        let began = clock::monotonic();
        if open.as_ref().is_none_or(|(at, ..)| *at != index) {
            let mut options = fs::OpenOptions::new();
            let file = options.read(true).custom_flags(NO_FOLLOW).open(path)?;
            let large = self.entries[index].size >= PIECE as u64;
            let direct = large && self.access == Access::Direct && place::make_direct(&file);
            *open = Some((index, file, direct));
        }
        let Some((_, file, direct)) = open else {
            return Ok(());
        };
        let opened = clock::monotonic();
        let mut got = 0;
        while got < length {
            let to = if *direct {
                length.next_multiple_of(ALIGNMENT)
            } else {
                length
            };
            match file.read_at(&mut memory[got..to], offset + got as u64) {
                Ok(0) => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "it became shorter while it was read",
                    ));
                }
                Ok(bytes) => got += bytes,
                // Some file systems refuse only then.
                Err(error) if *direct && error.kind() == io::ErrorKind::InvalidInput => {
                    file_system::set_direct(file, false)?;
                    *direct = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if *direct {
            self.direct_bytes.fetch_add(length as u64, Ordering::AcqRel);
        }
        let ended = clock::monotonic();
        self.opening_ns
            .fetch_add(opened.since(began).0, Ordering::AcqRel);
        self.moving_ns
            .fetch_add(ended.since(opened).0, Ordering::AcqRel);
        Ok(())
    }
}

/// What is below a source.
#[derive(Default)]
struct Listing {
    entries: Vec<Entry>,
    left_out: u64,
}

impl Listing {
    fn file(&mut self, path: PathBuf, name: Arc<[u8]>, facts: &Metadata) {
        if frame::check_name(&name).is_err() {
            self.left_out += 1;
            return;
        }
        let kind = if facts.is_dir() {
            Kind::Folder
        } else {
            Kind::Part
        };
        self.entries.push(Entry {
            path: Some(path),
            name,
            size: if facts.is_dir() { 0 } else { facts.len() },
            kind,
            mode: facts.mode() & 0o777,
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: AtomicBool::new(false),
        });
    }

    /// A folder before what is in it; `named` is what the user said.
    fn folder(
        &mut self,
        path: &Path,
        name: &[u8],
        facts: &Metadata,
        named: &Path,
    ) -> Result<(), TransferError> {
        let mut below = vec![(path.to_owned(), name.to_vec())];
        self.file(path.to_owned(), name.into(), facts);
        while let Some((folder, name)) = below.pop() {
            let failed = |source| TransferError::Source {
                path: folder.clone(),
                source,
            };
            for one in fs::read_dir(&folder).map_err(failed)? {
                let one = one.map_err(failed)?;
                let facts = one.metadata().map_err(failed)?;
                let name = [&name[..], b"/", one.file_name().as_bytes()].concat();
                if facts.is_dir() {
                    below.push((one.path(), name.clone()));
                }
                if facts.is_dir() || facts.is_file() {
                    self.file(one.path(), name.into(), &facts);
                } else {
                    self.left_out += 1;
                }
                if self.entries.len() > MOST_ENTRIES {
                    return Err(TransferError::TooMany {
                        path: named.to_owned(),
                        most: MOST_ENTRIES,
                    });
                }
            }
        }
        Ok(())
    }
}

/// What the page cache holds of files, and what it still holds after it was asked to drop that.
fn cached(entries: &[Entry]) -> (Option<Bytes>, Option<Bytes>) {
    let (mut before, mut after) = (0, 0);
    let mut known = true;
    for entry in entries.iter().filter(|entry| entry.size > 0) {
        let Some(file) = entry.path.as_ref().and_then(|path| File::open(path).ok()) else {
            continue;
        };
        let held =
            || file_system::cached(&file, Bytes(entry.size)).map(|bytes| bytes.0.min(entry.size));
        let Ok(bytes) = held() else {
            // It is dropped all the same.
            drop(file_system::evict(&file));
            known = false;
            continue;
        };
        before += bytes;
        if bytes > 0 {
            drop(file_system::evict(&file));
            after += held().unwrap_or(bytes);
        }
    }
    let told = |bytes| known.then_some(Bytes(bytes));
    (told(before), told(after))
}

/// What one stream sends: headers, names and pieces.
#[derive(Debug)]
pub struct Outlet {
    shared: Arc<Shared>,
    piece: Option<Box<Piece>>,
    /// The header and the name.
    head: Vec<u8>,
    /// Of both.
    sent: usize,
    waits: Waits,
    /// The file whose name this stream sent last.
    named: Option<u32>,
}

impl Outlet {
    /// Readable where [`Outlet::fill`] would give something else than [`Filled::NotYet`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.shared.ring.piece_fd()
    }

    /// Makes sure that there are [`Outlet::bytes`].
    ///
    /// # Errors
    /// A file could not be read, or became shorter.
    pub fn fill(&mut self) -> io::Result<Filled> {
        if self.piece.is_some() {
            return Ok(Filled::Bytes);
        }
        match self.shared.ring.take(&mut self.waits)? {
            Taken::NotYet => Ok(Filled::NotYet),
            Taken::End => Ok(Filled::End),
            Taken::Piece(mut piece) => {
                let new = self.named != Some(piece.header.file);
                let name: &[u8] = if new { &piece.name } else { &[] };
                piece.header.name = u16::try_from(name.len()).unwrap_or(0);
                self.head.clear();
                self.head.extend_from_slice(&piece.header.encode());
                self.head.extend_from_slice(name);
                self.named = Some(piece.header.file);
                self.sent = 0;
                self.piece = Some(piece);
                Ok(Filled::Bytes)
            }
        }
    }

    /// What is to be sent next.
    pub fn bytes(&mut self) -> &[u8] {
        let head = self.head.len();
        match &mut self.piece {
            Some(_) if self.sent < head => &self.head[self.sent..],
            Some(piece) => &piece.data()[self.sent - head..],
            None => &[],
        }
    }

    /// So many of them were.
    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        let Some(piece) = &self.piece else { return };
        let length = piece.header.length as usize;
        if self.sent >= self.head.len() + length
            && let Some(piece) = self.piece.take()
        {
            self.shared.ring.give_back(piece.room, length as u64);
        }
    }
}
