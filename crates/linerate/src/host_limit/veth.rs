//! Two network namespaces with a veth pair between them: one for the server, one for this process.

use linerate_kernel::link::{self, VethEnd};
use linerate_kernel::namespace::NetworkNamespace;
use linerate_kernel::setting;
use linerate_lab::runner;

/// Addresses for documentation (RFC 5737).
const SERVER: [u8; 4] = [192, 0, 2, 1];
const CLIENT: [u8; 4] = [192, 0, 2, 2];
const PREFIX: u8 = 30;
/// Ethernet's.
const MTU: u32 = 1500;

/// The pair. This process is on the server's side of it until [`Pair::cross`].
pub(super) struct Pair {
    client: NetworkNamespace,
    pub(super) server_address: String,
    pub(super) mtu: u32,
}

/// Takes this process, which has one thread, into namespaces of its own, with the pair.
///
/// # Errors
/// Why that is not to be had, in words.
pub(super) fn apart() -> Result<Pair, String> {
    runner::isolate().map_err(|error| error.to_string())?;
    let here = NetworkNamespace::current().map_err(|error| error.to_string())?;
    let client = NetworkNamespace::make()
        .map_err(|error| format!("cannot make a network namespace: {error}"))?;
    let end = |name, namespace| VethEnd {
        name,
        namespace,
        mtu: MTU,
    };
    let made = link::make_veth(end("server0", &here), end("client0", &client));
    made.and_then(|()| set_up("server0", SERVER))
        .map_err(|error| error.to_string())?;
    client
        .run(|| set_up("client0", CLIENT))
        .map_err(|error| format!("cannot enter a network namespace: {error}"))?
        .map_err(|error| error.to_string())?;
    Ok(Pair {
        client,
        server_address: std::net::Ipv4Addr::from(SERVER).to_string(),
        mtu: MTU,
    })
}

impl Pair {
    /// Takes the calling thread, and those that it starts, to the client's side.
    pub(super) fn cross(&self) -> Result<(), String> {
        self.client
            .enter()
            .map_err(|error| format!("cannot enter a network namespace: {error}"))
    }
}

fn set_up(name: &str, address: [u8; 4]) -> Result<(), linerate_kernel::KernelError> {
    setting::set_up("lo", true)?;
    link::add_address(name, address.into(), PREFIX)?;
    setting::set_up(name, true)
}
