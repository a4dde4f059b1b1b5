//! What no server can run.

use super::{MAX_TCP_LEN, MAX_UDP_LEN, MIN_UDP_LEN, Parameters, Protocol};
use crate::error::ProtocolError;

impl Parameters {
    /// Refuses what no server can run. The bounds are those of a stock server, but for `len`,
    /// which may be up to 16 MiB over TCP. `time` together with `num` or `blockcount` passes, as
    /// libiperf's users send it: the client alone decides the end. The server's own limits (rate,
    /// duration) are not judged here.
    pub fn check(&self) -> Result<(), ProtocolError> {
        self.check_ranges()?;
        self.check_len()?;
        if self.num != 0 && self.blockcount != 0 {
            return Err(refused(
                "blockcount",
                &self.blockcount,
                "0 beside num (one end only)",
            ));
        }
        if self.reverse && self.bidirectional {
            return Err(refused(
                "bidirectional",
                &"true",
                "one of reverse and bidirectional",
            ));
        }
        self.checked_json().map(drop)
    }

    fn check_ranges(&self) -> Result<(), ProtocolError> {
        let ranges = [
            (
                "parallel",
                self.parallel,
                1,
                128,
                "a number of streams from 1 to 128",
            ),
            ("omit", self.omit, 0, 600, "at most 600 seconds"),
            ("time", self.time, 0, 86_400, "at most 86400 seconds"),
            ("MSS", self.mss, 0, 32_767, "at most 32767 bytes"),
            ("window", self.window, 0, 512 << 20, "at most 512 MiB"),
            ("burst", self.burst, 0, 1000, "at most 1000 blocks"),
            ("TOS", self.tos, 0, 255, "a byte"),
            (
                "flowlabel",
                self.flowlabel,
                0,
                0xf_ffff,
                "at most 1048575 (20 bits)",
            ),
            (
                "pacing_timer",
                self.pacing_timer,
                0,
                1_000_000_000,
                "at most 1000 seconds in µs",
            ),
            (
                "server_affinity",
                self.server_affinity.unwrap_or(0),
                0,
                1024,
                "a core from 0 to 1024",
            ),
        ];
        for (key, value, least, most, allowed) in ranges {
            if value < least || value > most {
                return Err(refused(key, &value, allowed));
            }
        }
        Ok(())
    }

    fn check_len(&self) -> Result<(), ProtocolError> {
        if self.protocol == Protocol::Udp {
            if !(MIN_UDP_LEN..=MAX_UDP_LEN).contains(&self.len) {
                return Err(refused("len", &self.len, "a datagram of 16 to 65507 bytes"));
            }
            for (key, size) in [
                ("gso_dg_size", self.gso_dg_size),
                ("gso_bf_size", self.gso_bf_size),
                ("gro_bf_size", self.gro_bf_size),
            ] {
                if size > 65_535 {
                    return Err(refused(key, &size, "at most 65535 bytes"));
                }
            }
        } else if !(1..=MAX_TCP_LEN).contains(&self.len) {
            return Err(refused("len", &self.len, "a block of 1 byte to 16 MiB"));
        }
        Ok(())
    }
}

fn refused(key: &'static str, value: &impl ToString, allowed: &'static str) -> ProtocolError {
    ProtocolError::Parameter {
        key,
        value: value.to_string().into(),
        allowed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Parameters {
        Parameters::from_json(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_no_server_can_run_is_refused_by_name() {
        let good = Parameters::default;
        let udp = || Parameters {
            protocol: Protocol::Udp,
            len: 1460,
            ..good()
        };
        let cases = [
            (
                "parallel",
                Parameters {
                    parallel: 0,
                    ..good()
                },
            ),
            (
                "parallel",
                Parameters {
                    parallel: 129,
                    ..good()
                },
            ),
            (
                "omit",
                Parameters {
                    omit: 601,
                    ..good()
                },
            ),
            (
                "time",
                Parameters {
                    time: 86_401,
                    ..good()
                },
            ),
            (
                "blockcount",
                Parameters {
                    num: 1,
                    blockcount: 1,
                    ..good()
                },
            ),
            ("len", Parameters { len: 0, ..good() }),
            (
                "len",
                Parameters {
                    len: MAX_TCP_LEN + 1,
                    ..good()
                },
            ),
            ("len", Parameters { len: 15, ..udp() }),
            (
                "len",
                Parameters {
                    len: 65_508,
                    ..udp()
                },
            ),
            ("len", Parameters { len: 0, ..udp() }),
            (
                "gso_bf_size",
                Parameters {
                    gso_bf_size: 65_536,
                    ..udp()
                },
            ),
            (
                "bidirectional",
                Parameters {
                    reverse: true,
                    bidirectional: true,
                    ..good()
                },
            ),
            ("TOS", Parameters { tos: 256, ..good() }),
            (
                "flowlabel",
                Parameters {
                    flowlabel: 0x10_0000,
                    ..good()
                },
            ),
            (
                "window",
                Parameters {
                    window: u64::MAX,
                    ..good()
                },
            ),
            (
                "server_affinity",
                Parameters {
                    server_affinity: Some(1025),
                    ..good()
                },
            ),
        ];
        for (key, parameters) in cases {
            let error = parameters.check().unwrap_err().to_string();
            assert!(error.contains(&format!("parameter {key} ")), "{error}");
        }
        let long = Parameters {
            title: Some("x".repeat(8192).into()),
            ..good()
        };
        assert!(
            long.check()
                .unwrap_err()
                .to_string()
                .contains("shorten title")
        );
        assert!(udp().check().is_ok());
        assert!(
            Parameters {
                time: 10,
                num: 5,
                ..good()
            }
            .check()
            .is_ok()
        );
        assert!(Parameters { time: 0, ..good() }.check().is_ok());
    }

    #[test]
    fn udp_without_a_length_is_refused() {
        assert!(read(r#"{"udp":true}"#).check().is_err());
        assert!(read(r#"{"tcp":true}"#).check().is_ok());
    }
}
