//! Every key that `agent.toml` may have.

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
    about: "What a hub may have this host do.",
    groups: &[&[
        key(
            "max_rate",
            "rate, such as \"1G\"",
            "any",
            "Most bit/s of all tests together, in each direction. A test has to ask for a rate then (`-b`).",
        ),
        key(
            "max_seconds",
            "seconds, 1 to 86400",
            "300",
            "Longest test, its omitted part counted.",
        ),
        key(
            "bytes_a_day",
            "bytes, such as \"100G\" (of 1024)",
            "any",
            "Most bytes of all tests between two midnights (UTC). A test takes what its rate and its time amount to when it begins, and gives back what it cannot have moved when it ends sooner. Needs max_rate.",
        ),
        key(
            "peers",
            "list of networks",
            "any",
            "The hosts that it tests with, such as [\"10.0.0.0/8\", \"2001:db8::/32\"].",
        ),
        key(
            "hours",
            "list of times (UTC), such as [\"22:00-06:00\"]",
            "always",
            "When tests may begin.",
        ),
        key(
            "verbs",
            "list of \"test\", \"facts\", \"tune\"",
            "[\"test\", \"facts\"]",
            "What a hub may ask for: tests, what the host is like, changes of its settings.",
        ),
    ]],
};
