//! What a host carries by itself: as text for people, and as one JSON document.

use linerate_model::host_limit::{
    Carried, CpuTime, DatagramCounts, HostLimit, Latency, LocalPath, PathLimit, Sending,
};

use crate::text::layout::Page;
use crate::words::{self, percent, plain};

/// Width of a run's name in the tables.
const NAME: usize = 34;
/// Others that had more of the CPUs than this share make the figures too low.
const DISTURBED: f64 = 0.05;

/// The limits for people, at most 100 columns wide.
pub fn report(limit: &HostLimit) -> String {
    let mut page = Page::default();
    page.entry("Self", &head(limit));
    for path in &limit.paths {
        page.gap();
        table(&mut page, path);
    }
    page.gap();
    for timer in &limit.timers {
        let text = format!(
            "a wait of {} ends late by {}",
            timer.asked_ns,
            latency(&timer.late)
        );
        page.entry("Timer", &text);
    }
    if let Some(wake_up) = &limit.wake_up {
        let text = format!("another thread continues after {}", latency(wake_up));
        page.entry("Wake-up", &text);
    }
    if let Some(time) = limit.cpu_time {
        page.entry("CPUs", &cpu_time(time));
    }
    for text in &limit.left_out {
        page.entry("Left out", &plain(text));
    }
    page.finish()
}

fn head(limit: &HostLimit) -> String {
    let cpus = words::with(limit.cpus, |cpus| format!(", {cpus} CPUs"));
    let kernel = words::with(limit.kernel.as_ref(), |kernel| {
        format!(", Linux {}", plain(kernel))
    });
    format!(
        "local throughput limit (client and server on this host){cpus}{kernel}; {} per run. An upper bound for tests from or to this host, not the rate of an interface: both ends share the CPUs here, and a real interface costs more per packet",
        limit.run_ns
    )
}

fn table(page: &mut Page, path: &PathLimit) {
    let mtu = words::with(path.mtu_bytes, |mtu| format!(", MTU {mtu}"));
    let name = match path.path {
        LocalPath::Loopback => "Loopback",
        LocalPath::Veth => "veth pair",
    };
    page.line(&format!(
        "{:<NAME$}{:>15}{:>18}{:>18}",
        format!("{name}{mtu}"),
        "received",
        "sender, s/GB",
        "receiver, s/GB"
    ));
    for run in &path.runs {
        line(page, run);
    }
}

fn line(page: &mut Page, run: &Carried) {
    let name = plain(&run.traffic);
    if let Some(error) = &run.error {
        page.wrapped(
            &format!("{name:<NAME$}  "),
            &format!("failed: {}", plain(error)),
        );
        return;
    }
    let rate = words::known(run.goodput_bps, words::rate);
    let cost = |seconds| words::known(seconds, |cost: f64| format!("{cost:.3}"));
    page.line(&format!(
        "{name:<NAME$}{rate:>15}{:>18}{:>18}",
        cost(run.sender_seconds_per_gigabyte),
        cost(run.receiver_seconds_per_gigabyte)
    ));
    if let Some(text) = remark(run) {
        page.wrapped("  ", &text);
    }
}

