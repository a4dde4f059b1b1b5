//! What the rows of a sweep amount to.

use linerate_analysis::statistics::mean;
use linerate_lab::scenario::{HostSpec, Scenario, Way};
use linerate_model::bars::Limit;
use linerate_model::plan::Protocol;
use serde::Serialize;

use super::{Factor, Row, Setup, Sweep};
use crate::interval::Interval;
use crate::measured::BY_NETEM;
use crate::prove::{Effect, Verdict, spelled};
use crate::random::Random;

/// TCP over IPv4 and IPv6, both with timestamps: headers of a segment within the MTU, bytes.
const HEADERS_V4: u32 = 20 + 20 + 12;
const HEADERS_V6: u32 = 40 + 20 + 12;
/// Resamples of effects are drawn apart from those of cells.
const OF_EFFECTS: u64 = 1 << 40;

/// What a sweep shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Results {
    /// The sweep's name.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// Decided the order, and the resamples.
    pub seed: u64,
    /// What varied.
    pub factors: Vec<Factor>,
    /// Runs that are still to be made.
    pub left: usize,
    /// One for each combination of levels, in the order of the factors.
    pub cells: Vec<CellResult>,
    /// What each level does against its factor's first.
    pub effects: Vec<FactorEffect>,
}

/// What a cell shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellResult {
    /// The level of each factor.
    pub levels: Vec<usize>,
    /// Goodput of each repetition that counts, bit/s.
    pub runs: Vec<f64>,
    /// Their mean; `None` where there is none.
    pub goodput_bps: Option<f64>,
    /// Its 95 % interval; `None` of fewer than three runs.
    pub interval: Option<Interval>,
    /// Most that the lab's path carries with the cell's MTU, bit/s; `None` where that is not known.
    pub carries_bps: Option<f64>,
    /// A buffer that bounds it, where the cell names one that does.
    pub limit: Option<LimitOf>,
    /// Runs that count although something speaks against them.
    pub doubtful: usize,
    /// The finding that most runs had first.
    pub finding: Option<String>,
    /// Why there is no figure, or what is to be known of it.
    pub remark: Option<String>,
}

/// A limit that is known beforehand.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitOf {
    /// What limits.
    pub name: String,
    /// The most that can come, bit/s.
    pub bps: f64,
}

impl From<LimitOf> for Limit {
    fn from(limit: LimitOf) -> Self {
        Self {
            name: limit.name,
            bps: limit.bps,
        }
    }
}

/// What a level does against its factor's first, over all combinations of the other factors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactorEffect {
    /// Name of the factor.
    pub factor: String,
    /// Label of the level.
    pub level: String,
    /// The first level.
    pub against: String,
    /// Combinations of the other factors that were measured with both.
    pub combinations: usize,
    /// The mean of all.
    pub effect: Option<Effect>,
    /// What that means.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// In words.
    pub sentence: String,
    /// Where it does least and most: the share, and the other factors' levels there.
    pub least: Option<(f64, String)>,
    /// Where it does most.
    pub most: Option<(f64, String)>,
}

/// What the rows amount to.
pub fn results(sweep: &Sweep, rows: &[Row], left: usize) -> Results {
    let cells = (0..sweep.cells.len())
        .map(|cell| cell_result(sweep, cell, rows))
        .collect();
    Results {
        name: sweep.name.clone(),
        about: sweep.about.clone(),
        seed: sweep.seed,
        factors: sweep.factors.clone(),
        left,
        cells,
        effects: effects(sweep, rows),
    }
}

/// The row of a cell's repetition that counts: the first that nothing disturbed, else the last with a figure.
pub(super) fn counting(rows: &[Row], cell: usize, repetition: u32) -> Option<&Row> {
    let of = || {
        rows.iter().filter(move |row| {
            row.cell == cell && row.repetition == repetition && row.impossible.is_none()
        })
    };
    of().find(|row| !row.measured.is_doubtful())
        .or_else(|| of().rfind(|row| row.measured.goodput_bps.is_some()))
}

