//! What a packet of ours needs from host to host, one way: both ends read the same clock.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use linerate_kernel::{clock, poll, thread};
use linerate_model::units::Nanos;

use super::error::LabError;
use super::lab::Lab;
use crate::scenario::Family;

/// A packet is given up after this long: longer than any path of ours.
const PATIENCE: Duration = Duration::from_secs(2);

/// How probes are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probes {
    /// How many, 1 to 1,000,000.
    pub count: usize,
    /// Between two of them.
    pub interval: Nanos,
}

/// Sends small datagrams from one host to another and gives each one's time on the way, in the order of
/// their arrival. Those that were lost are missing. It takes as long as sending does, and up to 2 s more
/// where the last ones are lost.
///
/// # Errors
/// [`LabError::Work`] where sockets or threads cannot be had.
pub fn one_way(lab: &Lab, from: &str, to: &str, probes: Probes) -> Result<Vec<Nanos>, LabError> {
    let failed = || LabError::work("send", "probes");
    let (from, to) = (lab.host(from)?, lab.host(to)?);
    let bind = |host: &super::Host| {
        let address = SocketAddr::from((host.address(Family::Ipv4), 0));
        host.inside(|| UdpSocket::bind(address))?.map_err(failed())
    };
    let (sender, receiver) = (bind(from)?, bind(to)?);
    let target = receiver.local_addr().map_err(failed())?;
    receiver
        .set_read_timeout(Some(PATIENCE))
        .map_err(failed())?;
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
fn receive(socket: &UdpSocket, count: usize) -> Vec<Nanos> {
    drop(thread::set_timer_slack(Nanos(1)));
    let mut times = Vec::with_capacity(count);
    let mut data = [0; 8];
    while times.len() < count {
        match socket.recv(&mut data) {
            Ok(8) => {
                let sent = Nanos(u64::from_be_bytes(data));
                times.push(clock::monotonic().since(sent));
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    times
}
