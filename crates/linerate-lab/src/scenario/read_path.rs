//! From the tables of a path to the settings of its directions.

use std::num::NonZeroU64;

use linerate_model::units::{BitRate, Bytes, Nanos};

use super::amount::QueueSize;
use super::error::ScenarioError;
use super::keys;
use super::reader::{Document, Switch, Table, Value};
use super::types::{Cross, CrossKind, PathSpec, Way};
use crate::path::{
    Bottleneck, Change, Codel, DEFAULT_OVERHEAD, DirectionSpec, Discipline, Loss, MaxPacket,
    Policer, Probability, Reorder, Settings,
};

type Result<T> = std::result::Result<T, ScenarioError>;

const LONGEST_RTT: Nanos = Nanos::from_millis(10_000);
const LONGEST_EXTRA: Nanos = Nanos::from_millis(1000);
/// No test of a lab is longer.
const LONGEST_TEST: Nanos = Nanos::from_millis(86_400_000);
/// A queue that nobody sized holds at least this: 100 packets of 1500 bytes with their overhead.
const LEAST_QUEUE: u64 = 153_800;

/// What a table says of a direction; `None` = nothing.
#[derive(Debug, Clone, Default)]
struct Overlay {
    rate: Option<Switch<BitRate>>,
    delay: Option<Nanos>,
    jitter: Option<Nanos>,
    queue: Option<QueueSize>,
    discipline: Option<Discipline>,
    policer: Option<Switch<Policer>>,
    loss: Option<Loss>,
    reorder: Option<Switch<Reorder>>,
    duplicate: Option<Probability>,
    max_packet: Option<Switch<MaxPacket>>,
    ecn_threshold: Option<Switch<Bytes>>,
    overhead: Option<u32>,
}

impl Overlay {
    fn read(table: &Table<'_>) -> Result<Self> {
        Ok(Self {
            rate: table.read("rate", |value| value.unless("unlimited", Value::rate))?,
            delay: delay(table)?,
            jitter: table.read("jitter", |value| value.span(LONGEST_EXTRA))?,
            queue: table.read("queue", Value::queue)?,
            discipline: table.read("codel", discipline)?,
            policer: table.read("policer", |value| value.unless("none", policer))?,
            loss: table.read("loss", loss)?,
            reorder: table.read("reorder", |value| value.unless("none", reorder))?,
            duplicate: table.read("duplicate", Value::share)?,
            max_packet: table.read("max_packet", |value| value.unless("none", max_packet))?,
            ecn_threshold: table
                .read("ecn_threshold", |value| value.unless("none", Value::size))?,
            overhead: table
                .read("overhead", |value| value.whole(0..=1000))?
                .and_then(|bytes| u32::try_from(bytes).ok()),
        })
    }

    /// This, and where it says nothing, `base`.
    fn over(&self, base: &Self) -> Self {
        Self {
            rate: self.rate.or(base.rate),
            delay: self.delay.or(base.delay),
            jitter: self.jitter.or(base.jitter),
            queue: self.queue.or(base.queue),
            discipline: self.discipline.or(base.discipline),
            policer: self.policer.or(base.policer),
            loss: self.loss.or(base.loss),
            reorder: self.reorder.or(base.reorder),
            duplicate: self.duplicate.or(base.duplicate),
            max_packet: self.max_packet.or(base.max_packet),
            ecn_threshold: self.ecn_threshold.or(base.ecn_threshold),
            overhead: self.overhead.or(base.overhead),
        }
    }

    /// The bytes of the queue, reckoned with the rate and `rtt` at the start; `rate` is that, or where the path
    /// begins without one, the first that it gets.
    fn fix_queue(&mut self, rate: &mut Option<BitRate>, rtt: Nanos) {
        let Some(now) = self.rate.and_then(Switch::on) else {
            return;
        };
        let rate = *rate.get_or_insert(now);
        let product = rate.0 as f64 / 8.0 * rtt.as_secs_f64();
        let times = |factor: f64| linerate_model::units::whole(product * factor);
        let bytes = match self.queue {
            None => times(1.0).max(LEAST_QUEUE),
            Some(QueueSize::Multiple(factor)) => times(factor),
            Some(QueueSize::Bytes(bytes)) => bytes.0,
        };
        self.queue = Some(QueueSize::Bytes(Bytes(bytes)));
    }

