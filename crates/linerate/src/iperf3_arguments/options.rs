//! Every option of iperf3 up to 3.21.

/// Whether an option takes an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument {
    /// It is a flag.
    None,
    /// It takes one, attached or as the next word.
    Required,
    /// It takes one after `=` only.
    Optional,
}

/// What an option is about. Several spellings may mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Affinity,
    AuthorizedUsersPath,
    Bidirectional,
    Bind,
    BindDevice,
    Bitrate,
    BlockCount,
    Bytes,
    Client,
    ClientPort,
    ConnectTimeout,
    ControlKeepalive,
    Daemon,
    Debug,
    Dscp,
    File,
    FlowLabel,
    ForceFlush,
    Format,
    FqRate,
    GetServerOutput,
    Gsro,
    Help,
    IdleTimeout,
    Interval,
    Json,
    JsonStream,
    JsonStreamFullOutput,
    Length,
    Logfile,
    MaximumSegmentSize,
    Mptcp,
    NoFqSocketPacing,
    Omit,
    OneOff,
    PacingTimer,
    Parallel,
    Pidfile,
    /// A client's option that means for the plan what [`linerate_model::plan::options`] says.
    Plan,
    Port,
    ReceiveTimeout,
    RepeatingPayload,
    Reverse,
    RsaPrivateKeyPath,
    RsaPublicKeyPath,
    Sctp,
    SctpBind,
    SctpStreams,
    SendTimeout,
    Server,
    ServerBitrateLimit,
    ServerMaxDuration,
    Time,
    TimeSkewThreshold,
    Timestamps,
    Tos,
    UdpCounters64Bit,
    UsePkcs1Padding,
    Username,
    Verbose,
    Version,
    Version4,
    Version6,
    Window,
}

/// One spelling of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelling {
    /// Without its dashes.
    pub(super) long: &'static str,
    /// Its letter; empty where it has none.
    pub(super) short: &'static str,
    /// Whether it takes an argument.
    pub(super) argument: Argument,
    /// Which end alone knows the option: iperf3 refuses it on the other.
    pub(super) side: Option<Side>,
    /// What it is about.
    pub(super) meaning: Meaning,
    /// A line of help; empty for what is refused.
    pub(super) help: &'static str,
}

/// One end of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// `-c`.
    Client,
    /// `-s`.
    Server,
}

const BOTH: Option<Side> = None;
const CLIENT: Option<Side> = Some(Side::Client);
const SERVER: Option<Side> = Some(Side::Server);

const fn spelling(
    argument: Argument,
    side: Option<Side>,
    short: &'static str,
    long: &'static str,
    meaning: Meaning,
    help: &'static str,
) -> Spelling {
    Spelling {
        long,
        short,
        argument,
        side,
        meaning,
        help,
    }
}

