//! What a packet of ours needs from host to host, one way: both ends read the same clock.
//!
//! It arrives when it is handed to the receiving host's interface: there the path ends, and the kernel stamps it
//! (`netif_rx`, with `net.core.netdev_tstamp_prequeue` as it is by default). When a program gets to read it is another
//! matter: on a busy machine that waits for its turn on a CPU, and is counted separately.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use linerate_kernel::poll::{Interest, PollEntry};
use linerate_kernel::{clock, poll, thread, udp};
use linerate_model::units::Nanos;

use super::error::LabError;
use super::lab::Lab;
use crate::scenario::Family;

/// A packet is given up after this long: longer than any path of ours.
const PATIENCE: Nanos = Nanos::from_millis(2000);
/// Messages that are read at once.
const AT_ONCE: usize = 16;

/// How probes are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probes {
    /// How many, 1 to 1,000,000.
    pub count: usize,
    /// Between two of them.
    pub interval: Nanos,
}

/// One probe's times since it was handed to the sending host's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// Until it was handed to the receiving host's interface.
    pub arrived: Nanos,
    /// Until a program had read it.
    pub read: Nanos,
}

/// Sends small datagrams from one host to another and gives each one's times, in the order of
/// their arrival. Those that were lost are missing. It takes as long as sending does, and up to 2 s more
/// where the last ones are lost.
///
/// # Errors
/// [`LabError::Work`] where sockets or threads cannot be had.
pub fn one_way(lab: &Lab, from: &str, to: &str, probes: Probes) -> Result<Vec<Passage>, LabError> {
    let failed = || LabError::work("send", "probes");
    let (from, to) = (lab.host(from)?, lab.host(to)?);
    let bind = |host: &super::Host| {
        let address = SocketAddr::from((host.address(Family::Ipv4), 0));
        host.inside(|| UdpSocket::bind(address))?.map_err(failed())
    };
    let (sender, receiver) = (bind(from)?, bind(to)?);
    let target = receiver.local_addr().map_err(failed())?;
    udp::enable_arrival_times(&receiver).map_err(failed())?;
    receiver.set_nonblocking(true).map_err(failed())?;
    std::thread::scope(|scope| {
        let listening = scope.spawn(|| receive(&receiver, probes.count));
        let begin = clock::monotonic();
        for number in 0..probes.count {
            let due = begin.plus(Nanos(probes.interval.0.saturating_mul(number as u64)));
            let span = due.since(clock::monotonic());
            if span > Nanos::ZERO {
                poll::wait(&mut [], Some(span)).map_err(failed())?;
            }
            let now = clock::monotonic();
            sender
                .send_to(&now.0.to_be_bytes(), target)
                .map_err(failed())?;
        }
        Ok(listening.join().unwrap_or_default())
    })
}

/// Until all have come, or none has for a while.
fn receive(socket: &UdpSocket, count: usize) -> Vec<Passage> {
    drop(thread::set_timer_slack(Nanos(1)));
    let mut passages = Vec::with_capacity(count);
    let mut receiver = udp::Receiver::new(AT_ONCE, size_of::<u64>());
    while passages.len() < count {
        match receiver.receive(socket) {
            Ok(_) => {
                // The kernel tells of the wall clock, which may be set meanwhile: it serves for one difference only.
                let (read, wall) = (clock::monotonic(), clock::wall());
                passages.extend(receiver.messages().filter_map(|message| {
                    let sent = Nanos(u64::from_be_bytes(message.data.try_into().ok()?));
                    let waited = wall.since(message.arrived?);
                    let read = read.since(sent);
                    let arrived = read.since(waited);
                    Some(Passage { arrived, read })
                }));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut entries = [PollEntry::new(socket.as_fd(), Interest::READ)];
                if !matches!(poll::wait(&mut entries, Some(PATIENCE)), Ok(1..)) {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    passages
}
