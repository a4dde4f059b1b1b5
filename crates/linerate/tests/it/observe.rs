//! `linerate observe`: connections that other programs hold, followed and explained.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::harness::{
    B, Done, Folder, Hosts, LINERATE, LONG, Running, Server, alone, beside, findings, free_port,
    iperf3, lacks_a_lab, lacks_programs, linerate, measured, number, run, say, start, wait_until,
};

/// Bytes of iperf3's cookie on a data connection.
const COOKIE: u64 = 37;

/// A path between two hosts that stays up for commands, and goes down with the test.
struct LabPath {
    folder: Folder,
    name: &'static str,
}

impl LabPath {
    /// `None`, with a word, where this machine cannot have one.
    fn up(name: &'static str, options: &str) -> Option<Self> {
        let path = Self {
            folder: Folder::new(),
            name,
        };
        let done = run(&mut path.lab(&format!("up {name} {options}")), LONG);
        if lacks_a_lab(name, &done.error) {
            return None;
        }
        done.expect(0);
        Some(path)
    }

    fn lab(&self, words: &str) -> Command {
        let mut command = Command::new(LINERATE);
        command
            .arg("lab")
            .args(words.split_whitespace())
            .env("XDG_RUNTIME_DIR", self.folder.path());
        command
    }

    /// A command on one of its hosts.
    fn on(&self, host: &str, words: &str) -> Command {
        self.lab(&format!("exec {} {host} -- {words}", self.name))
    }

    /// Sets a sysctl on one of its hosts.
    fn set(&self, host: &str, name: &str, value: &str) {
        let mut command = self.on(host, "sh -c");
        let file = format!("/proc/sys/{}", name.replace('.', "/"));
        command.arg(format!("echo '{value}' > {file}"));
        run(&mut command, LONG).expect(0);
    }

    /// The address of a host on the path.
    fn address(&self, host: &str) -> String {
        let done = run(&mut self.on(host, "ip -4 -brief address"), LONG).expect(0);
        let found = done
            .out
            .split_whitespace()
            .filter_map(|word| word.split_once('/'))
            .map(|(address, _)| address.to_owned())
            .find(|address| !address.starts_with("127."));
        found.unwrap_or_else(|| panic!("no address: {}", done.out))
    }

    /// A program on a host that listens on this port.
    fn serve(&self, host: &str, port: u16, words: &str) -> Running {
        let mut program = start(&mut self.on(host, words));
        let listens = wait_until(Duration::from_secs(20), || {
            let table = run(&mut self.on(host, "cat /proc/net/tcp /proc/net/tcp6"), LONG);
            table.out.contains(&format!(":{port:04X} ")) || program.ended()
        });
        assert!(listens && !program.ended(), "{words}: {}", program.error());
        program
    }
}

impl Drop for LabPath {
    fn drop(&mut self) {
        drop(self.lab(&format!("down {}", self.name)).output());
    }
}

/// Waits until the watcher has said that it has begun.
#[track_caller]
fn begun(watcher: &mut Running) {
    let waits = wait_until(Duration::from_secs(20), || {
        watcher.error().contains("waiting") || watcher.ended()
    });
    assert!(waits && !watcher.ended(), "{}", watcher.error());
}

/// The connection that moved most.
fn first(document: &Value) -> &Value {
    &document["connections"][0]
}

/// The last line of a stream.
fn last_document(done: &Done) -> Value {
    let last = done.out.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {last:.500}"))
}

#[track_caller]
fn verdict(document: &Value) -> String {
    findings(first(document))
        .into_iter()
        .next()
        .unwrap_or_else(|| panic!("no finding: {:.2000}", first(document)))
}

