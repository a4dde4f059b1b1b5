//! A client and a server that speak iperf3's control protocol byte by byte, so that they can say what no other does.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) const TEST_START: u8 = 1;
pub(crate) const TEST_RUNNING: u8 = 2;
pub(crate) const TEST_END: u8 = 4;
pub(crate) const PARAM_EXCHANGE: u8 = 9;
pub(crate) const CREATE_STREAMS: u8 = 10;
pub(crate) const EXCHANGE_RESULTS: u8 = 13;
const DISPLAY_RESULTS: u8 = 14;
/// What goes before a message between two linerates.
const LINERATE: u8 = 76;

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
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
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
        self.send(&framed(text));
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

/// What a server says in tests of one TCP stream from the client.
#[derive(Debug)]
pub(crate) struct Answers {
    /// The JSON of its results.
    pub(crate) results: String,
    /// As a linerate: the JSON of its hello and of its half of the record.
    pub(crate) linerate: Option<[String; 2]>,
}

impl Answers {
    /// Answers one client after the other until the process ends; gives back the port.
    pub(crate) fn serve(self) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // A client that goes away early is another test's matter.
        std::thread::spawn(move || {
            while self.answer(&listener).is_ok() {}
            drop(listener);
        });
        port
    }

    fn answer(&self, listener: &TcpListener) -> std::io::Result<()> {
        let (mut control, _) = listener.accept()?;
        control.read_exact(&mut [0; 37])?;
        control.write_all(&[PARAM_EXCHANGE])?;
        frame(&mut control)?;
        if let Some([hello, _]) = &self.linerate {
            say(&mut control, &format!(r#"{{"hello":{hello}}}"#))?;
            pongs_until(&mut control, "ready")?;
        }
        control.write_all(&[CREATE_STREAMS])?;
        let (mut data, _) = listener.accept()?;
        let reading = std::thread::spawn(move || std::io::copy(&mut data, &mut std::io::sink()));
        control.write_all(&[TEST_START, TEST_RUNNING])?;
        while byte(&mut control)? == LINERATE {
            frame(&mut control)?;
        }
        control.write_all(&[EXCHANGE_RESULTS])?;
        frame(&mut control)?;
        control.write_all(&framed(&self.results))?;
        if let Some([_, half]) = &self.linerate {
            pongs_until(&mut control, "end_request")?;
            say(&mut control, &format!(r#"{{"end":{half}}}"#))?;
        }
        control.write_all(&[DISPLAY_RESULTS])?;
        byte(&mut control)?;
        drop(reading.join());
        Ok(())
    }
}

fn byte(stream: &mut TcpStream) -> std::io::Result<u8> {
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// A message that has its length before it.
fn frame(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut message)?;
    Ok(String::from_utf8_lossy(&message).into_owned())
}

fn framed(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap();
    [&length.to_be_bytes(), text.as_bytes()].concat()
}

fn say(stream: &mut TcpStream, message: &str) -> std::io::Result<()> {
    stream.write_all(&[&[LINERATE], framed(message).as_slice()].concat())
}

/// Answers a linerate's questions about the clock until it says something else.
fn pongs_until(stream: &mut TcpStream, last: &str) -> std::io::Result<()> {
    loop {
        assert_eq!(byte(stream)?, LINERATE);
        let message: serde_json::Value = serde_json::from_str(&frame(stream)?)?;
        if message.get(last).is_some() {
            return Ok(());
        }
        let n = &message["ping"]["n"];
        say(
            stream,
            &format!(r#"{{"pong":{{"n":{n},"received_ns":1000,"sent_ns":2000}}}}"#),
        )?;
    }
}
