//! Frames between linerate and a linerate on another host (`linerate agent --stdio`), over any stream of bytes.
//!
//! A frame is two big-endian u32, the length of its header and of its body; then the header, a JSON object; then the
//! body, compressed with zstd, absent where its length is 0. [`FrameReader`] checks both lengths against their bounds
//! before it stores anything, and the body's own declared size before it decompresses.
//!
//! ```
//! use linerate_wire::agent::{FrameReader, Header, encode};
//!
//! let bytes = encode(&Header::Heartbeat, &[])?;
//! let mut reader = FrameReader::default();
//! reader.push(&bytes);
//! assert_eq!(reader.frame()?.map(|frame| frame.header), Some(Header::Heartbeat));
//! # Ok::<(), linerate_wire::agent::FrameError>(())
//! ```

use linerate_model::plain_text::PlainText;
use serde::{Deserialize, Serialize};

/// The version of these frames. Both ends must speak the same one.
pub const PROTOCOL: u32 = 1;
/// Most bytes of a header.
pub const MOST_HEADER: usize = 64 << 10;
/// Most bytes of a body, compressed and decompressed.
pub const MOST_BODY: usize = 8 << 20;
/// Bytes of the two lengths.
const LENGTHS: usize = 8;
/// zstd's fastest usual level: it takes less time than a 10G link.
const LEVEL: i32 = 1;

/// Why bytes are no frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A length is beyond its bound.
    #[error("a frame's {part} has {length} bytes; at most {most} are allowed")]
    TooLong {
        /// Header or body.
        part: &'static str,
        /// Its announced or real length, bytes.
        length: usize,
        /// The bound, bytes.
        most: usize,
    },
    /// The header is not one of [`Header`].
    #[error("a frame's header cannot be read: {why}")]
    Header {
        /// serde's words.
        why: String,
    },
    /// The body is not zstd, or not of the size that it declares.
    #[error("a frame's body cannot be decompressed: {why}")]
    Body {
        /// zstd's words.
        why: String,
    },
    /// The lengths of an ask's files are not those of its body.
    #[error("an ask has files of {announced} bytes in a body of {found}")]
    Files {
        /// The sum of the announced lengths, bytes.
        announced: u64,
        /// The body's length, bytes.
        found: usize,
    },
}

/// What a frame says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Header {
    /// The agent's first frame.
    Hello(Hello),
    /// Run a command; the body has its files, one after the other.
    Ask(Ask),
    /// Output of a command; the body has it.
    Output {
        /// The ask.
        ask: u64,
        /// Where the command wrote it.
        to: Stream,
    },
    /// A command ended; no output of it follows.
    Answer {
        /// The ask.
        ask: u64,
        /// How it ended.
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// End a command: SIGTERM, and SIGKILL where that does not help.
    Cancel {
        /// The ask.
        ask: u64,
    },
    /// The sender is there.
    Heartbeat,
    /// The sender ends the connection.
    Bye {
        /// Why.
        why: PlainText,
    },
}

/// What an agent says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] of the agent.
    pub protocol: u32,
    /// The version of linerate.
    pub version: PlainText,
    /// SHA-256 of its binary in hexadecimal digits, as the bootstrap found it; empty where there was none.
    #[serde(default)]
    pub hash: PlainText,
    /// Its host name.
    #[serde(default)]
    pub host: PlainText,
    /// The effective user that it runs as.
    #[serde(default)]
    pub user: u32,
    /// The release of its kernel.
    #[serde(default)]
    pub kernel: PlainText,
    /// Its architecture, such as `x86_64`.
    #[serde(default)]
    pub arch: PlainText,
}

/// A command of linerate that an agent runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// Its number, of the asker's choice; no two of a connection are the same.
    pub ask: u64,
    /// Its arguments, without the program's name.
    pub words: Vec<Word>,
    /// The files that come in the body, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileIn>,
    /// Variables of its environment, beside those of the agent. An empty value removes the variable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<(String, String)>,
    /// Who asks, where no other such command may run on the host at the same time; the agent answers
    /// [`Outcome::Busy`] where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<String>,
}

/// A file that comes with an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIn {
    /// Its name without a folder. The agent keeps it where it can, so that messages name the file as the user did.
    pub name: String,
    /// Its length, bytes.
    pub length: u64,
}

