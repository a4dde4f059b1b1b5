//! Short random tests, ours and iperf3's in all four pairings: what one end wrote is what the other read, or the
//! difference is explained.
//!
//!     make ledger-campaign N=1000 SEED=1
//!
//! Each test has a number, which alone decides what it does; twelve run with the other tests. A disagreement is *theirs*
//! where what iperf3 does explains it within a bound, and else a defect, which fails the run and names the command that
//! repeats it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use linerate_analysis::ledger::Ledger;
use linerate_model::record::RunRecord;
use serde_json::Value;

use crate::harness::{Folder, LONG, Running, Server, alone, asked, iperf3, say, start};

/// Without another wish.
const TESTS: u64 = 12;
const SEED: u64 = 1;
/// A test that is to be killed would last so long.
const KILLED_SECONDS: u32 = 4;

/// A generator of draws (`SplitMix64`).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.within(0, all.len() as u64 - 1)).unwrap()]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.within(1, 100) <= percent
    }
}

/// Who is killed, how, and when after the client's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kill {
    client: bool,
    signal: &'static str,
    after: Duration,
}

/// One test.
#[derive(Debug, Clone)]
struct Drawn {
    number: u64,
    /// Whether the client, and the server, are ours.
    ours: [bool; 2],
    udp: bool,
    /// It lasts for a time, not for an amount.
    timed: bool,
    streams: u64,
    words: String,
    kill: Option<Kill>,
}

impl Drawn {
    /// The numbers take turns through the pairings.
    fn of(number: u64) -> Self {
        let mut draws = Draws(number);
        let udp = draws.chance(30);
        let streams = draws.within(1, 4);
        let kill = draws.chance(30).then(|| Kill {
            client: draws.chance(50),
            signal: draws.one_of(&["INT", "TERM", "KILL"]),
            after: Duration::from_millis(draws.within(200, 1500)),
        });
        let mut words = vec![draws.one_of(&["", "-R", "--bidir"]).to_owned()];
        words.push(format!("-P {streams}"));
        let block = if udp {
            draws.within(64, 1400)
        } else {
            draws.within(1024, 256 << 10)
        };
        if draws.chance(60) {
            words.push(format!("-l {block}"));
        }
        if udp {
            words.push(format!("-u -b {}M", draws.within(1, 50)));
        } else {
            if draws.chance(25) {
                words.push(format!("-b {}M", draws.within(1, 200)));
            }
            if draws.chance(25) {
                words.push(format!("-M {}", draws.within(536, 1400)));
            }
            if draws.chance(25) {
                words.push(format!("-w {}K", draws.within(16, 512)));
            }
        }
        let timed = kill.is_some() || draws.chance(50);
        words.push(if kill.is_some() {
            format!("-t {KILLED_SECONDS}")
        } else if timed {
            "-t 1".to_owned()
        } else if udp {
            format!("-n {}K", draws.within(1, 100))
        } else {
            format!("-n {}", draws.within(1, 8 << 20))
        });
        Self {
            number,
            ours: [number & 1 == 0, number & 2 == 0],
            udp,
            timed,
            streams,
            words: words.join(" "),
            kill,
        }
    }

    fn stock_in_it(&self) -> bool {
        !(self.ours[0] && self.ours[1])
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [client, server] = self
            .ours
            .map(|ours| if ours { "linerate" } else { "iperf3" });
        write!(f, "{client} at {server}: {}", self.words)?;
        if let Some(kill) = self.kill {
            let who = if kill.client { "client" } else { "server" };
            write!(f, ", {} to the {who} after {:?}", kill.signal, kill.after)?;
        }
        Ok(())
    }
}

/// What one end counted itself, bytes; `None` where it told nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Own {
    written: Option<u64>,
    read: Option<u64>,
}

impl Own {
    fn of_record(record: &RunRecord) -> Self {
        let mut own = Self::default();
        for stream in record.own_end().into_iter().flat_map(|end| &end.streams) {
            let sum = if stream.sends {
                &mut own.written
            } else {
                &mut own.read
            };
            *sum = Some(sum.unwrap_or(0) + stream.app_bytes);
        }
        own
    }

    /// Of iperf3's document: each stream says whether this end sent, and what each end counted.
    fn of_document(document: &Value, udp: bool) -> Self {
        let mut own = Self::default();
        let streams = document["end"]["streams"].as_array();
        for stream in streams.into_iter().flatten() {
            let part = if udp {
                &stream["udp"]
            } else {
                &stream["sender"]
            };
            let Some(sends) = part["sender"].as_bool() else {
                continue;
            };
            let mine = match (udp, sends) {
                (true, _) => part,
                (false, true) => &stream["sender"],
                (false, false) => &stream["receiver"],
            };
            let sum = if sends {
                &mut own.written
            } else {
                &mut own.read
            };
            *sum = mine["bytes"]
                .as_u64()
                .map(|bytes| sum.unwrap_or(0) + bytes)
                .or(*sum);
        }
        own
    }
}

