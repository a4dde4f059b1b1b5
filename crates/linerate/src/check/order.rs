//! What a child of a run is asked for, and what it answers. Everything that may hang on a disk, a peer or a program is done by a
//! child: reading a file as much as writing one.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use linerate_check::settings::What;
use linerate_kernel::directory::{Directory, Replacement};
use linerate_kernel::process::search_path;
use linerate_model::check::Item;
use serde::{Deserialize, Serialize};

use super::looks;
use crate::action::Failure;

/// No order is longer, bytes: a pipe holds it, so that writing it does not wait for the child.
pub(super) const LONGEST: usize = 60 << 10;

/// The mode of files that only we read.
pub(super) const OURS: u32 = 0o600;

/// What a child does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Order {
    /// A check.
    Look {
        what: What,
        /// What it answered the last time.
        before: Option<serde_json::Value>,
    },
    /// Reads a file.
    Read { path: PathBuf },
    /// Replaces a file with this text and mode, or removes it.
    Write {
        path: PathBuf,
        text: Option<String>,
        mode: u32,
    },
    /// Becomes a program: its output and its exit code are the answer.
    Become {
        run: Vec<String>,
        environment: Vec<(String, String)>,
    },
    /// Runs a program with this on its standard input.
    Feed { run: Vec<String>, input: String },
}

/// What it answers on standard output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Answer {
    /// Of a check, with what it wants to know the next time.
    Looked {
        items: Vec<Item>,
        next: Option<serde_json::Value>,
    },
    /// The text of a file; `None` where there is none.
    Text(Option<String>),
    /// It was done.
    Done,
    /// It could not be done.
    Failed(String),
}

/// Carries out the order on standard input.
pub(super) fn carry_out() -> Result<(), Failure> {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    let order = read
        .map_err(|error| error.to_string())
        .and_then(|_| serde_json::from_str(&text).map_err(|error| error.to_string()))
        .map_err(|error| Failure::Usage(format!("--one: no order on standard input: {error}")))?;
    let answer = match order {
        Order::Look { what, before } => looks::look(&what, before),
        Order::Read { path } => answer(read_file(&path).map(Answer::Text)),
        Order::Write { path, text, mode } => {
            answer(write(&path, text.as_deref(), mode).map(|()| Answer::Done))
        }
        // It returns only where that failed.
        Order::Become { run, environment } => {
            answer(program(&run).and_then(|mut program| Err(program.envs(environment).exec())))
        }
        Order::Feed { run, input } => answer(feed(&run, &input).map(|()| Answer::Done)),
    };
    let text = serde_json::to_string(&answer).unwrap_or_default();
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

fn answer(result: std::io::Result<Answer>) -> Answer {
    result.unwrap_or_else(|error| Answer::Failed(error.to_string()))
}

/// A program with its arguments, found also where the path is empty, as Slurm's health checks have it.
pub(super) fn program(run: &[impl AsRef<OsStr>]) -> std::io::Result<Command> {
    let [program, arguments @ ..] = run else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", search_path());
    command.stdin(Stdio::null());
    Ok(command)
}

fn read_file(path: &Path) -> std::io::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces a file so that nobody reads half of it, and nothing else is there after a power cut.
pub(super) fn write(path: &Path, text: Option<&str>, mode: u32) -> std::io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let Some(text) = text else {
        return match std::fs::remove_file(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
    };
    // A folder of others is theirs to make, with the rights that its readers need.
    if mode == OURS {
        make_folder(folder)?;
    }
    let folder = Directory::open(folder)?;
    let mut file = Replacement::begin(folder.share()?, mode)?;
    file.file().write_all(text.as_bytes())?;
    file.file().sync_all()?;
    file.take(name)?;
    folder.sync()
}

/// A folder that only we may read.
pub(super) fn make_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

fn feed(run: &[String], input: &str) -> std::io::Result<()> {
    let mut child = program(run)?
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read it may end before.
        drop(stdin.write_all(input.as_bytes()));
    }
    let status = child.wait()?;
    if status.success() {
        Ok(())
    } else {
        Err(std::io::Error::other(format!("it ended with {status}")))
    }
}
