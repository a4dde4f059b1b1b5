//! A command that runs on a host.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;

use linerate_model::bounds::MAX_RECORD_BYTES;
use linerate_model::units::Nanos;
use linerate_wire::agent::{Outcome, Stream};

use super::traffic::{Events, Incoming, Traffic};
use crate::error::{FleetError, Phase, Trouble};

/// No command writes larger files, all of them together, bytes: nobody reads a larger record.
const MOST_FILES: usize = MAX_RECORD_BYTES;

/// What comes from a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It wrote this to standard output.
    Out(Vec<u8>),
    /// It wrote this to standard error.
    Err(Vec<u8>),
    /// The whole of a file that it wrote: that of [`Word::Out`](linerate_wire::agent::Word::Out) with this index. It
    /// comes after all output.
    File(usize, Vec<u8>),
    /// It ended. Nothing follows.
    Ended(Outcome),
}

/// A command that was asked for. Dropping it ends the command.
#[derive(Debug)]
pub struct Asked {
    traffic: Arc<Traffic>,
    number: u64,
    events: Events,
    files: BTreeMap<usize, Vec<u8>>,
    ready: VecDeque<Event>,
    ended: bool,
}

impl Asked {
    pub(super) fn new(traffic: Arc<Traffic>, number: u64, events: Events) -> Self {
        Self {
            traffic,
            number,
            events,
            files: BTreeMap::new(),
            ready: VecDeque::new(),
            ended: false,
        }
    }

    /// Waits for what comes next. Without `patience` it waits as long as the host is there.
    ///
    /// # Errors
    /// [`Trouble::Silent`] where nothing comes in time, after which it may be called again; [`Trouble::Refused`] and
    /// [`Trouble::Busy`] where the agent did not run it; why the connection ended, also after [`Event::Ended`].
    pub fn next(&mut self, patience: Option<Nanos>) -> Result<Event, FleetError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if self.ended {
                return Err(self.traffic.why());
            }
            match self.incoming(patience)? {
                Incoming::Output(Stream::Out, bytes) => return Ok(Event::Out(bytes)),
                Incoming::Output(Stream::Err, bytes) => return Ok(Event::Err(bytes)),
                Incoming::Output(Stream::File(at), bytes) => self.keep(at, &bytes)?,
                Incoming::Ended(outcome) => self.end(outcome)?,
            }
        }
    }

    /// Ends the command: SIGTERM, after some seconds SIGKILL. Its last output and its end still come.
    pub fn cancel(&self) {
        self.traffic.cancel(self.number);
    }

    fn incoming(&self, patience: Option<Nanos>) -> Result<Incoming, FleetError> {
        self.events.next(patience).map_err(|error| match error {
            RecvTimeoutError::Disconnected => self.traffic.why(),
            RecvTimeoutError::Timeout => Trouble::Silent {
                phase: Phase::Running,
                patience: patience.unwrap_or_default(),
                said: String::new().into(),
            }
            .of(self.traffic.host()),
        })
    }

    fn keep(&mut self, at: usize, bytes: &[u8]) -> Result<(), FleetError> {
        self.files.entry(at).or_default().extend_from_slice(bytes);
        if self.files.values().map(Vec::len).sum::<usize>() <= MOST_FILES {
            return Ok(());
        }
        self.cancel();
        let what = format!("files of more than {MOST_FILES} bytes");
        Err(Trouble::OutOfTurn { what }.of(self.traffic.host()))
    }

    fn end(&mut self, outcome: Outcome) -> Result<(), FleetError> {
        self.ended = true;
        match outcome {
            Outcome::Refused(why) => Err(Trouble::Refused { why }.of(self.traffic.host())),
            Outcome::Busy(who) => Err(Trouble::Busy { who }.of(self.traffic.host())),
            outcome => {
                let files = std::mem::take(&mut self.files).into_iter();
                self.ready
                    .extend(files.map(|(at, bytes)| Event::File(at, bytes)));
                self.ready.push_back(Event::Ended(outcome));
                Ok(())
            }
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.ended {
            self.traffic.forget(self.number);
        }
    }
}
