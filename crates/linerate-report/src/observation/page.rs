//! The report for people: the connections in a table, then those that moved most, one by one.

use linerate_model::column::Column;
use linerate_model::observation::{Connection, Ended, Fate, Observation, Opener, Watch};
use linerate_model::record::Role;
use linerate_model::units::{Bytes, Nanos};

use super::progress::held;
use super::{ConnectionView, Explained, ObservationView};
use crate::text::figures::{again, interval, round_trips, whole_run_rate};
use crate::text::layout::Page;
use crate::text::{book, header};
use crate::view::{DirectionView, Figures, FindingView, MeasuredAt};
use crate::words;

/// Connections that the table lists.
const LISTED: usize = 20;
/// Connections that are told one by one.
const TOLD: usize = 5;
/// What moved before the first sample is worth a word from here on, bytes.
const MISSED: u64 = 65_536;
/// Sampling that costs more than this share of a core is worth a word.
const COSTLY: f64 = 0.05;

pub(super) fn write(view: &ObservationView<'_>) -> String {
    let mut page = Page::default();
    head(&mut page, view);
    page.gap();
    table(&mut page, view);
    let told = view
        .connections
        .iter()
        .filter_map(|one| Some((one.connection, one.explained.as_ref()?)))
        .take(TOLD);
    for (connection, explained) in told {
        page.gap();
        tell(&mut page, view.observation, connection, explained);
    }
    let more = view.explained().saturating_sub(TOLD);
    page.gap();
    if more > 0 {
        let text = format!("{more} more connections are explained in the JSON document (--json)");
        page.entry("Note", &text);
    }
    remarks(&mut page, view.observation);
    page.finish()
}

fn head(page: &mut Page, view: &ObservationView<'_>) {
    let seen = view.observation;
    let span = seen.end_ns.since(seen.start_ns);
    page.wrapped(
        "",
        &format!(
            "Watched {}, {}, every {}{}",
            watched(&seen.watch),
            words::seconds(span.0),
            seen.watch.sample_ns,
            match seen.ended {
                Ended::TimeIsOver => "",
                Ended::Stopped => "; stopped by the user",
                Ended::ProcessEnded => "; until the process ended",
                Ended::Unreadable => "; until the kernel no longer reported its sockets",
            }
        ),
    );
    let host = &seen.host;
    let mut text: Vec<String> = Vec::new();
    text.extend(host.hostname.as_deref().map(str::to_owned));
    text.extend(header::machine(host));
    page.wrapped("  this host  ", &text.join(", "));
    let explained = view.explained();
    page.wrapped(
        "  seen       ",
        &format!(
            "{} connection{}, {explained} of which moved {} or more",
            words::count(seen.connections.len() as u64),
            words::when(seen.connections.len() != 1, "s"),
            Bytes(linerate_model::observation::WORTH_EXPLAINING_BYTES),
        ),
    );
}

fn watched(watch: &Watch) -> String {
    let mut parts: Vec<String> = Vec::new();
    if watch.listening {
        parts.push("that came in to a listening port".to_owned());
    }
    if !watch.ports.is_empty() {
        let ports: Vec<String> = watch.ports.iter().map(u16::to_string).collect();
        parts.push(format!("with port {}", ports.join(" or ")));
    }
    if !watch.peers.is_empty() {
        let peers: Vec<String> = watch.peers.iter().map(ToString::to_string).collect();
        parts.push(format!("to {}", peers.join(" or ")));
    }
    if let Some(pid) = watch.pid {
        parts.push(format!("of process {pid} and its descendants"));
    }
    if parts.is_empty() {
        "all TCP connections".to_owned()
    } else {
        format!("TCP connections {}", parts.join(" "))
    }
}

fn table(page: &mut Page, view: &ObservationView<'_>) {
    if view.connections.is_empty() {
        page.line("No connection was seen.");
        return;
    }
    page.line(&format!(
        "{:>5}  {:<6} {:<21} {:<15} {:>10} {:>10}  verdict",
        "#", "port", "peer", "held by", "acked", "received"
    ));
    for one in view.connections.iter().take(LISTED) {
        let [out, inn] = one.connection.moved();
        let holder = one.connection.process.as_ref();
        page.line(&format!(
            "{:>5}  {:<6} {:<21} {:<15} {:>10} {:>10}  {}",
            one.connection.id,
            one.connection.local.rsplit(':').next().unwrap_or_default(),
            one.connection.remote,
            words::known(holder, held),
            Bytes(out).to_string(),
            Bytes(inn).to_string(),
            verdict_word(one),
        ));
    }
    if view.connections.len() > LISTED {
        let rest = &view.connections[LISTED..];
        let moved = rest.iter().fold(0_u64, |sum, one| {
            let [out, inn] = one.connection.moved();
            sum.saturating_add(out).saturating_add(inn)
        });
        page.line(&format!(
            "       … and {} more, which moved {} together",
            rest.len(),
            Bytes(moved)
        ));
    }
}

