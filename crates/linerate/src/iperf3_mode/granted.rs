//! What a command line asks of this host, and what iperf3 says where the host does not grant it.

use std::net::{Ipv4Addr, TcpListener};

use linerate_engine::EngineError;
use linerate_kernel::tcp::{self, Keepalive};
use linerate_kernel::{socket, thread};
use linerate_model::plan::End;
use linerate_model::units::Bytes;

use crate::action::Failure;
use crate::iperf3_arguments::{Iperf3Client, Iperf3Common};
use crate::printer::Printer;

use super::fail;

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
pub(super) fn bind_to_cpu(common: &Iperf3Common, printer: &Printer) -> Result<(), Failure> {
    let Some(cpu) = common.affinity else {
        return Ok(());
    };
    thread::set_affinity(&[usize::from(cpu)]).map_err(|error| {
        let text = format!("unable to set CPU affinity: {}", kernel_text(&error.source));
        fail(printer, &text)
    })
}

/// Refuses an SCTP test: by the kernel's own answer where it has no SCTP.
pub(super) fn refuse_sctp(request: &Iperf3Client, printer: &Printer) -> Result<(), Failure> {
    if !request.sctp {
        return Ok(());
    }
    Err(match socket::sctp_stream_socket(socket::Family::V4) {
        Err(error) => {
            let text = format!("unable to connect stream: {}", kernel_text(&error));
            fail(printer, &text)
        }
        Ok(_) => fail(
            printer,
            "no SCTP support available\n  this kernel has SCTP, but linerate runs tests over TCP and UDP (-u) only",
        ),
    })
}

/// Checks `--cntl-ka` against the system's settings, and gives the line that `-V` prints.
pub(super) fn check_keepalive(
    common: &Iperf3Common,
    printer: &Printer,
) -> Result<Vec<String>, Failure> {
    let Some(asked) = common.control_keepalive else {
        return Ok(Vec::new());
    };
    let system = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(tcp::keepalive);
    let system = system.map_err(|error| {
        let text = "unable to set/get socket keepalive TCP retry interval (TCP_KEEPINTVL) option";
        fail(printer, &format!("{text}: {}", kernel_text(&error)))
    })?;
    let in_force = |of: fn(&Keepalive) -> Option<u32>| of(&asked).or(of(&system)).unwrap_or(0);
    let idle = in_force(|one| one.idle_s);
    let interval = in_force(|one| one.interval_s);
    let count = in_force(|one| one.count);
    if asked.idle_s.is_some() && u64::from(idle) <= u64::from(interval) * u64::from(count) {
        printer.tell(&format!(
            "iperf3: Keepalive Idle time ({idle}) should be greater than Retries-interval ({interval}) times Retries-count ({count})"
        ));
        let text = "control connection Keepalive period should be larger than the full retry period (interval * count): ";
        return Err(fail(printer, text));
    }
    let told = common.verbose && !common.json;
    let line = format!(
        "Control connection TCP Keepalive TCP_KEEPIDLE/TCP_KEEPINTVL/TCP_KEEPCNT are set to {idle}/{interval}/{count}"
    );
    Ok(told.then_some(line).into_iter().collect())
}

/// iperf3's number of a server's refusal of the buffers that were asked for.
const BUFFERS: i32 = 141;

/// iperf3's sentence where it has one.
pub(super) fn sentence(error: &EngineError) -> String {
    match error {
        EngineError::File { source, .. } => {
            format!("unable to open -F file: {}", kernel_text(source))
        }
        EngineError::Buffers { .. } | EngineError::Refused { code: BUFFERS, .. } => {
            "socket buffer size not set correctly".to_owned()
        }
        EngineError::FlowLabel { .. } => "unable to set IPv6 flow label".to_owned(),
        other => other.to_string(),
    }
}

/// An error's text as `strerror` has it.
fn kernel_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_come_without_their_number() {
        let error = std::io::Error::from_raw_os_error(93);
        assert_eq!(kernel_text(&error), "Protocol not supported");
        let path = "f".into();
        let error = EngineError::File {
            path,
            source: std::io::Error::from_raw_os_error(2),
        };
        assert_eq!(
            sentence(&error),
            "unable to open -F file: No such file or directory"
        );
    }
}
