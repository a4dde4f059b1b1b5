//! A client's bytes (after the cookie) to the server's machine, in pieces; the first byte says how
//! they are cut and whether an offer is taken.

use linerate_model::units::Nanos;
use linerate_wire::control::{ServerControl, ServerEvent};
use linerate_wire::extension::{Finishing, Hello};

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Some((how, input)) = data.split_first() else {
        return;
    };
    let mut server = ServerControl::default();
    server.ask_parameters().expect("a new session");
    for piece in input.chunks(usize::from(how >> 1) + 1) {
        let failed = server.handle_input(piece).is_err();
        assert!(!failed || server.is_closed());
        while let Some(event) = server.poll_event() {
            let _ = match event {
                ServerEvent::Parameters(parameters) => {
                    let _ = parameters.check();
                    if parameters.linerate.is_some() && how & 1 == 0 {
                        let software = "".into();
                        server.send_hello(Hello {
                            version: 1,
                            software,
                            udp_token: None,
                            target: None,
                            probe: false,
                        })
                    } else {
                        server.create_streams().and_then(|()| server.start_test())
                    }
                }
                ServerEvent::Ping { n } => server.send_pong(n, Nanos(1), Nanos(2)),
                ServerEvent::Ready => server.create_streams().and_then(|()| server.start_test()),
                ServerEvent::TestEnd => {
                    let _ = server.send_finishing(Finishing::default());
                    server.exchange_results()
                }
                ServerEvent::PeerResults(results) => {
                    let sent = server.send_results(&results);
                    let _ = server.display_results();
                    sent
                }
                ServerEvent::EndRequested { .. } => {
                    let _ = server.send_end(b"{}".to_vec());
                    server.display_results()
                }
                _ => Ok(()),
            };
        }
        while server.poll_transmit().is_some() {}
    }
}
