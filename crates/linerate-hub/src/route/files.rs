//! Style sheets and scripts, which the binary contains.

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

pub(super) async fn file(Path(name): Path<String>) -> Response {
    let (kind, text) = match name.as_str() {
        "hub.css" => (CSS, include_str!("../../../../web/hub.css")),
        "hub.js" => (JS, include_str!("../../../../web/hub.js")),
        "plot.js" => (JS, include_str!("../../../../web/plot.js")),
        "uplot.js" => (
            JS,
            include_str!("../../../../web/vendor/uplot/uPlot.esm.js"),
        ),
        "uplot.css" => (
            CSS,
            include_str!("../../../../web/vendor/uplot/uPlot.min.css"),
        ),
        "report.css" => (CSS, linerate_report::html::STYLE),
        "report.js" => (JS, linerate_report::html::SCRIPT),
        _ => return (StatusCode::NOT_FOUND, "There is no such file.\n").into_response(),
    };
    // A new version of the hub has new files under the same names.
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "max-age=300"),
    ];
    (headers, text).into_response()
}
