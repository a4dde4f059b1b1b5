//! The open connections: which of them are idle, and which gives way to a new one.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;

/// At most so many connections.
#[derive(Debug)]
pub(super) struct Crowd {
    most: usize,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    next: u64,
    /// By their numbers, and so by age.
    seats: BTreeMap<u64, Arc<Place>>,
}

#[derive(Debug, Default)]
struct Place {
    /// Answers that are being made or sent.
    busy: AtomicUsize,
    give_up: Notify,
}

/// A connection's place, free again when the last copy is dropped.
#[derive(Debug, Clone)]
pub(super) struct Seat(Arc<Occupied>);

#[derive(Debug)]
struct Occupied {
    crowd: Arc<Crowd>,
    number: u64,
    place: Arc<Place>,
}

impl Crowd {
    pub(super) fn of(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            inside: Mutex::default(),
        })
    }

    /// A place for a new connection. Where all are taken, the oldest idle connection gives its place up; where none is
    /// idle, the oldest of all does.
    pub(super) fn seat(crowd: &Arc<Self>) -> Seat {
        let mut inside = crowd.inside.lock().unwrap_or_else(PoisonError::into_inner);
        while inside.seats.len() >= crowd.most {
            let idle = |(_, place): &(&u64, &Arc<Place>)| place.busy.load(Ordering::Relaxed) == 0;
            let oldest = inside
                .seats
                .iter()
                .find(idle)
                .or_else(|| inside.seats.iter().next());
            let Some(number) = oldest.map(|(number, _)| *number) else {
                break;
            };
            if let Some(place) = inside.seats.remove(&number) {
                place.give_up.notify_one();
            }
        }
        let number = inside.next;
        inside.next += 1;
        let place = Arc::new(Place::default());
        inside.seats.insert(number, place.clone());
        drop(inside);
        Seat(Arc::new(Occupied {
            crowd: crowd.clone(),
            number,
            place,
        }))
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        let mut inside = self
            .crowd
            .inside
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        inside.seats.remove(&self.number);
    }
}

impl Seat {
    /// Ends when another connection needs the place.
    pub(super) async fn given_up(&self) {
        self.0.place.give_up.notified().await;
    }

    /// Marks the connection busy until this is dropped.
    pub(super) fn busy(&self) -> Busy {
        self.0.place.busy.fetch_add(1, Ordering::Relaxed);
        Busy(self.0.place.clone())
    }
}

/// An answer is being made or sent.
#[derive(Debug)]
pub(super) struct Busy(Arc<Place>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A body whose connection is busy until it is sent.
#[derive(Debug)]
pub(super) struct Held {
    body: Body,
    _busy: Busy,
}

impl Held {
    pub(super) const fn of(body: Body, busy: Busy) -> Self {
        Self { body, _busy: busy }
    }
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_idle_connection_gives_way() {
        let crowd = Crowd::of(2);
        let busy = Crowd::seat(&crowd);
        let working = busy.busy();
        let idle = Crowd::seat(&crowd);
        let new = Crowd::seat(&crowd);
        let numbers = |crowd: &Crowd| -> Vec<u64> {
            crowd.inside.lock().unwrap().seats.keys().copied().collect()
        };
        assert_eq!(numbers(&crowd), [busy.0.number, new.0.number]);
        drop(idle);
        assert_eq!(numbers(&crowd).len(), 2);
        drop(working);
        let newest = Crowd::seat(&crowd);
        assert_eq!(numbers(&crowd), [new.0.number, newest.0.number]);
        drop((busy, new, newest));
        assert!(numbers(&crowd).is_empty());
    }
}
