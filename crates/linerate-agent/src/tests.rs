//! An agent and a hub's listener in one process.

use rustls::pki_types::pem::PemObject as _;
use std::io::{Read as _, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use linerate_fleet::enrolled::listener::Office;
use linerate_fleet::enrolled::{Arrivals, Authority, Listening, Register, listen};
use linerate_fleet::{Ask, Event, Session, Trouble};
use linerate_kernel::clock;
use linerate_model::units::{BitRate, Nanos};
use linerate_model::watch::UnixMillis;
use linerate_wire::agent::{Frame, FrameReader, Header, Hello, Outcome, PROTOCOL, encode};
use linerate_wire::enrol::Invitation;
use tempfile::TempDir;

use crate::dial::dial;
use crate::enrol::{enrol, renew};
use crate::error::AgentError;
use crate::gate::{Ended, Gate};
use crate::identity::{Identity, RENEW_BEFORE};
use crate::law::{Deed, Law, Load, Spent};

const LONG: Duration = Duration::from_secs(60);

fn now() -> UnixMillis {
    UnixMillis(clock::wall().0 / 1_000_000)
}

struct Hub {
    folder: TempDir,
    listening: Listening,
    arrivals: Arc<Arrivals>,
    pin: String,
}

impl Hub {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::open(folder.path(), now()).unwrap();
        let pin = authority.pin();
        let arrivals = Arc::new(Arrivals::default());
        let office = Office {
            authority,
            register: Register::open(folder.path()).unwrap(),
            arrivals: arrivals.clone(),
            now: Box::new(now),
            log: Box::new(|_| {}),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self {
            listening: listen(listener, office).unwrap(),
            folder,
            arrivals,
            pin,
        }
    }

    fn address(&self) -> String {
        self.listening.address().to_string()
    }

    fn register(&self) -> Register {
        Register::open(self.folder.path()).unwrap()
    }

    fn invitation(&self, uses: u32) -> Invitation {
        let token = linerate_fleet::enrolled::sha256(&uses.to_be_bytes());
        let later = now().plus_millis(3_600_000);
        let invited = self.register().change(|book| {
            book.invite(now(), &token, later, uses);
            Ok(())
        });
        invited.unwrap().unwrap();
        Invitation {
            hub: self.address(),
            token,
            pin: self.pin.clone(),
        }
    }

    fn enrolled(&self, name: &str, folder: &Path) -> Identity {
        enrol(&self.address(), &self.invitation(9), name, folder).unwrap()
    }
}

/// What stands for `linerate agent --stdio`: it says hello, and answers each frame that it has an answer to.
fn answering(mut stream: UnixStream, answer: impl Fn(Header) -> Option<(Header, &'static [u8])>) {
    let hello = Header::Hello(Hello {
        protocol: PROTOCOL,
        ..Hello::default()
    });
    stream.write_all(&encode(&hello, &[]).unwrap()).unwrap();
    let mut reader = FrameReader::default();
    let mut piece = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut piece) {
        reader.push(&piece[..length]);
        while let Ok(Some(Frame { header, .. })) = reader.frame() {
            if let Some((reply, body)) = answer(header) {
                stream.write_all(&encode(&reply, body).unwrap()).unwrap();
            }
        }
    }
}

/// A stand-in whose commands end at once, with the number of their words.
fn stand_in(stream: UnixStream) {
    answering(stream, |header| {
        let Header::Ask(ask) = header else {
            return None;
        };
        let ended = Header::Answer {
            ask: ask.ask,
            outcome: Outcome::Code(i32::try_from(ask.words.len()).unwrap()),
        };
        Some((ended, &[]))
    });
}

/// The standard input of a stand-in: it ends when this is dropped, as a pipe does.
struct Input(UnixStream);

impl Write for Input {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        drop(self.0.shutdown(std::net::Shutdown::Write));
    }
}