/// An argument of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// As it is.
    Text(String),
    /// The path of the file of this index that came with the ask.
    In(usize),
    /// The path of a file that the command writes. Its bytes come back as output once the command has ended.
    Out(usize),
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Word {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Where a command wrote something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
    /// The file of this index ([`Word::Out`]).
    File(usize),
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// The agent did not run it, and why.
    Refused(PlainText),
    /// Another command that runs alone runs on this host: who asked for it.
    Busy(PlainText),
}

impl Outcome {
    /// Whether it is the success of a command.
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Code(0))
    }
}

/// A whole frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it says.
    pub header: Header,
    /// Its body, decompressed; empty where it has none.
    pub body: Vec<u8>,
}

impl Ask {
    /// Cuts the body of this ask into its files.
    ///
    /// # Errors
    /// Where their lengths are not those of the body.
    pub fn files_in<'b>(&self, body: &'b [u8]) -> Result<Vec<&'b [u8]>, FrameError> {
        let lengths = self.files.iter().map(|file| file.length);
        let announced = lengths.fold(0, u64::saturating_add);
        if usize::try_from(announced) != Ok(body.len()) {
            return Err(FrameError::Files {
                announced,
                found: body.len(),
            });
        }
        let mut rest = body;
        let mut files = Vec::with_capacity(self.files.len());
        for file in &self.files {
            // None is longer than the body: their sum is its length.
            let (file, more) = rest.split_at(usize::try_from(file.length).unwrap_or(0));
            files.push(file);
            rest = more;
        }
        Ok(files)
    }
}

/// A frame as bytes.
///
/// # Errors
/// Where header or body are beyond their bounds.
pub fn encode(header: &Header, body: &[u8]) -> Result<Vec<u8>, FrameError> {
    let text = serde_json::to_vec(header).map_err(|error| FrameError::Header {
        why: error.to_string(),
    })?;
    within("header", text.len(), MOST_HEADER)?;
    let packed = compress(body)?;
    let mut frame = Vec::with_capacity(LENGTHS + text.len() + packed.len());
    for length in [text.len(), packed.len()] {
        frame.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    }
    frame.extend_from_slice(&text);
    frame.extend_from_slice(&packed);
    Ok(frame)
}

/// Compresses a body; nothing stays nothing.
///
/// # Errors
/// Where it is beyond [`MOST_BODY`], before or after.
pub fn compress(body: &[u8]) -> Result<Vec<u8>, FrameError> {
    within("body", body.len(), MOST_BODY)?;
    if body.is_empty() {
        return Ok(Vec::new());
    }
    let packed = zstd::bulk::compress(body, LEVEL).map_err(|error| FrameError::Body {
        why: error.to_string(),
    })?;
    within("body", packed.len(), MOST_BODY)?;
    Ok(packed)
}

/// What [`compress`] made, as it was.
///
/// # Errors
/// Where it is not zstd, does not declare its size, declares more than [`MOST_BODY`], or has another size.
pub fn decompress(packed: &[u8]) -> Result<Vec<u8>, FrameError> {
    if packed.is_empty() {
        return Ok(Vec::new());
    }
    let broken = |why: &str| FrameError::Body {
        why: why.to_owned(),
    };
    let size = zstd::zstd_safe::get_frame_content_size(packed)
        .map_err(|_| broken("it is not zstd"))?
        .ok_or_else(|| broken("it does not declare its size"))?;
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    within("body", size, MOST_BODY)?;
    let body = zstd::bulk::decompress(packed, size).map_err(|error| broken(&error.to_string()))?;
    if body.len() == size {
        Ok(body)
    } else {
        Err(broken("it has another size than it declares"))
    }
}

fn within(part: &'static str, length: usize, most: usize) -> Result<(), FrameError> {
    if length <= most {
        Ok(())
    } else {
        Err(FrameError::TooLong { part, length, most })
    }
}

/// Puts frames together from pieces of any size. Drain [`Self::frame`] after each [`Self::push`]: then it holds at most
/// one incomplete frame and one piece.
#[derive(Debug, Default)]
pub struct FrameReader {
    held: Vec<u8>,
    /// How much of `held` was given out.
    taken: usize,
}

