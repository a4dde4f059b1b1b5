//! The virtual serial port through which a guest is told what to do; `scripts/vm/agent` is its other end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// One end of the port.
#[derive(Debug)]
pub(crate) struct Port {
    stream: BufReader<UnixStream>,
    next: u64,
}

/// What became of a script.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    /// Its output and its errors, as they came.
    pub(crate) text: String,
}

impl Port {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self {
            stream: BufReader::new(stream),
            next: 1,
        }
    }

    /// Waits for the guest's first word; its boot id.
    pub(crate) fn greeting(&mut self, limit: Duration) -> Result<String, String> {
        let line = self.line(limit)?;
        line.strip_prefix("ready ")
            .map(str::to_owned)
            .ok_or_else(|| format!("the guest said '{line}'"))
    }

    /// Has the guest run a script of bash.
    pub(crate) fn run(&mut self, script: &str, limit: Duration) -> Result<Done, String> {
        let id = self.begin(script)?;
        let line = self.line(limit)?;
        let mut words = line.split(' ');
        if words.next() != Some(id.to_string().as_str()) {
            return Err(format!("the guest answered '{line:.60}' to {id}"));
        }
        let code = words.next().and_then(|word| word.parse().ok());
        let code = code.ok_or_else(|| format!("'{line:.60}' has no status"))?;
        let bytes = from_base64(words.next().unwrap_or_default())
            .ok_or_else(|| format!("'{line:.60}' is no base64"))?;
        Ok(Done {
            code,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }

    /// Sends a script and waits for nothing.
    pub(crate) fn begin(&mut self, script: &str) -> Result<u64, String> {
        let id = self.next;
        self.next += 1;
        let line = format!("{id} {}\n", to_base64(script.as_bytes()));
        self.stream
            .get_mut()
            .write_all(line.as_bytes())
            .map_err(|error| format!("the guest's port: {error}"))?;
        Ok(id)
    }

    fn line(&mut self, limit: Duration) -> Result<String, String> {
        let said = |error: std::io::Error| format!("the guest said nothing in {limit:?}: {error}");
        self.stream
            .get_ref()
            .set_read_timeout(Some(limit))
            .map_err(said)?;
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).map_err(said)?;
        if read == 0 {
            return Err("the guest's port was closed".to_owned());
        }
        Ok(line.trim_end().to_owned())
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let mut group = 0_u32;
        for index in 0..3 {
            group = group << 8 | u32::from(three.get(index).copied().unwrap_or(0));
        }
        for index in 0..4 {
            let digit = DIGITS[(group >> (18 - 6 * index) & 63) as usize];
            text.push(if index <= three.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    text
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut group, mut bits) = (0_u32, 0);
    for digit in text.bytes().take_while(|byte| *byte != b'=') {
        let value = DIGITS.iter().position(|known| *known == digit)?;
        group = group << 6 | u32::try_from(value).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(group >> bits & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[test]
fn base64_there_and_back() {
    for text in ["", "a", "ab", "abc", "linerate tune apply\n\u{fc}"] {
        let coded = to_base64(text.as_bytes());
        assert_eq!(from_base64(&coded).unwrap(), text.as_bytes(), "{coded}");
    }
    assert_eq!(to_base64(b"ab"), "YWI=");
}
