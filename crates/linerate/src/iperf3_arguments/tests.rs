use std::os::unix::ffi::OsStringExt as _;

use linerate_model::plan::{DEFAULT_SCTP_BLOCK, Direction, End, Family, Protocol};
use linerate_model::units::{BitRate, Bytes, Nanos};

use super::error::USAGE_HINT;
use super::*;

fn read(line: &str) -> Result<Iperf3Action, Iperf3ArgumentError> {
    parse(line.split_whitespace().map(OsString::from))
}

fn client(line: &str) -> Iperf3Client {
    match read(line) {
        Ok(Iperf3Action::Client(client)) => *client,
        other => panic!("{line}: {other:?}"),
    }
}

fn server(line: &str) -> Iperf3Server {
    match read(line) {
        Ok(Iperf3Action::Server(server)) => *server,
        other => panic!("{line}: {other:?}"),
    }
}

fn refusal(line: &str) -> String {
    read(line).expect_err(line).to_string()
}

#[test]
fn defaults_are_those_of_iperf3() {
    let tcp = client("-c h");
    assert_eq!(
        (tcp.plan.host.as_str(), tcp.plan.port, tcp.plan.streams),
        ("h", 5201, 1)
    );
    assert_eq!(tcp.plan.end, End::TimeNs(Nanos::from_millis(10_000)));
    assert_eq!(
        (tcp.plan.rate_bps, tcp.length_given, tcp.end_given),
        (None, false, false)
    );
    assert_eq!(tcp.common.receive_timeout_ms, 120_000);
    let udp = client("-c h -u");
    assert_eq!(udp.plan.rate_bps, Some(BitRate(1_048_576)));
    assert!(udp.plan.rate_is_default && !udp.length_given);
    assert_eq!(client("-c h -u -b 0").plan.rate_bps, None);
    assert_eq!(server("-s").port, 5201);
    assert_eq!(server("-s").time_skew_threshold_s, 10);
}

#[test]
fn values_may_be_attached_separate_or_after_an_equals_sign() {
    for line in [
        "-c h -b1G",
        "-c h -b 1G",
        "-c h --bitrate=1G",
        "-c h --bitrate 1G",
        "-c h --bandwidth 1G",
        "-ch --bitr 1G",
    ] {
        assert_eq!(
            client(line).plan.rate_bps,
            Some(BitRate(1_000_000_000)),
            "{line}"
        );
    }
    assert_eq!(
        client("-c h -i .3").plan.interval_ns,
        Nanos::from_millis(300)
    );
    let both = client("-uRc h -P2");
    assert_eq!(
        (both.plan.protocol, both.plan.direction, both.plan.streams),
        (Protocol::Udp, Direction::Receive, 2)
    );
    assert_eq!(client("-c -T").plan.host, "-T");
}

#[test]
fn affinity_reads_what_iperf3_reads() {
    let plan = client("-c h -A 2/2").plan;
    assert_eq!((plan.client_cpu, plan.server_cpu), (Some(2), None));
    let plan = client("-c h -A2,3").plan;
    assert_eq!((plan.client_cpu, plan.server_cpu), (Some(2), Some(3)));
    assert_eq!(server("-s -A 1").common.affinity, Some(1));
    assert_eq!(
        refusal("-s -A 1,2"),
        "parameter error - some option you are trying to set is client only"
    );
}

#[test]
fn optional_arguments_stand_after_an_equals_sign() {
    assert_eq!(
        client("-c h --timestamps").common.timestamps.as_deref(),
        Some("%c ")
    );
    assert_eq!(
        client("-c h --timestamps=%s").common.timestamps.as_deref(),
        Some("%s")
    );
    assert_eq!(
        client("-c h --timestamps= -V").common.timestamps.as_deref(),
        Some("")
    );
    assert_eq!(client("-c h -d").common.debug_level, 4);
    assert_eq!(client("-c h -d2").common.debug_level, 2);
    assert_eq!(client("-c h --debug=1").common.debug_level, 1);
    assert!(client("-c h -dV").common.verbose);
    let four = client("-c h -d4");
    assert_eq!((four.common.debug_level, four.plan.family), (4, Family::V4));
    let keepalive = |line| client(line).common.control_keepalive;
    assert_eq!(keepalive("-c h --cntl-ka"), Some(Keepalive::default()));
    let whole = Keepalive {
        idle_s: Some(16),
        interval_s: Some(5),
        count: Some(3),
    };
    assert_eq!(keepalive("-c h --cntl-ka=16/5/3"), Some(whole));
    assert_eq!(
        keepalive("-c h --cntl-ka=//3"),
        Some(Keepalive {
            count: Some(3),
            ..Default::default()
        })
    );
}

