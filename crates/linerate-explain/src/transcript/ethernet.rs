//! What Ethernet carries as TCP payload (RFC 6349, section 3.3.1, with timestamps or without).

/// Line rates, bit/s, and their names.
const LINES: [(f64, &str); 12] = [
    (1e7, "10 Mbit/s Ethernet"),
    (1e8, "100 Mbit/s Ethernet"),
    (1e9, "1 GbE"),
    (2.5e9, "2.5 GbE"),
    (5e9, "5 GbE"),
    (1e10, "10GbE"),
    (2.5e10, "25 GbE"),
    (4e10, "40 GbE"),
    (5e10, "50 GbE"),
    (1e11, "100 GbE"),
    (2e11, "200 GbE"),
    (4e11, "400 GbE"),
];
/// Preamble, header, checksum and gap of a frame, bytes.
const FRAMING: f64 = 38.0;
/// IPv4 and TCP headers without options, bytes.
pub(super) const IPV4: f64 = 40.0;
/// IPv6 and TCP headers without options, bytes.
pub(super) const IPV6: f64 = 60.0;
/// The timestamp option, bytes.
const TIMESTAMPS: f64 = 12.0;

/// A line and the payload that it carries.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Capacity {
    pub(super) line: &'static str,
    pub(super) bps: f64,
    /// `with MTU 1500 and timestamps`.
    pub(super) how: String,
}

/// Shares of a line's rate that are payload, with `headers` bytes of IP and TCP, and how; all common ones where the segment is not known.
pub(super) fn shares(mss: Option<f64>, headers: f64) -> Vec<(f64, String)> {
    if let Some(mss) = mss {
        // A segment size that leaves room for the option below a common MTU has it.
        let stamped = [1500.0, 9000.0].contains(&(mss + headers + TIMESTAMPS));
        let options = if stamped { TIMESTAMPS } else { 0.0 };
        return vec![(
            mss / (mss + headers + options + FRAMING),
            "at this MSS".to_owned(),
        )];
    }
    [1500.0, 9000.0]
        .into_iter()
        .flat_map(move |mtu: f64| {
            [(TIMESTAMPS, "with"), (0.0, "without")].map(move |(options, word)| {
                (
                    (mtu - headers - options) / (mtu + FRAMING),
                    format!("with MTU {mtu:.0}, {word} timestamps"),
                )
            })
        })
        .collect()
}

/// The line that `bps` fills to within `tolerance`, the nearest one.
pub(super) fn filled(bps: f64, mss: Option<f64>, headers: f64, tolerance: f64) -> Option<Capacity> {
    all(mss, headers)
        .filter(|capacity| (bps / capacity.bps - 1.0).abs() <= tolerance)
        .min_by(|a, b| (a.bps - bps).abs().total_cmp(&(b.bps - bps).abs()))
}

/// The slowest line that can carry `bps` with this segment.
pub(super) fn above(bps: f64, mss: f64, headers: f64) -> Option<Capacity> {
    // Of the lines between, nobody's path is one by default.
    all(Some(mss), headers)
        .find(|capacity| capacity.bps >= bps && !capacity.line.starts_with(['2', '5']))
}

fn all(mss: Option<f64>, headers: f64) -> impl Iterator<Item = Capacity> {
    let shares = shares(mss, headers);
    LINES.into_iter().flat_map(move |(rate, line)| {
        shares
            .clone()
            .into_iter()
            .map(move |(share, how)| Capacity {
                line,
                bps: rate * share,
                how,
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_lines_are_recognised() {
        let one = filled(942e6, None, IPV4, 0.006).unwrap();
        assert_eq!(
            (one.line, one.how.as_str()),
            ("1 GbE", "with MTU 1500, with timestamps")
        );
        assert!((one.bps - 941.5e6).abs() < 0.1e6);
        assert_eq!(filled(9.47e9, None, IPV4, 0.006).unwrap().line, "10GbE");
        assert_eq!(filled(4.11e9, None, IPV4, 0.006), None);
        // 1428 of 1538 bytes with IPv6.
        let six = filled(928.5e6, None, IPV6, 0.001).unwrap();
        assert_eq!(six.line, "1 GbE");
        let told = filled(928.5e6, Some(1428.0), IPV6, 0.001).unwrap();
        assert_eq!(told.line, "1 GbE");
        let large = above(9.195e9, 8948.0, IPV4).unwrap();
        assert!((large.bps - 9.9e9).abs() < 1e6, "{large:?}");
    }
}
