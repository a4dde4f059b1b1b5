//! The record of a real test and the facts of a real host, of which each agent sends its own.

use linerate_kernel::clock;

use crate::harness::{Folder, LONG, Server, linerate, run};

/// What stands where the time at which the test began was.
const STARTED: &str = "\"started_at_unix_ms\":";
/// What stands before the name of the host.
const HOST_NAME: &str = "\"hostname\": \"";

/// What agents send.
#[derive(Debug)]
pub(super) struct Sample {
    /// A record, cut where the moment at which it began was.
    record: [Vec<u8>; 2],
    /// Facts, cut where the host's name was.
    facts: [Vec<u8>; 2],
}

impl Sample {
    /// Makes a test of so many seconds over loopback, as often as a hub would find in its archive.
    pub(super) fn make(seconds: u32) -> Self {
        let folder = Folder::new();
        let server = Server::linerate(&[]);
        let words = format!("test 127.0.0.1 -p {} -t {seconds} -b 100M", server.port);
        let file = folder.file("record.json");
        let mut command = linerate(&words);
        run(command.arg("-o").arg(&file), LONG).expect(0);
        let record = std::fs::read_to_string(file).unwrap();
        let facts = run(&mut linerate("host --json"), LONG).expect(0).out;
        Self {
            record: cut(&record, STARTED, ','),
            facts: cut(&facts, HOST_NAME, '"'),
        }
    }

    /// The size of a record, bytes.
    pub(super) fn bytes(&self) -> usize {
        self.record.iter().map(Vec::len).sum()
    }

    /// A record of a test that has just ended: no two are the same.
    pub(super) fn record(&self) -> Vec<u8> {
        let now = clock::wall().0 / 1_000_000;
        self.record.join(now.to_string().as_bytes())
    }

    /// Facts of the host of this name.
    pub(super) fn facts(&self, host: &str) -> Vec<u8> {
        self.facts.join(host.as_bytes())
    }
}

/// What is before a value, and what is after it.
fn cut(text: &str, before: &str, end: char) -> [Vec<u8>; 2] {
    let (first, rest) = text.split_once(before).unwrap();
    let (_, last) = rest.split_once(end).unwrap();
    [
        format!("{first}{before}").into(),
        format!("{end}{last}").into(),
    ]
}
