//! IP packets as a router reads and writes them: the few fields that decide, the mark of congestion, and
//! the answer to a packet that is too big.

use crate::path::Ecn;

/// Bytes of an IPv6 header, and the least of an IPv4 one.
const V6_HEADER: usize = 40;
const V4_HEADER: usize = 20;
const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_HEADER: u32 = 8;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
/// The lower two bits of the type of service.
const ECN_FIELD: u8 = 3;
const HOPS: u8 = 64;

/// What the path asks of a packet's first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) ecn: Ecn,
    pub(super) dont_fragment: bool,
    /// Bytes of the headers that each segment repeats: IP and transport.
    headers: u32,
}

/// How many packets on a wire a queued one is, and their IP bytes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) segments: u32,
    pub(super) bytes: u64,
}

impl Header {
    /// Reads the first bytes of a packet; `None` for what is not IP or is cut off.
    pub(super) fn read(start: &[u8]) -> Option<Self> {
        let (class, dont_fragment, length, protocol) = match start.first()? >> 4 {
            4 => {
                let length = usize::from(start[0] & 15) * 4;
                (
                    *start.get(1)?,
                    start.get(6)? & 0x40 != 0,
                    length,
                    *start.get(9)?,
                )
            }
            // A router never cuts IPv6.
            6 => {
                let class = (start[0] << 4) | (start.get(1)? >> 4);
                (class, true, V6_HEADER, *start.get(6)?)
            }
            _ => return None,
        };
        let ecn = match class & ECN_FIELD {
            0 => Ecn::NotCapable,
            3 => Ecn::Marked,
            _ => Ecn::Capable,
        };
        let ip = u32::try_from(length).ok()?;
        let transport = match protocol {
            TCP => u32::from(start.get(length + 12)? >> 4) * 4,
            UDP => UDP_HEADER,
            _ => 0,
        };
        Some(Self {
            ecn,
            dont_fragment,
            headers: ip + transport,
        })
    }

    /// What a large packet is on a wire whose packets are at most `mtu` bytes. The kernel does not tell a
    /// queue at what size it will cut, so full segments are assumed.
    pub(super) fn extent(self, length: u32, mtu: u32) -> Extent {
        let payload = length.saturating_sub(self.headers);
        let segment = mtu.saturating_sub(self.headers).max(1);
        let segments = payload.div_ceil(segment).max(1);
        Extent {
            segments,
            bytes: u64::from(length) + u64::from(segments - 1) * u64::from(self.headers),
        }
    }
}

