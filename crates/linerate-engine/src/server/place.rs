//! A test's place in the server, and the memory that a test holds for a while. Each is given back when it is dropped.

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use linerate_kernel::event::EventFd;
use linerate_kernel::{clock, thread};
use linerate_model::plan::{Pace, Plan};
use linerate_wire::cookie::Cookie;

use super::limits::ServerLimits;
use super::occupancy::{Demand, Origin, Site};
use super::{Entry, EntryState, Shared};

/// A connection's place in the server: it waits for admission, then runs a test. Dropping it gives it back, however its
/// thread ends.
pub(crate) struct Place {
    pub(super) shared: Arc<Shared>,
    pub(crate) cookie: Cookie,
    pub(super) site: Site,
    /// Counted from 1.
    pub(crate) number: u64,
    pub(super) admitted: Option<Demand>,
    origin: Origin,
}

impl Place {
    /// Takes a place among those that wait for admission, and an entry by which the accepting thread finds the test; or says
    /// why there is none. `connection` is ended when its place is needed for others.
    pub(super) fn take(
        shared: &Arc<Shared>,
        cookie: Cookie,
        peer: SocketAddr,
        connection: Option<TcpStream>,
        origin: Origin,
        state: EntryState,
    ) -> Result<(Arc<Entry>, Self), &'static str> {
        let (limits, one_off) = (&shared.options.limits, shared.options.one_off);
        let address = peer.ip().to_canonical();
        let mut sessions = shared.sessions();
        let (number, site) = (sessions.counted + 1, Site::of(address));
        if one_off && sessions.counted > 0 {
            return Err("only one test was requested and it is already running");
        }
        if one_off && origin == Origin::Claimed {
            return Err(
                "a server for one test (-1) takes none whose address only its datagrams say: two forged ones would use it up",
            );
        }
        let Ok(news) = EventFd::new() else {
            return Err("the server has no file descriptors left");
        };
        let (now, occupancy) = (clock::monotonic(), &mut sessions.occupancy);
        match origin {
            Origin::Proved => occupancy.wait(number, site, connection, now, limits)?,
            Origin::Claimed => occupancy.claim(site, now, limits)?,
        }
        let entry = Arc::new(Entry {
            peer: address,
            news,
            state: Mutex::new(state),
        });
        sessions.by_cookie.insert(cookie, Arc::clone(&entry));
        sessions.counted = number;
        let place = Self {
            shared: Arc::clone(shared),
            cookie,
            site,
            number,
            admitted: None,
            origin,
        };
        Ok((entry, place))
    }

    /// Admits the test, or says what there is too little of.
    pub(crate) fn admit(&mut self, plan: &mut Plan) -> Result<(), String> {
        let limits = &self.shared.options.limits;
        let mut sessions = self.shared.sessions();
        let spinning = ServerLimits::demand(plan).spinning;
        if !sessions
            .occupancy
            .may_spin(spinning, thread::available_cpus())
        {
            plan.pace = Pace::Sleep;
        }
        let demand = ServerLimits::demand(plan);
        sessions
            .occupancy
            .admit(self.number, self.site, demand, self.origin, limits)?;
        self.admitted = Some(demand);
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut sessions = self.shared.sessions();
        sessions.by_cookie.remove(&self.cookie);
        if self.origin == Origin::Claimed {
            sessions.occupancy.give_up_claim();
        }
        match self.admitted {
            Some(demand) => {
                sessions.occupancy.leave(self.site, demand, self.origin);
                sessions.quiet_since = clock::monotonic();
            }
            None => sessions.occupancy.stop_waiting(self.number),
        }
        drop(sessions);
        drop(self.shared.left.raise());
    }
}

/// Memory that a session holds for a while; dropping it gives it back.
pub(crate) struct Held<'a> {
    pub(super) shared: &'a Shared,
    pub(crate) bytes: usize,
}

impl Held<'_> {
    /// Gives back what is not needed.
    pub(crate) fn keep(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes);
        self.bytes -= spare;
        self.shared.sessions().occupancy.give_back(spare);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.shared.sessions().occupancy.give_back(self.bytes);
    }
}

/// The same for what may outlive its session.
pub(super) struct Lent {
    pub(super) shared: Arc<Shared>,
    pub(super) bytes: usize,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.shared.sessions().occupancy.give_back(self.bytes);
    }
}
