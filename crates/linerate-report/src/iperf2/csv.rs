//! Lines of `-y C`: time, addresses and ports, stream, interval, bytes, bits a second; of a receiver over UDP then jitter (ms),
//! lost and all datagrams, percent, and those out of order, which since 2.1 stand in a sender's lines as well.

use std::fmt::Write as _;

use linerate_model::progress::StreamOpened;

use super::lines::{Datagrams, Figures};
use super::{Layout, place};

/// How lines are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Csv<'a> {
    /// `YYYYMMDDhhmmss`.
    pub(super) now: &'a str,
    pub(super) layout: Layout,
    /// Whether this end's address stands first: a client's, and before 2.1 a server's too.
    pub(super) own_first: bool,
}

impl Csv<'_> {
    /// A stream's line.
    pub(super) fn line(self, stream: &StreamOpened, number: usize, figures: &Figures) -> String {
        let ends = self.ends(stream);
        let [first, second] = ends.map(|(address, port)| format!("{address},{port}"));
        let mut line = self.figures(&format!("{first},{second},{number}"), figures);
        let sent = figures.sent.filter(|_| self.layout != Layout::V2_0);
        let sent = sent.map(|total| Datagrams {
            total,
            ..Datagrams::default()
        });
        if let Some(datagrams) = figures.datagrams.or(sent) {
            // A String takes what is written.
            let _ = write!(
                line,
                ",{:.3},{},{},{:.3},{}",
                datagrams.jitter_ms,
                datagrams.lost,
                datagrams.total,
                datagrams.percent(),
                datagrams.out_of_order
            );
        }
        line
    }

    /// The line of all streams, which 2.1 does not write. A server of 2.0 has no port in it.
    pub(super) fn sum(self, stream: &StreamOpened, all: &Figures, is_client: bool) -> String {
        let [(first, _), (second, port)] = self.ends(stream);
        let has_port = is_client || self.layout == Layout::V2_2;
        let port = if has_port { port } else { "0" };
        self.figures(&format!("{first},0,{second},{port},-1"), all)
    }

    fn ends(self, stream: &StreamOpened) -> [(&str, &str); 2] {
        let ends = [place(&stream.local), place(&stream.remote)];
        if self.own_first {
            ends
        } else {
            [ends[1], ends[0]]
        }
    }

    fn figures(self, who: &str, figures: &Figures) -> String {
        format!(
            "{},{who},{:.1}-{:.1},{},{:.0}",
            self.now,
            figures.from_s,
            figures.to_s,
            figures.bytes,
            figures.rate_bps()
        )
    }
}
