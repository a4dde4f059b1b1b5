//! A hub on loopback, and requests to it.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use linerate_hub::access::Door;
use linerate_hub::memory::MemoryStore;
use linerate_hub::shared::Shared;
use linerate_hub::store::Store;
use linerate_hub::{Serving, serve_behind};

use crate::sample;

/// A hub that serves until it is dropped.
pub(crate) struct Served {
    serving: Serving,
    pub(crate) shared: Arc<Shared>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Served {
    pub(crate) fn of(store: Arc<dyn Store>) -> Self {
        Self::behind(store, Door::open())
    }

    pub(crate) fn behind(store: Arc<dyn Store>, door: Door) -> Self {
        Self::driven(Shared::new(store, || sample::NOW), door)
    }

    pub(crate) fn driven(shared: Shared, door: Door) -> Self {
        let shared = Arc::new(shared);
        sample::lively(&shared);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let serving = serve_behind(listener, shared.clone(), door).unwrap();
        Self { serving, shared }
    }

    /// With the sample, and hosts whose names would be tags.
    pub(crate) fn sample() -> Self {
        let store = sample::filled();
        sample::hostile(&store);
        Self::of(Arc::new(store))
    }

    pub(crate) fn empty() -> Self {
        Self::of(Arc::new(MemoryStore::default()))
    }

    pub(crate) fn address(&self) -> std::net::SocketAddr {
        self.serving.address()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.serving.address()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        stream
    }

    /// The head's first line and what follows it, then `Connection: close`.
    pub(crate) fn ask(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        // A refused request may be answered by a reset behind its answer.
        let _ = stream.read_to_end(&mut bytes);
        parsed(&bytes)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.serving.address()
        ))
    }

    /// A body that has to be there.
    pub(crate) fn body(&self, path: &str) -> String {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.body
    }

    pub(crate) fn json(&self, path: &str) -> serde_json::Value {
        serde_json::from_str(&self.body(path)).unwrap()
    }
}

pub(crate) fn parsed(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Answer {
        status: status.unwrap_or(0),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}
