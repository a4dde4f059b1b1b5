//! From the tables of a path to the settings of its directions.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use linerate_document::{Document, DocumentError, Table, Value};
use linerate_model::units::{BitRate, Bytes, Nanos};

use super::amount::QueueSize;
use super::keys;
use super::types::{Cross, CrossKind, PathSpec, Way};
use super::values::{positive_span, queue, rate, share, size, span, unless};
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

/// What holds of a direction: the value of each key, from the last table that has it.
#[derive(Debug, Clone, Default)]
struct State<'a>(BTreeMap<String, Value<'a>>);

impl<'a> State<'a> {
    /// This, with what a further table says instead.
    fn with(&self, table: &Table<'a>) -> Result<Self> {
        let mut state = self.clone();
        if let (Some(_), Some(delay)) = (table.value("rtt"), table.value("delay")) {
            return Err(delay.wrong("'rtt' says it already; leave one of the two out"));
        }
        for value in table.values() {
            // Both are about the delay.
            match value.name() {
                "rtt" => drop(state.0.remove("delay")),
                "delay" => drop(state.0.remove("rtt")),
                _ => {}
            }
            state.0.insert(value.name().to_owned(), value);
        }
        Ok(state)
    }

    fn read<T>(&self, name: &str, read: impl FnOnce(&Value<'a>) -> Result<T>) -> Result<Option<T>> {
        self.0.get(name).map(read).transpose()
    }

    fn delay(&self) -> Result<Nanos> {
        let long = |value: &Value<'_>| span(value, LONGEST_RTT);
        let half = self.read("rtt", long)?.map(|rtt| Nanos(rtt.0 / 2));
        Ok(self.read("delay", long)?.or(half).unwrap_or_default())
    }

    fn ecn_threshold(&self) -> Result<Option<Bytes>> {
        let threshold = self.read("ecn_threshold", unless("none", size))?;
        Ok(threshold.flatten())
    }

    fn discipline(&self) -> Result<Discipline> {
        Ok(self.read("codel", discipline)?.unwrap_or_default())
    }

    /// `first` is the rate at the start, or where the path begins without one, the first that it gets: with it and
    /// `rtt` a queue's multiple is computed, once for all.
    fn settings(&self, first: &mut Option<BitRate>, rtt: Nanos) -> Result<Settings> {
        let queue = self.read("queue", queue)?;
        let rate = self.read("rate", unless("unlimited", rate))?.flatten();
        let (discipline, ecn_threshold) = (self.discipline()?, self.ecn_threshold()?);
        let reorder = self.read("reorder", unless("none", reorder))?;
        let max_packet = self.read("max_packet", unless("none", max_packet))?;
        let jitter = self.read("jitter", |value| span(value, LONGEST_EXTRA))?;
        let overhead = self.read("overhead", |value| value.whole(0..=1000))?;
        Ok(Settings {
            delay: self.delay()?,
            jitter: jitter.unwrap_or_default(),
            bottleneck: rate.map(|rate| Bottleneck {
                rate,
                queue: queue_bytes(queue, *first.get_or_insert(rate), rtt),
                discipline,
                ecn_threshold,
            }),
            policer: self.read("policer", unless("none", policer))?.flatten(),
            loss: self.read("loss", loss)?.unwrap_or_default(),
            reorder: reorder.flatten(),
            duplicate: self.read("duplicate", share)?.unwrap_or_default(),
            max_packet: max_packet.flatten(),
            overhead: overhead.unwrap_or(DEFAULT_OVERHEAD),
        })
    }

    /// A key that means nothing without a rate.
    fn of_a_bottleneck(&self) -> Result<Option<&'static str>> {
        Ok(if self.0.contains_key("queue") {
            Some("queue")
        } else if self.discipline()? != Discipline::DropTail {
            Some("codel")
        } else {
            self.ecn_threshold()?.map(|_| "ecn_threshold")
        })
    }
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
type Course<'a> = Vec<(Nanos, State<'a>)>;

