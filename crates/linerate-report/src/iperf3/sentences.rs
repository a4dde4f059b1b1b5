//! iperf3's errors: their numbers, which servers send to clients, and its sentences for them.

/// The number of one of iperf3's errors (`iperf_api.h` of 3.21). A peer may send any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub i32);

/// The sentences of `iperf_strerror`, for all that can go wrong once the command line was accepted, behind which iperf3
/// writes a colon, and the text of errno where there is one.
const WITH_ERRNO: [(i32, &str); 52] = [
    (14, "unable to open -F file"),
    (17, "unable to open log file"),
    (
        36,
        "control connection Keepalive period should be larger than the full retry period (interval * count)",
    ),
    (100, "unable to create a new test"),
    (101, "test initialization failed"),
    (102, "unable to start listener for connections"),
    (
        103,
        "unable to connect to server - server may have stopped running or use a different port, firewall issue, etc.",
    ),
    (104, "unable to accept connection from client"),
    (105, "unable to send cookie to server"),
    (106, "unable to receive cookie at server"),
    (107, "unable to write to the control socket"),
    (108, "unable to read from the control socket"),
    (
        111,
        "unable to send control message - port may not be available, the other side may have stopped running, etc.",
    ),
    (
        112,
        "unable to receive control message - port may not be available, the other side may have stopped running, etc.",
    ),
    (113, "unable to send parameters to server"),
    (114, "unable to receive parameters from client"),
    (115, "unable to package results"),
    (116, "unable to send results"),
    (117, "unable to receive results"),
    (118, "select failed"),
    (122, "unable to set TCP/SCTP NODELAY"),
    (123, "unable to set TCP/SCTP MSS"),
    (124, "unable to set socket buffer size"),
    (125, "unable to set IP TOS"),
    (126, "unable to set IPv6 traffic class"),
    (128, "unable to reuse address on socket"),
    (129, "unable to set socket to non-blocking"),
    (130, "unable to set socket window size"),
    (132, "unable to set CPU affinity"),
    (133, "unable to become a daemon"),
    (135, "unable to write PID file"),
    (136, "Unable to set/reset IPV6_V6ONLY"),
    (137, "unable to set SCTP_DISABLE_FRAGMENTS"),
    (138, "unable to set SCTP_INIT num of SCTP streams\n"),
    (140, "unable to set socket pacing"),
    (148, "unable to set TCP USER_TIMEOUT"),
    (150, "unable to create thread"),
    (151, "unable to cancel thread"),
    (152, "unable to join thread"),
    (155, "unable to set socket keepalive (SO_KEEPALIVE) option"),
    (
        156,
        "unable to set socket keepalive TCP period (TCP_KEEPIDLE) option",
    ),
    (
        157,
        "unable to set/get socket keepalive TCP retry interval (TCP_KEEPINTVL) option",
    ),
    (
        158,
        "unable to set/get socket keepalive TCP number of retries (TCP_KEEPCNT) option",
    ),
    (160, "server test duration expired"),
    (200, "unable to create a new stream"),
    (201, "unable to initialize stream"),
    (202, "unable to start stream listener"),
    (203, "unable to connect stream"),
    (204, "unable to accept stream connection"),
    (205, "unable to write to stream socket"),
    (206, "unable to read from stream socket"),
    (300, "unable to create new timer"),
];

/// Those behind which it writes nothing.
const ALONE: [(i32, &str); 23] = [
    (18, "no SCTP support available"),
    (
        22,
        "you must specify a username, password, and path to a valid RSA public key",
    ),
    (
        23,
        "you must specify a path to a valid RSA private key and a user credential file",
    ),
    (27, "total required bandwidth is larger than server limit"),
    (35, "cannot access authorized users file"),
    (
        37,
        "client's requested duration exceeds the server's maximum permitted limit",
    ),
    (109, "control socket has closed unexpectedly"),
    (
        110,
        "received an unknown control message (ensure other side is iperf3 and not iperf)",
    ),
    (119, "the client has terminated"),
    (120, "the server has terminated"),
    (121, "the server is busy running a test. try again later"),
    (127, "unable to set IPv6 flow label"),
    (131, "protocol does not exist"),
    (
        134,
        "unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on this host",
    ),
    (141, "socket buffer size not set correctly"),
    (142, "test authorization failed"),
    (
        143,
        "Unable to bind-to-device (check perror, maybe permissions?)",
    ),
    (144, "idle timeout for receiving data"),
    (145, "unable to set IP Do-Not-Fragment flag"),
    (
        146,
        "`<ip>%<dev>` is not supported as system does not support bind to device",
    ),
    (
        147,
        "host device name (ip%<dev>) is supported (and required) only for IPv6 link-local address",
    ),
    (207, "stream socket has closed unexpectedly"),
    (208, "stream has an invalid id"),
];

