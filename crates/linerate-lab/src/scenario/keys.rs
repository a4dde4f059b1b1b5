//! Every key that a scenario may have: the one place where they are defined.
//!
//! The reader refuses what is not here, its messages quote what is, and docs/reference/scenario.md is made
//! from it.

use linerate_document::{Key, Section};

const fn key(
    name: &'static str,
    holds: &'static str,
    default: &'static str,
    about: &'static str,
) -> Key {
    Key {
        name,
        holds,
        default,
        about,
    }
}

/// What a direction can be set to, at the start and by a change.
pub const SETTINGS: &[Key] = &[
    key(
        "rate",
        "bit/s with k, M, G of 1000, \"1k\" to \"400G\"; \"unlimited\"",
        "unlimited",
        "Rate of the bottleneck. Counts IP bytes and `overhead` of each packet, segment by segment.",
    ),
    key(
        "rtt",
        "time, \"0ms\" to \"10s\"",
        "0ms",
        "Round trip without queues, split evenly between the directions: half of it is this direction's delay.",
    ),
    key(
        "delay",
        "time, \"0ms\" to \"10s\"",
        "half of rtt",
        "One-way delay; instead of `rtt`.",
    ),
    key(
        "jitter",
        "time, \"0ms\" to \"1s\"",
        "0ms",
        "Each direction's delay wanders evenly between 0 and this much more, from one random value to the next in 10 ms (or in `jitter`, where that is longer). It never reorders.",
    ),
    key(
        "queue",
        "bytes with kB, MB, GB or KiB, MiB, GiB, or a multiple of rate × rtt such as \"1x\"",
        "1x, at least 153.8 kB (100 packets)",
        "What may wait for the bottleneck beside the packet that is being sent, counted like `rate`. A multiple is reckoned once, with the rate and rtt at the start.",
    ),
    key(
        "codel",
        "true, false or { target = time, interval = time, ecn = true/false }",
        "false (drop-tail)",
        "Manages the queue by CoDel (RFC 8289) with target 5ms and interval 100ms; `ecn` marks instead of dropping.",
    ),
    key(
        "policer",
        "{ rate = bit/s, burst = bytes }; \"none\"",
        "none",
        "A token bucket before the queue drops what exceeds `rate` once `burst` bytes are used up; both count like `rate` of the path.",
    ),
    key(
        "loss",
        "0 to 1; { every = n }; { model = \"gilbert\", p = 0 to 1, r = 0 to 1, bad = 0 to 1, good = 0 to 1 }",
        "0",
        "Loss on the wire behind the bottleneck, odds of each segment: independent, every nth, or in bursts (Gilbert-Elliott: p turns bad, r turns good again, mean burst 1/r; lost with odds `bad` [1] and `good` [0]). In bulk mode a super-segment is lost whole when one of its segments is.",
    ),
    key(
        "reorder",
        "{ fraction = 0 to 1, delay = time }; \"none\"",
        "none",
        "This share of the packets takes `delay` longer and is overtaken.",
    ),
    key(
        "duplicate",
        "0 to 1",
        "0",
        "Share of the packets that arrive twice.",
    ),
    key(
        "max_packet",
        "{ bytes = 68 to 65535 (IPv6: from 1280 on), icmp = true/false }; \"none\"",
        "none",
        "The largest IP packet that passes. A larger one with Don't Fragment is dropped; with `icmp` its sender gets an ICMP error, without it the path is a black hole. A larger one that may be fragmented arrives whole, but uses the rate and is lost as often as its fragments would. Linux does not lower its path MTU below 552 bytes (net.ipv4.route.min_pmtu); from there on it allows fragments.",
    ),
    key(
        "ecn_threshold",
        "bytes; \"none\"",
        "none",
        "ECN-capable packets that find more than this waiting are marked.",
    ),
];

const OVERHEAD: Key = key(
    "overhead",
    "bytes, 0 to 1000",
    "38",
    "What each packet costs beside its IP bytes wherever a rate counts; 38 is Ethernet with preamble and gap.",
);
const CHANGE: Key = key(
    "change",
    "[[path.change]]",
    "none",
    "Changes at given times.",
);

