//! iperf3's security history, each case named after its CVE, and what else a hostile or confused
//! peer sends to a control connection.

use linerate_model::units::Nanos;
use linerate_wire::auth::{Credentials, Users, decode_token};
use linerate_wire::control::{ClientControl, ClientEvent, ServerControl, ServerEvent};
use linerate_wire::cookie::Cookie;
use linerate_wire::error::ProtocolError;
use linerate_wire::extension::{Finishing, Hello, Message};
use linerate_wire::frame;
use linerate_wire::parameters::{Parameters, Protocol};
use linerate_wire::results::Results;
use linerate_wire::udp::{CounterWidth, DataHeader};

use crate::session::{offer, results};

fn client(parameters: Parameters) -> ClientControl {
    ClientControl::new(Cookie::from_random([0; 36]), parameters)
}

/// A client whose test has ended and which waits for results.
fn exchanging_client() -> ClientControl {
    let mut client = client(Parameters::default());
    client.handle_input(&[9, 10, 1, 2]).unwrap();
    client.end_test().unwrap();
    client.handle_input(&[13]).unwrap();
    client
}

fn asking_server() -> ServerControl {
    let mut server = ServerControl::default();
    server.ask_parameters().unwrap();
    server
}

/// Whether a server can run what a client asks for.
fn check(parameters: &str) -> Result<(), ProtocolError> {
    Parameters::from_json(parameters.as_bytes()).and_then(|parameters| parameters.check())
}

/// A server in a test with a linerate.
fn greeting_server() -> ServerControl {
    let mut server = asking_server();
    server
        .handle_input(&frame::encode(&offer().to_json()))
        .unwrap();
    server.poll_event().unwrap();
    let hello = Hello {
        version: 1,
        software: "".into(),
        udp_token: None,
        target: None,
        probe: false,
    };
    server.send_hello(hello).unwrap();
    server
}

#[test]
fn cve_2016_4303_malformed_strings_in_json() {
    for text in [
        "\"\\u\"",
        "\"\\u1\"",
        "\"\\u12\"",
        "\"\\u123\"",
        "\"\\ud800\"",
        "\"\\ud800\\u\"",
        "\"\\udc00\"",
        "\"\\ud800\\ud800\"",
        "\"\\",
        "\"\\\"",
        "\"",
        "\"\\x\"",
        "\"\\u00zz\"",
        "\"\u{0}\"",
        "\"\\ud800\\udc00",
    ] {
        for json in [
            format!("{{\"title\":{text}}}"),
            format!("{{{text}:1}}"),
            format!("{{{text}"),
        ] {
            let result = Parameters::from_json(json.as_bytes());
            assert!(matches!(result, Err(ProtocolError::Json { .. })), "{json}");
            assert!(Results::from_json(json.as_bytes()).is_err());
            assert!(Message::from_json(json.as_bytes()).is_err());
        }
    }
}

#[test]
fn cve_2023_38403_length_of_4_gib() {
    let error = asking_server().handle_input(&[0xff; 4]).unwrap_err();
    assert!(
        matches!(
            error,
            ProtocolError::FrameTooLong {
                length: 0xffff_ffff,
                ..
            }
        ),
        "{error}"
    );
    // A client that waits for results may be told of an end by one byte of 0xff instead.
    let mut client = exchanging_client();
    assert!(client.handle_input(&[0x7f, 0xff, 0xff, 0xff]).is_err());
    let mut server = greeting_server();
    assert!(server.handle_input(&[76, 0xff, 0xff, 0xff, 0xff]).is_err());
    for length in [8193_u32, 0x0100_0000, 0x7fff_ffff, 0x8000_0000] {
        assert!(asking_server().handle_input(&length.to_be_bytes()).is_err());
    }
    assert!(asking_server().handle_input(&[0; 4]).is_err());
}

