//! Packet captures: pcap and pcapng, as they come in pieces, to TCP connections.
//!
//! A capture may be larger than memory: [`Reader`] takes it piece by piece and keeps at most [`MOST_PACKETS`]
//! packets of at most [`MOST_CONNECTIONS`] connections; what lies beyond is counted and said. A file that was cut,
//! or is damaged from some byte on, is read as far as it goes.
//!
//! Formats: the pcap and pcapng drafts of the IETF's opsawg (draft-ietf-opsawg-pcap, -pcapng).

mod blocks;
mod classic;
mod connections;
mod frame;

use linerate_model::capture::{Capture, CaptureEnd, CaptureFormat, LinkPackets, PassedOver};
use linerate_model::transcript::{Part, Transcript};

use crate::ReadError;
use connections::Connections;
use frame::Passed;

/// Packets that are kept of all connections together; 40 bytes each.
pub const MOST_PACKETS: usize = 4_000_000;
/// Connections that are told apart.
pub const MOST_CONNECTIONS: usize = 65_536;
/// The largest connections, by payload, that are handed on.
pub const MOST_CONVERSATIONS: usize = 32;
/// A record that says it is longer than this is none, bytes: no kernel hands out larger packets.
const MOST_RECORD: usize = 16 << 20;

/// Whether a file that begins so is a packet capture; four bytes tell.
pub fn is_capture(head: &[u8]) -> bool {
    head.get(..4)
        .and_then(|magic| magic.try_into().ok())
        .is_some_and(|magic| classic::known(magic) || blocks::known(magic))
}

/// The program that unpacks a file that begins so; `None` where it is not packed.
pub(crate) fn packed(head: &[u8]) -> Option<&'static str> {
    let programs: [(&[u8], &str); 4] = [
        (&[0x1f, 0x8b], "gzip -dc"),
        (b"\xfd7zXZ\0", "xz -dc"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd -dc"),
        (b"BZh", "bzip2 -dc"),
    ];
    let found = programs.iter().find(|(magic, _)| head.starts_with(magic));
    found.map(|(_, program)| *program)
}

/// The byte order of a file or section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Big,
    Little,
}

impl Order {
    fn short(self, bytes: &[u8], at: usize) -> Option<u16> {
        let two = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(match self {
            Self::Big => u16::from_be_bytes(two),
            Self::Little => u16::from_le_bytes(two),
        })
    }

    fn word(self, bytes: &[u8], at: usize) -> Option<u32> {
        let four = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(match self {
            Self::Big => u32::from_be_bytes(four),
            Self::Little => u32::from_le_bytes(four),
        })
    }

    fn long(self, bytes: &[u8], at: usize) -> Option<u64> {
        let eight = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(match self {
            Self::Big => u64::from_be_bytes(eight),
            Self::Little => u64::from_le_bytes(eight),
        })
    }
}

/// A packet as the file holds it.
struct Held<'a> {
    link: u16,
    /// ns since 1970; absent where the file has no time for it.
    at_ns: Option<u64>,
    /// What was captured of it.
    bytes: &'a [u8],
    /// Its length on the wire.
    original: u32,
}

/// What a step over the bytes did.
enum Step {
    /// Took so many bytes.
    Took(usize),
    /// The record is not whole yet.
    More,
    /// What stands here is no record.
    Damaged,
}

/// How far the file's layout is known.
enum Layout {
    Unknown,
    Classic(classic::Header),
    Blocks(blocks::Section),
    /// Damaged; the rest is not looked at.
    Ended,
}

/// Reads a capture piece by piece.
///
/// ```
/// use linerate_readers::capture::Reader;
///
/// let mut reader = Reader::new("empty.pcap");
/// reader.push(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0]);
/// let transcript = reader.finish().unwrap();
/// assert_eq!(transcript.parts.len(), 1); // what the file says of itself; no connections
/// ```
pub struct Reader {
    name: String,
    layout: Layout,
    /// Bytes that no whole record has been made of.
    waiting: Vec<u8>,
    /// Bytes taken before them.
    taken: u64,
    facts: Facts,
}

impl Reader {
    /// A reader of the capture that goes by `name`.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            layout: Layout::Unknown,
            waiting: Vec::new(),
            taken: 0,
            facts: Facts::new(),
        }
    }

    /// Takes the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        if matches!(self.layout, Layout::Ended) {
            return;
        }
        self.waiting.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            match self.step(at) {
                Step::Took(bytes) => at += bytes,
                Step::More => break,
                Step::Damaged => {
                    self.facts.end = CaptureEnd::Damaged(self.taken + at as u64);
                    self.layout = Layout::Ended;
                    self.waiting.clear();
                    return;
                }
            }
        }
        self.waiting.drain(..at);
        self.taken += at as u64;
    }

    fn step(&mut self, at: usize) -> Step {
        let bytes = &self.waiting[at..];
        if bytes.is_empty() {
            return Step::More;
        }
        match &mut self.layout {
            Layout::Unknown => {
                let Some(head) = bytes.get(..4) else {
                    return Step::More;
                };
                if is_blocks(head) {
                    self.layout = Layout::Blocks(blocks::Section::default());
                    self.facts.format = Some(CaptureFormat::Pcapng);
                    return Step::Took(0);
                }
                match classic::Header::read(bytes) {
                    Ok(Some(header)) => {
                        self.facts.format = Some(header.format());
                        self.facts.limit(header.snapshot_bytes);
                        self.facts.link(header.link);
                        self.layout = Layout::Classic(header);
                        Step::Took(classic::HEADER)
                    }
                    Ok(None) => Step::More,
                    Err(classic::NotOne) => Step::Damaged,
                }
            }
            Layout::Classic(header) => header.step(bytes, &mut self.facts),
            Layout::Blocks(section) => section.step(bytes, &mut self.facts),
            Layout::Ended => Step::More,
        }
    }

    /// What the capture holds. An error where not even its header is whole.
    pub fn finish(self) -> Result<Transcript, ReadError> {
        let mut facts = self.facts;
        let Some(format) = facts.format else {
            return Err(ReadError::NoCapture {
                name: self.name.into(),
            });
        };
        if !self.waiting.is_empty() && facts.end == CaptureEnd::Whole {
            facts.end = CaptureEnd::Cut;
        }
        Ok(Transcript {
            name: self.name.into(),
            parts: facts.parts(format),
            not_understood: Vec::new(),
        })
    }
}

