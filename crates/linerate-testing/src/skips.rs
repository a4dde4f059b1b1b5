//! What a test needs of its machine, and how it reports that it did not run.

use std::fs::File;
use std::io::Write as _;

use crate::namespaces::AGAIN;

/// Environment variable: the file to which [`skipped`] appends a line. `make test` sets it.
pub const SKIPS: &str = "LINERATE_SKIPS";
/// Environment variable: the names of [`Need`]s, separated by blanks, that this machine is known to have.
pub const EXPECTED: &str = "LINERATE_EXPECTED";

macro_rules! needs {
    ($($(#[doc = $doc:literal])+ $need:ident = $name:literal,)+) => {
        /// What a test or a step of `make test` needs and some machines do not have.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Need {
            $($(#[doc = $doc])+ $need,)+
        }

        impl Need {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$need),+];

            /// The word for it in [`EXPECTED`].
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$need => $name,)+
                }
            }
        }
    };
}

needs! {
    /// The programs that `scripts/test-deps.sh` installs.
    Programs = "programs",
    /// A browser that starts without a screen, and its driver.
    Browser = "browser",
    /// axe-core, which judges whether pages are accessible.
    Axe = "axe",
    /// `DuckDB` and pyarrow, which read Parquet files.
    ParquetReaders = "parquet-readers",
    /// The newest iperf3, named by `IPERF3_NEW`.
    NewestIperf3 = "newest-iperf3",
    /// The template of `ESnet` for pSConfig, named by `LINERATE_ESNET_TEMPLATE`.
    EsnetTemplate = "esnet-template",
    /// The rights of the machine's root: files of other users, steering of packets, notices of closed sockets.
    Root = "root",
    /// Loop devices, and root's rights to mount file systems on them.
    LoopDevices = "loop-devices",
    /// User, network and mount namespaces.
    UserNamespaces = "userns",
    /// Time namespaces.
    TimeNamespaces = "timens",
    /// TCP's sysctls, to be set in each network namespace.
    NamespaceSysctls = "sysctls",
    /// Virtual links in a network namespace: veth, bridge, macvlan, tap.
    VirtualLinks = "veth",
    /// Packet queues of netfilter.
    PacketQueues = "nfqueue",
    /// The qdisc tbf.
    Tbf = "tbf",
    /// The qdisc netem.
    Netem = "netem",
    /// The congestion control BBR.
    Bbr = "bbr",
    /// Sockets of Multipath TCP.
    Mptcp = "mptcp",
    /// A kernel that gives out no SCTP sockets.
    NoSctp = "no-sctp",
    /// A `net.core.wmem_max` below 256 MiB.
    BoundedBuffers = "bounded-buffers",
    /// IPv6, at least on loopback.
    Ipv6 = "ipv6",
    /// ICMP echo sockets (`net.ipv4.ping_group_range`).
    Ping = "ping",
    /// Filters of system calls.
    Seccomp = "seccomp",
    /// The project's folder on a file system that a block device holds.
    Disk = "disk",
    /// `io_uring`.
    Ring = "io-uring",
    /// Direct I/O on the file system of the tests.
    DirectIo = "direct-io",
    /// Groups of processes whose disk is throttled (blkio of control groups 1, as root).
    Throttle = "blkio",
    /// A pipe of 2 MiB.
    Pipes = "pipes",
    /// Tests that run at a niceness of at most 15.
    Niceness = "niceness",
    /// CPUs that the hypervisor does not take away and other programs do not keep busy.
    QuietMachine = "quiet",
    /// QEMU, a tap device and the images of its guests.
    Qemu = "qemu",
    /// The static binary that `make release` makes.
    StaticBinary = "static",
    /// cargo-deny.
    CargoDeny = "cargo-deny",
    /// A database of security advisories for cargo-deny.
    Advisories = "advisories",
}

