//! What a scenario asks that the disciplines netem and tbf cannot do.

use linerate_model::units::Nanos;

use super::types::{ModeWish, Scenario};
use crate::path::{Discipline, Loss, Probability, Settings};

/// The least share of packets above none that netem can delay longer than the others: one of the most entries that
/// its distribution has (`NETEM_DIST_MAX`, `net/sched/sch_netem.c`).
pub const LEAST_REORDERED: f64 = 1.0 / 16_384.0;

impl Scenario {
    /// The keys that the engine by netem cannot follow, each with the reason; empty where it can do all of it.
    pub fn beyond_netem(&self) -> Vec<String> {
        let mut all = Vec::new();
        let mut add = |key: &str, why: &str| {
            let words = format!("'{key}' ({why})");
            if !all.contains(&words) {
                all.push(words);
            }
        };
        if self.mode == ModeWish::Bulk {
            add(
                "mode = \"bulk\"",
                "it would lose and delay super-segments whole",
            );
        }
        if !self.path.cross.is_empty() {
            add(
                "cross",
                "competing traffic leaves the router by other interfaces than the test's",
            );
        }
        for (_, settings) in self.all_settings() {
            for (key, why) in beyond(settings) {
                add(key, why);
            }
        }
        all
    }
}

fn beyond(settings: &Settings) -> impl Iterator<Item = (&'static str, &'static str)> {
    let link = settings.bottleneck;
    let managed = link.is_some_and(|link| link.discipline != Discipline::DropTail);
    let marks = link.is_some_and(|link| link.ecn_threshold.is_some());
    let reorder = settings
        .reorder
        .filter(|one| one.fraction > Probability::NEVER);
    let seldom = reorder.is_some_and(|one| one.fraction.share() < LEAST_REORDERED);
    let jitters = reorder.is_some() && settings.jitter > Nanos::ZERO;
    [
        (
            settings.policer.is_some(),
            "policer",
            "tbf delays what exceeds its rate before it drops it",
        ),
        (managed, "codel", "its queue is drop-tail"),
        (marks, "ecn_threshold", "its queue marks nothing"),
        (
            matches!(settings.loss, Loss::Every(_)),
            "loss = { every = n }",
            "its losses are random",
        ),
        (
            settings.max_packet.is_some(),
            "max_packet",
            "it does not look at sizes",
        ),
        (
            seldom,
            "reorder",
            "a fraction of at least 0.000062 is the least",
        ),
        (
            jitters,
            "reorder with jitter",
            "its delays either keep the packets' order or do not",
        ),
    ]
    .into_iter()
    .filter_map(|(is, key, why)| is.then_some((key, why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> Result<Scenario, String> {
        Scenario::parse("x", &format!("name = \"x\"\n{text}")).map_err(|error| error.to_string())
    }

    #[test]
    fn what_netem_can_do_is_not_refused() {
        for path in [
            "rate = \"50M\"\nrtt = \"40ms\"\njitter = \"2ms\"\nqueue = \"100kB\"\nloss = 0.01\nduplicate = 0.01\n",
            "loss = { model = \"gilbert\", p = 0.01, r = 0.3 }\n",
            "reorder = { fraction = 0.01, delay = \"2ms\" }\n[[path.change]]\nat = \"1s\"\nrtt = \"5ms\"\n",
        ] {
            let scenario = scenario(&format!("engine = \"netem\"\n[path]\n{path}")).unwrap();
            assert_eq!(scenario.beyond_netem(), Vec::<String>::new(), "{path}");
        }
    }

    #[test]
    fn each_key_that_netem_cannot_follow_is_named_also_one_that_comes_later() {
        for (text, key) in [
            (
                "[path]\npolicer = { rate = \"30M\", burst = \"50kB\" }\n",
                "'policer'",
            ),
            ("[path]\nrate = \"10M\"\ncodel = true\n", "'codel'"),
            (
                "[path]\nrate = \"10M\"\necn_threshold = \"30kB\"\n",
                "'ecn_threshold'",
            ),
            ("[path]\nloss = { every = 100 }\n", "'loss = { every = n }'"),
            ("[path]\nmax_packet = { bytes = 1400 }\n", "'max_packet'"),
            ("mode = \"bulk\"\n", "'mode = \"bulk\"'"),
            ("[[path.cross]]\nkind = \"udp\"\nrate = \"1M\"\n", "'cross'"),
            (
                "[path]\nreorder = { fraction = 0.00005, delay = \"1ms\" }\n",
                "'reorder'",
            ),
            (
                "[path]\njitter = \"1ms\"\nreorder = { fraction = 0.1, delay = \"1ms\" }\n",
                "'reorder with jitter'",
            ),
            (
                "[path]\nrtt = \"1ms\"\n[[path.change]]\nat = \"1s\"\nloss = { every = 9 }\n",
                "'loss = { every = n }'",
            ),
        ] {
            let free = scenario(text).unwrap();
            let beyond = free.beyond_netem();
            assert!(
                beyond.len() == 1 && beyond[0].starts_with(key),
                "{beyond:?}"
            );
            let error = scenario(&format!("engine = \"netem\"\n{text}")).unwrap_err();
            assert!(
                error.contains("engine = \"netem\" cannot do") && error.contains(key),
                "{error}"
            );
        }
    }
}