fn spec(course: &Course<'_>, rtt: Nanos) -> Result<DirectionSpec> {
    let mut rate = None;
    let all = course.iter().map(|(at, state)| {
        let settings = state.settings(&mut rate, rtt)?;
        Ok(Change { at: *at, settings })
    });
    let mut changes = all.collect::<Result<Vec<_>>>()?;
    let settings = changes.remove(0).settings;
    Ok(DirectionSpec { settings, changes })
}

/// The path that `[path]` describes; without it, one that passes everything at once.
pub(super) fn read(document: &Document<'_>, path: Option<&Value<'_>>) -> Result<PathSpec> {
    let Some(path) = path else {
        let plain = spec(&vec![(Nanos::ZERO, State::default())], Nanos::ZERO)?;
        return Ok(PathSpec {
            forward: plain.clone(),
            back: plain,
            cross: Vec::new(),
        });
    };
    let table = path.table(&keys::PATH)?;
    let base = State::default().with(&table)?;
    // Also what both directions say otherwise must be right.
    base.settings(&mut None, Nanos::ZERO)?;
    let common = changes(&table)?;
    let course = |name| -> Result<Course<'_>> {
        let (mut now, mut changes_of) = (base.clone(), common.clone());
        if let Some(own) = table.read(name, |value| value.table(&keys::DIRECTION))? {
            now = base.with(&own)?;
            changes_of.extend(changes(&own)?);
        }
        changes_of.sort_by_key(|(at, _)| *at);
        let mut course = vec![(Nanos::ZERO, now.clone())];
        for (at, table) in changes_of {
            now = now.with(&table)?;
            course.push((at, now.clone()));
        }
        Ok(course)
    };
    let courses = [course("forward")?, course("back")?];
    let [out, home] = &courses;
    let rtt = out[0].1.delay()?.plus(home[0].1.delay()?);
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
        cross: table.read_all("cross", cross)?,
    })
}

fn queue_needs_a_rate(document: &Document<'_>, courses: &[Course<'_>]) -> Result<()> {
    for (_, state) in courses.iter().flatten() {
        if let Some(key) = state.of_a_bottleneck()? {
            return Err(document.contradiction(format!(
                "'{key}' is about the queue before a bottleneck, and [path] has no rate: without a rate nothing ever waits. Set 'rate', or leave '{key}' out"
            )));
        }
    }
    Ok(())
}

fn discipline(value: &Value<'_>) -> Result<Discipline> {
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
        rate: rate(&table.needed("rate")?)?,
        burst: size(&table.needed("burst")?)?,
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
        if table.value("model").is_some() {
            return Err(value.wrong("either every nth or a model, not both"));
        }
        let nth = every.whole(1..=u64::MAX >> 1)?;
        return Ok(NonZeroU64::new(nth).map_or(Loss::None, Loss::Every));
    }
    table.needed("model")?.word(&[("gilbert", ())])?;
    let positive = |name| -> Result<Probability> {
        let value = table.needed(name)?;
        let odds = share(&value)?;
        if odds == Probability::NEVER {
            return Err(value.wrong("with 0 the state would never change"));
        }
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
        fraction: share(&table.needed("fraction")?)?,
        delay: positive_span(&table.needed("delay")?, LONGEST_EXTRA)?,
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
        let at = positive_span(&table.needed("at")?, LONGEST_TEST)?;
        Ok((at, table))
    })
}

fn cross(value: &Value<'_>) -> Result<Cross> {
    let table = value.table(&keys::CROSS)?;
    let udp = table
        .needed("kind")?
        .word(&[("udp", true), ("tcp", false)])?;
    let streams = table.read("streams", |value| {
        if udp {
            return Err(value.wrong("udp is one flow; its rate says how much"));
        }
        value.whole(1..=128)
    })?;
    let kind = if udp {
        CrossKind::Udp {
            rate: rate(&table.needed("rate")?)?,
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
        if to > from {
            Ok(to)
        } else {
            Err(value.wrong(format!("ends before it begins (from = {from})")))
        }
    })?;
    let ways = [("forward", Way::Forward), ("back", Way::Back)];
    Ok(Cross {
        kind,
        way: table.or("direction", Way::Forward, |value| value.word(&ways))?,
        from,
        to,
    })
}
