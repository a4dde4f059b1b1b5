//! What every request passes: whom the hub answers, and what browsers may do with the answer.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::admit;
use crate::route::Hub;

/// Nothing but this hub's own files; no inline scripts or styles.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                                 connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// A body is no longer than this, bytes.
pub(crate) const MOST_BODY: usize = 64 * 1024;
/// An answer takes no longer to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// Refuses what is not for this hub or not from its users, answers the rest, and sets the headers of all answers.
pub(crate) async fn guard(
    State(hub): State<Hub>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    let mut answer = match refusal(&hub, &mut request) {
        Err(refusal) => *refusal,
        Ok(()) => tokio::time::timeout(PATIENCE, next.run(request))
            .await
            .unwrap_or_else(|_| {
                let why = "The archive took too long; try a shorter time.\n";
                (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
            }),
    };
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With "no-referrer" browsers hide the origin of forms from the hub itself.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let keep = HeaderValue::from_static("no-store");
    headers.entry(header::CACHE_CONTROL).or_insert(keep);
    answer
}

/// Answers a request that is refused.
fn refusal(hub: &Hub, request: &mut Request<Body>) -> Result<(), Box<Response>> {
    if is_long(request.headers()) {
        let why = "The body is longer than 64 KiB.\n";
        return Err(Box::new(
            (StatusCode::PAYLOAD_TOO_LARGE, why).into_response(),
        ));
    }
    admit(&hub.access, request, hub.shared.now())
}

fn is_long(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_LENGTH).is_some_and(|length| {
        let length = length.to_str().ok().and_then(|length| length.parse().ok());
        length.is_none_or(|length: usize| length > MOST_BODY)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_bodies_are_refused() {
        for (length, long) in [("0", false), ("65536", false), ("65537", true), ("x", true)] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static(length));
            assert_eq!(is_long(&headers), long, "{length}");
        }
        assert!(!is_long(&HeaderMap::new()));
    }
}
