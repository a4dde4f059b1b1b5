//! Our client against our server, through a wire that is cut anywhere.

use linerate_model::units::Nanos;
use linerate_wire::control::{ClientEvent, ServerEvent};
use linerate_wire::parameters::Parameters;
use proptest::prelude::*;

use crate::session::{RECORD, Session, finishing, offer, results};

fn run_stock(parameters: Parameters, takes_offers: bool, cut: impl FnMut() -> usize) {
    let mut session = Session::new(parameters, takes_offers);
    session.run(cut);
    assert_eq!(
        session.client_events,
        [
            ClientEvent::CreateStreams,
            ClientEvent::TestStart,
            ClientEvent::TestRunning,
            ClientEvent::ExchangeResults,
            ClientEvent::PeerResults(results(200)),
            ClientEvent::DisplayResults,
        ]
    );
    assert_eq!(
        session.server_events[1..],
        [
            ServerEvent::TestEnd,
            ServerEvent::PeerResults(results(100)),
            ServerEvent::Done
        ]
    );
    assert!(session.client.is_closed() && session.server.is_closed());
}

fn run_linerate(cut: impl FnMut() -> usize) {
    let mut session = Session::new(offer(), true);
    session.run(cut);
    let events = &session.client_events;
    assert!(matches!(&events[0], ClientEvent::Hello(hello) if hello.udp_token == Some([9; 16])));
    for n in 1..=4 {
        let pong = ClientEvent::Pong {
            n,
            received: Nanos(10 * n),
            sent: Nanos(11 * n),
        };
        assert!(events.contains(&pong));
    }
    assert!(events.contains(&ClientEvent::Finishing(finishing(200))));
    assert!(events.contains(&ClientEvent::PeerResults(results(200))));
    let end = [
        ClientEvent::EndRecord(RECORD.to_vec()),
        ClientEvent::DisplayResults,
    ];
    assert!(events.ends_with(&end), "{events:?}");
    let events = &session.server_events;
    assert_eq!(
        events
            .iter()
            .filter(|e| matches!(e, ServerEvent::Ping { .. }))
            .count(),
        7
    );
    assert!(events.contains(&ServerEvent::Finishing(finishing(100))));
    assert!(events.contains(&ServerEvent::EndRequested { max_bytes: 1000 }));
    assert_eq!(events.last(), Some(&ServerEvent::Done));
}

#[test]
fn whole_messages() {
    run_stock(Parameters::default(), true, || usize::MAX);
    run_stock(offer(), false, || usize::MAX);
    run_linerate(|| usize::MAX);
}

#[test]
fn byte_by_byte() {
    run_stock(Parameters::default(), true, || 1);
    run_stock(offer(), false, || 1);
    run_linerate(|| 1);
}

proptest! {
    #[test]
    fn cut_anywhere(cuts in prop::collection::vec(0usize..40, 1..50)) {
        // A piece of no length now and then, never only those to one side: they take turns.
        let cycle = || {
            let mut next = cuts.iter().copied().chain([5, 5]).cycle();
            move || next.next().unwrap_or(1)
        };
        run_stock(Parameters::default(), true, cycle());
        run_stock(offer(), false, cycle());
        run_linerate(cycle());
    }
}
