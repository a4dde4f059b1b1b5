//! Sessions over a socket, with an agent that is written here.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use linerate_model::units::Nanos;
use linerate_wire::agent::{FrameReader, Header, Hello, Outcome, PROTOCOL, Stream, encode};

use super::traffic::MOST_QUEUED;
use super::{Ask, Event, Session};
use crate::error::Trouble;

const LONG: Nanos = Nanos::from_millis(60_000);
/// Bytes of a frame of output; it takes some hundred bytes on the wire.
const PIECE: usize = 8 << 20;

/// A session, and its agent: it answers the first ask with so many frames of line ends, and then each ask with its end.
fn flooded(frames: usize) -> (Session, JoinHandle<()>) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let hello = Header::Hello(Hello {
        protocol: PROTOCOL,
        ..Hello::default()
    });
    theirs.write_all(&encode(&hello, &[]).unwrap()).unwrap();
    let agent = std::thread::spawn(move || {
        let mut reader = FrameReader::default();
        let mut piece = [0; 4096];
        let mut left = frames;
        while let Ok(length @ 1..) = theirs.read(&mut piece) {
            reader.push(&piece[..length]);
            while let Ok(Some(frame)) = reader.frame() {
                let Header::Ask(ask) = frame.header else {
                    continue;
                };
                let (ask, to) = (ask.ask, Stream::Out);
                let output = encode(&Header::Output { ask, to }, &vec![b'\n'; PIECE]).unwrap();
                assert!(output.len() < 1_000, "{}", output.len());
                for _ in 0..std::mem::take(&mut left) {
                    // The session may have ended.
                    drop(theirs.write_all(&output));
                }
                let outcome = Outcome::Code(0);
                let answer = encode(&Header::Answer { ask, outcome }, &[]).unwrap();
                drop(theirs.write_all(&answer));
            }
        }
    });
    (Session::over("n1", ours).unwrap(), agent)
}

#[test]
fn a_host_that_sends_more_than_is_read_loses_its_session() {
    let (session, agent) = flooded(200);
    let mut flood = session.ask(Ask::new(["serve"])).unwrap();
    // Nobody reads the flood; the session's end is seen by the other ask.
    let mut other = session.ask(Ask::new(["reach"])).unwrap();
    let too_much = Trouble::TooMuch { most: MOST_QUEUED };
    let seen = other.next(Some(LONG)).map_err(|error| error.trouble);
    assert_eq!(seen, Err(too_much.clone()));
    // What had come is not more than the bound.
    let mut came = 0;
    let end = loop {
        match flood.next(Some(LONG)) {
            Ok(Event::Out(bytes)) => came += bytes.len(),
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error.trouble,
        }
    };
    assert_eq!(end, too_much);
    assert!((PIECE..=MOST_QUEUED).contains(&came), "{came}");
    let said = end.to_string();
    assert!(said.contains("more than 64 MiB"), "{said}");
    assert!(!session.is_open());
    drop(session);
    agent.join().unwrap();
}

#[test]
fn what_is_read_or_given_up_makes_room_again() {
    let (session, agent) = flooded(MOST_QUEUED / PIECE - 1);
    let mut given_up = session.ask(Ask::new(["serve"])).unwrap();
    assert!(matches!(given_up.next(Some(LONG)), Ok(Event::Out(_))));
    let mut other = session.ask(Ask::new(["reach"])).unwrap();
    // Its answer comes behind the flood.
    let ended = Ok(Event::Ended(Outcome::Code(0)));
    assert_eq!(other.next(Some(LONG)), ended);
    assert!(session.traffic.queued() >= PIECE);
    drop(given_up);
    assert_eq!(session.traffic.queued(), 0);
    assert!(session.is_open());
    drop(session);
    agent.join().unwrap();
}
