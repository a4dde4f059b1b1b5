//! Real iperf3 sessions, see tests/captured/README.md.

use linerate_wire::control::{ClientControl, ClientEvent, ServerControl, ServerEvent};
use linerate_wire::cookie::Cookie;
use linerate_wire::frame;
use linerate_wire::parameters::{Parameters, Protocol};
use linerate_wire::results::Results;
use serde_json::Value;

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) client: &'static [u8],
    pub(crate) server: &'static [u8],
    pub(crate) parameters: &'static [u8],
    pub(crate) client_results: &'static [u8],
    pub(crate) server_results: &'static [u8],
}

macro_rules! cases {
    ($($name:literal),* $(,)?) => {
        [$(Case {
            name: $name,
            client: include_bytes!(concat!("../captured/", $name, ".client.bin")),
            server: include_bytes!(concat!("../captured/", $name, ".server.bin")),
            parameters: include_bytes!(concat!("../captured/", $name, ".parameters.json")),
            client_results: include_bytes!(concat!("../captured/", $name, ".client_results.json")),
            server_results: include_bytes!(concat!("../captured/", $name, ".server_results.json")),
        }),*]
    };
}

pub(crate) const CASES: [Case; 14] = cases![
    "3.12_tcp",
    "3.12_tcp_reverse",
    "3.12_tcp_bidir",
    "3.12_udp",
    "3.12_udp_reverse",
    "3.12_tcp_server_text",
    "3.12_tcp_server_json",
    "3.21_tcp",
    "3.21_tcp_reverse",
    "3.21_tcp_bidir",
    "3.21_udp",
    "3.21_udp_reverse",
    "3.21_tcp_server_text",
    "3.21_tcp_server_json",
];

fn case(name: &str) -> &'static Case {
    CASES.iter().find(|case| case.name == name).unwrap()
}

#[test]
fn parameters_are_read_and_pass() {
    for case in &CASES {
        let parameters = Parameters::from_json(case.parameters).unwrap();
        parameters.check().unwrap();
    }
    let bidir = Parameters::from_json(case("3.21_tcp_bidir").parameters).unwrap();
    assert_eq!(
        bidir,
        Parameters {
            time: 1,
            mss: 1400,
            nodelay: true,
            parallel: 2,
            bidirectional: true,
            window: 262_144,
            tos: 16,
            title: Some("a title \"quoted\" é".into()),
            extra_data: Some("xyz".into()),
            congestion: Some("cubic".into()),
            client_version: Some("3.21+".into()),
            ..Parameters::default()
        }
    );
    let udp = Parameters::from_json(case("3.12_udp_reverse").parameters).unwrap();
    assert_eq!(udp.protocol, Protocol::Udp);
    assert_eq!(
        (udp.server_affinity, udp.len, udp.dont_fragment),
        (Some(0), 32_768, true)
    );
}

#[test]
fn what_3_21_writes_we_write_to_the_byte() {
    for case in CASES.iter().filter(|case| case.name.starts_with("3.21")) {
        let parameters = Parameters::from_json(case.parameters).unwrap();
        let ours = String::from_utf8(parameters.to_json()).unwrap();
        assert_eq!(
            ours,
            String::from_utf8_lossy(case.parameters),
            "{}",
            case.name
        );
    }
}

#[test]
fn a_captured_token_is_base64_of_2048_bits() {
    for bytes in [
        &include_bytes!("../captured/3.12_auth.parameters.json")[..],
        include_bytes!("../captured/3.21_auth.parameters.json"),
    ] {
        let parameters = Parameters::from_json(bytes).unwrap();
        let token = parameters.authtoken.unwrap();
        let ciphertext = linerate_wire::auth::decode_token(&token).unwrap();
        assert_eq!(ciphertext.len(), 256);
        assert_eq!(
            linerate_wire::auth::encode_token(&ciphertext),
            token.as_str()
        );
    }
}

#[test]
fn results_are_read_whole() {
    for case in &CASES {
        for bytes in [case.client_results, case.server_results] {
            let results = Results::from_json(bytes).unwrap();
            assert!(
                (-1..=1).contains(&results.sender_has_retransmits),
                "{}",
                case.name
            );
            assert!(!results.streams.is_empty());
            for stream in &results.streams {
                assert!((-1..1000).contains(&stream.retransmits), "{}", case.name);
                assert_eq!(
                    stream.omitted_errors.is_some(),
                    case.name.starts_with("3.21")
                );
            }
        }
    }
    let bidir = Results::from_json(case("3.12_tcp_bidir").client_results).unwrap();
    assert_eq!(
        bidir.streams.iter().map(|s| s.id).collect::<Vec<_>>(),
        [1, 3, 4, 5]
    );
    assert_eq!(bidir.streams[2].retransmits, -1);
}

