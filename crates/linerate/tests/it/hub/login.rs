//! Users of a real hub, and what they do: silences and tests.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::{Bed, Hub, PATIENCE, receiver, text};
use crate::harness::{LONG, beside, exchange, linerate, run, start, wait_until};

impl Bed {
    /// Standard output of `linerate hub user …`.
    fn user(&self, words: &str) -> String {
        let mut command = linerate(&format!("hub user {words}"));
        command.arg("--folder").arg(self.folder.file("data"));
        run(&mut command, LONG).expect(0).out
    }

    fn refused_user(&self, words: &str) -> String {
        let mut command = linerate(&format!("hub user {words}"));
        command.arg("--folder").arg(self.folder.file("data"));
        run(&mut command, LONG).expect(2).error
    }
}

impl Hub {
    /// What a request is answered.
    fn ask(&self, line: &str, headers: &str, body: &str) -> (u16, String) {
        let (address, length) = (&self.address, body.len());
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n{body}"
        );
        let (head, body) = exchange(address, &request, LONG).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, format!("{head}\r\n\r\n{body}"))
    }

    /// A change by a program, as the hub without users takes it from its own origin.
    pub(super) fn change(&self, line: &str, body: &serde_json::Value) -> (u16, serde_json::Value) {
        let headers = format!(
            "Origin: http://{}\r\nContent-Type: application/json\r\n",
            self.address
        );
        let (status, answer) = self.ask(line, &headers, &body.to_string());
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap())
    }
}

#[test]
fn users_are_made_log_in_and_are_removed_while_the_hub_runs() {
    let _beside = beside();
    let bed = Bed::new();
    let hub = Hub::of(start(&mut bed.command()));
    assert!(hub.read("/").contains("<html"));
    let password = bed.folder.with("password", "correct horse\n");
    let add = format!(
        "add ada --role operator --password-file {}",
        password.display()
    );
    assert_eq!(bed.user(&add), "ada is a user, operator\n");
    bed.user("add robot --role viewer --no-password");
    let token = bed.user("token robot scrape");
    let token = token.trim();
    let users = bed.folder.file("data").join("users.json");
    let mode = std::fs::metadata(&users).unwrap().permissions().mode();
    let kept = std::fs::read_to_string(&users).unwrap();
    assert_eq!(mode & 0o777, 0o600);
    assert!(
        !kept.contains("horse") && !kept.contains(token) && kept.contains("$argon2id$"),
        "{kept}"
    );
    // From now on everybody logs in.
    assert_eq!(hub.ask("GET /", "", "").0, 303);
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(hub.ask("GET /metrics", &bearer, "").0, 200);
    let form = "Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\n";
    let (status, answer) = hub.ask("POST /login", form, "name=ada&password=correct+horse");
    assert_eq!(status, 303, "{answer}");
    let cookie = answer
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.unwrap().split_once(';').unwrap().0;
    let cookie = format!("Cookie: {cookie}\r\n");
    assert!(
        hub.ask("GET /account", &cookie, "")
            .1
            .contains("<strong>ada</strong>")
    );
    let list = bed.user("list");
    assert!(
        list.contains("ada: operator\n")
            && list.contains("robot: viewer, cannot log in, tokens: scrape"),
        "{list}"
    );
    bed.user("token robot scrape --remove");
    bed.user("remove ada");
    assert_eq!(hub.ask("GET /metrics", &bearer, "").0, 401);
    assert_eq!(hub.ask("GET /account", &cookie, "").0, 303);
    for line in [
        "user ada was added, operator",
        "ada logged in from 127.0.0.1",
        "user ada was removed",
    ] {
        let line = format!("linerate hub: {line}");
        hub.wait(&line, || hub.running.error().contains(&line));
    }
    hub.stop();
}

#[test]
fn what_is_wrong_with_a_user_is_said() {
    let bed = Bed::new();
    let short = bed.folder.with("short", "x\n");
    for (words, why) in [
        (
            "add <b> --role admin --no-password".to_owned(),
            "is no name",
        ),
        (
            "add ada --role root --no-password".to_owned(),
            "viewer, operator or admin",
        ),
        ("add ada".to_owned(), "--role"),
        (
            format!("add ada --role admin --password-file {}", short.display()),
            "8 to 1024 bytes",
        ),
        ("remove ada".to_owned(), "there is no user 'ada'"),
        ("token ada x".to_owned(), "there is no user 'ada'"),
    ] {
        let error = bed.refused_user(&words);
        assert!(error.contains(why), "{words}: {error}");
    }
    assert!(bed.user("list").contains("there are no users"));
    bed.user("add ada --role admin --no-password");
    let listen = |more: &str| {
        let mut command = bed.command();
        command.args(format!("--listen 0.0.0.0:0 {more}").split_whitespace());
        run(&mut command, LONG).expect(2).error
    };
    let error = listen("");
    assert!(
        error.contains("--tls-cert") && error.contains("--behind-proxy"),
        "{error}"
    );
    let error = listen("--tls-cert x");
    assert!(error.contains("--tls-key"), "{error}");
    // What others may read is trusted no longer.
    let users = bed.folder.file("data").join("users.json");
    std::fs::set_permissions(&users, PermissionsExt::from_mode(0o644)).unwrap();
    let error = run(&mut bed.command(), LONG).error;
    assert!(error.contains("chmod 600"), "{error}");
}

#[test]
fn a_silence_holds_an_alert_back_until_it_is_ended_and_a_test_is_made_when_asked_for() {
    let _beside = beside();
    let bed = Bed::new();
    let (hook, hooked) = receiver();
    let channel = format!("[[channel]]\nkind = \"webhook\"\nurl = \"http://{hook}/alert\"\n");
    bed.plan("expect = \">= 1G\"", &channel);
    let hub = bed.start();
    let until = hub.json("/api/v1/silences")["now"].as_u64().unwrap() + 3_600_000;
    let silence = json!({
        "matchers": [{ "of": "task", "pattern": "ri*" }], "until": until, "why": "new cable", "by": "ada",
    });
    let (status, made) = hub.change("POST /api/v1/silences", &silence);
    assert_eq!(status, 200, "{made}");
    hub.wait("an alert", || !hub.alerts("firing").is_empty());
    let silenced = text(&hub.alerts("firing")[0]["silenced"]).to_owned();
    assert!(silenced.ends_with("by ada: new cable"), "{silenced}");
    let [a, b, _] = &bed.hosts;
    let pair = json!({ "task": "ring", "from": a, "to": b });
    let (status, asked) = hub.change("POST /api/v1/tests", &pair);
    assert_eq!(status, 200, "{asked}");
    hub.wait("the test that was asked for", || {
        hub.runs()
            .iter()
            .any(|run| run["id"] == asked["id"] && run["class"] == "on-demand")
    });
    let (status, refused) = hub.change(
        "POST /api/v1/tests",
        &json!({ "task": "ring", "from": b, "to": a }),
    );
    assert!(
        status == 400 && text(&refused["detail"]).contains("no such pair"),
        "{refused}"
    );
    assert!(
        hooked.try_recv().is_err(),
        "an alert that is silenced was sent"
    );
    let (status, _) = hub.change(
        &format!("DELETE /api/v1/silences/{}", made["id"]),
        &json!(null),
    );
    assert_eq!(status, 200);
    let mut told = None;
    assert!(wait_until(PATIENCE, || {
        told = hooked.try_recv().ok();
        told.is_some()
    }));
    assert!(told.unwrap().1.contains("\"firing\""));
    for line in ["made the silence", "asked for a test: ring"] {
        hub.wait(line, || hub.running.error().contains(line));
    }
    hub.stop();
}