/// An agent that serves one connection, in threads of its own.
fn serve(hub: &str, identity: &Identity, law: &str, folder: &Path) -> std::thread::JoinHandle<()> {
    let tunnel = dial(hub, identity).unwrap();
    let law = Law::parse("agent.toml", law).unwrap();
    let spent = Spent::open(folder).unwrap();
    let read = |ask: &linerate_wire::agent::Ask| {
        Ok(match ask.words.first() {
            Some(word) if *word == "test".into() => Deed::Test(Load {
                seconds: Nanos::from_millis(1_000),
                rate: Some(BitRate(8_000_000)),
                ..Load::default()
            }),
            _ => Deed::Facts,
        })
    };
    let gate = Gate::new(law, spent, Box::new(read), Box::new(now));
    std::thread::spawn(move || {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let agent = std::thread::spawn(move || stand_in(theirs));
        let from = ours.try_clone().unwrap();
        drop(gate.serve(tunnel, Input(ours), from, None, &|| None));
        agent.join().unwrap();
    })
}

fn answer(session: &Session, word: &str) -> Result<Event, Trouble> {
    let mut asked = session
        .ask(Ask::new([word]))
        .map_err(|error| error.trouble)?;
    asked
        .next(Some(Nanos::from_millis(60_000)))
        .map_err(|error| error.trouble)
}

#[test]
fn an_enrolled_agent_is_a_session_until_it_is_revoked() {
    let (hub, folder) = (Hub::new(), tempfile::tempdir().unwrap());
    let identity = hub.enrolled("n1", folder.path());
    assert_eq!(
        Identity::open(folder.path()).unwrap(),
        Some(identity.clone())
    );
    let agent = serve(&hub.address(), &identity, "", folder.path());
    let session = hub.arrivals.take("n1", LONG).unwrap();
    assert_eq!(answer(&session, "host"), Ok(Event::Ended(Outcome::Code(1))));
    let revoked = hub.register().change(|book| Ok(book.revoke(now(), "n1")));
    assert_eq!(revoked.unwrap(), Ok(true));
    // The agent's end ends by itself, although nobody asks for anything.
    agent.join().unwrap();
    assert!(answer(&session, "host").is_err());
    // The handshake works, and the hub says why it serves nothing.
    let (ours, theirs) = UnixStream::pair().unwrap();
    let tunnel = dial(&hub.address(), &identity).unwrap();
    let law = Law::default();
    let other = tempfile::tempdir().unwrap();
    let spent = Spent::open(other.path()).unwrap();
    let gate = Gate::new(law, spent, Box::new(|_| Ok(Deed::Facts)), Box::new(now));
    let from = ours.try_clone().unwrap();
    drop(theirs);
    let said = gate.serve(tunnel, ours, from, None, &|| None);
    assert!(
        matches!(&said, Ok(Ended::Stopped))
            || matches!(&said, Ok(Ended::Told(why)) if why.contains("'n1' was revoked")),
        "{said:?}"
    );
    assert!(!hub.arrivals.has("n1"));
}

#[test]
fn a_law_refuses_over_the_wire_and_what_was_spent_stays_spent() {
    let (hub, folder) = (Hub::new(), tempfile::tempdir().unwrap());
    let identity = hub.enrolled("n1", folder.path());
    // A test takes 1 MB: two fit.
    let law = "max_rate = \"8M\"\nbytes_a_day = \"2000000\"";
    for _ in 0..2 {
        let agent = serve(&hub.address(), &identity, law, folder.path());
        let session = hub.arrivals.take("n1", LONG).unwrap();
        assert_eq!(answer(&session, "host"), Ok(Event::Ended(Outcome::Code(1))));
        drop(session);
        agent.join().unwrap();
    }
    // As if both tests had run to their end.
    let mut spent = Spent::open(folder.path()).unwrap();
    spent
        .take(now(), linerate_model::units::Bytes(1_000_001))
        .unwrap();
    let agent = serve(&hub.address(), &identity, law, folder.path());
    let session = hub.arrivals.take("n1", LONG).unwrap();
    match answer(&session, "test") {
        Err(Trouble::Refused { why }) => assert!(why.contains("(bytes_a_day)"), "{why}"),
        other => panic!("{other:?}"),
    }
    drop(session);
    agent.join().unwrap();
}