#[test]
fn what_getopt_refuses_is_refused_in_its_words() {
    for (line, text) in [
        ("--foo", "unrecognized option '--foo'"),
        ("-y", "invalid option -- 'y'"),
        ("-uy", "invalid option -- 'y'"),
        ("-p", "option requires an argument -- 'p'"),
        ("--port", "option '--port' requires an argument"),
        ("--udp=3", "option '--udp' doesn't allow an argument"),
        (
            "--bi",
            "option '--bi' is ambiguous; possibilities: '--bitrate' '--bidir' '--bind' '--bind-dev'",
        ),
        (
            "--json-s",
            "option '--json-s' is ambiguous; possibilities: '--json-stream' '--json-stream-full-output'",
        ),
    ] {
        assert_eq!(refusal(line), text);
    }
}

#[test]
fn what_iperf3_refuses_is_refused_in_its_words() {
    for (line, text) in [
        ("", "must either be a client (-c) or server (-s)"),
        ("-s -c x", "cannot be both server and client"),
        (
            "-c x -n 5M -t 5",
            "only one test end condition (-t, -n, -k) may be specified",
        ),
        (
            "-c x -n 5M -k 5",
            "only one test end condition (-t, -n, -k) may be specified",
        ),
        (
            "-s -t 5",
            "some option you are trying to set is client only",
        ),
        (
            "-c x -D",
            "some option you are trying to set is server only",
        ),
        (
            "-c x --authorized-users-path u",
            "some option you are trying to set is server only",
        ),
        ("-c x -b 5X", "invalid unit value or suffix: '5X'"),
        ("-c x -n five", "invalid unit value or suffix: 'five'"),
        ("-c x -b -1", "invalid unit value or suffix: '-1'"),
        ("-c x -b 1G/0", "invalid burst count (maximum = 1000)"),
        (
            "-c x -i 100",
            "invalid report interval (min = 0.1, max = 60 seconds)",
        ),
        (
            "-c x -R --bidir",
            "cannot be both reverse and bidirectional",
        ),
        (
            "-c x --bidir -R",
            "cannot be both reverse and bidirectional",
        ),
        (
            "-c x --rcv-timeout 5",
            "receive timeout value is incorrect or not in range",
        ),
        (
            "-c x --rcv-timeout 5000",
            "client receive timeout is valid only in receiving mode: ",
        ),
        (
            "-c x -P 0",
            "invalid number of parallel streams (min = 1, max = 128)",
        ),
        (
            "-c x -P 129",
            "invalid number of parallel streams (min = 1, max = 128)",
        ),
        (
            "-c x -p 0",
            "port number must be between 1 and 65535 inclusive",
        ),
        (
            "-c x -t 86401",
            "test duration valid values are 0 to 86400 seconds",
        ),
        (
            "-c x -O 601",
            "bogus value for --omit (maximum = 600 seconds)",
        ),
        (
            "-c x -l 2M",
            "block size too large (maximum = 1048576 bytes)",
        ),
        (
            "-c x -u -l 70000",
            "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)",
        ),
        (
            "-c x -w 1G",
            "socket buffer size too large (maximum = 536870912 bytes)",
        ),
        (
            "-c x -S 256",
            "bad TOS value (must be between 0 and 255 inclusive)",
        ),
        ("-c x -L 0", "unable to set IPv6 flow label"),
        ("-c x -u -F f", "cannot transfer file using UDP"),
        (
            "-c x --bidir -F f",
            "-F with --bidir would overwrite the file that it sends; leave one of them away",
        ),
        (
            "-c x --cntl-ka=15/5/3",
            "control connection Keepalive period should be larger than the full retry period (interval * count): ",
        ),
        (
            "-c x --nstreams many",
            "invalid unit value or suffix: 'many'",
        ),
        (
            "-s --sctp",
            "some option you are trying to set is client only",
        ),
        (
            "-c x -f x",
            "bad format specifier (valid formats are in the set [kmgtKMGT])",
        ),
        (
            "-c x --username a",
            "you must specify a username, password, and path to a valid RSA public key",
        ),
        (
            "-s --authorized-users-path u",
            "you must specify a path to a valid RSA private key and a user credential file",
        ),
        (
            "-s --idle-timeout 0",
            "idle timeout parameter is not positive or larger than allowed limit",
        ),
    ] {
        assert_eq!(refusal(line), format!("parameter error - {text}"), "{line}");
    }
}

