//! One-way delay from a datagram's stamp to the figure, over clocks that are set apart and drift.

use linerate_analysis::delay::{Delays, NotCompared};
use linerate_model::clock::{ClockOffset, ClockPair, Exchange};
use linerate_model::plan::{Direction, End, Plan, Protocol};
use linerate_model::record::{Flow, Role, RunRecord, UdpCounts};
use linerate_model::units::{Nanos, whole};
use linerate_testing::fixture::{self, CLIENT_START_NS, Traffic};
use linerate_wire::transits::TransitCollector;
use linerate_wire::udp::DataHeader;

/// Half a second apart.
const AHEAD_NS: i64 = 500_000_000;
const DRIFT_PPM: f64 = 50.0;
/// Of the path, each way.
const PATH_NS: u64 = 10_000_000;
const EACH_NS: u64 = 500_000;

/// Two clocks: the client's is the true one.
#[derive(Clone, Copy)]
struct Clocks {
    drift_ppm: f64,
}

impl Clocks {
    fn server(self, at: u64) -> u64 {
        let drifted = (at as f64 - CLIENT_START_NS as f64) * self.drift_ppm / 1e6;
        whole(at.saturating_add_signed(AHEAD_NS) as f64 + drifted)
    }

    /// Pings whose answers came a little late.
    fn compared(self, at: u64) -> ClockOffset {
        let exchanges = [400_000, 30_000, 90_000].map(|late| Exchange {
            sent_ns: at,
            peer_received_ns: self.server(at + PATH_NS),
            peer_sent_ns: self.server(at + PATH_NS),
            received_ns: at + 2 * PATH_NS + late,
        });
        ClockOffset::estimate(&exchanges).unwrap()
    }
}

/// What the path took for a datagram: a queue that fills for half a second and empties, and a few that waited longer.
fn took(number: u64) -> u64 {
    let queue = (number % 1000).abs_diff(500) * 10_000;
    let held_up = if number.is_multiple_of(500) {
        7_000_000
    } else {
        0
    };
    PATH_NS + queue + held_up
}

/// A test of so many seconds over these clocks, and the true delays, sorted.
fn tested(clocks: Clocks, seconds: u64, flow: Flow) -> (RunRecord, Vec<u64>) {
    let plan = Plan {
        protocol: Protocol::Udp,
        end: End::TimeNs(Nanos(seconds * 1_000_000_000)),
        direction: match flow {
            Flow::ClientToServer => Direction::Send,
            Flow::ServerToClient => Direction::Receive,
        },
        ..Plan::new("server")
    };
    let mut record = fixture::run(&plan, &Traffic::default());
    let mut collector = TransitCollector::new(plan.ends_at(Nanos::ZERO), 1);
    let mut truth = Vec::new();
    for number in 0..seconds * 1_000_000_000 / EACH_NS {
        let sent = CLIENT_START_NS + number * EACH_NS;
        let arrived = sent + took(number);
        let (sent, arrived) = match flow {
            Flow::ClientToServer => (sent, clocks.server(arrived)),
            Flow::ServerToClient => (clocks.server(sent), arrived),
        };
        let stamp = DataHeader::at(Nanos(sent), number + 1).sent();
        collector.record(stamp, Nanos(arrived), 1);
        truth.push(took(number));
    }
    truth.sort_unstable();
    let transits = collector.finish();
    let end = match flow.receiver() {
        Role::Client => &mut record.client,
        Role::Server => &mut record.server,
    };
    end.as_mut().unwrap().streams[0].udp = Some(UdpCounts {
        received: truth.len() as u64,
        transits: Some(transits),
        ..UdpCounts::default()
    });
    record.clock = Some(ClockPair {
        before: clocks.compared(CLIENT_START_NS - 100_000_000),
        after: Some(clocks.compared(CLIENT_START_NS + seconds * 1_000_000_000 + 300_000_000)),
    });
    (record, truth)
}

fn near(found: u64, truth: u64, within: u64) {
    assert!(found.abs_diff(truth) <= within, "{found} for {truth}");
}

