//! Advice that is dead or harms today, found set: H01 to H06. Each says the file and line that sets it.

use std::collections::BTreeSet;

use linerate_model::audit::{Advised, Outcome};
use linerate_model::host::{Effect, Owner, Setting};
use linerate_model::units::Bytes;

use crate::case::{Advice, Answer, Case, holds, triple};

/// A key or a line that a check judges, and the answer.
pub(crate) type Answers = Vec<(Option<String>, Answer)>;

/// `/etc/sysctl.d/10-x.conf:3`, and what becomes of the line.
fn place(line: &Setting) -> String {
    match &line.effect {
        Effect::Overridden { by } => format!("{} (overridden by {by})", line.place()),
        Effect::NotAtBoot => format!("{} (nothing reads it at boot)", line.place()),
        Effect::Wins | Effect::Masked { .. } => line.place(),
    }
}

/// A key whose value may be wrong: where it runs, and in every line that sets it.
struct Found {
    running: Option<String>,
    runs_wrong: bool,
    places: Vec<String>,
    value: String,
}

/// Looks for wrong values of a key; an error where nothing at all is known of it.
fn wrong(
    case: &Case<'_>,
    key: &str,
    is_wrong: impl Fn(&str) -> bool,
) -> Result<Option<Found>, String> {
    let running = case.text(key);
    let lines = case.facts.settings.ask();
    let places: Vec<(String, String)> = case
        .lines(key)
        .filter(|line| is_wrong(&line.value))
        .map(|line| (place(line), line.value.clone()))
        .collect();
    let runs_wrong = running.as_ref().is_ok_and(|value| is_wrong(value));
    if !runs_wrong && places.is_empty() {
        // Nothing is wrong in files; what runs must be known as well before it is called right.
        running?;
        lines?;
        return Ok(None);
    }
    let value = match (&running, places.last()) {
        (Ok(value), _) if runs_wrong => value.clone(),
        (_, Some((_, value))) => value.clone(),
        _ => String::new(),
    };
    Ok(Some(Found {
        running: running.ok(),
        runs_wrong,
        places: places.into_iter().map(|(place, _)| place).collect(),
        value,
    }))
}

impl Found {
    /// `tcp_sack is 0`, or `/etc/…:4 sets tcp_sack = 0, and 1 runs`.
    fn says(&self, key: &str) -> String {
        let name = key.rsplit('.').next().unwrap_or(key);
        if self.runs_wrong {
            return format!("{name} is {}", self.value);
        }
        let runs = match &self.running {
            Some(value) => format!(" ({value} runs)"),
            None => String::new(),
        };
        let one = self.places.last().map_or("a file", String::as_str);
        format!("{one} sets {name} = {}{runs}", self.value)
    }

    fn fires(self, key: &str, cost: &str, advised: Advised, why: &str) -> Answer {
        Advice::new(format!("{}: {cost}", self.says(key)))
            .change(advised, why)
            .now_where_known(self.running.clone())
            .set_by(self.places)
            .fires()
    }
}

/// H01
pub(crate) fn switched_off(case: &Case<'_>) -> Answers {
    const KEYS: [(&str, &str); 3] = [
        (
            "net.ipv4.tcp_timestamps",
            "harmful: no protection against wrapped sequence numbers, and few samples of the round-trip time (RFC 7323)",
        ),
        (
            "net.ipv4.tcp_sack",
            "harmful: after a loss the sender retransmits segments that arrived (RFC 2018)",
        ),
        (
            "net.ipv4.tcp_dsack",
            "harmful: the sender cannot detect unnecessary retransmits (RFC 2883)",
        ),
    ];
    let judge = |(key, cost): (&str, &str)| match wrong(case, key, |value| value == "0")? {
        Some(found) => found.fires(
            key,
            cost,
            Advised::sysctl(key, "1"),
            "the kernel's default; remove the line",
        ),
        None => holds(format!("{} is on", key.rsplit('.').next().unwrap_or(key))),
    };
    KEYS.map(|(key, cost)| (Some(key.to_owned()), judge((key, cost))))
        .into()
}

/// A key that does nothing any more.
struct Dead {
    key: &'static str,
    /// From this kernel on.
    since: (u32, u32),
    what: &'static str,
}

const DEAD: [Dead; 4] = [
    Dead {
        key: "net.ipv4.tcp_low_latency",
        since: (4, 14),
        what: "dead: no effect since Linux 4.14",
    },
    Dead {
        key: "net.ipv4.tcp_fack",
        since: (4, 15),
        what: "dead: ignored since Linux 4.15, RACK has replaced it",
    },
    Dead {
        key: "net.ipv4.tcp_tw_recycle",
        since: (4, 12),
        what: "dead: gone since Linux 4.12; before that it broke connections behind NAT",
    },
    Dead {
        key: "net.ipv4.tcp_adv_win_scale",
        since: (6, 6),
        what: "dead: obsolete since Linux 6.6, each socket measures the ratio",
    },
];

