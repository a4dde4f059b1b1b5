//! Who may measure: users, their passwords, and tokens that are used once.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::harness::raw::{self, Raw};
use crate::harness::rude::connect_from;
use crate::harness::{
    Done, Folder, LONG, Server, beside, iperf3, lacks_programs, linerate, newest, run, start,
};
use crate::server::kept;

/// A pair of keys and a user joe with the password `secret`.
pub(crate) struct Keys {
    _folder: Folder,
    private: PathBuf,
    pub(crate) public: PathBuf,
    users: PathBuf,
}

impl Keys {
    pub(crate) fn new(what: &str) -> Option<Self> {
        if lacks_programs(what, &["openssl"]) {
            return None;
        }
        let folder = Folder::new();
        let (private, public) = (folder.file("private.pem"), folder.file("public.pem"));
        let openssl = |words: &[&str]| {
            let output = Command::new("openssl").args(words).output().unwrap();
            assert!(output.status.success(), "openssl {words:?}: {output:?}");
        };
        openssl(&["genrsa", "-out", private.to_str().unwrap(), "2048"]);
        openssl(&[
            "rsa",
            "-in",
            private.to_str().unwrap(),
            "-pubout",
            "-out",
            public.to_str().unwrap(),
        ]);
        let mut digest = Command::new("openssl")
            .args(["dgst", "-sha256", "-r"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        digest
            .stdin
            .take()
            .unwrap()
            .write_all(b"{joe}secret")
            .unwrap();
        let output = digest.wait_with_output().unwrap().stdout;
        let hash = String::from_utf8(output)
            .unwrap()
            .split_whitespace()
            .next()
            .unwrap()
            .to_owned();
        let users = folder.with("users.csv", format!("# user,hash\njoe,{hash}\n"));
        Some(Self {
            _folder: folder,
            private,
            public,
            users,
        })
    }

    /// What a server is told.
    pub(crate) fn of_server(&self) -> Vec<String> {
        let path = |path: &PathBuf| path.to_str().unwrap().to_owned();
        vec![
            "--rsa-private-key-path".to_owned(),
            path(&self.private),
            "--authorized-users-path".to_owned(),
            path(&self.users),
        ]
    }

    /// Our server.
    fn serve(&self, more: &[&str]) -> Server {
        let words = self.of_server();
        let words: Vec<&str> = words
            .iter()
            .map(String::as_str)
            .chain(more.iter().copied())
            .collect();
        Server::linerate(&words)
    }

    /// A client of either kind with joe's name and a password.
    fn client(&self, mut command: Command, password: &str) -> Done {
        command
            .args([
                "--username",
                "joe",
                "--rsa-public-key-path",
                self.public.to_str().unwrap(),
            ])
            .env("LINERATE_PASSWORD", password)
            .env("IPERF3_PASSWORD", password);
        run(&mut command, LONG)
    }
}

/// A stock client for a server.
fn stock(binary: &str, server: &Server, words: &str) -> Command {
    let mut command = Command::new(binary);
    command.args(format!("-c {} -t 1 -J {words}", server.at()).split_whitespace());
    command
}

#[test]
fn the_right_password_is_let_in_and_a_wrong_one_is_not() {
    let _beside = beside();
    let Some(keys) = Keys::new("authentication between two linerates") else {
        return;
    };
    for padding in [&[][..], &["--use-pkcs1-padding"]] {
        let server = keys.serve(padding);
        let words = padding.join(" ");
        keys.client(server.client(&format!("-n 1M {words}")), "secret")
            .expect(0);
        let wrong = keys
            .client(server.client(&format!("-n 1M {words}")), "wrong")
            .expect(3);
        assert!(wrong.error.contains("credentials"), "{}", wrong.error);
        let none = run(&mut server.client("-n 1M"), LONG).expect(3);
        assert!(none.error.contains("credentials"), "{}", none.error);
        server.tells("refused 127.0.0.1", 2);
        let told = server.process.out();
        assert!(told.contains("user joe"), "{told}");
        assert!(!told.contains("secret"), "{told}");
    }
}

#[test]
fn debians_client_is_let_in_with_its_padding() {
    let _beside = beside();
    let what = "authentication of Debian's client";
    let (Some(keys), Some(binary)) = (Keys::new(what), iperf3(what)) else {
        return;
    };
    let server = keys.serve(&["--use-pkcs1-padding"]);
    let document = keys
        .client(stock(binary, &server, ""), "secret")
        .expect(0)
        .json();
    assert_eq!(document.get("error"), None);
    // Its exit code with -J is 0 also where its document has an error.
    let refused = keys.client(stock(binary, &server, ""), "wrong").json();
    assert!(refused["error"].is_string());
}

#[test]
fn the_newest_client_is_let_in() {
    let _beside = beside();
    let what = "authentication of the newest client";
    let (Some(keys), Some(binary)) = (Keys::new(what), newest(what)) else {
        return;
    };
    let server = keys.serve(&[]);
    let document = keys
        .client(stock(&binary, &server, ""), "secret")
        .expect(0)
        .json();
    assert_eq!(document.get("error"), None);
    let refused = keys.client(stock(&binary, &server, ""), "wrong").json();
    assert!(refused["error"].is_string());
}

#[test]
fn stock_servers_let_our_client_in() {
    let _beside = beside();
    let what = "our client at stock servers that ask";
    let Some(keys) = Keys::new(what) else {
        return;
    };
    let debian = iperf3(what).map(|binary| (binary.to_owned(), "--use-pkcs1-padding"));
    let newest = newest(what).map(|binary| (binary, ""));
    for (binary, padding) in [debian, newest].into_iter().flatten() {
        let server = Server::stock(Command::new(&binary).args(keys.of_server()));
        keys.client(server.free().client(&format!("-n 1M {padding}")), "secret")
            .expect(0);
        let wrong = keys
            .client(server.free().client(&format!("-n 1M {padding}")), "wrong")
            .expect(3);
        assert!(
            wrong.error.contains("credentials"),
            "{binary}: {}",
            wrong.error
        );
    }
}

#[test]
fn a_token_that_was_used_is_refused() {
    let _beside = beside();
    let Some(keys) = Keys::new("a token that was used") else {
        return;
    };
    let server = keys.serve(&[]);
    let token = token_of_a_client(&keys);
    let parameters = serde_json::json!({
        "tcp": true, "omit": 0, "time": 1, "num": 0, "blockcount": 0, "parallel": 1, "len": 1000,
        "client_version": "3.17", "authtoken": token,
    })
    .to_string();
    let mut first = Raw::connect(server.port);
    first.agree(&parameters);
    let mut second = Raw::connect(server.port);
    second.expect(raw::PARAM_EXCHANGE);
    second.message(&parameters);
    assert_ne!(
        second.state(),
        Some(raw::CREATE_STREAMS),
        "a token was taken twice"
    );
    server.tells("refused 127.0.0.1", 1);
    drop(first);
    keys.client(server.client("-n 1M"), "secret").expect(0);
}

/// What a client of ours shows a server as its credentials, taken by a server that is none.
fn token_of_a_client(keys: &Keys) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut command = linerate(&format!("test 127.0.0.1 -p {port} -t 1 --username joe"));
    command
        .arg("--rsa-public-key-path")
        .arg(&keys.public)
        .env("LINERATE_PASSWORD", "secret");
    let client = start(&mut command);
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_exact(&mut [0; 37]).unwrap();
    stream.write_all(&[raw::PARAM_EXCHANGE]).unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut text).unwrap();
    drop(stream);
    client.wait(LONG).expect(3);
    let parameters: Value = serde_json::from_slice(&text).unwrap();
    parameters["authtoken"].as_str().unwrap().to_owned()
}