#[test]
fn an_iperf3_run_is_followed_to_its_last_byte() {
    measured(alone, || {
        let what = "observing iperf3";
        let Some(iperf3) = iperf3(what) else {
            return;
        };
        let Some(hosts) = Hosts::new(what) else {
            return;
        };
        let folder = Folder::new();
        let record = folder.file("seen.json");
        let server = Server::iperf3(&mut hosts.b.command(iperf3));
        let port = server.port;
        let words = format!(
            "observe --port {port} -t 30 --json-stream -o {}",
            record.display()
        );
        let mut near = start(&mut hosts.a.linerate(&words));
        let mut far = start(
            &mut hosts
                .b
                .linerate(&format!("observe --listen --port {port} --json-stream")),
        );
        begun(&mut near);
        begun(&mut far);
        // Paced, so that nothing is left under way when it ends.
        let mut client = hosts.a.command(iperf3);
        let words = format!("-c {B} -p {port} -t 3 -b 300M -J");
        client.args(words.split_whitespace());
        let told = run(&mut client, LONG).expect(0).json();
        // Control and data connection are gone at both ends; Ctrl-C then ends each with its report.
        let gone = |watcher: &Running| watcher.out().matches("\"gone\"").count() == 2;
        assert!(
            wait_until(LONG, || gone(&near) && gone(&far)),
            "{}",
            near.out()
        );
        near.signal("INT");
        far.signal("INT");
        let near = last_document(&near.wait(LONG).expect(0));
        let far = last_document(&far.wait(LONG).expect(0));

        let sent = number(&told, "/end/sum_sent/bytes");
        let received = number(&told, "/end/sum_received/bytes");
        let data = first(&near);
        assert_eq!(data["began_before"], false, "{data:.500}");
        assert_eq!(data["process"]["name"], "iperf3");
        assert_eq!(data["opener"], "this_host");
        assert_eq!(data["remote"], format!("{B}:{port}"));
        let hears = near["sampling"]["hears_last_words"] == true;
        if hears {
            assert_eq!(data["fate"], "closed_and_told");
        }
        let acked = number(data, "/tcp/bytes_acked");
        let arrived = number(first(&far), "/tcp/bytes_received");
        say(&format!(
            "iperf3 says {sent} bytes sent and {received} received; its kernels {acked} acknowledged and {arrived} received"
        ));
        // SYN and FIN count one each, the cookie 37.
        if hears {
            let payload = acked - COOKIE - 2;
            assert!(
                (received..=sent).contains(&payload),
                "{received} {payload} {sent}"
            );
        }
        assert!(arrived <= sent + COOKIE + 1, "{arrived} against {sent}");
        assert!(arrived >= received, "{arrived} against {received}");
        assert_eq!(first(&far)["opener"], "peer");
        // A program that writes less than the path carries is what limits.
        assert_eq!(verdict(&near), "sender-application", "{}", data["findings"]);
        assert_eq!(verdict(&far), "cannot-tell", "{}", first(&far)["findings"]);

        // The kept record says the same again, and no other reader takes it for a test.
        let again = run(linerate("show --json").arg(&record), LONG)
            .expect(0)
            .json();
        assert_eq!(first(&again)["findings"], data["findings"]);
        let text = run(linerate("show").arg(&record), LONG).expect(0).out;
        for word in [
            "sender-application",
            "was not watched",
            "Ledger, bytes of the whole connection",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
        let explained = run(linerate("explain").arg(&record), LONG).expect(0).out;
        assert_eq!(explained, text);
    });
}

#[test]
fn a_small_receive_buffer_is_seen_from_the_senders_host() {
    measured(alone, || {
        let what = "observing a small receive window";
        let Some(iperf3) = iperf3(what) else {
            return;
        };
        let Some(path) = LabPath::up("window", "--rtt 60ms --rate 200M") else {
            return;
        };
        path.set("receiver", "net.ipv4.tcp_rmem", "4096 16384 200000");
        let _server = path.serve("receiver", 5301, &format!("{iperf3} -s -p 5301"));
        let to = path.address("receiver");
        let words = format!("{LINERATE} observe --port 5301 -t 8 --json");
        let mut watcher = start(&mut path.on("sender", &words));
        begun(&mut watcher);
        run(
            &mut path.on("sender", &format!("{iperf3} -c {to} -p 5301 -t 4")),
            LONG,
        )
        .expect(0);
        let seen = watcher.wait(LONG).expect(0).json();
        assert_eq!(
            verdict(&seen),
            "receive-window",
            "{}",
            first(&seen)["findings"]
        );
        let sentence = first(&seen)["findings"][0]["sentence"].as_str().unwrap();
        assert!(sentence.contains("of the peer"), "{sentence}");
    });
}

#[test]
fn a_file_copy_is_explained_at_both_ends() {
    measured(alone, || {
        let what = "observing a file copy";
        if lacks_programs(what, &["python3", "curl"]) {
            return;
        }
        let Some(path) = LabPath::up("copy", "--rtt 10ms --rate 100M") else {
            return;
        };
        let length = 40_000_000;
        path.folder.with("file", vec![7; length]);
        let folder = path.folder.path().display().to_string();
        let words = format!("python3 -m http.server 8099 --directory {folder}");
        let _server = path.serve("sender", 8099, &words);
        let url = format!("http://{}:8099/file", path.address("sender"));
        // As fast as it goes: the path is full. --listen sees what comes in.
        let watch = |host: &str, words: &str| {
            let words = format!("{LINERATE} observe {words} --json");
            let mut watcher = start(&mut path.on(host, &words));
            begun(&mut watcher);
            watcher
        };
        let watcher = watch("sender", "--listen -t 8");
        let target = path.folder.file("copy").display().to_string();
        run(
            &mut path.on("receiver", &format!("curl -s -o {target} {url}")),
            LONG,
        )
        .expect(0);
        let seen = watcher.wait(LONG).expect(0).json();
        assert_eq!(
            std::fs::metadata(path.folder.file("copy")).unwrap().len(),
            length as u64
        );
        assert_eq!(first(&seen)["opener"], "peer");
        let acked = number(first(&seen), "/tcp/bytes_acked");
        let headers = acked.checked_sub(length as u64).unwrap();
        assert!(headers < 2000, "{headers} bytes of headers");
        assert_eq!(verdict(&seen), "path-full", "{}", first(&seen)["findings"]);
        // A buffer that holds more than a small one, which is full whoever empties it.
        path.set("receiver", "net.ipv4.tcp_rmem", "4096 4194304 8388608");
        // A reader that takes its time: its own queue tells it.
        let near = watch("receiver", "--port 8099 -t 8");
        let reader = format!(
            "import socket,time\n\
         s = socket.create_connection(('{}', 8099))\n\
         s.sendall(b'GET /file HTTP/1.0\\r\\n\\r\\n')\n\
         end = time.monotonic() + 5\n\
         while time.monotonic() < end:\n\
         \x20   s.recv(65536)\n\
         \x20   time.sleep(0.05)\n",
            path.address("sender")
        );
        let mut slow = path.on("receiver", "python3 -c");
        run(slow.arg(reader), LONG).expect(0);
        let near = near.wait(LONG).expect(0).json();
        assert_eq!(
            verdict(&near),
            "receiver-application",
            "{}",
            first(&near)["findings"]
        );
    });
}

/// Both ends of connections within this process.
fn pairs(listener: &TcpListener, count: usize) -> Vec<(TcpStream, TcpStream)> {
    let to = listener.local_addr().unwrap();
    let one = |_| {
        let near = TcpStream::connect(to).unwrap();
        (near, listener.accept().unwrap().0)
    };
    (0..count).map(one).collect()
}

#[test]
fn hundreds_of_connections_are_watched_and_rest_for_little() {
    measured(alone, || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut held = pairs(&listener, 300);
        let mut watcher = start(&mut linerate(&format!(
            "observe --port {port} -t 3 --json-stream"
        )));
        assert!(wait_until(LONG, || watcher.out().contains("\"interval\"")
            || watcher.ended()));
        // Of all, one moves.
        held[0].0.write_all(&vec![1; 1 << 16]).unwrap();
        let mut rest = vec![0; 1 << 16];
        held[0].1.read_exact(&mut rest).unwrap();
        let done = watcher.wait(LONG).expect(0);
        let last = done.out.lines().last().unwrap();
        let seen: Value = serde_json::from_str(last).unwrap();
        assert_eq!(seen["event"], "end");
        let connections = seen["connections"].as_array().unwrap();
        assert_eq!(connections.len(), 600);
        assert!(connections.iter().all(|one| one["began_before"] == true));
        let rows = |one: &Value| number(one, "/samples/rows");
        let resting = connections.iter().filter(|one| rows(one) <= 3).count();
        assert!(resting > 590, "{resting} of 600 kept few rows");
        assert!(rows(first(&seen)) >= 2);
        let readings = number(&seen, "/sampling/readings");
        let cpu = number(&seen, "/sampling/cpu_ns") as f64 / 3e9;
        say(&format!(
            "600 sockets, {readings} readings in 3 s, {} missed, {:.1} % of a core",
            number(&seen, "/sampling/missed"),
            100.0 * cpu
        ));
        assert!(readings > 10);
    });
}