#[test]
fn results_of_3_21_are_written_as_they_came() {
    for case in CASES.iter().filter(|case| case.name.starts_with("3.21")) {
        for bytes in [case.client_results, case.server_results] {
            let results = Results::from_json(bytes).unwrap();
            let ours: Value = serde_json::from_slice(&results.to_json()).unwrap();
            let theirs: Value = serde_json::from_slice(bytes).unwrap();
            assert!(same(&ours, &theirs), "{}\n{ours}\n{theirs}", case.name);
        }
    }
}

/// The same JSON, 0 and 0.0 being one number; order of keys included.
fn same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len()
                && one
                    .iter()
                    .zip(two)
                    .all(|(a, b)| a.0 == b.0 && same(a.1, b.1))
        }
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(a, b)| same(a, b))
        }
        (Value::Number(one), Value::Number(two)) => one.as_f64() == two.as_f64(),
        _ => one == two,
    }
}

#[test]
fn server_output_comes_through() {
    for version in ["3.12", "3.21"] {
        let text = case(&format!("{version}_tcp_server_text"));
        let results = Results::from_json(text.server_results).unwrap();
        assert!(results.server_output_text.unwrap().contains("receiver"));
        let json = case(&format!("{version}_tcp_server_json"));
        let results = Results::from_json(json.server_results).unwrap();
        assert!(results.server_output_json.unwrap()["intervals"].is_array());
    }
}

#[test]
fn a_client_takes_what_a_real_server_wrote_byte_by_byte() {
    for case in &CASES {
        let cookie = Cookie::from_random([1; 36]);
        let mut client = ClientControl::new(cookie, Parameters::default());
        let mut events = Vec::new();
        for byte in case.server {
            client.handle_input(&[*byte]).unwrap();
            while let Some(event) = client.poll_event() {
                match &event {
                    ClientEvent::TestRunning => client.end_test().unwrap(),
                    ClientEvent::ExchangeResults => {
                        client.send_results(&Results::default()).unwrap();
                    }
                    ClientEvent::DisplayResults => client.done().unwrap(),
                    _ => {}
                }
                events.push(event);
            }
        }
        assert_eq!(events.len(), 6, "{}: {events:?}", case.name);
        assert!(client.is_closed());
        let written: Vec<u8> = std::iter::from_fn(|| client.poll_transmit())
            .flatten()
            .collect();
        let mut expected = cookie.as_bytes().to_vec();
        expected.extend(frame::encode(&Parameters::default().to_json()));
        expected.push(4);
        expected.extend(frame::encode(&Results::default().to_json()));
        expected.push(16);
        assert_eq!(written, expected);
    }
}

#[test]
fn a_server_takes_what_a_real_client_wrote_and_answers_alike() {
    for case in &CASES {
        let mut server = ServerControl::default();
        server.ask_parameters().unwrap();
        let mut kinds = Vec::new();
        for byte in &case.client[37..] {
            server.handle_input(&[*byte]).unwrap();
            while let Some(event) = server.poll_event() {
                match event {
                    ServerEvent::Parameters(_) => {
                        server.create_streams().unwrap();
                        server.start_test().unwrap();
                        kinds.push("parameters");
                    }
                    ServerEvent::TestEnd => {
                        server.exchange_results().unwrap();
                        kinds.push("end");
                    }
                    ServerEvent::PeerResults(_) => {
                        server.send_results(&Results::default()).unwrap();
                        server.display_results().unwrap();
                        kinds.push("results");
                    }
                    ServerEvent::Done => kinds.push("done"),
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(
            kinds,
            ["parameters", "end", "results", "done"],
            "{}",
            case.name
        );
        let written: Vec<u8> = std::iter::from_fn(|| server.poll_transmit())
            .flatten()
            .collect();
        assert_eq!(written[..5], [9, 10, 1, 2, 13]);
        assert_eq!(written.last(), Some(&14));
    }
}
