//! What a client wants: the structures at the head of a TCP connection, or behind the head of each datagram.
//!
//! TCP: version 1, extension, start, isochronous settings, congestion control, permit key. UDP has them behind the datagram's
//! head in another order ([`UdpHeader`]). Which of them are there follows from flags and from the length that is told.

use linerate_model::plain_text::PlainText;

use super::Version;
use super::isochronous::{FRAME_BYTES, Frame};
use super::words::{Words, halves, put};

/// Bits of [`First::flags`].
pub mod flag {
    /// The header asks for a test in both directions over connections of their own (`-d`, `-r`).
    pub const VERSION1: u32 = 0x8000_0000;
    /// An extension follows.
    pub const EXTEND: u32 = 0x4000_0000;
    /// Each datagram carries what it asks for.
    pub const UDP_TESTS: u32 = 0x2000_0000;
    /// A permit key follows.
    pub const KEY: u32 = 0x1000_0000;
    /// Datagrams have 64-bit numbers.
    pub const WIDE_NUMBERS: u32 = 0x0800_0000;
    /// `--reverse` or `--full-duplex`.
    pub const VERSION2: u32 = 0x0400_0000;
    /// The client wants an [`Ack`](super::super::ack::Ack).
    pub const WANTS_ACK: u32 = 0x0200_0000;
    /// `--bounceback`: another header altogether.
    pub const BOUNCEBACK: u32 = 0x0080_0000;
    /// The header's length stands in bits 1 to 8.
    pub const HAS_LENGTH: u32 = 0x0001_0000;
    /// With [`VERSION1`]: at once (`-d`), not afterwards (`-r`).
    pub const RUN_NOW: u32 = 1;
}

/// Bits of [`Extension::upper`].
pub mod upper {
    /// `--isochronous`.
    pub const ISOCHRONOUS: u16 = 0x1;
    /// UDP: the client awaits no report at the end.
    pub const NO_REPORT: u16 = 0x8;
    /// `--trip-times`.
    pub const TRIP_TIMES: u16 = 0x10;
    /// Isochronous settings follow.
    pub const ISOCHRONOUS_SETTINGS: u16 = 0x40;
    /// The rate counts packets.
    pub const PACKETS: u16 = 0x80;
    /// The kernel's pacing rate is set (`--fq-rate`).
    pub const PACED: u16 = 0x200;
    /// `--reverse`.
    pub const REVERSE: u16 = 0x400;
    /// `--full-duplex`.
    pub const FULL_DUPLEX: u16 = 0x800;
    /// The test begins at a time of day (`--txstart-time`).
    pub const START_TIME: u16 = 0x1000;
    /// `--burst-period`.
    pub const BURST: u16 = 0x2000;
}

/// Bits of [`Extension::lower`].
pub mod lower {
    /// The name of a congestion control follows.
    pub const CONGESTION: u16 = 0x8000;
    /// Up to 2.0.13: the rate counts packets.
    pub const PACKETS_2_0_13: u16 = 0x1;
}

/// Bytes of [`First`].
pub const FIRST_BYTES: usize = 24;
/// Bytes of [`Extension`] up to 2.1.
pub const EXTENSION_BYTES: usize = 36;
/// The longest name of a congestion control (`TCP_CA_NAME_MAX`), and the longest permit key, bytes.
const LONGEST_NAME: usize = 16;
const LONGEST_KEY: usize = 128;
/// The longest header that tells its length, and its key.
pub const LONGEST_HEADER: usize = 255 + LONGEST_KEY;

/// How much a client wants to be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So long, in units of 10 ms.
    Time(u32),
    /// So many bytes, 31 bits.
    Bytes(u32),
}

/// The first structure (`client_hdr_v1`): all that 2.0.5 sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct First {
    /// See [`flag`].
    pub flags: u32,
    /// Streams.
    pub streams: u32,
    /// Where the client listens for connections back.
    pub port: u32,
    /// Length of a write or of a datagram; 0 = the default.
    pub block_bytes: u32,
    /// 2.0.x: the TCP window, bytes, or UDP's rate, bit/s. 2.0.13 leaves payload here.
    pub window_or_rate: u32,
    /// How much.
    pub amount: Amount,
}