#[test]
fn clocks_half_a_second_apart_that_drift_spoil_neither_delay_nor_variation() {
    let clocks = Clocks {
        drift_ppm: DRIFT_PPM,
    };
    for (seconds, flow) in [
        (3, Flow::ClientToServer),
        (60, Flow::ClientToServer),
        (60, Flow::ServerToClient),
        (600, Flow::ServerToClient),
    ] {
        let (record, truth) = tested(clocks, seconds, flow);
        let delays = Delays::of(&record, flow).unwrap();
        let rank = |permille: usize| truth[truth.len() * permille / 1000 - 1];
        assert_eq!(delays.datagrams, truth.len() as u64);
        assert_eq!(delays.above_least.count(), truth.len() as u64);
        let over_time = delays.over_time.iter().map(|span| span.datagrams);
        assert_eq!(over_time.sum::<u64>(), truth.len() as u64);
        let one_way = delays.one_way.unwrap();
        // Half of a round trip, and what the clocks drift within a slice, of which a longer test has longer ones.
        let blur = one_way.uncertainty_ns - 10_015_000;
        assert!(blur < 1_000_000 * seconds / 600 + 50_000, "{blur}");
        let drift = one_way.drift_ppm.unwrap();
        assert!((drift - DRIFT_PPM).abs() < 1.0, "{drift} in {seconds} s");
        let middle = CLIENT_START_NS + seconds * 500_000_000;
        let apart = clocks.server(middle) - middle;
        near(one_way.offset_ns.unsigned_abs(), apart, 100_000);
        let delay = one_way.delay;
        let mean = truth.iter().sum::<u64>() / truth.len() as u64;
        // Of 0.3 ms.
        near(delay.mean_ns, mean, 60_000);
        near(delay.median_ns, rank(500), 100_000 + blur);
        near(delay.p99_ns, rank(990), 150_000 + blur);
        near(delay.p999_ns, rank(999), 250_000 + blur);
        near(delay.most_ns, *truth.last().unwrap(), 150_000 + blur);
        // The fastest of a slice may be its first, and the slowest its last.
        let variation = delays.variation;
        near(variation.p99_ns, rank(990) - truth[0], 150_000 + 2 * blur);
        near(
            variation.most_ns,
            truth.last().unwrap() - truth[0],
            150_000 + 2 * blur,
        );
    }
}

#[test]
fn without_pings_or_against_them_only_the_variation_is_told() {
    let flow = Flow::ClientToServer;
    let (mut record, truth) = tested(Clocks { drift_ppm: 0.0 }, 10, flow);
    let delays = Delays::of(&record, flow).unwrap();
    assert_eq!(delays.one_way.unwrap().drift_ppm, None);
    // An estimate that makes datagrams arrive before they were sent: by as much as the pings can be wrong, then by more.
    for (wrong, told) in [(15_000_000, true), (21_000_000, false)] {
        let mut clock = record.clock.unwrap();
        clock.before.offset_ns += wrong;
        clock.after.as_mut().unwrap().offset_ns += wrong;
        let mut record = record.clone();
        record.clock = Some(clock);
        let delays = Delays::of(&record, flow).unwrap();
        let Some(one_way) = delays.one_way else {
            assert!(!told);
            assert_eq!(delays.not_compared, Some(NotCompared::Contradiction));
            near(
                delays.variation.most_ns,
                truth.last().unwrap() - truth[0],
                5000,
            );
            continue;
        };
        assert!(told);
        assert_eq!(one_way.delay.least_ns, 0);
        near(one_way.raised_ns, 5_000_000, 100_000);
        assert_eq!(one_way.delay.most_ns, delays.variation.most_ns);
    }
    record.clock = None;
    let delays = Delays::of(&record, flow).unwrap();
    assert_eq!(delays.one_way, None);
    assert_eq!(delays.not_compared, Some(NotCompared::NoPings));
    assert_eq!(delays.datagrams, truth.len() as u64);
    near(
        delays.variation.most_ns,
        truth.last().unwrap() - truth[0],
        5000,
    );
    assert_eq!(Delays::of(&record, flow.reversed()), None);
}
