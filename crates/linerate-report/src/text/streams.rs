//! Each stream on a line.

use linerate_model::units::Bytes;

use super::arrow;
use super::layout::Page;
use crate::view::{RunView, StreamView};
use crate::words;

pub(super) fn write(page: &mut Page, view: &RunView) {
    page.line("Streams   client                   server                        bytes  retransmits  RTT mean");
    for stream in &view.streams {
        let bytes = words::known(stream.bytes, words::count);
        page.line(&format!(
            "  {:>4}  {} {:<23}  {:<23} {bytes:>15}  {:>11}  {:>8}",
            stream.id,
            arrow(stream.flow),
            stream.client_address,
            stream.server_address,
            stream
                .retransmits
                .map_or_else(|| "-".to_owned(), words::count),
            stream.rtt_us.map_or_else(|| "-".to_owned(), words::micros),
        ));
        ends(page, stream);
    }
}

/// Buffers and what went wrong.
fn ends(page: &mut Page, stream: &StreamView) {
    let ends = [("sender", &stream.sender), ("receiver", &stream.receiver)];
    for (name, end) in ends {
        if let Some(error) = end.as_ref().and_then(|end| end.error.as_ref()) {
            page.wrapped("        ", &format!("{name}: {error}"));
        }
        let factor = end.as_ref().and_then(|end| end.thinned);
        if let Some(factor) = factor.filter(|factor| *factor > 1) {
            let text = format!("{name}: memory limit reached, only 1 in {factor} samples was kept");
            page.wrapped("        ", &text);
        }
    }
    let send = stream.sender.as_ref().and_then(|end| end.send_buffer_bytes);
    let receiver = stream.receiver.as_ref();
    let receive = receiver.and_then(|end| end.receive_buffer_bytes);
    let buffers: Vec<String> = [(send, "send buffer"), (receive, "receive buffer")]
        .into_iter()
        .filter_map(|(bytes, name)| Some(format!("{name} {}", Bytes(bytes?))))
        .collect();
    let mut parts: Vec<String> = stream.congestion.iter().map(ToString::to_string).collect();
    parts.extend(stream.mss_bytes.map(|mss| format!("MSS {mss} B")));
    parts.extend(buffers);
    if !parts.is_empty() {
        page.wrapped("        ", &parts.join(", "));
    }
}
