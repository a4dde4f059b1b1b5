//! The one thread that writes. It takes what is waiting into one transaction, and acknowledges after the commit.

use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::error::ArchiveError;

/// A transaction takes in more work for at most so long. It never waits for more.
const BATCH: Duration = Duration::from_millis(20);

/// What is written in a transaction that it may share with others.
trait Job: Send {
    /// Does it; `false` where it failed and has to be taken back.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Acknowledges it, after the commit.
    fn acknowledge(self: Box<Self>, committed: Result<(), ArchiveError>);
}

struct Work<T, F> {
    todo: Option<F>,
    result: Option<Result<T, ArchiveError>>,
    reply: SyncSender<Result<T, ArchiveError>>,
}

impl<T, F> Job for Work<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, ArchiveError> + Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        self.result = self.todo.take().map(|work| work(connection));
        matches!(self.result, Some(Ok(_)))
    }

    fn acknowledge(self: Box<Self>, committed: Result<(), ArchiveError>) {
        let result = match (self.result, committed) {
            // Its own error says more than that of the transaction.
            (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            (result, Ok(())) => result.unwrap_or(Err(ArchiveError::Closed)),
        };
        // Whoever asked may be gone.
        drop(self.reply.send(result));
    }
}

/// The thread, ended when dropped.
pub(crate) struct Writer {
    jobs: Option<Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts it; `committed` is called after each transaction, before anything in it is acknowledged.
    pub(crate) fn start(
        connection: Connection,
        committed: impl Fn(&Connection) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (jobs, waiting) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("archive".to_owned())
            .spawn(move || write(&connection, &waiting, &committed))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Does this in a transaction, and returns once that is on disk.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, ArchiveError> + Send + 'static,
    ) -> Result<T, ArchiveError> {
        let (reply, answer) = mpsc::sync_channel(1);
        let job = Box::new(Work {
            todo: Some(work),
            result: None,
            reply,
        });
        let jobs = self.jobs.as_ref().ok_or(ArchiveError::Closed)?;
        jobs.send(job).map_err(|_| ArchiveError::Closed)?;
        answer.recv().unwrap_or(Err(ArchiveError::Closed))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn write(
    connection: &Connection,
    waiting: &Receiver<Box<dyn Job>>,
    committed: &impl Fn(&Connection),
) {
    while let Ok(first) = waiting.recv() {
        let mut batch = Vec::new();
        let result = transaction(connection, first, waiting, &mut batch);
        if result.is_err() && !connection.is_autocommit() {
            // An error here leaves the transaction open; the next BEGIN then says so.
            drop(connection.execute_batch("ROLLBACK"));
        }
        if result.is_ok() {
            committed(connection);
        }
        for job in batch {
            job.acknowledge(result.clone());
        }
    }
}

fn transaction(
    connection: &Connection,
    first: Box<dyn Job>,
    waiting: &Receiver<Box<dyn Job>>,
    batch: &mut Vec<Box<dyn Job>>,
) -> Result<(), ArchiveError> {
    let what = ArchiveError::database;
    let began = Instant::now();
    let begun = connection.execute_batch("BEGIN IMMEDIATE");
    let mut next = Some(first);
    while let Some(mut job) = next.take() {
        if begun.is_err() {
            batch.push(job);
            break;
        }
        let done = one(connection, job.as_mut());
        batch.push(job);
        done?;
        if began.elapsed() < BATCH {
            next = waiting.try_recv().ok();
        }
    }
    begun.map_err(what("begin a transaction"))?;
    connection
        .execute_batch("COMMIT")
        .map_err(what("commit a transaction"))
}

/// Does one job; what it wrote is taken back where it fails.
fn one(connection: &Connection, job: &mut dyn Job) -> Result<(), ArchiveError> {
    let what = ArchiveError::database;
    connection
        .execute_batch("SAVEPOINT job")
        .map_err(what("begin a part of a transaction"))?;
    let end = if job.run(connection) {
        "RELEASE job"
    } else if connection.is_autocommit() {
        // SQLite took back the whole transaction, as it does when the disk is full.
        return Err(ArchiveError::Full {
            what: "write to the archive",
        });
    } else {
        "ROLLBACK TO job; RELEASE job"
    };
    connection
        .execute_batch(end)
        .map_err(what("end a part of a transaction"))
}
