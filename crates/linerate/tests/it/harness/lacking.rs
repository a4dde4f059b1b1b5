//! What this machine lacks for a test, which is then skipped.

use linerate_testing::{Need, skipped};

use super::{Done, IPERF3};

/// Whether a program is installed.
pub(crate) fn has(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}

/// Whether `what` is skipped because one of these programs is not installed.
pub(crate) fn lacks_programs(what: &str, programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !has(program));
    if let Some(program) = missing {
        let why = format!("{program} is not installed (scripts/test-deps.sh)");
        skipped(Need::Programs, what, &why);
    }
    missing.is_some()
}

/// Whether `what` is skipped because a lab said that it cannot start on this machine.
pub(crate) fn lacks_a_lab(what: &str, error: &str) -> bool {
    let reasons = [
        ("needs user namespaces", Need::UserNamespaces),
        ("needs packet queues", Need::PacketQueues),
        ("need CONFIG_NET_SCH_TBF", Need::Tbf),
    ];
    let reason = reasons.iter().find(|(words, _)| error.contains(words));
    if let Some((_, need)) = reason {
        skipped(*need, what, error.trim());
    }
    reason.is_some()
}

/// Whether `what` is skipped because `unshare` failed, or what its script did before `|| exit 77`.
pub(crate) fn lacks_namespaces(what: &str, done: &Done) -> bool {
    let lacks = done.code() == Some(77) || done.error.contains("unshare:");
    if lacks {
        skipped(Need::UserNamespaces, what, done.error.trim());
    }
    lacks
}

/// Debian's iperf3; `None` where `what` is skipped without it.
pub(crate) fn iperf3(what: &str) -> Option<&'static str> {
    (!lacks_programs(what, &[IPERF3])).then_some(IPERF3)
}

/// The newest iperf3, where the caller named it; `None` where `what` is skipped without it.
pub(crate) fn newest(what: &str) -> Option<String> {
    let path = std::env::var("IPERF3_NEW")
        .ok()
        .filter(|path| !path.is_empty());
    if path.is_none() {
        let why = "IPERF3_NEW does not name the newest iperf3";
        skipped(Need::NewestIperf3, what, why);
    }
    path
}
