//! Hosts reached by carriers: children of this machine that stand for hosts, and a real sshd.

mod elevation;
mod folded;
mod killed;
mod sshd;
mod static_binary;
mod trouble;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use linerate_fleet::bootstrap::Binary;
use linerate_fleet::carrier::Carrier;
use linerate_fleet::{Ask, Asked, Event, FleetError, Reach, Session};
use linerate_model::units::Nanos;
use linerate_wire::agent::{Outcome, Word};

use crate::harness::{Done, Folder, LINERATE, beside, run, wait_until};

/// On a loaded machine two hundred hosts take their time.
const PATIENCE: Duration = Duration::from_secs(600);

/// Children of this process that stand for hosts: what they keep is below a folder, and their processes bear its mark.
struct Children {
    home: Folder,
    mark: String,
}

impl Children {
    fn new() -> Self {
        let home = Folder::new();
        std::fs::create_dir(home.file("tmp")).unwrap();
        // Others may be users there.
        for path in [home.path(), &home.file("tmp")] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
        }
        let mark = format!("LINERATE_TEST_MARK={}", home.path().display());
        Self { home, mark }
    }

    /// The beginning of each carrier's command line.
    fn environment(&self) -> String {
        let home = self.home.path().display();
        format!(
            "env HOME={home} TMPDIR={home}/tmp XDG_CACHE_HOME= LINERATE_HOST={{host}} {}",
            self.mark
        )
    }

    fn via(&self) -> String {
        format!("{} sh -c", self.environment())
    }

    fn open(&self, host: &str) -> Session {
        Session::open(host, &reach(&self.via())).unwrap()
    }

    /// `linerate` with these words on these hosts.
    fn linerate(&self, on: &str, words: &str) -> Command {
        linerate_by(&self.via(), on, words)
    }

    /// Processes of theirs that run.
    fn processes(&self) -> Vec<u32> {
        let mark = self.mark.as_bytes();
        let numbers = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let marked = |pid: &u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ"));
            environment.is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == mark))
        };
        numbers.filter(marked).collect()
    }

    /// What they left, apart from the binary.
    fn left(&self) -> Vec<String> {
        let names = |folder: &str| {
            let entries = std::fs::read_dir(self.home.file(folder))
                .into_iter()
                .flatten();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.collect::<Vec<_>>()
        };
        let mut left = names("tmp");
        let parts = names(".cache/linerate").into_iter();
        left.extend(parts.filter(|name| !name.starts_with("linerate-")));
        left
    }

    /// In the end nothing of theirs runs, and nothing is left.
    #[track_caller]
    fn assert_gone(&self, what: &str) {
        let gone = wait_until(PATIENCE, || {
            self.processes().is_empty() && self.left().is_empty()
        });
        assert!(gone, "{what}: {:?}, {:?}", self.processes(), self.left());
    }
}

/// Hosts that are reached by this command line.
fn reach(via: &str) -> Reach {
    let binary = Binary::read(Path::new(LINERATE), std::env::consts::ARCH).unwrap();
    Reach {
        carrier: Carrier::template(via).unwrap(),
        binaries: Arc::from([binary]),
        elevation: None,
        connect_timeout: Nanos::from_millis(60_000),
    }
}

/// `linerate` with these words on hosts that are reached by this command line.
fn linerate_by(via: &str, on: &str, words: &str) -> Command {
    let mut command = Command::new(LINERATE);
    command.args(words.split_whitespace());
    command.args(["--on", on, "--connect-timeout", "60s", "--via", via]);
    command
}

/// All that comes of a command.
fn whole(asked: &mut Asked) -> Result<Whole, FleetError> {
    let mut whole = Whole::default();
    loop {
        match asked.next(None)? {
            Event::Out(bytes) => whole.out.push_str(std::str::from_utf8(&bytes).unwrap()),
            Event::Err(bytes) => whole.err.push_str(std::str::from_utf8(&bytes).unwrap()),
            Event::File(at, bytes) => whole.files.push((at, bytes)),
            Event::Ended(outcome) => {
                whole.outcome = Some(outcome);
                return Ok(whole);
            }
        }
    }
}

#[derive(Default)]
struct Whole {
    out: String,
    err: String,
    files: Vec<(usize, Vec<u8>)>,
    outcome: Option<Outcome>,
}

/// A command that has not ended when a test looks at it.
fn long_ask() -> Ask {
    Ask::new(["host", "audit", "--for", "1000s"])
}

#[track_caller]
fn ran(command: &mut Command) -> Done {
    run(command, PATIENCE)
}