#[test]
fn sctp_has_options_that_mean_nothing_without_it() {
    let plan = client("-c h --sctp -V -t 5 --nstreams 3 -X ::1 -X h -N -M 1000 -Z -C reno").plan;
    assert_eq!(
        (plan.protocol, plan.block_bytes, plan.sctp_streams),
        (Protocol::Sctp, DEFAULT_SCTP_BLOCK, Some(3))
    );
    assert_eq!(plan.sctp_bind, ["::1", "h"]);
    assert_eq!((plan.nodelay, plan.mss_bytes), (true, Some(1000)));
    assert_eq!((plan.zerocopy, &plan.congestion), (false, &None));
    assert_eq!(plan.rate_bps, None);

    let plan = client("-c h -X lo --nstreams 3").plan;
    assert_eq!((plan.protocol, plan.sctp_streams), (Protocol::Tcp, None));
    assert!(plan.sctp_bind.is_empty());
    // The last one counts.
    assert_eq!(client("-c h --sctp -u").plan.protocol, Protocol::Udp);
    assert_eq!(client("-c h -u --sctp").plan.protocol, Protocol::Sctp);
    let length = client("-c h --sctp -l 1M").plan.block_bytes;
    assert_eq!(length, Bytes(1 << 20));
    assert_eq!(server("-s -X 127.0.0.1 -X ::1").sctp_bind.len(), 2);
}

#[test]
fn a_report_names_what_was_given_and_hints_at_help() {
    let report = read("-c h -t 100000").unwrap_err().report("");
    let expected = "iperf3: parameter error - test duration valid values are 0 to 86400 seconds\n  given: -t 100000\n\n\
                    Usage: iperf3 [-s|-c host] [options]\nTry `iperf3 --help' for more information.\n";
    assert_eq!(report, expected);
    assert_eq!(
        read("-p").unwrap_err().report(""),
        format!("iperf3: option requires an argument -- 'p'\n\n{USAGE_HINT}")
    );
}

/// Upstream's release test, its lines as they are in `test_commands.sh`.
#[test]
fn the_release_test_of_iperf3_parses() {
    for line in [
        "-V -t 5 -T test1",
        "-u -V -t 5",
        "-i .3 -O 2 -t 5",
        "-i 1 -J -t 5",
        "-4 -t 5",
        "-4 -u -t 5",
        "-6 -t 5",
        "-6 -u -t 5",
        "-V -t 5 --fq-rate 5m",
        "-u -V -t 5 --fq-rate 5m",
        "-P 3 -t 5",
        "-u -P 3 -t 5",
        "-P 2 -t 5 -R",
        "-u -P 2 -t 5 -R",
        "-P 2 -t 5 --bidir",
        "-u -P 2 -t 5 --bidir",
        "-Z -t 5",
        "-Z -t 5 -R",
        "-t 5 -w 8M",
        "-n 5M",
        "-n 5M -u -b1G",
        "-n 5M -R",
        "-n 5M -u -b1G -R",
        "-k 1K",
        "-k 1K -u -b1G",
        "-k 1K -R",
        "-k 1K -u -b1G -R",
        "-A 2/2",
        "-A 2/2 -u -b1G",
        "-u -b1G/100",
        "-C reno -V",
        "-M 1000 -V",
    ] {
        let given = client(&format!("-c host {line}"));
        assert_eq!(given.common.warnings, [""; 0], "{line}");
    }
    assert_eq!(
        client("-c h -u -b1G/100").plan.rate_bps,
        Some(BitRate(1_000_000_000))
    );
    assert_eq!(client("-c h -k 1K").plan.end, End::Blocks(1024));
    assert_eq!(
        client("-c h -k 1K").plan.byte_target(),
        Some(Bytes(128 << 20))
    );
    assert!(refusal("-c h -n 5M -t 5").contains("only one test end condition"));
}