#[test]
fn cve_2023_7250_partial_control_data() {
    // The machine never waits: it says that a message is not whole, and goes on when it is.
    let message = frame::encode(&Parameters::default().to_json());
    for end in 1..message.len() {
        let mut server = asking_server();
        server.handle_input(&message[..end]).unwrap();
        assert!(server.poll_event().is_none());
        assert!(server.unread().is_some());
        server.handle_input(&message[end..]).unwrap();
        assert!(matches!(
            server.poll_event(),
            Some(ServerEvent::Parameters(_))
        ));
        assert_eq!(server.unread(), None);
    }
    let mut client = exchanging_client();
    client.handle_input(&[0, 0]).unwrap();
    assert!(client.unread().is_some());
}

#[test]
fn cve_2024_26306_padding_oracle() {
    // Decryption is the caller's; here every plaintext that is no plaintext fails alike.
    for wrong in [
        &b""[..],
        b"\0",
        b"user",
        &[0xff; 256],
        b"user: a\npwd:  b\nts:   x",
        b"user: a",
    ] {
        assert_eq!(Credentials::parse(wrong), Err(ProtocolError::Token));
    }
    let (users, _) = Users::parse(&format!("a,{}\n", "00".repeat(32)));
    assert!(!users.allows("a", &[1; 32]) && !users.allows("b", &[0; 32]));
}

#[test]
fn cve_2024_53580_json_type_confusion() {
    let values = [
        "null",
        "true",
        "false",
        "-1",
        "0.5",
        "1e999",
        "99999999999999999999",
        "\"x\"",
        "[]",
        "[1]",
        "{}",
        "{\"a\":1}",
    ];
    let keys = [
        "tcp",
        "udp",
        "sctp",
        "omit",
        "server_affinity",
        "time",
        "num",
        "blockcount",
        "MSS",
        "nodelay",
        "parallel",
        "reverse",
        "bidirectional",
        "mptcp",
        "window",
        "len",
        "bandwidth",
        "fqrate",
        "pacing_timer",
        "burst",
        "gso",
        "gso_dg_size",
        "gso_bf_size",
        "gro",
        "gro_bf_size",
        "TOS",
        "flowlabel",
        "title",
        "extra_data",
        "congestion",
        "congestion_used",
        "get_server_output",
        "udp_counters_64bit",
        "repeating_payload",
        "zerocopy",
        "dont_fragment",
        "authtoken",
        "skip_rx_copy",
        "client_version",
        "linerate",
    ];
    for key in keys {
        for value in values {
            let json = format!("{{\"tcp\":true,\"{key}\":{value}}}");
            // 1e999 is no number to the parser; all else is read.
            match Parameters::from_json(json.as_bytes()) {
                Ok(parameters) => drop(parameters.check()),
                Err(error) => assert_eq!(value, "1e999", "{json}: {error}"),
            }
        }
    }
    let good = String::from_utf8(results(5).to_json()).unwrap();
    for key in [
        "cpu_util_total",
        "sender_has_retransmits",
        "streams",
        "id",
        "bytes",
        "retransmits",
        "jitter",
        "errors",
        "packets",
        "end_time",
        "server_output_text",
        "omitted_packets",
    ] {
        for value in values {
            let json = good.replacen(
                &format!("\"{key}\":"),
                &format!("\"{key}\":{value},\"was\":"),
                1,
            );
            let _ = Results::from_json(json.as_bytes());
        }
    }
    for value in values {
        assert!(Parameters::from_json(value.as_bytes()).is_err() || value.starts_with('{'));
    }
}

#[test]
fn cve_2025_54349_authentication_off_by_one() {
    // Base64 of every length and padding, and plaintexts that fill their buffer.
    for length in 0..80 {
        for padding in 0..4 {
            let text = format!("{}{}", "A".repeat(length), "=".repeat(padding));
            if let Ok(bytes) = decode_token(&text) {
                assert_eq!(bytes.len(), (length + padding) / 4 * 3 - padding);
            }
        }
    }
    let long = format!(
        "user: {}\npwd:  {}\nts:   1",
        "u".repeat(5000),
        "p".repeat(5000)
    );
    assert_eq!(
        Credentials::parse(long.as_bytes()).unwrap().user.len(),
        5000
    );
}

