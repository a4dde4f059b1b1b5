//! What limits a resynchronisation of DRBD.
//!
//! Its target's controller runs ten times a second (`drbd_rs_controller` in `drbd_worker.c` of 8.4,
//! `drbd_sender.c` of 9):
//! it keeps `c-fill-target` in flight, asks for at most `c-max-rate`, and for at most `max-buffers` pages. With
//! `c-plan-ahead 0` it asks for `resync-rate` and nothing else. The source delays its replies while the application
//! waits and the rate is above `c-min-rate` (`drbd_rs_c_min_rate_throttle`).

use linerate_model::storage::DrbdSettings;
use linerate_model::transcript::Given;
use linerate_model::units::{Bytes, grouped, whole};

/// From this share on a cap is reached: the measured ones were 96 and 97 %.
const CAP: f64 = 0.93;
/// … and from this share on where the target asks for all of the cap: it does that ten times a second, or less often where its CPU
/// is busy. Had less arrived than was asked for, the controller would ask for less as soon as `c-fill-target` is in flight.
const ASKED: f64 = 0.75;
/// From this share of `resync-rate` on a fixed rate is reached.
const FIXED: f64 = 0.9;
/// From this share of the link on the network is the limit.
const LINK: f64 = 0.9;
/// Below so many times `c-min-rate` an application that waits is the limit.
const TIMES_LEAST: f64 = 5.0;
/// A page of `max-buffers`, of which 8.4 has half in flight at most (`drbd_rs_number_requests`), KiB.
const PAGE_KIB: f64 = 4.0;
/// A disk where a request takes this share of its turnaround, or more, is what makes it long.
const LONG: f64 = 0.5;

/// What was seen of a resynchronisation, KiB/s.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Seen {
    /// What was synchronised.
    pub(crate) rate: f64,
    /// What the target's controller asked for.
    pub(crate) want: Option<f64>,
    /// The application waits for the device, or writes to it.
    pub(crate) application: bool,
    /// What the link carries.
    pub(crate) link: Option<f64>,
    /// A disk below one of the ends that always had requests waiting.
    pub(crate) disk: Option<SlowDisk>,
    /// What limited the connection between the ends, as its finding says.
    pub(crate) path: Option<String>,
    /// The module is version 9.
    pub(crate) is_nine: bool,
}

/// A disk that always had requests waiting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SlowDisk {
    /// `source` or `target`.
    pub(crate) end: &'static str,
    /// The kernel's name of it, and the host's.
    pub(crate) name: String,
    /// Share of the time in which it was busy.
    pub(crate) busy: f64,
    /// Requests under way on average.
    pub(crate) queue: f64,
    /// What it did, requests/s and byte/s.
    pub(crate) did: [f64; 2],
}

impl SlowDisk {
    /// How long a request took, by Little's law, s.
    fn request_s(&self) -> f64 {
        self.queue / self.did[0].max(f64::MIN_POSITIVE)
    }
}

/// The limit, and what would limit next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Limit {
    /// `resync-rate`, as `c-plan-ahead` is 0.
    Fixed(f64),
    /// `c-max-rate`.
    Cap(f64),
    /// The application, which goes first.
    Application(f64),
    /// A disk at one of the ends.
    Disk(SlowDisk),
    /// The link.
    Network(f64),
    /// What limits the connection, as its finding says.
    Path(String),
    /// The target asks for the most that it may, and less arrives.
    Answer(f64),
    /// `c-fill-target` or `max-buffers` over the time that a request takes.
    FillTarget {
        /// Kept in flight, KiB.
        fill_kib: f64,
        /// Time that a request takes, s.
        turnaround_s: f64,
    },
}

