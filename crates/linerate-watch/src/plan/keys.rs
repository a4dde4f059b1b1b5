//! Every key that `watch.toml` may have: the one place where they are defined.
//!
//! The reader refuses what is not here, its messages quote what is, and docs/reference/watch.md is made from it.

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

/// The file.
pub const TOP: Section = Section {
    title: "the file",
    about: "What is tested regularly, between which hosts and when.",
    groups: &[&[
        key(
            "host",
            "[[host]]",
            "needed",
            "The hosts that take part in tests.",
        ),
        key(
            "segment",
            "[[segment]]",
            "none",
            "Links and machines that the tests of several hosts share.",
        ),
        key(
            "task",
            "[[task]]",
            "none",
            "Tests of one kind between some pairs of hosts.",
        ),
        key(
            "maintenance",
            "[[maintenance]]",
            "none",
            "Times without tests and alerts.",
        ),
        key("channel", "[[channel]]", "none", "Where alerts are sent."),
    ]],
};

/// `[[host]]`.
pub const HOST: Section = Section {
    title: "[[host]]",
    about: "One host, or several that are alike.",
    groups: &[&[
        key(
            "names",
            "set of host names, such as \"node[01-16]\"",
            "needed",
            "The hosts' names. Each is unique in the file.",
        ),
        key(
            "address",
            "name or address",
            "the host's name",
            "What other hosts connect to. Only with one name.",
        ),
        key(
            "reach",
            "\"agent\", \"ssh\", \"linerate\", \"linerate:PORT\", \"iperf3\" or \"iperf3:PORT\"",
            "agent",
            "How the host's end of a test is started: an agent on it connects to the hub; the hub starts one by ssh; or `linerate serve` or `iperf3 -s` runs there (port 5201 unless given), and the host is only tested against.",
        ),
        key(
            "listens",
            "true or false",
            "true",
            "Whether other hosts can connect to it. Of a host behind a NAT, false: it then connects to the others, for both directions.",
        ),
        key(
            "ports",
            "port or range of ports, such as \"5300-5309\"",
            "any that is free",
            "Where its end of a test listens, TCP and UDP, for firewalls. Each test that runs at a time takes one.",
        ),
        key(
            "link",
            "bit/s with K, M, G of 1000",
            "not known",
            "Rate of its interface. Bytes are predicted from it, and `expect = \"auto\"` uses it.",
        ),
        key(
            "duplex",
            "\"exclusive\" or \"independent\"",
            "exclusive",
            "Exclusive: the host takes part in one test at a time. Independent: it may send in one and receive in another.",
        ),
        key(
            "segments",
            "list of names of [[segment]]",
            "none",
            "What its tests with hosts outside of the segment pass.",
        ),
        key(
            "groups",
            "list of names",
            "none",
            "Groups that it belongs to, such as its rack or site. A set of hosts names them as @NAME, and a cause that a group shares is found by them.",
        ),
        key(
            "budget",
            "{ bytes = amount, seconds = number }",
            "none",
            "What its tests may use a day.",
        ),
    ]],
};

/// `[[segment]]`.
pub const SEGMENT: Section = Section {
    title: "[[segment]]",
    about: "A site's uplink, a trunk, a hypervisor, a NAT address: something that the tests of several hosts share.",
    groups: &[&[
        key("name", "text", "needed", "Its name, unique in the file."),
        key(
            "capacity",
            "bit/s with K, M, G of 1000",
            "one test at a time",
            "What it carries. Tests share it as far as their rates are known and fit in.",
        ),
        key(
            "budget",
            "{ bytes = amount, seconds = number }",
            "none",
            "What the tests that pass it may use a day, together.",
        ),
    ]],
};

/// `budget = { … }`.
pub const BUDGET: Section = Section {
    title: "budget",
    about: "What tests may use a day. A budget refills evenly and never holds more than a day's worth.",
    groups: &[&[
        key(
            "bytes",
            "bytes with K, M, G, T of 1000",
            "any amount",
            "Payload, sent and received together.",
        ),
        key(
            "seconds",
            "number above 0, at most 86400",
            "any",
            "Seconds in which a test runs.",
        ),
    ]],
};

