//! The session token: a cookie that both ends of a test are given before it, so that the server takes no other client.
//!
//! It comes from the environment, never from the command line, which every user of a host can read.

use linerate_engine::client::random_cookie;
use linerate_wire::cookie::Cookie;

use crate::action::Failure;

/// The environment variable that holds it.
pub(crate) const VARIABLE: &str = "LINERATE_SESSION_TOKEN";

/// The token that this process was given.
///
/// # Errors
/// A variable that is set and holds no token; its value is not repeated.
pub(crate) fn given() -> Result<Option<Cookie>, Failure> {
    let Some(text) = std::env::var_os(VARIABLE) else {
        return Ok(None);
    };
    let read = Cookie::from_text(&text.to_string_lossy());
    read.map(Some)
        .map_err(|error| Failure::Usage(format!("{VARIABLE} is no session token: {error}")))
}

/// A token that nobody can guess, for one session.
///
/// # Errors
/// Where the kernel has no random bytes.
pub(crate) fn fresh() -> Result<Cookie, Failure> {
    random_cookie().map_err(Failure::Engine)
}
