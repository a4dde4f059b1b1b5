//! What a loop that only moves bytes carries over one TCP connection, or as UDP datagrams: the limit that a measuring
//! program can come up to.
//!
//! `limit receive ADDRESS:PORT` takes one connection and prints Gbit/s and CPU seconds per gigabyte (10^9 bytes);
//! `limit send ADDRESS:PORT SECONDS` sends by reference, where the kernel can, and prints its CPU seconds.
//! `receive-udp` and `send-udp` do so with datagrams of 1460 bytes, 44 in a buffer, cut and merged by the kernel.

use std::io::{self, ErrorKind};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::splice::Spliced;
use linerate_kernel::{clock, host, socket, udp};
use linerate_model::units::Nanos;

/// Bytes of a datagram, and how many go at once.
const DATAGRAM: u16 = 1460;
const DATAGRAMS: usize = 44;
/// Says that there are no more: shorter than any that counts.
const END: [u8; 1] = [0];
/// The end may be lost as well: then this long without a datagram is one.
const QUIET: Nanos = Nanos::from_millis(1000);

/// Bytes of a write.
const AT_ONCE: usize = 1 << 20;

/// Sent over and over: of it as much as stays in the cache of who copies it.
static AREA: Aligned = Aligned([7; 512 << 10]);
const COPIED: usize = 128 << 10;

#[repr(align(4096))]
struct Aligned([u8; 512 << 10]);

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", at] => receive(&TcpListener::bind(at)?.accept()?.0),
        ["send", to, time] => send(&TcpStream::connect(to)?, seconds(time)?),
        ["receive-udp", at] => receive_datagrams(&UdpSocket::bind(at)?),
        ["send-udp", to, time] => {
            let socket = UdpSocket::bind(if to.starts_with('[') {
                "[::]:0"
            } else {
                "0.0.0.0:0"
            })?;
            socket.connect(to)?;
            send_datagrams(&socket, seconds(time)?)
        }
        _ => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "limit receive[-udp] ADDRESS:PORT | limit send[-udp] ADDRESS:PORT SECONDS",
        )),
    }
}

fn seconds(text: &str) -> io::Result<Duration> {
    let wrong = |_| io::Error::new(ErrorKind::InvalidInput, "SECONDS: a whole number");
    text.parse().map(Duration::from_secs).map_err(wrong)
}

fn receive(stream: &TcpStream) -> io::Result<()> {
    let mut scratch = vec![0; 32 << 10];
    let (began, mut bytes) = (Instant::now(), 0_usize);
    loop {
        match socket::receive_over(stream, &mut scratch, 1 << 20) {
            Ok(0) => break,
            Ok(read) => bytes += read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(stream, Interest::READ)?,
            Err(error) => return Err(error),
        }
    }
    let gigabytes = bytes as f64 / 1e9;
    let rate = gigabytes * 8.0 / began.elapsed().as_secs_f64();
    say(&format!("{rate:.3} {:.4}", cpu_seconds() / gigabytes));
    Ok(())
}

fn send(stream: &TcpStream, time: Duration) -> io::Result<()> {
    let share = host::second_cache_bytes().unwrap_or(0) / 4;
    let area = &AREA.0[..share.clamp(COPIED, AREA.0.len())];
    let mut by_reference = Spliced::new(stream, area, 2 * AT_ONCE).ok();
    let (began, mut bytes) = (Instant::now(), 0_usize);
    while began.elapsed() < time {
        let sent = match &mut by_reference {
            Some(spliced) => spliced.send(stream, AT_ONCE).map(|(sent, _)| sent),
            None => socket::send_repeated(stream, &AREA.0[..COPIED], AT_ONCE),
        };
        match sent {
            Ok(sent) => bytes += sent,
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(stream, Interest::WRITE)?,
            Err(error) => return Err(error),
        }
    }
    stream.shutdown(Shutdown::Write)?;
    say(&format!("{:.4}", cpu_seconds() / (bytes as f64 / 1e9)));
    Ok(())
}

fn receive_datagrams(socket: &UdpSocket) -> io::Result<()> {
    udp::enable_gro(socket)?;
    let mut batch = udp::Receiver::new(4, 65_536);
    let (mut began, mut last, mut bytes) = (None, Instant::now(), 0_usize);
    // Ends with the sender, or when nothing comes any more.
    'flow: loop {
        match batch.receive(socket) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let quiet = began.map(|_| QUIET);
                if !ready(socket, Interest::READ, quiet)? && began.is_some() {
                    break;
                }
                continue;
            }
            Err(error) => return Err(error),
        }
        for message in batch.messages() {
            if message.data.len() == END.len() {
                break 'flow;
            }
            bytes += message.data.len();
        }
        last = Instant::now();
        began.get_or_insert(last);
    }
    let took = last.duration_since(began.unwrap_or(last)).as_secs_f64();
    let gigabytes = bytes as f64 / 1e9;
    say(&format!(
        "{:.3} {:.4}",
        gigabytes * 8.0 / took.max(1e-9),
        cpu_seconds() / gigabytes.max(1e-9)
    ));
    Ok(())
}

fn send_datagrams(socket: &UdpSocket, time: Duration) -> io::Result<()> {
    let data = &AREA.0[..DATAGRAMS * usize::from(DATAGRAM)];
    let (began, mut bytes) = (Instant::now(), 0_usize);
    while began.elapsed() < time {
        match udp::send_segments(socket, data, DATAGRAM) {
            Ok(sent) => bytes += sent,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                ready(socket, Interest::WRITE, None)?;
            }
            Err(error) => return Err(error),
        }
    }
    // Some of them find room in a full socket.
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(5));
        if socket.send(&END).is_err() {
            break;
        }
    }
    say(&format!("{:.4}", cpu_seconds() / (bytes as f64 / 1e9)));
    Ok(())
}

fn wait(stream: &TcpStream, interest: Interest) -> io::Result<()> {
    ready(stream, interest, None).map(drop)
}

/// Whether it is, before the time is over.
fn ready(socket: &impl AsFd, interest: Interest, most: Option<Nanos>) -> io::Result<bool> {
    let mut entries = [PollEntry::new(socket.as_fd(), interest)];
    Ok(poll::wait(&mut entries, most)? > 0)
}

fn cpu_seconds() -> f64 {
    clock::thread_cpu().0 as f64 / 1e9
}

#[expect(clippy::print_stdout, reason = "its result")]
fn say(line: &str) {
    println!("{line}");
}