#[test]
fn cve_2025_54350_assertion_on_malformed_token() {
    for wrong in [
        "", "=", "==", "====", "A===", "A", "AA", "AA=A", "AB==", "!!!!", "QQ==\0", "é", "QQ\n==",
    ] {
        assert_eq!(decode_token(wrong), Err(ProtocolError::Token), "{wrong:?}");
    }
    assert!(decode_token(&"A".repeat(1 << 20)).is_err());
}

#[test]
fn cve_2025_54351_overflow_with_skip_rx_copy() {
    // With MSG_TRUNC the kernel reports 65507 bytes and stores 16: only stored bytes are read.
    for stored in 0..16 {
        assert_eq!(
            DataHeader::decode(CounterWidth::Bits64, &[0xff; 16][..stored]),
            None
        );
    }
    assert!(DataHeader::decode(CounterWidth::Bits64, &[0xff; 16]).is_some());
}

#[test]
fn cve_2026_71217_sum_of_parallel_and_len() {
    // Upstream's server allocated one block of the announced length for each announced stream.
    for json in [
        r#"{"tcp":true,"parallel":2147483647,"len":1048576}"#,
        r#"{"tcp":true,"parallel":129,"len":1048576}"#,
        r#"{"tcp":true,"parallel":128,"len":16777217}"#,
        r#"{"tcp":true,"parallel":1,"len":18446744073709551615}"#,
        r#"{"udp":true,"parallel":128,"len":65508}"#,
        r#"{"udp":true,"parallel":4294967296,"len":65507,"bidirectional":true}"#,
    ] {
        let error = check(json).unwrap_err();
        let ProtocolError::Parameter { key, .. } = error else {
            panic!("{json}: {error}");
        };
        assert!(["parallel", "len"].contains(&key), "{json}: {key}");
    }
    // The largest that passes is 2 GiB in all. No machine holds a block of it: `len` stays a number.
    let most = r#"{"tcp":true,"parallel":128,"len":16777216,"reverse":true}"#;
    let mut server = asking_server();
    server
        .handle_input(&frame::encode(most.as_bytes()))
        .unwrap();
    let Some(ServerEvent::Parameters(parameters)) = server.poll_event() else {
        panic!("no parameters");
    };
    assert_eq!((parameters.parallel, parameters.len), (128, 16 << 20));
    parameters.check().unwrap();
    assert!(size_of_val(&server) + size_of_val(&parameters) < 4096);
}

