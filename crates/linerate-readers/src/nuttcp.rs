//! nuttcp's text: a row for each interval (`-i`), then one for the whole test, which has the CPU use of both ends.
//!
//! ```text
//!    59.5625 MB /   1.00 sec =  499.6225 Mbps     0 retrans
//!   178.8125 MB /   3.00 sec =  500.5970 Mbps 99 %TX 3 %RX 0 retrans 0.07 msRTT
//! ```
//!
//! MB are of 2^20 bytes, Mbps of 10^6 bit/s (nuttcp 6.1.2: the amount over the rate is the time).

use linerate_model::plan::Protocol;
use linerate_model::transcript::{
    Asked, Datagrams, Ending, Part, Printed, Row, Side, Span, Stream, TestOutput, Tool,
};

use crate::Input;
use crate::iperf;
use crate::number::printed;

const MEBIBYTE: f64 = 1_048_576.0;

/// The test that is being read.
#[derive(Default)]
pub(crate) struct Tests {
    open: bool,
}

impl Tests {
    /// A command was typed: what follows is another test.
    pub(crate) fn end(&mut self) {
        self.open = false;
    }

    pub(crate) fn take(&mut self, input: &Input<'_>, parts: &mut Vec<Part>) -> bool {
        let words: Vec<&str> = input.text.split_whitespace().collect();
        let Some(row) = row(input.number, &words) else {
            return false;
        };
        let ours = matches!(parts.last(), Some(Part::Test(test)) if test.tool == Tool::Nuttcp);
        if !(self.open && ours) {
            let mut test = iperf::empty(input.number, Asked::default());
            test.tool = Tool::Nuttcp;
            test.side = Some(Side::Client);
            parts.push(Part::Test(Box::new(test)));
        }
        if let Some(Part::Test(test)) = parts.last_mut() {
            self.open = row.span == Span::Interval;
            add(test, row);
        }
        true
    }
}

/// Intervals do not say when they began: each begins where the one before it ended.
fn add(test: &mut TestOutput, mut row: Row) {
    if let (Span::Interval, Some(last)) = (row.span, test.rows.last()) {
        row.start_s = last.end_s;
        row.end_s = Printed {
            value: last.end_s.value + row.end_s.value,
            half: last.end_s.half + row.end_s.half,
        };
    }
    test.lines[1] = row.line;
    test.protocol = Some(match row.datagrams {
        Some(_) => Protocol::Udp,
        None => Protocol::Tcp,
    });
    if row.span == Span::Total {
        test.ending = Ending::Whole;
    }
    test.rows.push(row);
}

fn row(line: usize, words: &[&str]) -> Option<Row> {
    let [
        amount,
        "MB",
        "/",
        seconds,
        "sec",
        "=",
        rate,
        "Mbps",
        rest @ ..,
    ] = words
    else {
        return None;
    };
    let before = |unit: &str| {
        let place = rest.iter().position(|word| *word == unit)?;
        rest.get(place.checked_sub(1)?).copied()
    };
    let either = |unit: &str| before(unit).or_else(|| before(&format!("~{unit}")));
    let lost = || {
        let place = rest.iter().position(|word| *word == "/")?;
        rest.get(place.checked_sub(1)?)?.parse().ok()
    };
    let datagrams = either("drop/pkt").and_then(|total| {
        Some(Datagrams {
            total: total.parse().ok()?,
            lost: lost(),
            lost_percent: either("%loss").and_then(printed),
            jitter_ms: None,
        })
    });
    let whole = before("%TX").is_some();
    let positive = |text: &str| printed(text).filter(|number| number.value >= 0.0);
    Some(Row {
        line,
        stream: Stream::Sum,
        span: if whole { Span::Total } else { Span::Interval },
        start_s: Printed::exact(0.0),
        end_s: positive(seconds)?,
        bytes: positive(amount)?.times(MEBIBYTE),
        bps: positive(rate)?.times(1e6),
        end: None,
        retransmits: before("retrans").and_then(|count| count.parse().ok()),
        window_bytes: None,
        receive_window_bytes: None,
        rtt_us: before("msRTT").and_then(printed).map(|ms| ms.times(1e3)),
        datagrams,
        way: None,
        bounces: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(text: &str) -> Vec<TestOutput> {
        let transcript = crate::read("pasted", text.as_bytes()).unwrap();
        assert_eq!(transcript.not_understood, []);
        let parts = transcript.parts.into_iter();
        parts
            .map(|part| match part {
                Part::Test(test) => *test,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn intervals_and_the_whole_test_are_told_apart() {
        let text = "\
$ nuttcp -i1 -T3 -R500m 127.0.0.1
   59.8125 MB /   1.00 sec =  501.7175 Mbps     0 retrans
   59.5625 MB /   1.00 sec =  499.6225 Mbps     2 retrans

  178.8125 MB /   3.00 sec =  500.5970 Mbps 99 %TX 3 %RX 2 retrans 0.07 msRTT
";
        let [test] = tests(text).try_into().unwrap();
        assert_eq!((test.tool, test.ending), (Tool::Nuttcp, Ending::Whole));
        assert_eq!(test.protocol, Some(Protocol::Tcp));
        let spans: Vec<(Span, f64, f64)> = test
            .rows
            .iter()
            .map(|row| (row.span, row.start_s.value, row.end_s.value))
            .collect();
        assert_eq!(
            spans,
            [
                (Span::Interval, 0.0, 1.0),
                (Span::Interval, 1.0, 2.0),
                (Span::Total, 0.0, 3.0)
            ]
        );
        let total = &test.rows[2];
        assert!((total.bytes.value - 187_498_496.0).abs() < 1.0);
        // The amount over the time is the rate, within what the digits say of the time.
        assert!((total.bytes.value * 8.0 / 3.0 / total.bps.value - 1.0).abs() < 0.005);
        assert_eq!(total.retransmits, Some(2));
        assert!((total.rtt_us.unwrap().value - 70.0).abs() < 1e-9);
    }

    #[test]
    fn datagrams_and_two_tests_in_one_log() {
        let text = "\
    5.9609 MB /   1.00 sec =   50.0005 Mbps     3 /   763 ~drop/pkt  0.39 ~%loss
   17.8828 MB /   3.00 sec =   50.0047 Mbps 98 %TX 2 %RX 7 / 2289 drop/pkt 0.31 %loss
   71.5625 MB /   2.00 sec =  300.0164 Mbps 98 %TX 2 %RX 0.09 msRTT
";
        let [udp, tcp] = tests(text).try_into().unwrap();
        assert_eq!(udp.protocol, Some(Protocol::Udp));
        let counts = udp.rows[1].datagrams.unwrap();
        assert_eq!((counts.total, counts.lost), (2289, Some(7)));
        assert_eq!(counts.lost_percent, printed("0.31"));
        assert_eq!((tcp.protocol, tcp.rows.len()), (Some(Protocol::Tcp), 1));
        assert_eq!(tcp.rows[0].retransmits, None);
    }

    #[test]
    fn a_row_with_impossible_figures_is_no_row() {
        for text in [
            "-1.0 MB / 1.00 sec = 5.0 Mbps 0 retrans",
            "1.0 MB / x sec = 5.0 Mbps 0 retrans",
            "1.0 MB / 1.00 sec = 5.0",
        ] {
            assert!(crate::read("pasted", text.as_bytes()).is_err(), "{text}");
        }
    }
}
