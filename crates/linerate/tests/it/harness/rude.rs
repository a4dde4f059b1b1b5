//! Clients that do what no client does, from addresses of their own, within 127.0.0.0/8.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use linerate_wire::extension::Message;
use linerate_wire::state::State;
use socket2::{Domain, Socket, Type};

use super::raw::{self, Raw};

/// Connects from an address of this host.
pub(crate) fn connect_from(from: [u8; 4], port: u16) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(IpAddr::from(from), 0).into())?;
    let server = SocketAddr::from(([127, 0, 0, 1], port));
    socket.connect_timeout(&server.into(), Duration::from_secs(10))?;
    Ok(socket.into())
}

/// Parameters of a test by a linerate: TCP, or what `more` says instead.
pub(crate) fn parameters(streams: usize, sample_ns: u64, more: &str) -> String {
    format!(
        "{{\"omit\":0,\"num\":0,\"blockcount\":0,\"parallel\":{streams},\"len\":1000,\"client_version\":\"3.21\",\
         \"linerate\":{{\"version\":1,\"software\":\"rude 1\",\"sample_ns\":{sample_ns}}},{more}}}"
    )
}

impl Raw {
    /// Agrees on a test as a linerate does, up to where the streams are wanted; `None` where the server did not.
    pub(crate) fn agree_as_linerate(&mut self, parameters: &str) -> Option<Message> {
        self.expect(raw::PARAM_EXCHANGE);
        self.message(parameters);
        let hello = self.said_by_linerate()?;
        self.send(&Message::Ready {}.encode());
        (self.state()? == raw::CREATE_STREAMS).then_some(hello)
    }

    /// The server's next message as a linerate.
    pub(crate) fn said_by_linerate(&mut self) -> Option<Message> {
        (self.state()? == State::Linerate.byte()).then_some(())?;
        let length: Vec<u8> = (0..4).map_while(|_| self.state()).collect();
        let length = u32::from_be_bytes(length.try_into().ok()?);
        let json: Vec<u8> = (0..length).map_while(|_| self.state()).collect();
        Message::from_json(&json).ok()
    }
}