#[test]
fn cve_2026_71218_allocation_by_announced_length() {
    // Inside the bounds, and never followed by a byte. `frame` has the test of what is allocated for it.
    let mut server = asking_server();
    server.handle_input(&8192_u32.to_be_bytes()).unwrap();
    assert!(server.unread().is_some() && server.poll_event().is_none());
    let mut client = exchanging_client();
    client.handle_input(&0x0100_0000_u32.to_be_bytes()).unwrap();
    assert!(client.unread().is_some());
    // One byte beyond them.
    for (length, bound) in [(8193_u32, 8192), (u32::MAX, 8192), (1 << 31, 8192)] {
        assert_eq!(
            asking_server().handle_input(&length.to_be_bytes()),
            Err(ProtocolError::FrameTooLong {
                message: "parameters",
                length: length.into(),
                bound,
            })
        );
    }
    assert_eq!(
        exchanging_client().handle_input(&0x0100_0001_u32.to_be_bytes()),
        Err(ProtocolError::FrameTooLong {
            message: "results",
            length: 0x0100_0001,
            bound: 16 << 20,
        })
    );
    // The announced text is longer than what follows it: nothing is read beyond what came.
    let mut server = asking_server();
    server
        .handle_input(&[&100_u32.to_be_bytes()[..], br#"{"tcp":true}"#].concat())
        .unwrap();
    assert!(server.poll_event().is_none());
}

/// A server whose test is over and which waits for a stock client's results.
fn exchanging_server() -> ServerControl {
    let mut server = asking_server();
    server
        .handle_input(&frame::encode(&Parameters::default().to_json()))
        .unwrap();
    server.create_streams().unwrap();
    server.start_test().unwrap();
    server.handle_input(&[4]).unwrap();
    server.exchange_results().unwrap();
    server
}

#[test]
fn a_client_s_results_cost_no_more_than_streams_do() {
    // A value of two bytes takes 72 once it is parsed.
    let many = format!("{{\"a\":[{}0]}}", "0,".repeat(16_384));
    let error = exchanging_server()
        .handle_input(&frame::encode(many.as_bytes()))
        .unwrap_err();
    assert!(
        matches!(&error, ProtocolError::Json { message: "results", reason } if reason.contains("too many values")),
        "{error}"
    );
    let most = Results {
        streams: vec![results(1).streams[0].clone(); 1024],
        ..Results::default()
    };
    let mut server = exchanging_server();
    server
        .handle_input(&frame::encode(&most.to_json()))
        .unwrap();
    let last = std::iter::from_fn(|| server.poll_event()).last();
    assert_eq!(last, Some(ServerEvent::PeerResults(most)));
}

#[test]
fn cve_2026_102253_udp_with_a_length_of_0() {
    for json in [
        r#"{"udp":true,"len":0}"#,
        r#"{"udp":true}"#,
        r#"{"udp":true,"len":15}"#,
        r#"{"udp":true,"len":-1}"#,
        r#"{"udp":true,"len":0.5}"#,
        r#"{"udp":true,"len":"1460"}"#,
        r#"{"udp":true,"len":0,"num":1000,"reverse":true,"bandwidth":1000000}"#,
        r#"{"udp":true,"len":0,"blockcount":10,"gso":1,"gso_dg_size":0}"#,
        r#"{"tcp":true,"len":0}"#,
    ] {
        let parameters = Parameters::from_json(json.as_bytes()).unwrap();
        if parameters.protocol == Protocol::Tcp {
            // A client that names no block gets the default one.
            assert!(parameters.len > 0 || parameters.check().is_err(), "{json}");
            continue;
        }
        let error = parameters.check().unwrap_err();
        assert!(
            matches!(error, ProtocolError::Parameter { key: "len", .. }),
            "{json}: {error}"
        );
    }
    // Nor is a length divided by: a datagram without one has no header.
    assert_eq!(DataHeader::decode(CounterWidth::Bits32, &[]), None);
}

#[test]
fn base64_that_overflowed_the_heap() {
    // esnet/iperf #2027: '=' gave a length of −1 and wrote before its buffer. #2040: "AB" gave a length of
    // SIZE_MAX. #2050: a token that is longer than the key overflowed the buffer that it was decrypted into.
    for token in ["=", "AB"] {
        assert_eq!(decode_token(token), Err(ProtocolError::Token), "{token}");
        let json = format!(r#"{{"tcp":true,"authtoken":"{token}"}}"#);
        let parameters = Parameters::from_json(json.as_bytes()).unwrap();
        assert_eq!(parameters.authtoken.as_deref(), Some(token));
    }
    // Decoding gives what was there and no more; the caller's cipher judges the length.
    assert_eq!(decode_token(&"A".repeat(4096)).unwrap().len(), 3072);
    assert_eq!(
        decode_token(&"A".repeat(4100)),
        Err(ProtocolError::Token),
        "longer than the token of any key"
    );
}

#[test]
fn deep_nesting_is_refused() {
    let deep = format!("{{\"a\":{}", "[".repeat(8000));
    assert!(Parameters::from_json(deep.as_bytes()).is_err());
    let closed = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
    assert!(Results::from_json(closed.as_bytes()).is_err());
    let wide = format!("{{\"a\":[{}0]}}", "0,".repeat(1_000_001));
    let error = Results::from_json(wide.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("too many values"), "{error}");
}

#[test]
fn another_server_is_named() {
    let text = |bytes: &[u8]| {
        client(Parameters::default())
            .handle_input(bytes)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        text(b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n"),
        "the peer answered 'HTTP/1.1 400 Bad Request…': this is not an iperf3 or linerate server; is the port right?"
    );
    assert!(text(b"SSH-2.0-OpenSSH_9.2p1\r\n").contains("'SSH-2.0-OpenSSH_9.2p1…'"));
    assert!(text(b"H").contains("'H'"));
    assert!(text(&[0x15, 3, 1, 0, 2, 2]).contains("\\x15"));
    let error = asking_server()
        .handle_input(b"GET / HTTP/1.1\r\n")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("'GET / HTTP/1.1…'") && error.contains("client"),
        "{error}"
    );
    let mut server = asking_server();
    server.handle_input(b"GE").unwrap();
    let error = server.handle_input(b"T / HTTP").unwrap_err().to_string();
    assert!(error.contains("'GET '"), "{error}");
}

#[test]
fn order_is_kept() {
    let error = client(Parameters::default())
        .handle_input(&[10])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("CREATE_STREAMS (10) where PARAM_EXCHANGE (9) was due"),
        "{error}"
    );
    for wrong in [
        &[9, 1][..],
        &[9, 10, 2],
        &[9, 10, 1, 1],
        &[9, 9],
        &[14],
        &[9, 10, 1, 2, 13],
        &[9, 4],
        &[9, 76],
    ] {
        let mut client = client(Parameters::default());
        assert!(
            matches!(
                client.handle_input(wrong),
                Err(ProtocolError::OutOfOrder { .. })
            ),
            "{wrong:?}"
        );
        assert!(client.is_closed());
        assert!(
            client.handle_input(&[9]).is_ok(),
            "a closed machine takes no more"
        );
    }
    let mut early = ServerControl::default();
    assert!(matches!(
        early.handle_input(&[4]),
        Err(ProtocolError::OutOfOrder { .. })
    ));
}

#[test]
fn ours_in_the_wrong_place_is_refused() {
    let pong = Message::Pong {
        n: 1,
        received: Nanos(1),
        sent: Nanos(1),
    };
    let end = Message::End(b"{}".to_vec());
    let hello = Message::Hello(Hello {
        version: 1,
        software: "".into(),
        udp_token: None,
        target: None,
        probe: false,
    });
    for first in [
        pong.clone(),
        end.clone(),
        Message::Ready {},
        Message::Ping { n: 1 },
    ] {
        let mut client = client(offer());
        client.handle_input(&[9]).unwrap();
        let error = client
            .handle_input(&first.encode())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("a linerate {}", first.name())),
            "{error}"
        );
    }
    // After the hello: no pong that was not asked for, no second hello, no stock state.
    for second in [pong.encode(), hello.encode(), end.encode(), vec![10]] {
        let mut client = client(offer());
        client.handle_input(&[9]).unwrap();
        client.handle_input(&hello.encode()).unwrap();
        assert!(client.handle_input(&second).is_err());
    }
    for first in [hello, pong, end, Message::EndRequest { max_bytes: 1 }] {
        assert!(greeting_server().handle_input(&first.encode()).is_err());
    }
    // A stock client's server takes nothing of ours.
    let mut server = asking_server();
    server
        .handle_input(&frame::encode(&offer().to_json()))
        .unwrap();
    server.create_streams().unwrap();
    server.start_test().unwrap();
    assert!(
        server
            .handle_input(&Message::Ping { n: 1 }.encode())
            .is_err()
    );
}

