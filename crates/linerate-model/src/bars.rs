//! Bars with intervals, laid out in panels: what a sweep shows.

use serde::Serialize;

/// A figure of panels that share one axis, in bit/s.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct BarFigure {
    /// What it shows.
    pub title: String,
    /// What was measured and how, a line each.
    pub about: Vec<String>,
    /// What the groups are levels of: `MTU`; empty where there is one group.
    pub group_name: String,
    /// What the bars are levels of: `txqueuelen`.
    pub bar_name: String,
    /// What the bars are called, in their order.
    pub bars: Vec<String>,
    /// Panels, row by row; every row has as many.
    pub rows: Vec<Vec<Panel>>,
}

/// Groups of bars on one pair of axes.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// A limit of the whole panel that is known beforehand.
    pub limit: Option<Limit>,
    /// From left to right.
    pub groups: Vec<Group>,
}

/// A limit that is known beforehand.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// What limits.
    pub name: String,
    /// The most that can come, bit/s.
    pub bps: f64,
}

/// Bars that stand together.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Group {
    /// Its name.
    pub label: String,
    /// Most that the path carries with these settings, bit/s.
    pub carries_bps: Option<f64>,
    /// Its bars, in the order of their names.
    pub bars: Vec<Bar>,
}

/// The mean rate of one combination of levels.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Bar {
    /// The mean, bit/s; `None` where there is none, which is no bar of zero.
    pub bps: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<[f64; 2]>,
    /// Why there is no bar, or what is to be known of it.
    pub remark: Option<String>,
}
