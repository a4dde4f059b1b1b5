//! A bounded ring of pieces between the threads of a stage and the streams of its end, which tells for how long it was empty
//! and full.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use linerate_kernel::aligned::Aligned;
use linerate_kernel::clock;
use linerate_kernel::event::EventFd;
use linerate_model::transfer::{MAX_RING_SAMPLES, RingRecord, RingSample};
use linerate_model::units::{Bytes, Nanos};

use super::ALIGNMENT;
use super::frame::Header;

/// Between two samples.
const SAMPLE: Nanos = Nanos::from_millis(100);

/// Memory for a piece, counted in its ring until it is given back.
#[derive(Debug)]
pub(super) struct Room {
    memory: Aligned,
    /// What it counts as.
    bytes: usize,
}

impl Room {
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        self.memory.bytes()
    }
}

/// A part of a file.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) header: Header,
    pub(super) name: Arc<[u8]>,
    pub(super) room: Room,
}

impl Piece {
    /// Its bytes.
    pub(super) fn data(&mut self) -> &[u8] {
        let length = self.header.length as usize;
        &self.room.bytes()[..length]
    }
}

/// What a ring has for somebody who does not wait.
pub(super) enum Taken {
    Piece(Box<Piece>),
    NotYet,
    End,
}

/// Whether somebody waits for a piece or for room.
#[derive(Debug, Default)]
pub(super) struct Waits(bool);

#[derive(Debug)]
struct State {
    queue: VecDeque<Piece>,
    /// Bytes of pieces in it, or being read into it or taken out.
    held: usize,
    ended: bool,
    failed: Option<(String, i32)>,
    want_piece: usize,
    want_room: usize,
    /// Memory to use again, of pieces that were the longest so far.
    spare: Vec<Aligned>,
    spare_bytes: usize,
    began: Option<Nanos>,
    since: Nanos,
    record: RingRecord,
    moved: u64,
    sampled: Nanos,
    every: Nanos,
}

#[derive(Debug)]
pub(super) struct Ring {
    capacity: usize,
    state: Mutex<State>,
    pieces: Condvar,
    room: Condvar,
    piece_event: EventFd,
    room_event: EventFd,
}

impl Ring {
    pub(super) fn new(capacity: usize) -> io::Result<Self> {
        let state = State {
            queue: VecDeque::new(),
            held: 0,
            ended: false,
            failed: None,
            want_piece: 0,
            want_room: 0,
            spare: Vec::new(),
            spare_bytes: 0,
            began: None,
            since: Nanos::ZERO,
            record: RingRecord {
                capacity: Bytes(capacity as u64),
                ..RingRecord::default()
            },
            moved: 0,
            sampled: Nanos::ZERO,
            every: SAMPLE,
        };
        Ok(Self {
            capacity,
            state: Mutex::new(state),
            pieces: Condvar::new(),
            room: Condvar::new(),
            piece_event: EventFd::new()?,
            room_event: EventFd::new()?,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.pass(clock::monotonic());
        state
    }

    /// Its times begin.
    pub(super) fn begin(&self) {
        let now = clock::monotonic();
        let mut state = self.lock();
        if state.began.is_none() {
            (state.began, state.since, state.sampled) = (Some(now), now, now);
        }
    }

    /// Readable where [`Ring::take`] has something.
    pub(super) fn piece_fd(&self) -> BorrowedFd<'_> {
        self.piece_event.as_fd()
    }

    /// Readable where [`Ring::reserve`] has room.
    pub(super) fn room_fd(&self) -> BorrowedFd<'_> {
        self.room_event.as_fd()
    }

    /// Room for a piece of so many bytes, if there is.
    ///
    /// # Errors
    /// Why nothing more is taken.
    pub(super) fn reserve(&self, bytes: usize, waits: &mut Waits) -> io::Result<Option<Room>> {
        let mut state = self.lock();
        if let Some((error, errno)) = &state.failed {
            return Err(failure(error, *errno));
        }
        let room = self.take_room(&mut state, bytes);
        wait_if(&mut state.want_room, waits, room.is_none());
        if room.is_none() {
            drop(self.room_event.clear());
        }
        Ok(room)
    }

    /// The same, waiting for it; nothing where the ring has ended or failed.
    pub(super) fn reserve_waiting(&self, bytes: usize) -> Option<Room> {
        let mut state = self.lock();
        let mut waits = Waits::default();
        loop {
            if state.ended || state.failed.is_some() {
                wait_if(&mut state.want_room, &mut waits, false);
                return None;
            }
            let room = self.take_room(&mut state, bytes);
            wait_if(&mut state.want_room, &mut waits, room.is_none());
            if room.is_some() {
                return room;
            }
            state = self
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.pass(clock::monotonic());
        }
    }