#[test]
fn a_flood_is_cut_off() {
    let mut server = greeting_server();
    let pings = Message::Ping { n: 1 }.encode().repeat(65);
    let error = server.handle_input(&pings).unwrap_err();
    assert_eq!(error, ProtocolError::TooManyMessages { bound: 64 });
    // The last word is still possible, once.
    server.error(142, 0);
    server.terminate();
    let written: Vec<u8> = std::iter::from_fn(|| server.poll_transmit())
        .flatten()
        .collect();
    assert!(written.ends_with(&[0xfe, 0, 0, 0, 142, 0, 0, 0, 0]));
}

#[test]
fn ends_come_in_the_place_of_anything() {
    for at in 0..=4 {
        let before = &[9, 10, 1, 2][..at];
        for (bytes, expected) in [
            (&[11][..], ClientEvent::ServerTerminated),
            (&[0xff], ClientEvent::Denied),
            (
                &[0xfe, 0, 0, 0, 27, 0, 0, 0, 1],
                ClientEvent::ServerError { code: 27, errno: 1 },
            ),
        ] {
            let mut client = client(Parameters::default());
            client.handle_input(before).unwrap();
            while client.poll_event().is_some() {}
            client.handle_input(bytes).unwrap();
            assert_eq!(client.poll_event(), Some(expected));
            assert!(client.is_closed());
        }
    }
    let mut waiting = exchanging_client();
    while waiting.poll_event().is_some() {}
    waiting.handle_input(&[11]).unwrap();
    assert_eq!(waiting.poll_event(), Some(ClientEvent::ServerTerminated));
    for mut server in [asking_server(), greeting_server()] {
        server.handle_input(&[12]).unwrap();
        assert_eq!(server.poll_event(), Some(ServerEvent::ClientTerminated));
    }
}