    fn settings(&self) -> Settings {
        let queue = match self.queue {
            Some(QueueSize::Bytes(bytes)) => bytes,
            Some(QueueSize::Multiple(_)) | None => Bytes(LEAST_QUEUE),
        };
        Settings {
            delay: self.delay.unwrap_or_default(),
            jitter: self.jitter.unwrap_or_default(),
            bottleneck: self.rate.and_then(Switch::on).map(|rate| Bottleneck {
                rate,
                queue,
                discipline: self.discipline.unwrap_or_default(),
                ecn_threshold: self.ecn_threshold.and_then(Switch::on),
            }),
            policer: self.policer.and_then(Switch::on),
            loss: self.loss.unwrap_or_default(),
            reorder: self.reorder.and_then(Switch::on),
            duplicate: self.duplicate.unwrap_or_default(),
            max_packet: self.max_packet.and_then(Switch::on),
            overhead: self.overhead.unwrap_or(DEFAULT_OVERHEAD),
        }
    }
}

/// A direction's beginning, and its changes as they stand in the file.
struct Course {
    start: Overlay,
    changes: Vec<(Nanos, Overlay)>,
}

impl Course {
    fn spec(mut self, rtt: Nanos) -> DirectionSpec {
        let mut rate = None;
        self.start.fix_queue(&mut rate, rtt);
        self.changes.sort_by_key(|(at, _)| *at);
        let mut current = self.start.clone();
        let changes = self.changes.iter().map(|(at, overlay)| {
            current = overlay.over(&current);
            current.fix_queue(&mut rate, rtt);
            Change {
                at: *at,
                settings: current.settings(),
            }
        });
        let changes = changes.collect();
        DirectionSpec {
            settings: self.start.settings(),
            changes,
        }
    }
}

/// The path that `[path]` describes; without it, one that passes everything at once.
pub(super) fn read(document: &Document<'_>, path: Option<&Table<'_>>) -> Result<PathSpec> {
    let Some(table) = path else {
        let plain = || Course {
            start: Overlay::default(),
            changes: Vec::new(),
        };
        return Ok(PathSpec {
            forward: plain().spec(Nanos::ZERO),
            back: plain().spec(Nanos::ZERO),
            cross: Vec::new(),
        });
    };
    let base = Overlay::read(table)?;
    let common = changes(table)?;
    let course = |name| -> Result<Course> {
        let own = table.read(name, |value| value.table(&keys::DIRECTION))?;
        let Some(own) = own else {
            return Ok(Course {
                start: base.clone(),
                changes: common.clone(),
            });
        };
        let mut all = common.clone();
        all.extend(changes(&own)?);
        Ok(Course {
            start: Overlay::read(&own)?.over(&base),
            changes: all,
        })
    };
    let (forward, back) = (course("forward")?, course("back")?);
    queue_needs_a_rate(document, [&forward, &back])?;
    let rtt = forward.start.delay.unwrap_or_default();
    let rtt = rtt.plus(back.start.delay.unwrap_or_default());
    Ok(PathSpec {
        forward: forward.spec(rtt),
        back: back.spec(rtt),
        cross: table.read("cross", crosses)?.unwrap_or_default(),
    })
}

fn queue_needs_a_rate(document: &Document<'_>, courses: [&Course; 2]) -> Result<()> {
    let all = || {
        courses.into_iter().flat_map(|course| {
            let later = course.changes.iter().map(|(_, overlay)| overlay);
            std::iter::once(&course.start).chain(later)
        })
    };
    if all().any(|overlay| overlay.rate.and_then(Switch::on).is_some()) {
        return Ok(());
    }
    let says = |key: &str, overlay: &Overlay| match key {
        "queue" => overlay.queue.is_some(),
        "codel" => matches!(overlay.discipline, Some(Discipline::Codel(_))),
        _ => overlay.ecn_threshold.and_then(Switch::on).is_some(),
    };
    let without = ["queue", "codel", "ecn_threshold"]
        .into_iter()
        .find(|key| all().any(|overlay| says(key, overlay)));
    without.map_or(Ok(()), |key| {
        Err(document.contradiction(format!(
            "'{key}' is about the queue before a bottleneck, and [path] has no rate: without a rate nothing ever waits. Set 'rate', or leave '{key}' out"
        )))
    })
}

