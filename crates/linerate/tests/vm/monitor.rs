//! QEMU's monitor (QMP): what is done to a machine from outside.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

/// A monitor that has said hello.
#[derive(Debug)]
pub(crate) struct Monitor(BufReader<UnixStream>);

impl Monitor {
    pub(crate) fn new(stream: UnixStream) -> Self {
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let mut monitor = Self(BufReader::new(stream));
        let hello = monitor.read();
        assert!(hello.get("QMP").is_some(), "{hello}");
        monitor.tell("qmp_capabilities", &json!({}));
        monitor
    }

    /// Gives a command; what it returns. Events between are passed over.
    pub(crate) fn tell(&mut self, command: &str, arguments: &Value) -> Value {
        let line = json!({"execute": command, "arguments": arguments});
        writeln!(self.0.get_mut(), "{line}").unwrap();
        loop {
            let mut answer = self.read();
            assert!(answer.get("error").is_none(), "{command}: {answer}");
            if answer.get("return").is_some() {
                return answer["return"].take();
            }
        }
    }

    /// Pulls a network card's cable, or plugs it in.
    pub(crate) fn link(&mut self, card: usize, up: bool) {
        self.tell(
            "set_link",
            &json!({"name": format!("card{card}"), "up": up}),
        );
    }

    /// Bounds the operations a second of the machine's disk; 0 bounds nothing. What is synced between two changes
    /// then takes its time, and a test can act between them.
    pub(crate) fn disk(&mut self, operations: u32) {
        self.throttle("system", &[("iops", u64::from(operations))]);
    }

    /// Bounds what a disk lets pass a second, as QMP's `block_set_io_throttle` has it: `bps_wr`, `iops_rd`. What is not named is
    /// not bounded.
    pub(crate) fn throttle(&mut self, device: &str, limits: &[(&str, u64)]) {
        let mut arguments = json!({
            "device": device, "iops": 0, "iops_rd": 0, "iops_wr": 0, "bps": 0, "bps_rd": 0, "bps_wr": 0,
        });
        for (limit, amount) in limits {
            arguments[*limit] = json!(amount);
        }
        self.tell("block_set_io_throttle", &arguments);
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).unwrap();
        assert!(read > 0, "QEMU closed its monitor");
        serde_json::from_str(&line).unwrap()
    }
}
