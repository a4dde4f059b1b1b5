//! Who may see and do what: logins, sessions, tokens, roles, silences, TLS and proxies.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use linerate_hub::access::users::{Role, Users};
use linerate_hub::access::{Door, TlsFiles, Transport};
use linerate_hub::memory::MemoryStore;
use linerate_hub::shared::{Requests, Shared};
use linerate_hub::{ServeError, serve_behind};
use linerate_model::alert::{AlertId, AlertKind, AlertState};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::{RunId, UnixMillis};
use linerate_watch::alert::PairName;

use crate::sample;
use crate::served::{Answer, Served, parsed};

pub(crate) const PASSWORD: &str = "correct horse";

/// A hub with a user of each role, whose users can change, and the lines of its log.
pub(crate) struct Guarded {
    pub(crate) served: Served,
    users: Arc<Mutex<Arc<Users>>>,
    log: Arc<Mutex<Vec<String>>>,
    tokens: [String; 3],
    /// Alerts whose level was accepted, and by whom.
    accepted: Arc<Mutex<Vec<(AlertId, PlainText)>>>,
}

/// A driver that notes what it is asked.
struct Noting(Arc<Mutex<Vec<(AlertId, PlainText)>>>);

impl Requests for Noting {
    fn test(&self, _: PairName) -> Result<RunId, String> {
        Err("This hub runs no tests.".to_owned())
    }

    fn accept(&self, alert: AlertId, by: PlainText) -> Result<usize, String> {
        self.0.lock().unwrap().push((alert, by));
        Ok(2)
    }

    fn silences_changed(&self) {}
}

impl Guarded {
    fn with(transport: Transport) -> Self {
        let mut users = Users::default();
        let tokens = Role::ALL.map(|role| {
            let name = role.word();
            let password = (role != Role::Admin).then_some(PASSWORD);
            users.add(name, role, password).unwrap();
            users.make_token(name, "test", UnixMillis(1)).unwrap()
        });
        let users = Arc::new(Mutex::new(Arc::new(users)));
        let log = Arc::new(Mutex::new(Vec::new()));
        let (known, lines) = (users.clone(), log.clone());
        let door = Door {
            users: Box::new(move || Ok(known.lock().unwrap().clone())),
            transport,
            log: Box::new(move |line| lines.lock().unwrap().push(line.to_owned())),
        };
        let store = sample::filled();
        sample::hostile(&store);
        let accepted = Arc::new(Mutex::new(Vec::new()));
        let shared = Shared::new(Arc::new(store), || sample::NOW);
        let shared = shared.with_driver(Noting(accepted.clone()));
        Self {
            served: Served::driven(shared, door),
            users,
            log,
            tokens,
            accepted,
        }
    }

    pub(crate) fn new() -> Self {
        Self::with(Transport::Plain)
    }

    fn change(&self, change: impl FnOnce(&mut Users)) {
        let mut users = self.users.lock().unwrap();
        let mut new = Users::clone(&users);
        change(&mut new);
        *users = Arc::new(new);
    }

    /// A request with a body and headers of its own.
    fn send(&self, line: &str, headers: &str, body: &str) -> Answer {
        let (address, length) = (self.served.address(), body.len());
        self.served.ask(&format!(
            "{line} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n{body}"
        ))
    }

    fn form(&self, path: &str, cookie: &str, body: &str) -> Answer {
        let headers = format!(
            "Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\nCookie: {cookie}\r\n"
        );
        self.send(&format!("POST {path}"), &headers, body)
    }

    fn login(&self, name: &str, password: &str) -> Answer {
        self.form(
            "/login",
            "",
            &format!("name={name}&password={password}&next=%2Fplan"),
        )
    }

    /// The cookie of a user who logged in.
    fn cookie(&self, name: &str) -> String {
        let answer = self.login(name, &PASSWORD.replace(' ', "+"));
        assert_eq!(answer.status, 303, "{answer:?}");
        assert!(
            answer.head.contains("\r\nlocation: /plan\r\n"),
            "{answer:?}"
        );
        let cookie = answer.head.split_once("set-cookie: ").unwrap().1;
        let (pair, rest) = cookie.split_once(';').unwrap();
        assert!(
            rest.starts_with(" path=/; httponly; samesite=strict"),
            "{rest}"
        );
        pair.to_owned()
    }

    fn with_cookie(&self, path: &str, cookie: &str) -> Answer {
        self.send(&format!("GET {path}"), &format!("Cookie: {cookie}\r\n"), "")
    }