/// The limit by both ends' settings; `None` where a setting is missing.
pub(crate) fn limit(seen: &Seen, settings: &DrbdSettings) -> Option<Limit> {
    let Seen { rate, want, .. } = *seen;
    let positive = |value: Option<f64>| value.filter(|value| *value > 0.0);
    let adapts = settings.plan_ahead_tenths? > 0.0;
    // The most that is asked for.
    let most = if adapts {
        let most = positive(settings.max_rate_kib_s)?;
        if rate >= CAP * most {
            return Some(Limit::Cap(most));
        }
        most
    } else {
        let fixed = positive(settings.resync_rate_kib_s)?;
        if rate >= FIXED * fixed {
            return Some(Limit::Fixed(fixed));
        }
        fixed
    };
    let fill_kib = in_flight(settings, seen);
    let turnaround = fill_kib.filter(|_| adapts && rate > 0.0);
    let turnaround = turnaround.map(|fill| fill / rate);
    let is_long = |disk: &&SlowDisk| {
        turnaround.is_none_or(|turnaround| disk.request_s() >= LONG * turnaround)
    };
    if let Some(disk) = seen.disk.as_ref().filter(is_long) {
        return Some(Limit::Disk(disk.clone()));
    }
    if let Some(link) = positive(seen.link).filter(|link| rate >= LINK * link) {
        return Some(Limit::Network(link));
    }
    if let Some(path) = &seen.path {
        return Some(Limit::Path(path.clone()));
    }
    let least = settings.min_rate_kib_s?;
    // What the application writes becomes equal at both ends, too: what is asked for is the resynchronisation's alone.
    let copied = want.map_or(rate, |want| want.min(rate));
    if seen.application && copied < TIMES_LEAST * least {
        return Some(Limit::Application(least));
    }
    if !adapts || want.is_some_and(|want| want >= CAP * most) {
        // Beyond `max-buffers` the controller asks, and nothing is sent.
        let is_capped = adapts && fill_kib == settings.fill_target_kib && rate >= ASKED * most;
        return Some(if is_capped {
            Limit::Cap(most)
        } else {
            Limit::Answer(want.unwrap_or(most))
        });
    }
    let fill_kib = fill_kib?;
    (rate > 0.0).then(|| Limit::FillTarget {
        fill_kib,
        turnaround_s: fill_kib / rate,
    })
}

/// What a target keeps in flight at most, KiB.
pub(crate) fn in_flight(settings: &DrbdSettings, seen: &Seen) -> Option<f64> {
    let fill = settings.fill_target_kib.filter(|fill| *fill > 0.0)?;
    Some(buffers(settings, seen).map_or(fill, |buffers| fill.min(buffers)))
}

/// What `max-buffers` lets be in flight, KiB.
fn buffers(settings: &DrbdSettings, seen: &Seen) -> Option<f64> {
    let pages = settings.max_buffers.filter(|pages| *pages > 0.0)?;
    Some(pages * page_kib(seen))
}

/// What a page of `max-buffers` lets be in flight, KiB.
const fn page_kib(seen: &Seen) -> f64 {
    if seen.is_nine {
        PAGE_KIB
    } else {
        PAGE_KIB / 2.0
    }
}

/// The setting that bounds it.
pub(crate) fn bound(settings: &DrbdSettings, seen: &Seen) -> &'static str {
    if in_flight(settings, seen) == settings.fill_target_kib {
        "c-fill-target"
    } else {
        "max-buffers"
    }
}

/// What the link carries as it was given, KiB/s.
pub(crate) fn link(given: &Given) -> Option<f64> {
    given.link.map(|link| link.0 as f64 / 8192.0)
}

/// Whole KiB or KiB/s.
pub(crate) fn kib(value: f64) -> String {
    grouped(whole(value))
}