impl First {
    /// `None` where there are fewer bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read(&mut Words(bytes))
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let [flags, streams, port, block_bytes, window_or_rate, amount] = words.all()?;
        Some(Self {
            flags,
            streams,
            port,
            block_bytes,
            window_or_rate,
            amount: match amount.cast_signed() {
                0.. => Amount::Bytes(amount),
                time => Amount::Time(time.unsigned_abs()),
            },
        })
    }

    /// As it goes over the wire.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let amount = match self.amount {
            Amount::Bytes(bytes) => bytes & 0x7FFF_FFFF,
            // A time of 0 is 0 bytes.
            Amount::Time(time) => time.min(1 << 31).wrapping_neg(),
        };
        put(
            bytes,
            &[
                self.flags,
                self.streams,
                self.port,
                self.block_bytes,
                self.window_or_rate,
                amount,
            ],
        );
    }

    /// The header's length as it is told, bytes, without a key.
    pub const fn told_length(&self) -> Option<usize> {
        if self.flags & flag::HAS_LENGTH != 0 {
            Some(((self.flags & 0x1FE) >> 1) as usize)
        } else {
            None
        }
    }

    /// Whether its fields are in their ranges: text that only begins like flags is no header, nor are zeros.
    pub const fn is_plausible(&self) -> bool {
        matches!(self.streams, 1..=0xFFFF) && matches!(self.port, 1..=0xFFFF)
    }
}

/// The extension (`client_hdrext`): 36 bytes up to 2.1, 40 since 2.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extension {
    /// 0.
    pub kind: u32,
    /// 0.
    pub length: u32,
    /// See [`upper`].
    pub upper: u16,
    /// See [`lower`].
    pub lower: u16,
    /// The client's version.
    pub version: Version,
    /// 0.
    pub reserved: u16,
    /// Type of service.
    pub tos: u16,
    /// Rate, bit/s, or packets/s with [`upper::PACKETS`]; 0 = as fast as it goes. 56 bits, up to 2.0.13 32.
    pub rate: u64,
    /// `TCP_NOTSENT_LOWAT` of a reverse test.
    pub write_prefetch: u32,
    /// Since 2.2: how long streams waited for each other, µs.
    pub barrier_us: Option<u32>,
}

impl Extension {
    fn read(words: &mut Words<'_>) -> Option<Self> {
        let [kind, length] = words.all()?;
        let (upper, lower) = (words.u16()?, words.u16()?);
        let [version_upper, version_lower] = words.all()?;
        let version = Version::from_words(version_upper, version_lower);
        let (reserved, tos) = (words.u16()?, words.u16()?);
        let [rate_low, rate_high, write_prefetch] = words.all()?;
        let barrier_us = if version.is_since_2_2() {
            Some(words.u32()?)
        } else {
            None
        };
        Some(Self {
            kind,
            length,
            upper,
            lower,
            version,
            reserved,
            tos,
            // The low eight bits of the upper half are for other things.
            rate: if version.is_until_2_0_13() {
                u64::from(rate_low)
            } else {
                u64::from(rate_high >> 8) << 32 | u64::from(rate_low)
            },
            write_prefetch,
            barrier_us,
        })
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        let [high, low] = halves(self.rate);
        put(bytes, &[self.kind, self.length]);
        bytes.extend(self.upper.to_be_bytes());
        bytes.extend(self.lower.to_be_bytes());
        put(bytes, &self.version.to_words());
        bytes.extend(self.reserved.to_be_bytes());
        bytes.extend(self.tos.to_be_bytes());
        put(bytes, &[low, high << 8, self.write_prefetch]);
        if self.version.is_since_2_2() {
            put(bytes, &[self.barrier_us.unwrap_or(0)]);
        }
    }
}

/// When a test starts, and the kernel's pacing: 20 bytes up to 2.1, 16 since 2.2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Start {
    /// s since 1970.
    pub seconds: u32,
    /// And µs.
    pub microseconds: u32,
    /// `SO_MAX_PACING_RATE`, bytes/s.
    pub pacing: u64,
}

impl Start {
    const fn bytes(version: Version) -> usize {
        if version.is_since_2_2() { 16 } else { 20 }
    }

