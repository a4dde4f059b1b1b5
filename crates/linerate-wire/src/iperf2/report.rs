//! What a server answers to the last datagram of a flow (`AckFIN`): what it counted.

use linerate_model::units::Nanos;

use super::datagram::Layout;
use super::words::{Words, halves, put, wide};

/// The report is one.
const IS_REPORT: u32 = 0x8000_0000;
/// Transit times follow that mean something (`-e`, `--trip-times`).
const HAS_TRANSIT: u32 = 0x4000_0000;
/// Counts have high halves at the end.
const IS_WIDE: u32 = 0x0800_0000;

/// Where the report stands in its datagram, and how wide its counts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Up to 2.0.12: after 12 bytes, with counts of 32 bits.
    After12,
    /// Builds of 2.0.13 before its release: after 16 bytes, with 64 bits for the datagrams alone, in front of the jitter.
    After16,
    /// 2.0.13 and newer: after 16 bytes; 128 bytes in all, the high halves of the counts at the end.
    Wide,
}

impl Form {
    /// The head in front of it.
    pub const fn head(self) -> Layout {
        match self {
            Self::After12 => Layout::Bytes12,
            Self::After16 | Self::Wide => Layout::Bytes16,
        }
    }
}

/// What a server counted of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Payload that came.
    pub bytes: u64,
    /// From the first to the last datagram.
    pub lasted: Nanos,
    /// Datagrams that are missing. 2.0.x counts those that came late twice: as missing, and out of order.
    pub lost: u64,
    /// Datagrams that came after later ones.
    pub out_of_order: u64,
    /// Datagrams that were sent, by their numbers. The last one, which ends the flow, is one since 2.1.
    pub datagrams: u64,
    /// Interarrival jitter (RFC 3550, section 6.4.1).
    pub jitter: Nanos,
    /// Trip times of the datagrams, by the difference of two hosts' clocks.
    pub transit: Option<Transit>,
}

/// Trip times. Signed: clocks that disagree make them negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transit {
    /// s and millionths, as they stand on the wire: minimum, maximum, sum, mean, sum of squared distances, variation.
    pub parts: [[u32; 2]; 6],
    /// Datagrams that were measured.
    pub count: u32,
    /// Datagrams a second.
    pub rate: u32,
    /// 1.
    pub gaps: u32,
}

impl Report {
    /// The report in a server's answer, of whatever version it is; `None` where there is none.
    pub fn decode(datagram: &[u8]) -> Option<(Form, Self)> {
        let flags = |at: usize| Words(datagram.get(at..)?).u32();
        // At 16 first: a report after 12 bytes has there the high half of a count of bytes, whose highest bit no test reaches, and
        // one after 16 bytes has at 12 the high half of a number that is below 0 (2.0.13).
        let (form, at) = match (flags(12)?, flags(16)?) {
            (_, flags) if flags & IS_REPORT != 0 && flags & IS_WIDE != 0 => (Form::Wide, 16),
            (_, flags) if flags & IS_REPORT != 0 => (Form::After16, 16),
            (flags, _) if flags & IS_REPORT != 0 => (Form::After12, 12),
            _ => return None,
        };
        let mut words = Words(datagram.get(at..)?);
        let [flags, high, low, seconds, micros, lost, disorder, datagrams] = words.all()?;
        let more = match form {
            Form::After16 => words.u32()?,
            Form::After12 | Form::Wide => 0,
        };
        let [jitter_s, jitter_us] = words.all()?;
        let mut report = Self {
            bytes: wide(high, low),
            lasted: time(seconds, micros),
            lost: u64::from(lost),
            out_of_order: u64::from(disorder),
            datagrams: wide(more, datagrams),
            jitter: time(jitter_s, jitter_us),
            transit: None,
        };
        if form == Form::Wide {
            let mut parts = [[0; 2]; 6];
            for part in &mut parts {
                *part = words.all()?;
            }
            let [count, rate, gaps] = words.all()?;
            report.transit = (flags & HAS_TRANSIT != 0).then_some(Transit {
                parts,
                count,
                rate,
                gaps,
            });
            let [lost, disorder, datagrams] = words.all()?;
            report.lost |= wide(lost, 0);
            report.out_of_order |= wide(disorder, 0);
            report.datagrams |= wide(datagrams, 0);
        }
        Some((form, report))
    }

    /// The answer to a last datagram, whose head a client of that time expects to see again.
    pub fn encode(&self, form: Form, last: &[u8]) -> Vec<u8> {
        let head = form.head().bytes();
        let mut bytes = match form {
            // Since 2.1 a head of zeros.
            Form::Wide => vec![0; head],
            Form::After12 | Form::After16 => last.get(..head).unwrap_or(&[0; 16][..head]).to_vec(),
        };
        if form == Form::After16 {
            // Bytes that clients of 2.0.13 leave as they are: no report of an older form begins here.
            bytes[12..].fill(0);
        }
        let [high, low] = halves(self.bytes);
        let [seconds, micros] = parts(self.lasted);
        let [lost, lost_low] = halves(self.lost);
        let [disorder, disorder_low] = halves(self.out_of_order);
        let [datagrams, datagrams_low] = halves(self.datagrams);
        let transit = self.transit.filter(|_| form == Form::Wide);
        let mut flags = IS_REPORT;
        if form == Form::Wide {
            flags |= IS_WIDE;
        }
        if transit.is_some() {
            flags |= HAS_TRANSIT;
        }
        put(&mut bytes, &[flags, high, low, seconds, micros]);
        put(&mut bytes, &[lost_low, disorder_low, datagrams_low]);
        if form == Form::After16 {
            put(&mut bytes, &[datagrams]);
        }
        put(&mut bytes, &parts(self.jitter));
        if form == Form::Wide {
            let transit = transit.unwrap_or_default();
            for part in transit.parts {
                put(&mut bytes, &part);
            }
            put(&mut bytes, &[transit.count, transit.rate, transit.gaps]);
            put(&mut bytes, &[lost, disorder, datagrams]);
        }
        bytes
    }
}

fn time(seconds: u32, micros: u32) -> Nanos {
    Nanos(u64::from(seconds) * 1_000_000_000 + u64::from(micros) * 1000)
}

fn parts(time: Nanos) -> [u32; 2] {
    let seconds = u32::try_from(time.0 / 1_000_000_000).unwrap_or(u32::MAX);
    let micros = time.0 % 1_000_000_000 / 1000;
    [seconds, u32::try_from(micros).unwrap_or(0)]
}
