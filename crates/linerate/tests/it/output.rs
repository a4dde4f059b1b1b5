//! Servers whose output is closed, full, not read or gone: they start, and tests run.

use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_model::units::Nanos;

use crate::harness::{Folder, LINERATE, LONG, beside, free_port, linerate, run, wait_until};

/// A server that a shell started, with a redirection; it is killed when this is dropped.
struct Quiet {
    child: Child,
    port: u16,
    /// Where its standard error goes.
    errors: PathBuf,
    _folder: Folder,
}

impl Drop for Quiet {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Quiet {
    /// Starts `linerate serve --json-stream` or `linerate iperf3 -s`, with words of the shell for its descriptors, and its
    /// standard output at `out` where they do not say otherwise.
    #[track_caller]
    fn start(words: &str, redirection: &str, out: Stdio) -> Self {
        let (folder, port) = (Folder::new(), free_port());
        let errors = folder.file("errors");
        let script = format!("exec \"$0\" {words} -p {port} {redirection}");
        let mut child = Command::new("sh")
            .args(["-c", &script, LINERATE])
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(std::fs::File::create(&errors).unwrap())
            .spawn()
            .unwrap();
        let listens = format!(":{port:04X}");
        let there = wait_until(Duration::from_secs(20), || {
            let tables = ["tcp", "tcp6"].map(|name| format!("/proc/{}/net/{name}", child.id()));
            let listens = tables.iter().any(|path| {
                let table = std::fs::read_to_string(path).unwrap_or_default();
                table.lines().any(|line| {
                    let fields: Vec<&str> = line.split_whitespace().collect();
                    fields.len() > 3 && fields[1].ends_with(&listens) && fields[3] == "0A"
                })
            });
            listens || child.try_wait().unwrap().is_some()
        });
        let ended = child.try_wait().unwrap();
        let server = Self {
            child,
            port,
            errors,
            _folder: folder,
        };
        assert!(
            there && ended.is_none(),
            "{script}: {ended:?} {}",
            server.said()
        );
        server
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap_or_default()
    }

    /// A test goes well.
    #[track_caller]
    fn serves(&self) {
        let words = format!("test 127.0.0.1 -p {} -n 1M", self.port);
        run(&mut linerate(&words), LONG).expect(0);
    }

    fn ends(mut self) {
        let kill = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        let mut status = None;
        wait_until(Duration::from_secs(30), || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert!(
            status.is_some_and(|status| status.success()),
            "{status:?} {}",
            self.said()
        );
    }

    /// Where a descriptor of the server leads.
    fn descriptor(&self, number: u8) -> PathBuf {
        std::fs::read_link(format!("/proc/{}/fd/{number}", self.child.id())).unwrap()
    }
}

const SERVERS: [&str; 3] = ["serve", "serve --json-stream", "iperf3 -s"];

#[test]
fn a_server_starts_and_serves_with_closed_descriptors() {
    let _beside = beside();
    for words in SERVERS {
        let server = Quiet::start(words, "<&- >&- 2>&-", Stdio::null());
        server.serves();
        // No socket has taken their places.
        for number in 0..3 {
            assert_eq!(server.descriptor(number), PathBuf::from("/dev/null"));
        }
        server.ends();
    }
}

#[test]
fn a_server_on_a_full_disk_says_so_once_and_serves() {
    let _beside = beside();
    for words in SERVERS {
        let server = Quiet::start(words, ">/dev/full", Stdio::null());
        server.serves();
        server.serves();
        let said = server.said();
        assert_eq!(said.matches("No space left on device").count(), 1, "{said}");
        assert!(said.contains("the server goes on without it"), "{said}");
        server.ends();
    }
}

#[test]
fn a_server_whose_reader_has_gone_serves_and_says_nothing() {
    let _beside = beside();
    for words in SERVERS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let server = Quiet::start(words, "", writer.into());
        server.serves();
        assert_eq!(server.said(), "");
        server.ends();
    }
}

/// Writes to a pipe until it is full.
fn fill(writer: &mut PipeWriter) {
    let is_writable = |writer: &PipeWriter| {
        let mut entries = [PollEntry::new(writer.as_fd(), Interest::WRITE)];
        poll::wait(&mut entries, Some(Nanos::ZERO)).unwrap() > 0
    };
    // A page fits where a pipe can be written to at all.
    while is_writable(writer) {
        writer.write_all(&[b'#'; 4096]).unwrap();
    }
}

/// Reads until this text has come.
#[track_caller]
fn read_to(reader: &mut PipeReader, text: &str) -> String {
    let (mut all, mut part) = (String::new(), vec![0; 65536]);
    while !all.contains(text) {
        let mut entries = [PollEntry::new(reader.as_fd(), Interest::READ)];
        let came = poll::wait(&mut entries, Some(Nanos::from_millis(30_000))).unwrap();
        assert!(came > 0, "no '{text}' in {} bytes", all.len());
        let read = reader.read(&mut part).unwrap();
        all.push_str(&String::from_utf8_lossy(&part[..read]));
    }
    all
}

#[test]
fn a_server_whose_output_nobody_reads_serves_and_says_all_once_it_is_read() {
    let _beside = beside();
    let said = [
        ["listening on ", "\ntest 2: 127.0.0.1"],
        [r#"{"event":"listening""#, r#"{"event":"finished","test":2"#],
        ["Server listening on", "(test #3)"],
    ];
    for (words, [first, last]) in SERVERS.into_iter().zip(said) {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        fill(&mut writer);
        let server = Quiet::start(words, "", writer.into());
        server.serves();
        server.serves();
        let text = read_to(&mut reader, last);
        let begin = text.trim_start_matches('#').trim_start_matches('-');
        assert!(begin.trim_start().starts_with(first), "{words}: {begin}");
        server.ends();
        // One that ends while nobody reads does not wait for a reader.
        let (_reader, mut writer) = std::io::pipe().unwrap();
        fill(&mut writer);
        let server = Quiet::start(words, "", writer.into());
        server.serves();
        server.ends();
    }
}