/// H02
pub(crate) fn dead_keys(case: &Case<'_>) -> Answers {
    let lines = match case.facts.settings.ask() {
        Ok(lines) => lines,
        Err(why) => return vec![(None, Err(why))],
    };
    let kernel = case.kernel().ok();
    let mut answers: Answers = Vec::new();
    for line in lines {
        if matches!(line.effect, Effect::Masked { .. }) {
            continue;
        }
        let dead = DEAD
            .iter()
            .find(|dead| dead.key == line.key && kernel.is_none_or(|kernel| kernel >= dead.since));
        let remove = || Advised::by_hand(line.key.clone(), "remove");
        let (what, advised) = if let Some(dead) = dead {
            (dead.what, remove())
        } else if line.key == super::tcp::CONTROL && line.value == "htcp" {
            (
                "outdated: it was advised because of cubic bugs before Linux 2.6.33; compare it with cubic in \
                 alternating runs",
                remove(),
            )
        } else if line.key == "net.core.optmem_max"
            && line.value.parse::<u64>().is_ok_and(|bytes| bytes > 4 << 20)
        {
            (
                "harmful: every socket may use this much for options and notifications; 1 MiB is enough for \
                 zero-copy at 100 Gbit/s",
                Advised::sysctl(line.key.clone(), "1048576"),
            )
        } else {
            continue;
        };
        let answer = Advice::new(format!("{} = {}: {what}", line.key, line.value))
            .set_by([place(line)])
            .change(advised, "removing it has no downside")
            .now(&line.value)
            .fires();
        answers.push((Some(line.place()), answer));
    }
    if answers.is_empty() {
        answers.push((
            None,
            holds(format!("{} lines of files set no dead key", lines.len())),
        ));
    }
    answers
}

/// H03
pub(crate) fn tcp_mem(case: &Case<'_>) -> Answer {
    const KEY: &str = "net.ipv4.tcp_mem";
    let lines: Vec<&Setting> = case.lines(KEY).collect();
    let memory = case.facts.system.memory_bytes.known().copied();
    let page = case
        .facts
        .system
        .page_bytes
        .known()
        .copied()
        .unwrap_or(4096);
    let in_memory = |value: &str| {
        let bytes = triple(value)?[2].saturating_mul(page);
        Some((Bytes(bytes), memory.is_some_and(|memory| bytes > memory)))
    };
    let running = case.text(KEY);
    if let Some(last) = lines.last() {
        let meaning = in_memory(&last.value).map_or_else(String::new, |(bytes, beyond)| {
            let than = match memory {
                Some(memory) if beyond => format!(", more than the {} of memory", Bytes(memory)),
                _ => String::new(),
            };
            format!("; the last of these is {bytes}{than}")
        });
        let sentence = format!(
            "a file sets tcp_mem = {}: its unit is pages of {page} bytes, and the kernel sizes it from the available \
             memory{meaning}",
            last.value
        );
        return Advice::new(sentence)
            .set_by(lines.iter().map(|line| place(line)))
            .by_hand(
                KEY,
                "remove",
                "the kernel's own value, sized from the available memory",
            )
            .now_where_known(running.ok())
            .fires();
    }
    case.facts.settings.ask()?;
    let value = running?;
    match (in_memory(&value), memory) {
        (Some((bytes, true)), Some(memory)) => Advice::new(format!(
            "tcp_mem[2] is {bytes}, more than the {} of memory: sockets can use up all memory",
            Bytes(memory)
        ))
        .by_hand(
            KEY,
            "the kernel's own, after the next boot",
            "its unit is pages",
        )
        .now(value)
        .fires(),
        (_, None) => Err(case.facts.system.memory_bytes.why().to_owned()),
        _ => holds("tcp_mem is the kernel's own"),
    }
}

/// H04
pub(crate) fn defaults_raised(case: &Case<'_>) -> Answers {
    const MOST: u64 = 1 << 20;
    let plain = |value: &str| value.parse::<u64>().is_ok_and(|bytes| bytes > MOST);
    let middle = |value: &str| triple(value).is_some_and(|values| values[1] > MOST);
    let judge = |key: &str| -> Answer {
        let three = key.starts_with("net.ipv4.");
        let found = wrong(
            case,
            key,
            |value| if three { middle(value) } else { plain(value) },
        )?;
        let Some(found) = found else {
            return holds(format!(
                "{} is at most 1 MiB",
                key.rsplit('.').next().unwrap_or(key)
            ));
        };
        let cost = if three {
            "harmful: every connection starts with this size, even idle ones"
        } else {
            "harmful: every UDP socket gets this size and may queue that much stale data"
        };
        let advised = match key {
            "net.ipv4.tcp_rmem" => Advised::by_hand(key, "131072 as the second of the three"),
            "net.ipv4.tcp_wmem" => Advised::by_hand(key, "16384 as the second of the three"),
            _ => Advised::sysctl(key, "212992"),
        };
        found.fires(
            key,
            cost,
            advised,
            "the kernel's default; autotuning starts from there",
        )
    };
    [
        "net.core.rmem_default",
        "net.core.wmem_default",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
    ]
    .map(|key| (Some(key.to_owned()), judge(key)))
    .into()
}

