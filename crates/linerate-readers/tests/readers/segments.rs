//! Captures made up for tests: frames, files around them, and a sender on a path that loses.

use std::collections::BTreeSet;

pub(crate) const SYN: u8 = 0x02;
pub(crate) const ACK: u8 = 0x10;

/// What stands around an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrap {
    Ethernet,
    Vlan,
    QinQ,
    Raw,
    Null,
    Loop,
    Sll,
    Sll2,
    /// 802.11, which is not read.
    Unread,
}

impl Wrap {
    fn link(self) -> u16 {
        match self {
            Self::Ethernet | Self::Vlan | Self::QinQ => 1,
            Self::Raw => 101,
            Self::Null => 0,
            Self::Loop => 108,
            Self::Sll => 113,
            Self::Sll2 => 276,
            Self::Unread => 105,
        }
    }

    fn around(self, packet: &[u8], v6: bool) -> Vec<u8> {
        let kind: [u8; 2] = if v6 { [0x86, 0xdd] } else { [8, 0] };
        let mut frame = match self {
            Self::Ethernet => [vec![2; 12], kind.to_vec()].concat(),
            Self::Vlan => [vec![2; 12], vec![0x81, 0, 0, 7], kind.to_vec()].concat(),
            Self::QinQ => {
                let tags = vec![0x88, 0xa8, 0, 9, 0x81, 0, 0, 7];
                [vec![2; 12], tags, kind.to_vec()].concat()
            }
            Self::Raw => Vec::new(),
            Self::Null => vec![2, 0, 0, 0],
            Self::Loop => vec![0, 0, 0, 2],
            Self::Sll => [vec![0; 14], kind.to_vec()].concat(),
            Self::Sll2 => [kind.to_vec(), vec![0; 18]].concat(),
            Self::Unread => vec![0; 24],
        };
        frame.extend_from_slice(packet);
        frame
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Micros,
    Nanos,
    Pcapng,
}

/// A TCP packet.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) at_ns: u64,
    /// 0 sends to 1.
    pub(crate) from: usize,
    pub(crate) ports: [u16; 2],
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) payload: u32,
    pub(crate) options: Vec<u8>,
    pub(crate) marked: bool,
}

impl Frame {
    fn packet(&self, v6: bool) -> Vec<u8> {
        let mut options = self.options.clone();
        options.resize(options.len().next_multiple_of(4), 1);
        let header = 20 + options.len();
        let length = header + self.payload as usize;
        let there = 1 - self.from;
        let mut packet = Vec::new();
        let class = if self.marked { 3 } else { 0 };
        let address = |end: usize| u8::try_from(end + 1).unwrap();
        if v6 {
            packet.extend([0x60, class << 4, 0, 0]);
            packet.extend(u16::try_from(length).unwrap().to_be_bytes());
            packet.extend([6, 64]);
            for end in [self.from, there] {
                let prefix = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                packet.extend(prefix);
                packet.push(address(end));
            }
        } else {
            packet.extend([0x45, class]);
            packet.extend(u16::try_from(20 + length).unwrap().to_be_bytes());
            packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
            for end in [self.from, there] {
                packet.extend([10, 0, 0, address(end)]);
            }
        }
        for end in [self.from, there] {
            packet.extend(self.ports[end].to_be_bytes());
        }
        packet.extend(self.seq.to_be_bytes());
        packet.extend(self.ack.to_be_bytes());
        packet.extend([u8::try_from(header / 4).unwrap() << 4, self.flags]);
        packet.extend(self.window.to_be_bytes());
        packet.extend([0; 4]);
        packet.extend(options);
        packet.resize(packet.len() + self.payload as usize, 0xaa);
        packet
    }
}

/// A capture file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct File {
    pub(crate) format: Format,
    pub(crate) wrap: Wrap,
    pub(crate) big: bool,
    pub(crate) v6: bool,
    pub(crate) snapshot: u32,
    pub(crate) dropped: Option<u64>,
}

impl Default for File {
    fn default() -> Self {
        Self {
            format: Format::Micros,
            wrap: Wrap::Ethernet,
            big: false,
            v6: false,
            snapshot: 262_144,
            dropped: None,
        }
    }
}

