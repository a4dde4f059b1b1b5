//! The HTTP server: a bounded number of connections, none of which may be slow for long.

mod crowd;
mod patient;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::guard::guard;
use crate::route::{self, Hub};
use crate::shared::Shared;
use crowd::Crowd;
use patient::Patient;

/// Open connections; the one that has been idle for longest makes room for a new one.
const MOST_CONNECTIONS: usize = 512;
/// A request's head arrives within this time, also the next one on a connection that stays open.
const HEAD: Duration = Duration::from_secs(15);
/// A client takes something of an answer within this time.
const TAKES: Duration = Duration::from_secs(30);
/// The head of a request is no longer than this, bytes.
const MOST_HEAD: usize = 32 * 1024;
/// Threads on which pages are made and the archive is read.
const THREADS: usize = 8;

/// A hub that serves; it stops when this is dropped.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// Why the hub does not serve its pages.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Others could reach it.
    #[error(
        "the dashboard cannot listen on {address}: it has no login yet, so whoever reaches it may read everything. \
         Listen on 127.0.0.1 or [::1], and reach it from elsewhere by `ssh -L {port}:localhost:{port} HUB`",
        port = address.port()
    )]
    NotLoopback {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// The system refused.
    #[error("cannot serve the dashboard: {doing}: {error}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        error: io::Error,
    },
}

impl Serving {
    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops: open event streams end, other connections are closed. Returns when its threads have ended.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed by it.
            let _ = thread.join();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end();
    }
}

/// Serves pages, API, events and metrics on threads of its own, until [`Serving::stop`].
///
/// Refuses a listener that is not on a loopback address: there is no login.
pub fn serve(listener: TcpListener, shared: Arc<Shared>) -> Result<Serving, ServeError> {
    let system = |doing| move |error| ServeError::System { doing, error };
    let address = listener
        .local_addr()
        .map_err(system("asking for its address"))?;
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback { address });
    }
    listener
        .set_nonblocking(true)
        .map_err(system("setting up its listener"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(THREADS)
        .thread_name("hub-page")
        .build()
        .map_err(system("starting its threads"))?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener).map_err(system("setting up its listener"))?
    };
    let (stop, stopped) = watch::channel(false);
    let hub = Hub::new(shared, stopped.clone());
    let router = route::router(hub).layer(from_fn(guard));
    let thread = std::thread::Builder::new()
        .name("hub-http".to_owned())
        .spawn(move || {
            runtime.block_on(accept(&listener, &router, stopped));
            runtime.shutdown_timeout(Duration::from_secs(5));
        })
        .map_err(system("starting its thread"))?;
    Ok(Serving {
        address,
        stop,
        thread: Some(thread),
    })
}

/// Takes connections until the hub stops.
async fn accept(
    listener: &tokio::net::TcpListener,
    router: &Router,
    mut stopped: watch::Receiver<bool>,
) {
    let crowd = Crowd::of(MOST_CONNECTIONS);
    loop {
        let taken = tokio::select! {
            taken = listener.accept() => taken,
            _ = stopped.changed() => return,
        };
        match taken {
            Ok((stream, _)) => admit(stream, &crowd, router),
            // Out of descriptors, or the client is gone already: neither lasts.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

fn admit(stream: TcpStream, crowd: &Arc<Crowd>, router: &Router) {
    let seat = Crowd::seat(crowd);
    let router = router.clone();
    let counted = seat.clone();
    let service = tower_service(router, counted);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(MOST_HEAD)
        .serve_connection(
            TokioIo::new(Patient::of(stream, TAKES)),
            TowerToHyperService::new(service),
        );
    tokio::spawn(async move {
        tokio::select! {
            // What a client did wrong is answered or closed; nobody else needs to know.
            _ = connection => {}
            () = seat.given_up() => {}
        }
    });
}

/// The router, which marks the connection busy while it makes an answer.
fn tower_service(router: Router, seat: crowd::Seat) -> Router {
    router.layer(from_fn(move |request, next: axum::middleware::Next| {
        let busy = seat.busy();
        async move {
            let answer: axum::response::Response = next.run(request).await;
            answer.map(|body| axum::body::Body::new(crowd::Held::of(body, busy)))
        }
    }))
}
