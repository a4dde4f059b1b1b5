//! Serves made-up data of ten hosts: `cargo run -p linerate-hub --example sample [PORT [mesh]]`, which with
//! `mesh` has 5,112 pairs, and with `moving` a test that fails every two seconds.

#[path = "../tests/hub/sample.rs"]
#[expect(
    dead_code,
    clippy::unwrap_used,
    reason = "tests use the rest of it, and may panic"
)]
mod sample;

use std::net::TcpListener;
use std::sync::Arc;

use linerate_hub::serve;
use linerate_hub::shared::Shared;

#[expect(clippy::print_stdout, reason = "says where it listens")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args()
        .nth(1)
        .map_or(Ok(0), |port| port.parse::<u16>())?;
    let store = match std::env::args().nth(2).as_deref() {
        Some("mesh") => sample::mesh(),
        _ => sample::filled(),
    };
    let store = Arc::new(store);
    let shared = Arc::new(Shared::new(store.clone(), || sample::NOW));
    sample::lively(&shared);
    let serving = serve(TcpListener::bind(("127.0.0.1", port))?, shared.clone())?;
    println!("http://{}", serving.address());
    let moving = std::env::args().nth(2).as_deref() == Some("moving");
    for round in 0_u64.. {
        if !moving {
            std::thread::park();
            continue;
        }
        std::thread::sleep(std::time::Duration::from_secs(2));
        let outcome = sample::failed("connecting", &format!("no answer in round {round}"));
        let due = sample::before(50_000 - 2000 * round.min(24));
        store.append(sample::run("backbone", "ams1", "gru1", due, outcome), None);
        shared.live().wake();
    }
    Ok(())
}
