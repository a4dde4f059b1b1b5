//! Hosts whose rows and columns look the same, as one row and one column.

use std::collections::BTreeMap;

use super::cell::Cell;
use super::marks::{Marks, Span};
use super::view::{Margin, Source, margin};
use crate::words;

/// Where hosts fall into more classes than this, folding does not help anybody.
const MOST_CLASSES: usize = 128;

/// The matrix of classes of hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldedView {
    /// The classes, in the order of their first hosts.
    pub classes: Vec<ClassView>,
    /// What the pairs of two classes have in common, row after row.
    cells: Vec<Cell>,
}

/// Hosts that send and receive alike.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassView {
    /// Their names, folded.
    pub names: String,
    /// Their places, ascending.
    pub members: Vec<usize>,
    /// What they send.
    pub out: Margin,
    /// What they receive.
    pub inbound: Margin,
}

impl FoldedView {
    /// `None` where most hosts are classes of their own.
    pub(super) fn of(
        source: &Source<'_>,
        marks: &Marks,
        cells: &BTreeMap<(usize, usize), Cell>,
    ) -> Option<Self> {
        let members = classes(source, marks)?;
        if members.len() * 2 > marks.count() {
            return None;
        }
        let pairs = |from: &[usize], to: &[usize]| -> Vec<&Cell> {
            let pairs = from
                .iter()
                .flat_map(|from| to.iter().map(|to| (*from, *to)));
            let pairs = pairs.filter(|(from, to)| from != to);
            pairs.filter_map(|pair| cells.get(&pair)).collect()
        };
        let all: Vec<usize> = (0..marks.count()).collect();
        let view = |members: &Vec<usize>| ClassView {
            names: words::plain(&folded(source, members)),
            out: margin(&pairs(members, &all)),
            inbound: margin(&pairs(&all, members)),
            members: members.clone(),
        };
        let mut matrix = Vec::with_capacity(members.len() * members.len());
        for from in &members {
            for to in &members {
                let alone = from == to && from.len() == 1;
                matrix.push(if alone {
                    Cell::Own
                } else {
                    middle(&pairs(from, to))
                });
            }
        }
        Some(Self {
            classes: members.iter().map(view).collect(),
            cells: matrix,
        })
    }

    /// What is known of the pairs from one class to another.
    pub fn cell(&self, from: usize, to: usize) -> &Cell {
        self.cells
            .get(from * self.classes.len() + to)
            .unwrap_or(&Cell::NotDue)
    }
}

/// The names of hosts, folded; nothing of none.
pub(super) fn folded(source: &Source<'_>, hosts: &[usize]) -> String {
    let names = hosts.iter().filter_map(|host| source.mesh.hosts.get(*host));
    let names: Vec<&str> = names.map(|host| &*host.name).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        many => (source.fold)(many),
    }
}

/// The cell that stands for several: the one with the median rate, with the failures of all.
fn middle(cells: &[&Cell]) -> Cell {
    let mut measured: Vec<_> = cells.iter().filter_map(|cell| cell.figures()).collect();
    measured.sort_by(|a, b| a.share.total_cmp(&b.share));
    if let Some(middle) = measured.get(measured.len() / 2) {
        let mut figures = (*middle).clone();
        figures.tests = measured.iter().map(|figures| figures.tests).sum();
        figures.failed = measured.iter().map(|figures| figures.failed).sum();
        return Cell::Measured(Box::new(figures));
    }
    let failed = |cell: &&&Cell| matches!(cell, Cell::Failed(_));
    let shown = cells.iter().find(failed).or(cells.first());
    shown.map_or(Cell::NotDue, |cell| (*cell).clone())
}

/// A class while hosts are added to it.
struct Class {
    members: Vec<usize>,
    /// Whether each host is one of them.
    is_member: Vec<bool>,
    /// Causes that its hosts are part of.
    causes: Vec<(usize, bool)>,
    /// What its hosts send to, and receive from, each host.
    spans: Vec<[Span; 2]>,
    /// What they send to each other.
    inner: Span,
}

/// The hosts of each class; `None` where there are too many of either.
fn classes(source: &Source<'_>, marks: &Marks) -> Option<Vec<Vec<usize>>> {
    let mut classes: Vec<Class> = Vec::new();
    for host in 0..marks.count() {
        let causes = part_of(source, host);
        let joined = classes
            .iter_mut()
            .filter(|class| class.causes == causes)
            .any(|class| class.join(host, marks));
        if !joined {
            classes.push(Class::new(host, causes, marks));
        }
        if classes.len() > MOST_CLASSES {
            return None;
        }
    }
    let members = |class: Class| class.members;
    (!classes.is_empty()).then(|| classes.into_iter().map(members).collect())
}

/// The causes that a host is part of, and on which side: such hosts stand apart from the others.
fn part_of(source: &Source<'_>, host: usize) -> Vec<(usize, bool)> {
    let causes = source.causes.iter().enumerate();
    causes
        .flat_map(|(at, cause)| {
            let sides = [(false, &cause.from), (true, &cause.to)].into_iter();
            sides
                .filter(|(_, hosts)| hosts.contains(&host))
                .map(move |(side, _)| (at, side))
        })
        .collect()
}

impl Class {
    fn new(host: usize, causes: Vec<(usize, bool)>, marks: &Marks) -> Self {
        let spans = |other| [marks.at(host, other), marks.at(other, host)].map(Span::of);
        Self {
            members: vec![host],
            is_member: (0..marks.count()).map(|other| other == host).collect(),
            causes,
            spans: (0..marks.count()).map(spans).collect(),
            inner: Span::Open,
        }
    }

    /// Adds a host that looks like all of its hosts; `false` where it does not.
    fn join(&mut self, host: usize, marks: &Marks) -> bool {
        let [out, inbound] = self.spans[host];
        let inner = self.inner.with(out);
        let Some(inner) = inner.and_then(|inner| inner.with(inbound)) else {
            return false;
        };
        let mut spans = self.spans.clone();
        for (other, both) in spans.iter_mut().enumerate() {
            if other == host || self.is_member[other] {
                continue;
            }
            let out = both[0].with(Span::of(marks.at(host, other)));
            let inbound = both[1].with(Span::of(marks.at(other, host)));
            let (Some(out), Some(inbound)) = (out, inbound) else {
                return false;
            };
            *both = [out, inbound];
        }
        self.members.push(host);
        self.is_member[host] = true;
        (self.spans, self.inner) = (spans, inner);
        true
    }
}
