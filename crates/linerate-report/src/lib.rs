//! One view of a run, shown as text, as JSON, as HTML with charts, as an SVG figure, as CSV, as lines of progress;
//! and the record as a file. Also what many hosts came to: a mesh of tests ([`mesh`]) and a roll-out ([`roll_out`]).
//!
//! [`view::RunView`] carries every figure that any of the formats shows, so that they cannot
//! disagree and so that a browser has nothing to compute. A figure that is not known is absent, never
//! zero; every rate says where it was measured.
//!
//! What it is not: it measures nothing, explains nothing (findings come in as an argument) and prints
//! nothing: functions return strings and bytes.
//!
//! ```
//! use linerate_analysis::evidence::Evidence;
//! use linerate_model::plan::Plan;
//! use linerate_testing::fixture;
//! use linerate_report::{json, text, view::RunView};
//!
//! let record = fixture::run(&Plan::new("server"), &fixture::Traffic::default());
//! let view = RunView::of(&Evidence::of(&record), &[]);
//! assert!(text::report(&view, text::Style::plain()).contains("Goodput"));
//! assert!(json::document(&view, &record).starts_with("{"));
//! ```

pub mod bars;
pub mod chart;
pub mod check;
pub mod compare;
pub mod crash;
pub mod csv;
mod date;
pub mod disk_watch;
pub mod expectation;
pub mod file_format;
pub mod host;
pub mod host_limit;
pub mod html;
pub mod iperf2;
pub mod iperf3;
pub mod json;
pub mod live;
mod markup;
pub mod mesh;
pub mod observation;
pub mod probe;
pub mod progress;
pub mod record;
pub mod roll_out;
pub mod stream;
pub mod svg;
pub mod text;
pub mod transcript;
pub mod view;
pub mod watch_figures;
mod words;
