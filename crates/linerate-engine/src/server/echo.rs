//! The server's end of a probe connection: it sends back each message as it came, until the test is over.
//!
//! What a client can make it do is bounded: one connection a test, which counts as one of the server's streams, one message
//! in memory, [`MOST_A_SECOND`] of them. A client that does not read its answers, sends anything else, or more, loses the
//! connection.

use std::io::{self, Read as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::thread::JoinHandle;

use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::{clock, socket, tcp};
use linerate_model::plan::Plan;
use linerate_model::units::Nanos;
use linerate_wire::probe::{self, MOST_A_SECOND, PROBE_BYTES};

const SECOND: Nanos = Nanos::from_millis(1000);
/// What its thread takes, bytes; part of what the connection counts in the server's memory.
const STACK_BYTES: usize = 64 << 10;

/// Answers on a thread of its own; dropping it ends the connection and the thread.
pub(super) struct Echo {
    connection: TcpStream,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    pub(super) fn spawn(stream: TcpStream, plan: &Plan) -> io::Result<Self> {
        tcp::set_nodelay(&stream, true)?;
        if plan.tos != 0 {
            socket::set_tos(&stream, plan.tos)?;
        }
        let connection = stream.try_clone()?;
        let thread = std::thread::Builder::new()
            .name("probe echo".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // Whatever ends it, the client sees the end of the connection.
                drop(answer(&stream));
                drop(stream.shutdown(Shutdown::Both));
            })?;
        Ok(Self {
            connection,
            thread: Some(thread),
        })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        drop(self.connection.shutdown(Shutdown::Both));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Answers until the connection ends.
fn answer(stream: &TcpStream) -> io::Result<()> {
    let mut message = [0; PROBE_BYTES];
    let mut have = 0;
    let mut second = (clock::monotonic(), 0);
    loop {
        match (&*stream).read(&mut message[have..]) {
            Ok(0) => return Ok(()),
            Ok(bytes) => have += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // The connection is shut down at the end of the test, which wakes this too.
                poll::wait(&mut [PollEntry::new(stream.as_fd(), Interest::READ)], None)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if have < PROBE_BYTES {
            continue;
        }
        have = 0;
        let now = clock::monotonic();
        if now.since(second.0) >= SECOND {
            second = (now, 0);
        }
        second.1 += 1;
        if probe::number(&message).is_none() || second.1 > MOST_A_SECOND {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // A full buffer is that of a client that does not read.
        if socket::send(stream, &message)? != PROBE_BYTES {
            return Err(io::ErrorKind::WriteZero.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    /// An echo, and a client's end of its connection.
    fn pair() -> (Echo, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let (server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        (Echo::spawn(server, &Plan::new("h")).unwrap(), client)
    }

    /// Whether the connection has ended, after any number of answers.
    fn ends(client: &mut TcpStream) -> bool {
        let mut answers = [0; 4096];
        loop {
            match client.read(&mut answers) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::ConnectionReset,
            }
        }
    }

    #[test]
    fn messages_come_back_as_they_went_in_any_pieces() {
        let (_echo, mut client) = pair();
        let all: Vec<u8> = (0..3).flat_map(probe::encode).collect();
        for piece in all.chunks(50) {
            client.write_all(piece).unwrap();
        }
        let mut back = vec![0; all.len()];
        client.read_exact(&mut back).unwrap();
        assert_eq!(back, all);
    }

    #[test]
    fn anything_else_ends_the_connection() {
        let (_echo, mut client) = pair();
        client.write_all(&[1; PROBE_BYTES]).unwrap();
        assert!(ends(&mut client));
    }

    #[test]
    fn too_many_end_the_connection() {
        let (_echo, mut client) = pair();
        let many: Vec<u8> = (0..u64::from(MOST_A_SECOND) * 3)
            .flat_map(probe::encode)
            .collect();
        drop(client.write_all(&many));
        assert!(ends(&mut client));
    }

    #[test]
    fn the_end_of_the_test_ends_it() {
        let (echo, mut client) = pair();
        drop(echo);
        assert!(ends(&mut client));
    }
}