#[test]
fn a_renewed_agent_has_a_new_key_and_the_same_name() {
    let (hub, folder) = (Hub::new(), tempfile::tempdir().unwrap());
    let old = hub.enrolled("n1", folder.path());
    assert!(!old.is_due(now()));
    assert!(old.is_due(UnixMillis(old.not_after.0 - RENEW_BEFORE)));
    let new = renew(&hub.address(), &old, folder.path()).unwrap();
    assert_ne!(new.key, old.key);
    assert_eq!((&new.name, &new.authority), (&old.name, &old.authority));
    assert_eq!(Identity::open(folder.path()).unwrap(), Some(new.clone()));
    dial(&hub.address(), &new).unwrap();
}

/// A stand-in whose commands end when they are cancelled.
fn busy_stand_in(stream: UnixStream) {
    answering(stream, |header| {
        let reply = match header {
            Header::Ask(ask) => Header::Output {
                ask: ask.ask,
                to: linerate_wire::agent::Stream::Out,
            },
            Header::Cancel { ask } => Header::Answer {
                ask,
                outcome: Outcome::Code(0),
            },
            _ => return None,
        };
        Some((reply, b"x"))
    });
}

#[test]
fn a_connection_that_stands_ends_between_commands_for_a_renewal() {
    let (hub, folder) = (Hub::new(), tempfile::tempdir().unwrap());
    let old = hub.enrolled("n1", folder.path());
    // The clock of the agent; the certificate becomes due while the connection stands.
    let time = Arc::new(AtomicU64::new(now().0));
    let clock = time.clone();
    let of_agent = old.clone();
    let rest = move || {
        let now = UnixMillis(clock.load(Ordering::SeqCst));
        of_agent.is_due(now).then_some(Nanos::ZERO)
    };
    let tunnel = dial(&hub.address(), &old).unwrap();
    let spent = Spent::open(folder.path()).unwrap();
    let law = Law::default();
    let gate = Gate::new(law, spent, Box::new(|_| Ok(Deed::Facts)), Box::new(now));
    let agent = std::thread::spawn(move || {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let agent = std::thread::spawn(move || busy_stand_in(theirs));
        let from = ours.try_clone().unwrap();
        let ended = gate.serve(tunnel, Input(ours), from, None, &rest);
        agent.join().unwrap();
        ended
    });
    let session = hub.arrivals.take("n1", LONG).unwrap();
    let mut running = session.ask(Ask::new(["test"])).unwrap();
    let patience = Some(Nanos::from_millis(60_000));
    assert_eq!(running.next(patience), Ok(Event::Out(b"x".to_vec())));
    time.store(old.not_after.0 - RENEW_BEFORE, Ordering::SeqCst);
    // While a command runs the connection stays: another one is answered.
    let mut other = session.ask(Ask::new(["test"])).unwrap();
    assert_eq!(other.next(patience), Ok(Event::Out(b"x".to_vec())));
    std::thread::sleep(Duration::from_millis(1_200));
    assert!(session.is_open() && !agent.is_finished());
    for asked in [&running, &other] {
        asked.cancel();
    }
    assert_eq!(agent.join().unwrap().unwrap(), Ended::Rested);
    let new = renew(&hub.address(), &old, folder.path()).unwrap();
    assert!(!new.is_due(now()));
    let agent = serve(&hub.address(), &new, "", folder.path());
    drop(session);
    let session = hub.arrivals.take("n1", LONG).unwrap();
    assert_eq!(answer(&session, "host"), Ok(Event::Ended(Outcome::Code(1))));
    drop(session);
    agent.join().unwrap();
}