/// `[[task]]`.
pub const TASK: Section = Section {
    title: "[[task]]",
    about: "Tests of one kind. `mesh`, `from` and `to`, or `pairs` say who tests whom; data goes from the first host of a pair to the second.",
    groups: &[&[
        key("name", "text", "needed", "Its name, unique in the file."),
        key(
            "test",
            "options of `linerate test`, as a text or a list of words",
            "-t 10",
            "What each test does. It ends by time (`-t` or `--precision`). Options that say who sends, to which port or what is expected have no place here.",
        ),
        key(
            "mesh",
            "set of hosts",
            "none",
            "Every host to every other, in both directions.",
        ),
        key("from", "set of hosts", "none", "Each of these hosts …"),
        key("to", "set of hosts", "none", "… to each of these."),
        key(
            "both_ways",
            "true or false",
            "true",
            "With `from` and `to`: whether data goes back as well, in tests of its own.",
        ),
        key(
            "pairs",
            "list of [\"FROM\", \"TO\"]",
            "none",
            "These pairs. Where an end is a set, each of its hosts.",
        ),
        key(
            "exclude",
            "list of [\"FROM\", \"TO\"]",
            "none",
            "Pairs that are left out. Where an end is a set, each of its hosts.",
        ),
        key(
            "every",
            "time from \"10s\" to \"366d\", such as \"6h\"",
            "6h",
            "Each pair is tested once in every period of this length.",
        ),
        key(
            "slip",
            "time from \"1s\" to \"366d\"",
            "until its period ends",
            "How much later than its moment a test may end. A test that cannot is not run, and says why.",
        ),
        key(
            "sampling",
            "\"stratified\", \"poisson\" or \"fixed\"",
            "stratified",
            "How the moment is chosen: evenly distributed within each period; exponential gaps, cut off at three periods (RFC 2330, section 11.1); or the beginning of each period.",
        ),
        key(
            "hours",
            "list of texts such as \"22:00-06:00\"",
            "all",
            "Hours of the day, in UTC, in which tests run.",
        ),
        key(
            "expect",
            "\"auto\", \">= 8G\" or \">= 80% of baseline\"",
            "nothing",
            "Goodput that each test must show. \"auto\" is 0.9 times the least of the link rates, the paced rate and the pair's own baseline.",
        ),
        key(
            "quiet",
            "percentage such as \"20%\"",
            "tests begin beside any traffic",
            "A test does not begin while other traffic uses more than this share of a link.",
        ),
    ]],
};

/// `[[maintenance]]`.
pub const MAINTENANCE: Section = Section {
    title: "[[maintenance]]",
    about: "A time in which hosts are not tested, and nobody is alerted for them.",
    groups: &[&[
        key("hosts", "set of hosts", "all", "Which hosts."),
        key(
            "from",
            "date and time, such as \"2026-12-01T22:00:00Z\"",
            "needed",
            "When it begins.",
        ),
        key(
            "until",
            "date and time, such as \"2026-12-02T02:00:00+01:00\"",
            "needed",
            "When it ends.",
        ),
        key("why", "text", "empty", "Why, for those who ask."),
    ]],
};

/// `[[channel]]`.
pub const CHANNEL: Section = Section {
    title: "[[channel]]",
    about: "Where alerts are sent once they are confirmed, and again when they change or are over.",
    groups: &[&[
        key(
            "kind",
            "\"alertmanager\", \"webhook\" or \"mail\"",
            "needed",
            "What is sent: alerts as Alertmanager takes them; or one JSON document or one mail for each alert that fires, changes or ends.",
        ),
        key(
            "url",
            "address, such as \"http://127.0.0.1:9093\"",
            "needed",
            "Where to. Of an Alertmanager the address without `/api/v2/alerts`. Of a mail server `smtp://[USER@]HOST[:PORT]`, or `smtps://` where TLS begins with the connection. With a user TLS is needed, without one it is used where the server offers it.",
        ),
        key(
            "name",
            "text",
            "the kind",
            "Its name on the pages. It is unique in the file.",
        ),
        key(
            "secret_file",
            "absolute path",
            "none",
            "A file with a secret. A webhook's header `Linerate-Signature` is then the HMAC-SHA256 of what is sent. Of mail, the user's password.",
        ),
        key(
            "from",
            "mail address",
            "needed for mail",
            "The sender of mails.",
        ),
        key(
            "to",
            "list of mail addresses",
            "needed for mail",
            "Who gets the mails.",
        ),
    ]],
};

/// All of them, in the order of the reference.
pub const SECTIONS: &[&Section] = &[
    &TOP,
    &HOST,
    &SEGMENT,
    &BUDGET,
    &TASK,
    &MAINTENANCE,
    &CHANNEL,
];