/// H05
pub(crate) fn backlog(case: &Case<'_>) -> Answer {
    const KEY: &str = "net.core.netdev_max_backlog";
    const MOST: u64 = 10_000;
    let found = wrong(case, KEY, |value| {
        value.parse::<u64>().is_ok_and(|most| most > MOST)
    })?;
    let Some(found) = found else {
        return holds("netdev_max_backlog is at most 10000");
    };
    let drops = case
        .facts
        .softnet
        .known()
        .map(|rows| rows.iter().map(|row| u64::from(row.dropped)).sum::<u64>());
    if let Some(drops) = drops.filter(|drops| *drops > 0) {
        return holds(format!(
            "{}, and CPUs have dropped {drops} packets at it",
            found.says(KEY)
        ));
    }
    let seen = match drops {
        Some(_) => "no CPU ever dropped a packet at it",
        None => "drops at it cannot be seen",
    };
    found.fires(
        KEY,
        &format!("dead on most hosts: only RPS, loopback, veth and drivers without NAPI use it, and {seen}"),
        Advised::sysctl(KEY, "1000"),
        "the kernel's default",
    )
}

/// The greatest values that a kernel gives itself.
struct Default {
    key: &'static str,
    /// The value from a version on, the newest first.
    values: &'static [((u32, u32), u64)],
    /// Whether it is the last of three and sized by memory: at most 1/128 of it (net/ipv4/tcp.c, `tcp_init`).
    by_memory: bool,
}

const DEFAULTS: [Default; 5] = [
    Default {
        key: "net.ipv4.tcp_rmem",
        values: &[((6, 16), 32 << 20), ((2, 6), 6 << 20)],
        by_memory: true,
    },
    Default {
        key: "net.ipv4.tcp_wmem",
        values: &[((2, 6), 4 << 20)],
        by_memory: true,
    },
    Default {
        key: "net.core.rmem_max",
        values: &[((6, 18), 4 << 20), ((2, 6), 212_992)],
        by_memory: false,
    },
    Default {
        key: "net.core.wmem_max",
        values: &[((6, 18), 4 << 20), ((2, 6), 212_992)],
        by_memory: false,
    },
    Default {
        key: "net.core.optmem_max",
        values: &[((6, 8), 128 << 10), ((2, 6), 20_480)],
        by_memory: false,
    },
];

/// H06
pub(crate) fn below_default(case: &Case<'_>) -> Answers {
    let judge = |one: &Default| -> Answer {
        let kernel = case.kernel()?;
        let default = one
            .values
            .iter()
            .find(|(since, _)| kernel >= *since)
            .map(|(_, value)| *value)
            .ok_or("the defaults of this kernel are not known")?;
        let default = if one.by_memory {
            // Pages that are free at boot count; a tenth less than all is on the safe side.
            let memory = *case.facts.system.memory_bytes.ask()?;
            default.min(memory / 128 / 10 * 9)
        } else {
            default
        };
        let last = |value: &str| {
            if one.by_memory {
                triple(value).map(|values| values[2])
            } else {
                value.parse().ok()
            }
        };
        let below = |value: &str| last(value).is_some_and(|value| value < default);
        let Some(found) = wrong(case, one.key, below)? else {
            return holds(format!(
                "{} is at least the kernel's {}",
                one.key,
                Bytes(default)
            ));
        };
        let tuned = case.lines(one.key).any(|line| line.owner == Owner::Tuned);
        let whose = if tuned {
            " (tuned's profile is older than the kernel's default)"
        } else {
            ""
        };
        let answer = found.fires(
            one.key,
            &format!("it is below the kernel's default {}{whose}", Bytes(default)),
            Advised::by_hand(one.key, "remove, or more than the kernel's default"),
            "the kernel's default is now larger",
        )?;
        Ok(answer)
    };
    DEFAULTS
        .iter()
        .map(|one| (Some(one.key.to_owned()), judge(one)))
        .collect()
}

/// H08 needs the keys that files set, each once.
pub(crate) fn keys_in_files(lines: &[Setting]) -> BTreeSet<&str> {
    lines.iter().map(|line| line.key.as_str()).collect()
}

/// Whether a check found something.
pub(crate) fn fired(answer: &Answer) -> bool {
    matches!(answer, Ok(Outcome::Fires { .. }))
}
