//! Many runs in groups by the value of one fact: what each group gave, and what else changed with that fact.
//!
//! A group is a side of a comparison, and its effect is that side's difference from the first, with an interval between
//! runs. The groups stand in the order of their first runs, so that the first is what there was before.

use std::collections::{BTreeMap, BTreeSet};

use linerate_analysis::statistics;
use linerate_model::nearest::nearest;
use linerate_model::record::Flow;
use serde::Serialize;

use super::settings::{ENDS, facts_of_run};
use super::{Difference, Side, direction, letter};
use crate::view::RunView;

/// Facts that are two views of one thing, so that one never changes without the other.
const ONE_THING: [[&str; 2]; 1] = [["kernel", "kernel-build"]];
/// What the kernels granted a direction is what came of the settings, and not one of them.
const GRANTED: [&str; 2] = ["client_to_server.", "server_to_client."];
/// Groups are compared within so many values; a fact with more is not one that tells kinds apart.
const MOST_GROUPS: usize = 64;

/// Runs in groups.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grouped {
    /// The fact: `kernel`, `client.driver`, `plan.streams`.
    pub by: String,
    /// The smallest effect of interest, a share.
    pub least: f64,
    /// The groups, the one with the earliest run first.
    pub groups: Vec<Group>,
    /// Runs in which the fact is not known; they are in no group.
    pub unknown: usize,
}

/// Runs with the same value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The letter that it has in text.
    pub letter: String,
    /// The value.
    pub value: String,
    /// How many runs.
    pub runs: usize,
    /// What each direction gave.
    pub directions: Vec<GroupDirection>,
    /// What else is never the same in a run of this group and in one of the first.
    pub changed_too: Vec<Change>,
    /// Facts that only this group's runs have, or only the first's: not known there, or not there at all.
    pub known_in_one: Vec<String>,
}

/// One direction of a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupDirection {
    /// Which.
    pub flow: Flow,
    /// Runs with a rate.
    pub runs: usize,
    /// Median of the runs' goodput, bit/s.
    pub median_bps: Option<f64>,
    /// The mean goodput against the first group's; absent for the first, and where one of them is not known.
    pub effect: Option<GroupEffect>,
}

/// A group's mean goodput less the first group's, as a share of that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GroupEffect {
    /// The difference: −0.8 is 80 % less.
    pub share: f64,
    /// Lower end of its 95 % interval, between runs; absent of too few runs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// What it says.
    pub says: Says,
}

/// What a difference from the first group says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// The interval lies above zero.
    Faster,
    /// The interval lies below zero.
    Slower,
    /// The interval covers zero and ends within the smallest effect of interest to either side.
    NoEffect,
    /// The interval covers zero and more than that: more runs would tell.
    Undecided,
    /// A group has fewer than two runs with a rate, so that nothing is known of what changes from run to run.
    TooFewRuns,
}

/// Something that changed with the fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What.
    pub name: String,
    /// Its values in the first group.
    pub first: Vec<String>,
    /// Its values in this one.
    pub here: Vec<String>,
}

/// Why runs cannot be grouped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// No run has such a fact.
    #[error("none of the records has a fact named '{key}'; {hint}")]
    Unknown {
        /// What was asked for.
        key: String,
        /// What is there.
        hint: String,
    },
    /// It tells no groups apart.
    #[error(
        "'{key}' has {values} values in {runs} records, more than the {MOST_GROUPS} that can be compared; it does not tell kinds of runs apart"
    )]
    TooMany {
        /// What was asked for.
        key: String,
        /// How many values.
        values: usize,
        /// Of how many records.
        runs: usize,
    },
}

/// A run with its facts by name.
type Known<'a> = (&'a RunView, BTreeMap<String, String>);