    fn read(version: Version, words: &mut Words<'_>) -> Option<Self> {
        if !version.is_since_2_2() {
            words.u32()?;
        }
        let [seconds, microseconds] = words.all()?;
        Some(Self {
            seconds,
            microseconds,
            pacing: words.low_high()?,
        })
    }

    fn encode(&self, version: Version, bytes: &mut Vec<u8>) {
        if !version.is_since_2_2() {
            put(bytes, &[0]);
        }
        let [high, low] = halves(self.pacing);
        put(bytes, &[self.seconds, self.microseconds, low, high]);
    }
}

/// What frames a reverse test sends: integer and millionths each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IsochronousSettings {
    /// Frames a second.
    pub frames: [u32; 2],
    /// Mean rate, bit/s; with [`upper::BURST`] a burst's length, bytes.
    pub mean: [u32; 2],
    /// Its variance.
    pub variance: [u32; 2],
    /// Gap between the packets of a frame, s.
    pub gap: [u32; 2],
}

/// Bytes of [`IsochronousSettings`].
const SETTINGS_BYTES: usize = 32;

impl IsochronousSettings {
    fn read(words: &mut Words<'_>) -> Option<Self> {
        Some(Self {
            frames: words.all()?,
            mean: words.all()?,
            variance: words.all()?,
            gap: words.all()?,
        })
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        for part in [self.frames, self.mean, self.variance, self.gap] {
            put(bytes, &part);
        }
    }
}

/// Why a header cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// So many bytes are there or to come, and no header has so few, or its parts do not fit.
    Malformed,
    /// It goes on up to so many bytes.
    Short {
        /// All that are needed to know more.
        bytes: usize,
    },
}

/// All that a client says at the head of a TCP connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpHeader {
    /// Version 1.
    pub first: First,
    /// Since 2.0.10.
    pub extension: Option<Extension>,
    /// With a start time, trip times or pacing.
    pub start: Option<Start>,
    /// Of isochronous and burst tests in reverse.
    pub isochronous: Option<IsochronousSettings>,
    /// Congestion control (`-Z`), since 2.1.9.
    pub congestion: Option<PlainText>,
    /// Permit key.
    pub key: Option<PlainText>,
}

