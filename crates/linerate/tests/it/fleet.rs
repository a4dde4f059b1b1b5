//! Hosts reached by carriers: children of this machine that stand for hosts, and a real sshd.

use std::path::Path;
use std::sync::Arc;

use linerate_fleet::bootstrap::Binary;
use linerate_fleet::carrier::Carrier;
use linerate_fleet::{Ask, Event, Reach, Session};
use linerate_model::units::Nanos;
use linerate_wire::agent::Outcome;

use crate::harness::{Folder, LINERATE, beside};

/// Children that keep the binary below this folder.
fn children(home: &Folder) -> Reach {
    let via = format!(
        "env HOME={} XDG_CACHE_HOME= LINERATE_HOST={{host}} sh -c",
        home.path().display()
    );
    Reach {
        carrier: Carrier::template(&via).unwrap(),
        binaries: Arc::from([Binary::read(Path::new(LINERATE), std::env::consts::ARCH).unwrap()]),
        elevation: None,
        connect_timeout: Nanos::from_millis(60_000),
    }
}

/// Standard output and the end of a command.
fn answer(session: &Session, ask: Ask) -> (String, String, Outcome) {
    let mut asked = session.ask(ask).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    loop {
        match asked.next(None).unwrap() {
            Event::Out(bytes) => out.extend(bytes),
            Event::Err(bytes) => err.extend(bytes),
            Event::File(..) => {}
            Event::Ended(outcome) => {
                let text = |bytes| String::from_utf8(bytes).unwrap();
                return (text(out), text(err), outcome);
            }
        }
    }
}

#[test]
fn a_child_is_a_host_that_runs_commands() {
    let _beside = beside();
    let home = Folder::new();
    let reach = children(&home);
    let session = Session::open("n1", &reach).unwrap();
    assert_eq!(session.hello().host, "n1");
    let (out, err, outcome) = answer(&session, Ask::new(["nodes", "expand", "a[1-2]"]));
    assert_eq!(
        (out.as_str(), err.as_str(), outcome),
        ("a1\na2\n", "", Outcome::Code(0))
    );
    let (_, err, outcome) = answer(&session, Ask::new(["nodes", "expand", "a["]));
    assert_eq!(outcome, Outcome::Code(2));
    assert!(err.starts_with("linerate: error: "), "{err}");
    drop(session);
    // It is there for the next one.
    let kept = std::fs::read_dir(home.file(".cache/linerate")).unwrap();
    assert_eq!(kept.count(), 1);
    let again = Session::open("n1", &reach).unwrap();
    assert_eq!(answer(&again, Ask::new(["nodes", "count", "a"])).0, "1\n");
}