#[test]
fn a_port_used_again_is_another_connection() {
    let _beside = beside();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let from = free_port();
    let words = format!("observe --port {} --json-stream", to.port());
    let mut watcher = start(&mut linerate(&words));
    begun(&mut watcher);
    for round in 1..=2 {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        // No TIME_WAIT: the port is free at once.
        socket.set_linger(Some(Duration::ZERO)).unwrap();
        let local: std::net::SocketAddr = ([127, 0, 0, 1], from).into();
        socket.bind(&local.into()).unwrap();
        socket.connect(&to.into()).unwrap();
        let (server, _) = listener.accept().unwrap();
        // Both ends are on this host.
        let tells = |what: &str| watcher.out().matches(what).count() == 2 * round;
        assert!(wait_until(LONG, || tells("\"found\"")), "{}", watcher.out());
        drop((socket, server));
        assert!(wait_until(LONG, || tells("\"gone\"")), "{}", watcher.out());
    }
    watcher.signal("INT");
    let done = watcher.wait(LONG).expect(0);
    let seen: Value = serde_json::from_str(done.out.lines().last().unwrap()).unwrap();
    let connections = seen["connections"].as_array().unwrap();
    let same = connections.iter().filter(|one| {
        one["local"] == format!("127.0.0.1:{from}") && one["remote"] == to.to_string()
    });
    assert_eq!(same.count(), 2, "{connections:#?}");
    assert!(connections.iter().all(|one| one["fate"] != "open"));
}

