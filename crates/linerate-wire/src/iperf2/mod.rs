//! iperf2's wire: iperf 1.x, 2.0.x, 2.1 and 2.2, of which no two send quite the same.
//!
//! There is no control connection. A TCP connection or a UDP flow says in its first bytes what its client wants, or says
//! nothing at all (iperf 1.x); who calls is found out by [`caller`]. Numbers are big-endian, structures packed to 4 bytes.
//!
//! | module | structures |
//! |---|---|
//! | [`datagram`] | what stands at the head of each UDP datagram, in 12 or 16 bytes |
//! | [`header`] | what a client wants: version 1, its extension, the start time, isochronous settings, a congestion control's name, a permit key |
//! | [`isochronous`] | the place of a UDP datagram in its frame |
//! | [`ack`] | what a server answers to a TCP header |
//! | [`report`] | what a server answers to the last datagram: its figures |
//! | [`caller`] | who calls, from the first bytes |
//!
//! Layouts were read off the wire of iperf 2.0.6, 2.0.13, 2.1.8 and 2.2.n (`tests/captured/iperf2`).
//!
//! ```
//! use linerate_wire::iperf2::caller::{Generation, Opening, Way, of_connection};
//!
//! // The first bytes of `iperf -c HOST -t 1`, iperf 2.1.8: 12 of the 24 that say how long its header is.
//! let begun = [0x40, 1, 0, 0x78, 0, 0, 0, 1, 0, 0, 0x17, 0xd4];
//! assert_eq!(of_connection(&begun), Opening::Partial { bytes: 24 });
//!
//! // iperf 1.x sends payload at once.
//! let Opening::Iperf2(caller) = of_connection(b"012345678901") else { panic!() };
//! assert_eq!((caller.generation, caller.way), (Generation::Headerless, Way::ToServer));
//!
//! // iperf3's cookie.
//! assert_eq!(of_connection(b"tf4qbmoxwkhz"), Opening::Other);
//! ```

pub mod ack;
pub mod bounceback;
pub mod caller;
pub mod datagram;
pub mod header;
pub mod isochronous;
pub mod report;
mod words;

use std::fmt;

/// The port of iperf2's servers.
pub const DEFAULT_PORT: u16 = 5001;
/// What a UDP client sends where nothing else is asked for, bit/s: 1024 × 1024.
pub const DEFAULT_UDP_RATE: u64 = 1 << 20;
/// Payload of a UDP datagram where nothing else is asked for, bytes.
pub const DEFAULT_UDP_BLOCK: u64 = 1470;

/// A version of iperf2, as its headers carry it since 2.0.10.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// 2.
    pub major: u16,
    /// 0 to 2.
    pub minor: u16,
    /// The third number.
    pub patch: u16,
    /// 0 alpha, 1 beta, 2 release candidate, 3 release, 5 development.
    pub stage: u16,
}

impl Version {
    /// The version whose wire we speak as a server and as a client.
    pub const SPOKEN: Self = Self {
        major: 2,
        minor: 2,
        patch: 0,
        stage: 3,
    };

    const fn from_words(upper: u32, lower: u32) -> Self {
        const fn halves(word: u32) -> [u16; 2] {
            let [a, b, c, d] = word.to_be_bytes();
            [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
        }
        let [major, minor] = halves(upper);
        let [patch, stage] = halves(lower);
        Self {
            major,
            minor,
            patch,
            stage,
        }
    }

    const fn to_words(self) -> [u32; 2] {
        [
            (self.major as u32) << 16 | self.minor as u32,
            (self.patch as u32) << 16 | self.stage as u32,
        ]
    }

    /// Whether its extension's rate has 32 bits, with payload behind them, and its flags are others.
    const fn is_until_2_0_13(self) -> bool {
        matches!(
            (self.major, self.minor, self.patch),
            (..2, _, _) | (2, 0, ..14)
        )
    }

    /// Whether the extension has a word more, and the start time one less.
    const fn is_since_2_2(self) -> bool {
        self.major > 2 || (self.major == 2 && self.minor >= 2)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.", self.major, self.minor)?;
        match (self.minor, self.patch, self.stage) {
            // Its development snapshots count no further.
            (2.., _, 5) => f.write_str("n"),
            (_, patch, _) => write!(f, "{patch}"),
        }
    }
}