fn delay(table: &Table<'_>) -> Result<Option<Nanos>> {
    let rtt = table.read("rtt", |value| value.span(LONGEST_RTT))?;
    let delay = table.read("delay", |value| {
        if rtt.is_some() {
            return Err(value.wrong("'rtt' says it already; leave one of the two out"));
        }
        value.span(LONGEST_RTT)
    })?;
    Ok(delay.or(rtt.map(|rtt| Nanos(rtt.0 / 2))))
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
    let span = |name, most| table.read(name, |value| value.positive_span(most));
    Ok(Discipline::Codel(Codel {
        target: span("target", LONGEST_EXTRA)?.unwrap_or(default.target),
        interval: span("interval", LONGEST_RTT)?.unwrap_or(default.interval),
        ecn: table.read("ecn", Value::boolean)?.unwrap_or(default.ecn),
    }))
}

fn policer(value: &Value<'_>) -> Result<Policer> {
    let table = value.table(&keys::POLICER_TABLE)?;
    Ok(Policer {
        rate: table.needed("rate")?.rate()?,
        burst: table.needed("burst")?.size()?,
    })
}

fn loss(value: &Value<'_>) -> Result<Loss> {
    if !value.is_table() {
        let share = value.share()?;
        return Ok(if share == Probability::NEVER {
            Loss::None
        } else {
            Loss::Independent(share)
        });
    }
    let table = value.table(&keys::LOSS_TABLE)?;
    if let Some(every) = table.value("every") {
        if table.value("model").is_some() {
            return Err(value.wrong("it is either every nth or a model"));
        }
        let nth = every.whole(1..=u64::MAX >> 1)?;
        return Ok(NonZeroU64::new(nth).map_or(Loss::None, Loss::Every));
    }
    table.needed("model")?.word(&[("gilbert", ())])?;
    let share = |name| -> Result<Option<Probability>> { table.read(name, Value::share) };
    let positive = |name| -> Result<Probability> {
        let value = table.needed(name)?;
        let odds = value.share()?;
        if odds == Probability::NEVER {
            return Err(value.wrong("it is 0, so the state would never change"));
        }
        Ok(odds)
    };
    Ok(Loss::Gilbert {
        p: positive("p")?,
        r: positive("r")?,
        bad: share("bad")?.unwrap_or(Probability::ALWAYS),
        good: share("good")?.unwrap_or(Probability::NEVER),
    })
}

fn reorder(value: &Value<'_>) -> Result<Reorder> {
    let table = value.table(&keys::REORDER_TABLE)?;
    Ok(Reorder {
        fraction: table.needed("fraction")?.share()?,
        delay: table.needed("delay")?.positive_span(LONGEST_EXTRA)?,
    })
}

fn max_packet(value: &Value<'_>) -> Result<MaxPacket> {
    let table = value.table(&keys::MAX_PACKET_TABLE)?;
    let bytes = table.needed("bytes")?.whole(68..=65_535)?;
    Ok(MaxPacket {
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        icmp: table.read("icmp", Value::boolean)?.unwrap_or(true),
    })
}

fn changes(table: &Table<'_>) -> Result<Vec<(Nanos, Overlay)>> {
    let change = |value: Value<'_>| -> Result<(Nanos, Overlay)> {
        let table = value.table(&keys::CHANGES)?;
        let at = table.needed("at")?.positive_span(LONGEST_TEST)?;
        Ok((at, Overlay::read(&table)?))
    };
    let all = table.read("change", |value| {
        list(value)?.into_iter().map(change).collect()
    })?;
    Ok(all.unwrap_or_default())
}

fn list<'a>(value: &Value<'a>) -> Result<Vec<Value<'a>>> {
    if value.is_list() {
        Ok(value.elements())
    } else {
        Err(value.wrong("it may stand several times, so it is written with two brackets: [[…]]"))
    }
}

fn crosses(value: &Value<'_>) -> Result<Vec<Cross>> {
    list(value)?.iter().map(cross).collect()
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
            rate: table.needed("rate")?.rate()?,
        }
    } else {
        CrossKind::Tcp {
            streams: streams
                .and_then(|count| u16::try_from(count).ok())
                .unwrap_or(1),
            rate: table.read("rate", Value::rate)?,
        }
    };
    let from = table
        .read("from", |value| value.span(LONGEST_TEST))?
        .unwrap_or_default();
    let to = table.read("to", |value| {
        let to = value.span(LONGEST_TEST)?;
        if to > from {
            Ok(to)
        } else {
            Err(value.wrong(format!("it ends before it begins (from = {from})")))
        }
    })?;
    let ways = [("forward", Way::Forward), ("back", Way::Back)];
    let way = table.read("direction", |value| value.word(&ways))?;
    Ok(Cross {
        kind,
        way: way.unwrap_or(Way::Forward),
        from,
        to,
    })
}