#[test]
fn what_drives_iperf3_parses() {
    // pScheduler's tool, client and server, with the options of its newer releases.
    let plan = client(
        "-p 5201 -B 10.0.0.1 -c host -t 10 --json -i 1 -P 2 -w 4M -M 1400 -O 5.0 -b 1G/10 -l 8K -S 0x20 -4 -C htcp -Z \
         -L 0x12 -A 1,2 --get-server-output --connect-timeout 5000 --dont-fragment --repeating-payload -R \
         --skip-rx-copy --cport 6000 --bind-dev eth0 --no-delay --use-pkcs1-padding --fq-rate 2G",
    );
    assert_eq!(
        (plan.plan.omit_ns, plan.plan.tos),
        (Nanos::from_millis(5000), 32)
    );
    assert!(
        plan.common.use_pkcs1_padding && plan.common.warnings.is_empty(),
        "{:?}",
        plan.common.warnings
    );
    assert!(server("-s -1 -p 5201 -B 10.0.0.1 -A 3 --idle-timeout 60").one_off);
    // iperf3_exporter.
    assert!(client("-J -t 5 -c host -p 5201 -R -b 10M/5").common.json);
    client("-J -t 5 -c host -p 5201 -u -B 10.0.0.1");
}

#[test]
fn a_server_gets_its_own() {
    let given = server(
        "-s -p 5300 -6 -i 2 -D --server-bitrate-limit 1G/10 --server-max-duration 60 --idle-timeout 30 -I /run/pid \
         --rsa-private-key-path k --authorized-users-path u --time-skew-threshold 5 --logfile l --forceflush -B ::1%lo -m",
    );
    assert_eq!(
        (given.port, given.family, given.interval_ns),
        (5300, Family::V6, Nanos::from_millis(2000))
    );
    let limit = BitrateLimit {
        rate: BitRate(1_000_000_000),
        averaged_over: Nanos::from_millis(10_000),
    };
    assert_eq!(given.bitrate_limit, Some(limit));
    assert_eq!(
        (given.bind.as_deref(), given.bind_device.as_deref()),
        (Some("::1"), Some("lo"))
    );
    assert_eq!(
        (
            given.max_duration_s,
            given.idle_timeout_s,
            given.time_skew_threshold_s
        ),
        (Some(60), Some(30), 5)
    );
    assert_eq!(
        server("-s --server-bitrate-limit 1M")
            .bitrate_limit
            .unwrap()
            .averaged_over,
        Nanos::from_millis(5000)
    );
}

#[test]
fn hosts_may_name_a_device() {
    let plan = client("-c host%eth0").plan;
    assert_eq!(
        (plan.host.as_str(), plan.bind_device.as_deref()),
        ("host", Some("eth0"))
    );
    let plan = client("-c fe80::1%eth0").plan;
    assert_eq!(
        (plan.host.as_str(), plan.bind_device.as_deref()),
        ("fe80::1%eth0", None)
    );
}

#[test]
fn iperf3s_warnings_are_the_only_ones() {
    for words in [
        "-b 10Mbit",
        "stray",
        "-- -t",
        "-u -N",
        "-t 0",
        "--no-fq-socket-pacing",
        "--cntl-ka",
    ] {
        let given = client(&format!("-c h {words}"));
        assert_eq!(given.common.warnings, [""; 0], "{words}");
    }
    assert_eq!(
        client("-c h -J -f k -V -d").common.warnings,
        [
            "Report format (-f) flag ignored with JSON output (-J)",
            "Verbose output (-v) may interfere with JSON output (-J)",
            "Debug output (-d) may interfere with JSON output (-J)",
        ]
    );
    assert!(!client("-c h -u -N").plan.nodelay);
    assert!(client("-c h -i 0").common.without_intervals);
}

#[test]
fn a_time_that_is_no_number_has_no_end_as_with_iperf3() {
    for time in ["0", "inf", "infinite"] {
        assert!(client(&format!("-c h -t {time}")).endless, "{time}");
    }
    assert!(!client("-c h -t 1").endless);
    assert!(refusal("-c h -t -1").contains("test duration valid values are 0 to 86400 seconds"));
}

#[test]
fn numbers_are_read_as_the_c_library_reads_them() {
    // The lowest 32 bits count: 0, then a negative one.
    assert!(client("-c h -t 4294967296").endless);
    assert!(refusal("-c h -t 2147483648").contains("test duration valid values"));
    assert!(refusal("-c h -t 99999999999999999999").contains("test duration valid values"));
    for interval in ["x", "0", "-0"] {
        let read = client(&format!("-c h -i {interval}"));
        assert!(read.common.without_intervals, "{interval}");
    }
    assert_eq!(
        client("-c h -i 2x").plan.interval_ns,
        Nanos::from_millis(2000)
    );
    for interval in ["inf", "-INF", "nan", "0.01", "-1", "61"] {
        let refused = refusal(&format!("-c h -i {interval}"));
        assert!(refused.contains("invalid report interval"), "{interval}");
    }
    let limit = |text: &str| server(&format!("-s --server-bitrate-limit {text}")).bitrate_limit;
    assert_eq!(limit("10M/abc").unwrap().averaged_over, Nanos::ZERO);
    assert_eq!(limit("-5").unwrap().rate, BitRate(u64::MAX));
    assert!(refusal("-s --server-bitrate-limit -5x").contains("'5x'"));
}

