//! The place of a UDP datagram in its frame (`--isochronous`), since 2.0.13.

use super::words::{Words, put};

/// Bytes of it.
pub const FRAME_BYTES: usize = 32;

/// What each datagram says of its frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frame {
    /// From a frame to the next, µs.
    pub period_us: u32,
    /// When the first frame was due, s since 1970.
    pub start_seconds: u32,
    /// And µs.
    pub start_microseconds: u32,
    /// The frame before this.
    pub previous: u32,
    /// This frame.
    pub frame: u32,
    /// Its length, bytes.
    pub bytes: u32,
    /// What of it is still to come, with this datagram, bytes.
    pub remaining: u32,
    /// 0.
    pub reserved: u32,
}

impl Frame {
    /// `None` where there are fewer bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [
            period_us,
            start_seconds,
            start_microseconds,
            previous,
            frame,
            bytes,
            remaining,
            reserved,
        ] = Words(bytes).all()?;
        Some(Self {
            period_us,
            start_seconds,
            start_microseconds,
            previous,
            frame,
            bytes,
            remaining,
            reserved,
        })
    }

    /// As it goes over the wire.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        put(
            bytes,
            &[
                self.period_us,
                self.start_seconds,
                self.start_microseconds,
                self.previous,
                self.frame,
                self.bytes,
                self.remaining,
                self.reserved,
            ],
        );
    }
}
