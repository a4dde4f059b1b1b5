//! Every key that the file of a star may have: the one place where they are defined.
//!
//! The reader refuses what is not here, its messages quote what is, and docs/reference/scenario.md is made from it.

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

const HOSTS: &str = "names: \"node[01-08]\", \"a, b\", or a list of them";
const RATE: &str = "bit/s with k, M, G of 1000";
const QUEUE: &str = "time, \"1ms\" to \"1s\"";

/// What a host can be set to.
pub(super) const HOST_KEYS: &[Key] = &[
    key(
        "rate",
        RATE,
        "needed in [star]",
        "Rate of the host's link in both directions. Counts IP bytes and 38 bytes a packet.",
    ),
    key("rate_out", RATE, "`rate`", "Rate of what the host sends."),
    key("rate_in", RATE, "`rate`", "Rate of what the host receives."),
    key(
        "queue",
        QUEUE,
        "10ms",
        "How long a packet waits in a full queue of the link, at either end. At least ten packets fit, whatever the rate.",
    ),
    key(
        "mtu",
        "576 to 65535 (IPv6: from 1280 on)",
        "1500",
        "MTU of the host's interface and of the switch's interface to it, bytes.",
    ),
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
        "sysctl",
        "{ \"net.…\" = \"value\" }",
        "none",
        "Other settings of its network namespace; those of several tables are all set.",
    ),
];

/// The top of the file.
pub(super) const TOP: Section = Section {
    title: "the file of a star",
    about: "Many hosts, switches and trunks: what a mesh of tests is run over. `linerate lab up NAME --scenario FILE` brings it up.",
    groups: &[&[
        key(
            "name",
            "lower-case letters, digits and hyphens, up to 40",
            "needed",
            "The star's name; its file is called so.",
        ),
        key(
            "about",
            "text",
            "empty",
            "What is planted, in one sentence.",
        ),
        key(
            "seed",
            "0 to 9223372036854775807",
            "1",
            "Decides which member of a trunk a connection takes (Linux 6.11; before, the kernel throws dice).",
        ),
        key("star", "[star]", "needed", "Hosts, switches, trunks."),
        key(
            "expect",
            "[expect]",
            "nothing said",
            "What a mesh of tests has to find first.",
        ),
    ]],
};

/// The star.
pub(super) const STAR: Section = Section {
    title: "[star]",
    about: "What is so for every host, and what there is.",
    groups: &[
        HOST_KEYS,
        &[
            key(
                "switch",
                "[[star.switch]]",
                "needed, one at least",
                "A switch with its hosts.",
            ),
            key("trunk", "[[star.trunk]]", "none", "A link of two switches."),
            key(
                "host",
                "[[star.host]]",
                "none",
                "Hosts that are different from what [star] says.",
            ),
        ],
    ],
};

/// A switch.
pub(super) const SWITCH: Section = Section {
    title: "[[star.switch]]",
    about: "A switch. `linerate lab list --groups NAME` prints each as a group of hosts.",
    groups: &[&[
        key(
            "name",
            "letters, digits, dots, dashes, underscores",
            "needed",
            "The switch's name.",
        ),
        key("hosts", HOSTS, "none", "The hosts on it."),
        key(
            "delay",
            "time, \"0ms\" to \"1s\"",
            "0ms",
            "Each packet that comes from one of its hosts waits for so long: a round trip between two hosts takes the sum of their switches' delays.",
        ),
    ]],
};

/// A trunk.
pub(super) const TRUNK: Section = Section {
    title: "[[star.trunk]]",
    about: "A link of two switches, of one or several members. Each connection takes one member in each direction, by a hash of addresses and ports.",
    groups: &[&[
        key(
            "between",
            "two names of switches: [\"rack1\", \"rack2\"]",
            "needed",
            "Which switches.",
        ),
        key(
            "rate",
            RATE,
            "needed",
            "Rate of each member in each direction. Counts IP bytes and 38 bytes a packet.",
        ),
        key("members", "1 to 16", "1", "How many members."),
        key(
            "queue",
            QUEUE,
            "10ms",
            "How long a packet waits in a member's full queue. At least ten packets fit.",
        ),
        key(
            "mtu",
            "576 to 65535 (IPv6: from 1280 on)",
            "the largest of the hosts'",
            "MTU of the members, bytes.",
        ),
        key(
            "member",
            "[[star.trunk.member]]",
            "none",
            "Members that are different.",
        ),
    ]],
};

/// A member.
pub(super) const MEMBER: Section = Section {
    title: "[[star.trunk.member]]",
    about: "A member of the trunk above that is different from the others.",
    groups: &[&[
        key("number", "1 to `members`", "needed", "Which one."),
        key("rate", RATE, "the trunk's", "Its rate in each direction."),
        key("queue", QUEUE, "the trunk's", "Its queue."),
    ]],
};

/// Hosts that are different.
pub(super) const HOST: Section = Section {
    title: "[[star.host]]",
    about: "Hosts that are different. Where several of these name a host, the later one counts.",
    groups: &[
        &[
            key("hosts", HOSTS, "needed", "Which ones."),
            key(
                "down",
                "\"link\", \"host\" or \"no\"",
                "no",
                "A dead host: its interface has no link; with \"host\", `linerate lab exec` refuses it as well.",
            ),
        ],
        HOST_KEYS,
    ],
};

/// The expectation.
pub(super) const EXPECT: Section = Section {
    title: "[expect] of a star",
    about: "What a mesh of tests has to find first.",
    groups: &[&[
        key(
            "kind",
            "\"none\", \"host-out\", \"host-in\", \"host\", \"group\", \"trunk\", \"pair\" or \"port\"",
            "needed",
            "The kind of the first cause; \"none\": nothing may be named.",
        ),
        key(
            "name",
            "text, or a list of acceptable ones",
            "needed, but for \"none\"",
            "Its name: a host, a switch, `rack1 > rack2`.",
        ),
    ]],
};

/// All sections, in the order of the reference.
pub const SECTIONS: [&Section; 7] = [&TOP, &STAR, &SWITCH, &TRUNK, &MEMBER, &HOST, &EXPECT];
