//! What every request passes: whom the hub answers, and what browsers may do with the answer.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Nothing but this hub's own files; no inline scripts or styles.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                                 connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// A body is no longer than this, bytes.
const MOST_BODY: u64 = 64 * 1024;
/// An answer takes no longer to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// Refuses what is not for this hub, answers the rest, and sets the headers of all answers.
pub(crate) async fn guard(request: Request<Body>, next: Next) -> Response {
    let mut answer = match refusal(request.method(), request.headers()) {
        Some((status, why)) => (status, why).into_response(),
        None => tokio::time::timeout(PATIENCE, next.run(request))
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
        (header::REFERRER_POLICY, "no-referrer"),
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

/// Why a request is refused, if it is.
fn refusal(method: &Method, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
    if !names_this_host(headers) {
        let why =
            "This hub answers without a login, and so only to 'localhost' or a loopback address.\n";
        return Some((StatusCode::MISDIRECTED_REQUEST, why));
    }
    if !method.is_safe() && !is_same_origin(headers) {
        let why = "A page of another site may not change anything here.\n";
        return Some((StatusCode::FORBIDDEN, why));
    }
    let length = headers.get(header::CONTENT_LENGTH)?;
    let length: Option<u64> = length.to_str().ok().and_then(|length| length.parse().ok());
    if length.is_none_or(|length| length > MOST_BODY) {
        return Some((
            StatusCode::PAYLOAD_TOO_LARGE,
            "The body is longer than 64 KiB.\n",
        ));
    }
    None
}

/// Whether `Host` is a name of the loopback interface: a page of another site whose name was made to resolve to it
/// (DNS rebinding) has its own name there.
fn names_this_host(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    host.to_str()
        .is_ok_and(|host| is_loopback(without_port(host)))
}

fn is_loopback(name: &str) -> bool {
    let address = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    let address: Result<std::net::IpAddr, _> = address.parse();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|digit| digit.is_ascii_digit()) && !name.ends_with(':') =>
        {
            name
        }
        _ => host,
    }
}

/// Whether a browser says that the request comes from this hub's own pages.
fn is_same_origin(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let origin = text(header::ORIGIN).and_then(|origin| origin.split_once("://"));
    match (origin, text(header::HOST)) {
        (Some((_, origin)), Some(host)) => origin == host,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn only_loopback_names_are_answered() {
        for (host, answered) in [
            ("localhost:8080", true),
            ("LOCALHOST", true),
            ("127.0.0.1:1", true),
            ("127.9.9.9", true),
            ("[::1]:8080", true),
            ("[::1]", true),
            ("evil.example:8080", false),
            ("localhost.evil.example", false),
            ("10.0.0.1", false),
            ("", false),
        ] {
            let found = refusal(&Method::GET, &headers(&[("host", host)]));
            assert_eq!(found.is_none(), answered, "{host}");
        }
        assert!(refusal(&Method::GET, &headers(&[])).is_some());
        let twice = headers(&[("host", "localhost"), ("host", "evil.example")]);
        assert!(refusal(&Method::GET, &twice).is_some());
    }

    #[test]
    fn only_own_pages_may_change_something() {
        let host = ("host", "localhost:80");
        for (more, allowed) in [
            (vec![], false),
            (vec![("sec-fetch-site", "same-origin")], true),
            (vec![("sec-fetch-site", "cross-site")], false),
            (
                vec![
                    ("sec-fetch-site", "same-site"),
                    ("origin", "http://localhost:80"),
                ],
                false,
            ),
            (vec![("origin", "http://localhost:80")], true),
            (vec![("origin", "http://localhost:81")], false),
            (vec![("origin", "null")], false),
        ] {
            let all = headers(&[vec![host], more.clone()].concat());
            assert_eq!(refusal(&Method::POST, &all).is_none(), allowed, "{more:?}");
        }
    }

    #[test]
    fn long_bodies_are_refused() {
        for (length, allowed) in [("0", true), ("65536", true), ("65537", false), ("x", false)] {
            let all = headers(&[("host", "localhost"), ("content-length", length)]);
            assert_eq!(refusal(&Method::GET, &all).is_none(), allowed, "{length}");
        }
    }
}