fn verdict_word(one: &ConnectionView<'_>) -> String {
    let explained = one.explained.as_ref();
    let first = explained.and_then(|explained| explained.findings.first());
    first.map_or_else(|| "too little moved".to_owned(), |first| first.id.clone())
}

fn tell(page: &mut Page, seen: &Observation, connection: &Connection, explained: &Explained) {
    page.wrapped(
        "",
        &format!(
            "Connection {}: {} ↔ {}{}, opened by {}",
            connection.id,
            connection.local,
            connection.remote,
            words::with(connection.process.as_ref(), |one| format!(
                ", held by {}",
                held(one)
            )),
            match connection.opener {
                Opener::ThisHost => "this host",
                Opener::Peer => "the peer",
            }
        ),
    );
    let settings = settings(seen, connection);
    if !settings.is_empty() {
        page.wrapped("  ", &settings);
    }
    verdicts(page, connection, explained);
    for direction in &explained.directions {
        figures(page, connection, direction, explained.directions.len() > 1);
    }
    missed(page, connection);
    ledger(page, connection, explained);
    let other = seen
        .connections
        .iter()
        .find(|one| one.local == connection.remote && one.remote == connection.local);
    if let Some(Connection { id, .. }) = other {
        let text = format!("on this host too: it is connection {id} of this report");
        page.entry("Other end", &text);
    } else {
        book::unknown(page, &explained.ledger);
    }
}

/// `cubic, MSS 1448 B, path MTU 1500 B, send buffer 2.50 MiB, receive buffer 6.00 MiB, eth0`.
fn settings(seen: &Observation, connection: &Connection) -> String {
    let mut text: Vec<String> = Vec::new();
    text.extend(connection.congestion.as_deref().map(str::to_owned));
    let (mss, mtu) = (connection.tcp.snd_mss_bytes, connection.tcp.pmtu_bytes);
    text.extend(mss.map(|mss| format!("MSS {mss} B")));
    text.extend(mtu.map(|mtu| format!("path MTU {mtu} B")));
    for (name, column) in [
        ("send buffer", Column::send_buffer_bytes),
        ("receive buffer", Column::receive_buffer_bytes),
    ] {
        let last = connection.samples.last(column).map(Bytes);
        text.extend(last.map(|bytes| format!("{name} {bytes}")));
    }
    let interface = seen.interface_of(connection);
    text.extend(interface.as_ref().map(header::interface));
    text.join(", ")
}

fn verdicts(page: &mut Page, connection: &Connection, explained: &Explained) {
    let several = explained.directions.len() > 1;
    for view in FindingView::all(&explained.findings, &explained.directions) {
        let sentence = sentence(connection.role(), &view, several);
        page.entry(view.label(), &format!("{}: {sentence}", view.finding.id));
    }
}

fn sentence(here: Role, view: &FindingView<'_>, several: bool) -> String {
    let finding = view.finding;
    let opening = match finding.flow {
        Some(flow) if several && flow.sender() == here => "Sent: ",
        Some(_) if several => "Received: ",
        _ => "",
    };
    let setting = view.setting(|role| end(here, role));
    let expected = view.expected().filter(|_| setting.is_some());
    let mut parts = vec![format!("{opening}{}", finding.sentence)];
    parts.extend(finding.would_pass.clone());
    parts.extend(setting);
    parts.extend(expected.map(|expected| format!("then expect {expected}")));
    let test = |next| format!("a test of the path, with `linerate serve` there: `{next}`");
    parts.extend(finding.next.as_ref().map(test));
    parts.join("; ")
}

fn end(here: Role, role: Role) -> &'static str {
    if here == role {
        "this host"
    } else {
        "the peer"
    }
}

fn figures(page: &mut Page, connection: &Connection, direction: &DirectionView, several: bool) {
    let sends = direction.flow.sender() == connection.role();
    if several {
        page.line(if sends { "Sent" } else { "Received" });
    }
    let figures = &direction.figures;
    page.entry("Goodput", &goodput(figures));
    if let Some((bytes, span)) = figures.bytes.zip(figures.span_ns) {
        let rate = whole_run_rate(figures);
        let amount = format!("{} ({} bytes)", Bytes(bytes), words::count(bytes));
        let span = words::seconds(span);
        page.entry("Watched", &format!("{rate}{amount} in {span}"));
    }
    if sends {
        let during = figures.retransmits.map_or("", |_| " while watched");
        let again = format!("{}{during}{}", again(figures), round_trips(figures));
        page.entry("Retransmits", &again);
    }
    page.entry("Time", &time(direction));
}

