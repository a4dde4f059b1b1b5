//! One command at a time on a host: an abstract Unix socket, which the kernel frees with its holder and which each
//! network namespace has for itself. Whoever connects to it reads who holds it.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use linerate_kernel::event::EventFd;
use linerate_kernel::poll::{self, Interest, PollEntry};

/// No name of a holder is longer, bytes.
const LONGEST: u64 = 1024;
/// A holder that does not say its name in this time does not say it.
const PATIENCE: Duration = Duration::from_millis(500);

/// The right to run alone; it ends with this value.
#[derive(Debug)]
pub(super) struct Alone {
    end: Option<Arc<EventFd>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Alone {
    /// Takes it for `who`, who may run several commands; where somebody has it, their name. `host` is this host's, where several stand for hosts on
    /// one machine.
    ///
    /// # Errors
    /// Those of a socket.
    pub(super) fn take(host: Option<&str>, who: &str) -> io::Result<Result<Self, String>> {
        let name = format!("linerate/alone/{}", host.unwrap_or_default());
        let address = SocketAddr::from_abstract_name(name)?;
        let listener = match UnixListener::bind_addr(&address) {
            Ok(listener) => listener,
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let holder = holder(&address);
                // Both ends of a test may be on one host.
                return Ok(if holder == who {
                    Ok(Self::beside())
                } else {
                    Err(holder)
                });
            }
            Err(error) => return Err(error),
        };
        let end = Arc::new(EventFd::new()?);
        let (who, ends) = (who.to_owned(), end.clone());
        let thread = std::thread::Builder::new()
            .name("alone".to_owned())
            .stack_size(128 << 10)
            .spawn(move || answer(&listener, &who, &ends))?;
        Ok(Ok(Self {
            end: Some(end),
            thread: Some(thread),
        }))
    }

    /// Another command of the same owner has it.
    const fn beside() -> Self {
        Self {
            end: None,
            thread: None,
        }
    }
}

/// Says who holds it, until that ends.
fn answer(listener: &UnixListener, who: &str, end: &EventFd) {
    loop {
        let mut entries = [
            PollEntry::new(listener.as_fd(), Interest::READ),
            PollEntry::new(end.as_fd(), Interest::READ),
        ];
        let waited = poll::wait(&mut entries, None);
        let [asked, ended] = entries.map(|entry| entry.readiness().any());
        if ended || waited.is_err() {
            return;
        }
        if asked && let Ok((mut stream, _)) = listener.accept() {
            drop(stream.set_write_timeout(Some(PATIENCE)));
            // One who does not read it does not learn it.
            drop(stream.write_all(who.as_bytes()));
        }
    }
}

fn holder(address: &SocketAddr) -> String {
    let mut name = String::new();
    let asked = UnixStream::connect_addr(address).and_then(|stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.take(LONGEST).read_to_string(&mut name)
    });
    match asked {
        Ok(_) if !name.is_empty() => name,
        _ => "somebody who does not say who they are".to_owned(),
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        if let Some(end) = &self.end {
            drop(end.raise());
        }
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_learns_who_the_first_one_is_until_that_one_ends() {
        let host = format!("test-{}", std::process::id());
        let take = |who| Alone::take(Some(&host), who).unwrap();
        let first = take("root on n1").unwrap();
        assert_eq!(take("root on n2").unwrap_err(), "root on n1");
        // Both ends of a test.
        drop(take("root on n1").unwrap());
        assert_eq!(take("root on n2").unwrap_err(), "root on n1");
        assert!(
            Alone::take(Some(&format!("{host}-other")), "x")
                .unwrap()
                .is_ok()
        );
        drop(first);
        assert!(take("root on n2").is_ok());
    }
}