impl Grouped {
    /// Groups the runs. `key` is the name of a fact with or without its end; without, of that end whose fact differs
    /// among the runs, or of both. `least` is the smallest effect of interest, a share.
    ///
    /// # Errors
    /// A key that no run has, and one with too many values.
    pub fn of(key: &str, runs: &[RunView], least: f64) -> Result<Self, GroupError> {
        let mut known: Vec<Known<'_>> = runs.iter().map(|run| (run, facts_of_run(run))).collect();
        known.sort_by_key(|(run, _)| run.started_at_unix_ms);
        let names = names(key, &known)?;
        let mut groups: Vec<(String, Vec<&Known<'_>>)> = Vec::new();
        let mut unknown = 0;
        for one in &known {
            let Some(value) = value(&names, &one.1) else {
                unknown += 1;
                continue;
            };
            match groups.iter_mut().find(|(other, _)| *other == value) {
                Some((_, members)) => members.push(one),
                None => groups.push((value, vec![one])),
            }
        }
        if groups.len() > MOST_GROUPS {
            return Err(GroupError::TooMany {
                key: key.to_owned(),
                values: groups.len(),
                runs: runs.len(),
            });
        }
        Ok(Self {
            by: names.join(" and "),
            least,
            groups: views(key, &groups, least),
            unknown,
        })
    }
}

/// The names of the facts that make up the groups.
fn names(key: &str, runs: &[Known<'_>]) -> Result<Vec<String>, GroupError> {
    let there = |name: &str| runs.iter().any(|(_, facts)| facts.contains_key(name));
    if there(key) {
        return Ok(vec![key.to_owned()]);
    }
    let ends: Vec<String> = ENDS
        .iter()
        .map(|(_, end)| format!("{end}.{key}"))
        .filter(|name| there(name))
        .collect();
    if ends.is_empty() {
        return Err(GroupError::Unknown {
            key: key.to_owned(),
            hint: hint(key, runs),
        });
    }
    let varies = |name: &&String| {
        let values: BTreeSet<&String> = runs.iter().filter_map(|run| run.1.get(*name)).collect();
        values.len() > 1
    };
    let varying: Vec<String> = ends.iter().filter(varies).cloned().collect();
    // Both ends on one machine, or hosts that are kept alike: one end says it all.
    let alike = |(_, facts): &Known<'_>| {
        let mut values = ends.iter().map(|name| facts.get(name));
        let first = values.next().flatten();
        values.all(|other| other == first)
    };
    let same = ends.len() > 1 && runs.iter().all(alike);
    Ok(match varying.len() {
        _ if same => vec![ends[0].clone()],
        0 => vec![ends[0].clone()],
        _ => varying,
    })
}

/// The name that was probably meant, or some of those that there are.
fn hint(key: &str, runs: &[Known<'_>]) -> String {
    let mut all: BTreeSet<&str> = BTreeSet::new();
    for name in runs.iter().flat_map(|(_, facts)| facts.keys()) {
        all.extend([bare(name), name.as_str()]);
    }
    if let Some(meant) = nearest(key, all.iter().copied()) {
        return format!("did you mean '{meant}'?");
    }
    let short = all.iter().filter(|name| !name.contains('.'));
    let short: Vec<&str> = short.copied().collect();
    format!(
        "known here are {}, and all settings that `linerate compare` lists",
        short.join(", ")
    )
}

fn value(names: &[String], facts: &BTreeMap<String, String>) -> Option<String> {
    let values: Vec<&String> = names
        .iter()
        .map(|name| facts.get(name))
        .collect::<Option<_>>()?;
    let [first, others @ ..] = values.as_slice() else {
        return None;
    };
    if others.iter().all(|other| other == first) {
        return Some((*first).clone());
    }
    let of_ends = names.iter().zip(&values).map(|(name, value)| {
        let end = name.split('.').next().unwrap_or_default();
        format!("{end} {value}")
    });
    Some(of_ends.collect::<Vec<_>>().join(", "))
}

fn views(key: &str, groups: &[(String, Vec<&Known<'_>>)], least: f64) -> Vec<Group> {
    let sides: Vec<Side<'_>> = groups
        .iter()
        .map(|(value, members)| Side::of(value, members.iter().map(|(run, _)| *run).collect()))
        .collect();
    let runs = sides.iter().flat_map(|side| &side.runs);
    let flows: BTreeSet<Flow> = runs
        .flat_map(|run| run.directions.iter().map(|direction| direction.flow))
        .collect();
    let mut views: Vec<Group> = groups
        .iter()
        .enumerate()
        .map(|(place, (value, members))| Group {
            letter: letter(place),
            value: value.clone(),
            runs: members.len(),
            directions: Vec::new(),
            changed_too: Vec::new(),
            known_in_one: Vec::new(),
        })
        .collect();
    for flow in flows {
        let compared = direction(&sides, flow);
        for ((view, side), figures) in views.iter_mut().zip(&sides).zip(compared.sides) {
            let rates = rates(side, flow);
            let against = figures.against_first.as_ref();
            let effect = against.and_then(|against| {
                // Of a single run the interval is the one within it.
                let enough = rates.len() > 1 && self::rates(&sides[0], flow).len() > 1;
                effect(against, enough, least)
            });
            view.directions.push(GroupDirection {
                flow,
                runs: rates.len(),
                median_bps: statistics::median(&rates),
                effect,
            });
        }
    }
    let Some((_, first)) = groups.first() else {
        return views;
    };
    for (view, (_, members)) in views.iter_mut().zip(groups).skip(1) {
        (view.changed_too, view.known_in_one) = changes(key, first, members);
    }
    views
}

fn rates(side: &Side<'_>, flow: Flow) -> Vec<f64> {
    let directions = side.runs.iter().flat_map(|run| &run.directions);
    let own = directions.filter(|direction| direction.flow == flow);
    own.filter_map(|direction| Some(direction.figures.goodput_bps? as f64))
        .collect()
}

fn effect(against: &Difference, enough: bool, least: f64) -> Option<GroupEffect> {
    let share = against.share?;
    // Where the means are equal to the bit the difference's own share is no scale.
    let scale = (against.bps != 0).then(|| share / against.bps as f64);
    let ends = against.low_bps.zip(against.high_bps).filter(|_| enough);
    let ends = ends.map(|(low, high)| [low, high].map(|end| end as f64 * scale.unwrap_or(0.0)));
    let says = match ends {
        None => Says::TooFewRuns,
        Some([low, _]) if low > 0.0 => Says::Faster,
        Some([_, high]) if high < 0.0 => Says::Slower,
        Some([low, high]) if -least <= low && high <= least => Says::NoEffect,
        Some(_) => Says::Undecided,
    };
    Some(GroupEffect {
        share,
        low: ends.map(|[low, _]| low),
        high: ends.map(|[_, high]| high),
        says,
    })
}

/// What else changed from the first group to another, and what is known in one of them alone.
fn changes(key: &str, first: &[&Known<'_>], here: &[&Known<'_>]) -> (Vec<Change>, Vec<String>) {
    let (before, after) = (values(first), values(here));
    let all: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let (mut changed, mut alone) = (Vec::new(), Vec::new());
    for name in all {
        if is_one_thing(key, name) || GRANTED.iter().any(|flow| name.starts_with(flow)) {
            continue;
        }
        match (before.get(name), after.get(name)) {
            (Some(first), Some(here)) if first.is_disjoint(here) => changed.push(Change {
                name: name.clone(),
                first: first.iter().map(|value| (*value).to_owned()).collect(),
                here: here.iter().map(|value| (*value).to_owned()).collect(),
            }),
            (Some(_), Some(_)) => {}
            _ => alone.push(name.clone()),
        }
    }
    (at_both_ends(changed), alone)
}

/// What changed in the same way at both ends is said once.
fn at_both_ends(changes: Vec<Change>) -> Vec<Change> {
    let mut once: Vec<Change> = Vec::new();
    for change in changes {
        let bare = change.name.strip_prefix("server.");
        let same = once.iter_mut().find(|other| {
            other.name.strip_prefix("client.") == bare
                && bare.is_some()
                && (&other.first, &other.here) == (&change.first, &change.here)
        });
        match (same, bare) {
            (Some(other), Some(bare)) => bare.clone_into(&mut other.name),
            _ => once.push(change),
        }
    }
    once
}

/// Whether a fact is the one that was asked for, or another view of it.
fn is_one_thing(key: &str, name: &str) -> bool {
    let pair = |pair: &[&str; 2]| pair.contains(&bare(key)) && pair.contains(&bare(name));
    key == name || key == bare(name) || ONE_THING.iter().any(pair)
}

/// The name without its end.
fn bare(name: &str) -> &str {
    let of_end = ENDS.iter().find_map(|(_, end)| {
        let rest = name.strip_prefix(end)?;
        rest.strip_prefix('.')
    });
    of_end.unwrap_or(name)
}

fn values<'a>(members: &[&'a Known<'_>]) -> BTreeMap<String, BTreeSet<&'a str>> {
    let mut all: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (name, value) in members.iter().flat_map(|(_, facts)| facts) {
        all.entry(name.clone()).or_default().insert(value);
    }
    all
}
