//! From the tables of a path to the settings of its directions.

use std::num::NonZeroU64;

use linerate_document::{Document, DocumentError, Table, Value};
use linerate_model::units::{BitRate, Bytes, Nanos};

use super::amount::{self, QueueSize, positive_span, rate, share, size, span, unless};
use super::keys;
use super::types::{Cross, CrossKind, PathSpec, Way};
use crate::path::{
    Bottleneck, Change, Codel, DEFAULT_OVERHEAD, DirectionSpec, Discipline, Loss, MaxPacket,
    Policer, Probability, Reorder, Settings,
};

type Result<T> = std::result::Result<T, DocumentError>;

const LONGEST_RTT: Nanos = Nanos::from_millis(10_000);
const LONGEST_EXTRA: Nanos = Nanos::from_millis(1000);
/// No test of a lab is longer.
const LONGEST_TEST: Nanos = Nanos::from_millis(86_400_000);
/// A queue that nobody sized holds at least this: 100 packets of 1500 bytes with their overhead.
const LEAST_QUEUE: u64 = 153_800;

/// What a direction is set to; `state` has the value of each key, from the last table that names it. `first` is the rate
/// at the start, or where the path begins without one, the first that it gets: with it and `rtt` a queue's multiple is
/// computed, once for all.
fn settings(state: &Table<'_>, first: &mut Option<BitRate>, rtt: Nanos) -> Result<Settings> {
    let queue = state.read("queue", |value| value.amount(amount::queue))?;
    let rate = state.or("rate", None, unless("unlimited", rate))?;
    let (discipline, ecn_threshold) = (discipline(state)?, ecn_threshold(state)?);
    Ok(Settings {
        delay: delay(state)?,
        jitter: state.or("jitter", Nanos::ZERO, |value| span(value, LONGEST_EXTRA))?,
        bottleneck: rate.map(|rate| Bottleneck {
            rate,
            queue: queue_bytes(queue, *first.get_or_insert(rate), rtt),
            discipline,
            ecn_threshold,
        }),
        policer: state.or("policer", None, unless("none", policer))?,
        loss: state.or("loss", Loss::None, loss)?,
        reorder: state.or("reorder", None, unless("none", reorder))?,
        duplicate: state.or("duplicate", Probability::NEVER, share)?,
        max_packet: state.or("max_packet", None, unless("none", max_packet))?,
        overhead: state.or("overhead", DEFAULT_OVERHEAD, |value| value.whole(0..=1000))?,
    })
}

/// What holds where `table` is read after `base`.
fn over<'a>(table: &Table<'a>, base: &Table<'a>) -> Table<'a> {
    // Both keys are about the delay, so one of them replaces the other.
    let of_delay = ["rtt", "delay"];
    let delayed = of_delay.iter().any(|key| table.value(key).is_some());
    table.over(base, |key| !(delayed && of_delay.contains(&key)))
}

fn delay(state: &Table<'_>) -> Result<Nanos> {
    let rtt = state.read("rtt", |value| span(value, LONGEST_RTT))?;
    let delay = state.read("delay", |value| match rtt {
        Some(_) => Err(value.wrong("'rtt' says it already; leave one of the two out")),
        None => span(value, LONGEST_RTT),
    })?;
    Ok(delay.unwrap_or(Nanos(rtt.unwrap_or_default().0 / 2)))
}

fn ecn_threshold(state: &Table<'_>) -> Result<Option<Bytes>> {
    state.or("ecn_threshold", None, unless("none", size))
}

/// A key that means nothing without a rate.
fn of_a_bottleneck(state: &Table<'_>) -> Result<Option<&'static str>> {
    Ok(if state.value("queue").is_some() {
        Some("queue")
    } else if discipline(state)? != Discipline::DropTail {
        Some("codel")
    } else {
        ecn_threshold(state)?.map(|_| "ecn_threshold")
    })
}

fn queue_bytes(queue: Option<QueueSize>, rate: BitRate, rtt: Nanos) -> Bytes {
    let product = rate.0 as f64 / 8.0 * rtt.as_secs_f64();
    let times = |factor: f64| linerate_model::units::whole(product * factor);
    match queue {
        None => Bytes(times(1.0).max(LEAST_QUEUE)),
        Some(QueueSize::Multiple(factor)) => Bytes(times(factor)),
        Some(QueueSize::Bytes(bytes)) => bytes,
    }
}

/// What holds of a direction at the start, and after each change, in the order of time.
type Course<'a> = Vec<(Nanos, Table<'a>)>;

fn spec(course: &Course<'_>, rtt: Nanos) -> Result<DirectionSpec> {
    let mut rate = None;
    let all = course.iter().map(|(at, state)| {
        let settings = settings(state, &mut rate, rtt)?;
        Ok(Change { at: *at, settings })
    });
    let mut changes = all.collect::<Result<Vec<_>>>()?;
    let settings = changes.remove(0).settings;
    Ok(DirectionSpec { settings, changes })
}

