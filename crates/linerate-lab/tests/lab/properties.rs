//! What holds for every path and every load.

use std::num::NonZeroU64;

use linerate_lab::path::{
    Change, Codel, Direction, DirectionSpec, Discipline, Ecn, Fate, Loss, MaxPacket, Packet,
    Policer, Probability, Reorder, Settings, Verdict,
};
use linerate_model::units::{BitRate, Bytes, Nanos};
use proptest::prelude::*;

use crate::course::Course;

fn share() -> impl Strategy<Value = Probability> {
    (0.0..=1.0_f64).prop_map(|share| Probability::new(share).expect("a share"))
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::None),
        share().prop_map(Loss::Independent),
        (1..20_u64).prop_map(|nth| NonZeroU64::new(nth).map_or(Loss::None, Loss::Every)),
        (share(), share(), share(), share()).prop_map(|(p, r, bad, good)| Loss::Gilbert {
            p,
            r,
            bad,
            good
        }),
    ]
}

fn link() -> impl Strategy<Value = Option<linerate_lab::path::Bottleneck>> {
    let link = (
        1000..1_000_000_000_u64,
        0..200_000_u64,
        any::<Option<bool>>(),
        0..100_000_u64,
    );
    proptest::option::of(link.prop_map(|(rate, queue, codel, threshold)| {
        linerate_lab::path::Bottleneck {
            rate: BitRate(rate),
            queue: Bytes(queue),
            discipline: codel.map_or(Discipline::DropTail, |ecn| {
                Discipline::Codel(Codel {
                    ecn,
                    ..Codel::default()
                })
            }),
            ecn_threshold: Some(Bytes(threshold)),
        }
    }))
}

fn settings() -> impl Strategy<Value = Settings> {
    let policer = (1000..1_000_000_000_u64, 0..100_000_u64).prop_map(|(rate, burst)| Policer {
        rate: BitRate(rate),
        burst: Bytes(burst),
    });
    let reorder = (share(), 1..50_u64).prop_map(|(fraction, delay)| Reorder {
        fraction,
        delay: Nanos::from_millis(delay),
    });
    let max_packet =
        (68..2000_u32, any::<bool>()).prop_map(|(bytes, icmp)| MaxPacket { bytes, icmp });
    (
        (0..100_u64, 0..30_u64),
        link(),
        proptest::option::of(policer),
        loss(),
        proptest::option::of(reorder),
        share(),
        proptest::option::of(max_packet),
    )
        .prop_map(
            |((delay, jitter), bottleneck, policer, loss, reorder, duplicate, max_packet)| {
                Settings {
                    delay: Nanos::from_millis(delay),
                    jitter: Nanos::from_millis(jitter),
                    bottleneck,
                    policer,
                    loss,
                    reorder,
                    duplicate,
                    max_packet,
                    overhead: 38,
                }
            },
        )
}

fn spec() -> impl Strategy<Value = DirectionSpec> {
    let change = (1..200_u64, settings()).prop_map(|(at, settings)| Change {
        at: Nanos::from_millis(at),
        settings,
    });
    (settings(), proptest::collection::vec(change, 0..3)).prop_map(|(settings, mut changes)| {
        changes.sort_by_key(|change| change.at);
        DirectionSpec { settings, changes }
    })
}

/// Packets and the microseconds before each.
fn load() -> impl Strategy<Value = Vec<(u64, Packet)>> {
    let packet = (
        0..3000_u64,
        20..9000_u64,
        1..45_u32,
        prop_oneof![Just(Ecn::NotCapable), Just(Ecn::Capable), Just(Ecn::Marked)],
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(gap, bytes, segments, ecn, dont_fragment, cross)| {
            let packet = Packet {
                id: 0,
                bytes,
                segments,
                ecn,
                dont_fragment,
                cross,
            };
            (gap, packet)
        });
    proptest::collection::vec(packet, 0..200)
}

/// Hands the load in and finishes; `looked` sees the machine after each packet.
fn run(spec: &DirectionSpec, load: &[(u64, Packet)], mut looked: impl FnMut(&Direction)) -> Course {
    let mut course = Course::of(Direction::new(spec, 9));
    course.direction.begin(Nanos::ZERO);
    let mut now = Nanos::ZERO;
    for ((gap, packet), id) in load.iter().zip(0..) {
        now = now.plus(Nanos(gap * 1000));
        course.offer(now, Packet { id, ..*packet });
        looked(&course.direction);
    }
    course.finish();
    looked(&course.direction);
    course
}