impl FrameReader {
    /// Takes bytes that came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..std::mem::take(&mut self.taken));
        self.held.extend_from_slice(bytes);
    }

    /// Whether the stream may end here: no part of a frame is held.
    pub fn is_between_frames(&self) -> bool {
        self.taken == self.held.len()
    }

    /// The next whole frame; `None` until more bytes come.
    ///
    /// # Errors
    /// What no frame is; nothing that follows can be read then.
    pub fn frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let held = &self.held[self.taken..];
        let Some((header, rest)) = held.split_first_chunk() else {
            return Ok(None);
        };
        let Some((body, rest)) = rest.split_first_chunk() else {
            return Ok(None);
        };
        let header = length("header", *header, MOST_HEADER)?;
        let body = length("body", *body, MOST_BODY)?;
        let Some(frame) = rest.get(..header + body) else {
            return Ok(None);
        };
        let (text, packed) = frame.split_at(header);
        let header = serde_json::from_slice(text).map_err(|error| FrameError::Header {
            why: error.to_string(),
        })?;
        let body = decompress(packed)?;
        self.taken += LENGTHS + frame.len();
        if self.is_between_frames() {
            // A large frame's memory is not kept for the next ones.
            self.held = Vec::new();
            self.taken = 0;
        }
        Ok(Some(Frame { header, body }))
    }
}