fn cell_result(sweep: &Sweep, cell: usize, rows: &[Row]) -> CellResult {
    let setup = &sweep.cells[cell];
    let counted: Vec<&Row> = (1..=sweep.repetitions)
        .filter_map(|repetition| counting(rows, cell, repetition))
        .filter(|row| row.measured.goodput_bps.is_some())
        .collect();
    let runs: Vec<f64> = counted
        .iter()
        .filter_map(|row| row.measured.goodput_bps)
        .collect();
    let impossible = rows
        .iter()
        .filter(|row| row.cell == cell)
        .find_map(|row| row.impossible.clone());
    let possible = impossible.is_none() && !runs.is_empty();
    let seed = Random::new(sweep.seed, cell as u64).bits();
    CellResult {
        levels: setup.levels.clone(),
        goodput_bps: possible.then(|| mean(&runs)),
        interval: Interval::of_mean(&runs, seed).filter(|_| possible),
        carries_bps: setup.scenario.as_ref().and_then(carries),
        limit: setup.scenario.as_ref().and_then(buffer_limit),
        doubtful: counted
            .iter()
            .filter(|row| row.measured.is_doubtful())
            .count(),
        finding: most_frequent(&counted),
        remark: remark(setup, rows, cell, impossible, &runs),
        runs,
    }
}

fn remark(
    setup: &Setup,
    rows: &[Row],
    cell: usize,
    impossible: Option<String>,
    runs: &[f64],
) -> Option<String> {
    if let Some(why) = impossible {
        return Some(format!("impossible: {why}"));
    }
    let of_cell = || rows.iter().filter(|row| row.cell == cell);
    let failed = of_cell()
        .filter_map(|row| row.measured.failed.clone())
        .next_back();
    if let Some(why) = failed.filter(|_| runs.is_empty()) {
        return Some(format!("failed: {why}"));
    }
    let by_netem = of_cell().any(|row| row.measured.is_by_netem());
    let known = [
        setup.without_meaning.clone(),
        by_netem.then(|| BY_NETEM.to_owned()),
    ];
    let known: Vec<String> = known.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.join("; "))
}

fn most_frequent(rows: &[&Row]) -> Option<String> {
    let findings = || rows.iter().filter_map(|row| row.measured.finding.as_ref());
    let often = |finding: &String| findings().filter(|other| *other == finding).count();
    findings().max_by_key(|finding| often(finding)).cloned()
}

/// Goodput that fills the lab's path, one direction of TCP: its rate without the headers of full segments.
fn carries(scenario: &Scenario) -> Option<f64> {
    let [way] = scenario.test.ways() else {
        return None;
    };
    if scenario.test.plan().ok()?.protocol == Protocol::Udp {
        return None;
    }
    let settings = scenario.path.direction(*way).settings;
    let rate = settings.bottleneck?.rate;
    let mtu = scenario.sender.mtu.min(scenario.receiver.mtu);
    let headers = match scenario.family {
        linerate_lab::scenario::Family::Ipv4 => HEADERS_V4,
        linerate_lab::scenario::Family::Ipv6 => HEADERS_V6,
    };
    let payload = f64::from(mtu.checked_sub(headers)?);
    Some(rate.0 as f64 * payload / f64::from(mtu + settings.overhead))
}

/// The most that the smaller of both buffers lets through, where the cell names them: as much as fits into it each
/// round trip. What the kernel needs of it for its own structures comes off.
fn buffer_limit(scenario: &Scenario) -> Option<LimitOf> {
    let [way] = scenario.test.ways() else {
        return None;
    };
    let (from, to) = match way {
        Way::Forward => (&scenario.sender, &scenario.receiver),
        Way::Back => (&scenario.receiver, &scenario.sender),
    };
    let most = |host: &HostSpec, key: &str, own: Option<[u64; 3]>| {
        let text = host.sysctl.get(key);
        let told = text.and_then(|text| text.split_whitespace().nth(2)?.parse::<u64>().ok());
        told.or(own.map(|sizes| sizes[2]))
    };
    let buffers = [
        (
            "send buffer",
            most(from, "net.ipv4.tcp_wmem", from.tcp_wmem),
        ),
        ("receive buffer", most(to, "net.ipv4.tcp_rmem", to.tcp_rmem)),
    ];
    let (name, bytes) = buffers
        .into_iter()
        .filter_map(|(name, bytes)| Some((name, bytes?)))
        .min_by_key(|(_, bytes)| *bytes)?;
    let rtt = scenario.path.rtt();
    let streams = f64::from(scenario.test.plan().ok()?.streams);
    let bps = streams * bytes as f64 * 8.0 / rtt.as_secs_f64();
    let carries = carries(scenario)?;
    (bps.is_finite() && bps < carries).then(|| LimitOf {
        name: format!("{name} / RTT"),
        bps,
    })
}

