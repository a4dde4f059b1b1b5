//! A server's lines on their way to an output that may be slow, full or gone: no test waits for it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Where so much text waits to be written, bytes, no more is taken: some ten thousand lines. The last text taken may go beyond
/// it, since the document of a test with many streams may alone be longer.
const MOST_WAITING: usize = 4 << 20;
/// How long the end of a server waits until its last lines are written.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Takes text at once, and writes it on a thread of its own. Where [`MOST_WAITING`] waits, new text is
/// dropped; its lines are counted, and the count is written once there is room again.
#[derive(Debug, Clone)]
pub(crate) struct Outlet(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Item>,
    bytes: usize,
    /// Lines that were not written since the last note of them.
    dropped: usize,
    writing: bool,
}

#[derive(Debug)]
enum Item {
    Text(String),
    /// So many lines are missing here.
    Missing(usize),
}

impl Outlet {
    /// Starts the thread. `write` writes text and may block; `missing` says in the output's own form how many lines
    /// are missing; `failed` gets the first error of `write`, unless it says that the reader has gone.
    ///
    /// # Errors
    /// The kernel's, where there is no thread to be had.
    pub(crate) fn start(
        mut write: impl FnMut(&str) -> io::Result<()> + Send + 'static,
        missing: impl Fn(usize) -> String + Send + 'static,
        failed: impl FnOnce(&io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let outlet = Self(Arc::clone(&shared));
        let mut failed = Some(failed);
        let writer = move || {
            loop {
                let item = shared.next();
                let written = match &item {
                    Item::Text(text) => write(text),
                    Item::Missing(lines) => write(&missing(*lines)),
                };
                if let Err(error) = &written
                    && error.kind() != io::ErrorKind::BrokenPipe
                    && let Some(failed) = failed.take()
                {
                    failed(error);
                }
                shared.written(&item, written.is_ok());
            }
        };
        // It ends with the process.
        let thread = std::thread::Builder::new()
            .name("output".to_owned())
            .stack_size(256 << 10)
            .spawn(writer);
        thread.map(|_| outlet).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("starting the thread that writes it: {error}"),
            )
        })
    }

    /// An outlet for what goes to standard error.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub(crate) fn of_errors(printer: crate::printer::Printer) -> io::Result<Self> {
        let tell = move |text: &str| {
            printer.tell(text);
            Ok(())
        };
        Self::start(tell, missing_text, |_| ())
    }

    /// Takes text; it never waits.
    pub(crate) fn say(&self, text: String) {
        let mut state = self.0.lock();
        if state.bytes >= MOST_WAITING {
            state.dropped += lines(&text);
            return;
        }
        state.note_missing();
        state.bytes += text.len();
        state.waiting.push_back(Item::Text(text));
        self.0.changed.notify_all();
    }

    /// Waits until all is written, and how many lines are missing where some are; 4 s at most.
    pub(crate) fn drain(&self) {
        if self.is_written() {
            let mut state = self.0.lock();
            state.note_missing();
            drop(state);
            self.0.changed.notify_all();
            self.is_written();
        }
    }

    /// Waits until nothing waits; whether that is so.
    fn is_written(&self) -> bool {
        let busy = |state: &mut State| state.writing || !state.waiting.is_empty();
        let waited = self
            .0
            .changed
            .wait_timeout_while(self.0.lock(), LAST_LINES, busy);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Item {
        let mut state = self.lock();
        loop {
            if let Some(item) = state.waiting.pop_front() {
                if let Item::Text(text) = &item {
                    state.bytes -= text.len();
                }
                state.writing = true;
                return item;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn written(&self, item: &Item, whole: bool) {
        let mut state = self.lock();
        state.writing = false;
        if !whole {
            state.dropped += match item {
                Item::Text(text) => lines(text),
                Item::Missing(lines) => *lines,
            };
        }
        self.changed.notify_all();
    }
}

impl State {
    fn note_missing(&mut self) {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            self.waiting.push_back(Item::Missing(dropped));
        }
    }
}

fn lines(text: &str) -> usize {
    text.lines().count().max(1)
}

/// How many lines are missing, for people.
pub(crate) fn missing_text(lines: usize) -> String {
    format!("{lines} lines are missing here: the output could not be written")
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const SHORT: Duration = Duration::from_secs(20);

    /// An outlet whose every write waits for an answer, what it writes, and the errors it reports.
    fn held() -> (
        Outlet,
        Sender<io::Result<()>>,
        Receiver<String>,
        Receiver<String>,
    ) {
        let (answers, answer) = channel();
        let (texts, written) = channel();
        let (errors, failed) = channel();
        let write = move |text: &str| {
            texts.send(text.to_owned()).unwrap();
            answer.recv().unwrap()
        };
        let note = |lines| format!("missing {lines}");
        let fail = move |error: &io::Error| errors.send(error.to_string()).unwrap();
        let outlet = Outlet::start(write, note, fail).unwrap();
        (outlet, answers, written, failed)
    }

    fn next(written: &Receiver<String>) -> String {
        written.recv_timeout(SHORT).unwrap()
    }

    #[test]
    fn nobody_waits_for_a_blocked_write_and_what_was_dropped_is_counted() {
        let (outlet, answers, written, _failed) = held();
        outlet.say("first".to_owned());
        assert_eq!(next(&written), "first");
        // The write of the first has not returned: one of these waits, three lines of the others find no room.
        let long = "x".repeat(MOST_WAITING);
        outlet.say(long.clone());
        outlet.say("dropped".to_owned());
        outlet.say("dropped\ndropped\n".to_owned());
        answers.send(Ok(())).unwrap();
        assert_eq!(next(&written).len(), long.len());
        outlet.say("later".to_owned());
        for _ in 0..2 {
            answers.send(Ok(())).unwrap();
        }
        assert_eq!(next(&written), "missing 3");
        assert_eq!(next(&written), "later");
        answers.send(Ok(())).unwrap();
        outlet.drain();
        assert!(outlet.0.lock().waiting.is_empty());
        assert!(written.try_recv().is_err());
    }

    #[test]
    fn a_full_disk_is_reported_once_and_its_lines_are_counted() {
        let (outlet, answers, written, failed) = held();
        for _ in 0..2 {
            answers
                .send(Err(io::Error::from(ErrorKind::StorageFull)))
                .unwrap();
        }
        outlet.say("a\nb".to_owned());
        assert_eq!(next(&written), "a\nb");
        assert_eq!(
            failed.recv_timeout(SHORT).unwrap(),
            io::Error::from(ErrorKind::StorageFull).to_string()
        );
        outlet.drain();
        assert_eq!(next(&written), "missing 2");
        for _ in 0..2 {
            answers.send(Ok(())).unwrap();
        }
        outlet.say("c".to_owned());
        assert_eq!(next(&written), "missing 2");
        assert_eq!(next(&written), "c");
        assert!(failed.try_recv().is_err());
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error_to_report() {
        let (outlet, answers, written, failed) = held();
        answers
            .send(Err(io::Error::from(ErrorKind::BrokenPipe)))
            .unwrap();
        outlet.say("a".to_owned());
        assert_eq!(next(&written), "a");
        answers.send(Ok(())).unwrap();
        outlet.drain();
        assert_eq!(next(&written), "missing 1");
        assert!(failed.try_recv().is_err());
    }
}
