//! Who measured what, between which hosts, with which settings.

use linerate_model::plan::{Direction, End, Pace, Plan, Protocol};
use linerate_model::record::{HostFacts, InterfaceFacts, Outcome, Role};
use linerate_model::units::{Bytes, Nanos};

use super::layout::{self, Page};
use crate::view::{DirectionView, EndView, RunView};
use crate::words;

pub(super) fn write(page: &mut Page, view: &RunView) {
    page.wrapped("", &format!("{}{}", title(view), test(&view.plan)));
    for role in [Role::Client, Role::Server] {
        page.wrapped(&format!("  {}  ", layout::role(role)), &host(view, role));
    }
    if let Some(direction) = view.directions.first() {
        let line = transport(view, direction);
        if !line.is_empty() {
            page.wrapped("  ", &line);
        }
    }
    cut_off_line(page, view);
}

/// The test and its hosts in one line.
pub(super) fn headline(page: &mut Page, view: &RunView) {
    let between = format!("{} → {}", called(&view.client), called(&view.server));
    page.wrapped(
        "",
        &format!("{}{}; {between}", title(view), test(&view.plan)),
    );
    cut_off_line(page, view);
}

/// An end's address, after what the user calls its host.
fn called(end: &EndView) -> String {
    match &end.name {
        Some(name) => format!("{name} ({})", end.address),
        None => end.address.to_string(),
    }
}

fn title(view: &RunView) -> String {
    words::with(view.plan.title.as_deref(), |title| format!("{title}: "))
}

fn cut_off_line(page: &mut Page, view: &RunView) {
    if !view.client.known && !view.server.known {
        // The verdict says it.
        return;
    }
    if let Some((label, how)) = cut_off(view) {
        page.entry(label, &format!("{how}; what was measured until then:"));
    }
}

/// How a run ended that did not end as planned: a label, and by whom or why, after how long.
pub(crate) fn cut_off(view: &RunView) -> Option<(&'static str, String)> {
    let span = view.summary.figures.span_ns;
    let span = words::with(span, |span| format!(" after {}", words::seconds(span)));
    match &view.outcome {
        Outcome::Completed => None,
        Outcome::Interrupted => Some(("Stopped", format!("by the user of this end{span}"))),
        Outcome::PeerInterrupted => Some(("Stopped", format!("by the peer's user{span}"))),
        Outcome::Failed { error } => Some(("Failed", format!("{error}{span}"))),
    }
}

/// `TCP, client to server, 4 streams, 10 s`.
pub(crate) fn test(plan: &Plan) -> String {
    let block = words::count(plan.block_bytes.count());
    let direction = match plan.direction {
        Direction::Send => "client to server",
        Direction::Receive => "server to client",
        Direction::Both => "both directions at once",
    };
    let mut text = vec![match (plan.protocol, plan.mptcp) {
        (Protocol::Tcp, true) => "Multipath TCP".to_owned(),
        (Protocol::Tcp, false) => "TCP".to_owned(),
        (Protocol::Udp, _) => format!("UDP, datagrams of {block} B"),
        (Protocol::Sctp, _) => format!("SCTP, messages of {block} B"),
    }];
    text.push(direction.to_owned());
    let each = words::when(plan.direction == Direction::Both, " each way");
    text.push(format!(
        "{} stream{}{each}",
        plan.streams,
        words::when(plan.streams != 1, "s")
    ));
    text.push(match plan.end {
        End::TimeNs(span) if plan.precision.is_some() => format!("at most {}", duration(span)),
        End::TimeNs(span) => duration(span),
        End::Bytes(bytes) => format!("{} bytes", words::count(bytes.count())),
        End::Blocks(blocks) => format!("{} blocks of {}", words::count(blocks), plan.block_bytes),
    });
    if plan.omit_ns.0 > 0 {
        text.push(format!("the first {} omitted", duration(plan.omit_ns)));
    }
    if let Some(rate) = plan.rate_bps {
        let default = words::when(plan.rate_is_default, ", the default");
        text.push(format!(
            "{rate} requested{default}{}",
            words::when(plan.streams > 1, " (each stream)")
        ));
    }
    if let Some(rate) = plan.kernel_pacing_bps {
        text.push(format!("paced by the kernel to {rate}"));
    }
    if plan.pace == Pace::Spin {
        text.push("a spinning sender requested".to_owned());
    }
    text.join(", ")
}

