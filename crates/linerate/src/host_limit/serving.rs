//! The server of the runs, in a process of its own.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;

use linerate_kernel::clock;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::process::{self, ChildSettings};
use linerate_kernel::thread::SignalFd;
use linerate_model::units::Nanos;

use super::runs::stopped;
use crate::action::Failure;
use crate::announcement::Announcement;
use crate::lab::{Program, ourselves};

/// A server that does not listen after so long will not.
const PATIENCE: Nanos = Nanos::from_millis(10_000);

/// `linerate serve` in a process of its own, so that its CPU time is counted separately. It ends with this value, and with
/// this process.
pub(crate) struct Serving {
    _program: Program,
    pub(crate) port: String,
}

impl Serving {
    /// Starts it and waits until it listens.
    pub(crate) fn start(address: &str, stop: &SignalFd) -> Result<Self, Failure> {
        let failed = |why: &str| {
            Failure::Lab(format!(
                "`linerate serve` on {address} did not start: {why}"
            ))
        };
        let mut command = ourselves(["serve", "-p", "0", "-B", address, "--json-stream"]);
        command.stdout(Stdio::piped()).stderr(Stdio::inherit());
        let child = process::spawn_bound(&mut command, &ChildSettings::default())
            .map_err(|error| failed(&error.to_string()))?;
        let mut program = Program { child };
        let out = program.child.stdout.take();
        let out = out.ok_or_else(|| failed("no output"))?;
        let line = match first_line(out, stop.as_fd(), PATIENCE) {
            Ok(Some(line)) => line,
            Ok(None) => return Err(stopped()),
            Err(why) => return Err(failed(&why)),
        };
        let Some(Announcement::Listening { port, .. }) = Announcement::read(&line) else {
            return Err(failed("it does not listen"));
        };
        // A server whose output nobody reads any more goes on serving.
        Ok(Self {
            _program: program,
            port: port.to_string(),
        })
    }
}

/// The first line that comes, or what came of it before the end; `None` once `stop` is readable.
///
/// # Errors
/// In words, also where it does not come within `patience`.
fn first_line(
    mut out: impl Read + AsFd,
    stop: BorrowedFd<'_>,
    patience: Nanos,
) -> Result<Option<String>, String> {
    let until = clock::monotonic().plus(patience);
    let mut line = Vec::new();
    // Each turn has more of the line, or less time.
    while !line.contains(&b'\n') {
        let left = until.since(clock::monotonic());
        if left == Nanos::ZERO {
            return Err(format!("it said nothing for {patience}"));
        }
        let mut entries = [
            PollEntry::new(stop, Interest::READ),
            PollEntry::new(out.as_fd(), Interest::READ),
        ];
        poll::wait(&mut entries, Some(left)).map_err(|error| error.to_string())?;
        let [asked, said] = entries.map(|entry| entry.readiness().any());
        if asked {
            return Ok(None);
        }
        if said {
            let mut part = [0; 256];
            let length = out.read(&mut part).map_err(|error| error.to_string())?;
            if length == 0 {
                break;
            }
            line.extend_from_slice(&part[..length]);
        }
    }
    // More of them may have come at once.
    let end = line.iter().position(|byte| *byte == b'\n');
    line.truncate(end.unwrap_or(line.len()));
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_line_is_waited_for_until_it_ends_or_nobody_wants_it_any_more() {
        let pair = || UnixStream::pair().unwrap();
        let (quiet, mut stop) = pair();
        let (out, mut server) = pair();
        let told = std::thread::spawn(move || {
            server.write_all(b"{\"event\":\"lim").unwrap();
            server.write_all(b"its\"}\n{\"event\":\"more\"}\n").unwrap();
            server
        });
        let line = first_line(&out, quiet.as_fd(), PATIENCE).unwrap().unwrap();
        assert_eq!(line, "{\"event\":\"limits\"}");
        let server = told.join().unwrap();
        let silent = first_line(&out, quiet.as_fd(), Nanos::from_millis(1)).unwrap_err();
        assert!(silent.contains("1.00 ms"), "{silent}");
        drop(server);
        let gone = first_line(&out, quiet.as_fd(), PATIENCE).unwrap();
        assert_eq!(gone.as_deref(), Some(""));
        stop.write_all(b"x").unwrap();
        assert_eq!(first_line(&out, quiet.as_fd(), PATIENCE).unwrap(), None);
    }
}
