//! What holds for all inputs: written and read again is the same, no bytes panic, input in pieces
//! is the whole input.

use linerate_model::record::PeerStream;
use linerate_model::units::Nanos;
use linerate_wire::control::{ClientControl, ServerControl, ServerEvent};
use linerate_wire::cookie::Cookie;
use linerate_wire::extension::{Hello, Message, TargetAsked};
use linerate_wire::frame;
use linerate_wire::parameters::{Extension, MAX_PARAMETERS_BYTES, Parameters, Protocol};
use linerate_wire::results::Results;
use proptest::prelude::*;

use crate::session::{offer, results};

fn text() -> impl Strategy<Value = Option<String>> {
    prop::option::of("\\PC{0,60}")
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let protocol = prop_oneof![
        Just(Protocol::Tcp),
        Just(Protocol::Udp),
        Just(Protocol::Sctp)
    ];
    let extension = prop::option::of((
        any::<u32>(),
        "[ -~]{0,60}",
        any::<[Option<u64>; 2]>(),
        any::<[bool; 2]>(),
        prop::option::of(("[ -~]{0,60}", any::<[bool; 3]>())),
    ))
    .prop_map(|o| {
        o.map(
            |(version, software, [sample_ns, received_ns], [spin, probe], target)| Extension {
                version,
                software: software.into(),
                sample_ns,
                received_ns,
                spin,
                probe,
                target: target.map(|(folder, [named, direct, keep])| TargetAsked {
                    folder: named.then(|| folder.into()),
                    direct,
                    keep,
                }),
            },
        )
    });
    let numbers = any::<([u64; 5], [u64; 12], Option<u64>)>();
    let texts = (text(), text(), text(), text(), text(), text());
    (protocol, numbers, any::<[bool; 12]>(), texts, extension).prop_map(
        |(protocol, (extent, sizes, core), flags, texts, linerate)| {
            let is_udp = protocol == Protocol::Udp;
            let zero_unless_udp = |number: u64| if is_udp { number } else { 65_507 };
            Parameters {
                protocol,
                omit: extent[0],
                server_affinity: core,
                time: extent[1],
                num: extent[2],
                blockcount: extent[3],
                parallel: extent[4],
                mss: sizes[0],
                window: sizes[1],
                len: sizes[2].max(1),
                bandwidth: sizes[3],
                fqrate: sizes[4],
                pacing_timer: sizes[5].max(1),
                burst: sizes[6],
                gso: is_udp && flags[0],
                gso_dg_size: if is_udp { sizes[7] } else { 0 },
                gso_bf_size: zero_unless_udp(sizes[8]),
                gro: is_udp && flags[1],
                gro_bf_size: zero_unless_udp(sizes[9]),
                tos: sizes[10],
                flowlabel: sizes[11],
                nodelay: flags[2],
                reverse: flags[3],
                bidirectional: flags[4],
                mptcp: flags[5],
                get_server_output: flags[6],
                udp_counters_64bit: flags[7],
                repeating_payload: flags[8],
                zerocopy: flags[9],
                dont_fragment: flags[10],
                skip_rx_copy: flags[11],
                title: texts.0.map(Into::into),
                extra_data: texts.1.map(Into::into),
                congestion: texts.2.map(Into::into),
                congestion_used: texts.3.map(Into::into),
                authtoken: texts.4.map(Into::into),
                client_version: texts.5.map(Into::into),
                linerate,
            }
        },
    )
}

fn stream() -> impl Strategy<Value = PeerStream> {
    let numbers = any::<(u32, u64, i64, i64, u64, Option<(i64, u64)>)>();
    (numbers, [0.0..1e9_f64, 0.0..1e9, 0.0..1e9]).prop_map(
        |((id, bytes, retransmits, errors, packets, omitted), floats)| PeerStream {
            id,
            bytes,
            retransmits,
            jitter_s: floats[0],
            errors,
            omitted_errors: omitted.map(|o| o.0),
            packets,
            omitted_packets: omitted.map(|o| o.1),
            end_time_s: floats[2],
        },
    )
}

fn any_results() -> impl Strategy<Value = Results> {
    let streams = prop::collection::vec(stream(), 0..5);
    (
        [0.0..1e5_f64, 0.0..1e5, 0.0..1e5],
        any::<i64>(),
        text(),
        text(),
        any::<bool>(),
        streams,
    )
        .prop_map(
            |(cpu, sender_has_retransmits, congestion_used, output, json, streams)| Results {
                cpu_util_total: cpu[0],
                cpu_util_user: cpu[1],
                cpu_util_system: cpu[2],
                sender_has_retransmits,
                congestion_used: congestion_used.map(Into::into),
                server_output_json: json.then(|| serde_json::json!({ "start": [1, "x"] })),
                server_output_text: output.map(Into::into),
                streams,
            },
        )
}

