//! SCTP's listeners, which are open while a test waits for its streams: a server whose clients want none has no SCTP at all, and
//! its kernel need not load it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use linerate_kernel::sctp;
use linerate_model::plan::Plan;
use linerate_model::units::Bytes;
use socket2::{SockRef, Socket};

use super::limits::STREAM_LISTENER;
use super::listen::Listeners;
use super::refusal::Refusal;
use super::{ServerOptions, Shared, listen};
use crate::sockets;

/// The listeners, kept by the tests that wait for streams.
pub(super) struct SctpListeners {
    /// Where each belongs, to one address of TCP's or to several of a family (`-X`).
    places: Vec<Vec<SocketAddr>>,
    open: Mutex<Weak<Vec<TcpListener>>>,
    /// Held by who opens them, which may take as long as loading the kernel's module; the accepting thread waits for
    /// `open` alone.
    opening: Mutex<()>,
}

impl SctpListeners {
    pub(super) fn beside(listeners: &Listeners, options: &ServerOptions) -> Self {
        let beside = listeners.beside();
        let port = beside.first().map_or(options.port, SocketAddr::port);
        let asked = options.sctp_bind.iter();
        let (v4, v6): (Vec<_>, Vec<_>) = asked
            .map(|address| SocketAddr::new(*address, port))
            .partition(SocketAddr::is_ipv4);
        let mut places = vec![v4, v6];
        places.retain(|addresses| !addresses.is_empty());
        if places.is_empty() {
            places = beside.into_iter().map(|address| vec![address]).collect();
        }
        Self {
            places,
            open: Mutex::new(Weak::new()),
            opening: Mutex::new(()),
        }
    }

    /// Those that are open.
    pub(super) fn open(&self) -> Option<Arc<Vec<TcpListener>>> {
        self.lock().upgrade()
    }

    fn lock(&self) -> MutexGuard<'_, Weak<Vec<TcpListener>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps SCTP's listeners open for a test.
pub(super) struct SctpDoor<'a> {
    shared: &'a Shared,
    listeners: Option<Arc<Vec<TcpListener>>>,
}

impl Drop for SctpDoor<'_> {
    fn drop(&mut self) {
        self.listeners = None;
        // The accepting thread holds them while it waits.
        drop(self.shared.left.raise());
    }
}

impl Shared {
    /// Opens SCTP's listeners, or joins the tests that have them open. An association begins with its listener's receive
    /// window: that of the test that opened it, and once others join, no less than any of them asked for or the kernel's
    /// default is.
    pub(super) fn listen_for_sctp(&self, plan: &Plan) -> Result<SctpDoor<'_>, Refusal> {
        let opening = self.sctp.opening.lock();
        let opening = opening.unwrap_or_else(PoisonError::into_inner);
        let opened = match self.sctp.open() {
            Some(listeners) => widen(&listeners, plan).map(|()| listeners),
            None => self.open_sctp(plan).map(Arc::new),
        };
        let listeners = opened.map_err(|error| {
            let what = "it requested SCTP, and listening for that failed";
            Refusal::system(STREAM_LISTENER, &error, what)
        })?;
        *self.sctp.lock() = Arc::downgrade(&listeners);
        drop(opening);
        drop(self.left.raise());
        Ok(SctpDoor {
            shared: self,
            listeners: Some(listeners),
        })
    }

    fn open_sctp(&self, plan: &Plan) -> io::Result<Vec<TcpListener>> {
        let mut listeners = Vec::new();
        let mut missing = None;
        for addresses in &self.sctp.places {
            match listen::open_sctp(addresses, plan, &self.options) {
                Ok(listener) => listeners.push(listener),
                Err(error) if listen::is_missing_family(&error) => missing = Some(error),
                Err(error) => return Err(error),
            }
        }
        match missing {
            Some(error) if listeners.is_empty() => Err(error),
            _ => Ok(listeners),
        }
    }
}

/// Makes the receive buffers of listeners no smaller than what a plan asks for, or the kernel's default.
fn widen(listeners: &[TcpListener], plan: &Plan) -> io::Result<()> {
    let asked = plan.window_bytes.map_or(0, Bytes::count);
    for listener in listeners {
        let family = sockets::family(listener.local_addr()?);
        // The kernel reports twice what was set.
        let default = Socket::from(sctp::stream_socket(family)?).recv_buffer_size()? / 2;
        let wanted = default.max(usize::try_from(asked).unwrap_or(usize::MAX));
        let listener = SockRef::from(listener);
        if listener.recv_buffer_size()? / 2 < wanted {
            listener.set_recv_buffer_size(wanted)?;
        }
    }
    Ok(())
}
