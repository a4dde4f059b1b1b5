//! A TCP relay between an agent and its hub, which can stop forwarding: a network that is cut without a word.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often it looks whether it may forward.
const LOOK: Duration = Duration::from_millis(20);

/// The relay; its threads end with their connections.
pub(super) struct Relay {
    pub(super) address: SocketAddr,
    cut: Arc<AtomicBool>,
}

impl Relay {
    /// Forwards each connection to this port of loopback.
    pub(super) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let cut = Arc::new(AtomicBool::new(false));
        let is_cut = cut.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let is_cut = is_cut.clone();
                std::thread::spawn(move || relay(&near, port, &is_cut));
            }
        });
        Self { address, cut }
    }

    /// From now on nothing passes, or everything does.
    pub(super) fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }
}

fn relay(near: &TcpStream, port: u16, is_cut: &Arc<AtomicBool>) {
    while is_cut.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
    let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else {
        return;
    };
    let (Ok(near_again), Ok(far_again)) = (near.try_clone(), far.try_clone()) else {
        return;
    };
    let also_cut = is_cut.clone();
    std::thread::spawn(move || forward(&near_again, &far_again, &also_cut));
    forward(&far, near, is_cut);
}

/// Forwards one direction to its end.
fn forward(mut from: &TcpStream, mut to: &TcpStream, is_cut: &AtomicBool) {
    drop(from.set_read_timeout(Some(Duration::from_millis(200))));
    let mut piece = [0; 16 << 10];
    loop {
        if is_cut.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
            continue;
        }
        match from.read(&mut piece) {
            Ok(read @ 1..) => {
                // What was read before the cut does not pass after it.
                while is_cut.load(Ordering::Relaxed) {
                    std::thread::sleep(LOOK);
                }
                if to.write_all(&piece[..read]).is_err() {
                    break;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            _ => break,
        }
    }
    drop(to.shutdown(Shutdown::Write));
    drop(from.shutdown(Shutdown::Read));
}
