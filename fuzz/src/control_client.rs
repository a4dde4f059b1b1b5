//! A server's bytes to the client's machine, in pieces; the first byte says how they are cut and
//! whether the extension was offered.

use linerate_wire::control::{ClientControl, ClientEvent};
use linerate_wire::cookie::Cookie;
use linerate_wire::extension::Finishing;
use linerate_wire::parameters::{Extension, Parameters};
use linerate_wire::results::Results;

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Some((how, input)) = data.split_first() else {
        return;
    };
    let linerate = (how & 1 == 0).then(|| Extension {
        version: 1,
        software: "fuzz".into(),
        sample_ns: None,
        received_ns: Some(20_000_000),
        spin: false,
        target: None,
        probe: false,
    });
    let parameters = Parameters {
        linerate,
        ..Parameters::default()
    };
    let mut client = ClientControl::new(Cookie::from_random([1; 36]), parameters);
    for piece in input.chunks(usize::from(how >> 1) + 1) {
        let failed = client.handle_input(piece).is_err();
        assert!(!failed || client.is_closed());
        while let Some(event) = client.poll_event() {
            let _ = match event {
                ClientEvent::Hello(_) => client.send_ping(1),
                ClientEvent::Pong { .. } => client.ready(),
                ClientEvent::TestRunning => {
                    let _ = client.send_finishing(Finishing::default());
                    client.end_test()
                }
                ClientEvent::ExchangeResults => client.send_results(&Results::default()),
                ClientEvent::PeerResults(results) => {
                    let written = results.to_json();
                    assert_eq!(Results::from_json(&written).expect("ours"), results);
                    let _ = client.send_ping(2);
                    client.request_end(100_000)
                }
                ClientEvent::DisplayResults => client.done(),
                _ => Ok(()),
            };
        }
        while client.poll_transmit().is_some() {}
    }
}
