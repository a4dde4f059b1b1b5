//! Peers that attack: the inputs of iperf3's CVEs over real connections, to servers and to clients. `cves.rs` of
//! linerate-wire has what each parser makes of them; here the processes live, go on and do not grow.

use std::io::Write as _;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::harness::raw::{self, Raw, RawServer};
use crate::harness::rude::connect_from;
use crate::harness::{
    LINERATE, LONG, Server, alone, beside, linerate, run, say, start, wait_until,
};
use crate::server::{keeps_no_more_than, kept, serves};

/// Where a test is refused, the server says so and closes.
const SOON: Duration = Duration::from_secs(20);

/// `linerate serve` and `linerate iperf3 -s`, warm.
fn both() -> [Server; 2] {
    let servers = [
        Server::linerate(&[]),
        Server::iperf3(Command::new(LINERATE).arg("iperf3")),
    ];
    servers.iter().for_each(serves);
    servers
}

/// The most memory that a process ever had, KiB.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let figure = line.and_then(|text| text.split_whitespace().next()?.parse().ok());
    figure.unwrap()
}

/// The server's largest memory has grown by less than so many MiB.
#[track_caller]
fn grew_less_than(server: &Server, before: u64, most_mib: u64) {
    let grown = peak(server.pid()).saturating_sub(before);
    say(&format!("hostile: the server grew by {grown} KiB"));
    assert!(grown < most_mib << 10, "grown by {grown} KiB");
}

#[test]
fn cve_2026_71217_blocks_of_2_gib_in_all() {
    let _alone = alone();
    for server in both() {
        let (before, kept_before) = (peak(server.pid()), kept(&server));
        // Beyond the bounds: refused.
        for parameters in [
            r#"{"tcp":true,"time":1,"parallel":2147483647,"len":1048576}"#,
            r#"{"tcp":true,"time":1,"parallel":128,"len":4294967296}"#,
        ] {
            let mut client = Raw::connect(server.port);
            client.expect(raw::PARAM_EXCHANGE);
            client.message(parameters);
            assert!(client.is_closed_within(SOON), "{parameters}");
        }
        // Inside the bounds: all streams stand and run, and no block is as long as announced.
        for direction in [r#""reverse":true,"#, ""] {
            let mut client = Raw::connect(server.port);
            client.agree(&format!(
                r#"{{"tcp":true,"time":10,"parallel":128,"len":16777216,"window":65536,{direction}"client_version":"3.21"}}"#
            ));
            let streams: Vec<_> = (0..128).map(|_| client.data()).collect();
            client.expect(raw::TEST_START);
            client.expect(raw::TEST_RUNNING);
            grew_less_than(&server, before, 128);
            drop((streams, client));
        }
        serves(&server);
        keeps_no_more_than(&server, &kept_before);
    }
}

#[test]
fn cve_2026_71218_lengths_that_no_byte_follows() {
    let _alone = alone();
    for server in both() {
        let (before, kept_before) = (peak(server.pid()), kept(&server));
        let silent: Vec<Raw> = (0..64)
            .map(|index| {
                // Eight of an address, as many as may wait.
                let stream = connect_from([127, 0, 0, 2 + index / 8], server.port).unwrap();
                let mut client = Raw::over(stream, server.port);
                client.expect(raw::PARAM_EXCHANGE);
                client.send(&8192_u32.to_be_bytes());
                client
            })
            .collect();
        // Results may have 1 MiB.
        let mut results: Vec<Raw> = (0..3).map(|_| ended_test(&server)).collect();
        for client in &mut results {
            client.send(&[0, 16, 0, 0, b'{']);
        }
        // One of 1 MiB whose values would take 40 MiB.
        let values = format!("{{\"a\":[{}0]}}", "0,".repeat(520_000));
        let mut many: Vec<Raw> = (0..4).map(|_| ended_test(&server)).collect();
        for client in &mut many {
            client.message(&values);
        }
        for client in &mut many {
            assert!(client.is_closed_within(SOON));
        }
        serves(&server);
        grew_less_than(&server, before, 24);
        drop((silent, results));
        for length in [8193_u32, 1 << 31, u32::MAX] {
            let mut client = Raw::connect(server.port);
            client.expect(raw::PARAM_EXCHANGE);
            client.send(&length.to_be_bytes());
            assert!(client.is_closed_within(SOON), "{length}");
        }
        serves(&server);
        keeps_no_more_than(&server, &kept_before);
    }
}

