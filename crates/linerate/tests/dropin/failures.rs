//! What cannot be done: exit code, standard output and the lines of standard error are iperf3's. What linerate knows
//! beyond them stands on lines of its own behind them, which begin with two blanks or `linerate: `.

use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::client;
use super::differ::Reference;
use super::normal::{Reading, difference, documents, text};
use crate::auth::Keys;
use linerate_testing::{Need, skipped};

use crate::harness::{Done, LINERATE, LONG, Server, beside, free_port, run, start};

/// What a failing program meets.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// The words of any program; `PORT` is one that nobody listens on.
    Alone(&'static str),
    /// A server's words on a port that another program has.
    PortTaken(&'static str),
    /// A client's words at something that reads its cookie and closes.
    Closes(&'static str),
    /// A client's words at a stock server that is in a test.
    Busy(&'static str),
    /// The words of a server and of its client.
    Refuses(&'static str, &'static str),
    /// A client's words at a server that wants another password.
    WrongPassword(&'static str),
}

const FAILURES: [Stage; 36] = [
    Stage::Alone("-c 127.0.0.1 -p PORT"),
    Stage::Alone("-c 127.0.0.1 -p PORT -J"),
    Stage::Alone("-c 127.0.0.1 -p PORT --json-stream"),
    Stage::Alone("-c 127.0.0.1 -p PORT -u"),
    Stage::Alone("-c 127.0.0.1 -p PORT -B 192.0.2.1"),
    Stage::Alone("-c 127.0.0.1 -p PORT --logfile /nonexistent/file"),
    Stage::Alone("-c no.such.host.invalid -p PORT"),
    Stage::Alone("-c 127.0.0.1 -p PORT --cntl-ka=10//3"),
    Stage::Alone("-c 127.0.0.1 -p PORT -B no.such.host.invalid"),
    Stage::Alone("-c 127.0.0.1 -p PORT --bind-dev nosuch"),
    Stage::Alone("-s -p PORT --bind-dev nosuch"),
    Stage::Alone("-s -p PORT -1 --idle-timeout 1"),
    Stage::Alone("--no-such-option"),
    Stage::Alone("-c h -C"),
    Stage::Alone("-c h -P 1000"),
    Stage::Alone("-c h -i 99 -J"),
    Stage::Alone("-c h -b 1X"),
    Stage::Alone("-c h -t 1 -n 1M"),
    Stage::Alone("-c h -u -F /etc/passwd"),
    Stage::Alone("-c h -R --bidir"),
    Stage::Alone("-c h -D"),
    Stage::Alone("-s -R"),
    Stage::Alone(""),
    Stage::PortTaken("-s"),
    Stage::PortTaken("-s -J"),
    Stage::Closes("-t 1"),
    Stage::Closes("-t 1 -J"),
    Stage::Busy("-t 1"),
    Stage::Busy("-t 1 -J"),
    Stage::Refuses("--server-max-duration 1", "-t 5"),
    Stage::Refuses("--server-max-duration 1 -J", "-t 5 -J"),
    Stage::Refuses("--server-bitrate-limit 1M", "-t 1 -b 5M"),
    Stage::Refuses("--server-bitrate-limit 1M -J", "-t 1 -b 5M -J"),
    Stage::Refuses("", "-t 1 -w 512M"),
    Stage::Refuses("-J", "-t 1 -w 512M -J"),
    Stage::WrongPassword("-t 1 --username joe"),
];

/// The programs under comparison, both called `iperf3`.
#[derive(Debug, Clone, Copy)]
struct Program<'a>(&'a str);

impl Program<'_> {
    fn command(self) -> Command {
        let mut command = Command::new(self.0);
        command.arg0("iperf3");
        command
    }

    fn with(self, words: &str) -> Command {
        let mut command = self.command();
        command.args(words.split_whitespace());
        command
    }

    fn serving(self, words: &str) -> Server {
        Server::iperf3(&mut self.with(&format!("--forceflush -1 {words}")))
    }

    fn visits(self, server: &Server, words: &str) -> Done {
        run(
            &mut client(self.command(), "127.0.0.1", server.port, words),
            LONG,
        )
    }
}

impl Stage {
    /// What the subject's processes printed; the other end is `stock`.
    fn play(self, subject: Program, stock: Program) -> Option<Vec<Done>> {
        Some(match self {
            Self::Alone(words) => {
                let words = words.replace("PORT", &free_port().to_string());
                vec![run(&mut subject.with(&words), LONG)]
            }
            Self::PortTaken(words) => {
                let holder = TcpListener::bind(("::", 0)).unwrap();
                let port = holder.local_addr().unwrap().port();
                vec![run(&mut subject.with(&format!("{words} -p {port}")), LONG)]
            }
            Self::Closes(words) => {
                let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
                let port = listener.local_addr().unwrap().port();
                let closer = std::thread::spawn(move || {
                    let (mut stream, _) = listener.accept().unwrap();
                    stream.read_exact(&mut [0; 37]).unwrap();
                });
                let done = run(
                    &mut client(subject.command(), "127.0.0.1", port, words),
                    LONG,
                );
                closer.join().unwrap();
                vec![done]
            }
            Self::Busy(words) => {
                let server = stock.serving("");
                let first = client(stock.command(), "127.0.0.1", server.port, "-t 5 -b 1M");
                let first = start(&mut { first });
                server.tells("connected to", 1);
                let done = subject.visits(&server, words);
                drop(first);
                vec![done]
            }
            Self::Refuses(server_words, words) => {
                let server = stock.serving(server_words);
                let guest = subject.visits(&server, words);
                let server = subject.serving(server_words);
                let host = stock.visits(&server, words);
                vec![guest, host, server.ends()]
            }
            Self::WrongPassword(words) => {
                let keys = Keys::new("a wrong password beside the newest iperf3")?;
                let server = stock.serving(&keys.of_server().join(" "));
                let key = keys.public.display();
                let words = format!("{words} --rsa-public-key-path {key}");
                let mut command = client(subject.command(), "127.0.0.1", server.port, &words);
                vec![run(command.env("IPERF3_PASSWORD", "wrong"), LONG)]
            }
        })
    }

    /// Whether iperf3 3.12 says the same as the newest.
    fn as_before(self) -> bool {
        match self {
            Self::Alone(words) => words.contains("--logfile"),
            Self::PortTaken(words) => words == "-s",
            Self::Closes(words) | Self::Busy(words) => words == "-t 1",
            Self::Refuses(..) | Self::WrongPassword(_) => false,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Alone(words)
            | Self::PortTaken(words)
            | Self::Closes(words)
            | Self::Busy(words)
            | Self::Refuses(_, words)
            | Self::WrongPassword(words) => words,
        }
    }

    /// A process as lines that can be compared.
    fn lines(self, done: &Done, older: bool) -> Vec<String> {
        let reading = Reading {
            udp: false,
            fixed_units: false,
            older,
        };
        let json = ["-J", "--json"]
            .iter()
            .any(|option| self.words().contains(option));
        let out = if json {
            documents(&done.out, reading)
        } else {
            text(&done.out, reading)
        };
        let beyond = |line: &&str| line.starts_with("  ") || line.starts_with("linerate: ");
        let error = done.error.lines().filter(|line| !beyond(line));
        out.into_iter()
            .chain(error.map(|line| format!("stderr: {line}")))
            .chain([format!("exit code: {:?}", done.code())])
            .collect()
    }

    /// What linerate does otherwise; a stage that a busy machine disturbed is played again.
    fn differs(self, reference: &Reference) -> Option<String> {
        const TRIES: usize = 3;
        let mut found = None;
        for _ in 0..TRIES {
            found = Some(self.differs_once(reference)?);
        }
        found
    }

    fn differs_once(self, reference: &Reference) -> Option<String> {
        let (stock, linerate) = (Program(&reference.program), Program(LINERATE));
        let theirs = self.play(stock, stock)?;
        let ours = self.play(linerate, stock)?;
        let all = theirs.iter().zip(&ours).filter_map(|(theirs, ours)| {
            let lines = |done| self.lines(done, reference.older);
            let found = difference(&lines(theirs), &lines(ours))?;
            Some(format!("  {}\n{found}", ours.what))
        });
        let all: Vec<String> = all.collect();
        (!all.is_empty()).then(|| format!("{self:?}\n{}", all.join("\n")))
    }
}

#[test]
fn failures_have_iperf3s_sentences_and_exit_codes() {
    let _beside = beside();
    let Some(reference) = Reference::found("failures beside iperf3's") else {
        return;
    };
    let found: Vec<String> = std::thread::scope(|scope| {
        let reference = &reference;
        let play = |stage: &'static Stage| scope.spawn(move || stage.differs(reference));
        let (there, elsewhere): (Vec<_>, Vec<_>) = FAILURES
            .iter()
            .partition(|stage| !reference.older || stage.as_before());
        if !elsewhere.is_empty() {
            let what = format!("{} of the failures beside iperf3's", elsewhere.len());
            let why = "iperf3 3.12 says them otherwise than the newest";
            skipped(Need::NewestIperf3, &what, why);
        }
        let plays: Vec<_> = there.into_iter().map(play).collect();
        plays
            .into_iter()
            .filter_map(|one| one.join().unwrap())
            .collect()
    });
    assert!(
        found.is_empty(),
        "{} differ\n{}",
        found.len(),
        found.join("\n")
    );
}
