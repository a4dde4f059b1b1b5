//! Serves made-up data of ten hosts: `cargo run -p linerate-hub --example sample [PORT [mesh]]`, which with
//! `mesh` has 5,112 pairs.

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
    let shared = Arc::new(Shared::new(Arc::new(store), || sample::NOW));
    sample::lively(&shared);
    let serving = serve(TcpListener::bind(("127.0.0.1", port))?, shared)?;
    println!("http://{}", serving.address());
    loop {
        std::thread::park();
    }
}
