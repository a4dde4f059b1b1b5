//! Logging in and out.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;
use serde::Deserialize;

use super::users::{LONGEST_PASSWORD, is_password};
use super::{Access, Caller};
use crate::page::login::{form, signed_in};

/// What the form of the login page sends.
#[derive(Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    name: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    next: String,
}

/// Why somebody is not logged in.
enum Refused {
    /// No such user, or another password.
    Wrong,
    /// Too many attempts: the next one after so many seconds.
    Wait(u64),
    /// The hub cannot say.
    Broken,
}

/// The page on which somebody logs in.
pub(crate) fn page(access: &Access, next: &str, now: UnixMillis) -> Response {
    match access.users() {
        Ok((_, false)) => Redirect::to("/").into_response(),
        _ => html(StatusCode::OK, form(own(next), None, now)),
    }
}

/// The page that says who is logged in.
pub(crate) fn account(caller: &Caller, now: UnixMillis) -> Response {
    html(StatusCode::OK, signed_in(caller, now))
}

/// Somebody says who they are.
pub(crate) async fn prove(
    access: &Arc<Access>,
    asked: Asked,
    from: IpAddr,
    now: UnixMillis,
) -> Response {
    let next = own(&asked.next).to_owned();
    let refused = match opened(access, asked, from, now).await {
        Ok(cookie) => {
            let headers = [(header::SET_COOKIE, cookie)];
            return (headers, Redirect::to(&next)).into_response();
        }
        Err(refused) => refused,
    };
    let (status, why, wait) = match refused {
        Refused::Wrong => {
            let why = "The name or the password is wrong.".to_owned();
            (StatusCode::FORBIDDEN, why, None)
        }
        Refused::Wait(seconds) => {
            let why = format!("Too many attempts. Try again in {seconds} s.");
            (StatusCode::TOO_MANY_REQUESTS, why, Some(seconds))
        }
        Refused::Broken => {
            let why = "The hub cannot check it; its log says why.".to_owned();
            (StatusCode::SERVICE_UNAVAILABLE, why, None)
        }
    };
    let mut answer = html(status, form(&next, Some(&why), now));
    if let Some(seconds) = wait {
        answer
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// Checks a password, which is bounded in number and pace; the cookie of the new session.
async fn opened(
    access: &Arc<Access>,
    asked: Asked,
    from: IpAddr,
    now: UnixMillis,
) -> Result<HeaderValue, Refused> {
    let Asked { name, password, .. } = asked;
    let wait = |millis: u64| Refused::Wait(millis.div_ceil(1_000));
    access.attempts().take(&name, from, now).map_err(wait)?;
    let _waits = access.waiting.try_acquire().map_err(|_| wait(2_000))?;
    let turn = access.hashing.clone().acquire_owned().await;
    let turn = turn.map_err(|_| Refused::Broken)?;
    let (users, _) = access.users().map_err(|_| Refused::Broken)?;
    let known = users.password_hash(&name).map(str::to_owned);
    let hash = known.clone();
    let check = move || {
        let fits = password.len() <= LONGEST_PASSWORD && is_password(&password, hash.as_deref());
        // Also where whoever asked is gone: the next one waits until this one has ended.
        drop(turn);
        fits
    };
    let fits = tokio::task::spawn_blocking(check).await;
    let shown: String = name.chars().take(64).collect();
    let shown = PlainText::from(shown.as_str());
    let Some(known) = known.filter(|_| fits.unwrap_or(false)) else {
        (access.door.log)(&format!("a login as '{shown}' from {from} failed"));
        return Err(Refused::Wrong);
    };
    access.attempts().succeeded(&name);
    let secret = access
        .sessions()
        .open(&name, &known, now)
        .map_err(|_| Refused::Broken)?;
    (access.door.log)(&format!("{shown} logged in from {from}"));
    access.set_cookie(Some(&secret)).ok_or(Refused::Broken)
}

/// Ends a session.
pub(crate) fn leave(access: &Access, headers: &HeaderMap, caller: &Caller) -> Response {
    if let Some(secret) = access.cookie(headers) {
        access.sessions().end(secret);
        access.note(caller, "logged out");
    }
    let cookie = access
        .set_cookie(None)
        .map(|cookie| [(header::SET_COOKIE, cookie)]);
    (cookie, Redirect::to("/login")).into_response()
}

fn html(status: StatusCode, page: String) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (status, kind, page).into_response()
}

/// An address of this hub, where this is one.
fn own(next: &str) -> &str {
    let plain = next
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if next.starts_with('/') && !next.starts_with("//") && plain && next.len() <= 1_000 {
        return next;
    }
    "/"
}

#[cfg(test)]
mod tests {
    use super::own;

    #[test]
    fn a_login_leads_nowhere_else() {
        for (next, leads) in [
            ("/pair?task=a&from=b", "/pair?task=a&from=b"),
            ("", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/a\r\nSet-Cookie: x", "/"),
            ("/\t/evil.example", "/"),
        ] {
            assert_eq!(own(next), leads, "{next:?}");
        }
    }
}
