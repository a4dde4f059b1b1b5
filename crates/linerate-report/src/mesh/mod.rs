//! A mesh of tests between hosts: causes first, then the matrix, as text, HTML, SVG, CSV and JSON.
//!
//! [`MeshView`] is complete: the formats derive nothing. A pair that was not measured has no rate anywhere, and it looks
//! different from a slow one and from one that failed.
//!
//! ```
//! use linerate_model::mesh::Mesh;
//! use linerate_report::mesh::{self, MeshView, Source};
//! use linerate_report::text::Style;
//!
//! let text = r#"{"kind":"mesh","schema_version":1,"rounds":2,"bound":2,"hosts":[{"name":"a"},{"name":"b"}],
//!     "pairs":[{"from":"a","to":"b","round":0,"outcome":"measured","goodput_bps":9.4e9},
//!              {"from":"b","to":"a","round":1,"outcome":"failed","stage":"connecting","why":"refused"}]}"#;
//! let mesh: Mesh = mesh::from_json(text.as_bytes()).unwrap();
//! let view = MeshView::of(&Source { mesh: &mesh, causes: &[], fold: &|names| names.join(",") });
//! assert!(mesh::text(&view, Style::plain()).contains("9.40 Gbit/s"));
//! ```

mod cause;
mod cell;
mod csv;
mod failure;
mod fold;
mod grid;
mod heat_map;
mod html;
mod json;
mod marks;
mod matrix;
mod order;
mod ports;
mod progress;
mod svg;
mod text;
mod trunk;
mod view;

pub use cause::{CauseView, Step};
pub use cell::{Cell, Failure, Figures, Level};
pub use csv::table as csv;
pub use failure::FailureView;
pub use fold::{ClassView, FoldedView};
pub use html::{Page, page as html};
pub use json::{MeshError, document as json, from_json};
pub use order::Order;
pub use ports::{PortView, PortsView};
pub use progress::{Plan, Round, ended as ended_line, plan as plan_line, round as round_line};
pub use svg::figure as svg;
pub use text::report as text;
pub use trunk::{document as trunk_json, report as trunk_text};
pub use view::{
    Counts, Fold, HostView, Margin, MeshView, PairView, Rounds, Source, Verdict, VerdictKind,
};