/// Reports that a test, or `what` part of it, did not run because this machine lacks `need`, and `why`.
///
/// The line goes to standard error past libtest's capture, and into the file that [`SKIPS`] names. `make test` counts
/// the tests in that file as skipped, not as passed.
///
/// # Panics
///
/// Where [`EXPECTED`] names `need` or something unknown, or the file cannot be written.
#[track_caller]
pub fn skipped(need: Need, what: &str, why: &str) {
    let expected = std::env::var(EXPECTED).unwrap_or_default();
    refuse(need, &expected).unwrap_or_else(|refusal| panic!("{what}: {why}: {refusal}"));
    drop(writeln!(std::io::stderr(), "skipped: {what}: {why}"));
    let Some(path) = std::env::var_os(SKIPS).filter(|path| !path.is_empty()) else {
        return;
    };
    let line = line(&test(what), need, what, why);
    // One write: lines of tests that run at the same time do not mix.
    File::options()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap_or_else(|error| panic!("cannot append to {}: {error}", path.display()));
}

/// Why a test that lacks `need` fails on a machine that is expected to have `expected`.
fn refuse(need: Need, expected: &str) -> Result<(), String> {
    let known = |word: &&str| !Need::ALL.iter().any(|need| need.name() == *word);
    if let Some(word) = expected.split_whitespace().find(known) {
        return Err(format!("{EXPECTED} names {word}, which no test needs"));
    }
    if expected.split_whitespace().any(|word| word == need.name()) {
        let name = need.name();
        return Err(format!(
            "this machine is expected to have {name} ({EXPECTED})"
        ));
    }
    Ok(())
}

/// The package and the test that runs on this thread, or `what` where libtest runs tests on the main thread.
fn test(what: &str) -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let thread = std::thread::current();
    let name = thread.name().filter(|name| *name != "main");
    let again = std::env::var(AGAIN).ok();
    let name = again.as_deref().or(name).unwrap_or(what);
    format!("{package} {name}")
}

/// Five columns, as `scripts/test-summary.sh` reads them.
fn line(test: &str, need: Need, what: &str, why: &str) -> String {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    ["test", &plain(test), need.name(), &plain(what), &plain(why)].join("\t") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_expected_to_have_it_fails_the_test() {
        assert_eq!(refuse(Need::Tbf, ""), Ok(()));
        assert_eq!(refuse(Need::Tbf, "userns\n veth"), Ok(()));
        let refusal = refuse(Need::Tbf, "userns tbf").unwrap_err();
        assert!(refusal.contains("expected to have tbf"), "{refusal}");
        let refusal = refuse(Need::Tbf, "usernamespaces").unwrap_err();
        assert!(refusal.contains("names usernamespaces"), "{refusal}");
    }

    #[test]
    fn no_two_needs_have_one_name() {
        let mut names: Vec<_> = Need::ALL.iter().map(|need| need.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Need::ALL.len());
    }

    #[test]
    fn what_continuous_integration_expects_is_known() {
        let script = include_str!("../../../.ci/run");
        let (_, rest) = script.split_once("export LINERATE_EXPECTED=\"").unwrap();
        let (expected, _) = rest.split_once('"').unwrap();
        assert!(expected.split_whitespace().count() > 10, "{expected}");
        assert_eq!(refuse(Need::NewestIperf3, expected), Ok(()));
    }

    #[test]
    fn a_line_has_five_columns_whatever_the_texts_are() {
        let line = line("linerate lab::one", Need::Netem, "a\tpath", "no\nnetem\n");
        assert_eq!(line, "test\tlinerate lab::one\tnetem\ta path\tno netem\n");
    }

    #[test]
    fn a_test_is_named_after_its_thread() {
        let named = std::thread::Builder::new().name("module::case".to_owned());
        let name = named.spawn(|| test("what")).unwrap().join().unwrap();
        assert!(name.ends_with(" module::case"), "{name}");
        let name = std::thread::spawn(|| test("what")).join().unwrap();
        assert!(name.ends_with(" what"), "{name}");
    }
}