    fn with_token(&self, line: &str, token: &str, body: &str) -> Answer {
        let headers =
            format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n");
        self.send(line, &headers, body)
    }
}

#[test]
fn without_a_login_there_is_the_login_alone() {
    let hub = Guarded::new();
    for (path, status) in [
        ("/", 303),
        ("/alerts", 303),
        ("/account", 303),
        ("/nothing", 303),
        ("/run/1", 303),
        ("/login", 200),
        ("/static/hub.css", 200),
        ("/api/v1/pairs", 401),
        ("/api/v1/runs.csv", 401),
        ("/api/v1/openapi.json", 401),
        ("/api/v1/nothing", 401),
        ("/metrics", 401),
        ("/events", 401),
    ] {
        let answer = hub.served.get(path);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(!answer.body.contains("ams1"), "{path}");
    }
    let led = hub.served.get("/pair?task=a&from=b");
    assert!(
        led.head
            .contains("location: /login?next=%2fpair%3ftask%3da%26from%3db"),
        "{led:?}"
    );
    // Whoever logs in may do so under any name of the hub.
    let named = hub
        .served
        .ask("GET /login HTTP/1.1\r\nHost: hub.example\r\nConnection: close\r\n\r\n");
    assert_eq!(named.status, 200);
}

#[test]
fn a_session_lasts_until_its_user_leaves_changes_or_goes() {
    let hub = Guarded::new();
    let cookie = hub.cookie("viewer");
    assert!(hub.with_cookie("/", &cookie).body.contains("ams1"));
    let account = hub.with_cookie("/account", &format!("other=1; {cookie}"));
    assert!(
        account.body.contains("<strong>viewer</strong>"),
        "{}",
        account.body
    );
    for wrong in ["linerate=", "linerate=0", "__Host-linerate=1", ""] {
        assert_eq!(hub.with_cookie("/", wrong).status, 303, "{wrong}");
    }
    let left = hub.form("/logout", &cookie, "");
    assert!(left.head.contains("max-age=0"), "{left:?}");
    assert_eq!(hub.with_cookie("/", &cookie).status, 303);

    let cookie = hub.cookie("viewer");
    hub.change(|users| drop(users.add("viewer", Role::Viewer, Some("another one"))));
    assert_eq!(hub.with_cookie("/", &cookie).status, 303);
    let cookie = hub.cookie("operator");
    // What is there no longer leaves the door closed.
    hub.change(|users| {
        for role in Role::ALL {
            users.remove(role.word()).unwrap();
        }
    });
    assert_eq!(hub.with_cookie("/", &cookie).status, 303);
    assert_eq!(hub.served.get("/api/v1/pairs").status, 401);
    let log = hub.log.lock().unwrap().join("\n");
    assert!(log.contains("viewer logged in from 127.0.0.1"), "{log}");
    assert!(log.contains("viewer from 127.0.0.1 logged out"), "{log}");
    assert!(!log.contains(PASSWORD), "{log}");
}

#[test]
fn wrong_passwords_are_refused_and_a_flood_of_them_is_bounded() {
    let hub = Guarded::new();
    // A user with API tokens alone, an unknown one, an empty and a long password.
    for (name, password) in [
        ("viewer", "correct+hors"),
        ("admin", "correct+horse"),
        ("admin", ""),
        ("nobody", "correct+horse"),
        ("%3Cb%3E%1b", "x"),
        ("viewer", &"x".repeat(2_000)),
    ] {
        let answer = hub.login(name, password);
        assert_eq!(answer.status, 403, "{name}: {answer:?}");
        assert!(answer.body.contains("The name or the password is wrong."));
        assert!(!answer.head.contains("set-cookie"), "{answer:?}");
    }
    // Five for each user: the rest is answered at once, without a look at the password.
    let flood = (0..40).map(|_| hub.login("viewer", "x"));
    let statuses: Vec<u16> = flood.map(|answer| answer.status).collect();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert!(refused >= 37, "{statuses:?}");
    let answer = hub.login("viewer", "correct+horse");
    assert_eq!(answer.status, 429, "{answer:?}");
    assert!(answer.head.contains("retry-after: "), "{answer:?}");
    // Those who are inside, and programs, notice nothing.
    let [viewer, _, _] = &hub.tokens;
    assert_eq!(hub.with_token("GET /api/v1/pairs", viewer, "").status, 200);
    let log = hub.log.lock().unwrap().join("\n");
    assert!(
        !log.contains('\u{1b}') && log.lines().count() <= 20,
        "{log}"
    );
}

