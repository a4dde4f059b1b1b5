//! One command of an agent: its files, its process, its output.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use linerate_kernel::clock;
use linerate_kernel::event::EventFd;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::process::{ChildSettings, signal_group, spawn_bound};
use linerate_model::units::Nanos;
use linerate_wire::agent::{Ask, Header, Outcome, Stream, Word};

use super::exclusive::Alone;
use super::{Agent, stand_in};
use crate::lab::ourselves;
use crate::signals::TERMINATE;

/// How often it is looked whether the command has ended: one that it started may keep its output open.
const LOOK: Nanos = Nanos::from_millis(100);
/// A command that was told to end has so long.
const GRACE: Nanos = Nanos::from_millis(5_000);
/// A file goes back in pieces of this size, bytes.
const PIECE: usize = 1 << 20;
/// The kernel's signal that nothing survives.
const KILL: i32 = 9;

/// A command that was asked for.
pub(super) struct Task<'a> {
    agent: &'a Agent,
    ask: &'a Ask,
    cancel: &'a EventFd,
}

impl<'a> Task<'a> {
    pub(super) const fn new(agent: &'a Agent, ask: &'a Ask, cancel: &'a EventFd) -> Self {
        Self { agent, ask, cancel }
    }

    /// Runs it to its end; it goes with the thread that calls this.
    pub(super) fn run(&self, body: &[u8]) -> Outcome {
        let _alone = match self.ask.exclusive.as_deref().map(alone) {
            None => None,
            Some(Ok(Ok(alone))) => Some(alone),
            Some(Ok(Err(who))) => return Outcome::Busy(who.into()),
            Some(Err(error)) => return refused("take the right to run alone", &error),
        };
        let prepared = match self.prepare(body) {
            Ok(prepared) => prepared,
            Err(error) => return refused("write the command's files", &error),
        };
        let outcome = self.command(&prepared);
        let outcome = outcome.unwrap_or_else(|error| refused("run the command", &error));
        for (at, path) in prepared.out.iter().enumerate() {
            // A command that failed may have written none.
            drop(path.as_ref().map(|path| self.send_file(at, path)));
        }
        if let Some(folder) = prepared.folder {
            drop(fs::remove_dir_all(folder));
        }
        outcome
    }

    /// Writes its files and knows its arguments.
    fn prepare(&self, body: &[u8]) -> io::Result<Prepared> {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let files = self.ask.files_in(body);
        let files = files.map_err(|error| invalid(error.to_string()))?;
        let mut prepared = Prepared::default();
        let writes = |word: &Word| !matches!(word, Word::Text(_));
        if self.ask.words.iter().any(writes) {
            prepared.folder = Some(self.agent.folder.of(self.ask.ask)?);
        }
        let mut inputs: Vec<OsString> = Vec::new();
        for (at, (file, bytes)) in self.ask.files.iter().zip(files).enumerate() {
            let name = free_name(&file.name, at, &inputs);
            if let Some(folder) = &prepared.folder {
                let mut options = OpenOptions::new();
                let mut made = options
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(folder.join(&name))?;
                made.write_all(bytes)?;
            }
            inputs.push(name);
        }
        for word in &self.ask.words {
            let word = match word {
                Word::Text(text) => OsString::from(text),
                Word::In(at) => inputs
                    .get(*at)
                    .cloned()
                    .ok_or_else(|| invalid(format!("there is no file {at}")))?,
                Word::Out(at) => prepared.output(*at)?,
            };
            prepared.words.push(word);
        }
        Ok(prepared)
    }

