//! Requests by HTTP/1.1, each over a connection of its own.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// What is answered to a request, its head and its body; `None` where no whole answer comes. No read takes longer than `within`.
pub(crate) fn exchange(address: &str, request: &str, within: Duration) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(within)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

/// The same of a page.
pub(crate) fn get(address: &str, path: &str, within: Duration) -> Option<(String, String)> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    exchange(address, &request, within)
}