#[test]
fn tokens_open_what_programs_read_and_nothing_more() {
    let hub = Guarded::new();
    let [viewer, operator, admin] = &hub.tokens;
    for path in ["/api/v1/pairs", "/api/v1/runs.csv", "/metrics", "/"] {
        for token in &hub.tokens {
            let answer = hub.with_token(&format!("GET {path}"), token, "");
            assert_eq!(answer.status, 200, "{path}");
        }
        let wrong = hub.with_token(&format!("GET {path}"), &viewer[..viewer.len() - 1], "");
        assert!([303, 401].contains(&wrong.status), "{path}: {wrong:?}");
    }
    let silence = r#"{"matchers":[{"of":"host","pattern":"ams1"}],"until":UNTIL,"why":"<b>cable</b>","by":"eve"}"#;
    let until = sample::NOW.plus_millis(3_600_000).0;
    let silence = silence.replace("UNTIL", &until.to_string());
    let put = "POST /api/v1/silences";
    assert_eq!(hub.with_token(put, viewer, &silence).status, 403);
    assert_eq!(hub.with_token(put, "x", &silence).status, 401);
    assert_eq!(
        hub.send(put, "Content-Type: application/json\r\n", &silence)
            .status,
        403
    );
    let cross = format!(
        "Authorization: Bearer {operator}\r\nContent-Type: application/json\r\nOrigin: http://evil.example\r\n"
    );
    assert_eq!(hub.send(put, &cross, &silence).status, 403);
    let made = hub.with_token(put, operator, &silence);
    assert_eq!(made.status, 200, "{made:?}");
    let made: serde_json::Value = serde_json::from_str(&made.body).unwrap();
    // Who it is says the token.
    assert_eq!(made["by"], "operator");
    let listed = hub.with_token("GET /api/v1/silences", viewer, "");
    assert!(listed.body.contains("<b>cable</b>"), "{listed:?}");
    let page = hub.with_token("GET /alerts", viewer, "").body;
    assert!(
        page.contains("&lt;b&gt;cable") && !page.contains("action=\"/silences"),
        "{page}"
    );
    // What a viewer may not do is not offered.
    assert!(
        !page.contains("?silence=") && !page.contains("/accept"),
        "{page}"
    );
    let page = hub.with_token("GET /alerts", operator, "").body;
    assert!(
        page.contains("?silence=") && page.contains("/accept"),
        "{page}"
    );
    let end = format!("DELETE /api/v1/silences/{}", made["id"]);
    assert_eq!(hub.with_token(&end, viewer, "").status, 403);
    assert_eq!(hub.with_token(&end, admin, "").status, 200);
    assert_eq!(hub.with_token(&end, admin, "").status, 404);
    let log = hub.log.lock().unwrap().join("\n");
    assert!(
        log.contains("operator from 127.0.0.1 made the silence"),
        "{log}"
    );
    assert!(
        log.contains("admin from 127.0.0.1 ended the silence"),
        "{log}"
    );
}

#[test]
fn silences_are_made_and_ended_by_forms_and_mute_their_alerts() {
    let hub = Guarded::new();
    let cookie = hub.cookie("operator");
    let alert = |silenced: bool| {
        let store = hub.served.shared.store();
        let silences = store.silences(sample::NOW).unwrap();
        let alerts = store.alerts(sample::NOW).unwrap();
        let fires = |alert: &&linerate_model::alert::Alert| {
            alert.state == linerate_model::alert::AlertState::Firing
                && silences
                    .iter()
                    .any(|silence| silence.covers(alert, sample::NOW))
                    == silenced
        };
        alerts.iter().find(fires).map(|alert| alert.id.to_string())
    };
    let id = alert(false).unwrap();
    let before = hub
        .with_cookie(&format!("/alerts?silence={id}"), &cookie)
        .body;
    assert!(before.contains(&format!("value=\"{id}\"")), "{before}");
    for (refused, why) in [
        (format!("alert={id}&minutes=60"), "why"),
        ("minutes=60&why=x".to_owned(), "condition"),
        (format!("alert={id}&minutes=0&why=x"), "later than now"),
        (format!("alert={id}&minutes=99999999&why=x"), "366 days"),
        (format!("alert={id}&minutes=x&why=x"), "minutes"),
        (format!("alert={}&minutes=60&why=x", "x".repeat(300)), "256"),
    ] {
        let answer = hub.form("/silences", &cookie, &refused);
        assert_eq!(answer.status, 400, "{refused}: {answer:?}");
        assert!(answer.body.contains(why), "{refused}: {}", answer.body);
    }
    assert!(alert(true).is_none());
    let made = hub.form(
        "/silences",
        &cookie,
        &format!("alert={id}&minutes=60&why=cable+work&by=eve"),
    );
    assert_eq!(made.status, 303, "{made:?}");
    assert!(made.head.contains("location: /alerts#silences"));
    assert_eq!(alert(true), Some(id.clone()));
    let page = hub.with_cookie("/alerts", &cookie).body;
    assert!(
        page.contains("Silenced until ") && page.contains("by operator: cable work"),
        "{page}"
    );
    let end = page
        .split_once("action=\"/silences/")
        .unwrap()
        .1
        .split_once('"')
        .unwrap()
        .0;
    let foreign = format!("Cookie: {cookie}\r\nSec-Fetch-Site: cross-site\r\n");
    assert_eq!(
        hub.send(&format!("POST /silences/{end}"), &foreign, "")
            .status,
        403
    );
    assert_eq!(
        hub.form(&format!("/silences/{end}"), &cookie, "").status,
        303
    );
    assert!(alert(true).is_none());
}

