//! What `-h` and `-v` say.

use std::fmt::Write as _;

use super::options::{Argument, SPELLINGS, Side};

const HEAD: &str = "\
Usage: iperf3 [-s|-c host] [options]
       iperf3 [-h|--help] [-v|--version]

This is linerate in its iperf3 mode: iperf3's options, text and JSON, with linerate's measuring
behind them. It talks to any iperf3. `linerate --help' shows linerate's own commands; docs/iperf3.md
says what is the same, what is different and what is not built.

";

const TAIL: &str = "
Sizes (-n -k -l -w) take K, M, G, T of 1024; rates (-b --fq-rate --server-bitrate-limit) of 1000.
Long options may be abbreviated. The password for --username is read from IPERF3_PASSWORD.
";

/// The text of `-h`, made from the table of options.
pub(crate) fn help_text() -> String {
    let mut text = HEAD.to_owned();
    for (title, side) in [
        ("Server or client", None),
        ("Server only", Some(Side::Server)),
        ("Client only", Some(Side::Client)),
    ] {
        text += title;
        text += ":\n";
        for spelling in SPELLINGS
            .iter()
            .filter(|spelling| spelling.meaning.belongs_to() == side)
        {
            let Some(meaning) = spelling.meaning.explained() else {
                continue;
            };
            let short = spelling
                .short
                .map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
            let argument = match spelling.argument {
                Argument::None => "",
                Argument::Required => " #",
                Argument::Optional => "[=#]",
            };
            let option = format!("{short}--{}{argument}", spelling.long);
            let _ = writeln!(text, "  {option:<34} {meaning}");
        }
    }
    text + TAIL
}

/// The text of `-v`: a first line that programs which look for `iperf 3.x` can read.
pub(crate) fn version_text(version: &str, system: &str) -> String {
    format!(
        "iperf 3.21 (linerate {version})\n{system}\nThis is linerate's iperf3 mode, not ESnet's iperf3.\n\
         Optional features available: CPU affinity setting, IPv6 flow label, TCP congestion algorithm setting, \
         sendfile / zerocopy, socket pacing, authentication, bind to device, support IPv4 don't fragment, \
         POSIX threads, GSO/GRO support\n"
    )
}

impl super::options::Meaning {
    /// A line of help; `None` for what is refused.
    fn explained(self) -> Option<&'static str> {
        use super::options::Meaning as M;
        Some(match self {
            M::Affinity => "CPU of the first stream; n,m sets the server's too",
            M::AuthorizedUsersPath => "file with the users and the hashes of their passwords",
            M::Bidirectional => "both directions at once",
            M::Bind => "local address, or address%device",
            M::BindDevice => "local network interface",
            M::Bitrate => "rate of each stream, bit/s, 0 = no limit; /n = n packets a burst",
            M::BlockCount => "end after this many blocks in each direction",
            M::Bytes => "end after this many bytes in each direction",
            M::Client => "be the client of this server; host%device binds to a device",
            M::ClientPort => "first local port of the data streams",
            M::Congestion => "TCP congestion control",
            M::ConnectTimeout => "longest wait for the control connection, ms",
            M::ControlKeepalive => "keepalive of the control connection: idle/interval/count",
            M::Daemon => "run in the background",
            M::Debug => "taken, and prints nothing more; --debug=1 to 4",
            M::DontFragment => "set don't-fragment on UDP over IPv4",
            M::Dscp => "DSCP, 0-63 or a name such as ef, af11, cs1",
            M::ExtraData => "text that both ends put into their JSON",
            M::File => "send from, or receive into, this file",
            M::FlowLabel => "IPv6 flow label",
            M::ForceFlush => "flush the output at every interval",
            M::Format => "unit of rates: one of kmgtKMGT (bits, bytes)",
            M::FqRate => "pacing by the kernel, bit/s for each stream",
            M::GetServerOutput => "show the server's report too",
            M::Gsro => "enable UDP GSO/GRO on both client and server (client-only option)",
            M::Help => "this text",
            M::IdleTimeout => "with -1, exit where no client came for this many seconds",
            M::Interval => "seconds between reports, 0.1 to 60; 0 = none",
            M::Json => "one JSON document",
            M::JsonStream => "a line of JSON for every event",
            M::JsonStreamFullOutput => "and the whole document after the lines",
            M::Length => "bytes a write, a message or a datagram",
            M::Logfile => "write the output to this file",
            M::MaximumSegmentSize => "TCP/SCTP maximum segment size",
            M::Mptcp => "multipath TCP",
            M::NoDelay => "no Nagle algorithm",
            M::Omit => "leave out the first seconds",
            M::OneOff => "serve one client, then exit",
            M::PacingTimer => "passed on to old servers, µs",
            M::Parallel => "streams in each direction, 1 to 128",
            M::Pidfile => "write the process id to this file",
            M::Port => "the server's port",
            M::ReceiveTimeout => "end when nothing was received for so long, ms",
            M::RepeatingPayload => "a repeating pattern instead of random payload",
            M::Reverse => "the server sends",
            M::RsaPrivateKeyPath => "key that opens the clients' credentials",
            M::RsaPublicKeyPath => "the server's key, to seal the credentials with",
            M::SendTimeout => "longest time that sent data stays unacknowledged, ms",
            M::Sctp => "SCTP, where both kernels have it",
            M::SctpBind => "SCTP: bind to this address, and to those of other -X",
            M::SctpStreams => "SCTP streams of an association",
            M::Server => "be a server",
            M::ServerBitrateLimit => "most bit/s of a test; /s = averaged over s seconds",
            M::ServerMaxDuration => "longest test, s",
            M::SkipReceiveCopy => "the receiver discards without copying",
            M::Time => "seconds to run; 0 = until interrupted",
            M::TimeSkewThreshold => "seconds that a client's clock may be off",
            M::Timestamps => "a time before each line, in strftime's format",
            M::Title => "text before each line",
            M::Tos => "IP type of service, 0-255 (0x and 0 prefixes work)",
            M::Udp => "UDP",
            M::UdpCounters64Bit => "64-bit datagram counters",
            M::UsePkcs1Padding => "credentials as before iperf3 3.17 (either end)",
            M::Username => "user to log in as",
            M::Verbose => "more detail",
            M::Version => "the version",
            M::Version4 => "IPv4 only",
            M::Version6 => "IPv6 only",
            M::Window => "socket buffers",
            M::Zerocopy => "send without copying",
            M::NoFqSocketPacing => return None,
        })
    }
}
