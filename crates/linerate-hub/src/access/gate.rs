//! Whether a request is let in, and as whose.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;
use serde_json::json;

use super::users::Role;
use super::{Access, Caller, Peer, Transport};
use crate::page::encoded;

/// The names of the cookie: the first where browsers reach the hub by TLS alone, and for this host alone.
const SECURE_COOKIE: &str = "__Host-linerate";
const COOKIE: &str = "linerate";
/// Without a login: the login itself, and what its page is made of.
const OPEN: [&str; 2] = ["/login", "/static/"];

/// Lets a request in, with its [`Caller`], or answers it.
pub(crate) fn admit(
    access: &Access,
    request: &mut Request<Body>,
    now: UnixMillis,
) -> Result<(), Box<Response>> {
    let (method, path) = (request.method(), request.uri().path());
    let is_open = path == OPEN[0] || path.starts_with(OPEN[1]);
    let peer = request.extensions().get::<Peer>();
    let from = access.address(request.headers(), peer.copied());
    let (users, needed) = access.users().map_err(|_| Box::new(unreadable()))?;
    if !needed && !names_this_host(request.headers()) {
        let why =
            "This hub answers without a login, and so only to 'localhost' or a loopback address.\n";
        return refuse(StatusCode::MISDIRECTED_REQUEST, why);
    }
    let bearer = bearer(request.headers());
    if !method.is_safe() && !is_same_origin(request.headers(), bearer.is_some()) {
        let why = "A page of another site may not change anything here.\n";
        return refuse(StatusCode::FORBIDDEN, why);
    }
    let caller = |name: &str, role| Caller {
        name: Some(PlainText::from(name)),
        role,
        from,
    };
    let caller = if let Some(token) = bearer {
        let found = users.of_token(token);
        found.map(|(name, user)| caller(name, user.role))
    } else if needed {
        let secret = access.cookie(request.headers());
        let mut sessions = access.sessions();
        let session = secret.and_then(|secret| sessions.of(secret, now));
        session.and_then(|(name, password)| {
            let user = users.named(name)?;
            let same = users.password_hash(name) == Some(password);
            same.then(|| caller(name, user.role))
        })
    } else {
        Some(Caller {
            name: None,
            role: Role::Admin,
            from,
        })
    };
    match caller {
        Some(caller) if may(&caller, method, path) => {
            request.extensions_mut().insert(caller);
        }
        Some(_) => {
            let why = "A viewer may not change anything; an operator may.\n";
            return refuse(StatusCode::FORBIDDEN, why);
        }
        None if is_open => {}
        None => return Err(Box::new(turned_away(method, request.uri()))),
    }
    request.extensions_mut().insert(Peer(from));
    Ok(())
}

fn refuse(status: StatusCode, why: &'static str) -> Result<(), Box<Response>> {
    Err(Box::new((status, why).into_response()))
}

