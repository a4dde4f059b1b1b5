//! A client and a server that speak iperf3's control protocol byte by byte, so that they can say what neither says.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) const DISPLAY_RESULTS: u8 = 14;
const LINERATE: u8 = 76;
pub(crate) const TEST_START: u8 = 1;
pub(crate) const TEST_RUNNING: u8 = 2;
pub(crate) const TEST_END: u8 = 4;
pub(crate) const PARAM_EXCHANGE: u8 = 9;
pub(crate) const CREATE_STREAMS: u8 = 10;
pub(crate) const EXCHANGE_RESULTS: u8 = 13;
/// The results of an end that has no streams to tell of.
pub(crate) const RESULTS: &str = r#"{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":1,"sender_has_retransmits":-1,"streams":[]}"#;

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

/// A server's end of a control connection.
#[derive(Debug)]
pub(crate) struct RawServer {
    pub(crate) stream: TcpStream,
    pub(crate) listener: TcpListener,
}

impl RawServer {
    /// Has each client treated by a script, one after the other; ends with the process.
    pub(crate) fn start(script: impl Fn(&mut Self) -> std::io::Result<()> + Send + 'static) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let listener = listener.try_clone().unwrap();
                // A client that goes before the end of the script is the test's to judge.
                if stream.read_exact(&mut [0; 37]).is_ok() {
                    drop(script(&mut Self { stream, listener }));
                }
            }
        });
        port
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Reads a message with its length before it.
    pub(crate) fn message(&mut self) -> std::io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut text = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
        self.stream.read_exact(&mut text)?;
        Ok(text)
    }

    /// Runs a test of one TCP stream that the client sends on, to where its results have come and ours are due.
    pub(crate) fn test(&mut self) -> std::io::Result<()> {
        self.send(&[PARAM_EXCHANGE])?;
        self.message()?;
        self.send(&[CREATE_STREAMS])?;
        let (mut data, _) = self.listener.accept()?;
        self.send(&[TEST_START, TEST_RUNNING])?;
        let reader = std::thread::spawn(move || std::io::copy(&mut data, &mut std::io::sink()));
        let mut state = [0];
        self.stream.read_exact(&mut state)?;
        assert_eq!(state, [TEST_END]);
        drop(reader);
        self.send(&[EXCHANGE_RESULTS])?;
        self.message().map(drop)
    }

    /// Waits until the client has gone.
    pub(crate) fn hold(&mut self) -> std::io::Result<()> {
        std::io::copy(&mut self.stream, &mut std::io::sink()).map(drop)
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
        RawServer::start(move |server| self.answer(server))
    }

    fn answer(&self, server: &mut RawServer) -> std::io::Result<()> {
        let RawServer {
            stream: control,
            listener,
        } = server;
        control.write_all(&[PARAM_EXCHANGE])?;
        frame(control)?;
        if let Some([hello, _]) = &self.linerate {
            say(control, &format!(r#"{{"hello":{hello}}}"#))?;
            pongs_until(control, "ready")?;
        }
        control.write_all(&[CREATE_STREAMS])?;
        let (mut data, _) = listener.accept()?;
        let reading = std::thread::spawn(move || std::io::copy(&mut data, &mut std::io::sink()));
        control.write_all(&[TEST_START, TEST_RUNNING])?;
        while byte(control)? == LINERATE {
            frame(control)?;
        }
        control.write_all(&[EXCHANGE_RESULTS])?;
        frame(control)?;
        control.write_all(&framed(&self.results))?;
        if let Some([_, half]) = &self.linerate {
            pongs_until(control, "end_request")?;
            say(control, &format!(r#"{{"end":{half}}}"#))?;
        }
        control.write_all(&[DISPLAY_RESULTS])?;
        byte(control)?;
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

/// A text with its length before it.
pub(crate) fn framed(text: &str) -> Vec<u8> {
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
