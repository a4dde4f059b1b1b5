//! Option sets run by iperf3 at iperf3, then with linerate as the client, as the server and as both: what each end
//! prints differs in figures only. [`super::normal`] says what counts as a figure.

use std::collections::VecDeque;
use std::process::Command;
use std::sync::Mutex;

use super::normal::{NEWER, Reading, difference, documents, text};
use super::{client, ours};
use linerate_testing::{Need, skipped};

use crate::harness::{Done, LONG, Server, beside, iperf3, newest, run};

/// A client's options. `-R` has intervals that end before the test does: iperf3's client heads the table by what it
/// knows when it prints the first row. `-T` is without `-V`, with which iperf3 puts the title twice or not at all.
const SETS: [&str; 48] = [
    "-t 1 -b 20M",
    "-t 1 -b 20M -R -i 0.4",
    "-t 1 -b 20M --bidir",
    "-t 1 -b 20M -P 2",
    "-t 1 -b 20M -P 2 -R -i 0.4",
    "-t 1 -b 20M -P 2 --bidir",
    "-t 1 -b 20M -V",
    "-t 1 -b 20M -V -R -i 0.4",
    "-t 1 -b 20M -V --bidir",
    "-t 1 -b 20M -V -P 2",
    "-t 1 -b 20M -O 1 -i 0.4",
    "-n 2M -b 20M -i 0.3",
    "-k 16 -b 20M -i 0.3",
    "-n 2M -b 20M -R -i 0.3",
    "-n 2M -b 20M -i 0.3 -V",
    "-k 32 -b 20M -P 2 -i 0.3",
    "-t 1 -b 20M -i 0.4",
    "-t 1 -b 20M -i 0",
    "-t 1 -b 20M -f k",
    "-t 1 -b 20M -f M",
    "-t 1 -b 20M -l 16K -V",
    "-t 1 -b 20M -w 128K -V",
    "-t 1 -b 20M -M 1000",
    "-t 1 -b 20M -M 1000 -V",
    "-t 1 -b 20M -C cubic -V",
    "-t 1 -b 20M -S 0x08 -V",
    "-t 1 -b 20M -N -Z",
    "-t 1 -b 20M -T title",
    "-t 1 -b 20M --extra-data words -V",
    "-t 1 -b 20M --fq-rate 30M -V",
    "-t 1 -b 20M --repeating-payload --connect-timeout 3000",
    "-t 1 -b 20M -6",
    "-t 1 -b 20M --timestamps=STAMP:",
    "-t 1 -b 20M --get-server-output",
    "-t 1 -b 20M --get-server-output -V",
    "-t 1 -u",
    "-t 1 -u -b 20M -R",
    "-t 1 -u -b 20M --bidir",
    "-t 1 -u -b 20M -P 2",
    "-t 1 -u -b 20M -P 2 -R",
    "-t 1 -u -b 20M -V",
    "-t 1 -u -b 20M -R -V",
    "-t 1 -u -b 20M -l 1000 -V",
    "-t 1 -u -b 20M --udp-counters-64bit",
    "-t 1 -u -b 20M -O 1 -i 0.4",
    "-u -k 60 -b 20M -i 0.3",
    "-u -n 2M -b 20M -R -i 0.3",
    "-t 1 -u -b 20M --get-server-output",
];

/// The iperf3 that linerate is compared with: the newest where it is there, and Debian's, which is older, otherwise.
#[derive(Debug, Clone)]
pub(super) struct Reference {
    pub(super) program: String,
    /// Without what came after Debian's release.
    pub(super) older: bool,
}

impl Reference {
    pub(super) fn found(what: &str) -> Option<Self> {
        let newest = newest(&format!("{what}: what came after iperf3 3.12"));
        let older = newest.is_none();
        let program = newest.or_else(|| iperf3(what).map(str::to_owned))?;
        Some(Self { program, older })
    }
}

/// How both ends print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Document,
    Stream,
}

impl Form {
    const fn option(self) -> &'static str {
        match self {
            Self::Text => "",
            Self::Document => "-J",
            Self::Stream => "--json-stream",
        }
    }
}

/// Some options in some form.
#[derive(Debug, Clone, Copy)]
struct Case {
    words: &'static str,
    form: Form,
}

/// What the two ends of a test printed.
struct Pair {
    client: Done,
    server: Done,
}

