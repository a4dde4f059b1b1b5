//! What a command line asks of this host, and what iperf3 says where the host does not grant it.

use std::net::{Ipv4Addr, TcpListener};

use linerate_kernel::tcp::{self, Keepalive};
use linerate_kernel::{sctp, socket, thread};
use linerate_model::plan::{End, Plan, Protocol};
use linerate_model::units::Bytes;
use linerate_report::iperf3::ErrorCode;

use crate::iperf3_arguments::{Iperf3Client, Iperf3Common};

use super::failure::Wrong;

/// Without `-t`, `-n` and `-k` a client moves as many bytes as its file of `-F` has, whichever way they go. One that is missing or
/// empty sets no end, and neither does a device or a pipe.
pub(super) fn end_with_file(request: &mut Iperf3Client) {
    let Some(path) = request.common.file.as_ref().filter(|_| !request.end_given) else {
        return;
    };
    let size = std::fs::metadata(path).map_or(0, |facts| facts.len());
    if size > 0 {
        request.plan.end = End::Bytes(Bytes(size));
    }
}

/// Binds this program to its CPU (`-A`): the threads that it starts are bound as well.
pub(super) fn bind_to_cpu(common: &Iperf3Common) -> Result<(), Wrong> {
    let Some(cpu) = common.affinity else {
        return Ok(());
    };
    thread::set_affinity(&[usize::from(cpu)])
        .map_err(|error| Wrong::of_kernel(ErrorCode::AFFINITY, &error.source))
}

/// Refuses an SCTP test where the kernel has no SCTP, before the server is asked for one.
pub(super) fn check_sctp(plan: &Plan) -> Result<(), Wrong> {
    if plan.protocol != Protocol::Sctp {
        return Ok(());
    }
    match sctp::stream_socket(socket::Family::V4) {
        Err(error) => Err(Wrong::of_kernel(ErrorCode::STREAM_CONNECT, &error)),
        Ok(_) => Ok(()),
    }
}

/// A server checks `--cntl-ka` against the system's settings before it listens; of a client's, the connection shows it.
pub(super) fn check_keepalive(common: &Iperf3Common) -> Result<(), Wrong> {
    let asked_idle = common.control_keepalive.and_then(|asked| asked.idle_s);
    match keepalive(common)? {
        Some(in_force) if asked_idle.is_some() && in_force.probes_outlast_idle() => {
            Err(Wrong::of_keepalive(in_force))
        }
        _ => Ok(()),
    }
}

/// The line that a client with `-V` prints of `--cntl-ka`.
pub(super) fn keepalive_line(common: &Iperf3Common) -> Result<Vec<String>, Wrong> {
    let told = common.verbose && !common.json;
    let line = |in_force: Keepalive| {
        let [idle, interval, count] =
            [in_force.idle_s, in_force.interval_s, in_force.count].map(Option::unwrap_or_default);
        format!(
            "Control connection TCP Keepalive TCP_KEEPIDLE/TCP_KEEPINTVL/TCP_KEEPCNT are set to {idle}/{interval}/{count}"
        )
    };
    Ok(keepalive(common)?
        .filter(|_| told)
        .map(line)
        .into_iter()
        .collect())
}

/// What `--cntl-ka` asks for, and the system's settings where it names none.
fn keepalive(common: &Iperf3Common) -> Result<Option<Keepalive>, Wrong> {
    let Some(asked) = common.control_keepalive else {
        return Ok(None);
    };
    let system = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(tcp::keepalive);
    let system = system.map_err(|error| Wrong::of_kernel(ErrorCode::KEEPALIVE_INTERVAL, &error))?;
    Ok(Some(asked.or(system)))
}