/// The limit in words, with the evidence and what would limit next.
pub(crate) fn words(limit: &Limit, seen: &Seen, settings: &DrbdSettings) -> String {
    let share = |of: f64| seen.rate / of * 100.0;
    let asked = seen.want.map_or_else(String::new, |want| {
        format!("; the target asks for {} KiB/s", kib(want))
    });
    match limit {
        Limit::Fixed(fixed) => format!(
            "resync-rate limits it: c-plan-ahead is 0, and {} KiB/s are {:.0} % of the fixed {} KiB/s{asked}. Next: \
             set c-plan-ahead to 20, then c-max-rate ({} KiB/s) would limit, or c-fill-target",
            kib(seen.rate),
            share(*fixed),
            kib(*fixed),
            settings
                .max_rate_kib_s
                .map_or_else(|| "not printed".to_owned(), kib),
        ),
        Limit::Cap(cap) => format!(
            "c-max-rate limits it: {} KiB/s are {:.0} % of its {} KiB/s{asked}. Next would be {}",
            kib(seen.rate),
            share(*cap),
            kib(*cap),
            behind_cap(seen),
        ),
        Limit::Application(least) => format!(
            "the application limits it: it uses the device, so the source delays the resynchronisation down to \
             c-min-rate ({} KiB/s), and {} KiB/s are below {TIMES_LEAST} times that{asked}. Next, without the \
             application, would be {} or c-fill-target",
            kib(*least),
            kib(seen.rate),
            most(settings),
        ),
        Limit::Network(link) => format!(
            "the network limits it: {} KiB/s are {:.0} % of the link's {} KiB/s{asked}. Next would be {}",
            kib(seen.rate),
            share(*link),
            kib(*link),
            most(settings),
        ),
        Limit::Disk(disk) => {
            let [per_s, bytes_per_s] = disk.did;
            format!(
                "the disk of the {} limits it: {} was busy {:.0} % of the time with {:.1} requests waiting or in service, \
                 at {per_s:.0} requests and {} a second; {} KiB/s are synchronised{asked}. Next would be {}, \
                 the network or c-fill-target",
                disk.end,
                disk.name,
                disk.busy * 100.0,
                disk.queue,
                Bytes(whole(bytes_per_s)),
                kib(seen.rate),
                most(settings),
            )
        }
        Limit::Path(sentence) => format!(
            "the connection limits it at {} KiB/s{asked}. {sentence}. Next would be {}",
            kib(seen.rate),
            most(settings),
        ),
        Limit::Answer(most) => format!(
            "the target asks for {} KiB/s, the most that its settings allow, but {} KiB/s arrive. The candidates are the network, a disk \
             at either end, max-buffers, and the source, which delays it for its application",
            kib(*most),
            kib(seen.rate),
        ),
        Limit::FillTarget {
            fill_kib,
            turnaround_s,
        } => {
            let (next, by) = next(seen, settings, *turnaround_s);
            let bound = bound(settings, seen);
            let needed = next * turnaround_s;
            let needed = if bound == "max-buffers" {
                grouped(whole((needed / page_kib(seen)).ceil()))
            } else {
                format!("{} KiB", kib(needed))
            };
            format!(
                "{bound} limits it: {} KiB in flight over {} KiB/s is a turnaround of {:.1} ms{asked}. Next would be \
                 {by} ({} KiB/s), from a {bound} of {needed} on",
                kib(*fill_kib),
                kib(seen.rate),
                turnaround_s * 1000.0,
                kib(next),
            )
        }
    }
}

/// The setting that bounds what is asked for.
fn most(settings: &DrbdSettings) -> String {
    let (name, rate) = match settings.plan_ahead_tenths {
        Some(0.0) => ("resync-rate", settings.resync_rate_kib_s),
        _ => ("c-max-rate", settings.max_rate_kib_s),
    };
    match rate {
        Some(rate) => format!("{name} ({} KiB/s)", kib(rate)),
        None => name.to_owned(),
    }
}

fn behind_cap(seen: &Seen) -> String {
    match seen.link {
        Some(link) => format!("the link ({} KiB/s), or a disk", kib(link)),
        None => {
            "the link, a disk or c-fill-target, which these figures cannot tell apart".to_owned()
        }
    }
}

/// What would limit with a larger fill target: the least of what is known, KiB/s.
fn next(seen: &Seen, settings: &DrbdSettings, turnaround_s: f64) -> (f64, &'static str) {
    let buffers = buffers(settings, seen)
        .filter(|_| bound(settings, seen) != "max-buffers")
        .map(|kib| kib / turnaround_s);
    [
        (settings.max_rate_kib_s, "c-max-rate"),
        (seen.link, "the link"),
        (buffers, "max-buffers"),
    ]
    .into_iter()
    .filter_map(|(rate, name)| Some((rate?, name)))
    .min_by(|one, other| one.0.total_cmp(&other.0))
    .unwrap_or((seen.rate, "nothing that is known"))
}