proptest! {
    /// Offered is delivered, dropped or held, in packets, segments and bytes; each packet has one verdict.
    #[test]
    fn nothing_is_lost_unaccounted(spec in spec(), load in load()) {
        let course = run(&spec, &load, |direction| {
            for class in [direction.counters().ours, direction.counters().cross] {
                let (out, dropped, held) = (class.delivered, class.dropped.total(), class.held);
                assert_eq!(class.offered.packets, out.packets + dropped.packets + held.packets);
                assert_eq!(class.offered.segments, out.segments + dropped.segments + held.segments);
                assert_eq!(class.offered.bytes, out.bytes + dropped.bytes + held.bytes);
            }
        });
        let counters = course.direction.counters();
        prop_assert_eq!(counters.ours.held.packets + counters.cross.held.packets, 0);
        let mut ids: Vec<u64> = course.verdicts.iter().map(|verdict| verdict.id).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..load.len() as u64).collect::<Vec<_>>());
    }

    /// Without `reorder` whatever passes keeps its order, whatever else the path does and however it changes.
    #[test]
    fn order_is_kept_unless_asked_otherwise(mut spec in spec(), load in load()) {
        spec.settings.reorder = None;
        for change in &mut spec.changes {
            change.settings.reorder = None;
        }
        let course = run(&spec, &load, |_| ());
        let passes = |verdict: &&Verdict| {
            matches!(verdict.fate, Fate::Deliver | Fate::DeliverMarked | Fate::Duplicate(_))
        };
        let passed: Vec<_> = course.verdicts.iter().filter(passes).collect();
        prop_assert!(passed.windows(2).all(|pair| pair[0].id < pair[1].id && pair[0].due <= pair[1].due));
        let counters = course.direction.counters();
        prop_assert_eq!(counters.ours.overtaken.packets + counters.cross.overtaken.packets, 0);
    }

    /// Verdicts come in order of time, and nothing that passes leaves before the least delay is over.
    #[test]
    fn nothing_passes_too_early(spec in spec(), load in load()) {
        let all = std::iter::once(&spec.settings).chain(spec.changes.iter().map(|change| &change.settings));
        let least = all.map(|settings| settings.delay).min().unwrap_or_default();
        let mut arrivals = Vec::new();
        let mut now = Nanos::ZERO;
        for (gap, _) in &load {
            now = now.plus(Nanos(gap * 1000));
            arrivals.push(now);
        }
        let course = run(&spec, &load, |_| ());
        prop_assert!(course.verdicts.windows(2).all(|pair| pair[0].due <= pair[1].due));
        for verdict in &course.verdicts {
            if !matches!(verdict.fate, Fate::Drop(_) | Fate::TooBig { .. }) {
                let arrived = arrivals[usize::try_from(verdict.id).expect("small")];
                prop_assert!(verdict.due >= arrived.plus(least), "{verdict:?} {arrived}");
            }
        }
    }

    /// A machine that is only woken by packets decides the same at the same instants as one that is woken
    /// whenever it asks: lateness of its caller changes nothing.
    #[test]
    fn late_waking_changes_no_verdict(spec in spec(), load in load()) {
        let exact = run(&spec, &load, |_| ());
        let mut late = Direction::new(&spec, 9);
        late.begin(Nanos::ZERO);
        let mut verdicts = Vec::new();
        let mut now = Nanos::ZERO;
        for ((gap, packet), id) in load.iter().zip(0..) {
            now = now.plus(Nanos(gap * 1000));
            late.handle_packet(now, Packet { id, ..*packet });
            verdicts.extend(std::iter::from_fn(|| late.poll()));
        }
        late.handle_timeout(Nanos(u64::MAX));
        verdicts.extend(std::iter::from_fn(|| late.poll()));
        prop_assert_eq!(verdicts, exact.verdicts);
        prop_assert_eq!(late.counters(), exact.direction.counters());
        prop_assert_eq!(late.poll_timeout(), None);
    }

    /// The epoch that the caller chose changes nothing: all instants move with it.
    #[test]
    fn the_epoch_does_not_matter(spec in spec(), load in load(), epoch in 0..1_000_000_000_000_u64) {
        let early = run(&spec, &load, |_| ());
        let mut late = Course::of(Direction::new(&spec, 9));
        let mut now = Nanos(epoch);
        late.direction.begin(now);
        for ((gap, packet), id) in load.iter().zip(0..) {
            now = now.plus(Nanos(gap * 1000));
            late.offer(now, Packet { id, ..*packet });
        }
        late.finish();
        let moved: Vec<Verdict> = early
            .verdicts
            .iter()
            .map(|verdict| Verdict { due: verdict.due.plus(Nanos(epoch)), ..*verdict })
            .collect();
        prop_assert_eq!(late.verdicts, moved);
    }

    /// The bottleneck never carries more than its rate: over the whole run no more than the rate allows
    /// between the first arrival and the last departure.
    #[test]
    fn the_rate_is_never_exceeded(link in link(), load in load()) {
        prop_assume!(link.is_some() && !load.is_empty());
        let settings = Settings { bottleneck: link, overhead: 38, ..Settings::default() };
        let spec = DirectionSpec { settings, changes: Vec::new() };
        let course = run(&spec, &load, |_| ());
        let counters = course.direction.counters();
        let (ours, cross) = (counters.ours.delivered, counters.cross.delivered);
        let wire = ours.bytes + cross.bytes + 38 * (ours.segments + cross.segments);
        let first = Nanos(load[0].0 * 1000);
        let last = course.verdicts.last().map_or(first, |verdict| verdict.due);
        let rate = link.map_or(BitRate(0), |link| link.rate);
        // A nanosecond of rounding.
        prop_assert!(rate.time_for(Bytes(wire)).0 <= last.since(first).0 + 1, "{wire} {last}");
    }
}
