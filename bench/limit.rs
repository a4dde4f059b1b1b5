//! What a loop that only moves bytes carries over one TCP connection: the limit that a measuring program can come up to.
//!
//! `limit receive ADDRESS:PORT` takes one connection and prints Gbit/s and CPU seconds per gigabyte (10^9 bytes);
//! `limit send ADDRESS:PORT SECONDS` sends by reference, where the kernel can, and prints its CPU seconds.

use std::io::{self, ErrorKind};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::splice::Spliced;
use linerate_kernel::{clock, socket};

/// Sent over and over.
static AREA: Aligned = Aligned([7; 1 << 20]);

#[repr(align(4096))]
struct Aligned([u8; 1 << 20]);

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", at] => receive(&TcpListener::bind(at)?.accept()?.0),
        ["send", to, seconds] => {
            let seconds = seconds
                .parse()
                .map_err(|_| io::Error::new(ErrorKind::InvalidInput, "SECONDS: a whole number"))?;
            send(&TcpStream::connect(to)?, Duration::from_secs(seconds))
        }
        _ => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "limit receive ADDRESS:PORT | limit send ADDRESS:PORT SECONDS",
        )),
    }
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
    let mut by_reference = Spliced::new(stream, &AREA.0, AREA.0.len()).ok();
    let (began, mut bytes) = (Instant::now(), 0_usize);
    while began.elapsed() < time {
        let sent = match &mut by_reference {
            Some(spliced) => spliced.send(stream, AREA.0.len()).map(|(sent, _)| sent),
            None => socket::send_repeated(stream, &AREA.0[..128 << 10], AREA.0.len()),
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

fn wait(stream: &TcpStream, interest: Interest) -> io::Result<()> {
    poll::wait(&mut [PollEntry::new(stream.as_fd(), interest)], None).map(drop)
}

fn cpu_seconds() -> f64 {
    clock::thread_cpu().0 as f64 / 1e9
}

#[expect(clippy::print_stdout, reason = "its result")]
fn say(line: &str) {
    println!("{line}");
}