/// The path that `[path]` describes; an empty one passes everything at once.
pub(super) fn read(document: &Document<'_>, path: &Table<'_>) -> Result<PathSpec> {
    // Also what both directions say otherwise must be right.
    settings(path, &mut None, Nanos::ZERO)?;
    let course = |name| -> Result<Course<'_>> {
        let own = path.table(name, &keys::DIRECTION)?;
        let mut course = changes(path)?;
        course.extend(changes(&own)?);
        course.sort_by_key(|(at, _)| *at);
        course.insert(0, (Nanos::ZERO, over(&own, path)));
        for later in 1..course.len() {
            course[later].1 = over(&course[later].1, &course[later - 1].1);
        }
        Ok(course)
    };
    let courses = [course("forward")?, course("back")?];
    let [out, home] = &courses;
    let rtt = delay(&out[0].1)?.plus(delay(&home[0].1)?);
    let (forward, back) = (spec(out, rtt)?, spec(home, rtt)?);
    let unlimited = |direction: &DirectionSpec| {
        let mut all = direction.all_settings();
        all.all(|settings| settings.bottleneck.is_none())
    };
    if unlimited(&forward) && unlimited(&back) {
        queue_needs_a_rate(document, &courses)?;
    }
    Ok(PathSpec {
        forward,
        back,
        cross: path.read_all("cross", cross)?,
    })
}

fn queue_needs_a_rate(document: &Document<'_>, courses: &[Course<'_>]) -> Result<()> {
    for (_, state) in courses.iter().flatten() {
        if let Some(key) = of_a_bottleneck(state)? {
            return Err(document.contradiction(format!(
                "'{key}' is about the queue before a bottleneck, and [path] has no rate: without a rate nothing ever waits. Set 'rate', or leave '{key}' out"
            )));
        }
    }
    Ok(())
}

fn discipline(state: &Table<'_>) -> Result<Discipline> {
    state.or("codel", Discipline::DropTail, codel)
}

fn codel(value: &Value<'_>) -> Result<Discipline> {
    if !value.is_table() {
        return Ok(if value.boolean()? {
            Discipline::Codel(Codel::default())
        } else {
            Discipline::DropTail
        });
    }
    let table = value.table(&keys::CODEL_TABLE)?;
    let default = Codel::default();
    let target = |value: &Value<'_>| positive_span(value, LONGEST_EXTRA);
    let interval = |value: &Value<'_>| positive_span(value, LONGEST_RTT);
    Ok(Discipline::Codel(Codel {
        target: table.or("target", default.target, target)?,
        interval: table.or("interval", default.interval, interval)?,
        ecn: table.or("ecn", default.ecn, Value::boolean)?,
    }))
}

fn policer(value: &Value<'_>) -> Result<Policer> {
    let table = value.table(&keys::POLICER_TABLE)?;
    Ok(Policer {
        rate: rate(table.needed("rate")?)?,
        burst: size(table.needed("burst")?)?,
    })
}

fn loss(value: &Value<'_>) -> Result<Loss> {
    if !value.is_table() {
        let share = share(value)?;
        return Ok(if share == Probability::NEVER {
            Loss::None
        } else {
            Loss::Independent(share)
        });
    }
    let table = value.table(&keys::LOSS_TABLE)?;
    if let Some(every) = table.value("every") {
        let both = table.value("model").is_some();
        value.refuse(both, "either every nth or a model, not both")?;
        let nth = every.whole(1..=u64::MAX >> 1)?;
        return Ok(NonZeroU64::new(nth).map_or(Loss::None, Loss::Every));
    }
    table.needed("model")?.word(&[("gilbert", ())])?;
    let positive = |name| -> Result<Probability> {
        let value = table.needed(name)?;
        let odds = share(value)?;
        let never = odds == Probability::NEVER;
        value.refuse(never, "with 0 the state would never change")?;
        Ok(odds)
    };
    Ok(Loss::Gilbert {
        p: positive("p")?,
        r: positive("r")?,
        bad: table.or("bad", Probability::ALWAYS, share)?,
        good: table.or("good", Probability::NEVER, share)?,
    })
}

fn reorder(value: &Value<'_>) -> Result<Reorder> {
    let table = value.table(&keys::REORDER_TABLE)?;
    Ok(Reorder {
        fraction: share(table.needed("fraction")?)?,
        delay: positive_span(table.needed("delay")?, LONGEST_EXTRA)?,
    })
}

fn max_packet(value: &Value<'_>) -> Result<MaxPacket> {
    let table = value.table(&keys::MAX_PACKET_TABLE)?;
    Ok(MaxPacket {
        bytes: table.needed("bytes")?.whole(68..=65_535)?,
        icmp: table.or("icmp", true, Value::boolean)?,
    })
}

fn changes<'a>(table: &Table<'a>) -> Result<Vec<(Nanos, Table<'a>)>> {
    table.read_all("change", |value| {
        let table = value.table(&keys::CHANGES)?;
        let at = positive_span(table.needed("at")?, LONGEST_TEST)?;
        Ok((at, table))
    })
}

fn cross(value: &Value<'_>) -> Result<Cross> {
    let table = value.table(&keys::CROSS)?;
    let udp = table
        .needed("kind")?
        .word(&[("udp", true), ("tcp", false)])?;
    let streams = table.read("streams", |value| {
        value.refuse(udp, "udp is one flow; its rate says how much")?;
        value.whole(1..=128)
    })?;
    let kind = if udp {
        CrossKind::Udp {
            rate: rate(table.needed("rate")?)?,
        }
    } else {
        CrossKind::Tcp {
            streams: streams.unwrap_or(1),
            rate: table.read("rate", rate)?,
        }
    };
    let from = table.or("from", Nanos::ZERO, |value| span(value, LONGEST_TEST))?;
    let to = table.read("to", |value| {
        let to = span(value, LONGEST_TEST)?;
        value.refuse(to <= from, format!("ends before it begins (from = {from})"))?;
        Ok(to)
    })?;
    let ways = [("forward", Way::Forward), ("back", Way::Back)];
    Ok(Cross {
        kind,
        way: table.or("direction", Way::Forward, |value| value.word(&ways))?,
        from,
        to,
    })
}
