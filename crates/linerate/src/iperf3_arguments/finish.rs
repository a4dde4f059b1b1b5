//! What is checked when the last option was read, in iperf3's order, and the action that comes of it.

use linerate_model::plan::{
    DEFAULT_SCTP_BLOCK, DEFAULT_UDP_BLOCK, Direction, End, MAX_UDP_BLOCK, MIN_UDP_BLOCK, Protocol,
};
use linerate_model::units::{BitRate, Bytes, Nanos};

use super::build::Draft;
use super::error::Iperf3ArgumentError as Error;
use super::options::Side;
use super::{Iperf3Action, Iperf3Client, Iperf3Server};

/// iperf3's default rate of UDP: it says 1 Mbit/s and means 2^20.
const IPERF3_UDP_RATE: BitRate = BitRate(1 << 20);
/// The longest test that a plan can have, for `-t 0`.
const LONGEST_TEST: Nanos = Nanos::from_millis(86_400_000);

impl Draft {
    /// The action, once the last option was read.
    pub(super) fn finish(mut self) -> Result<Iperf3Action, Error> {
        self.check_sides()?;
        self.check_authentication()?;
        if self.role == Some(Side::Client)
            && self.receive_timeout_ms.is_some()
            && self.plan.direction == Direction::Send
        {
            return Err(Error::parameter(
                "client receive timeout is valid only in receiving mode: ",
            ));
        }
        if self.common.file.is_some() && self.plan.protocol == Protocol::Udp {
            return Err(Error::parameter("cannot transfer file using UDP"));
        }
        if self.common.file.is_some() && self.plan.direction == Direction::Both {
            return Err(Error::parameter(
                "-F with --bidir would overwrite the file that it sends; leave one of them away",
            ));
        }
        self.common.receive_timeout_ms = self.receive_timeout_ms.unwrap_or(120_000);
        self.settle_length()?;
        self.settle_rate();
        self.settle_end()?;
        self.warn_of_json();
        match self.role {
            None => Err(Error::parameter(
                "must either be a client (-c) or server (-s)",
            )),
            Some(Side::Client) => self.into_client(),
            Some(Side::Server) => Ok(self.into_server()),
        }
    }

    fn check_sides(&self) -> Result<(), Error> {
        let Some(role) = self.role else { return Ok(()) };
        let text = match role {
            Side::Client => "some option you are trying to set is server only",
            Side::Server => "some option you are trying to set is client only",
        };
        match self.sided.iter().find(|(side, _)| *side != role) {
            Some((_, given)) => Err(Error::detailed(text, Some(format!("given: {given}")))),
            None => Ok(()),
        }
    }

    fn check_authentication(&self) -> Result<(), Error> {
        let (client, server) = (&self.client, &self.server);
        if client.username.is_some() != client.rsa_public_key_path.is_some()
            && self.role == Some(Side::Client)
        {
            return Err(Error::client_keys(None));
        }
        let keys = server.rsa_private_key_path.is_some();
        if keys != server.authorized_users_path.is_some() && self.role == Some(Side::Server) {
            return Err(Error::server_keys(None));
        }
        Ok(())
    }

    fn settle_length(&mut self) -> Result<(), Error> {
        self.client.length_given = self.length.is_some();
        let udp = self.plan.protocol == Protocol::Udp;
        match self.length {
            Some(length) if length > 1 << 20 => {
                return Err(Error::parameter(
                    "block size too large (maximum = 1048576 bytes)",
                ));
            }
            Some(length) if udp && !(MIN_UDP_BLOCK..=MAX_UDP_BLOCK).contains(&length) => {
                let text = format!(
                    "block size invalid (minimum = {MIN_UDP_BLOCK} bytes, maximum = {MAX_UDP_BLOCK} bytes)"
                );
                return Err(Error::parameter(text));
            }
            Some(length) => self.plan.block_bytes = Bytes(length),
            None if udp => self.plan.block_bytes = DEFAULT_UDP_BLOCK,
            None if self.plan.protocol == Protocol::Sctp => {
                self.plan.block_bytes = DEFAULT_SCTP_BLOCK;
            }
            None => {}
        }
        Ok(())
    }

    fn settle_rate(&mut self) {
        self.plan.rate_is_default = self.rate.is_none();
        let default = if self.plan.protocol == Protocol::Udp {
            IPERF3_UDP_RATE.bits_per_second()
        } else {
            0
        };
        self.plan.rate_bps = Some(self.rate.unwrap_or(default))
            .filter(|rate| *rate > 0)
            .map(BitRate);
    }

    fn settle_end(&mut self) -> Result<(), Error> {
        let conditions = [self.time_given, self.bytes > 0, self.blocks > 0];
        if conditions.iter().filter(|given| **given).count() > 1 {
            return Err(Error::parameter(
                "only one test end condition (-t, -n, -k) may be specified",
            ));
        }
        self.client.end_given = conditions.contains(&true);
        if self.bytes > 0 {
            self.plan.end = End::Bytes(Bytes(self.bytes));
        } else if self.blocks > 0 {
            self.plan.end = End::Blocks(self.blocks);
        } else if self.client.endless {
            self.plan.end = End::TimeNs(LONGEST_TEST);
        }
        Ok(())
    }

    fn warn_of_json(&mut self) {
        if !self.common.json {
            return;
        }
        if self.common.format.is_some() {
            self.warn("Report format (-f) flag ignored with JSON output (-J)");
        }
        if self.common.verbose {
            self.warn("Verbose output (-v) may interfere with JSON output (-J)");
        }
        if self.common.debug_level > 0 {
            self.warn("Debug output (-d) may interfere with JSON output (-J)");
        }
    }

    /// What means nothing for the test's protocol: iperf3 takes it and does nothing.
    fn drop_what_the_protocol_has_not(&mut self) {
        let plan = &mut self.plan;
        if plan.protocol != Protocol::Tcp {
            (plan.zerocopy, plan.mptcp, plan.congestion) = (false, false, None);
        }
        if plan.protocol == Protocol::Udp {
            (plan.nodelay, plan.mss_bytes) = (false, None);
        }
        if plan.protocol == Protocol::Sctp {
            plan.skip_receive_copy = false;
        } else {
            plan.sctp_streams = None;
            plan.sctp_bind.clear();
        }
    }

    fn into_client(mut self) -> Result<Iperf3Action, Error> {
        self.drop_what_the_protocol_has_not();
        let received = Nanos::from_millis(self.common.receive_timeout_ms);
        self.plan.receive_timeout_ns = (self.plan.direction != Direction::Send).then_some(received);
        self.plan.send_timeout_ns = self.common.send_timeout_ms.map(Nanos::from_millis);
        // iperf3 waits for ever for a server that does not read.
        self.plan.idle_timeout_ns = self.plan.idle_timeout_ns.max(received);
        self.plan
            .check()
            .map_err(|error| Error::parameter(error.to_string()))?;
        let client = Iperf3Client {
            plan: self.plan,
            common: self.common,
            ..self.client
        };
        Ok(Iperf3Action::Client(Box::new(client)))
    }

    fn into_server(self) -> Iperf3Action {
        let plan = self.plan;
        Iperf3Action::Server(Box::new(Iperf3Server {
            common: self.common,
            port: plan.port,
            family: plan.family,
            bind: plan.bind.map(String::from),
            bind_device: plan.bind_device.map(String::from),
            sctp_bind: plan.sctp_bind.into_iter().map(String::from).collect(),
            interval_ns: plan.interval_ns,
            time_skew_threshold_s: self.skew_threshold.unwrap_or(10),
            ..self.server
        }))
    }
}