/// What is to be said of a test in which the ends differ.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Difference {
    /// What iperf3 does explains it.
    Theirs(&'static str),
    /// Nothing does.
    Defect(String),
}

const UNREAD: &str = "iperf3 ends a test by time without reading what its sockets hold";
const OVERTAKEN: &str =
    "an iperf3 client ends a test, in both directions, once it has written its part, read or not";
const UDP_UNDER_WAY: &str = "datagrams that were lost, or under way when the test ended";
const BY_KILL: &str = "an end was killed: what was under way was not read";
const STOCK_FAILED: &str = "iperf3 itself failed";

/// The largest amounts that the kernel holds of a stream without another wish, bytes.
fn held() -> u64 {
    ["tcp_rmem", "tcp_wmem"]
        .iter()
        .map(|setting| {
            let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{setting}")).unwrap();
            let last = text.split_whitespace().last().unwrap();
            last.parse::<u64>().unwrap()
        })
        .sum()
}

/// Holds what was written against what was read, for one flow.
fn compare(drawn: &Drawn, flow: &str, from: (bool, Own), to: (bool, Own)) -> Option<Difference> {
    let (written, read) = (from.1.written?, to.1.read?);
    let told = format!("{flow}: {written} bytes written, {read} read");
    if read > written {
        // A stock end that is killed stops counting before it stops.
        let stopped = drawn.kill.is_some() && !from.0;
        return Some(if stopped {
            Difference::Theirs(BY_KILL)
        } else {
            Difference::Defect(told)
        });
    }
    let missing = written - read;
    if missing == 0 {
        return None;
    }
    if drawn.udp {
        return Some(Difference::Theirs(UDP_UNDER_WAY));
    }
    let within = missing <= held() * drawn.streams;
    Some(match (from.0, to.0) {
        _ if !within => Difference::Defect(told),
        _ if drawn.kill.is_some() => Difference::Theirs(BY_KILL),
        (_, false) if drawn.timed => Difference::Theirs(UNREAD),
        _ if !drawn.ours[0] => Difference::Theirs(OVERTAKEN),
        _ => Difference::Defect(told),
    })
}

/// Starts a server of either kind for one test; ours keeps its record in `folder`.
fn serve(ours: bool, folder: &Path) -> Server {
    if ours {
        Server::linerate(&["--one-off", "-o", folder.to_str().unwrap()])
    } else {
        Server::iperf3(Command::new("iperf3").args(["-1", "-J"]))
    }
}

/// The records that an end of ours left, or iperf3's document.
fn own_of(ours: bool, records: &[RunRecord], out: &str, udp: bool) -> Own {
    if ours {
        records.first().map_or_else(Own::default, Own::of_record)
    } else {
        let document = serde_json::from_str(out).unwrap_or(Value::Null);
        Own::of_document(&document, udp)
    }
}

/// What came of a test.
struct Made {
    /// Both ends told what they counted of a flow.
    compared: bool,
    differences: Vec<Difference>,
}

/// Makes a test, and says where the ends differ.
fn make(drawn: &Drawn) -> Made {
    let folders = [Folder::new(), Folder::new()];
    let server = serve(drawn.ours[1], folders[1].path());
    let mut command = if drawn.ours[0] {
        let file = folders[0].file("client.json");
        server.client(&format!("{} --json -o {}", drawn.words, file.display()))
    } else {
        let mut command = Command::new("iperf3");
        let words = format!("-c {} {} -J", server.at(), drawn.words);
        command.args(words.split_whitespace());
        command
    };
    let client = start(&mut command);
    if let Some(kill) = drawn.kill {
        // The instant is part of what was drawn.
        std::thread::sleep(kill.after);
        let mut victim: &Running = &server.process;
        if kill.client {
            victim = &client;
        }
        victim.signal(kill.signal);
    }
    let client = client.wait(LONG);
    let mut process = server.process;
    // A server whose client died of a signal may wait for it: it is ended as a user would.
    if drawn.kill.is_some()
        && !crate::harness::wait_until(Duration::from_secs(10), || process.ended())
    {
        process.signal("INT");
    }
    let served = process.wait(LONG);
    let records = folders.each_ref().map(Folder::records);
    let own = [
        own_of(drawn.ours[0], &records[0], &client.out, drawn.udp),
        own_of(drawn.ours[1], &records[1], &served.out, drawn.udp),
    ];
    let ends = [(drawn.ours[0], own[0]), (drawn.ours[1], own[1])];
    let told = |from: Own, to: Own| from.written.is_some() && to.read.is_some();
    let mut found: Vec<Difference> = [
        compare(drawn, "client to server", ends[0], ends[1]),
        compare(drawn, "server to client", ends[1], ends[0]),
    ]
    .into_iter()
    .flatten()
    .collect();
    for (at, done) in [&client, &served].into_iter().enumerate() {
        let failed = done.code() != Some(0);
        if failed && drawn.kill.is_none() {
            let who = ["client", "server"][at];
            found.push(if drawn.ours[at] {
                let why = format!("{:.400}{:.400}", done.error, done.out);
                Difference::Defect(format!("our {who} ended with {:?}: {why}", done.code()))
            } else {
                Difference::Theirs(STOCK_FAILED)
            });
        }
    }
    found.extend(broken(drawn, &records));
    let compared = told(own[0], own[1]) || told(own[1], own[0]);
    if !compared && drawn.kill.is_none() && found.is_empty() {
        found.push(Difference::Defect(format!(
            "neither flow was counted at both ends: {own:?}"
        )));
    }
    Made {
        compared,
        differences: found,
    }
}