/// esnet/iperf #2027 ('='), #2040 ("AB") and #2050 (longer than the key) wrote outside of their buffers;
/// CVE-2025-54349 and CVE-2025-54350 were others of the kind.
#[test]
fn tokens_that_cannot_be_decoded_or_decrypted_get_the_one_answer() {
    let _beside = beside();
    let Some(keys) = Keys::new("tokens that cannot be decoded or decrypted") else {
        return;
    };
    let server = keys.serve(&[]);
    let long = "A".repeat(4096);
    let tokens = [
        "=",
        "AB",
        "A===",
        "====",
        "!",
        "",
        "QUJD",
        &long,
        &long[..344],
    ];
    for token in tokens {
        let mut client = Raw::connect(server.port);
        client.expect(raw::PARAM_EXCHANGE);
        client.message(&format!(
            r#"{{"tcp":true,"time":1,"parallel":1,"len":1000,"authtoken":"{token}"}}"#
        ));
        let mut answer = Vec::new();
        client.stream.read_to_end(&mut answer).unwrap();
        // SERVER_ERROR, 142 (IEAUTHTEST), no errno.
        assert_eq!(answer, [0xfe, 0, 0, 0, 142, 0, 0, 0, 0], "{token:.20}");
    }
    server.tells("refused 127.0.0.1", tokens.len());
    keys.client(server.client("-n 1M"), "secret").expect(0);
}

#[test]
fn wrong_tokens_from_other_addresses_keep_nobody_out() {
    let _beside = beside();
    let Some(keys) = Keys::new("a flood of wrong tokens") else {
        return;
    };
    let server = keys.serve(&[]);
    let over = AtomicBool::new(false);
    // As long as the key, so that each is decrypted.
    let token = format!("{}=", "A".repeat(343));
    let asked = format!(
        r#"{{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":1000,"authtoken":"{token}","client_version":"3.21"}}"#
    );
    let mut most = 0;
    std::thread::scope(|scope| {
        for attacker in 0..16_u8 {
            let (over, asked, port) = (&over, &asked, server.port);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let Ok(stream) = connect_from([127, 0, 0, 2 + attacker % 2], port) else {
                        continue;
                    };
                    let length = u32::try_from(asked.len()).unwrap().to_be_bytes();
                    let mut control = Raw::over(stream, port).stream;
                    // The server may have refused it already.
                    drop(control.write_all(&[&length[..], asked.as_bytes()].concat()));
                    drop(control.read(&mut [0; 16]));
                }
            });
        }
        for _ in 0..5 {
            let done = keys.client(server.client("-n 1M"), "secret");
            most = most.max(kept(&server)["threads"]);
            if done.code() != Some(0) {
                over.store(true, Ordering::Relaxed);
            }
            done.expect(0);
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(most < 100, "{most} threads for 16 connections at a time");
}