/// What a path has beside them.
pub const WHOLE_PATH: &[Key] = &[
    OVERHEAD,
    key(
        "forward",
        "[path.forward]",
        "as [path]",
        "What is different from sender to receiver.",
    ),
    key(
        "back",
        "[path.back]",
        "as [path]",
        "What is different from receiver to sender.",
    ),
];

/// How the path is made.
pub const MODES: &[Key] = &[
    key(
        "mode",
        "\"auto\", \"packet\" or \"bulk\"",
        "auto",
        "Whether packets are decided one by one (segmentation offload off) or as super-segments of up to 64 KiB.",
    ),
    key(
        "engine",
        "\"auto\", \"nfqueue\" or \"netem\"",
        "auto",
        "What carries the packets: this program by packet queues of the kernel (NFQUEUE), or the kernel's disciplines netem and tbf.",
    ),
    key(
        "family",
        "\"ipv4\" or \"ipv6\"",
        "ipv4",
        "The hosts' addresses.",
    ),
];

/// The two hosts.
pub const HOSTS: &[Key] = &[
    key(
        "sender",
        "[sender]",
        "see there",
        "The host that runs `linerate test`.",
    ),
    key(
        "receiver",
        "[receiver]",
        "see there",
        "The host that runs `linerate serve`.",
    ),
];

/// The top of the file.
pub(super) const TOP: Section = Section {
    title: "the file",
    about: "A lab: a path between two hosts, the test on it, and what is expected of it.",
    groups: &[
        &[
            key(
                "name",
                "lower-case letters, digits and hyphens, up to 40",
                "needed",
                "The scenario's name; its file is called so.",
            ),
            key("about", "text", "empty", "What it shows, in one sentence."),
            key(
                "seed",
                "0 to 9223372036854775807",
                "1",
                "Decides everything random on the path.",
            ),
        ],
        MODES,
        &[key("path", "[path]", "no delay, unlimited", "The path.")],
        HOSTS,
        &[
            key("test", "[test]", "see there", "The test."),
            key("expect", "[expect]", "nothing", "What a run shall find."),
        ],
    ],
};

/// Both directions.
pub const PATH: Section = Section {
    title: "[path]",
    about: "Both directions. A packet passes, in this order: largest size, policer, queue, bottleneck, loss, delay.",
    groups: &[
        SETTINGS,
        WHOLE_PATH,
        &[
            CHANGE,
            key("cross", "[[path.cross]]", "none", "Competing traffic."),
        ],
    ],
};

/// One direction.
pub(super) const DIRECTION: Section = Section {
    title: "[path.forward], [path.back]",
    about: "What is different in one direction: sender to receiver, receiver to sender. Absent keys are as in [path].",
    groups: &[SETTINGS, &[OVERHEAD, CHANGE]],
};

/// A change.
pub(super) const CHANGES: Section = Section {
    title: "[[path.change]]",
    about: "What changes at a time; both directions, or one as [[path.forward.change]] and [[path.back.change]]. Queue, tokens and packets under way are kept.",
    groups: &[
        &[key(
            "at",
            "time, above 0, before the test ends",
            "needed",
            "When, after the test's start.",
        )],
        SETTINGS,
    ],
};

/// Competing traffic.
pub(super) const CROSS: Section = Section {
    title: "[[path.cross]]",
    about: "Competing traffic through the same bottleneck, from hosts of its own.",
    groups: &[&[
        key(
            "kind",
            "\"udp\" or \"tcp\"",
            "needed",
            "Datagrams at a constant rate, or connections that take what they get.",
        ),
        key(
            "rate",
            "bit/s with k, M, G of 1000",
            "needed with udp; tcp: unlimited",
            "Payload per second, all streams together.",
        ),
        key("streams", "1 to 128", "1", "Connections; only with tcp."),
        key(
            "direction",
            "\"forward\" or \"back\"",
            "forward",
            "Which way it goes.",
        ),
        key(
            "from",
            "time",
            "0s",
            "When it begins, after the test's start.",
        ),
        key(
            "to",
            "time, after `from`",
            "the test's end",
            "When it ends.",
        ),
    ]],
};

