//! From the carrier's start to the agent's first frame.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use linerate_kernel::clock;
use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;
use linerate_wire::agent::{FrameReader, Header, Hello, PROTOCOL};

use super::child::Far;
use super::{Elevation, Reach, SILENCE, USUAL_CONNECT_TIMEOUT};
use crate::bootstrap::{Line, PROMPT, script};
use crate::carrier::Carrier;
use crate::error::{FleetError, Phase, Trouble};

/// A host's start-up files print no more before the script's first line, bytes.
const MOST_NOISE: usize = 64 << 10;
/// This program.
const OURSELVES: &str = "/proc/self/exe";
/// How much longer than the carrier's own timeout is waited: its message says more than ours.
const MARGIN: Nanos = Nanos::from_millis(1_000);

/// A connection that is being made.
pub(super) struct Opening {
    host: String,
    far: Far,
    reach: Reach,
    phase: Phase,
    /// What came on standard output and was not yet read.
    came: Vec<u8>,
}

impl Opening {
    /// Starts the carrier.
    pub(super) fn start(host: &str, reach: &Reach) -> Result<Self, FleetError> {
        let script = script(&reach.binaries, reach.elevation.is_some());
        let far = Far::start(reach.carrier.command(host, &script)).map_err(|error| {
            Trouble::Carrier {
                program: reach.carrier.program().to_owned(),
                why: error.to_string(),
            }
            .of(host)
        })?;
        Ok(Self {
            host: host.to_owned(),
            far,
            reach: reach.clone(),
            phase: Phase::Connecting,
            came: Vec::new(),
        })
    }

    /// Starts an agent on this host: the file that runs, even where it was replaced since.
    pub(super) fn here(host: &str) -> Result<Self, FleetError> {
        let mut command = Command::new(OURSELVES);
        command.arg0("linerate").args(["agent", "--stdio"]);
        let far = Far::start(command).map_err(|error| {
            Trouble::Carrier {
                program: OURSELVES.to_owned(),
                why: error.to_string(),
            }
            .of(host)
        })?;
        Ok(Self::of_agent(host, far))
    }

    /// Takes the connection that a host's agent made.
    pub(super) fn over(host: &str, stream: UnixStream) -> Result<Self, FleetError> {
        let far = Far::over(stream).map_err(|error| {
            Trouble::Carrier {
                program: "a connection".to_owned(),
                why: error.to_string(),
            }
            .of(host)
        })?;
        Ok(Self::of_agent(host, far))
    }

    /// What comes next is an agent's hello.
    fn of_agent(host: &str, far: Far) -> Self {
        Self {
            host: host.to_owned(),
            far,
            reach: Reach {
                carrier: Carrier::ssh(USUAL_CONNECT_TIMEOUT),
                binaries: Vec::new().into(),
                elevation: None,
                connect_timeout: USUAL_CONNECT_TIMEOUT,
            },
            phase: Phase::Starting,
            came: Vec::new(),
        }
    }

    /// Answers the script until the agent says hello.
    pub(super) fn run(mut self) -> Result<(Hello, Far, FrameReader), FleetError> {
        let hello = self.converse();
        let host = self.host;
        match hello {
            Ok((hello, reader)) => Ok((hello, self.far, reader)),
            Err(trouble) => Err(trouble.of(&host)),
        }
    }

    fn converse(&mut self) -> Result<(Hello, FrameReader), Trouble> {
        if self.phase == Phase::Starting {
            return self.hello();
        }
        // Each folder of the script is asked for at most once.
        loop {
            match self.line()? {
                Line::Want(arch) => self.copy(&arch)?,
                Line::Error(why) => {
                    return Err(Trouble::Bootstrap { why: why.into() });
                }
                Line::Password => {
                    self.give_password()?;
                    break;
                }
                Line::Start => break,
            }
        }
        self.phase = Phase::Starting;
        self.hello()
    }