    fn take_room(&self, state: &mut State, bytes: usize) -> Option<Room> {
        let bytes = bytes.next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        if state.held > 0 && state.held + bytes > self.capacity {
            return None;
        }
        state.held += bytes;
        let fits = bytes == state.spare_bytes;
        let spare = fits.then(|| state.spare.pop()).flatten();
        // What is kept for later is part of the ring's memory.
        while state.held + state.spare.len() * state.spare_bytes > self.capacity
            && state.spare.pop().is_some()
        {}
        let memory = spare.unwrap_or_else(|| Aligned::new(bytes, ALIGNMENT));
        Some(Room { memory, bytes })
    }

    pub(super) fn put(&self, piece: Piece) {
        let mut state = self.lock();
        state.queue.push_back(piece);
        self.tell_pieces(&state);
    }

    /// The next piece, if there is one.
    ///
    /// # Errors
    /// Why none comes any more.
    pub(super) fn take(&self, waits: &mut Waits) -> io::Result<Taken> {
        let mut state = self.lock();
        if let Some((error, errno)) = &state.failed {
            return Err(failure(error, *errno));
        }
        let piece = state.queue.pop_front();
        let none_yet = piece.is_none() && !state.ended;
        wait_if(&mut state.want_piece, waits, none_yet);
        if none_yet {
            drop(self.piece_event.clear());
        }
        Ok(match piece {
            Some(piece) => Taken::Piece(Box::new(piece)),
            None if none_yet => Taken::NotYet,
            None => Taken::End,
        })
    }

    /// The same, waiting for it; nothing where the ring has ended and is empty, or has failed.
    pub(super) fn take_waiting(&self) -> Option<Piece> {
        let mut state = self.lock();
        let mut waits = Waits::default();
        loop {
            let piece = match state.failed {
                Some(_) => None,
                None => state.queue.pop_front(),
            };
            let waiting = piece.is_none() && !state.ended && state.failed.is_none();
            wait_if(&mut state.want_piece, &mut waits, waiting);
            if !waiting {
                return piece;
            }
            state = self
                .pieces
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.pass(clock::monotonic());
        }
    }

    /// A piece was sent or written: its room is free, and its bytes have moved.
    pub(super) fn give_back(&self, room: Room, moved: u64) {
        let mut state = self.lock();
        state.held -= room.bytes;
        state.moved += moved;
        if room.bytes > state.spare_bytes {
            state.spare.clear();
            state.spare_bytes = room.bytes;
        }
        if room.bytes == state.spare_bytes {
            state.spare.push(room.memory);
        }
        if state.want_room > 0 {
            drop(self.room_event.raise());
            self.room.notify_all();
        }
    }

    /// Nothing more is put into it.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        drop(state);
        self.tell_all();
    }

    /// Nothing more is put into it or taken out; the first reason stays.
    pub(super) fn fail(&self, error: String, errno: i32) {
        let mut state = self.lock();
        state.failed.get_or_insert((error, errno));
        drop(state);
        self.tell_all();
    }

    pub(super) fn failed(&self) -> Option<String> {
        self.lock().failed.as_ref().map(|(error, _)| error.clone())
    }

    pub(super) fn record(&self) -> RingRecord {
        self.lock().record.clone()
    }

    fn tell_pieces(&self, state: &State) {
        drop(self.piece_event.raise());
        if state.want_piece > 0 {
            self.pieces.notify_one();
        }
    }

    fn tell_all(&self) {
        drop(self.piece_event.raise());
        drop(self.room_event.raise());
        self.pieces.notify_all();
        self.room.notify_all();
    }
}

impl State {
    /// Books the time since the last change to the state that the ring was in.
    fn pass(&mut self, now: Nanos) {
        // What becomes of a ring that has failed is no part of its transfer.
        if self.began.is_none() || self.failed.is_some() {
            return;
        }
        let time = now.since(self.since).0;
        self.since = now;
        let over = self.ended && self.queue.is_empty();
        let record = &mut self.record;
        let part = if self.want_room > 0 {
            &mut record.full
        } else if self.want_piece > 0 && self.queue.is_empty() && !over {
            &mut record.empty
        } else {
            &mut record.between
        };
        part.0 += time;
        if now.since(self.sampled) >= self.every {
            self.sampled = now;
            self.sample(now);
        }
    }

    fn sample(&mut self, now: Nanos) {
        let record = &mut self.record;
        if record.samples.len() >= MAX_RING_SAMPLES {
            let mut odd = false;
            record.samples.retain(|_| {
                odd = !odd;
                odd
            });
            self.every = Nanos(self.every.0 * 2);
        }
        record.samples.push(RingSample {
            at: now,
            moved: Bytes(self.moved),
            held: Bytes(self.held as u64),
            empty: record.empty,
            full: record.full,
        });
    }
}

/// Counts who waits, once each.
fn wait_if(count: &mut usize, waits: &mut Waits, now: bool) {
    match (waits.0, now) {
        (false, true) => *count += 1,
        (true, false) => *count -= 1,
        _ => {}
    }
    waits.0 = now;
}

fn failure(error: &str, errno: i32) -> io::Error {
    let kind = io::Error::from_raw_os_error(errno).kind();
    io::Error::new(kind, error.to_owned())
}