/// A host.
pub(super) const HOST: Section = Section {
    title: "[sender], [receiver]",
    about: "How a host is set.",
    groups: &[&[
        key(
            "congestion",
            "name of a congestion control",
            "cubic",
            "Congestion control of its connections.",
        ),
        key(
            "tcp_wmem",
            "\"least initial most\", bytes",
            "as a new namespace has it",
            "net.ipv4.tcp_wmem: send buffers.",
        ),
        key(
            "tcp_rmem",
            "\"least initial most\", bytes",
            "as a new namespace has it",
            "net.ipv4.tcp_rmem: receive buffers.",
        ),
        key(
            "mtu",
            "576 to 65535 (IPv6: from 1280 on)",
            "1500",
            "MTU of its interface and of the router's interface to it, bytes.",
        ),
        key(
            "txqueuelen",
            "0 to 1000000",
            "as the kernel makes it",
            "Length of its interface's transmit queue, packets. The interface is a veth without a queue of its own, so the kernel keeps the number and uses it nowhere.",
        ),
        key(
            "cpu",
            "0.02 to 0.98",
            "a whole core",
            "Share of one core that its program gets beside a busy one. What the lab's own thread and the kernel need of that core comes off both; the report tells what it was.",
        ),
        key(
            "read_rate",
            "bit/s with k, M, G of 1000",
            "unlimited",
            "The application reads no faster than this.",
        ),
        key(
            "sysctl",
            "{ \"net.…\" = \"value\" }",
            "none",
            "Other settings of its network namespace.",
        ),
    ]],
};

/// The test.
pub(super) const TEST: Section = Section {
    title: "[test]",
    about: "The test, run on the sender against the receiver.",
    groups: &[&[key(
        "args",
        "text, or a list of texts",
        "none: 10 s of TCP to the receiver",
        "Arguments of `linerate test`, without the host.",
    )]],
};

/// The expectation.
pub(super) const EXPECT: Section = Section {
    title: "[expect]",
    about: "What a run shall find; `linerate lab grade` compares.",
    groups: &[&[
        key(
            "top",
            "id of a finding, or a list of acceptable ones",
            "nothing said",
            "The first finding; \"path-full\" where nothing is wrong.",
        ),
        key(
            "with",
            "list of ids",
            "none",
            "Findings that must stand beside it.",
        ),
        key(
            "also",
            "list of ids, or \"any\"",
            "none",
            "Findings that may stand beside it.",
        ),
        key(
            "never",
            "list of ids",
            "none",
            "Findings that must not appear.",
        ),
        key(
            "goodput",
            "\"least..most\", bit/s",
            "nothing said",
            "Goodput of the test.",
        ),
        key(
            "utilisation",
            "\"least..most\", shares such as 0.85",
            "nothing said",
            "What part of the bottleneck's rate the path carries in the direction of the data while the test runs, by the path's own counters. Without it the run shows nothing of `top`.",
        ),
    ]],
};

/// The inline tables of a path.
pub(super) const POLICER_TABLE: Section = Section::of(
    "policer",
    &[&[
        Key::of("rate", "bit/s with k, M, G of 1000"),
        Key::of("burst", "bytes, at least one packet"),
    ]],
);

pub(super) const LOSS_TABLE: Section = Section::of(
    "loss",
    &[&[
        Key::of("every", "a whole number from 1 on"),
        Key::of("model", "\"gilbert\""),
        Key::of("p", "above 0, up to 1"),
        Key::of("r", "above 0, up to 1"),
        Key::of("bad", "0 to 1"),
        Key::of("good", "0 to 1"),
    ]],
);

pub(super) const REORDER_TABLE: Section = Section::of(
    "reorder",
    &[&[
        Key::of("fraction", "0 to 1"),
        Key::of("delay", "time, above 0, up to 1s"),
    ]],
);

pub(super) const MAX_PACKET_TABLE: Section = Section::of(
    "max_packet",
    &[&[
        Key::of("bytes", "68 to 65535 (IPv6: from 1280 on)"),
        Key::of("icmp", "true or false"),
    ]],
);

pub(super) const CODEL_TABLE: Section = Section::of(
    "codel",
    &[&[
        Key::of("target", "time, above 0, up to 1s"),
        Key::of("interval", "time, above 0, up to 10s"),
        Key::of("ecn", "true or false"),
    ]],
);

/// All sections, in the order of the reference.
pub const SECTIONS: [&Section; 8] = [
    &TOP, &PATH, &DIRECTION, &CHANGES, &CROSS, &HOST, &TEST, &EXPECT,
];
