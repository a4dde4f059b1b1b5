//! Which alerts are muted: by a silence, or by maintenance.

use linerate_model::alert::{Alert, AlertPair, Silence};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;
use linerate_watch::watched::Watched;

/// The times in which nobody is alerted for some hosts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Pauses(Vec<Pause>);

#[derive(Debug, Clone, PartialEq)]
struct Pause {
    /// Empty = all.
    hosts: Vec<PlainText>,
    from_unix_s: u64,
    until_unix_s: u64,
}

impl Pauses {
    /// The maintenance of a plan.
    pub(super) fn of(watched: &Watched) -> Self {
        let name = |place: &usize| watched.hosts.get(*place).map(|host| host.name.clone());
        let pauses = watched.maintenance.iter().map(|one| Pause {
            hosts: one.hosts.iter().filter_map(name).collect(),
            from_unix_s: one.from_unix_s,
            until_unix_s: one.until_unix_s,
        });
        Self(pauses.collect())
    }

    /// Whether each pair of the alert that is not over has a host in maintenance.
    fn cover(&self, alert: &Alert, now: UnixMillis) -> bool {
        let now_s = now.0 / 1_000;
        let lasts = |pause: &&Pause| (pause.from_unix_s..pause.until_unix_s).contains(&now_s);
        let current: Vec<&Pause> = self.0.iter().filter(lasts).collect();
        let rests = |pair: &AlertPair| {
            current.iter().any(|pause| {
                let has = |host: &PlainText| pause.hosts.contains(host);
                pause.hosts.is_empty() || has(&pair.from) || has(&pair.to)
            })
        };
        !current.is_empty() && alert.current_pairs().into_iter().all(rests)
    }
}

/// When the next silence or maintenance that lasts now is over: what it mutes is due then. Absent = none lasts.
pub(super) fn next_end(
    silences: &[Silence],
    pauses: &Pauses,
    now: UnixMillis,
) -> Option<UnixMillis> {
    let silences = silences
        .iter()
        .map(|silence| (silence.since, silence.until));
    let moment = |seconds: u64| UnixMillis(seconds.saturating_mul(1_000));
    let pauses = pauses.0.iter();
    let pauses = pauses.map(|pause| (moment(pause.from_unix_s), moment(pause.until_unix_s)));
    let lasts = |(since, until): &(UnixMillis, UnixMillis)| (*since..*until).contains(&now);
    let ends = silences.chain(pauses).filter(lasts);
    ends.map(|(_, until)| until).min()
}

/// Whether nothing new is sent of an alert.
pub(super) fn muted(alert: &Alert, silences: &[Silence], pauses: &Pauses, now: UnixMillis) -> bool {
    pauses.cover(alert, now) || silences.iter().any(|silence| silence.covers(alert, now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::outbox::tests::alert;

    #[test]
    fn the_next_end_is_that_of_what_lasts_now() {
        let silence = |since: u64, until: u64| Silence {
            id: 1,
            matchers: Vec::new(),
            since: UnixMillis(since),
            until: UnixMillis(until),
            by: "ann".into(),
            why: "cable".into(),
        };
        let pauses = Pauses(vec![Pause {
            hosts: Vec::new(),
            from_unix_s: 100,
            until_unix_s: 200,
        }]);
        let all = [
            silence(0, 250_000),
            silence(0, 180_000),
            silence(170_000, 171_000),
        ];
        let next = |now: u64| next_end(&all, &pauses, UnixMillis(now)).map(|end| end.0);
        assert_eq!(next(150_000), Some(180_000));
        assert_eq!(next(180_000), Some(200_000));
        assert_eq!(next(200_000), Some(250_000));
        assert_eq!(next(250_000), None);
    }

    #[test]
    fn maintenance_mutes_an_alert_whose_pairs_all_have_a_host_in_it() {
        let pauses = |hosts: &[&str]| {
            Pauses(vec![Pause {
                hosts: hosts.iter().map(|host| PlainText::from(*host)).collect(),
                from_unix_s: 100,
                until_unix_s: 200,
            }])
        };
        let alert = alert(&[("a", "b"), ("a", "c")]);
        let is_muted = |hosts: &[&str], second: u64| {
            muted(&alert, &[], &pauses(hosts), UnixMillis(second * 1_000))
        };
        assert!(is_muted(&["a"], 100));
        assert!(is_muted(&["b", "c"], 199));
        assert!(is_muted(&[], 150), "all hosts");
        assert!(!is_muted(&["b"], 150), "a > c is loud");
        assert!(!is_muted(&["a"], 200) && !is_muted(&["a"], 99));
        assert!(!muted(&alert, &[], &Pauses::default(), UnixMillis(150_000)));
    }
}