fn unreadable() -> Response {
    let text = "The hub cannot read its users; its log says why.\n";
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

/// Whoever may read may do so, and log in and out; everything else changes something.
fn may(caller: &Caller, method: &Method, path: &str) -> bool {
    method.is_safe() || ["/login", "/logout"].contains(&path) || caller.role >= Role::Operator
}

/// Who is not logged in: a page leads to the login, a program gets a status.
fn turned_away(method: &Method, address: &Uri) -> Response {
    let path = address.path();
    let for_programs = ["/api/", "/metrics", "/events"];
    if for_programs.iter().any(|part| path.starts_with(part)) {
        let body = json!({
            "error": "Not logged in",
            "detail": "Send an API token as 'Authorization: Bearer TOKEN'; `linerate hub user token` makes one.",
        });
        let headers = [
            (header::WWW_AUTHENTICATE, "Bearer"),
            (header::CONTENT_TYPE, "application/json"),
        ];
        return (StatusCode::UNAUTHORIZED, headers, body.to_string()).into_response();
    }
    let back = address.path_and_query().map_or("/", |all| all.as_str());
    if *method != Method::GET || back == "/" || back.len() > 1_000 {
        return Redirect::to("/login").into_response();
    }
    Redirect::to(&format!("/login?next={}", encoded(back))).into_response()
}

impl Access {
    /// Where a request comes from: of a proxy, what it says last.
    fn address(&self, headers: &HeaderMap, peer: Option<Peer>) -> std::net::IpAddr {
        let peer = peer.map_or(std::net::Ipv4Addr::UNSPECIFIED.into(), |peer| peer.0);
        if !matches!(self.door.transport, Transport::Proxy(_)) {
            return peer;
        }
        let said = headers.get_all("x-forwarded-for").iter().next_back();
        let last = said
            .and_then(|said| said.to_str().ok())
            .and_then(|said| said.rsplit(',').next());
        last.and_then(|last| last.trim().parse().ok())
            .unwrap_or(peer)
    }

    fn is_plain(&self) -> bool {
        matches!(self.door.transport, Transport::Plain)
    }

    /// The secret of the browser's session.
    pub(super) fn cookie<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let name = if self.is_plain() {
            COOKIE
        } else {
            SECURE_COOKIE
        };
        let mut all = headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|cookies| cookies.to_str().ok())
            .flat_map(|cookies| cookies.split(';'));
        all.find_map(|cookie| cookie.trim().strip_prefix(name)?.strip_prefix('='))
    }

    /// A header that gives the browser a secret, or takes it away.
    pub(super) fn set_cookie(&self, secret: Option<&str>) -> Option<HeaderValue> {
        let (name, secure) = if self.is_plain() {
            (COOKIE, "")
        } else {
            (SECURE_COOKIE, "; Secure")
        };
        let (value, age) = secret.map_or(("", "; Max-Age=0"), |secret| (secret, ""));
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{age}");
        HeaderValue::from_str(&text).ok()
    }
}

/// The token of `Authorization`; empty where that is there and has none.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?;
    let token = value.to_str().ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    Some(token.unwrap_or_default())
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

/// Whether a browser says that the request comes from this hub's own pages. What has a token is from no other site's
/// page, which cannot set that header; where a browser says that it is, it is refused as well.
fn is_same_origin(headers: &HeaderMap, has_token: bool) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        return has_token;
    };
    let origin = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.split_once("://"));
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    origin.is_some_and(|(_, origin)| Some(origin) == host)
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
            assert_eq!(
                names_this_host(&headers(&[("host", host)])),
                answered,
                "{host}"
            );
        }
        assert!(!names_this_host(&headers(&[])));
        let twice = headers(&[("host", "localhost"), ("host", "evil.example")]);
        assert!(!names_this_host(&twice));
    }

    #[test]
    fn only_own_pages_may_change_something() {
        let host = ("host", "localhost:80");
        let origin = |origin| ("origin", origin);
        for (more, allowed, with_token) in [
            (vec![], false, true),
            (vec![("sec-fetch-site", "same-origin")], true, true),
            (vec![("sec-fetch-site", "cross-site")], false, false),
            (
                vec![
                    ("sec-fetch-site", "same-site"),
                    origin("http://localhost:80"),
                ],
                false,
                false,
            ),
            (vec![origin("http://localhost:80")], true, true),
            (vec![origin("http://localhost:81")], false, false),
            (vec![origin("null")], false, false),
        ] {
            let all = headers(&[vec![host], more.clone()].concat());
            assert_eq!(is_same_origin(&all, false), allowed, "{more:?}");
            assert_eq!(is_same_origin(&all, true), with_token, "{more:?}");
        }
    }

    #[test]
    fn a_token_is_what_follows_bearer() {
        for (value, token) in [
            ("Bearer x", "x"),
            ("bearer x", "x"),
            ("Basic eDp4", ""),
            ("x", ""),
        ] {
            assert_eq!(bearer(&headers(&[("authorization", value)])), Some(token));
        }
        assert!(bearer(&headers(&[])).is_none());
    }
}