impl File {
    fn word(self, value: u32) -> [u8; 4] {
        if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn short(self, value: u16) -> [u8; 2] {
        if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn long(self, value: u64) -> [u8; 8] {
        if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let length = self.word(u32::try_from(padded + 12).unwrap());
        let mut block = [self.word(kind), length].concat();
        block.extend_from_slice(body);
        block.resize(8 + padded, 0);
        block.extend(length);
        block
    }

    fn head(self) -> Vec<u8> {
        let link = self.wrap.link();
        match self.format {
            Format::Pcapng => {
                let version = [self.short(1), self.short(0)].concat();
                let section = [&self.word(0x1a2b_3c4d)[..], &version, &[0xff; 8]].concat();
                // if_tsresol 9: ns.
                let resolution =
                    [&self.short(9)[..], &self.short(1), &[9, 0, 0, 0], &[0; 4]].concat();
                let interface = [
                    &self.short(link)[..],
                    &[0; 2],
                    &self.word(self.snapshot),
                    &resolution,
                ]
                .concat();
                [self.block(0x0a0d_0d0a, &section), self.block(1, &interface)].concat()
            }
            Format::Micros | Format::Nanos => {
                let magic = if self.format == Format::Nanos {
                    0xa1b2_3c4d
                } else {
                    0xa1b2_c3d4
                };
                [
                    &self.word(magic)[..],
                    &self.short(2),
                    &self.short(4),
                    &[0; 8],
                    &self.word(self.snapshot),
                    &self.word(u32::from(link)),
                ]
                .concat()
            }
        }
    }

    fn record(self, frame: &Frame) -> Vec<u8> {
        let bytes = self.wrap.around(&frame.packet(self.v6), self.v6);
        let original = self.word(u32::try_from(bytes.len()).unwrap());
        let held = &bytes[..bytes.len().min(self.snapshot as usize)];
        let captured = self.word(u32::try_from(held.len()).unwrap());
        let at = frame.at_ns + 1_700_000_000_000_000_000;
        if self.format == Format::Pcapng {
            let stamp = [
                self.word(u32::try_from(at >> 32).unwrap()),
                self.word(u32::try_from(at & 0xffff_ffff).unwrap()),
            ];
            let body = [
                &self.word(0)[..],
                &stamp[0],
                &stamp[1],
                &captured,
                &original,
                held,
            ]
            .concat();
            return self.block(6, &body);
        }
        let unit = if self.format == Format::Nanos {
            1
        } else {
            1000
        };
        let seconds = u32::try_from(at / 1_000_000_000).unwrap();
        let fraction = u32::try_from(at % 1_000_000_000 / unit).unwrap();
        [
            &self.word(seconds)[..],
            &self.word(fraction),
            &captured,
            &original,
            held,
        ]
        .concat()
    }

    pub(crate) fn write(self, frames: &[Frame]) -> Vec<u8> {
        let mut bytes = self.head();
        for frame in frames {
            bytes.extend(self.record(frame));
        }
        if let Some(dropped) = self.dropped {
            let option = [&self.short(5)[..], &self.short(8), &self.long(dropped)].concat();
            let body = [&self.word(0)[..], &[0; 8], &option].concat();
            bytes.extend(self.block(5, &body));
        }
        bytes
    }
}

/// A packet of the handshake's ports.
pub(crate) fn handshake(at_ns: u64, from: usize) -> Frame {
    Frame {
        at_ns,
        from,
        ports: [40_000, 5201],
        seq: 0,
        ack: 0,
        flags: ACK,
        window: 29_000,
        payload: 0,
        options: Vec::new(),
        marked: false,
    }
}

fn syn_options(mss: u16, shift: Option<u8>) -> Vec<u8> {
    let mut options = vec![2, 4];
    options.extend(mss.to_be_bytes());
    options.extend([4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0]);
    options.extend(shift.into_iter().flat_map(|shift| [1, 3, 3, shift]));
    options
}

/// A sender that loses nothing: as much as the window allows, each round trip.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Talk {
    pub(crate) first: [u32; 2],
    pub(crate) from_ns: u64,
    pub(crate) segments: u32,
    pub(crate) mss: u16,
    /// As the receiver's header says.
    pub(crate) window: u16,
    pub(crate) shift: [Option<u8>; 2],
}

impl Default for Talk {
    fn default() -> Self {
        Self {
            first: [1000, 2000],
            from_ns: 0,
            segments: 120,
            mss: 1460,
            window: 29_000,
            shift: [Some(7), Some(7)],
        }
    }
}

const ROUND_NS: u64 = 20_000_000;

pub(crate) fn talk(talk: &Talk) -> Vec<Frame> {
    let [client, server] = talk.first;
    let at = |ns: u64| talk.from_ns + ns;
    let mut frames = opening(
        talk.first,
        talk.from_ns,
        ROUND_NS,
        1000,
        talk.mss,
        talk.shift,
    );
    let size = u32::from(talk.mss) - 12;
    let both = talk.shift.iter().all(Option::is_some);
    let scale = if both { talk.shift[1].unwrap_or(0) } else { 0 };
    let fits = (u32::from(talk.window) << scale) / size;
    let each = fits.clamp(1, 100);
    let (mut sent, mut now) = (0, 30_000_000);
    while sent < talk.segments {
        let burst = each.min(talk.segments - sent);
        for place in 0..burst {
            let seq = client.wrapping_add(1 + (sent + place) * size);
            frames.push(Frame {
                seq,
                ack: server.wrapping_add(1),
                payload: size,
                ..handshake(at(now + u64::from(place) * 1000), 0)
            });
        }
        sent += burst;
        now += ROUND_NS;
        frames.push(Frame {
            seq: server.wrapping_add(1),
            ack: client.wrapping_add(1 + sent * size),
            window: talk.window,
            ..handshake(at(now), 1)
        });
        now += 10_000;
    }
    frames
}

/// SYN, its answer and the acknowledgement, `far` from the second end and `near` to the first, ns.
fn opening(
    [client, server]: [u32; 2],
    at: u64,
    far: u64,
    near: u64,
    mss: u16,
    shift: [Option<u8>; 2],
) -> Vec<Frame> {
    vec![
        Frame {
            seq: client,
            flags: SYN,
            options: syn_options(mss, shift[0]),
            ..handshake(at, 0)
        },
        Frame {
            seq: server,
            ack: client.wrapping_add(1),
            flags: SYN | ACK,
            options: syn_options(mss, shift[1]),
            ..handshake(at + far, 1)
        },
        Frame {
            seq: client.wrapping_add(1),
            ack: server.wrapping_add(1),
            ..handshake(at + far + near, 0)
        },
    ]
}

/// What loses a sender's segments.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trouble {
    /// Odds of each segment.
    Chance(f64),
    /// A token bucket: bit/s of payload, bytes.
    Policer { rate: f64, bucket: f64 },
    /// A line of bit/s of payload with a drop-tail queue.
    Queue { rate: f64, packets: u32 },
}

