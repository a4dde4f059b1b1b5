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
    help: &'static str,
) -> Spelling {
    Spelling {
        long,
        short,
        argument,
        side,
        help,
    }
}

/// Every spelling, in the order in which iperf3 names possibilities.
#[rustfmt::skip]
pub(super) const SPELLINGS: &[Spelling] = {
    use Argument::{None as FLAG, Optional as MAYBE, Required as VALUE};
    &[
        spelling(VALUE, BOTH, "p", "port", "the server's port"),
        spelling(VALUE, BOTH, "f", "format", "unit of rates: one of kmgtKMGT (bits, bytes)"),
        spelling(VALUE, BOTH, "i", "interval", "seconds between reports, 0.1 to 60; 0 = none"),
        spelling(FLAG, SERVER, "D", "daemon", "run in the background"),
        spelling(FLAG, SERVER, "1", "one-off", "serve one client, then exit"),
        spelling(FLAG, BOTH, "V", "verbose", "more detail"),
        spelling(FLAG, BOTH, "J", "json", "one JSON document"),
        spelling(FLAG, BOTH, "", "json-stream", "a line of JSON for every event"),
        spelling(FLAG, BOTH, "", "json-stream-full-output", "--json-stream, and the complete document at the end"),
        spelling(FLAG, BOTH, "v", "version", "the version"),
        spelling(FLAG, BOTH, "s", "server", "be a server"),
        spelling(VALUE, BOTH, "c", "client", "be the client of this server; host%device binds to a device"),
        spelling(FLAG, CLIENT, "u", "udp", "UDP"),
        spelling(VALUE, CLIENT, "b", "bitrate", "rate of each stream, bit/s, 0 = no limit; /n = bursts of n packets"),
        spelling(VALUE, CLIENT, "", "bandwidth", "rate of each stream, bit/s, 0 = no limit; /n = bursts of n packets"),
        spelling(VALUE, SERVER, "", "server-bitrate-limit", "maximum bit/s of a test; RATE/N averages over N seconds"),
        spelling(VALUE, SERVER, "", "server-max-duration", "longest test, s"),
        spelling(VALUE, CLIENT, "t", "time", "seconds to run; 0 = until interrupted"),
        spelling(VALUE, CLIENT, "n", "bytes", "end after this many bytes in each direction"),
        spelling(VALUE, CLIENT, "k", "blockcount", "end after this many blocks in each direction"),
        spelling(VALUE, CLIENT, "l", "length", "bytes per write, message or datagram"),
        spelling(VALUE, CLIENT, "P", "parallel", "streams in each direction, 1 to 128"),
        spelling(FLAG, CLIENT, "R", "reverse", "the server sends"),
        spelling(FLAG, CLIENT, "", "bidir", "both directions at once"),
        spelling(VALUE, CLIENT, "w", "window", "socket buffers"),
        spelling(VALUE, BOTH, "B", "bind", "local address, or address%device"),
        spelling(VALUE, BOTH, "", "bind-dev", "local network interface"),
        spelling(VALUE, BOTH, "", "cport", "first local port of the data streams"),
        spelling(VALUE, CLIENT, "M", "set-mss", "TCP/SCTP maximum segment size"),
        spelling(FLAG, CLIENT, "N", "no-delay", "no Nagle algorithm"),
        spelling(FLAG, BOTH, "4", "version4", "IPv4 only"),
        spelling(FLAG, BOTH, "6", "version6", "IPv6 only"),
        spelling(VALUE, CLIENT, "S", "tos", "IP type of service, 0-255 (0x and 0 prefixes work)"),
        spelling(VALUE, CLIENT, "", "dscp", "DSCP, 0-63 or a name such as ef, af11, cs1"),
        spelling(VALUE, CLIENT, "", "extra-data", "text that both ends put into their JSON"),
        spelling(VALUE, CLIENT, "L", "flowlabel", "IPv6 flow label"),
        spelling(FLAG, CLIENT, "Z", "zerocopy", "send without copying"),
        spelling(VALUE, CLIENT, "O", "omit", "omit the first # seconds"),
        spelling(VALUE, BOTH, "F", "file", "send from, or receive into, this file"),
        spelling(FLAG, CLIENT, "", "repeating-payload", "a repeating pattern instead of random payload"),
        spelling(MAYBE, BOTH, "", "timestamps", "prefix each line with the time; # is a strftime format"),
        spelling(VALUE, BOTH, "A", "affinity", "CPU of the first stream; n,m sets the server's too"),
        spelling(VALUE, CLIENT, "T", "title", "text before each line"),
        spelling(VALUE, CLIENT, "C", "congestion", "TCP congestion control"),
        spelling(VALUE, CLIENT, "", "linux-congestion", "TCP congestion control"),
        spelling(FLAG, CLIENT, "", "sctp", "SCTP, where both kernels have it"),
        spelling(VALUE, CLIENT, "", "nstreams", "SCTP streams of an association"),
        spelling(VALUE, BOTH, "X", "xbind", "SCTP: bind to this address; may be repeated"),
        spelling(VALUE, BOTH, "I", "pidfile", "write the process id to this file"),
        spelling(VALUE, BOTH, "", "logfile", "write the output to this file"),
        spelling(FLAG, BOTH, "", "forceflush", "flush the output at every interval"),
        spelling(FLAG, CLIENT, "", "get-server-output", "show the server's report too"),
        spelling(FLAG, CLIENT, "", "udp-counters-64bit", "64-bit datagram counters"),
        spelling(FLAG, CLIENT, "", "no-fq-socket-pacing", ""),
        spelling(FLAG, CLIENT, "", "dont-fragment", "set don't-fragment on UDP over IPv4"),
        spelling(FLAG, CLIENT, "", "skip-rx-copy", "the receiver discards without copying"),
        spelling(VALUE, CLIENT, "", "username", "user to log in as"),
        spelling(VALUE, CLIENT, "", "rsa-public-key-path", "the server's public key, which encrypts the credentials"),
        spelling(VALUE, SERVER, "", "rsa-private-key-path", "private key that decrypts the clients' credentials"),
        spelling(VALUE, SERVER, "", "authorized-users-path", "file with the users and the hashes of their passwords"),
        spelling(VALUE, SERVER, "", "time-skew-threshold", "seconds that a client's clock may be off"),
        spelling(FLAG, BOTH, "", "use-pkcs1-padding", "credentials as before iperf3 3.17 (either end)"),
        spelling(VALUE, CLIENT, "", "fq-rate", "pacing by the kernel, bit/s for each stream"),
        spelling(VALUE, CLIENT, "", "pacing-timer", "passed on to old servers, µs"),
        spelling(VALUE, CLIENT, "", "connect-timeout", "longest wait for the control connection, ms"),
        spelling(VALUE, SERVER, "", "idle-timeout", "with -1, exit if no client connects within this many seconds"),
        spelling(VALUE, BOTH, "", "rcv-timeout", "end if nothing was received for this time, ms"),
        spelling(VALUE, BOTH, "", "snd-timeout", "end if sent data stays unacknowledged for this time, ms"),
        spelling(MAYBE, BOTH, "", "cntl-ka", "keepalive of the control connection: idle/interval/count"),
        spelling(FLAG, BOTH, "m", "mptcp", "multipath TCP"),
        spelling(FLAG, CLIENT, "", "gsro", "enable UDP GSO/GRO on both client and server (client-only option)"),
        spelling(MAYBE, BOTH, "d", "debug", "accepted (levels 1 to 4), without effect"),
        spelling(FLAG, BOTH, "h", "help", "this text"),
    ]
};
