//! What a path is expected to give: as text for people, and as one JSON document.

use linerate_model::expectation::{Bound, Course, Expectation, HostSettings, LossBudget};
use linerate_model::units::{BitRate, Bytes, Nanos};

use crate::text::layout::Page;
use crate::words::{self, plain, whole};

/// Where the first and the second column of the table begin, and their width.
const LABEL: usize = 16;
const COLUMN: usize = 34;
/// What a cell of the table says of a course.
type Cell<'a> = &'a dyn Fn(&Course) -> String;
/// A difference between plateau and average below this share is not worth a word.
const HIDES: f64 = 0.005;

/// The answer for people, at most 100 columns wide.
pub fn report(answer: &Expectation) -> String {
    let mut page = Page::default();
    page.entry("Expect", &asked(answer));
    page.gap();
    let framing = &answer.framing;
    page.entry(
        "Goodput",
        &format!(
            "{} at most: {} of every {} bytes on the wire are payload{}",
            rate(framing.goodput_bps),
            words::count(u64::from(framing.payload_bytes)),
            words::count(u64::from(framing.wire_bytes)),
            if framing.timestamps {
                ", with TCP's timestamps"
            } else {
                ", without TCP's timestamps"
            }
        ),
    );
    page.entry("In flight", &in_flight(answer));
    page.gap();
    table(&mut page, answer);
    page.gap();
    to_tune(&mut page, answer);
    page.entry("Loss", &loss(answer));
    page.entry("Queue", &queue(answer));
    for note in &answer.notes {
        page.entry("Note", &plain(note));
    }
    page.finish()
}

/// `10.0 Gbit/s of Ethernet, RTT 60.0 ms, MTU 1500, IPv4, 1 stream of cubic, 10 s`.
fn asked(answer: &Expectation) -> String {
    let question = &answer.question;
    let mut parts = vec![
        format!("{} of Ethernet", question.rate_bps),
        format!("RTT {}", question.rtt_ns),
        format!("MTU {}", question.mtu_bytes),
        if question.ipv6 { "IPv6" } else { "IPv4" }.to_owned(),
        format!(
            "{} stream{} of {}",
            question.streams,
            words::when(question.streams != 1, "s"),
            plain(&question.congestion)
        ),
        format!("{} s", question.time_ns.as_secs_f64()),
    ];
    let (window, loss) = (question.window_bytes, question.loss);
    parts.extend(window.map(|window| format!("requested buffers of {window}")));
    parts.extend(loss.map(|share| format!("a random loss of {share:.1e}")));
    parts.join(", ")
}

fn in_flight(answer: &Expectation) -> String {
    let each = words::when(answer.question.streams > 1, " of each stream");
    format!(
        "{} of payload{each} fill the path; rate × RTT is {} of the wire",
        Bytes(answer.need.in_flight_bytes),
        Bytes(answer.bdp_bytes)
    )
}

fn table(page: &mut Page, answer: &Expectation) {
    let row = |page: &mut Page, label: &str, first: &str, second: &str| {
        page.line(&format!("{label:<LABEL$}{first:<COLUMN$}{second}"));
    };
    row(page, "", "as this host is configured", "as tuned");
    let both = |of: Cell<'_>| {
        let unknown = || "not known".to_owned();
        (
            answer.configured.as_ref().map_or_else(unknown, of),
            of(&answer.tuned),
        )
    };
    let average = format!("{} s average", answer.question.time_ns.as_secs_f64());
    let rows: [(&str, Cell<'_>); 8] = [
        ("Receive window", &|course| sizes(course.window_bytes)),
        ("Send buffer", &|course| sizes(course.send_bytes)),
        ("Plateau", &|course| rates(course.plateau_bps)),
        ("Limited by", &|course| held_by(course.bound).to_owned()),
        ("Ramp", &ramp),
        ("  it costs", &cost),
        (&average, &|course| rates(course.whole_run_bps)),
        ("  it hides", &hides),
    ];
    for (label, of) in rows {
        let (first, second) = both(of);
        row(page, label, &first, &second);
    }
}

fn held_by(bound: Bound) -> &'static str {
    match bound {
        Bound::Path => "the path",
        Bound::ReceiveWindow => "the receiver's buffer",
        Bound::SendBuffer => "the sender's buffer",
        Bound::Loss => "loss",
    }
}

fn ramp(course: &Course) -> String {
    let Some(ramp) = &course.ramp else {
        return "ends at the first loss".to_owned();
    };
    let [fast, slow] = ramp.ns;
    match (ramp.doublings, fast == slow) {
        (0, _) => "none: the first window is enough".to_owned(),
        (rounds, true) => format!("{}, {rounds} round trips", Nanos(fast)),
        (rounds, false) => format!("{} to {}, {rounds} doublings", Nanos(fast), Nanos(slow)),
    }
}