/// What the figures alone do not say.
fn remark(run: &Carried) -> Option<String> {
    let mut parts = Vec::new();
    match run.sending {
        Some(Sending::Spliced) => {
            parts.push("sent by reference, because copying was the limit".to_owned());
        }
        Some(Sending::ZerocopyCopied) => {
            parts.push("MSG_ZEROCOPY had no effect here: the kernel copied".to_owned());
        }
        Some(Sending::Copied | Sending::Zerocopy) | None => {}
    }
    if let Some(counts) = run.datagrams.filter(|counts| counts.lost > 0) {
        if let Some(sent) = run.sent_bps {
            parts.push(format!("sent at {}", words::rate(sent)));
        }
        parts.push(losses(counts));
    }
    if let Some(time) = run.cpu_time.filter(|time| time.stolen > DISTURBED) {
        parts.push(format!(
            "the hypervisor took {} of the CPUs during the run: too low",
            percent(time.stolen)
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn losses(counts: DatagramCounts) -> String {
    let share = counts.lost as f64 / counts.sent.max(1) as f64;
    let at_socket = words::with(counts.socket_dropped, |dropped| {
        format!(
            ", {} of them at the receiver's socket",
            words::count(dropped)
        )
    });
    format!(
        "{} of {} datagrams were lost ({}){at_socket}",
        words::count(counts.lost),
        words::count(counts.sent),
        percent(share)
    )
}

fn latency(latency: &Latency) -> String {
    format!(
        "{} (median), {} (99 %), {} at most, {} times",
        latency.median_ns,
        latency.p99_ns,
        latency.max_ns,
        words::count(latency.count as u64)
    )
}

fn cpu_time(time: CpuTime) -> String {
    let verdict = words::when(time.stolen > DISTURBED, ": the figures are too low");
    format!(
        "{} of their time went to the runs' two processes, {} to interrupts and other programs, {} was taken by the hypervisor{verdict}",
        percent(time.own),
        percent(time.others),
        percent(time.stolen)
    )
}

#[cfg(test)]
mod tests {
    use linerate_model::host_limit::{SCHEMA_VERSION, TimerLateness};
    use linerate_model::units::Nanos;

    use super::*;

    fn carried(traffic: &str, goodput: Option<u64>) -> Carried {
        Carried {
            traffic: traffic.to_owned(),
            options: String::new(),
            error: goodput.is_none().then(|| "no route\x1b".to_owned()),
            goodput_bps: goodput,
            sent_bps: None,
            datagrams: None,
            sender_seconds_per_gigabyte: Some(0.0512),
            receiver_seconds_per_gigabyte: None,
            sending: None,
            cpu_time: None,
        }
    }

    fn limit(stolen: f64) -> HostLimit {
        let latency = Latency::of(vec![Nanos(4_000), Nanos(5_000), Nanos(90_000)]).unwrap();
        let udp = Carried {
            sent_bps: Some(80_000_000_000),
            datagrams: Some(DatagramCounts {
                sent: 13_000,
                lost: 3_250,
                socket_dropped: Some(3_000),
            }),
            ..carried("UDP", Some(60_000_000_000))
        };
        let spliced = Carried {
            sending: Some(Sending::Spliced),
            ..carried("TCP, 1 stream", Some(106_000_000_000))
        };
        HostLimit {
            schema_version: SCHEMA_VERSION,
            kernel: Some("6.18".to_owned()),
            cpus: Some(2),
            run_ns: Nanos::from_millis(2000),
            paths: vec![PathLimit {
                path: LocalPath::Loopback,
                mtu_bytes: Some(65_536),
                runs: vec![spliced, udp, carried("TCP, -Z", None)],
            }],
            timers: vec![TimerLateness {
                asked_ns: Nanos(100_000),
                late: latency,
            }],
            wake_up: Some(latency),
            left_out: vec!["veth: forbidden".to_owned()],
            cpu_time: CpuTime::of(900, 0, 1000, 800_000_000).map(|time| CpuTime { stolen, ..time }),
        }
    }

    #[test]
    fn the_text_says_what_it_is_and_what_is_missing() {
        let text = report(&limit(0.0));
        for part in [
            "An upper bound",
            "2 CPUs",
            "Loopback, MTU 65536",
            "106 Gbit/s",
            "by reference",
            "sent at 80.0 Gbit/s; 3,250 of 13,000 datagrams were lost (25 %), 3,000 of them at the receiver's socket",
            r"failed: no route\u{1b}",
            "a wait of 100 µs ends late by 5.00 µs (median), 90.0 µs (99 %)",
            "80 % of their time went to the runs' two processes, 10 % to interrupts",
            "veth: forbidden",
        ] {
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(part), "no '{part}' in:\n{text}");
        }
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
        assert!(!text.contains("too low"), "{text}");
        assert!(report(&limit(0.2)).contains("too low"));
    }

    #[test]
    fn two_rates_that_differ_are_no_loss() {
        let whole = DatagramCounts {
            sent: 13_000,
            lost: 0,
            socket_dropped: Some(0),
        };
        for datagrams in [None, Some(whole)] {
            let run = Carried {
                sent_bps: Some(80_000_000_000),
                datagrams,
                ..carried("UDP", Some(60_000_000_000))
            };
            assert_eq!(remark(&run), None);
        }
        let unknown = DatagramCounts {
            lost: 1,
            socket_dropped: None,
            ..whole
        };
        assert_eq!(
            losses(unknown),
            "1 of 13,000 datagrams were lost (0.0077 %)"
        );
    }

    #[test]
    fn the_document_names_its_kind_and_is_read_again() {
        let document = crate::json::of_kind("host_limit", &limit(0.0));
        let value: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!(value["kind"], "host_limit");
        assert_eq!(value["paths"][0]["runs"][0]["sending"], "spliced");
        let read: HostLimit = serde_json::from_value(value).unwrap();
        assert_eq!(read.paths, limit(0.0).paths);
    }
}