/// A path of 50 ms, with a sender that halves its window after a round trip with a loss.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub(crate) trouble: Trouble,
    pub(crate) seed: u64,
    pub(crate) at_receiver: bool,
}

const TRIP_NS: u64 = 50_000_000;
const SIZE: u32 = 1448;

impl Path {
    pub(crate) fn with(trouble: Trouble) -> Self {
        Self {
            trouble,
            seed: 1,
            at_receiver: false,
        }
    }

    /// What a capture of so many seconds holds.
    pub(crate) fn carry(&self, seconds: f64) -> Vec<Frame> {
        let (far, near) = if self.at_receiver {
            (1000, TRIP_NS)
        } else {
            (TRIP_NS, 1000)
        };
        let first = [1000, 2000];
        let mut frames = opening(first, 0, far, near, 1460, [Some(7); 2]);
        let begin = TRIP_NS * 2;
        let mut run = Run::new(self);
        let end = begin + ns(seconds);
        let (mut now, mut window, mut threshold) = (begin, 10_u32, u32::MAX);
        while now < end {
            let lost = run.round(now, window);
            let longest = run.longest_ns;
            if lost > 0 {
                threshold = (window / 2).max(2);
                window = threshold;
            } else if window < threshold {
                window *= 2;
            } else {
                window += 1;
            }
            window = window.min(4000);
            now += TRIP_NS + longest;
        }
        frames.extend(run.frames);
        frames.sort_by_key(|frame| frame.at_ns);
        frames
    }
}

fn ns(seconds: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "seconds of a test")]
    let ns = (seconds * 1e9) as u64;
    ns
}

