//! Who may see and do what: users, what proves who they are, and how often that may be tried.

mod attempts;
mod gate;
mod login;
mod sessions;
mod tls;
pub mod users;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_lc_rs::digest::{SHA256, digest};
use linerate_model::plain_text::PlainText;
use tokio::sync::Semaphore;

pub(crate) use gate::admit;
pub(crate) use login::{Asked, account, leave, page, prove};
pub use tls::{TlsError, TlsFiles};
use users::{Role, Users};

use crate::server::ServeError;
use attempts::Attempts;
use sessions::Sessions;

/// Logins that wait for their turn at most; passwords are hashed one at a time.
const MOST_WAITING: usize = 8;

/// What a hub knows of those who may come in.
pub struct Door {
    /// The users as they are now; why they cannot be read.
    pub users: Box<dyn Fn() -> Result<Arc<Users>, String> + Send + Sync>,
    /// How requests arrive.
    pub transport: Transport,
    /// Takes a line for each login, silence and test that somebody asked for.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

/// How requests arrive.
#[derive(Debug)]
pub enum Transport {
    /// As they are.
    Plain,
    /// The hub ends TLS itself.
    Tls(TlsFiles),
    /// From a proxy that ends TLS, at one of these addresses or on this host.
    Proxy(Vec<IpAddr>),
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Absent = nobody has to log in.
    pub(crate) name: Option<PlainText>,
    pub(crate) role: Role,
    /// Where from.
    pub(crate) from: IpAddr,
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The door of a hub that serves.
pub(crate) struct Access {
    door: Door,
    /// Whether a login is needed; once it is, it stays so until the hub ends.
    needed: AtomicBool,
    sessions: Mutex<Sessions>,
    attempts: Mutex<Attempts>,
    waiting: Semaphore,
    hashing: Arc<Semaphore>,
    /// Whether the log says that the users cannot be read.
    lamented: AtomicBool,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door")
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("door", &self.door)
            .finish_non_exhaustive()
    }
}

impl Door {
    /// That of a hub without users: all on this host may do everything.
    pub fn open() -> Self {
        let nobody = Arc::new(Users::default());
        Self {
            users: Box::new(move || Ok(nobody.clone())),
            transport: Transport::Plain,
            log: Box::new(|_| ()),
        }
    }

    /// Whether a hub may listen there: off loopback, and behind a proxy, there have to be users, and TLS.
    ///
    /// # Errors
    /// [`ServeError::NoUsers`], [`ServeError::NoTls`], and where the users cannot be read.
    pub fn check(&self, address: SocketAddr) -> Result<(), ServeError> {
        let users = (self.users)().map_err(ServeError::Users)?;
        let plain = matches!(self.transport, Transport::Plain);
        if address.ip().is_loopback() && plain {
            return Ok(());
        }
        if users.is_empty() {
            return Err(ServeError::NoUsers { address });
        }
        if plain {
            return Err(ServeError::NoTls { address });
        }
        Ok(())
    }
}

impl Access {
    pub(crate) fn of(door: Door, address: SocketAddr) -> Result<Self, ServeError> {
        door.check(address)?;
        let plain = matches!(door.transport, Transport::Plain);
        Ok(Self {
            needed: AtomicBool::new(!plain || !address.ip().is_loopback()),
            sessions: Mutex::default(),
            attempts: Mutex::new(Attempts::new().map_err(ServeError::Users)?),
            waiting: Semaphore::new(MOST_WAITING),
            hashing: Arc::new(Semaphore::new(1)),
            lamented: AtomicBool::new(false),
            door,
        })
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.door.transport
    }

    /// Whether a connection from there is taken at all.
    pub(crate) fn takes(&self, from: IpAddr) -> bool {
        let from = from.to_canonical();
        match &self.door.transport {
            Transport::Proxy(proxies) => from.is_loopback() || proxies.contains(&from),
            Transport::Plain | Transport::Tls(_) => true,
        }
    }

    /// The users as they are now, and whether a login is needed.
    fn users(&self) -> Result<(Arc<Users>, bool), String> {
        let users = (self.door.users)();
        if let Err(why) = &users
            && !self.lamented.swap(true, Ordering::Relaxed)
        {
            (self.door.log)(&format!("nobody is let in: {why}"));
        }
        let users = users?;
        self.lamented.store(false, Ordering::Relaxed);
        if !users.is_empty() {
            self.needed.store(true, Ordering::Relaxed);
        }
        Ok((users, self.needed.load(Ordering::Relaxed)))
    }

    /// One line for what somebody did.
    pub(crate) fn note(&self, caller: &Caller, did: &str) {
        let who = caller.name.as_deref().unwrap_or("somebody without a login");
        (self.door.log)(&format!("{who} from {} {did}", caller.from));
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| "the system has no random numbers".to_owned())?;
    Ok(bytes)
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_proxy_others_cannot_connect() {
        let mut users = Users::default();
        users.add("ada", Role::Viewer, None).unwrap();
        let users = Arc::new(users);
        let of = |transport| {
            let users = users.clone();
            let door = Door {
                users: Box::new(move || Ok(users.clone())),
                transport,
                log: Box::new(|_| ()),
            };
            Access::of(door, "127.0.0.1:1".parse().unwrap()).unwrap()
        };
        let proxied = of(Transport::Proxy(vec!["192.0.2.7".parse().unwrap()]));
        for (from, taken) in [
            ("192.0.2.7", true),
            ("::ffff:192.0.2.7", true),
            ("127.0.0.1", true),
            ("::1", true),
            ("192.0.2.8", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(proxied.takes(from.parse().unwrap()), taken, "{from}");
            assert!(of(Transport::Plain).takes(from.parse().unwrap()));
        }
    }

    #[test]
    fn who_cannot_be_known_is_not_let_in_and_the_log_says_so_once() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = log.clone();
        let broken = Arc::new(AtomicBool::new(false));
        let is_broken = broken.clone();
        let door = Door {
            users: Box::new(move || {
                if is_broken.load(Ordering::Relaxed) {
                    return Err("users.json is gone".to_owned());
                }
                Ok(Arc::default())
            }),
            transport: Transport::Plain,
            log: Box::new(move |line| lines.lock().unwrap().push(line.to_owned())),
        };
        let access = Access::of(door, "127.0.0.1:1".parse().unwrap()).unwrap();
        assert!(access.users().is_ok_and(|(_, needed)| !needed));
        broken.store(true, Ordering::Relaxed);
        assert!(access.users().is_err() && access.users().is_err());
        assert_eq!(
            *log.lock().unwrap(),
            ["nobody is let in: users.json is gone"]
        );
    }
}