impl Case {
    fn run(self, mut server: Command, client_command: Command) -> Pair {
        let option = self.form.option();
        if self.words.contains("-V") {
            server.arg("-V");
        }
        let server = Server::iperf3(server.arg("-1").args(option.split_whitespace()));
        let host = if self.words.contains("-6") {
            "::1"
        } else {
            "127.0.0.1"
        };
        let words = format!("{} {option}", self.words);
        let mut command = client(client_command, host, server.port, &words);
        let client = run(&mut command, LONG);
        Pair {
            client,
            server: server.ends(),
        }
    }

    fn reading(self, older: bool) -> Reading {
        Reading {
            older,
            udp: self.words.contains("-u"),
            fixed_units: self.words.contains("-f"),
        }
    }

    fn lines(self, done: &Done, older: bool) -> Vec<String> {
        let mut lines = match self.form {
            Form::Text => text(&done.out, self.reading(older)),
            Form::Document | Form::Stream => documents(&done.out, self.reading(older)),
        };
        let error = done.error.lines().map(|line| format!("stderr: {line}"));
        lines.extend(error.chain([format!("exit code: {:?}", done.code())]));
        lines
    }

    /// What linerate prints otherwise than the reference does; absent where nothing. A test in which the machine was
    /// too busy for either gets another try.
    fn differs(self, reference: &Reference) -> Option<String> {
        const TRIES: usize = 3;
        let mut theirs = Vec::new();
        let mut open = vec![Who::Client, Who::Server, Who::Both];
        let mut found = String::new();
        for _ in 0..TRIES {
            let program = || Command::new(&reference.program);
            let pair = self.run(program(), program());
            let lines = |done| self.lines(done, reference.older);
            theirs.push([lines(&pair.client), lines(&pair.server)]);
            found.clear();
            open.retain(|who| {
                let [client, server] = who.commands(&reference.program);
                let pair = self.run(server, client);
                let difference = self.least(&theirs, &pair, *who, reference.older);
                found.extend(difference.iter().map(String::as_str));
                difference.is_some()
            });
            if open.is_empty() {
                return None;
            }
        }
        Some(format!("{:?} {}\n{found}", self.form, self.words))
    }

    /// The difference to that run of the reference which is nearest.
    fn least(
        self,
        theirs: &[[Vec<String>; 2]],
        pair: &Pair,
        who: Who,
        older: bool,
    ) -> Option<String> {
        let mut out = Vec::new();
        for (end, (at, done)) in [("client", (0, &pair.client)), ("server", (1, &pair.server))] {
            let lines = self.lines(done, older);
            let all = theirs.iter().map(|run| difference(&run[at], &lines));
            let least = all.min_by_key(|found| found.as_ref().map_or(0, String::len));
            if let Some(Some(least)) = least {
                out.push(format!(
                    "  linerate as {who:?}, the {end}'s output:\n{least}\n"
                ));
            }
        }
        (!out.is_empty()).then(|| out.concat())
    }
}

/// Which end linerate is.
#[derive(Debug, Clone, Copy)]
enum Who {
    Client,
    Server,
    Both,
}

impl Who {
    /// Client and server.
    fn commands(self, reference: &str) -> [Command; 2] {
        match self {
            Self::Client => [ours(), Command::new(reference)],
            Self::Server => [Command::new(reference), ours()],
            Self::Both => [ours(), ours()],
        }
    }
}

/// Every case, several at once: they wait more than they work.
fn differences(cases: Vec<Case>, reference: &Reference) -> Vec<String> {
    const AT_ONCE: usize = 24;
    let queue: Mutex<VecDeque<Case>> = Mutex::new(cases.into());
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = { queue.lock().unwrap().pop_front() } {
                    if let Some(text) = case.differs(reference) {
                        found.lock().unwrap().push(text);
                    }
                }
            });
        }
    });
    found.into_inner().unwrap()
}

#[test]
fn text_and_json_of_every_option_set_differ_in_figures_only() {
    let _beside = beside();
    let Some(reference) = Reference::found("text and JSON beside iperf3's") else {
        return;
    };
    let mut forms = vec![Form::Text, Form::Document];
    if reference.older {
        skipped(
            Need::NewestIperf3,
            "--json-stream beside iperf3's",
            "Debian's iperf3 has none",
        );
        skipped(
            Need::NewestIperf3,
            &format!("the keys {} beside iperf3's", NEWER.join(", ")),
            "Debian's iperf3 does not have all of them",
        );
    } else {
        forms.push(Form::Stream);
    }
    let cases = SETS
        .iter()
        .flat_map(|words| forms.iter().map(|form| Case { words, form: *form }));
    let found = differences(cases.collect(), &reference);
    assert!(
        found.is_empty(),
        "{} differ\n{}",
        found.len(),
        found.join("\n")
    );
}