#[test]
fn a_child_is_a_host_that_runs_commands() {
    let _beside = beside();
    let children = Children::new();
    let session = children.open("n1");
    assert_eq!(session.hello().host, "n1");
    let ask = |ask| whole(&mut session.ask(ask).unwrap()).unwrap();
    let found = ask(Ask::new(["nodes", "expand", "a[1-2]"]));
    assert_eq!((found.out.as_str(), found.err.as_str()), ("a1\na2\n", ""));
    assert_eq!(found.outcome, Some(Outcome::Code(0)));
    let found = ask(Ask::new(["nodes", "expand", "a["]));
    assert_eq!(found.outcome, Some(Outcome::Code(2)));
    assert!(found.err.starts_with("linerate: error: "), "{}", found.err);
    drop(session);
    children.assert_gone("after the session");
    // The binary is there for the next one.
    let kept = std::fs::read_dir(children.home.file(".cache/linerate")).unwrap();
    assert_eq!(kept.count(), 1);
    let again = children.open("n1");
    let found = whole(&mut again.ask(Ask::new(["nodes", "count", "a"])).unwrap()).unwrap();
    assert_eq!(found.out, "1\n");
}

#[test]
fn files_go_there_under_their_names_and_come_back() {
    let _beside = beside();
    let children = Children::new();
    let session = children.open("n1");
    // Three at once, of which one names a file that is wrong.
    let ask = |text: &str| Ask {
        words: ["tune", "plan", "--json"]
            .map(Word::from)
            .into_iter()
            .chain([Word::In(0)])
            .collect(),
        files: vec![("mine.conf".to_owned(), text.as_bytes().to_vec())],
        ..Ask::default()
    };
    let mut wrong = session.ask(ask("net.core.rmem_max 1\n")).unwrap();
    let mut right = session.ask(ask("net.core.rmem_max = 1048576\n")).unwrap();
    let group = b"a: n[1-2]\n".to_vec();
    let mut groups = session
        .ask(Ask {
            words: vec![
                "nodes".into(),
                "expand".into(),
                "@a".into(),
                "--groups".into(),
                Word::In(0),
            ],
            files: vec![("../groups of mine".to_owned(), group)],
            ..Ask::default()
        })
        .unwrap();
    let groups = whole(&mut groups).unwrap();
    assert_eq!(groups.out, "n1\nn2\n", "{}", groups.err);
    let right = whole(&mut right).unwrap();
    assert!(right.out.contains("net.core.rmem_max"), "{}", right.err);
    let wrong = whole(&mut wrong).unwrap();
    assert!(wrong.err.contains(" mine.conf:1"), "{}", wrong.err);
    // A record comes back as a file.
    let mut out = session
        .ask(Ask::new([
            Word::from("explain"),
            Word::from("--out-that-is-none"),
            Word::Out(0),
        ]))
        .unwrap();
    assert!(whole(&mut out).unwrap().files.is_empty());
    drop(session);
    children.assert_gone("after the session");
}

#[test]
fn a_command_is_cancelled_and_its_output_kept() {
    let _beside = beside();
    let children = Children::new();
    let session = children.open("n1");
    let mut asked = session.ask(long_ask()).unwrap();
    // It has begun.
    assert!(matches!(asked.next(None).unwrap(), Event::Err(_)));
    asked.cancel();
    let end = whole(&mut asked).unwrap().outcome;
    assert_eq!(end, Some(Outcome::Signal(15)));
    // One that nobody waits for any more is ended too.
    let mut asked = session.ask(long_ask()).unwrap();
    assert!(matches!(asked.next(None).unwrap(), Event::Err(_)));
    drop(asked);
    let runs = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("audit")
    };
    assert!(wait_until(PATIENCE, || !children
        .processes()
        .iter()
        .any(runs)));
    assert_eq!(
        whole(&mut session.ask(Ask::new(["nodes", "count", "a"])).unwrap())
            .unwrap()
            .out,
        "1\n"
    );
}

#[test]
fn many_commands_run_at_once_and_more_are_refused() {
    let _beside = beside();
    let children = Children::new();
    let session = children.open("n1");
    let mut asked: Vec<Asked> = (0..32).map(|_| session.ask(long_ask()).unwrap()).collect();
    for one in &mut asked {
        assert!(matches!(one.next(None).unwrap(), Event::Err(_)));
    }
    let refused = whole(&mut session.ask(long_ask()).unwrap()).err().unwrap();
    assert!(
        refused
            .to_string()
            .contains("n1: it refused to run the command: 32 commands run already"),
        "{refused}"
    );
}