/// Every spelling, in the order in which iperf3 names possibilities.
#[rustfmt::skip]
pub(super) const SPELLINGS: &[Spelling] = {
    use Argument::{None as FLAG, Optional as MAYBE, Required as VALUE};
    use Meaning as M;
    &[
        spelling(VALUE, BOTH, "p", "port", M::Port, "the server's port"),
        spelling(VALUE, BOTH, "f", "format", M::Format, "unit of rates: one of kmgtKMGT (bits, bytes)"),
        spelling(VALUE, BOTH, "i", "interval", M::Interval, "seconds between reports, 0.1 to 60; 0 = none"),
        spelling(FLAG, SERVER, "D", "daemon", M::Daemon, "run in the background"),
        spelling(FLAG, SERVER, "1", "one-off", M::OneOff, "serve one client, then exit"),
        spelling(FLAG, BOTH, "V", "verbose", M::Verbose, "more detail"),
        spelling(FLAG, BOTH, "J", "json", M::Json, "one JSON document"),
        spelling(FLAG, BOTH, "", "json-stream", M::JsonStream, "a line of JSON for every event"),
        spelling(FLAG, BOTH, "", "json-stream-full-output", M::JsonStreamFullOutput, "and the whole document after the lines"),
        spelling(FLAG, BOTH, "v", "version", M::Version, "the version"),
        spelling(FLAG, BOTH, "s", "server", M::Server, "be a server"),
        spelling(VALUE, BOTH, "c", "client", M::Client, "be the client of this server; host%device binds to a device"),
        spelling(FLAG, CLIENT, "u", "udp", M::Plan, "UDP"),
        spelling(VALUE, CLIENT, "b", "bitrate", M::Bitrate, "rate of each stream, bit/s, 0 = no limit; /n = n packets a burst"),
        spelling(VALUE, CLIENT, "", "bandwidth", M::Bitrate, "rate of each stream, bit/s, 0 = no limit; /n = n packets a burst"),
        spelling(VALUE, SERVER, "", "server-bitrate-limit", M::ServerBitrateLimit, "most bit/s of a test; /s = averaged over s seconds"),
        spelling(VALUE, SERVER, "", "server-max-duration", M::ServerMaxDuration, "longest test, s"),
        spelling(VALUE, CLIENT, "t", "time", M::Time, "seconds to run; 0 = until interrupted"),
        spelling(VALUE, CLIENT, "n", "bytes", M::Bytes, "end after this many bytes in each direction"),
        spelling(VALUE, CLIENT, "k", "blockcount", M::BlockCount, "end after this many blocks in each direction"),
        spelling(VALUE, CLIENT, "l", "length", M::Length, "bytes a write, a message or a datagram"),
        spelling(VALUE, CLIENT, "P", "parallel", M::Parallel, "streams in each direction, 1 to 128"),
        spelling(FLAG, CLIENT, "R", "reverse", M::Reverse, "the server sends"),
        spelling(FLAG, CLIENT, "", "bidir", M::Bidirectional, "both directions at once"),
        spelling(VALUE, CLIENT, "w", "window", M::Window, "socket buffers"),
        spelling(VALUE, BOTH, "B", "bind", M::Bind, "local address, or address%device"),
        spelling(VALUE, BOTH, "", "bind-dev", M::BindDevice, "local network interface"),
        spelling(VALUE, BOTH, "", "cport", M::ClientPort, "first local port of the data streams"),
        spelling(VALUE, CLIENT, "M", "set-mss", M::MaximumSegmentSize, "TCP/SCTP maximum segment size"),
        spelling(FLAG, CLIENT, "N", "no-delay", M::Plan, "no Nagle algorithm"),
        spelling(FLAG, BOTH, "4", "version4", M::Version4, "IPv4 only"),
        spelling(FLAG, BOTH, "6", "version6", M::Version6, "IPv6 only"),
        spelling(VALUE, CLIENT, "S", "tos", M::Tos, "IP type of service, 0-255 (0x and 0 prefixes work)"),
        spelling(VALUE, CLIENT, "", "dscp", M::Dscp, "DSCP, 0-63 or a name such as ef, af11, cs1"),
        spelling(VALUE, CLIENT, "", "extra-data", M::Plan, "text that both ends put into their JSON"),
        spelling(VALUE, CLIENT, "L", "flowlabel", M::FlowLabel, "IPv6 flow label"),
        spelling(FLAG, CLIENT, "Z", "zerocopy", M::Plan, "send without copying"),
        spelling(VALUE, CLIENT, "O", "omit", M::Omit, "leave out the first seconds"),
        spelling(VALUE, BOTH, "F", "file", M::File, "send from, or receive into, this file"),
        spelling(FLAG, CLIENT, "", "repeating-payload", M::RepeatingPayload, "a repeating pattern instead of random payload"),
        spelling(MAYBE, BOTH, "", "timestamps", M::Timestamps, "a time before each line, in strftime's format"),
        spelling(VALUE, BOTH, "A", "affinity", M::Affinity, "CPU of the first stream; n,m sets the server's too"),
        spelling(VALUE, CLIENT, "T", "title", M::Plan, "text before each line"),
        spelling(VALUE, CLIENT, "C", "congestion", M::Plan, "TCP congestion control"),
        spelling(VALUE, CLIENT, "", "linux-congestion", M::Plan, "TCP congestion control"),
        spelling(FLAG, CLIENT, "", "sctp", M::Sctp, "SCTP, where both kernels have it"),
        spelling(VALUE, CLIENT, "", "nstreams", M::SctpStreams, "SCTP streams of an association"),
        spelling(VALUE, BOTH, "X", "xbind", M::SctpBind, "SCTP: bind to this address, and to those of other -X"),
        spelling(VALUE, BOTH, "I", "pidfile", M::Pidfile, "write the process id to this file"),
        spelling(VALUE, BOTH, "", "logfile", M::Logfile, "write the output to this file"),
        spelling(FLAG, BOTH, "", "forceflush", M::ForceFlush, "flush the output at every interval"),
        spelling(FLAG, CLIENT, "", "get-server-output", M::GetServerOutput, "show the server's report too"),
        spelling(FLAG, CLIENT, "", "udp-counters-64bit", M::UdpCounters64Bit, "64-bit datagram counters"),
        spelling(FLAG, CLIENT, "", "no-fq-socket-pacing", M::NoFqSocketPacing, ""),
        spelling(FLAG, CLIENT, "", "dont-fragment", M::Plan, "set don't-fragment on UDP over IPv4"),
        spelling(FLAG, CLIENT, "", "skip-rx-copy", M::Plan, "the receiver discards without copying"),
        spelling(VALUE, CLIENT, "", "username", M::Username, "user to log in as"),
        spelling(VALUE, CLIENT, "", "rsa-public-key-path", M::RsaPublicKeyPath, "the server's key, to seal the credentials with"),
        spelling(VALUE, SERVER, "", "rsa-private-key-path", M::RsaPrivateKeyPath, "key that opens the clients' credentials"),
        spelling(VALUE, SERVER, "", "authorized-users-path", M::AuthorizedUsersPath, "file with the users and the hashes of their passwords"),
        spelling(VALUE, SERVER, "", "time-skew-threshold", M::TimeSkewThreshold, "seconds that a client's clock may be off"),
        spelling(FLAG, BOTH, "", "use-pkcs1-padding", M::UsePkcs1Padding, "credentials as before iperf3 3.17 (either end)"),
        spelling(VALUE, CLIENT, "", "fq-rate", M::FqRate, "pacing by the kernel, bit/s for each stream"),
        spelling(VALUE, CLIENT, "", "pacing-timer", M::PacingTimer, "passed on to old servers, µs"),
        spelling(VALUE, CLIENT, "", "connect-timeout", M::ConnectTimeout, "longest wait for the control connection, ms"),
        spelling(VALUE, SERVER, "", "idle-timeout", M::IdleTimeout, "with -1, exit where no client came for this many seconds"),
        spelling(VALUE, BOTH, "", "rcv-timeout", M::ReceiveTimeout, "end when nothing was received for so long, ms"),
        spelling(VALUE, BOTH, "", "snd-timeout", M::SendTimeout, "longest time that sent data stays unacknowledged, ms"),
        spelling(MAYBE, BOTH, "", "cntl-ka", M::ControlKeepalive, "keepalive of the control connection: idle/interval/count"),
        spelling(FLAG, BOTH, "m", "mptcp", M::Mptcp, "multipath TCP"),
        spelling(FLAG, CLIENT, "", "gsro", M::Gsro, "enable UDP GSO/GRO on both client and server (client-only option)"),
        spelling(MAYBE, BOTH, "d", "debug", M::Debug, "taken, and prints nothing more; --debug=1 to 4"),
        spelling(FLAG, BOTH, "h", "help", M::Help, "this text"),
    ]
};