/// Equations of our own ledgers that do not hold: with two ends of ours none may fail, beside a stock one by no more than it
/// explains.
fn broken(drawn: &Drawn, records: &[Vec<RunRecord>; 2]) -> Vec<Difference> {
    let most = held() * drawn.streams;
    let mut found = Vec::new();
    for record in records.iter().flatten() {
        let book = Ledger::of(record);
        for (_, check) in book.broken() {
            let explained = drawn.stock_in_it() && check.difference() <= most;
            found.push(if explained {
                Difference::Theirs(if drawn.kill.is_some() {
                    BY_KILL
                } else {
                    UNREAD
                })
            } else {
                Difference::Defect(format!("a ledger does not balance: {check:?}"))
            });
        }
    }
    found
}

#[test]
fn random_tests_beside_iperf3_add_up_or_the_difference_is_explained() {
    let _alone = alone();
    if iperf3("the ledger against iperf3").is_none() {
        return;
    }
    let (tests, seed) = (
        asked("LINERATE_LEDGER_TESTS").unwrap_or(TESTS),
        asked("LINERATE_LEDGER_SEED").unwrap_or(SEED),
    );
    let (mut agreed, mut untold) = (0, 0);
    let mut theirs: BTreeMap<&str, u64> = BTreeMap::new();
    let mut defects = Vec::new();
    for number in (0..tests).map(|at| seed.wrapping_add(at)) {
        let drawn = Drawn::of(number);
        let made = make(&drawn);
        agreed += u64::from(made.compared && made.differences.is_empty());
        untold += u64::from(!made.compared);
        for difference in made.differences {
            match difference {
                Difference::Theirs(why) => *theirs.entry(why).or_default() += 1,
                Difference::Defect(what) => {
                    let text = format!(
                        "{drawn}\n  {what}\n  repeat: make ledger-campaign N=1 SEED={}",
                        drawn.number
                    );
                    say(&text);
                    defects.push(text);
                }
            }
        }
    }
    say(&format!(
        "ledger against iperf3: {tests} tests from number {seed} on: {agreed} agree to the byte, in {untold} an end was killed \
         before it told, {} defects",
        defects.len()
    ));
    for (why, count) in &theirs {
        say(&format!("  {count} times theirs: {why}"));
    }
    assert!(defects.is_empty(), "{}", defects.join("\n"));
}

#[test]
fn a_number_draws_the_same_test_again_and_the_numbers_cover_all_pairings() {
    let one = |number| format!("{}", Drawn::of(number));
    assert_eq!(one(7), one(7));
    let pairings: std::collections::BTreeSet<[bool; 2]> =
        (1..=4).map(|number| Drawn::of(number).ours).collect();
    assert_eq!(pairings.len(), 4);
    let all: Vec<Drawn> = (0..400).map(Drawn::of).collect();
    let share = |which: fn(&Drawn) -> bool| all.iter().filter(|one| which(one)).count();
    assert!((80..160).contains(&share(|one| one.udp)));
    assert!((80..160).contains(&share(|one| one.kill.is_some())));
}

#[test]
fn what_iperf3_does_explains_no_more_than_its_sockets_hold() {
    let drawn = |ours| Drawn {
        ours,
        udp: false,
        timed: true,
        streams: 1,
        kill: None,
        ..Drawn::of(0)
    };
    let compared = |ours: [bool; 2], written, read| {
        let [from, to] = [
            Own {
                written: Some(written),
                read: None,
            },
            Own {
                written: None,
                read: Some(read),
            },
        ];
        compare(
            &drawn(ours),
            "client to server",
            (ours[0], from),
            (ours[1], to),
        )
    };
    assert_eq!(compared([true, true], 1000, 1000), None);
    let defect = |found| matches!(found, Some(Difference::Defect(_)));
    assert!(defect(compared([true, true], 1000, 999)));
    assert!(defect(compared([true, false], 1000, 1001)));
    assert_eq!(
        compared([true, false], 1000, 999),
        Some(Difference::Theirs(UNREAD))
    );
    assert!(defect(compared([true, false], held() + 1001, 1000)));
    assert_eq!(
        compared([false, true], 1000, 999),
        Some(Difference::Theirs(OVERTAKEN))
    );
}