    /// The script's next line.
    fn line(&mut self) -> Result<Line, Trouble> {
        let patience = match self.phase {
            Phase::Connecting => self.reach.connect_timeout.plus(MARGIN),
            _ => SILENCE,
        };
        let until = clock::monotonic().plus(patience);
        let mut read = 0;
        loop {
            while let Some(end) = self.came.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.came.drain(..=end).collect();
                if let Some(line) = Line::read(&line) {
                    return Ok(line);
                }
                read += line.len();
            }
            if read + self.came.len() > MOST_NOISE {
                return Err(Trouble::OutOfTurn {
                    what: format!("{MOST_NOISE} bytes before its script began"),
                });
            }
            self.more(until, patience)?;
        }
    }

    /// Takes what comes next.
    fn more(&mut self, until: Nanos, patience: Nanos) -> Result<(), Trouble> {
        let mut piece = [0; 4096];
        loop {
            let left = until.since(clock::monotonic());
            if left == Nanos::ZERO {
                let (phase, said) = (self.phase, self.far.last_words());
                return Err(Trouble::Silent {
                    phase,
                    patience,
                    said,
                });
            }
            match self.far.receive(&mut piece, left, false, None) {
                Ok(None) => {
                    if self.is_refused() {
                        let why = "it was refused".to_owned();
                        return Err(Trouble::Password { why });
                    }
                }
                Ok(Some([])) | Err(_) => return Err(self.ended()),
                Ok(Some(piece)) => {
                    self.came.extend_from_slice(piece);
                    return Ok(());
                }
            }
        }
    }

    /// Whether sudo asks a second time.
    fn is_refused(&self) -> bool {
        self.phase == Phase::Starting && self.far.heard().matches(PROMPT).count() > 1
    }

    fn ended(&mut self) -> Trouble {
        // What it said last may still be on its way.
        self.far.end(Nanos::from_millis(500));
        let said = self.far.last_words();
        Trouble::Ended {
            phase: self.phase,
            said: said.replace(PROMPT, "").trim().into(),
        }
    }

    /// Sends the binary; the script reads exactly its length.
    fn copy(&mut self, arch: &str) -> Result<(), Trouble> {
        self.phase = Phase::Copying;
        let known = self.reach.binaries.clone();
        let binary = known.iter().find(|binary| binary.arch() == arch);
        let binary = binary.ok_or_else(|| Trouble::OutOfTurn {
            what: format!(
                "a wish for a linerate of architecture {}",
                PlainText::from(arch)
            ),
        })?;
        let unreadable = |error: io::Error| Trouble::Bootstrap {
            why: format!("cannot read this host's own linerate: {error}").into(),
        };
        let mut file = binary.open().map_err(unreadable)?;
        let mut left = binary.size();
        let mut piece = vec![0; 64 << 10];
        while left > 0 {
            let most = usize::try_from(left)
                .unwrap_or(piece.len())
                .min(piece.len());
            let length = file.read(&mut piece[..most]).map_err(unreadable)?;
            if length == 0 {
                return Err(unreadable(io::ErrorKind::UnexpectedEof.into()));
            }
            self.send(&piece[..length])?;
            left -= length as u64;
        }
        Ok(())
    }

    /// Writes all of it, unless the host takes nothing for [`SILENCE`].
    fn send(&mut self, mut bytes: &[u8]) -> Result<(), Trouble> {
        let mut piece = [0; 4096];
        let mut until = clock::monotonic().plus(SILENCE);
        while !bytes.is_empty() {
            match self.far.write_some(bytes) {
                Ok(0) => {}
                Ok(length) => {
                    bytes = &bytes[length..];
                    until = clock::monotonic().plus(SILENCE);
                    continue;
                }
                Err(_) => return Err(self.refused_to_take()),
            }
            let left = until.since(clock::monotonic());
            if left == Nanos::ZERO {
                return Err(Trouble::Silent {
                    phase: self.phase,
                    patience: SILENCE,
                    said: self.far.last_words(),
                });
            }
            match self.far.receive(&mut piece, left, true, None) {
                Ok(Some([])) | Err(_) => return Err(self.ended()),
                Ok(Some(more)) => self.came.extend_from_slice(more),
                Ok(None) => {}
            }
        }
        Ok(())
    }

    /// The script ended while we wrote: it may have said why.
    fn refused_to_take(&mut self) -> Trouble {
        match self.line() {
            Ok(Line::Error(why)) => Trouble::Bootstrap { why: why.into() },
            Ok(_) => self.ended(),
            Err(trouble) => trouble,
        }
    }

    fn give_password(&mut self) -> Result<(), Trouble> {
        self.phase = Phase::Starting;
        let password = self.reach.elevation.as_ref().map(Elevation::password);
        let mut password = password
            .unwrap_or_else(|| Err("nobody asked for that".to_owned()))
            .map_err(|why| Trouble::Password { why })?;
        password.push('\n');
        self.send(password.as_bytes())
    }

    fn hello(&mut self) -> Result<(Hello, FrameReader), Trouble> {
        let patience = self.reach.connect_timeout.plus(MARGIN);
        let until = clock::monotonic().plus(patience);
        let mut reader = FrameReader::default();
        loop {
            reader.push(&std::mem::take(&mut self.came));
            match reader.frame() {
                Ok(None) => self.more(until, patience)?,
                Ok(Some(frame)) => {
                    let Header::Hello(hello) = frame.header else {
                        return Err(Trouble::OutOfTurn {
                            what: "a frame before its hello".to_owned(),
                        });
                    };
                    return if hello.protocol == PROTOCOL {
                        Ok((hello, reader))
                    } else {
                        Err(Trouble::Protocol {
                            version: hello.version,
                            theirs: hello.protocol,
                        })
                    };
                }
                Err(source) => return Err(Trouble::Frame { source }),
            }
        }
    }
}