fn is_blocks(head: &[u8]) -> bool {
    head.try_into().is_ok_and(blocks::known)
}

/// What is gathered over all packets.
struct Facts {
    format: Option<CaptureFormat>,
    links: Vec<LinkPackets>,
    snapshot_bytes: Option<u32>,
    packets: u64,
    clipped: u64,
    begins_unix_ns: Option<u64>,
    latest_ns: u64,
    back_in_time: u64,
    dropped: Option<u64>,
    passed_over: PassedOver,
    end: CaptureEnd,
    connections: Connections,
}

impl Facts {
    fn new() -> Self {
        Self {
            format: None,
            links: Vec::new(),
            snapshot_bytes: None,
            packets: 0,
            clipped: 0,
            begins_unix_ns: None,
            latest_ns: 0,
            back_in_time: 0,
            dropped: None,
            passed_over: PassedOver::default(),
            end: CaptureEnd::Whole,
            connections: Connections::default(),
        }
    }

    /// A snapshot length; 0 sets none, and 64 KiB or more cuts nothing that matters here.
    fn limit(&mut self, snapshot_bytes: u32) {
        if (1..65_535).contains(&snapshot_bytes) {
            let least = self
                .snapshot_bytes
                .map_or(snapshot_bytes, |least| least.min(snapshot_bytes));
            self.snapshot_bytes = Some(least);
        }
    }

    /// The place of a link type, made where it is new.
    fn link(&mut self, number: u16) -> Option<&mut LinkPackets> {
        if !self.links.iter().any(|link| link.number == number) && self.links.len() < 64 {
            let (name, read) = frame::link_name(number);
            self.links.push(LinkPackets {
                number,
                name: name.into(),
                read,
                packets: 0,
            });
        }
        self.links.iter_mut().find(|link| link.number == number)
    }

    fn dropped(&mut self, packets: u64) {
        let before = self.dropped.unwrap_or(0);
        self.dropped = Some(before.saturating_add(packets));
    }

    fn packet(&mut self, held: &Held<'_>) {
        self.packets += 1;
        if let Some(link) = self.link(held.link) {
            link.packets += 1;
        }
        if (held.bytes.len() as u64) < u64::from(held.original) {
            self.clipped += 1;
        }
        let Some(at_unix_ns) = held.at_ns else {
            self.passed_over.timeless += 1;
            return;
        };
        let begin = *self.begins_unix_ns.get_or_insert(at_unix_ns);
        let at_ns = at_unix_ns.saturating_sub(begin);
        if at_unix_ns < begin.saturating_add(self.latest_ns) {
            self.back_in_time += 1;
        }
        self.latest_ns = self.latest_ns.max(at_ns);
        match frame::segment(held.link, held.bytes, held.original) {
            Ok(segment) => match self.connections.take(at_ns, &segment) {
                connections::Taken::Kept => {}
                connections::Taken::NotKept => self.passed_over.beyond += 1,
                connections::Taken::NoPlace => self.passed_over.connections += 1,
            },
            Err(Passed::NotIp) => self.passed_over.not_ip += 1,
            Err(Passed::NotTcp) => self.passed_over.not_tcp += 1,
            Err(Passed::Fragment) => self.passed_over.fragments += 1,
            Err(Passed::Headers) => self.passed_over.headers += 1,
        }
    }

    fn parts(self, format: CaptureFormat) -> Vec<Part> {
        let seen = self.connections.len() as u64;
        let unanswered = self.connections.unanswered();
        let conversations = self.connections.largest(MOST_CONVERSATIONS);
        let capture = Capture {
            format,
            links: self.links,
            snapshot_bytes: self.snapshot_bytes,
            packets: self.packets,
            clipped: self.clipped,
            begins_unix_ns: self.begins_unix_ns,
            span_ns: self.latest_ns,
            back_in_time: self.back_in_time,
            dropped: self.dropped,
            passed_over: self.passed_over,
            connections: seen,
            unanswered,
            kept: conversations.len() as u64,
            end: self.end,
        };
        let mut parts = vec![Part::Capture(Box::new(capture))];
        parts.extend(
            conversations
                .into_iter()
                .map(|one| Part::Conversation(Box::new(one))),
        );
        parts
    }
}
