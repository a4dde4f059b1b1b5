//! A client that speaks iperf3's control protocol byte by byte, so that it can say what no client says.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) const TEST_START: u8 = 1;
pub(crate) const TEST_RUNNING: u8 = 2;
pub(crate) const TEST_END: u8 = 4;
pub(crate) const PARAM_EXCHANGE: u8 = 9;
pub(crate) const CREATE_STREAMS: u8 = 10;
pub(crate) const EXCHANGE_RESULTS: u8 = 13;

/// The control connection.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
    pub(crate) cookie: [u8; 37],
    port: u16,
}

impl Raw {
    /// Connects and tells its cookie.
    pub(crate) fn connect(port: u16) -> Self {
        Self::over(TcpStream::connect(("127.0.0.1", port)).unwrap(), port)
    }

    /// Tells its cookie on a connection that stands.
    pub(crate) fn over(mut stream: TcpStream, port: u16) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        stream
            .set_read_timeout(Some(Duration::from_secs(50)))
            .unwrap();
        let mut cookie = [0; 37];
        let text = format!("{:036}", NEXT.fetch_add(1, Ordering::Relaxed));
        cookie[..36].copy_from_slice(text.as_bytes());
        stream.write_all(&cookie).unwrap();
        Self {
            stream,
            cookie,
            port,
        }
    }

    /// The next byte of the server; absent where it closed.
    pub(crate) fn state(&mut self) -> Option<u8> {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(1) => Some(byte[0]),
            Ok(_) => None,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("the server said nothing: {error}"),
        }
    }

    #[track_caller]
    pub(crate) fn expect(&mut self, state: u8) {
        assert_eq!(self.state(), Some(state));
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// A message with its length before it.
    pub(crate) fn message(&mut self, text: &str) {
        let length = u32::try_from(text.len()).unwrap();
        self.send(&[&length.to_be_bytes(), text.as_bytes()].concat());
    }

    /// Goes on until the server wants the streams.
    pub(crate) fn agree(&mut self, parameters: &str) {
        self.expect(PARAM_EXCHANGE);
        self.message(parameters);
        self.expect(CREATE_STREAMS);
    }

    /// Opens a data connection of this test.
    pub(crate) fn data(&self) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(&self.cookie).unwrap();
        stream
    }

    /// Whether the server closes within the time.
    pub(crate) fn is_closed_within(&mut self, limit: Duration) -> bool {
        self.stream.set_read_timeout(Some(limit)).unwrap();
        let mut scrap = Vec::new();
        match self.stream.read_to_end(&mut scrap) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