/// A client whose test is over and whose results are due.
fn ended_test(server: &Server) -> Raw {
    let mut client = Raw::connect(server.port);
    client.agree(
        r#"{"tcp":true,"time":1,"parallel":1,"len":1000,"skip_rx_copy":1,"client_version":"3.21"}"#,
    );
    let mut data = client.data();
    client.expect(raw::TEST_START);
    client.expect(raw::TEST_RUNNING);
    data.write_all(&[0; 1000]).unwrap();
    client.send(&[raw::TEST_END]);
    client.expect(raw::EXCHANGE_RESULTS);
    client
}

#[test]
fn parameters_and_results_of_older_cves_end_their_own_test_only() {
    let _beside = beside();
    let refused = [
        (
            "CVE-2026-102253",
            r#"{"udp":true,"time":1,"parallel":1,"len":0}"#,
        ),
        (
            "CVE-2026-102253",
            r#"{"udp":true,"num":1000,"len":0,"reverse":true,"bandwidth":1000000}"#,
        ),
        (
            "CVE-2026-102253",
            r#"{"udp":true,"blockcount":10,"len":0,"gso":1,"gso_dg_size":0}"#,
        ),
        ("CVE-2016-4303", r#"{"tcp":true,"title":"\u"}"#),
        ("CVE-2016-4303", r#"{"tcp":true,"title":"\ud800\u12"}"#),
        ("CVE-2024-53580", "null"),
        ("CVE-2024-53580", r#"["tcp"]"#),
    ];
    for server in both() {
        let before = kept(&server);
        for (name, parameters) in refused {
            let mut client = Raw::connect(server.port);
            client.expect(raw::PARAM_EXCHANGE);
            client.message(parameters);
            assert!(client.is_closed_within(SOON), "{name}: {parameters}");
        }
        // Of the wrong type: as if they were not there.
        let mut confused = Raw::connect(server.port);
        confused.agree(
            r#"{"tcp":true,"time":[],"parallel":"128","len":{},"window":true,"title":1,"congestion":[1]}"#,
        );
        // CVE-2023-38403, CVE-2024-53580: results.
        for results in [
            &[0xff; 4][..],
            b"\0\0\0\x02{}",
            b"\0\0\0\x02[]",
            b"\0\0\0\x0e{\"streams\":{}}",
        ] {
            let mut client = ended_test(&server);
            client.send(results);
            assert!(client.is_closed_within(SOON), "{results:?}");
        }
        // CVE-2023-7250: a message that never ends, while others test.
        let mut partial = ended_test(&server);
        partial.send(&[0, 0]);
        serves(&server);
        drop((confused, partial));
        serves(&server);
        keeps_no_more_than(&server, &before);
    }
}

#[test]
fn cve_2025_54351_datagrams_shorter_than_their_header() {
    let _beside = beside();
    for server in both() {
        let before = kept(&server);
        let mut client = Raw::connect(server.port);
        client.agree(
            r#"{"udp":true,"time":1,"parallel":1,"len":16,"bandwidth":1000000,"skip_rx_copy":1,"client_version":"3.21"}"#,
        );
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", server.port)).unwrap();
        socket.set_read_timeout(Some(SOON)).unwrap();
        socket.send(b"9876").unwrap();
        let mut answer = [0; 4];
        socket.recv(&mut answer).unwrap();
        assert_eq!(&answer, b"6789");
        client.expect(raw::TEST_START);
        client.expect(raw::TEST_RUNNING);
        for length in (0..20).chain([1000, 60_000]) {
            socket.send(&vec![0xff; length]).unwrap();
        }
        client.send(&[raw::TEST_END]);
        client.expect(raw::EXCHANGE_RESULTS);
        drop((socket, client));
        serves(&server);
        keeps_no_more_than(&server, &before);
    }
}

/// `linerate test` and `linerate iperf3 -c` at a server that follows a script: each says this, and ends with its code.
#[track_caller]
fn clients_say(
    script: impl Fn(&mut RawServer) -> std::io::Result<()> + Send + 'static,
    code: i32,
    says: &[&str],
) {
    let port = RawServer::start(script);
    for (words, code) in [
        (format!("test 127.0.0.1 -p {port} -n 100K"), code),
        (format!("iperf3 -c 127.0.0.1 -p {port} -n 100K"), 1),
    ] {
        let done = run(&mut linerate(&words), LONG).expect(code);
        for said in says {
            assert!(
                done.error.contains(said),
                "{words}: no '{said}' in {}",
                done.error
            );
        }
    }
}

#[test]
fn a_server_with_wrong_states_is_named() {
    let _beside = beside();
    clients_say(
        |server| server.send(&[14]),
        3,
        &["DISPLAY_RESULTS (14)", "PARAM_EXCHANGE (9) was due"],
    );
    clients_say(
        |server| {
            server.send(&[raw::PARAM_EXCHANGE])?;
            server.message()?;
            server.send(&[raw::TEST_RUNNING])?;
            server.hold()
        },
        3,
        &["TEST_RUNNING (2)", "CREATE_STREAMS (10)"],
    );
    // More of what is wrong than a client would read.
    clients_say(
        |server| loop {
            server.send(&[0x55; 4096])?;
        },
        3,
        &["UUU", "is the port right?"],
    );
    // A greeting of 4 GiB, and one of the bound that never comes whole.
    clients_say(
        |server| {
            server.send(&[raw::PARAM_EXCHANGE])?;
            server.message()?;
            server.send(&[76, 0xff, 0xff, 0xff, 0xff])?;
            server.hold()
        },
        3,
        &[],
    );
}

#[test]
fn results_of_the_wrong_length_or_type_are_named() {
    let _beside = beside();
    clients_say(
        |server| {
            server.test()?;
            server.send(&0x0100_0001_u32.to_be_bytes())?;
            server.hold()
        },
        4,
        &["announced 16777217 bytes of results", "16777216"],
    );
    for (results, says) in [
        ("[]", "an array instead of an object"),
        ("{\"cpu_util_total\":\"1\"}", "'cpu_util_total'"),
        (
            "{\"cpu_util_total\":1,\"cpu_util_user\":1,\"cpu_util_system\":1,\"sender_has_retransmits\":-1,\"streams\":{}}",
            "'streams'",
        ),
        (
            "{\"cpu_util_total\":1,\"cpu_util_user\":1,\"cpu_util_system\":1,\"sender_has_retransmits\":-1,\"streams\":[7]}",
            "'streams[0]'",
        ),
    ] {
        clients_say(
            move |server| {
                server.test()?;
                let length = u32::try_from(results.len()).unwrap();
                server.send(&[&length.to_be_bytes(), results.as_bytes()].concat())?;
                server.hold()
            },
            4,
            &[says],
        );
    }
}

/// Waits until a client has read what was sent to its port.
#[track_caller]
fn has_read(port: u16) {
    let end = format!(":{port:04X}");
    let queued = |table: &str| {
        let line = table.lines().find(|line| {
            let local = line.split_whitespace().nth(1);
            local.is_some_and(|local| local.ends_with(&end))
        });
        line.and_then(|line| line.split_whitespace().nth(4)?.split_once(':'))
            .is_none_or(|(_, received)| received != "00000000")
    };
    let read = wait_until(SOON, || {
        !queued(&std::fs::read_to_string("/proc/net/tcp").unwrap())
    });
    assert!(read, "the client does not read");
}

#[test]
fn cve_2026_71218_a_client_does_not_grow_by_what_a_server_announces() {
    let _beside = beside();
    let ((told, tells), (goes_on, go_on)) = (channel(), channel::<&[u8]>());
    let port = RawServer::start(move |server| {
        server.test()?;
        let client = server.stream.peer_addr()?.port();
        // Until the test hangs up, or says to end with this client.
        while let Some(bytes) = go_on.recv().ok().filter(|bytes| !bytes.is_empty()) {
            server.send(bytes)?;
            told.send(client).unwrap();
        }
        Ok(())
    });
    for (words, code) in [("test 127.0.0.1", 4), ("iperf3 -c 127.0.0.1", 1)] {
        let client = start(&mut linerate(&format!("{words} -p {port} -n 100K")));
        let send = |bytes| {
            goes_on.send(bytes).unwrap();
            has_read(tells.recv_timeout(LONG).unwrap());
        };
        // The most that a client takes is 16 MiB. What was read was looked at before more is read.
        send(&[1, 0, 0]);
        let before = peak(client.pid());
        send(&[0, b'{']);
        send(b"\"");
        let grown = peak(client.pid()) - before;
        assert!(grown < 4 << 10, "{words}: {grown} KiB");
        goes_on.send(&[]).unwrap();
        let done = client.wait(LONG).expect(code);
        assert!(done.error.contains("closed"), "{}", done.error);
    }
}