/// What may limit, where not all is known: each with its figure.
pub(crate) fn candidates(seen: &Seen, settings: Option<&DrbdSettings>) -> String {
    let own = DrbdSettings::defaults();
    let (settings, whose) = match settings {
        Some(settings) => (settings, ""),
        None => (&own, " by default"),
    };
    let mut words = Vec::new();
    if seen.application {
        words.push("the application, which uses the device".to_owned());
    }
    if settings.plan_ahead_tenths == Some(0.0) {
        let rate = settings.resync_rate_kib_s.map_or(0.0, |rate| rate);
        words.push(format!("resync-rate ({} KiB/s, fixed)", kib(rate)));
    } else {
        if let Some(cap) = settings.max_rate_kib_s.filter(|cap| *cap > 0.0) {
            let reached = seen.rate / cap * 100.0;
            words.push(format!(
                "c-max-rate ({} KiB/s{whose}, {reached:.0} % reached)",
                kib(cap)
            ));
        }
        if let Some(fill) = in_flight(settings, seen).filter(|_| seen.rate > 0.0) {
            words.push(format!(
                "{} ({} KiB{whose}, if a request takes {:.1} ms)",
                bound(settings, seen),
                kib(fill),
                fill / seen.rate * 1000.0
            ));
        }
    }
    words.push(match &seen.disk {
        Some(disk) => format!(
            "{}, where requests always waited; the network, or the disk of the other end",
            disk.name
        ),
        None => "the network, or a disk at either end".to_owned(),
    });
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(rate: f64, want: f64) -> Seen {
        Seen {
            rate,
            want: Some(want),
            ..Seen::default()
        }
    }

    #[test]
    fn each_limit_is_named_by_its_own_evidence() {
        let defaults = DrbdSettings::defaults();
        let fixed = DrbdSettings {
            plan_ahead_tenths: Some(0.0),
            resync_rate_kib_s: Some(2048.0),
            ..defaults.clone()
        };
        assert_eq!(
            limit(&seen(1987.0, 2048.0), &fixed),
            Some(Limit::Fixed(2048.0))
        );
        let capped = DrbdSettings {
            max_rate_kib_s: Some(4096.0),
            ..defaults.clone()
        };
        assert_eq!(
            limit(&seen(3940.0, 4080.0), &capped),
            Some(Limit::Cap(4096.0))
        );
        // The target asks for the cap, and somewhat less arrives, or much less.
        assert_eq!(
            limit(&seen(3380.0, 4080.0), &capped),
            Some(Limit::Cap(4096.0))
        );
        assert_eq!(
            limit(&seen(1000.0, 4080.0), &capped),
            Some(Limit::Answer(4080.0))
        );
        assert_eq!(
            limit(&seen(1000.0, 2048.0), &fixed),
            Some(Limit::Answer(2048.0))
        );
        let few = DrbdSettings {
            fill_target_kib: Some(10_240.0),
            max_buffers: Some(128.0),
            ..defaults.clone()
        };
        let small = limit(&seen(5120.0, 8360.0), &few).unwrap();
        let said = words(&small, &seen(5120.0, 8360.0), &few);
        assert!(
            said.starts_with("max-buffers limits it: 256 KiB in flight over 5,120 KiB/s is a turnaround of 50.0 ms"),
            "{said}"
        );
        assert!(said.ends_with("from a max-buffers of 2,560 on"), "{said}");
        let busy = Seen {
            application: true,
            ..seen(760.0, 800.0)
        };
        assert_eq!(limit(&busy, &defaults), Some(Limit::Application(250.0)));
        let linked = Seen {
            link: Some(5400.0),
            ..seen(5296.0, 8360.0)
        };
        assert_eq!(limit(&linked, &defaults), Some(Limit::Network(5400.0)));
        let fill = limit(&seen(5000.0, 8360.0), &defaults);
        assert_eq!(
            fill,
            Some(Limit::FillTarget {
                fill_kib: 50.0,
                turnaround_s: 0.01
            })
        );
        // max-buffers × 4 KiB over 10 ms are more than the cap.
        let said = words(&fill.unwrap(), &seen(5000.0, 8360.0), &defaults);
        assert!(
            said.contains(
                "Next would be c-max-rate (102,400 KiB/s), from a c-fill-target of 1,024 KiB on"
            ),
            "{said}"
        );
    }

    #[test]
    fn without_a_setting_there_is_no_answer() {
        assert_eq!(limit(&seen(1.0, 1.0), &DrbdSettings::default()), None);
    }
}