fn goodput(figures: &Figures) -> String {
    let Some(rate) = figures.goodput_bps else {
        return "not known: too few samples".to_owned();
    };
    let place = match figures.measured_at {
        Some(MeasuredAt::SendingKernelAcknowledged) => " acknowledged, by this host's kernel",
        Some(MeasuredAt::ReceivingApplication) => {
            " read by this host's application, as its kernel counts (received less unread)"
        }
        _ => "",
    };
    let unsteady = match (&figures.unsteady_reason, figures.steady) {
        (Some(reason), Some(false)) => format!("; not steady: {reason}"),
        _ => String::new(),
    };
    format!(
        "{}{}{place}{unsteady}",
        words::rate(rate),
        interval(figures)
    )
}

fn time(direction: &DirectionView) -> String {
    match (&direction.time_budget, &direction.time_budget_unknown) {
        (Some(budget), _) => format!(
            "application {}, send buffer {}, receive window {}, network {} {}",
            words::time_share(budget.application),
            words::time_share(budget.send_buffer),
            words::time_share(budget.receive_window),
            words::time_share(budget.network),
            direction.span_words()
        ),
        (None, Some(reason)) => format!("not known: {reason}"),
        (None, None) => "not known".to_owned(),
    }
}

/// What was not seen of the connection's beginning and end.
fn missed(page: &mut Page, connection: &Connection) {
    let first = |column: Column| {
        let values = connection.samples.column(column);
        values
            .and_then(|values| values.first().copied())
            .unwrap_or(0)
    };
    let (out, inn) = (first(Column::bytes_acked), first(Column::bytes_received));
    if connection.began_before && out.saturating_add(inn) >= MISSED {
        page.entry(
            "Beginning",
            &format!(
                "missed: {} had been acknowledged and {} received before the first sample",
                Bytes(out),
                Bytes(inn)
            ),
        );
    }
    let end = match connection.fate {
        Fate::Open => "it still stood when watching ended".to_owned(),
        Fate::ClosedAndTold => "it closed, and the kernel reported its final counters".to_owned(),
        Fate::Closed => {
            "it closed after its last sample: what moved since then is not known".to_owned()
        }
    };
    page.entry("End", &end);
    if connection.thinned > 1 {
        page.entry(
            "Samples",
            &format!(
                "memory limit reached: only 1 in {} was kept",
                connection.thinned
            ),
        );
    }
}

/// The whole connection's account.
fn ledger(page: &mut Page, connection: &Connection, explained: &Explained) {
    let facts = &connection.tcp;
    let in_flight = facts
        .bytes_sent
        .zip(facts.bytes_retrans)
        .zip(facts.bytes_acked)
        .map(|((all, again), acked)| all.saturating_sub(again).saturating_sub(acked));
    page.line("Ledger, bytes of the whole connection, by this host's kernel");
    let rows = [
        ("sent, with retransmits", facts.bytes_sent, true),
        ("  of it retransmitted", facts.bytes_retrans, true),
        ("  acknowledged, with SYN and FIN", facts.bytes_acked, true),
        ("  in flight at the last sample", in_flight, false),
        ("written and not yet sent", facts.notsent_bytes, false),
        ("received, with FIN", facts.bytes_received, true),
        (
            "  unread at the last sample",
            Some(connection.unread_bytes),
            false,
        ),
    ];
    for (name, value, always) in rows {
        if always || value.is_some_and(|value| value > 0) {
            let text = words::known(value, words::count);
            page.line(&format!("  {name:<38}{text:>20}"));
        }
    }
    match explained.ledger.balanced {
        Some(true) => page.line("Balanced: what was acknowledged is what was sent once."),
        Some(false) => {
            page.line("NOT balanced: the bytes acknowledged are not the bytes sent once.");
        }
        None => {}
    }
}

/// What sampling cost and missed.
fn remarks(page: &mut Page, seen: &Observation) {
    let sampling = &seen.sampling;
    let span = seen.end_ns.since(seen.start_ns).0;
    let share = sampling.cpu_ns as f64 / span.max(1) as f64;
    let mut text = vec![format!(
        "{} readings of up to {} connections",
        words::count(sampling.readings),
        words::count(sampling.most_connections)
    )];
    if share >= COSTLY {
        text.push(format!("they cost {} of a core", words::percent(share)));
    }
    if sampling.missed > 0 {
        text.push(format!(
            "{} samples fell out because a reading took too long (longest time between two: {})",
            words::count(sampling.missed),
            Nanos(sampling.longest_gap_ns)
        ));
    }
    for (count, what) in [
        (sampling.not_whole, "were not whole"),
        (
            sampling.not_kept,
            "closed connections that moved least were not kept",
        ),
    ] {
        text.extend((count > 0).then(|| format!("{} {what}", words::count(count))));
    }
    if !sampling.hears_last_words {
        text.push(
            "the kernel's last word on connections that closed was not heard in full".to_owned(),
        );
    }
    page.entry("Sampling", &text.join("; "));
    let nameless = seen
        .connections
        .iter()
        .any(|one| one.process.is_none() && one.inode.is_some());
    if nameless {
        page.entry(
            "Note",
            "the process of a connection is visible for this user's own processes; for others' as root",
        );
    }
    for note in &seen.notes {
        page.entry("Note", &note.text);
    }
}