/// Bytes that resemble a session: states, frames, messages of ours, noise.
fn wire() -> impl Strategy<Value = Vec<u8>> {
    let state = prop::sample::select(vec![
        1, 2, 4, 9, 10, 11, 12, 13, 14, 16, 76, 0xfe, 0xff, 0, 72,
    ]);
    let hello = Message::Hello(Hello {
        version: 1,
        software: "x".into(),
        udp_token: None,
        target: None,
        probe: false,
    });
    let messages = vec![
        hello.encode(),
        Message::Ready {}.encode(),
        Message::Ping { n: 1 }.encode(),
        Message::EndRequest { max_bytes: 5 }.encode(),
        Message::End(b"{}".to_vec()).encode(),
        Message::Finishing(crate::session::finishing(1)).encode(),
        frame::encode(&Parameters::default().to_json()),
        frame::encode(&offer().to_json()),
        frame::encode(&results(1).to_json()),
        vec![9, 10, 1, 2],
        vec![4],
    ];
    let piece = prop_oneof![
        3 => state.prop_map(|byte| vec![byte]),
        3 => prop::sample::select(messages),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// What a client machine makes of the input in pieces, acting on each event.
fn drive_client<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<String>, Vec<u8>) {
    let mut client = ClientControl::new(Cookie::from_random([0; 36]), offer());
    let mut log = Vec::new();
    for piece in pieces {
        let outcome = client.handle_input(piece);
        while let Some(event) = client.poll_event() {
            log.push(format!("{event:?}"));
        }
        if let Err(error) = outcome {
            // The excerpt in the text depends on the pieces; its kind does not.
            log.push(format!("{:?}", std::mem::discriminant(&error)));
            break;
        }
    }
    let written = std::iter::from_fn(|| client.poll_transmit())
        .flatten()
        .collect();
    (log, written)
}

proptest! {
    #[test]
    fn parameters_survive(parameters in parameters()) {
        let json = parameters.to_json();
        prop_assume!(json.len() <= MAX_PARAMETERS_BYTES);
        let read = Parameters::from_json(&json).unwrap();
        prop_assert_eq!(read, parameters);
    }

    #[test]
    fn results_survive(results in any_results()) {
        let read = Results::from_json(&results.to_json()).unwrap();
        prop_assert_eq!(read, results);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Parameters::from_json(&bytes);
        let _ = Results::from_json(&bytes);
    }

    #[test]
    fn no_json_panics(text in "[{}\\[\\]:,\"0-9a-z.eE+\\\\-]{0,80}") {
        let _ = Parameters::from_json(text.as_bytes());
        let _ = Results::from_json(text.as_bytes());
    }

    #[test]
    fn a_split_input_is_the_whole_input_to_a_client(input in wire(), cut in 1usize..7) {
        let whole = drive_client(std::iter::once(&input[..]));
        let split = drive_client(input.chunks(cut));
        prop_assert_eq!(whole, split);
    }

    #[test]
    fn a_server_survives_any_session(input in wire(), cut in 1usize..30) {
        let mut server = ServerControl::default();
        server.ask_parameters().unwrap();
        let start = frame::encode(&offer().to_json());
        for piece in start.chunks(cut).chain(input.chunks(cut)) {
            let outcome = server.handle_input(piece);
            while let Some(event) = server.poll_event() {
                let _ = match event {
                    ServerEvent::Parameters(_) => server.send_hello(
                        Hello { version: 1, software: "".into(), udp_token: None, target: None, probe: false }
                    ),
                    ServerEvent::Ping { n } => server.send_pong(n, Nanos(1), Nanos(2)),
                    ServerEvent::Ready => server.create_streams().and_then(|()| server.start_test()),
                    ServerEvent::TestEnd => server.exchange_results(),
                    ServerEvent::PeerResults(results) => server.send_results(&results),
                    ServerEvent::EndRequested { .. } => server.send_end(b"{}".to_vec()).and_then(|()| server.display_results()),
                    _ => Ok(()),
                };
            }
            if outcome.is_err() {
                prop_assert!(server.is_closed());
            }
        }
    }
}
