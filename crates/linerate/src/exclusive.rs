//! One throughput test at a time on a host, where who starts the test asks for it.
//!
//! The process binds a name of its network namespace (an abstract Unix socket, unix(7)) for as long as it lives, and tells
//! everybody who connects whose test it runs. A file with a lock would do the same but for three things: two users share no
//! folder in which both may write, hosts in namespaces of one machine share them all, and a file stays when its
//! process is killed.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use linerate_model::plain_text::PlainText;

use crate::action::Failure;
use crate::announcement::Announcement;
use crate::printer::Printer;

/// The environment variable with which a test asks for it; its value says whose test it is.
pub(crate) const VARIABLE: &str = "LINERATE_EXCLUSIVE";

/// The name that is bound.
const NAME: &[u8] = b"linerate-exclusive";
/// The environment variable that names a host which is one of several on this machine in one namespace, as where a
/// carrier starts children.
const HOST: &str = "LINERATE_HOST";
/// An owner's text is cut here, bytes.
const MOST: usize = 200;
/// The holder answers within this time, or is not named.
const PATIENCE: Duration = Duration::from_secs(1);
/// A holder that is found gone when it is asked has left the name: it is bound again so often.
const TRIES: usize = 3;

/// Takes the host where that was asked for, until this process ends. Both ends of one test, or of one mesh, may be on a
/// host: where the holder has the same owner, nothing is taken.
///
/// # Errors
/// That another test runs, and whose; `json` prints it as a line, too.
pub(crate) fn take(json: bool, printer: &Printer) -> Result<(), Failure> {
    let Some(owner) = std::env::var_os(VARIABLE).filter(|owner| !owner.is_empty()) else {
        return Ok(());
    };
    let Some(holder) = bind(
        &name(std::env::var_os(HOST)),
        &cut(&owner.to_string_lossy()),
    )?
    else {
        return Ok(());
    };
    if json {
        let busy = Announcement::Busy { by: holder.clone() };
        printer.json(&busy.line())?;
    }
    Err(Failure::Busy(format!(
        "another test runs on this host: {holder}; try again when it has ended"
    )))
}

/// The name of this host: at most 108 bytes (unix(7)).
fn name(host: Option<OsString>) -> Vec<u8> {
    let host = host.unwrap_or_default().into_vec();
    let mut name = [NAME, b"/", &host].concat();
    name.truncate(100);
    name
}

/// Binds the name, or says who has it.
fn bind(name: &[u8], owner: &str) -> Result<Option<PlainText>, Failure> {
    let fail = |error: io::Error| {
        Failure::Busy(format!(
            "cannot take this host for one test alone ({VARIABLE}): {error}"
        ))
    };
    let address = SocketAddr::from_abstract_name(name).map_err(fail)?;
    for _ in 0..TRIES {
        match UnixListener::bind_addr(&address) {
            Ok(listener) => {
                answer(listener, owner.to_owned()).map_err(fail)?;
                return Ok(None);
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(fail(error)),
        }
        match holder(&address) {
            Ok(holder) if holder == owner => return Ok(None),
            Ok(holder) if holder.is_empty() => break,
            Ok(holder) => return Ok(Some(holder.into())),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(_) => break,
        }
    }
    Ok(Some("one that does not say whose it is".into()))
}

/// Says to everybody who asks whose test it is. The thread ends with the process.
fn answer(listener: UnixListener, owner: String) -> io::Result<()> {
    let answer = move || {
        for asking in listener.incoming() {
            match asking {
                // Less than any socket's buffer, and nobody waits for it here.
                Ok(mut asking) => drop(asking.write_all(owner.as_bytes())),
                // No descriptors, perhaps.
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    };
    let thread = std::thread::Builder::new()
        .name("exclusive".to_owned())
        .stack_size(64 << 10);
    thread.spawn(answer).map(drop)
}

fn holder(address: &SocketAddr) -> io::Result<String> {
    let mut holder = UnixStream::connect_addr(address)?;
    holder.set_read_timeout(Some(PATIENCE))?;
    let mut said = Vec::new();
    let read = io::Read::by_ref(&mut holder)
        .take(MOST as u64)
        .read_to_end(&mut said);
    read.map(|_| String::from_utf8_lossy(&said).into_owned())
}

/// As much of a text as an owner may have, in whole characters.
fn cut(text: &str) -> String {
    let end = (0..=text.len().min(MOST))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or(0)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_of_a_machine_has_a_name() {
        assert_ne!(name(Some("a".into())), name(None));
        assert!(name(Some("a".repeat(300).into())).len() <= 107);
    }

    #[test]
    fn the_second_owner_is_refused_and_the_same_one_is_not() {
        let name = format!("linerate-exclusive-test-{}", std::process::id());
        let bind = |owner: &str| bind(name.as_bytes(), owner).unwrap();
        assert_eq!(bind("ann's mesh"), None);
        assert_eq!(bind("ann's mesh"), None);
        assert_eq!(bind("bob's test").as_deref(), Some("ann's mesh"));
        assert_eq!(bind("bob's test").as_deref(), Some("ann's mesh"), "again");
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("whose"), "whose");
        assert_eq!(cut(&"x".repeat(MOST + 1)).len(), MOST);
        let cut = cut(&("x".to_owned() + &"ä".repeat(MOST)));
        assert_eq!(cut.len(), MOST - 1);
    }
}
