//! What happens, as it happens: server-sent events (HTML, section 9.2).
//!
//! A stream begins behind the event that `Last-Event-ID` names, or behind the latest one. Each event's data is JSON:
//! `{"task","from","to"}` of a run, `{"host"}` of facts, `{}` else. `live` says that the state of the hub itself changed.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::Hub;
use crate::store::{Event as Stored, Happened};

/// A line without meaning at this distance, so that both ends notice a dead connection.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The archive is asked no more often than this by one stream.
const PACE: Duration = Duration::from_millis(250);
/// The archive is asked at this distance also when nobody woke the stream.
const POLL: Duration = Duration::from_secs(5);
/// A stream ends after this time. The browser opens another one, for which it has to be logged in still.
const LONGEST: Duration = Duration::from_secs(900);
/// Events that are sent at once; who is further behind gets the others next.
const BATCH: usize = 256;

struct Reader {
    hub: Hub,
    changes: watch::Receiver<u64>,
    after: u64,
    begun: Instant,
    waiting: std::vec::IntoIter<Event>,
    _stream: OwnedSemaphorePermit,
}

pub(super) async fn stream(State(hub): State<Hub>, headers: HeaderMap) -> Response {
    let Ok(permit) = hub.streams.clone().try_acquire_owned() else {
        let text = "Too many pages are open; this one is not updated by itself.\n";
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            [(header::RETRY_AFTER, "60")],
            text,
        )
            .into_response();
    };
    let named = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok()?.parse().ok());
    let after = match named {
        Some(after) => after,
        None => last_event(&hub).await,
    };
    // The first event tells a page where it stands.
    let first = Event::default()
        .id(after.to_string())
        .event("ready")
        .data("{}");
    let reader = Reader {
        changes: hub.shared.live().changes(),
        hub,
        after,
        begun: Instant::now(),
        waiting: vec![first].into_iter(),
        _stream: permit,
    };
    Sse::new(events(reader))
        .keep_alive(KeepAlive::new().interval(HEARTBEAT))
        .into_response()
}

async fn last_event(hub: &Hub) -> u64 {
    let shared = hub.shared.clone();
    let read = tokio::task::spawn_blocking(move || shared.store().last_event());
    read.await.ok().and_then(Result::ok).unwrap_or(0)
}

fn events(reader: Reader) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(reader, |mut reader| async move {
        loop {
            if let Some(event) = reader.waiting.next() {
                return Some((Ok(event), reader));
            }
            reader.wait().await?;
        }
    })
}

impl Reader {
    /// Waits until there may be something new and reads it; `None` ends the stream.
    async fn wait(&mut self) -> Option<()> {
        if *self.hub.stop.borrow() || self.begun.elapsed() > LONGEST {
            return None;
        }
        let mut stop = self.hub.stop.clone();
        let woken = tokio::select! {
            woken = self.changes.changed() => { woken.ok()?; true }
            _ = stop.changed() => return None,
            () = tokio::time::sleep(POLL) => false,
        };
        tokio::time::sleep(PACE).await;
        self.changes.mark_unchanged();
        let (shared, after) = (self.hub.shared.clone(), self.after);
        let read = tokio::task::spawn_blocking(move || shared.store().events(after, BATCH));
        // An archive that does not answer now may do so later.
        let found = read.await.ok()?.unwrap_or_default();
        let full = found.len() == BATCH;
        self.after = found.last().map_or(self.after, |event| event.id);
        let mut events: Vec<Event> = found.iter().map(event).collect();
        if events.is_empty() && woken {
            events.push(Event::default().event("live").data("{}"));
        }
        if full {
            self.changes.mark_changed();
        }
        self.waiting = events.into_iter();
        Some(())
    }
}

fn event(stored: &Stored) -> Event {
    let (name, data) = match &stored.what {
        Happened::Run { task, from, to } => {
            ("run", json!({ "task": task, "from": from, "to": to }))
        }
        Happened::Alert => ("alert", json!({})),
        Happened::Facts { host } => ("facts", json!({ "host": host })),
    };
    Event::default()
        .id(stored.id.to_string())
        .event(name)
        .data(data.to_string())
}
