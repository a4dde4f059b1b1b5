//! How even a flow is: the bytes that arrive in each millisecond.
//!
//! `pacing PORT SECONDS` watches what comes in for a UDP port in this network namespace (`CAP_NET_RAW`), by the instants
//! at which the kernel took each packet from the interface, and prints: Mbit/s of payload, coefficient of variation
//! and share of empty ones among the milliseconds in per cent, most in one as a multiple of the mean, buffers missed.
//! What GSO left whole counts at its one instant. The first 500 ms are left out.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;

use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::{clock, udp};
use linerate_model::units::Nanos;
use socket2::{Domain, Protocol, Socket, Type};

/// `ETH_P_IP` (`include/uapi/linux/if_ether.h`): such sockets see packets that come in, not those that go out.
const ETH_P_IP: u16 = 0x0800;
const MILLISECOND: u64 = 1_000_000;
const LEFT_OUT: Nanos = Nanos::from_millis(500);
/// How long the flow may take to begin.
const PATIENCE: Nanos = Nanos::from_millis(10_000);
const MESSAGES: usize = 256;
/// Enough for the headers.
const HEADERS: usize = 64;

fn main() -> io::Result<()> {
    let wrong = || io::Error::new(ErrorKind::InvalidInput, "pacing PORT SECONDS");
    let words: Vec<u64> = std::env::args()
        .skip(1)
        .map(|word| word.parse().map_err(|_| wrong()))
        .collect::<io::Result<_>>()?;
    let [port, seconds] = words[..] else {
        return Err(wrong());
    };
    let protocol = Protocol::from(i32::from(ETH_P_IP.to_be()));
    let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(protocol))?;
    // As much as this user may have.
    socket.set_recv_buffer_size(64 << 20)?;
    udp::enable_arrival_times(&socket)?;
    udp::enable_drop_counter(&socket)?;
    say(&watch(&socket, port, Nanos::from_millis(1000 * seconds))?.line());
    Ok(())
}

/// What came in each millisecond.
#[derive(Default)]
struct Flow {
    bins: Vec<u64>,
    missed: u32,
}

fn watch(socket: &Socket, port: u64, span: Nanos) -> io::Result<Flow> {
    let mut batch = udp::Receiver::new(MESSAGES, HEADERS);
    let (mut flow, mut from) = (Flow::default(), None);
    let began = clock::monotonic();
    let mut heard = began;
    // Ends with the span, or with the flow.
    loop {
        let now = clock::monotonic();
        let quiet = if from.is_none() { PATIENCE } else { LEFT_OUT };
        if now.since(heard) > quiet || now.since(began) > PATIENCE.plus(span).plus(LEFT_OUT) {
            return Ok(flow);
        }
        let mut entries = [PollEntry::new(socket.as_fd(), Interest::READ)];
        poll::wait(&mut entries, Some(Nanos::from_millis(100)))?;
        match batch.receive(socket) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        for message in batch.messages() {
            flow.missed = message.drops.unwrap_or(flow.missed);
            let (Some(bytes), Some(at)) = (payload(message.data, port), message.arrived) else {
                continue;
            };
            heard = now;
            let from = *from.get_or_insert(at.plus(LEFT_OUT));
            if at >= from.plus(span) {
                return Ok(flow);
            }
            if at >= from {
                let bin = usize::try_from(at.since(from).0 / MILLISECOND).unwrap_or(0);
                flow.bins.resize(flow.bins.len().max(bin + 1), 0);
                flow.bins[bin] += bytes;
            }
        }
    }
}

/// Bytes of UDP payload of an IPv4 packet for a port. Short ones open a stream, and are none of the flow.
fn payload(packet: &[u8], port: u64) -> Option<u64> {
    let word = |at: usize| Some(u64::from(*packet.get(at)?) << 8 | u64::from(*packet.get(at + 1)?));
    let header = usize::from(packet.first()? & 15) * 4;
    let udp = *packet.get(9)? == 17 && word(header + 2)? == port;
    let bytes = word(2)?.checked_sub(header as u64 + 8)?;
    (udp && bytes >= 200).then_some(bytes)
}

impl Flow {
    fn line(&self) -> String {
        // The last one is cut by the end.
        let bins = &self.bins[..self.bins.len().saturating_sub(1)];
        let count = bins.len().max(1) as f64;
        let mean = bins.iter().sum::<u64>() as f64 / count;
        let square = |bytes: &u64| (*bytes as f64 - mean).powi(2);
        let spread = (bins.iter().map(square).sum::<f64>() / count).sqrt();
        let empty = bins.iter().filter(|bytes| **bytes == 0).count() as f64;
        let most = bins.iter().max().copied().unwrap_or(0) as f64;
        format!(
            "{:.3} {:.2} {:.3} {:.2} {}",
            mean * 8.0 / 1e3,
            100.0 * spread / mean.max(1.0),
            100.0 * empty / count,
            most / mean.max(1.0),
            self.missed
        )
    }
}

#[expect(clippy::print_stdout, reason = "its result")]
fn say(line: &str) {
    println!("{line}");
}