struct Run {
    path: Path,
    frames: Vec<Frame>,
    next: u32,
    again: BTreeSet<u32>,
    arrived: BTreeSet<u32>,
    /// All below have arrived.
    acked: u32,
    tokens: f64,
    filled_ns: u64,
    queue_until_ns: u64,
    longest_ns: u64,
    random: u64,
}

impl Run {
    fn new(path: &Path) -> Self {
        let tokens = match path.trouble {
            Trouble::Policer { bucket, .. } => bucket,
            _ => 0.0,
        };
        Self {
            path: *path,
            frames: Vec::new(),
            next: 0,
            again: BTreeSet::new(),
            arrived: BTreeSet::new(),
            acked: 0,
            tokens,
            filled_ns: 0,
            queue_until_ns: 0,
            longest_ns: 0,
            random: path.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    /// Sends a window over a round trip, what was lost before first; returns how many were lost.
    fn round(&mut self, now: u64, window: u32) -> usize {
        self.longest_ns = 0;
        let mut lost = BTreeSet::new();
        let mut arrivals: BTreeSet<(u64, u32)> = BTreeSet::new();
        for place in 0..window {
            let number = self.again.pop_first().unwrap_or_else(|| {
                self.next += 1;
                self.next - 1
            });
            let at = now + TRIP_NS * u64::from(place) / u64::from(window);
            if let Some(delay) = self.passes(at) {
                self.longest_ns = self.longest_ns.max(delay);
                self.sent(at, delay, number, true);
                arrivals.insert((at + delay, number));
            } else {
                self.sent(at, 0, number, false);
                lost.insert(number);
            }
        }
        for (at, number) in arrivals {
            self.acknowledge(at, number);
        }
        let count = lost.len();
        self.again.append(&mut lost);
        count
    }

    fn sent(&mut self, at: u64, delay: u64, number: u32, arrives: bool) {
        // At the receiver's side a lost segment never shows.
        let shows = match (self.path.at_receiver, arrives) {
            (true, false) => return,
            (true, true) => at + delay + TRIP_NS / 2,
            (false, _) => at,
        };
        self.frames.push(Frame {
            seq: 1001_u32.wrapping_add(number * SIZE),
            ack: 2001,
            payload: SIZE,
            ..handshake(shows, 0)
        });
    }

    fn passes(&mut self, at: u64) -> Option<u64> {
        let bits = f64::from(SIZE) * 8.0;
        match self.path.trouble {
            Trouble::Chance(odds) => {
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                let draw = (self.random >> 11) as f64 / (1_u64 << 53) as f64;
                (draw >= odds).then_some(0)
            }
            Trouble::Policer { rate, bucket } => {
                let fresh = rate / 8.0 * at.saturating_sub(self.filled_ns) as f64 / 1e9;
                self.tokens = (self.tokens + fresh).min(bucket);
                self.filled_ns = at;
                let conforms = self.tokens >= f64::from(SIZE);
                self.tokens -= if conforms { f64::from(SIZE) } else { 0.0 };
                conforms.then_some(0)
            }
            Trouble::Queue { rate, packets } => {
                let each = ns(bits / rate);
                let begins = self.queue_until_ns.max(at);
                let waits = begins - at;
                if waits > each * u64::from(packets) {
                    return None;
                }
                self.queue_until_ns = begins + each;
                Some(waits + each)
            }
        }
    }

    fn acknowledge(&mut self, at: u64, number: u32) {
        self.arrived.insert(number);
        while self.arrived.remove(&self.acked) {
            self.acked += 1;
        }
        let mut options = Vec::new();
        if self.arrived.contains(&number) {
            let (mut from, mut to) = (number, number + 1);
            while from > 0 && self.arrived.contains(&(from - 1)) {
                from -= 1;
            }
            while self.arrived.contains(&to) {
                to += 1;
            }
            options.extend([1, 1, 5, 10]);
            for edge in [from, to] {
                options.extend(1001_u32.wrapping_add(edge * SIZE).to_be_bytes());
            }
        }
        let shows = if self.path.at_receiver {
            at + TRIP_NS / 2 + 50_000
        } else {
            at + TRIP_NS
        };
        self.frames.push(Frame {
            seq: 2001,
            ack: 1001_u32.wrapping_add(self.acked * SIZE),
            window: 60_000,
            options,
            ..handshake(shows, 1)
        });
    }
}