fn length(part: &'static str, bytes: [u8; 4], most: usize) -> Result<usize, FrameError> {
    let length = usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(usize::MAX);
    within(part, length, most)?;
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8], cut: usize) -> Result<Vec<Frame>, FrameError> {
        let mut reader = FrameReader::default();
        let mut frames = Vec::new();
        for piece in bytes.chunks(cut) {
            reader.push(piece);
            while let Some(frame) = reader.frame()? {
                frames.push(frame);
            }
        }
        assert!(reader.is_between_frames());
        Ok(frames)
    }

    fn word() -> impl Strategy<Value = Word> {
        prop_oneof![
            any::<String>().prop_map(Word::Text),
            any::<usize>().prop_map(Word::In),
            any::<usize>().prop_map(Word::Out)
        ]
    }

    fn outcome() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            any::<i32>().prop_map(Outcome::Code),
            any::<i32>().prop_map(Outcome::Signal),
            "[ -~]{0,20}".prop_map(|why| Outcome::Refused(why.as_str().into())),
            "[ -~]{0,20}".prop_map(|who| Outcome::Busy(who.as_str().into()))
        ]
    }

    fn header() -> impl Strategy<Value = Header> {
        let stream = prop_oneof![
            Just(Stream::Out),
            Just(Stream::Err),
            any::<usize>().prop_map(Stream::File)
        ];
        let ask = (
            any::<u64>(),
            prop::collection::vec(word(), 0..5),
            prop::collection::vec((any::<String>(), any::<u64>()), 0..3),
            prop::collection::vec((any::<String>(), any::<String>()), 0..3),
            any::<Option<String>>(),
        );
        prop_oneof![
            ("[ -~]{0,20}", any::<u32>(), any::<u32>()).prop_map(|(text, protocol, user)| {
                let text = PlainText::from(text.as_str());
                Header::Hello(Hello {
                    protocol,
                    version: text.clone(),
                    user,
                    host: text,
                    ..Hello::default()
                })
            }),
            ask.prop_map(|(ask, words, files, environment, exclusive)| {
                let files = files
                    .into_iter()
                    .map(|(name, length)| FileIn { name, length });
                Header::Ask(Ask {
                    ask,
                    words,
                    files: files.collect(),
                    environment,
                    exclusive,
                })
            }),
            (any::<u64>(), stream).prop_map(|(ask, to)| Header::Output { ask, to }),
            (any::<u64>(), outcome()).prop_map(|(ask, outcome)| Header::Answer { ask, outcome }),
            any::<u64>().prop_map(|ask| Header::Cancel { ask }),
            Just(Header::Heartbeat),
            "[ -~]{0,20}".prop_map(|why| Header::Bye {
                why: why.as_str().into()
            }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again_however_it_is_cut(
            frames in prop::collection::vec((header(), prop::collection::vec(any::<u8>(), 0..600)), 1..6),
            cut in 1usize..700,
        ) {
            let bytes: Vec<u8> = frames
                .iter()
                .flat_map(|(header, body)| encode(header, body).unwrap())
                .collect();
            let frames: Vec<Frame> = frames
                .into_iter()
                .map(|(header, body)| Frame { header, body })
                .collect();
            prop_assert_eq!(read(&bytes, cut), Ok(frames));
        }

        #[test]
        fn any_bytes_are_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut reader = FrameReader::default();
            reader.push(&bytes);
            while let Ok(Some(_)) = reader.frame() {}
        }

        #[test]
        fn files_are_cut_as_announced(files in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..5)) {
            let ask = Ask {
                files: files
                    .iter()
                    .map(|file| FileIn { name: "x".into(), length: file.len() as u64 })
                    .collect(),
                ..Ask::default()
            };
            let body = files.concat();
            let cut = ask.files_in(&body).unwrap();
            prop_assert_eq!(cut, files.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
    }

    #[test]
    fn lengths_are_checked_before_anything_of_them_has_come() {
        let announced = |header: usize, body: usize| {
            let mut reader = FrameReader::default();
            for length in [header, body] {
                reader.push(&u32::try_from(length).unwrap().to_be_bytes());
            }
            reader.frame()
        };
        assert_eq!(announced(MOST_HEADER, MOST_BODY), Ok(None));
        let too_long = |part, length, most| Err(FrameError::TooLong { part, length, most });
        assert_eq!(
            announced(MOST_HEADER + 1, 0),
            too_long("header", MOST_HEADER + 1, MOST_HEADER)
        );
        assert_eq!(
            announced(2, MOST_BODY + 1),
            too_long("body", MOST_BODY + 1, MOST_BODY)
        );
    }

    /// A frame whose body is these bytes as they are.
    fn with_body(packed: &[u8]) -> Result<Option<Frame>, FrameError> {
        let mut reader = FrameReader::default();
        let text = br#"{"kind":"heartbeat"}"#;
        for length in [text.len(), packed.len()] {
            reader.push(&u32::try_from(length).unwrap().to_be_bytes());
        }
        reader.push(text);
        reader.push(packed);
        reader.frame()
    }

    #[test]
    fn a_body_that_unpacks_to_more_than_the_bound_is_refused_by_its_declared_size() {
        let bomb = zstd::bulk::compress(&vec![0; MOST_BODY + 1], 19).unwrap();
        assert!(bomb.len() < 2_000, "{}", bomb.len());
        assert_eq!(
            with_body(&bomb),
            Err(FrameError::TooLong {
                part: "body",
                length: MOST_BODY + 1,
                most: MOST_BODY
            })
        );
        // Two zstd frames, of which only the first one's size is declared in front.
        let mut two = zstd::bulk::compress(b"abc", 1).unwrap();
        two.extend(bomb);
        assert!(matches!(with_body(&two), Err(FrameError::Body { .. })));
        assert!(matches!(
            with_body(b"no zstd"),
            Err(FrameError::Body { .. })
        ));
    }

    #[test]
    fn a_kind_that_this_version_does_not_know_is_an_error() {
        let mut reader = FrameReader::default();
        let text = br#"{"kind":"upgrade"}"#;
        reader.push(&[0, 0, 0, u8::try_from(text.len()).unwrap(), 0, 0, 0, 0]);
        reader.push(text);
        let error = reader.frame().unwrap_err().to_string();
        assert!(error.contains("upgrade"), "{error}");
    }

    #[test]
    fn an_answer_is_flat() {
        let header = Header::Answer {
            ask: 3,
            outcome: Outcome::Code(4),
        };
        let text = serde_json::to_string(&header).unwrap();
        assert_eq!(text, r#"{"kind":"answer","ask":3,"code":4}"#);
    }

    #[test]
    fn files_of_other_lengths_than_the_body_are_refused() {
        let file = |length| FileIn {
            name: "x".into(),
            length,
        };
        let ask = Ask {
            files: vec![file(u64::MAX), file(2)],
            ..Ask::default()
        };
        assert!(ask.files_in(b"x").is_err());
    }
}
