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
    Congestion,
    ConnectTimeout,
    ControlKeepalive,
    Daemon,
    Debug,
    DontFragment,
    Dscp,
    ExtraData,
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
    NoDelay,
    NoFqSocketPacing,
    Omit,
    OneOff,
    PacingTimer,
    Parallel,
    Pidfile,
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
    SkipReceiveCopy,
    Time,
    TimeSkewThreshold,
    Timestamps,
    Title,
    Tos,
    Udp,
    UdpCounters64Bit,
    UsePkcs1Padding,
    Username,
    Verbose,
    Version,
    Version4,
    Version6,
    Window,
    Zerocopy,
}

/// One spelling of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelling {
    /// Without its dashes.
    pub(super) long: &'static str,
    /// Its letter.
    pub(super) short: Option<char>,
    /// Whether it takes an argument.
    pub(super) argument: Argument,
    /// What it is about.
    pub(super) meaning: Meaning,
}

const fn flag(long: &'static str, short: Option<char>, meaning: Meaning) -> Spelling {
    Spelling {
        long,
        short,
        argument: Argument::None,
        meaning,
    }
}

const fn value(long: &'static str, short: Option<char>, meaning: Meaning) -> Spelling {
    Spelling {
        long,
        short,
        argument: Argument::Required,
        meaning,
    }
}

const fn optional(long: &'static str, short: Option<char>, meaning: Meaning) -> Spelling {
    Spelling {
        long,
        short,
        argument: Argument::Optional,
        meaning,
    }
}

/// Every spelling, in the order in which iperf3 names possibilities.
pub(super) const SPELLINGS: &[Spelling] = &[
    value("port", Some('p'), Meaning::Port),
    value("format", Some('f'), Meaning::Format),
    value("interval", Some('i'), Meaning::Interval),
    flag("daemon", Some('D'), Meaning::Daemon),
    flag("one-off", Some('1'), Meaning::OneOff),
    flag("verbose", Some('V'), Meaning::Verbose),
    flag("json", Some('J'), Meaning::Json),
    flag("json-stream", None, Meaning::JsonStream),
    flag(
        "json-stream-full-output",
        None,
        Meaning::JsonStreamFullOutput,
    ),
    flag("version", Some('v'), Meaning::Version),
    flag("server", Some('s'), Meaning::Server),
    value("client", Some('c'), Meaning::Client),
    flag("udp", Some('u'), Meaning::Udp),
    value("bitrate", Some('b'), Meaning::Bitrate),
    value("bandwidth", None, Meaning::Bitrate),
    value("server-bitrate-limit", None, Meaning::ServerBitrateLimit),
    value("server-max-duration", None, Meaning::ServerMaxDuration),
    value("time", Some('t'), Meaning::Time),
    value("bytes", Some('n'), Meaning::Bytes),
    value("blockcount", Some('k'), Meaning::BlockCount),
    value("length", Some('l'), Meaning::Length),
    value("parallel", Some('P'), Meaning::Parallel),
    flag("reverse", Some('R'), Meaning::Reverse),
    flag("bidir", None, Meaning::Bidirectional),
    value("window", Some('w'), Meaning::Window),
    value("bind", Some('B'), Meaning::Bind),
    value("bind-dev", None, Meaning::BindDevice),
    value("cport", None, Meaning::ClientPort),
    value("set-mss", Some('M'), Meaning::MaximumSegmentSize),
    flag("no-delay", Some('N'), Meaning::NoDelay),
    flag("version4", Some('4'), Meaning::Version4),
    flag("version6", Some('6'), Meaning::Version6),
    value("tos", Some('S'), Meaning::Tos),
    value("dscp", None, Meaning::Dscp),
    value("extra-data", None, Meaning::ExtraData),
    value("flowlabel", Some('L'), Meaning::FlowLabel),
    flag("zerocopy", Some('Z'), Meaning::Zerocopy),
    value("omit", Some('O'), Meaning::Omit),
    value("file", Some('F'), Meaning::File),
    flag("repeating-payload", None, Meaning::RepeatingPayload),
    optional("timestamps", None, Meaning::Timestamps),
    value("affinity", Some('A'), Meaning::Affinity),
    value("title", Some('T'), Meaning::Title),
    value("congestion", Some('C'), Meaning::Congestion),
    value("linux-congestion", None, Meaning::Congestion),
    flag("sctp", None, Meaning::Sctp),
    value("nstreams", None, Meaning::SctpStreams),
    value("xbind", Some('X'), Meaning::SctpBind),
    value("pidfile", Some('I'), Meaning::Pidfile),
    value("logfile", None, Meaning::Logfile),
    flag("forceflush", None, Meaning::ForceFlush),
    flag("get-server-output", None, Meaning::GetServerOutput),
    flag("udp-counters-64bit", None, Meaning::UdpCounters64Bit),
    flag("no-fq-socket-pacing", None, Meaning::NoFqSocketPacing),
    flag("dont-fragment", None, Meaning::DontFragment),
    flag("skip-rx-copy", None, Meaning::SkipReceiveCopy),
    value("username", None, Meaning::Username),
    value("rsa-public-key-path", None, Meaning::RsaPublicKeyPath),
    value("rsa-private-key-path", None, Meaning::RsaPrivateKeyPath),
    value("authorized-users-path", None, Meaning::AuthorizedUsersPath),
    value("time-skew-threshold", None, Meaning::TimeSkewThreshold),
    flag("use-pkcs1-padding", None, Meaning::UsePkcs1Padding),
    value("fq-rate", None, Meaning::FqRate),
    value("pacing-timer", None, Meaning::PacingTimer),
    value("connect-timeout", None, Meaning::ConnectTimeout),
    value("idle-timeout", None, Meaning::IdleTimeout),
    value("rcv-timeout", None, Meaning::ReceiveTimeout),
    value("snd-timeout", None, Meaning::SendTimeout),
    optional("cntl-ka", None, Meaning::ControlKeepalive),
    flag("mptcp", Some('m'), Meaning::Mptcp),
    flag("gsro", None, Meaning::Gsro),
    optional("debug", Some('d'), Meaning::Debug),
    flag("help", Some('h'), Meaning::Help),
];

impl Meaning {
    /// Which end alone knows the option: iperf3 refuses it on the other.
    pub(super) fn belongs_to(self) -> Option<Side> {
        use Meaning as M;
        match self {
            M::Daemon
            | M::OneOff
            | M::ServerBitrateLimit
            | M::ServerMaxDuration
            | M::IdleTimeout
            | M::RsaPrivateKeyPath
            | M::AuthorizedUsersPath
            | M::TimeSkewThreshold => Some(Side::Server),
            M::Udp
            | M::Bitrate
            | M::Time
            | M::Bytes
            | M::BlockCount
            | M::Length
            | M::Parallel
            | M::Reverse
            | M::Bidirectional
            | M::Window
            | M::MaximumSegmentSize
            | M::NoDelay
            | M::Tos
            | M::Dscp
            | M::ExtraData
            | M::FlowLabel
            | M::Zerocopy
            | M::Omit
            | M::RepeatingPayload
            | M::Title
            | M::Congestion
            | M::GetServerOutput
            | M::UdpCounters64Bit
            | M::NoFqSocketPacing
            | M::DontFragment
            | M::SkipReceiveCopy
            | M::Username
            | M::RsaPublicKeyPath
            | M::FqRate
            | M::PacingTimer
            | M::ConnectTimeout
            | M::Sctp
            | M::SctpStreams
            | M::Gsro => Some(Side::Client),
            _ => None,
        }
    }
}

/// One end of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// `-c`.
    Client,
    /// `-s`.
    Server,
}