    fn command(&self, prepared: &Prepared) -> io::Result<Outcome> {
        let mut command = ourselves(&prepared.words);
        for (name, value) in &self.ask.environment {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(io::Error::other("a variable that cannot be"));
            }
            if value.is_empty() {
                command.env_remove(name);
            } else {
                command.env(name, value);
            }
        }
        // Names of files are relative to it, so that messages name them as the user did.
        if let Some(folder) = &prepared.folder {
            command.current_dir(folder);
        }
        let status = self.attend(&mut command)?;
        Ok(match (status.code(), status.signal()) {
            (Some(code), _) => Outcome::Code(code),
            (None, signal) => Outcome::Signal(signal.unwrap_or_default()),
        })
    }

    /// Starts the command and passes its output on until it has ended.
    fn attend(&self, command: &mut Command) -> io::Result<ExitStatus> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        std::os::unix::process::CommandExt::process_group(command, 0);
        let mut child = spawn_bound(command, &ChildSettings::default())?;
        let ended = self.follow(&mut child);
        if ended.is_err() {
            // It would write to its folder while that is removed.
            drop(child.kill());
            drop(child.wait());
        }
        ended
    }

    fn follow(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let mut out = child.stdout.take();
        let mut err = child.stderr.take();
        let mut cancelled = None;
        let mut piece = vec![0; 64 << 10];
        loop {
            let ended = child.try_wait()?;
            let patience = if ended.is_some() { Nanos::ZERO } else { LOOK };
            let [from_out, from_err, cancel] = self.ready(
                [
                    out.as_ref().map(|out| out.as_fd()),
                    err.as_ref().map(|err| err.as_fd()),
                ],
                cancelled.is_some(),
                patience,
            )?;
            if from_out {
                self.pass_on(&mut out, Stream::Out, &mut piece)?;
            }
            if from_err {
                self.pass_on(&mut err, Stream::Err, &mut piece)?;
            }
            if let Some(status) = ended
                && !from_out
                && !from_err
            {
                return Ok(status);
            }
            if self.agent.is_closed() {
                return Err(io::Error::other("the agent ends"));
            }
            if cancel {
                cancelled = Some(clock::monotonic());
                drop(signal_group(child.id(), TERMINATE));
            }
            if ended.is_none() && out.is_none() && err.is_none() {
                // Nothing more can come but its end.
                std::thread::sleep(Nanos::from_millis(1).as_duration());
            }
            if cancelled.is_some_and(|since| clock::monotonic().since(since) > GRACE) {
                kill(child, ended);
            }
        }
    }

    /// Which of its two outputs can be read, and whether it is to be cancelled.
    fn ready(
        &self,
        outputs: [Option<BorrowedFd<'_>>; 2],
        is_cancelled: bool,
        patience: Nanos,
    ) -> io::Result<[bool; 3]> {
        let cancel = (!is_cancelled).then(|| self.cancel.as_fd());
        let [out, err] = outputs;
        let all = [out, err, cancel];
        let known = all.iter().flatten();
        let mut entries: Vec<PollEntry<'_>> = known
            .map(|fd| PollEntry::new(*fd, Interest::READ))
            .collect();
        // Where both outputs are closed, only the end of the process is waited for, which no descriptor tells.
        let patience = if out.is_none() && err.is_none() {
            Nanos::ZERO
        } else {
            patience
        };
        poll::wait(&mut entries, Some(patience))?;
        let mut found = entries.iter().map(|entry| entry.readiness().any());
        Ok(all.map(|fd| fd.is_some() && found.next().unwrap_or(false)))
    }

    /// Sends a piece of output; at its end the stream is closed.
    fn pass_on(
        &self,
        from: &mut Option<impl io::Read>,
        to: Stream,
        piece: &mut [u8],
    ) -> io::Result<()> {
        let Some(stream) = from else { return Ok(()) };
        match stream.read(piece) {
            Ok(0) => *from = None,
            Ok(length) => {
                let ask = self.ask.ask;
                self.agent
                    .send(&Header::Output { ask, to }, &piece[..length])?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Sends a file that the command wrote.
    fn send_file(&self, at: usize, path: &PathBuf) -> io::Result<()> {
        let mut file = fs::File::open(path)?;
        let mut piece = vec![0; PIECE];
        let header = Header::Output {
            ask: self.ask.ask,
            to: Stream::File(at),
        };
        // It ends with the file.
        loop {
            let length = file.read(&mut piece)?;
            if length == 0 {
                return Ok(());
            }
            self.agent.send(&header, &piece[..length])?;
        }
    }
}

fn kill(child: &Child, ended: Option<ExitStatus>) {
    if ended.is_none() {
        drop(signal_group(child.id(), KILL));
    }
}

/// The arguments and files of a command.
#[derive(Default)]
struct Prepared {
    folder: Option<PathBuf>,
    words: Vec<OsString>,
    /// Files that it writes, by index.
    out: Vec<Option<PathBuf>>,
}

impl Prepared {
    /// The name of a file that the command is to write.
    fn output(&mut self, at: usize) -> io::Result<OsString> {
        if at >= 64 {
            return Err(io::Error::other("at most 64 files come back"));
        }
        let name = OsString::from(format!("out-{at}"));
        if self.out.len() <= at {
            self.out.resize(at + 1, None);
        }
        self.out[at] = self.folder.as_ref().map(|folder| folder.join(&name));
        Ok(name)
    }
}

/// A file's own name, where it is a harmless one that no other file of the command has.
fn free_name(name: &str, at: usize, taken: &[OsString]) -> OsString {
    let harmless = |letter: char| letter.is_ascii_alphanumeric() || "._-+@".contains(letter);
    let fits = !name.is_empty()
        && name.len() <= 200
        && name.chars().all(harmless)
        && !name.starts_with(['.', '-'])
        && !name.starts_with("out-")
        && !taken.iter().any(|other| other == name);
    if fits {
        return name.into();
    }
    // What kind of file it is stands behind its last dot.
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    let end: String = end
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(16)
        .collect();
    format!("in-{at}.{end}").into()
}

fn alone(who: &str) -> io::Result<Result<Alone, String>> {
    Alone::take(stand_in().as_deref(), who)
}

fn refused(what: &str, error: &io::Error) -> Outcome {
    Outcome::Refused(format!("cannot {what}: {error}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_name_where_that_is_harmless() {
        let name = |name: &str| free_name(name, 3, &["a.toml".into()]);
        assert_eq!(name("10g.toml"), "10g.toml");
        assert_eq!(name("a.toml"), "in-3.toml");
        for foreign in [
            "../x.conf",
            "-x.conf",
            ".x.conf",
            "a b.conf",
            "out-0.conf",
            "",
        ] {
            let name = name(foreign).into_string().unwrap();
            assert!(name.starts_with("in-3."), "{foreign}: {name}");
            assert!(
                foreign.is_empty() || name == "in-3.conf",
                "{foreign}: {name}"
            );
        }
    }
}
