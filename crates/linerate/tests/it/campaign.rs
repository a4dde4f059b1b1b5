//! Sixteen attackers at once against one server with its default bounds, and a client that just wants its test.
//!
//! One minute of it runs with all other tests; `make attack` takes an hour (`LINERATE_ATTACK_SECONDS`).

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use linerate_wire::extension::Message;
use linerate_wire::udp::{HANDSHAKE_REQUEST, TokenHandshake};

use crate::harness::raw::{self, Raw};
use crate::harness::rude::{connect_from, parameters};
use crate::harness::{Done, LONG, Server, alone, asked, run, say, start, wait_until};
use crate::server::{Dice, kept};

const ATTACKERS: u8 = 16;
/// How long a well-behaved client may take for a test of 1 MiB, from its start to its end.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the attackers share.
struct Field {
    port: u16,
    over: AtomicBool,
    /// In a long campaign attacks last up to so many times longer.
    longer: usize,
    done: Mutex<BTreeMap<&'static str, u64>>,
}

/// One of them, at its own address.
struct Attacker<'a> {
    field: &'a Field,
    address: [u8; 4],
    dice: Dice,
}

type Attack = fn(&mut Attacker<'_>) -> Option<()>;

/// All that a peer can do badly.
const ATTACKS: [(&str, Attack); 13] = [
    ("slow streams, sampled each millisecond", |one| one.slow()),
    ("silent connections", |one| one.silent()),
    ("half a message", |one| one.half()),
    ("leaving after the parameters", |one| one.leave()),
    ("pings without reading", |one| one.ping()),
    ("a reverse test that is not read", |one| one.unread()),
    ("a record that is not read", |one| one.record()),
    ("garbage", |one| one.garbage()),
    ("lengths that lie", |one| one.lie()),
    ("UDP that spins", |one| one.spin()),
    ("datagrams of all kinds", |one| one.datagrams()),
    ("many tests", |one| one.many()),
    ("the server's own output", |one| one.output()),
];

impl Attacker<'_> {
    fn run(&mut self) {
        while !self.field.over.load(Ordering::Relaxed) {
            let (name, attack) = ATTACKS[self.dice.below(ATTACKS.len())];
            // A refusal is an answer.
            let went = attack(self).is_some();
            let name = if went { name } else { "turned away" };
            *self.field.done.lock().unwrap().entry(name).or_default() += 1;
        }
    }

    fn connect(&self) -> Option<TcpStream> {
        let stream = connect_from(self.address, self.field.port).ok()?;
        stream
            .set_write_timeout(Some(Duration::from_secs(5)))
            .ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        Some(stream)
    }

    /// A control connection that has told its cookie.
    fn control(&self) -> Option<Raw> {
        let raw = Raw::over(self.connect()?, self.field.port);
        raw.stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .ok()?;
        Some(raw)
    }

    /// A test whose parameters were taken, with its streams.
    fn test(&self, streams: usize, more: &str) -> Option<(Raw, Vec<TcpStream>)> {
        let mut control = self.control()?;
        let (Some(raw::PARAM_EXCHANGE), ()) = (control.try_state(), ()) else {
            return None;
        };
        control.try_message(&parameters(streams, 1_000_000, more))?;
        control.try_said_by_linerate()?;
        control.stream.write_all(&Message::Ready {}.encode()).ok()?;
        (control.try_state()? == raw::CREATE_STREAMS).then_some(())?;
        let mut data = Vec::new();
        for _ in 0..streams {
            let mut stream = self.connect()?;
            stream.write_all(&control.cookie).ok()?;
            data.push(stream);
        }
        (control.try_state()? == raw::TEST_START).then_some(())?;
        (control.try_state()? == raw::TEST_RUNNING).then_some(())?;
        Some((control, data))
    }

    /// Stays for a while, unless all is over.
    fn stay(&mut self, most_ms: usize) {
        let most_ms = most_ms * (1 + self.dice.below(self.field.longer));
        let until = Instant::now() + Duration::from_millis(self.dice.below(most_ms) as u64);
        while Instant::now() < until && !self.field.over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn slow(&mut self) -> Option<()> {
        let streams = [8, 32, 128][self.dice.below(3)];
        let (_control, mut data) = self.test(streams, "\"tcp\":true,\"time\":0")?;
        for _ in 0..4 {
            for stream in &mut data {
                stream.write_all(b"x").ok()?;
            }
            self.stay(5000);
        }
        Some(())
    }

    fn silent(&mut self) -> Option<()> {
        let connections: Vec<TcpStream> = (0..128).map_while(|_| self.connect()).collect();
        let raws: Vec<Raw> = (0..64).map_while(|_| self.control()).collect();
        self.stay(6000);
        (!connections.is_empty() && !raws.is_empty()).then_some(())
    }

    fn half(&mut self) -> Option<()> {
        let mut control = self.control()?;
        control.try_state()?;
        control.stream.write_all(&[0, 0, 4, 0, b'{', b'"']).ok()?;
        self.stay(3000);
        Some(())
    }

    fn leave(&mut self) -> Option<()> {
        for _ in 0..50 {
            let mut control = self.control()?;
            control.try_state()?;
            control.try_message(&parameters(128, 1_000_000, "\"tcp\":true,\"time\":10"))?;
        }
        Some(())
    }

    fn ping(&mut self) -> Option<()> {
        let mut control = self.control()?;
        control.try_state()?;
        control.try_message(&parameters(1, 1_000_000, "\"tcp\":true,\"time\":10"))?;
        // Long ones: the server takes 64 at once.
        let ping = format!("{{\"ping\":{{\"n\":1}}{}}}", " ".repeat(400));
        let length = u32::try_from(ping.len()).ok()?.to_be_bytes();
        let ping = [&[76], &length[..], ping.as_bytes()].concat();
        let pings = ping.repeat(1000);
        for _ in 0..1000 {
            control.stream.write_all(&pings).ok()?;
        }
        Some(())
    }

    fn unread(&mut self) -> Option<()> {
        let held = self.test(8, "\"tcp\":true,\"time\":0,\"reverse\":true")?;
        self.stay(5000);
        drop(held);
        Some(())
    }

    fn record(&mut self) -> Option<()> {
        let (mut control, mut data) = self.test(4, "\"tcp\":true,\"time\":2")?;
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            for stream in &mut data {
                stream.write_all(&[0; 4096]).ok()?;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(data);
        control.stream.write_all(&[raw::TEST_END]).ok()?;
        while control.try_state()? != raw::EXCHANGE_RESULTS {}
        control.try_message(raw::RESULTS)?;
        let request = Message::EndRequest {
            max_bytes: u64::MAX,
        };
        control.stream.write_all(&request.encode()).ok()?;
        self.stay(5000);
        Some(())
    }

    fn garbage(&mut self) -> Option<()> {
        for _ in 0..20 {
            let mut stream = self.connect()?;
            let bytes: Vec<u8> = (0..1024)
                .flat_map(|_| self.dice.below(usize::MAX).to_le_bytes())
                .collect();
            stream.write_all(&bytes).ok()?;
        }
        Some(())
    }

    fn lie(&mut self) -> Option<()> {
        for length in [u32::MAX, 0x7fff_ffff, 8191, 0] {
            let mut control = self.control()?;
            control.try_state()?;
            control.stream.write_all(&length.to_be_bytes()).ok()?;
            control.stream.write_all(b"{").ok()?;
        }
        self.stay(1000);
        Some(())
    }

    fn spin(&mut self) -> Option<()> {
        let mut control = self.control()?;
        control.try_state()?;
        let asked = parameters(
            1,
            1_000_000,
            "\"udp\":true,\"time\":5,\"reverse\":true,\"bandwidth\":10000000",
        );
        control.try_message(&asked.replace("\"sample_ns\"", "\"spin\":true,\"sample_ns\""))?;
        let Message::Hello(hello) = control.try_said_by_linerate()? else {
            return None;
        };
        control.stream.write_all(&Message::Ready {}.encode()).ok()?;
        control.try_state()?;
        let socket = self.udp()?;
        let token = hello.udp_token?;
        socket
            .send(&TokenHandshake { token, stream: 0 }.encode())
            .ok()?;
        control.try_state()?;
        self.stay(3000);
        Some(())
    }

    fn udp(&self) -> Option<UdpSocket> {
        let socket = UdpSocket::bind((std::net::Ipv4Addr::from(self.address), 0)).ok()?;
        socket.connect(("127.0.0.1", self.field.port)).ok()?;
        Some(socket)
    }

    fn datagrams(&mut self) -> Option<()> {
        let socket = self.udp()?;
        for _ in 0..500 {
            drop(socket.send(&HANDSHAKE_REQUEST));
            drop(
                socket.send(
                    &TokenHandshake {
                        token: [7; 16],
                        stream: 9,
                    }
                    .encode(),
                ),
            );
            drop(socket.send(&[0; 1400]));
            drop(socket.send(&[]));
        }
        Some(())
    }

    fn many(&mut self) -> Option<()> {
        let held: Vec<_> = (0..20)
            .map_while(|_| self.test(16, "\"tcp\":true,\"time\":3600"))
            .collect();
        self.stay(4000);
        (!held.is_empty()).then_some(())
    }

    fn output(&mut self) -> Option<()> {
        let (_control, mut data) =
            self.test(32, "\"tcp\":true,\"time\":0,\"get_server_output\":1")?;
        for _ in 0..20 {
            for stream in &mut data {
                stream.write_all(&[0; 1000]).ok()?;
            }
            self.stay(200);
        }
        Some(())
    }
}

impl Raw {
    /// The next byte, if there is one in time.
    fn try_state(&mut self) -> Option<u8> {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).ok()?;
        Some(byte[0])
    }

    fn try_message(&mut self, text: &str) -> Option<()> {
        self.stream.write_all(&raw::framed(text)).ok()
    }

    fn try_said_by_linerate(&mut self) -> Option<Message> {
        self.try_state()?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).ok()?;
        let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
        let mut json = vec![0; length.min(1 << 16)];
        self.stream.read_exact(&mut json).ok()?;
        Message::from_json(&json).ok()
    }
}