#[test]
fn a_process_is_watched_with_its_children_until_it_ends() {
    let _beside = beside();
    if lacks_programs("observing a process", &["python3"]) {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let script = format!(
        "import socket, sys; s = socket.create_connection(('127.0.0.1', {})); s.sendall(b'x' * 1000); sys.stdin.read()",
        to.port()
    );
    let mut command = Command::new("sh");
    command.args(["-c", "python3 -c \"$0\"; true", &script]);
    let mut parent = super::harness::start_with(&mut command, std::process::Stdio::piped());
    let (mut accepted, _) = listener.accept().unwrap();
    let mut bytes = [0; 1000];
    accepted.read_exact(&mut bytes).unwrap();
    let words = format!("observe --pid {} --json", parent.pid());
    let mut watcher = start(&mut linerate(&words));
    // It ends by itself, once the process has.
    assert!(!wait_until(Duration::from_millis(500), || watcher.ended()));
    drop(parent.child.stdin.take());
    let done = watcher.wait(LONG).expect(0);
    let seen = done.json();
    assert_eq!(seen["ended"], "process_ended");
    let connections = seen["connections"].as_array().unwrap();
    // Its own end alone, not this process's.
    assert_eq!(connections.len(), 1, "{connections:#?}");
    assert_eq!(connections[0]["remote"], to.to_string());
    assert_eq!(connections[0]["process"]["name"], "python3");
}

#[test]
fn what_cannot_be_watched_is_said() {
    let _beside = beside();
    let folder = Folder::new();
    let kept = folder.file("nothing.json");
    let port = free_port();
    let words = format!(
        "observe --port {port} -t 0.3 --progress 0.1 -o {}",
        kept.display()
    );
    let nobody = run(&mut linerate(&words), LONG).expect(4);
    assert!(nobody.error.contains("waiting"), "{}", nobody.error);
    assert!(
        nobody.error.contains("no matching TCP connection"),
        "{}",
        nobody.error
    );
    assert!(Path::new(&kept).exists());
    for (words, code, says) in [
        ("--pid 4194305", 3, "no process"),
        ("--to no-such-host.invalid -t 1", 3, "no-such-host.invalid"),
        ("--to 192.0.2.0/33 -t 1", 3, "prefix"),
        ("--port 0", 2, "--port"),
        ("--port 70000", 2, "70000"),
        ("--interval 1us", 2, "--interval"),
        ("-t 0", 2, "-t"),
        ("--json --json-stream", 2, "--json"),
        ("-o /no/such/folder/x.json", 5, "/no/such/folder"),
    ] {
        let done = run(&mut linerate(&format!("observe {words}")), LONG).expect(code);
        assert!(done.error.contains(says), "{words}: {}", done.error);
    }
    let wrong = folder.with("wrong.json", r#"{"schema_version":1,"kind":"observation"}"#);
    let refused = run(linerate("show").arg(&wrong), LONG).expect(5);
    assert!(refused.error.contains("missing field"), "{}", refused.error);
    let newer = folder.with(
        "newer.json",
        r#"{"schema_version":99,"kind":"observation"}"#,
    );
    let refused = run(linerate("show").arg(&newer), LONG).expect(5);
    assert!(
        refused.error.contains("schema version 99"),
        "{}",
        refused.error
    );
}

#[test]
fn a_pipe_gets_lines_and_its_end_ends_it() {
    let _beside = beside();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut held = pairs(&listener, 1);
    let mut watcher = start(&mut linerate(&format!(
        "observe --port {port} -t 2 --progress 0.2"
    )));
    assert!(wait_until(LONG, || watcher.out().contains("found") || watcher.ended()));
    let (near, far) = &mut held[0];
    near.write_all(&vec![1; 50_000]).unwrap();
    far.read_exact(&mut vec![0; 50_000]).unwrap();
    assert!(wait_until(LONG, || watcher.out().contains(" sent") || watcher.ended()));
    drop(held);
    let done = watcher.wait(LONG).expect(0);
    for word in [
        " found: 127.0.0.1:",
        " sent",
        " received",
        " closed: ",
        "Watched TCP connections with port",
    ] {
        assert!(done.out.contains(word), "{word}: {}", done.out);
    }
    assert!(!done.out.contains('\x1b'), "{}", done.out);
}