fn duration(span: Nanos) -> String {
    format!("{} s", span.as_secs_f64())
}

pub(crate) fn host(view: &RunView, role: Role) -> String {
    let end = view.end(role);
    let own = end.host.hostname.as_deref();
    let name = match end.name.as_deref() {
        // A name such as ann@node1, an address, one of several hosts of a machine.
        Some(name) if own != Some(name) => {
            format!("{name}{} at ", words::with(own, |own| format!(" ({own})")))
        }
        _ => words::with(own, |name| format!("{name} at ")),
    };
    let mut text = vec![format!("{name}{}", end.address), end.software.to_string()];
    text.extend(machine(&end.host));
    text.extend(end.interface.as_ref().map(interface));
    let fingerprint = end.host.fingerprint.as_ref();
    text.extend(fingerprint.map(|one| format!("fingerprint {}", one.hash)));
    if !end.known && view.end(other(role)).known {
        text.push("reports nothing about its host, so it has no fingerprint".to_owned());
    }
    text.join(", ")
}

/// `Linux 6.18.5 x86_64`, `8 CPUs`, as far as they are known.
pub(crate) fn machine(host: &HostFacts) -> impl Iterator<Item = String> {
    let machine = words::with(host.architecture.as_ref(), |name| format!(" {name}"));
    let kernel = host.kernel.as_ref();
    let kernel = kernel.map(|kernel| format!("Linux {kernel}{machine}"));
    let plural = |cpus| words::when(cpus != 1, "s");
    let cpus = host.cpus.map(|cpus| format!("{cpus} CPU{}", plural(cpus)));
    kernel.into_iter().chain(cpus)
}

/// `eth0 MTU 1500`.
pub(crate) fn interface(of: &InterfaceFacts) -> String {
    let mtu = words::with(of.mtu_bytes, |mtu| format!(" MTU {mtu}"));
    format!("{}{mtu}", of.name)
}

fn other(role: Role) -> Role {
    match role {
        Role::Client => Role::Server,
        Role::Server => Role::Client,
    }
}

/// Which bound of the kernel's gave less than was asked for; it reports twice what it grants.
fn clipped(direction: &DirectionView, window: Bytes) -> &'static str {
    let less = |granted: Option<u64>| granted.is_some_and(|bytes| bytes < 2 * window.count());
    match (
        less(direction.send_buffer_bytes),
        less(direction.receive_buffer_bytes),
    ) {
        (true, true) => "; net.core.wmem_max and rmem_max allow no more",
        (true, false) => "; net.core.wmem_max allows no more",
        (false, true) => "; net.core.rmem_max allows no more",
        (false, false) => "",
    }
}

/// `cubic, MSS 1448 B, path MTU 1500 B, send buffer 2.50 MiB, receive buffer 6.00 MiB (autotuned)`.
pub(crate) fn transport(view: &RunView, direction: &DirectionView) -> String {
    let mut text: Vec<String> = Vec::new();
    if view.plan.protocol == Protocol::Tcp {
        let congestion = &direction.congestion;
        text.extend((!congestion.is_empty()).then(|| congestion.join(" and ")));
        text.extend(direction.mss_bytes.map(|mss| format!("MSS {mss} B")));
    }
    let mtu = direction.path_mtu_bytes;
    text.extend(mtu.map(|mtu| format!("path MTU {mtu} B")));
    let asked = match view.plan.window_bytes {
        Some(window) => format!(
            " ({window} requested with -w{})",
            clipped(direction, window)
        ),
        None if view.plan.protocol == Protocol::Tcp => " (autotuned)".to_owned(),
        None => String::new(),
    };
    let buffers: Vec<String> = [
        ("send", direction.send_buffer_bytes),
        ("receive", direction.receive_buffer_bytes),
    ]
    .into_iter()
    .filter_map(|(name, bytes)| Some(format!("{name} buffer {}", Bytes(bytes?))))
    .collect();
    text.extend((!buffers.is_empty()).then(|| format!("{}{asked}", buffers.join(", "))));
    text.extend(direction.spliced.map(|all| {
        let some = words::when(!all, "some ");
        format!("{some}sent by reference")
    }));
    text.join(", ")
}