impl TcpHeader {
    /// Reads a header and says how long it is.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), Unreadable> {
        let short = |bytes| Unreadable::Short { bytes };
        let first = First::decode(bytes).ok_or_else(|| short(FIRST_BYTES))?;
        let mut header = Self {
            first,
            extension: None,
            start: None,
            isochronous: None,
            congestion: None,
            key: None,
        };
        if first.flags & flag::EXTEND == 0 {
            return Ok((header, FIRST_BYTES));
        }
        // Those that do not tell their length are of 2.0.10 to 2.0.13, with an extension of 36 bytes.
        let told = first.told_length().unwrap_or(FIRST_BYTES + EXTENSION_BYTES);
        let whole = bytes.get(..told).ok_or_else(|| short(told))?;
        let mut words = Words(whole.get(FIRST_BYTES..).ok_or(Unreadable::Malformed)?);
        let extension = Extension::read(&mut words).ok_or(Unreadable::Malformed)?;
        header.extension = Some(extension);
        header.read_rest(extension, words, &bytes[told..], told)
    }

    /// The parts behind the extension; `behind` is what came after the length that was told.
    fn read_rest(
        mut self,
        extension: Extension,
        mut words: Words<'_>,
        behind: &[u8],
        told: usize,
    ) -> Result<(Self, usize), Unreadable> {
        let mut key_length = None;
        if self.first.flags & flag::KEY != 0 {
            // Its length is the last of what is told, the key itself comes behind.
            let (rest, length) = words.0.split_last_chunk().ok_or(Unreadable::Malformed)?;
            key_length = Some(usize::from(u16::from_be_bytes(*length)));
            words = Words(rest);
        }
        if words.0.len() >= Start::bytes(extension.version) {
            self.start = Start::read(extension.version, &mut words);
        }
        if words.0.len() >= SETTINGS_BYTES {
            self.isochronous = IsochronousSettings::read(&mut words);
        }
        if extension.lower & lower::CONGESTION != 0 {
            let length = words.u16().map(usize::from);
            let name = length
                .filter(|length| (1..=LONGEST_NAME).contains(length))
                .and_then(|length| words.bytes(length));
            self.congestion = Some(text(name.ok_or(Unreadable::Malformed)?));
        }
        let Some(length) = key_length else {
            return Ok((self, told));
        };
        if length > LONGEST_KEY {
            return Err(Unreadable::Malformed);
        }
        let whole = told + length;
        let key = behind.get(..length);
        self.key = Some(text(key.ok_or(Unreadable::Short { bytes: whole })?));
        Ok((self, whole))
    }

    /// As it goes over the wire; flags, length and bits that say what follows are set to what is there.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.first.encode(&mut bytes);
        if let Some(extension) = &self.extension {
            let mut extension = *extension;
            let congestion = self.congestion.as_ref().map(PlainText::as_str);
            match congestion {
                Some(_) => extension.lower |= lower::CONGESTION,
                None => extension.lower &= !lower::CONGESTION,
            }
            extension.encode(&mut bytes);
            // A part is found by its place, so all in front of it are there.
            if self.start.is_some() || self.isochronous.is_some() || congestion.is_some() {
                let start = self.start.unwrap_or_default();
                start.encode(extension.version, &mut bytes);
            }
            if self.isochronous.is_some() || congestion.is_some() {
                self.isochronous.unwrap_or_default().encode(&mut bytes);
            }
            if let Some(name) = congestion {
                put_text(&mut bytes, name, LONGEST_NAME);
            }
            let key = self.key.as_ref().map(|key| cut(key.as_str(), LONGEST_KEY));
            let mut flags = self.first.flags | flag::EXTEND | flag::HAS_LENGTH;
            flags &= !(0x1FE | flag::KEY);
            if let Some(key) = key {
                flags |= flag::KEY;
                bytes.extend(u16::try_from(key.len()).unwrap_or(0).to_be_bytes());
            }
            flags |= u32::try_from(bytes.len() << 1).unwrap_or(0) & 0x1FE;
            bytes.extend(key.unwrap_or(&[]));
            bytes[..4].copy_from_slice(&flags.to_be_bytes());
        }
        bytes
    }
}

/// What a client says behind the head of each datagram, since 2.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpHeader {
    /// Version 1.
    pub first: First,
    /// The extension.
    pub extension: Extension,
    /// The datagram's place in its frame.
    pub frame: Frame,
    /// Start time and pacing.
    pub start: Start,
    /// Of isochronous tests in reverse.
    pub isochronous: IsochronousSettings,
}

impl UdpHeader {
    /// Bytes of it, with all its parts.
    pub const BYTES: usize = 144;

    /// Reads what stands behind a datagram's head of 16 bytes. A short datagram has not all parts: those are zeros then.
    /// `None` where the extension is not there.
    pub fn decode(behind: &[u8]) -> Option<Self> {
        let mut words = Words(behind);
        let first = First::read(&mut words)?;
        let extension = Extension::read(&mut words)?;
        let frame = words.bytes(FRAME_BYTES).and_then(Frame::decode);
        Some(Self {
            first,
            extension,
            frame: frame.unwrap_or_default(),
            start: Start::read(extension.version, &mut words).unwrap_or_default(),
            isochronous: IsochronousSettings::read(&mut words).unwrap_or_default(),
        })
    }

    /// As it goes over the wire, all parts of it.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        self.first.encode(&mut bytes);
        self.extension.encode(&mut bytes);
        self.frame.encode(&mut bytes);
        self.start.encode(self.extension.version, &mut bytes);
        self.isochronous.encode(&mut bytes);
        bytes
    }
}

fn text(bytes: &[u8]) -> PlainText {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// The beginning of a text, as much of it as may be.
fn cut(text: &str, most: usize) -> &[u8] {
    let bytes = text.as_bytes();
    &bytes[..bytes.len().min(most)]
}

fn put_text(bytes: &mut Vec<u8>, text: &str, most: usize) {
    let text = cut(text, most);
    bytes.extend(u16::try_from(text.len()).unwrap_or(0).to_be_bytes());
    bytes.extend(text);
}