/// Sets Congestion Experienced in a whole packet (RFC 3168, section 5). False for what is not IP.
pub(super) fn mark(packet: &mut [u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= V4_HEADER => {
            let length = (usize::from(packet[0] & 15) * 4).min(packet.len());
            packet[1] |= ECN_FIELD;
            packet[10..12].fill(0);
            let sum = checksum(&[&packet[..length]]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            true
        }
        // The class lies across two bytes; its lower half is the upper half of the second.
        Some(6) if packet.len() >= V6_HEADER => {
            packet[1] |= ECN_FIELD << 4;
            true
        }
        _ => false,
    }
}

/// A router's answer to a packet of which at least the first bytes are given: "fragmentation needed"
/// (RFC 792, RFC 1191) or "packet too big" (RFC 4443, section 3.2), from the packet's own destination: no
/// address of the router's is needed, and hosts believe either. `None` for what is not IP.
pub(super) fn too_big(packet: &[u8], mtu: u32) -> Option<Vec<u8>> {
    match packet.first()? >> 4 {
        4 if packet.len() >= V4_HEADER => Some(too_big_v4(packet, mtu)),
        6 if packet.len() >= V6_HEADER => Some(too_big_v6(packet, mtu)),
        _ => None,
    }
}

fn too_big_v4(packet: &[u8], mtu: u32) -> Vec<u8> {
    // The header and the first 8 bytes behind it.
    let quoted = &packet[..packet.len().min(usize::from(packet[0] & 15) * 4 + 8)];
    let mut icmp = vec![3, 4, 0, 0, 0, 0];
    icmp.extend(u16::try_from(mtu).unwrap_or(u16::MAX).to_be_bytes());
    icmp.extend(quoted);
    let sum = checksum(&[&icmp]);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let length = u16::try_from(V4_HEADER + icmp.len()).unwrap_or(u16::MAX);
    let mut answer = vec![0x45, 0];
    answer.extend(length.to_be_bytes());
    answer.extend([0, 0, 0, 0, HOPS, ICMP, 0, 0]);
    answer.extend(&packet[16..20]);
    answer.extend(&packet[12..16]);
    let sum = checksum(&[&answer]);
    answer[10..12].copy_from_slice(&sum.to_be_bytes());
    answer.extend(icmp);
    answer
}

fn too_big_v6(packet: &[u8], mtu: u32) -> Vec<u8> {
    // As much as fits into the least MTU.
    let quoted = &packet[..packet.len().min(1280 - V6_HEADER - 8)];
    let mut icmp = vec![2, 0, 0, 0];
    icmp.extend(mtu.to_be_bytes());
    icmp.extend(quoted);
    let length = u16::try_from(icmp.len()).unwrap_or(u16::MAX);
    let mut answer = vec![0x60, 0, 0, 0];
    answer.extend(length.to_be_bytes());
    answer.extend([ICMP_V6, HOPS]);
    answer.extend(&packet[24..40]);
    answer.extend(&packet[8..24]);
    // The pseudo-header of RFC 8200, section 8.1.
    let [high, low] = length.to_be_bytes();
    let pseudo = [0, 0, high, low, 0, 0, 0, ICMP_V6];
    let sum = checksum(&[&answer[8..40], &pseudo, &icmp]);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    answer.extend(icmp);
    answer
}

/// The internet's checksum (RFC 1071); each part but the last is of even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let sum: u64 = words
        .map(|word| u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0)))
        .sum();
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4() -> Vec<u8> {
        let mut packet = vec![0x45, 2, 0, 60, 0, 1, 0x40, 0, 64, TCP, 0, 0];
        packet.extend([192, 0, 2, 1, 198, 51, 100, 2]);
        packet.extend([0; 12]);
        packet.extend([0x80; 28]);
        packet
    }

    fn v6() -> Vec<u8> {
        let mut packet = vec![0x60, 0x10, 0, 0, 0, 32, TCP, 64];
        packet.extend([1; 16]);
        packet.extend([2; 16]);
        packet.extend([0; 12]);
        packet.extend([0x80; 20]);
        packet
    }

    #[test]
    fn headers_are_read() {
        let read = Header::read(&v4()).unwrap();
        assert_eq!(
            (read.ecn, read.dont_fragment, read.headers),
            (Ecn::Capable, true, 52)
        );
        let read = Header::read(&v6()).unwrap();
        assert_eq!(
            (read.ecn, read.dont_fragment, read.headers),
            (Ecn::Capable, true, 72)
        );
        for packet in [v4(), v6()] {
            for end in 0..30 {
                // No slice is too short to be asked.
                let _ = Header::read(&packet[..end]);
            }
        }
        assert_eq!(Header::read(&[0x45, 0]), None);
        assert_eq!(Header::read(&[0x15; 60]), None);
    }

    #[test]
    fn a_super_segment_counts_all_its_headers() {
        let header = Header::read(&v4()).unwrap();
        // 10 full segments of 1448 bytes and one of 1.
        let extent = header.extent(52 + 14_481, 1500);
        assert_eq!(
            extent,
            Extent {
                segments: 11,
                bytes: 14_481 + 11 * 52
            }
        );
        assert_eq!(
            header.extent(52, 1500),
            Extent {
                segments: 1,
                bytes: 52
            }
        );
        assert_eq!(header.extent(1500, 0).segments, 1448);
    }

    #[test]
    fn marks_keep_the_header_whole() {
        let mut packet = v4();
        assert!(mark(&mut packet));
        assert_eq!(Header::read(&packet).unwrap().ecn, Ecn::Marked);
        assert_eq!(checksum(&[&packet[..20]]), 0);
        let mut packet = v6();
        assert!(mark(&mut packet));
        assert_eq!(Header::read(&packet).unwrap().ecn, Ecn::Marked);
        assert_eq!(packet[0], 0x60);
        assert!(!mark(&mut [0x45; 10]) && !mark(&mut []));
    }

    #[test]
    fn answers_go_back_with_right_sums() {
        let answer = too_big(&v4(), 1400).unwrap();
        assert_eq!(answer.len(), 20 + 8 + 28);
        assert_eq!(checksum(&[&answer[..20]]), 0);
        assert_eq!(checksum(&[&answer[20..]]), 0);
        assert_eq!(&answer[12..20], [198, 51, 100, 2, 192, 0, 2, 1]);
        assert_eq!(
            &answer[20..28],
            [3, 4, answer[22], answer[23], 0, 0, 5, 120]
        );
        let answer = too_big(&v6(), 1400).unwrap();
        let length = answer.len() - 40;
        let pseudo = [0, 0, 0, u8::try_from(length).unwrap(), 0, 0, 0, ICMP_V6];
        assert_eq!(checksum(&[&answer[8..40], &pseudo, &answer[40..]]), 0);
        assert_eq!(
            (&answer[8..24], &answer[24..40]),
            (&[2; 16][..], &[1; 16][..])
        );
        assert_eq!(too_big(&[0x45; 10], 1400), None);
    }
}