fn effects(sweep: &Sweep, rows: &[Row]) -> Vec<FactorEffect> {
    let mut all = Vec::new();
    for (at, factor) in sweep.factors.iter().enumerate() {
        for level in 1..factor.labels.len() {
            all.push(effect(sweep, rows, at, level));
        }
    }
    all
}

/// A combination of the other factors: its name, and the logarithms of the ratios of its repetitions.
struct Pairs {
    name: String,
    logs: Vec<f64>,
}

fn effect(sweep: &Sweep, rows: &[Row], at: usize, level: usize) -> FactorEffect {
    let factor = &sweep.factors[at];
    let pairs: Vec<Pairs> = sweep
        .cells
        .iter()
        .enumerate()
        .filter(|(_, setup)| setup.levels[at] == level)
        .filter_map(|(with, setup)| pairs_of(sweep, rows, at, with, setup))
        .collect();
    // The mean of all combinations; how well it is known is how much repetitions of one combination differ.
    let means: Vec<f64> = pairs.iter().map(|pairs| mean(&pairs.logs)).collect();
    let whole = mean(&means);
    let values: Vec<f64> = pairs
        .iter()
        .zip(&means)
        .flat_map(|(pairs, mean)| {
            let count = pairs.logs.len() as f64;
            // A mean of its own takes a degree of freedom from each combination.
            let wider = (count / (count - 1.0).max(1.0)).sqrt();
            pairs
                .logs
                .iter()
                .map(move |log| (whole + wider * (log - mean)).exp())
        })
        .collect();
    let repeated = pairs.iter().any(|pairs| pairs.logs.len() > 1);
    let seed = Random::new(sweep.seed, OF_EFFECTS + (at * 1000 + level) as u64).bits();
    let effect = Effect::of(&values, seed, false).filter(|_| repeated);
    let verdict = effect.map_or(Verdict::Undecided { more: None }, |effect| {
        effect.verdict(sweep.least)
    });
    let extreme = |which: fn(f64, f64) -> bool| {
        let mut found: Option<(f64, String)> = None;
        for (pairs, mean) in pairs.iter().zip(&means) {
            if found.as_ref().is_none_or(|(best, _)| which(*mean, *best)) {
                found = Some((*mean, pairs.name.clone()));
            }
        }
        found.map(|(log, name)| (log.exp_m1(), name))
    };
    FactorEffect {
        factor: factor.name.clone(),
        level: factor.labels[level].clone(),
        against: factor.labels[0].clone(),
        combinations: pairs.len(),
        effect,
        verdict,
        sentence: effect.map_or_else(
            || "cannot tell: too few repetitions for an interval".to_owned(),
            |effect| spelled(effect, verdict, sweep.least),
        ),
        least: extreme(|new, best| new < best),
        most: extreme(|new, best| new > best),
    }
}

