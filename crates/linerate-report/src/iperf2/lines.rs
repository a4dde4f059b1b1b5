//! A line of figures.

use super::Layout;
use crate::iperf3::amounts::{amount, fine_amount, two_digits};

/// Of a stream, or of several, over a time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    pub(super) bytes: u64,
    /// A sender's datagrams.
    pub(super) sent: Option<u64>,
    /// A receiver's, over UDP.
    pub(super) datagrams: Option<Datagrams>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Datagrams {
    pub(super) jitter_ms: f64,
    pub(super) lost: i64,
    pub(super) total: u64,
    pub(super) out_of_order: u64,
}

impl Datagrams {
    pub(super) fn percent(&self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        100.0 * self.lost as f64 / self.total as f64
    }
}

/// An amount of bytes by its best unit, or by a given one.
pub(super) fn bytes(bytes: u64, layout: Layout, format: Option<char>) -> String {
    let format = format.map_or('A', |format| format.to_ascii_uppercase());
    layout_amount(bytes as f64, layout, format)
}

fn layout_amount(bytes: f64, layout: Layout, format: char) -> String {
    match layout {
        Layout::V2_0 => amount(bytes, format),
        Layout::V2_1 | Layout::V2_2 => fine_amount(bytes, format),
    }
}

impl Figures {
    /// The sum of streams: from the first of their times to the last.
    pub(super) fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let and = |mut sum: Self, one: Self| {
            sum.from_s = sum.from_s.min(one.from_s);
            sum.to_s = sum.to_s.max(one.to_s);
            sum.bytes += one.bytes;
            if let (Some(sum), Some(one)) = (&mut sum.datagrams, one.datagrams) {
                sum.lost += one.lost;
                sum.total += one.total;
                sum.out_of_order += one.out_of_order;
            }
            sum
        };
        all.copied().reduce(and).unwrap_or_default()
    }

    /// Bits a second.
    pub(super) fn rate_bps(&self) -> f64 {
        let time = self.to_s - self.from_s;
        if time <= 0.0 {
            return 0.0;
        }
        self.bytes as f64 * 8.0 / time
    }

    pub(super) fn line(&self, tag: &str, layout: Layout, format: Option<char>) -> String {
        let time = self.time(layout);
        let moved = bytes(self.bytes, layout, format);
        let rate = layout_amount(self.rate_bps() / 8.0, layout, format.unwrap_or('a'));
        let mut line = format!("{tag} {time} sec  {moved}s  {rate}s/sec");
        if let Some(datagrams) = self.datagrams {
            line.push_str(&datagrams.words(tag == "[SUM]", layout));
        }
        line
    }

    fn time(&self, layout: Layout) -> String {
        let (from, to) = (self.from_s, self.to_s);
        match layout {
            Layout::V2_0 => format!("{from:4.1}-{to:4.1}"),
            Layout::V2_1 => format!("{from:.4}-{to:.4}"),
            Layout::V2_2 => format!("{from:.2}-{to:.2}"),
        }
    }

    /// The line below it, of a receiver that got datagrams late.
    pub(super) fn late(&self, tag: &str, layout: Layout) -> Option<String> {
        let late = self.datagrams?.out_of_order;
        let time = self.time(layout);
        (late > 0).then(|| format!("{tag} {time} sec  {late} datagrams received out-of-order"))
    }
}

impl Datagrams {
    /// Behind the rate. The sum has no jitter, and in 2.0 none of this.
    fn words(&self, is_sum: bool, layout: Layout) -> String {
        let (jitter, lost, total) = (self.jitter_ms, self.lost, self.total);
        let percent = two_digits(self.percent());
        match (layout, is_sum) {
            (Layout::V2_0, true) => String::new(),
            (Layout::V2_0, false) => format!("  {jitter:6.3} ms {lost:4}/{total:5} ({percent}%)"),
            (_, true) => format!("   {lost}/{total} ({percent}%)"),
            (_, false) => format!("  {jitter:6.3} ms {lost}/{total} ({percent}%)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_real_programs() {
        let tcp = |to_s, bytes| Figures {
            to_s,
            bytes,
            ..Figures::default()
        };
        let udp = |to_s, bytes, jitter_ms, lost, total| Figures {
            datagrams: Some(Datagrams {
                jitter_ms,
                lost,
                total,
                out_of_order: 0,
            }),
            ..tcp(to_s, bytes)
        };
        let cases = [
            (
                Layout::V2_1,
                tcp(0.0172, 1_048_576),
                "[  1] 0.0000-0.0172 sec  1.00 MBytes   488 Mbits/sec",
            ),
            (
                Layout::V2_1,
                udp(1.0207, 136_710, 0.006, 0, 93),
                "[  1] 0.0000-1.0207 sec   134 KBytes  1.07 Mbits/sec   0.006 ms 0/93 (0%)",
            ),
            (
                Layout::V2_1,
                udp(1.0094, 135_240, 0.018, 1, 93),
                "[  1] 0.0000-1.0094 sec   132 KBytes  1.07 Mbits/sec   0.018 ms 1/93 (1.1%)",
            ),
            (
                Layout::V2_2,
                tcp(0.4, 0),
                "[  1] 0.00-0.40 sec  0.000 Bytes  0.000 bits/sec",
            ),
            (
                Layout::V2_0,
                udp(1.0, 124_950, 0.196, 0, 85),
                "[  1]  0.0- 1.0 sec   122 KBytes  1000 Kbits/sec   0.196 ms    0/   85 (0%)",
            ),
        ];
        for (layout, figures, line) in cases {
            assert_eq!(figures.line("[  1]", layout, None), line);
        }
    }

    #[test]
    fn a_sum_has_all_bytes_over_all_the_time() {
        let one = |from_s, to_s, bytes| Figures {
            from_s,
            to_s,
            bytes,
            ..Figures::default()
        };
        let sum = Figures::sum([one(0.0, 1.0, 10), one(0.5, 2.0, 20)].iter());
        assert_eq!(sum, one(0.0, 2.0, 30));
        assert!((sum.rate_bps() - 120.0).abs() < 1e-9);
        assert!(Figures::sum([].iter()).rate_bps().abs() < 1e-9);
    }
}