impl ErrorCode {
    /// `IEFILE`.
    pub const FILE: Self = Self(14);
    /// `IECNTLKA`.
    pub const KEEPALIVE_PERIOD: Self = Self(36);
    /// `IESETFLOW`.
    pub const FLOW_LABEL: Self = Self(127);
    /// `IEAFFINITY`.
    pub const AFFINITY: Self = Self(132);
    /// `IESETBUF2`.
    pub const BUFFERS: Self = Self(141);
    /// `IESETCNTLKAINTERVAL`.
    pub const KEEPALIVE_INTERVAL: Self = Self(157);
    /// `IELOGFILE`.
    pub const LOGFILE: Self = Self(17);
    /// `IEINITTEST`.
    pub const INIT: Self = Self(101);
    /// `IELISTEN`.
    pub const LISTEN: Self = Self(102);
    /// `IECONNECT`.
    pub const CONNECT: Self = Self(103);
    /// `IECTRLCLOSE`.
    pub const CONTROL_CLOSED: Self = Self(109);
    /// `IEMESSAGE`.
    pub const UNKNOWN_MESSAGE: Self = Self(110);
    /// `IESENDMESSAGE`.
    pub const SEND_MESSAGE: Self = Self(111);
    /// `IERECVMESSAGE`.
    pub const RECEIVE_MESSAGE: Self = Self(112);
    /// `IERECVPARAMS`.
    pub const RECEIVE_PARAMETERS: Self = Self(114);
    /// `IERECVRESULTS`.
    pub const RECEIVE_RESULTS: Self = Self(117);
    /// `IECLIENTTERM`.
    pub const CLIENT_TERMINATED: Self = Self(119);
    /// `IESERVERTERM`.
    pub const SERVER_TERMINATED: Self = Self(120);
    /// `IEACCESSDENIED`.
    pub const BUSY: Self = Self(121);
    /// `IEDAEMON`.
    pub const DAEMON: Self = Self(133);
    /// `IEPIDFILE`.
    pub const PIDFILE: Self = Self(135);
    /// `IEAUTHTEST`.
    pub const NOT_AUTHENTICATED: Self = Self(142);
    /// `IENOMSG`.
    pub const IDLE: Self = Self(144);
    /// `IESERVERTESTDURATIONEXPIRED`.
    pub const EXPIRED: Self = Self(160);
    /// `IESTREAMCONNECT`.
    pub const STREAM_CONNECT: Self = Self(203);
    /// `IESTREAMCLOSE`.
    pub const STREAM_CLOSED: Self = Self(207);

    /// iperf3's sentence, with the text of `errno` where iperf3 appends it; 0 = there is no errno.
    pub fn sentence(self, errno: i32) -> String {
        let of = |table: &[(i32, &'static str)]| {
            let known = table.iter().find(|(code, _)| *code == self.0);
            known.map(|(_, text)| (*text).to_owned())
        };
        of(&ALONE).unwrap_or_else(|| {
            let text = of(&WITH_ERRNO).unwrap_or_else(|| format!("int_errno={}", self.0));
            format!("{text}: {}", errno_text(errno))
        })
    }
}

/// The C library's text for an error number: `Connection refused`. Empty for 0.
pub fn errno_text(errno: i32) -> String {
    if errno == 0 {
        return String::new();
    }
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    let added = format!(" (os error {errno})");
    text.strip_suffix(&added).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_those_of_iperf_strerror() {
        for (code, errno, text) in [
            (
                ErrorCode::CONNECT,
                111,
                "unable to connect to server - server may have stopped running or use a different port, firewall issue, etc.: Connection refused",
            ),
            (
                ErrorCode::LISTEN,
                98,
                "unable to start listener for connections: Address already in use",
            ),
            (
                ErrorCode::BUSY,
                0,
                "the server is busy running a test. try again later",
            ),
            (
                ErrorCode::CONTROL_CLOSED,
                104,
                "control socket has closed unexpectedly",
            ),
            // As iperf3 writes it: the colon stands, whether or not there is an errno.
            (ErrorCode::EXPIRED, 0, "server test duration expired: "),
            (
                ErrorCode(9999),
                2,
                "int_errno=9999: No such file or directory",
            ),
        ] {
            assert_eq!(code.sentence(errno), text);
        }
    }

    #[test]
    fn each_number_stands_once_and_in_order() {
        for table in [&ALONE[..], &WITH_ERRNO[..]] {
            assert!(table.is_sorted_by(|one, next| one.0 < next.0));
        }
        let twice = |code: &i32| WITH_ERRNO.iter().any(|(other, _)| other == code);
        assert!(!ALONE.iter().any(|(code, _)| twice(code)));
    }
}
