//! The HTTP server: a bounded number of connections, none of which may be slow for long.

mod crowd;
mod patient;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::access::{Access, Door, Peer, Transport};
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
    /// Others can reach it, and nobody could log in.
    #[error(
        "the dashboard cannot listen on {address} without users, because others reach it there: make one with `linerate hub \
         user add NAME --role admin`; without users listen on 127.0.0.1 or [::1], and reach it from elsewhere by `ssh -L \
         {port}:localhost:{port} HUB`",
        port = address.port()
    )]
    NoUsers {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// Passwords would cross the network in clear.
    #[error(
        "the dashboard cannot listen on {address} without TLS, because passwords would cross the network in clear: give it \
         a certificate with --tls-cert FILE and --tls-key FILE, or --behind-proxy ADDRESS of the proxy that ends TLS"
    )]
    NoTls {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// The users, or the secrets of sessions.
    #[error("cannot serve the dashboard: {0}")]
    Users(String),
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
/// Without users and TLS, so a listener that is not on a loopback address is refused.
pub fn serve(listener: TcpListener, shared: Arc<Shared>) -> Result<Serving, ServeError> {
    serve_behind(listener, shared, Door::open())
}

/// As [`serve`], to those whom the door lets in.
pub fn serve_behind(
    listener: TcpListener,
    shared: Arc<Shared>,
    door: Door,
) -> Result<Serving, ServeError> {
    let system = |doing| move |error| ServeError::System { doing, error };
    let address = listener
        .local_addr()
        .map_err(system("asking for its address"))?;
    let access = Arc::new(Access::of(door, address)?);
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
    let hub = Hub::new(shared, access.clone(), stopped.clone());
    let router = route::router(hub.clone()).layer(from_fn_with_state(hub, guard));
    let thread = std::thread::Builder::new()
        .name("hub-http".to_owned())
        .spawn(move || {
            runtime.block_on(accept(&listener, &access, &router, stopped));
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
    access: &Access,
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
            Ok((stream, from)) if access.takes(from.ip()) => {
                admit(stream, from.ip(), access, &crowd, router);
            }
            Ok(_) => {}
            // Out of descriptors, or the client is gone already: neither lasts.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

fn admit(stream: TcpStream, from: IpAddr, access: &Access, crowd: &Arc<Crowd>, router: &Router) {
    let seat = Crowd::seat(crowd);
    let router = tower_service(router.clone(), seat.clone(), Peer(from));
    let stream = Patient::of(stream, TAKES);
    let tls = match access.transport() {
        Transport::Tls(files) => Some(TlsAcceptor::from(files.now())),
        Transport::Plain | Transport::Proxy(_) => None,
    };
    let talk = async move {
        let Some(tls) = tls else {
            return converse(stream, router).await;
        };
        // The handshake may take as long as a request's head.
        if let Ok(Ok(stream)) = tokio::time::timeout(HEAD, tls.accept(stream)).await {
            converse(stream, router).await;
        }
    };
    tokio::spawn(async move {
        tokio::select! {
            () = talk => {}
            () = seat.given_up() => {}
        }
    });
}

/// Answers requests until the connection ends.
async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(MOST_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // What a client did wrong is answered or closed; nobody else needs to know.
    drop(connection.await);
}

/// The router, which knows where its requests come from, and marks the connection busy while it makes an answer.
fn tower_service(router: Router, seat: crowd::Seat, peer: Peer) -> Router {
    router.layer(from_fn(
        move |mut request: axum::extract::Request, next: axum::middleware::Next| {
            let busy = seat.busy();
            request.extensions_mut().insert(peer);
            async move {
                let answer: axum::response::Response = next.run(request).await;
                answer.map(|body| axum::body::Body::new(crowd::Held::of(body, busy)))
            }
        },
    ))
}