fn pairs_of(sweep: &Sweep, rows: &[Row], at: usize, with: usize, setup: &Setup) -> Option<Pairs> {
    let mut first = setup.levels.clone();
    first[at] = 0;
    let without = sweep.cells.iter().position(|cell| cell.levels == first)?;
    let rate = |cell, repetition| counting(rows, cell, repetition)?.measured.goodput_bps;
    let logs: Vec<f64> = (1..=sweep.repetitions)
        .filter_map(|repetition| Some((rate(with, repetition)? / rate(without, repetition)?).ln()))
        .collect();
    let others = sweep.factors.iter().zip(&setup.levels).enumerate();
    let named: Vec<String> = others
        .filter(|(place, _)| *place != at)
        .map(|(_, (factor, level))| format!("{} {}", factor.name, factor.labels[*level]))
        .collect();
    (!logs.is_empty()).then(|| Pairs {
        name: named.join(", "),
        logs,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Course, figure, table};
    use super::*;
    use crate::interval::tests::normal;
    use crate::measured::Measured;

    pub(in super::super) const TEXT: &str = "name = \"x\"\nrepetitions = 3\n[lab]\nrate = \"400M\"\n[[factor]]\nname = \"RTT\"\nvary = \"path.rtt\"\nlevels = [\"6ms\", \"24ms\"]\n[[factor]]\nname = \"MTU\"\nvary = \"interface.eth0.mtu\"\nlevels = [1500, 9000]\n[[factor]]\nname = \"txqueuelen\"\nvary = \"interface.eth0.txqueuelen\"\nlevels = [1000, 10000]\n";

    pub(in super::super) fn measured(sweep: &Sweep) -> Vec<Row> {
        let mut noise = normal(4);
        let mut course = Course::new(sweep, Vec::new());
        while let Some(turn) = course.upcoming() {
            let levels = &sweep.cells[turn.cell].levels;
            let of = |level: usize, values: [f64; 2]| values[levels[level]];
            let rate = 3e8 * of(0, [1.0, 0.5]) * of(1, [1.0, 1.1]);
            let rate = rate * (1.0 + 0.003 * noise.next().unwrap());
            course.took(Row {
                cell: turn.cell,
                repetition: turn.repetition,
                attempt: turn.attempt,
                started_at_unix_ms: 0,
                impossible: None,
                measured: Measured {
                    goodput_bps: Some(rate),
                    ..Measured::default()
                },
            });
        }
        course.rows().to_vec()
    }

    #[test]
    fn effects_of_levels_are_told_from_the_noise() {
        let sweep = Sweep::parse("x.toml", TEXT, &|_| unreachable!()).unwrap();
        let results = results(&sweep, &measured(&sweep), 0);
        let [rtt, mtu, queue] = &results.effects[..] else {
            panic!("{:?}", results.effects);
        };
        assert_eq!(rtt.verdict, Verdict::Worse);
        assert!(
            rtt.sentence.starts_with("−49.9") || rtt.sentence.starts_with("−50"),
            "{}",
            rtt.sentence
        );
        assert_eq!(mtu.verdict, Verdict::Better);
        assert_eq!(queue.verdict, Verdict::NoEffect, "{}", queue.sentence);
        assert_eq!(queue.combinations, 4);
    }

    #[test]
    fn a_cell_has_its_path_s_limit_and_its_remark() {
        let sweep = Sweep::parse("x.toml", TEXT, &|_| unreachable!()).unwrap();
        let results = results(&sweep, &measured(&sweep), 0);
        // 1448 of 1538 bytes, 8948 of 9038.
        assert!((results.cells[0].carries_bps.unwrap() - 376.59e6).abs() < 1e4);
        assert!((results.cells[2].carries_bps.unwrap() - 396.02e6).abs() < 1e4);
        assert!(
            results.cells[0]
                .remark
                .as_ref()
                .unwrap()
                .contains("noqueue")
        );
        assert!(results.cells[0].interval.unwrap().low > 2.9e8);
    }

    #[test]
    fn a_cell_says_that_netem_carried_it() {
        let sweep = Sweep::parse("x.toml", TEXT, &|_| unreachable!()).unwrap();
        let mut rows = measured(&sweep);
        for row in rows.iter_mut().filter(|row| row.cell == 2) {
            row.measured.engine = Some("netem".to_owned());
        }
        for row in rows.iter_mut().filter(|row| row.cell == 0) {
            row.measured.engine = Some("NFQUEUE".to_owned());
        }
        let results = results(&sweep, &rows, 0);
        let says = |cell: usize, word: &str| {
            let remark = results.cells[cell].remark.as_ref();
            remark.is_some_and(|remark| remark.contains(word))
        };
        assert!(says(2, "how late they left is not known") && says(2, "noqueue"));
        assert!(says(0, "noqueue") && !says(0, "netem"));
    }

    #[test]
    fn an_impossible_cell_has_no_figure_anywhere() {
        let sweep = Sweep::parse("x.toml", TEXT, &|_| unreachable!()).unwrap();
        let mut rows = measured(&sweep);
        rows.retain(|row| row.cell != 3);
        rows.push(Row {
            cell: 3,
            repetition: 1,
            attempt: 1,
            started_at_unix_ms: 0,
            impossible: Some("no such MTU".to_owned()),
            measured: Measured::default(),
        });
        let results = results(&sweep, &rows, 0);
        assert_eq!(results.cells[3].goodput_bps, None);
        assert!(table(&results).contains("impossible: no such MTU"));
        let figures = figure(&sweep, &results);
        let bar = &figures[0].rows[0][0].groups[1].bars[1];
        assert_eq!(bar.bps, None);
        assert!(bar.remark.is_some());
    }
}