#[test]
fn verbs_out_of_turn_are_errors_of_the_caller() {
    let mut client = client(offer());
    for result in [
        client.send_ping(1),
        client.ready(),
        client.end_test(),
        client.done(),
        client.request_end(1),
        client.send_results(&Results::default()),
        client.send_finishing(Finishing::default()),
    ] {
        assert!(matches!(result, Err(ProtocolError::OutOfTurn { .. })));
    }
    client.terminate();
    client.terminate();
    let written: Vec<u8> = std::iter::from_fn(|| client.poll_transmit())
        .flatten()
        .collect();
    assert_eq!(written.len(), 38);
    assert_eq!(written[37], 12);
    let mut server = asking_server();
    for result in [
        server.ask_parameters(),
        server.create_streams(),
        server.start_test(),
        server.exchange_results(),
        server.send_results(&Results::default()),
        server.display_results(),
        server.send_end(vec![]),
    ] {
        assert!(matches!(result, Err(ProtocolError::OutOfTurn { .. })));
    }
}

#[test]
fn a_record_is_held_to_what_was_asked_for() {
    let mut client = client(offer());
    client.handle_input(&[9]).unwrap();
    let hello = Hello {
        version: 1,
        software: "".into(),
        udp_token: None,
        target: None,
        probe: false,
    };
    client
        .handle_input(&Message::Hello(hello).encode())
        .unwrap();
    client.ready().unwrap();
    client.handle_input(&[10, 1, 2]).unwrap();
    client.end_test().unwrap();
    client.handle_input(&[13]).unwrap();
    client.send_results(&results(1)).unwrap();
    client
        .handle_input(&frame::encode(&results(1).to_json()))
        .unwrap();
    client.request_end(10).unwrap();
    let mut other = client.clone();
    client
        .handle_input(&Message::End(vec![b'1'; 10]).encode())
        .unwrap();
    assert!(
        other
            .handle_input(&Message::End(vec![b'1'; 11]).encode())
            .is_err()
    );
    client.handle_input(&[14]).unwrap();
    assert!(client.done().is_ok());
}