#[test]
fn an_agent_of_another_hub_is_refused_even_where_it_trusts_this_one() {
    let (one, two) = (Hub::new(), Hub::new());
    let folder = tempfile::tempdir().unwrap();
    let of_one = one.enrolled("n1", folder.path());
    let of_two = two.enrolled("n1", folder.path());
    // The first hub's certificate and key, and trust in the second one.
    let astray = Identity {
        authority: of_two.authority,
        ..of_one.clone()
    };
    let mut bytes = Vec::new();
    let until = clock::monotonic().plus(Nanos::from_millis(60_000));
    // In TLS 1.3 the client learns with the first bytes that its certificate is not accepted.
    let refused = dial(&two.address(), &astray)
        .map_err(|error| error.to_string())
        .and_then(|mut tunnel| {
            tunnel
                .receive(&mut bytes, until)
                .map_err(|error| error.to_string())
        });
    assert!(refused.is_err() && bytes.is_empty(), "{bytes:?}");
    // And the agent refuses a hub that is not its own.
    assert!(matches!(
        dial(&two.address(), &of_one),
        Err(AgentError::Hub { .. })
    ));
}

#[test]
fn one_agent_cannot_pose_as_the_hub() {
    let hub = Hub::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = hub.enrolled("n1", folder.path());
    let other = hub.enrolled("n2", tempfile::tempdir().unwrap().path());
    // A listener with an agent's certificate, which the same authority signed.
    let chain = ["certificate", "authority"].map(|one| {
        let pem = if one == "certificate" {
            &agent.certificate
        } else {
            &agent.authority
        };
        rustls::pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    });
    let key = rustls::pki_types::PrivateKeyDer::from_pem_slice(agent.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.to_vec(), key)
        .unwrap();
    config.alpn_protocols = vec![linerate_wire::enrol::AGENT.to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let posing = std::thread::spawn(move || {
        let (tcp, _) = listener.accept().unwrap();
        let tls = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        let until = clock::monotonic().plus(Nanos::from_millis(60_000));
        linerate_fleet::tunnel::Tunnel::shake(tcp, tls.into(), until).map(drop)
    });
    let dialled = dial(&address, &other);
    assert!(
        matches!(dialled, Err(AgentError::Hub { .. })),
        "{dialled:?}"
    );
    assert!(posing.join().unwrap().is_err());
}

#[test]
fn an_enrolment_that_is_replayed_enrols_nobody() {
    use linerate_wire::enrol::{Reply, Request};
    let hub = Hub::new();
    let invitation = hub.invitation(5);
    let key = rcgen::KeyPair::generate().unwrap();
    let csr = rcgen::CertificateParams::new([])
        .unwrap()
        .serialize_request(&key)
        .unwrap()
        .pem()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    // A host of this hub lends its TLS: what counts is the message.
    let lent = hub.enrolled("lender", folder.path());
    let say = |name: &str| {
        let request = Request::Enrol {
            token: invitation.token.clone(),
            name: name.to_owned(),
            csr: csr.clone(),
        };
        let mut tunnel = crate::dial::connect(&hub.address(), lent.renewing().unwrap()).unwrap();
        let until = clock::monotonic().plus(Nanos::from_millis(60_000));
        let bytes = linerate_wire::enrol::encode(&request).unwrap();
        tunnel.send(&bytes, until).unwrap();
        let mut bytes = Vec::new();
        loop {
            tunnel.receive(&mut bytes, until).unwrap();
            if let Some(reply) = linerate_wire::enrol::decode::<Reply>(&bytes).unwrap() {
                return reply;
            }
        }
    };
    assert!(matches!(say("n1"), Reply::Certified { .. }));
    for name in ["n1", "n2"] {
        match say(name) {
            Reply::Refused { why } => assert!(why.contains("enrolled before"), "{why}"),
            other @ Reply::Certified { .. } => panic!("{name}: {other:?}"),
        }
    }
    let names = hub.register().look(|book| {
        book.agents()
            .map(|(name, _)| name.to_owned())
            .collect::<Vec<_>>()
    });
    assert_eq!(names.unwrap(), ["lender", "n1"]);
}
