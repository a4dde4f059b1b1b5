//! The made-up runs.

use linerate_analysis::evidence::Evidence;
use linerate_model::plan::{DEFAULT_SCTP_BLOCK, DEFAULT_UDP_BLOCK, Direction, Plan, Protocol};
use linerate_model::record::{Note, Outcome, Role, RunRecord};
use linerate_model::units::{BitRate, Bytes, Nanos};
use linerate_report::chart::Charts;
use linerate_report::view::RunView;
use linerate_testing::fixture::{self, Traffic};

pub(crate) fn view(record: &RunRecord) -> RunView {
    let evidence = Evidence::of(record);
    RunView::of(&evidence, &linerate_explain::explain(&evidence))
}

pub(crate) fn charts(view: &RunView, record: &RunRecord) -> Charts {
    Charts::of(view, &Evidence::of(record))
}

pub(crate) fn tcp() -> Plan {
    Plan::new("server")
}

pub(crate) fn udp(rate: u64) -> Plan {
    Plan {
        protocol: Protocol::Udp,
        block_bytes: DEFAULT_UDP_BLOCK,
        rate_bps: Some(BitRate(rate)),
        ..tcp()
    }
}

/// Buffers of 256 KiB, which the kernel doubles.
fn small_window() -> Traffic {
    Traffic {
        receive_buffer_bytes: 524_288,
        send_buffer_bytes: 524_288,
        ..Traffic::window_limited()
    }
}

/// Every run that has an expected report, by the name of its file.
pub(crate) fn all() -> Vec<(&'static str, RunRecord)> {
    let healthy = || fixture::run(&tcp(), &Traffic::default());
    let reverse = Plan {
        direction: Direction::Receive,
        ..tcp()
    };
    let both = Plan {
        direction: Direction::Both,
        streams: 2,
        ..tcp()
    };
    let lossy = Traffic {
        rate_bps: 100e6,
        path_lost: 300,
        socket_dropped: 9000,
        duplicated: 4,
        reordered: 17,
        ..Traffic::default()
    };
    let mut broken = fixture::run(
        &Plan {
            streams: 3,
            ..tcp()
        },
        &Traffic::default(),
    );
    if let Some(end) = broken.server.as_mut() {
        end.streams[1].app_bytes -= 1460;
    }
    let mut cut = healthy();
    cut.outcome = Outcome::Failed {
        error: "read from the server: connection timed out".into(),
    };
    cut.notes.push(Note {
        id: "samples-thinned".into(),
        text: "memory limit reached: only 1 in 4 samples was kept".into(),
    });
    let mut nothing = healthy();
    nothing.client = None;
    nothing.server = None;
    nothing.clock = None;
    nothing.control.peer_software = None;
    nothing.outcome = Outcome::Failed {
        error: "connect to server port 5201: connection refused".into(),
    };
    let window = Plan {
        window_bytes: Some(Bytes(262_144)),
        omit_ns: Nanos::from_millis(1000),
        title: Some("before tuning".into()),
        ..tcp()
    };
    vec![
        ("tcp", healthy()),
        ("tcp_small_window", fixture::run(&window, &small_window())),
        (
            "tcp_bidir",
            fixture::run(
                &both,
                &Traffic {
                    levels: vec![(6.0, 0.5)],
                    ..Traffic::default()
                },
            ),
        ),
        (
            "tcp_to_stock",
            fixture::against_stock(healthy(), Role::Server),
        ),
        (
            "tcp_from_stock",
            fixture::against_stock(fixture::run(&reverse, &Traffic::default()), Role::Server),
        ),
        ("tcp_broken_book", broken),
        ("tcp_cut_off", cut),
        ("tcp_refused", nothing),
        (
            "sctp",
            fixture::run(
                &Plan {
                    protocol: Protocol::Sctp,
                    block_bytes: DEFAULT_SCTP_BLOCK,
                    ..tcp()
                },
                &Traffic::default(),
            ),
        ),
        ("udp", fixture::run(&udp(100_000_000), &lossy)),
        (
            "udp_to_stock",
            fixture::against_stock(fixture::run(&udp(100_000_000), &lossy), Role::Server),
        ),
        (
            "udp_default",
            fixture::run(
                &Plan {
                    rate_is_default: true,
                    ..udp(1_000_000)
                },
                &Traffic {
                    rate_bps: 1e6,
                    ..Traffic::default()
                },
            ),
        ),
    ]
}