fn cost(course: &Course) -> String {
    course
        .ramp
        .as_ref()
        .map_or_else(|| "-".to_owned(), |ramp| sizes(ramp.cost_bytes))
}

fn hides(course: &Course) -> String {
    // The best case hides the least.
    let share = |end: usize| 1.0 - course.whole_run_bps[end] / course.plateau_bps[end].max(1.0);
    let (least, most) = (share(1).max(0.0), share(0).max(0.0));
    if most < HIDES {
        return "nothing".to_owned();
    }
    let (least, most) = (
        words::percent(least.min(most)),
        words::percent(least.max(most)),
    );
    if least == most {
        format!("{most} of the plateau")
    } else {
        format!("{least} to {most} of the plateau")
    }
}

/// What to set where the settings are not enough.
fn to_tune(page: &mut Page, answer: &Expectation) {
    let (need, settings) = (&answer.need, &answer.settings);
    if answer.question.window_bytes.is_some() {
        let window = format!(
            "-w {} or more at both ends; the kernel must grant it: net.core.rmem_max and wmem_max",
            Bytes(need.receive_buffer_bytes.max(need.send_buffer_bytes) / 2)
        );
        page.entry("To tune", &window);
        return;
    }
    let (rmem, wmem) = (need.advised_rmem_bytes, need.advised_wmem_bytes);
    let (receive, send) = (need.receive_buffer_bytes, need.send_buffer_bytes);
    let mut label = "To tune";
    for (host, name, now, least, advised) in [
        (
            "receiver",
            "net.ipv4.tcp_rmem",
            settings.tcp_rmem,
            receive,
            rmem,
        ),
        ("sender", "net.ipv4.tcp_wmem", settings.tcp_wmem, send, wmem),
    ] {
        let text = match now {
            Some([_, _, most]) if most >= least => {
                format!("{name} on the {host}: {} are enough", Bytes(most))
            }
            now => {
                let [first, second] = now.map_or(
                    ["4096", "131072"].map(str::to_owned),
                    |[first, second, _]| [first.to_string(), second.to_string()],
                );
                format!(
                    "{name} = {first} {second} {advised} on the {host}: at least {} are needed",
                    Bytes(least)
                )
            }
        };
        page.entry(label, &text);
        label = "";
    }
    page.entry("", rule(settings));
}

/// How much of a receive buffer is window, in words.
fn rule(settings: &HostSettings) -> &'static str {
    match settings.adv_win_scale {
        Some(_) => {
            "(the window is the part of a receive buffer that tcp_adv_win_scale leaves; a send buffer is refilled when a third of it is free)"
        }
        None => {
            "(the window is half to all of a receive buffer, depending on the driver, from Linux 6.6 on; a send buffer is refilled when a third of it is free)"
        }
    }
}

fn loss(answer: &Expectation) -> String {
    let LossBudget {
        bears,
        allows_bps,
        longest_rtt_ns,
        recovery_ns,
    } = &answer.loss;
    let mut parts = vec![match bears {
        Some(share) if *share >= 1.0 => {
            "any loss is tolerable: the rate is less than one segment per RTT".to_owned()
        }
        Some(share) => format!(
            "the path's rate tolerates a random loss of {share:.1e}, 1 packet in {}{}",
            words::count(whole(1.0 / share.max(1e-300))),
            words::when(answer.question.streams > 1, " of each stream")
        ),
        None => "the loss that the plateau tolerates is not known for this congestion control"
            .to_owned(),
    }];
    if let (Some(share), Some(bps)) = (answer.question.loss, allows_bps) {
        let rtt = words::with(*longest_rtt_ns, |rtt| {
            format!(", and the path's rate up to an RTT of {}", Nanos(rtt))
        });
        parts.push(format!(
            "a random loss of {share:.1e} allows {}{rtt}",
            rate(*bps)
        ));
    }
    if let Some(recovery) = recovery_ns {
        parts.push(format!(
            "after one loss at that rate the window takes {} to recover",
            Nanos(*recovery)
        ));
    }
    parts.join("; ")
}

fn queue(answer: &Expectation) -> String {
    match answer.queue_bytes {
        Some(bytes) => format!(
            "a queue of {} keeps the slowest link busy while the window recovers; when full it adds {}",
            Bytes(bytes),
            BitRate(answer.question.rate_bps.0).time_for(Bytes(bytes))
        ),
        None => "the queue that this congestion control needs is not known".to_owned(),
    }
}

fn rate(bps: f64) -> String {
    BitRate(whole(bps)).to_string()
}

/// Least and most; once where they are alike.
fn rates([low, high]: [f64; 2]) -> String {
    if rate(low) == rate(high) {
        return rate(high);
    }
    format!("{} to {}", rate(low), rate(high))
}

fn sizes([low, high]: [u64; 2]) -> String {
    let (low, high) = (Bytes(low).to_string(), Bytes(high).to_string());
    if low == high {
        high
    } else {
        format!("{low} to {high}")
    }
}
