//! What the threads of one test share: when to begin, when to stop, how far to drain.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use linerate_kernel::clock;
use linerate_kernel::event::EventFd;
use linerate_model::units::Nanos;

/// Opens once for everybody, closes once for everybody. The event descriptors stay raised, so any
/// number of threads can poll them.
#[derive(Debug)]
pub(crate) struct Gate {
    start: EventFd,
    started_ns: AtomicU64,
    stop: EventFd,
    stopped_ns: AtomicU64,
    peer_stopped_ns: AtomicU64,
    cut: EventFd,
    cutting: AtomicBool,
    /// Raised by a stream thread that has something to tell its controller.
    news: EventFd,
    finished: AtomicU64,
    file_end: OnceLock<FileEnd>,
}

/// How a stream's file ends the whole test.
#[derive(Debug, Clone)]
pub(crate) enum FileEnd {
    /// All of it was sent.
    Sent,
    /// It could not be read or written.
    Failed {
        /// What was done, and why it failed.
        error: String,
        /// The kernel's error number, or 0.
        errno: i32,
    },
}

impl Gate {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            start: EventFd::new()?,
            started_ns: AtomicU64::new(0),
            stop: EventFd::new()?,
            stopped_ns: AtomicU64::new(0),
            peer_stopped_ns: AtomicU64::new(0),
            cut: EventFd::new()?,
            cutting: AtomicBool::new(false),
            news: EventFd::new()?,
            finished: AtomicU64::new(0),
            file_end: OnceLock::new(),
        })
    }

    /// Lets the streams go; the instant, of the first call, is theirs all.
    pub(crate) fn open(&self) -> Nanos {
        once(&self.started_ns, &self.start)
    }

    /// Ends the test: senders stop, receivers drain.
    pub(crate) fn close(&self) -> Nanos {
        once(&self.stopped_ns, &self.stop)
    }

    /// The peer has said that it writes no more.
    pub(crate) fn peer_has_stopped(&self) {
        self.peer_stopped_ns
            .store(clock::monotonic().0, Ordering::Release);
    }

    /// When the peer said so.
    pub(crate) fn peer_stopped(&self) -> Option<Nanos> {
        Some(Nanos(self.peer_stopped_ns.load(Ordering::Acquire))).filter(|at| at.0 > 0)
    }

    /// Ends draining as well: every thread returns with what it has.
    pub(crate) fn cut(&self) {
        self.close();
        self.cutting.store(true, Ordering::Release);
        raise(&self.start);
        raise(&self.cut);
    }

    pub(crate) fn started(&self) -> Option<Nanos> {
        Some(Nanos(self.started_ns.load(Ordering::Acquire))).filter(|at| at.0 > 0)
    }

    pub(crate) fn stopped(&self) -> Option<Nanos> {
        Some(Nanos(self.stopped_ns.load(Ordering::Relaxed))).filter(|at| at.0 > 0)
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.cutting.load(Ordering::Acquire)
    }

    pub(crate) fn start_fd(&self) -> BorrowedFd<'_> {
        self.start.as_fd()
    }

    pub(crate) fn stop_fd(&self) -> BorrowedFd<'_> {
        self.stop.as_fd()
    }

    pub(crate) fn cut_fd(&self) -> BorrowedFd<'_> {
        self.cut.as_fd()
    }

    /// Polled by the controller; [`Gate::hear`] clears it.
    pub(crate) fn news_fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    pub(crate) fn hear(&self) {
        drop(self.news.clear());
    }

    /// A stream has nothing more to do.
    pub(crate) fn report_finished(&self) {
        self.finished.fetch_add(1, Ordering::AcqRel);
        raise(&self.news);
    }

    /// A stream's file ends the test; the first to say so counts.
    pub(crate) fn end_by_file(&self, end: FileEnd) {
        if self.file_end.set(end).is_ok() {
            raise(&self.news);
        }
    }

    pub(crate) fn file_end(&self) -> Option<&FileEnd> {
        self.file_end.get()
    }

    pub(crate) fn finished(&self) -> u64 {
        self.finished.load(Ordering::Acquire)
    }
}

/// Notes the instant of the first call and raises the event; that instant.
fn once(first_ns: &AtomicU64, event: &EventFd) -> Nanos {
    let now = clock::monotonic().0;
    let first = first_ns.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire);
    raise(event);
    Nanos(first.map_or_else(|earlier| earlier, |_| now))
}

/// An event descriptor can only fail to be raised when its counter is full, and then it is raised.
fn raise(event: &EventFd) {
    drop(event.raise());
}