/// The memory that a server with default bounds prints as its own, MiB.
fn printed_mebibytes() -> u64 {
    let server = Server::linerate(&["--json-stream"]);
    server.tells("\"memory_bytes\"", 1);
    let out = server.process.out();
    let mut events = out
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let bytes = events.find_map(|event| event["memory_bytes"].as_u64());
    bytes.unwrap() >> 20
}

#[test]
fn sixteen_attackers_at_once() {
    let _alone = alone();
    let seconds = asked("LINERATE_ATTACK_SECONDS").unwrap_or(60);
    let server = Server::linerate(&[]);
    let budget = printed_mebibytes();
    // Files and threads that stay once they were needed.
    run(&mut server.client("-n 1M -P 8 --bidir"), LONG).expect(0);
    let before = kept(&server);
    let field = Field {
        port: server.port,
        over: AtomicBool::new(false),
        longer: usize::try_from(seconds / 120).unwrap().clamp(1, 30),
        done: Mutex::default(),
    };
    let most_memory = AtomicU64::new(0);
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        for last in 2..2 + ATTACKERS {
            let mut attacker = Attacker {
                field: &field,
                // Each has an address of its own.
                address: [127, 0, 0, last],
                dice: Dice(20_261_123 + u64::from(last)),
            };
            scope.spawn(move || attacker.run());
        }
        scope.spawn(|| {
            while !field.over.load(Ordering::Relaxed) {
                most_memory.fetch_max(kept(&server)["memory"], Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        // Whatever fails here must not leave the attackers running.
        let _end = Ends(&field.over);
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            let words = ["-n 1M", "-n 1M -R", "-n 1M -P 4", "-n 200K -u -b 50M"][times.len() % 4];
            let (done, phases) = followed(&mut server.client(&format!("-B 127.0.0.1 {words}")));
            let served_well = done.code() == Some(0) && done.took < PATIENCE;
            assert!(
                served_well,
                "{words}: exit {:?} after {:?}, {phases}; the server keeps {:?}; attacks {:?}\n{}{}",
                done.code(),
                done.took,
                kept(&server),
                field.done.lock().unwrap(),
                done.out,
                done.error
            );
            times.push(done.took);
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    let ended = Instant::now();
    let mut now = kept(&server);
    let back = wait_until(Duration::from_secs(10), || {
        now = kept(&server);
        ["threads", "descriptors"]
            .iter()
            .all(|what| now[what] <= before[what])
    });
    let most = most_memory.into_inner() >> 10;
    times.sort();
    let share = |hundredths: usize| times[(times.len() - 1) * hundredths / 100].as_secs_f64();
    say(&format!(
        "{seconds} s of {ATTACKERS} attackers: at most {most} MiB of {budget}, {} tests of 1 MiB served, half of them within \
         {:.2} s, 99 % within {:.2} s, the slowest in {:.2} s; before {before:?}, {:.1} s after the end {now:?}\n{:#?}",
        times.len(),
        share(50),
        share(99),
        share(100),
        ended.elapsed().as_secs_f64(),
        field.done.into_inner().unwrap()
    ));
    assert!(back, "before {before:?}, now {now:?}");
    assert!(most < budget, "{most} MiB of {budget}");
    run(&mut server.client("-n 1M"), LONG).expect(0);
}

/// Runs a client; also when it was connected, when its test ended, and how long it waited for a CPU.
fn followed(client: &mut Command) -> (Done, String) {
    let began = Instant::now();
    let mut running = start(client);
    let schedstat = format!("/proc/{}/schedstat", running.pid());
    let (mut connected, mut ended, mut waited) = (None, None, String::new());
    wait_until(LONG, || {
        let out = running.out();
        if connected.is_none() && out.contains("Connected") {
            connected = Some(began.elapsed());
        }
        if ended.is_none() && out.contains("Ending") {
            ended = Some(began.elapsed());
        }
        // On a CPU and waiting for one, ns, of its first thread.
        waited = std::fs::read_to_string(&schedstat).unwrap_or(std::mem::take(&mut waited));
        running.ended()
    });
    let phases = format!(
        "connected after {connected:?}, the test over after {ended:?}, ns on a CPU and waiting for one: {}",
        waited.trim()
    );
    (running.wait(LONG), phases)
}

/// Ends the attack when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
