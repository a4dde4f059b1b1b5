//! Two machines and the wire between them, cut anywhere.

use linerate_model::record::PeerStream;
use linerate_model::units::Nanos;
use linerate_wire::control::{ClientControl, ClientEvent, ServerControl, ServerEvent};
use linerate_wire::cookie::{COOKIE_BYTES, Cookie};
use linerate_wire::extension::{Finishing, FinishingStream, Hello};
use linerate_wire::parameters::{Extension, Parameters};
use linerate_wire::results::Results;

pub(crate) struct Session {
    pub(crate) client: ClientControl,
    pub(crate) server: ServerControl,
    pub(crate) client_events: Vec<ClientEvent>,
    pub(crate) server_events: Vec<ServerEvent>,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    cookie_read: bool,
    pings_left: u64,
    takes_offers: bool,
}

pub(crate) fn offer() -> Parameters {
    let linerate = Some(Extension {
        version: 1,
        software: "linerate test".into(),
        sample_ns: Some(10_000_000),
        received_ns: None,
        spin: false,
        target: None,
        probe: false,
    });
    Parameters {
        linerate,
        ..Parameters::default()
    }
}

pub(crate) fn results(bytes: u64) -> Results {
    let stream = PeerStream {
        id: 1,
        bytes,
        end_time_s: 1.0,
        ..PeerStream::default()
    };
    Results {
        streams: vec![stream],
        ..Results::default()
    }
}

pub(crate) fn finishing(bytes: u64) -> Finishing {
    Finishing {
        streams: vec![FinishingStream {
            id: 1,
            bytes,
            packets: 7,
        }],
    }
}

pub(crate) const RECORD: &[u8] = br#"{"samples":[1,2,3]}"#;

impl Session {
    pub(crate) fn new(parameters: Parameters, takes_offers: bool) -> Self {
        let cookie = Cookie::from_random([3; 36]);
        let mut server = ServerControl::default();
        server.ask_parameters().unwrap();
        Self {
            client: ClientControl::new(cookie, parameters),
            server,
            client_events: Vec::new(),
            server_events: Vec::new(),
            to_server: Vec::new(),
            to_client: Vec::new(),
            cookie_read: false,
            pings_left: 3,
            takes_offers,
        }
    }

    /// Runs until nothing moves, in pieces whose lengths `cut` gives.
    pub(crate) fn run(&mut self, mut cut: impl FnMut() -> usize) {
        // Every turn delivers at least one byte of some thousands.
        for _ in 0..100_000 {
            while let Some(bytes) = self.client.poll_transmit() {
                self.to_server.extend(bytes);
            }
            while let Some(bytes) = self.server.poll_transmit() {
                self.to_client.extend(bytes);
            }
            if self.to_server.is_empty() && self.to_client.is_empty() {
                return;
            }
            self.deliver_to_server(cut());
            self.deliver_to_client(cut());
        }
        panic!(
            "the session does not end: {:?} {:?}",
            self.client_events, self.server_events
        );
    }

    fn deliver_to_server(&mut self, length: usize) {
        if !self.cookie_read {
            if self.to_server.len() < COOKIE_BYTES {
                return;
            }
            self.to_server.drain(..COOKIE_BYTES);
            self.cookie_read = true;
        }
        let piece: Vec<u8> = self
            .to_server
            .drain(..length.min(self.to_server.len()))
            .collect();
        self.server.handle_input(&piece).unwrap();
        while let Some(event) = self.server.poll_event() {
            self.answer_client(&event);
            self.server_events.push(event);
        }
    }

    fn deliver_to_client(&mut self, length: usize) {
        let piece: Vec<u8> = self
            .to_client
            .drain(..length.min(self.to_client.len()))
            .collect();
        self.client.handle_input(&piece).unwrap();
        while let Some(event) = self.client.poll_event() {
            self.answer_server(&event);
            self.client_events.push(event);
        }
    }

    fn answer_client(&mut self, event: &ServerEvent) {
        let server = &mut self.server;
        match event {
            ServerEvent::Parameters(parameters) => {
                if parameters.linerate.is_some() && self.takes_offers {
                    let software = "linerate test".to_owned();
                    let hello = Hello {
                        version: 1,
                        software: software.into(),
                        udp_token: Some([9; 16]),
                        target: None,
                        probe: false,
                    };
                    server.send_hello(hello).unwrap();
                } else {
                    server.create_streams().unwrap();
                    server.start_test().unwrap();
                }
            }
            ServerEvent::Ping { n } => server.send_pong(*n, Nanos(10 * n), Nanos(11 * n)).unwrap(),
            ServerEvent::Ready => {
                server.create_streams().unwrap();
                server.start_test().unwrap();
            }
            ServerEvent::TestEnd => {
                if server.is_linerate() {
                    server.send_finishing(finishing(200)).unwrap();
                }
                server.exchange_results().unwrap();
            }
            ServerEvent::PeerResults(_) => {
                server.send_results(&results(200)).unwrap();
                if server.is_linerate() {
                    assert!(server.display_results().is_err());
                } else {
                    server.display_results().unwrap();
                }
            }
            ServerEvent::EndRequested { .. } => {
                server.send_end(RECORD.to_vec()).unwrap();
                server.display_results().unwrap();
            }
            ServerEvent::Finishing(_) | ServerEvent::Done | ServerEvent::ClientTerminated => {}
        }
    }

    fn answer_server(&mut self, event: &ClientEvent) {
        let client = &mut self.client;
        match event {
            ClientEvent::Hello(_) => client.send_ping(1).unwrap(),
            ClientEvent::Pong { n, .. } if self.pings_left > 0 => {
                self.pings_left -= 1;
                client.send_ping(n + 1).unwrap();
            }
            ClientEvent::Pong { .. } => {
                let in_the_beginning = client.ready().is_ok();
                if !in_the_beginning {
                    client.request_end(1000).unwrap();
                }
            }
            ClientEvent::TestRunning => {
                if client.is_linerate() {
                    client.send_finishing(finishing(100)).unwrap();
                }
                client.end_test().unwrap();
            }
            ClientEvent::ExchangeResults => client.send_results(&results(100)).unwrap(),
            ClientEvent::PeerResults(_) if client.is_linerate() => {
                self.pings_left = 2;
                client.send_ping(100).unwrap();
            }
            ClientEvent::DisplayResults => client.done().unwrap(),
            _ => {}
        }
    }
}