#[test]
fn a_level_is_accepted_by_operators_alone_and_by_a_page_of_the_hub() {
    let hub = Guarded::new();
    let [viewer, operator, _] = &hub.tokens;
    let store = hub.served.shared.store();
    let slow = |alert: &linerate_model::alert::Alert| {
        alert.state == AlertState::Firing && alert.kind == AlertKind::Slow
    };
    let alerts = store.alerts(sample::NOW).unwrap();
    let id = alerts.iter().find(|alert| slow(alert)).unwrap().id;
    let put = format!("POST /api/v1/alerts/{id}/accept");
    assert_eq!(hub.with_token(&put, viewer, "{}").status, 403);
    assert_eq!(hub.with_token(&put, "x", "{}").status, 401);
    let cross = format!(
        "Authorization: Bearer {operator}\r\nContent-Type: application/json\r\nOrigin: http://evil.example\r\n"
    );
    assert_eq!(hub.send(&put, &cross, "{}").status, 403);
    for (path, status) in [
        ("POST /api/v1/alerts/x/accept", 400),
        (
            "POST /api/v1/alerts/0192f0c8-0000-7000-8000-000000000000/accept",
            404,
        ),
    ] {
        let answer = hub.with_token(path, operator, "{}");
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
    assert!(hub.accepted.lock().unwrap().is_empty());
    let done = hub.with_token(&put, operator, r#"{"by":"eve"}"#);
    assert_eq!((done.status, done.body.trim()), (200, r#"{"pairs":2}"#));

    let path = format!("/alerts/{id}/accept");
    let cookie = hub.cookie("operator");
    let page = hub.with_cookie("/alerts", &cookie).body;
    assert!(page.contains(&format!("action=\"{path}\"")), "{page}");
    let foreign = format!("Cookie: {cookie}\r\nSec-Fetch-Site: cross-site\r\n");
    assert_eq!(hub.send(&format!("POST {path}"), &foreign, "").status, 403);
    assert_eq!(hub.form(&path, &hub.cookie("viewer"), "").status, 403);
    let done = hub.form(&path, &cookie, "");
    assert_eq!(done.status, 303, "{done:?}");
    assert!(done.head.contains(&format!("location: /alerts#a-{id}")));
    // Who it is says the login.
    let by: PlainText = "operator".into();
    assert_eq!(*hub.accepted.lock().unwrap(), [(id, by.clone()), (id, by)]);
    let log = hub.log.lock().unwrap().join("\n");
    let line = format!("operator from 127.0.0.1 accepted the level of the alert {id}");
    assert_eq!(log.matches(&line).count(), 2, "{log}");
}

#[test]
fn without_users_somebody_says_who_accepts_a_level() {
    let hub = Served::sample();
    let id = hub.json("/api/v1/alerts")["alerts"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let send = |body: &str| {
        let (address, length) = (hub.address(), body.len());
        hub.ask(&format!(
            "POST /api/v1/alerts/{id}/accept HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ))
    };
    let nobody = send("{}");
    assert!(
        nobody.status == 400 && nobody.body.contains("Say who"),
        "{nobody:?}"
    );
    // This hub has no driver.
    let refused = send(r#"{"by":"ann"}"#);
    assert!(
        refused.status == 400 && refused.body.contains("runs no tests"),
        "{refused:?}"
    );
}

#[test]
fn a_test_is_asked_for_by_operators_alone() {
    let hub = Guarded::new();
    let [viewer, operator, _] = &hub.tokens;
    let pair = r#"{"task":"backbone","from":"ams1","to":"gru1"}"#;
    assert_eq!(
        hub.with_token("POST /api/v1/tests", viewer, pair).status,
        403
    );
    // This hub has no driver.
    let refused = hub.with_token("POST /api/v1/tests", operator, pair);
    assert!(
        refused.status == 400 && refused.body.contains("runs no tests"),
        "{refused:?}"
    );
}

#[test]
fn off_loopback_there_are_users_and_tls_or_a_proxy() {
    let serve = |users: Users, transport| {
        let users = Arc::new(users);
        let door = Door {
            users: Box::new(move || Ok(users.clone())),
            transport,
            log: Box::new(|_| ()),
        };
        let shared = Shared::new(Arc::new(MemoryStore::default()), || sample::NOW);
        serve_behind(
            TcpListener::bind("0.0.0.0:0").unwrap(),
            Arc::new(shared),
            door,
        )
    };
    let mut one = Users::default();
    one.add("ada", Role::Viewer, None).unwrap();
    let error = serve(Users::default(), Transport::Proxy(Vec::new())).unwrap_err();
    assert!(matches!(error, ServeError::NoUsers { .. }));
    assert!(
        error.to_string().contains("linerate hub user add"),
        "{error}"
    );
    let error = serve(one.clone(), Transport::Plain).unwrap_err();
    assert!(matches!(error, ServeError::NoTls { .. }));
    assert!(error.to_string().contains("--tls-cert"), "{error}");
    serve(one, Transport::Proxy(Vec::new())).unwrap();
}

#[test]
fn a_proxy_is_trusted_for_the_address_and_needs_the_login() {
    let proxy: IpAddr = "192.0.2.7".parse().unwrap();
    let hub = Guarded::with(Transport::Proxy(vec![proxy]));
    let headers = "X-Forwarded-For: 203.0.113.9, 198.51.100.3\r\nSec-Fetch-Site: same-origin\r\n\
                   Content-Type: application/x-www-form-urlencoded\r\n";
    let answer = hub.send("POST /login", headers, "name=viewer&password=correct+horse");
    assert!(
        answer.head.contains("set-cookie: __host-linerate="),
        "{answer:?}"
    );
    assert!(answer.head.contains("; secure"), "{answer:?}");
    let log = hub.log.lock().unwrap().join("\n");
    assert!(log.contains("viewer logged in from 198.51.100.3"), "{log}");
    assert_eq!(hub.served.get("/").status, 303);
}

#[test]
fn tls_is_served_with_the_certificate_of_the_files_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    let write = || {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        made.cert.der().clone()
    };
    assert!(TlsFiles::open(&certificate, &key).is_err());
    let first = write();
    assert!(TlsFiles::open(&key, &certificate).is_err(), "mixed up");
    let files = TlsFiles::open(&certificate, &key).unwrap();
    let hub = Guarded::with(Transport::Tls(files));
    let answer = over_tls(
        &hub.served,
        &first,
        "GET / HTTP/1.1\r\nHost: hub.example\r\nConnection: close\r\n\r\n",
    );
    assert!(
        answer.status == 303 && answer.head.contains("location: /login"),
        "{answer:?}"
    );
    let [viewer, _, _] = &hub.tokens;
    let answer = over_tls(
        &hub.served,
        &first,
        &format!(
            "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {viewer}\r\nConnection: close\r\n\r\n"
        ),
    );
    assert_eq!(answer.status, 200, "{answer:?}");
    // Without TLS there is no answer, and a handshake that does not come keeps nobody out.
    let plain = hub.served.get("/login");
    assert_eq!(plain.status, 0, "{plain:?}");
    let _silent: Vec<TcpStream> = (0..600)
        .map_while(|_| TcpStream::connect(hub.served.address()).ok())
        .collect();
    let second = write();
    let answer = over_tls(
        &hub.served,
        &second,
        "GET /login HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(answer.status, 200, "{answer:?}");
}

fn over_tls(
    hub: &Served,
    certificate: &rustls::pki_types::CertificateDer<'static>,
    request: &str,
) -> Answer {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let configuration = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let connection = rustls::ClientConnection::new(Arc::new(configuration), name).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, hub.connect());
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    // The hub may close without a notice of it.
    let _ = stream.read_to_end(&mut bytes);
    parsed(&bytes)
}