#[test]
fn keepalive_is_longer_than_its_retries() {
    for given in ["10/5/2", "10/5/3x", "5/5/1", "-5"] {
        let refused = refusal(&format!("-c h --cntl-ka={given}"));
        assert!(
            refused.contains("should be larger than the full retry period (interval * count): "),
            "{given}: {refused}"
        );
    }
    for given in ["abc", "10//3", "10/5/1", "20/5/3"] {
        client(&format!("-c h --cntl-ka={given}"));
    }
}

#[test]
fn what_concerns_all_of_the_command_line_has_the_time_before_it() {
    let stamp = |words: &str| {
        let error = read(words).unwrap_err();
        error.timestamps().map(str::to_owned)
    };
    assert_eq!(stamp("-s --bidir --timestamps=X").as_deref(), Some("X"));
    assert_eq!(stamp("-s --bidir"), None);
    // Found while the options are read: iperf3 does not know of the format for sure.
    assert_eq!(stamp("--timestamps=X -c h -t -1"), None);
    let report = read("-s --bidir --timestamps=X").unwrap_err().report("X");
    assert!(
        report.starts_with("Xiperf3: parameter error - "),
        "{report}"
    );
    assert!(report.contains("\nUsage:"), "{report}");
}

#[test]
fn the_first_of_help_and_error_wins() {
    assert_eq!(read("-c h -h --foo"), Ok(Iperf3Action::Help));
    assert_eq!(
        read("--vers"),
        Err(Iperf3ArgumentError::Ambiguous(
            "vers".to_owned(),
            vec!["version", "version4", "version6"]
        ))
    );
    assert_eq!(read("-v"), Ok(Iperf3Action::Version));
    assert!(version_text("0.1.0", "Linux").starts_with("iperf 3.21 (linerate 0.1.0)\n"));
    assert!(help_text().contains("-b, --bitrate #") && help_text().contains("--nstreams #"));
}

#[test]
fn every_dscp_name_is_known() {
    for (name, tos) in [
        ("af11", 0x28),
        ("AF43", 0x98),
        ("cs0", 0),
        ("cs7", 0xe0),
        ("ef", 0xb8),
        ("va", 0xb0),
        ("46", 0xb8),
        ("0x2e", 0xb8),
    ] {
        assert_eq!(
            client(&format!("-c h --dscp {name}")).plan.tos,
            tos,
            "{name}"
        );
    }
    for name in ["af44", "af10", "cs8", "64", "ef1", "-1", ""] {
        assert!(read(&format!("-c h --dscp={name}")).is_err(), "{name}");
    }
    assert_eq!(client("-c h -S 064").plan.tos, 52);
}

#[test]
fn no_words_make_it_panic() {
    let pieces = [
        "-",
        "--",
        "-c",
        "-b",
        "=",
        "1G/",
        "/",
        "--=",
        "-=",
        "é",
        "--é",
        "-é",
        "--timestamps=",
        "-d",
        "-i",
        "-1e",
        ".",
        "e5",
        "--cntl-ka=/",
        "-A",
        ",",
        "-S",
        "0x",
        "%",
        "a%",
    ];
    for first in pieces {
        for second in pieces {
            for third in pieces {
                let _ = parse([first, second, third].map(OsString::from));
                let _ = parse([format!("{first}{second}"), third.to_owned()].map(OsString::from));
            }
        }
    }
    let _ = parse([
        OsString::from_vec(vec![b'-', 0xff]),
        OsString::from_vec(vec![b'-', b'-', 0xff]),
    ]);
}

#[test]
fn every_option_is_read() {
    for spelling in super::options::SPELLINGS {
        let option = format!("--{}", spelling.long);
        let value = (spelling.argument == super::options::Argument::Required).then_some("1");
        let words = [option.as_str()].into_iter().chain(value);
        let refused = parse(words.map(OsString::from))
            .map_or_else(|error| error.report(""), |_| String::new());
        assert!(!refused.contains("not read"), "{option}: {refused}");
    }
    let client = client("-c h --linux-congestion cubic");
    assert_eq!(client.plan.congestion.as_deref(), Some("cubic"));
}
