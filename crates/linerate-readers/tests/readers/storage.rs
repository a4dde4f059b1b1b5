//! Outputs of DRBD, md, LVM, iostat, gluster, fio and others in forms that the cases do not have, and bad ones.

use linerate_explain::transcript::explain;
use linerate_model::finding::Severity;
use linerate_model::storage::{ConnectionState, DiskState, Role};
use linerate_model::transcript::{Given, Part, Transcript};
use linerate_readers::{ReadError, read};
use linerate_report::transcript::report;

fn whole(text: &str) -> Transcript {
    let read = read("x", text.as_bytes()).unwrap();
    assert!(read.not_understood.is_empty(), "{:?}", read.not_understood);
    read
}

fn said_of(all: Vec<Transcript>) -> String {
    let text = report(&explain(all, Given::default()));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn says(text: &str, words: &[&str]) {
    let said = said_of(vec![whole(text)]);
    for words in words {
        match words.strip_prefix("! ") {
            Some(never) => assert!(!said.contains(never), "'{never}' in: {said}"),
            None => assert!(said.contains(words), "no '{words}' in: {said}"),
        }
    }
}

fn proc_drbd(device: &str) -> String {
    format!(
        "version: 8.4.11 (api:1/proto:86-101)\nsrcversion: F73C670A7EC572DB9CF3E5B \n\n{device}\n"
    )
}

#[test]
fn each_state_of_drbd_has_its_advice_in_both_syntaxes() {
    let counters = "\n    ns:0 nr:0 dw:0 dr:0 al:8 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:614344";
    for (state, words) in [
        (
            " 0: cs:Connected ro:Secondary/Secondary ds:Inconsistent/Inconsistent C r-----",
            [
                "`drbdadm primary --force RESOURCE` (8.3: `drbdadm -- --overwrite-data-of-peer primary RESOURCE`)",
                "linerate changed nothing",
            ],
        ),
        // The protocol's letter is a blank while there is no connection.
        (
            " 0: cs:StandAlone ro:Primary/Unknown ds:UpToDate/DUnknown   r-----",
            [
                "`drbdadm connect --discard-my-data RESOURCE` (8.3: `drbdadm -- --discard-my-data connect RESOURCE`)",
                "are to be lost",
            ],
        ),
        (
            " 0: cs:WFConnection ro:Primary/Unknown ds:UpToDate/DUnknown C r-----",
            ["the peer is not StandAlone", "nothing is replicated"],
        ),
        (
            " 0: cs:PausedSyncS ro:Primary/Secondary ds:UpToDate/Inconsistent C r--u--",
            [
                "`drbdadm resume-sync RESOURCE`",
                "paused by hand at this end",
            ],
        ),
        (
            " 0: cs:PausedSyncT ro:Secondary/Primary ds:Inconsistent/UpToDate C r-p---",
            ["The peer paused it", "is paused (PausedSyncT)"],
        ),
        (
            " 0: cs:Connected ro:Primary/Secondary ds:Diskless/UpToDate C r-----",
            ["`drbdadm attach RESOURCE`", "`dmesg`"],
        ),
        (
            " 0: cs:Connected ro:Secondary/Primary ds:Outdated/UpToDate C r-----",
            ["never force it to be primary first", "outdated data"],
        ),
        (
            " 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----",
            [
                "`drbdadm disconnect RESOURCE`, then `drbdadm connect RESOURCE`",
                "600 MiB are out of sync",
            ],
        ),
        (
            " 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C s-----",
            ["`drbdadm resume-io RESOURCE`", "held back"],
        ),
    ] {
        says(&proc_drbd(&format!("{state}{counters}")), &words);
    }
    says(
        &proc_drbd(" 0: cs:Unconfigured"),
        &[
            "it is not configured",
            "`drbdadm up RESOURCE`",
            "! unknown data",
        ],
    );
    let both_good = " 0: cs:Connected ro:Secondary/Secondary ds:UpToDate/UpToDate C r-----\n    ns:0 nr:0 oos:0";
    says(
        &proc_drbd(both_good),
        &["No end is primary", "`drbdadm primary RESOURCE`"],
    );
}

#[test]
fn proc_drbd_of_three_versions_is_read() {
    // 8.3: fewer flags, holes between minors, `sync'ed:` without a blank.
    let old = "version: 8.3.11 (api:88/proto:86-96)\nGIT-hash: 0 build by x@y, 2011-01-01 00:00:00\n\
         0: cs:SyncTarget ro:Secondary/Primary ds:Inconsistent/UpToDate C r----\n\
         \x20   ns:0 nr:100 dw:100 dr:0 al:0 bm:5 lo:1 pe:13 ua:0 ap:0 ep:1 wo:b oos:900\n\
         \t[=================>..] sync'ed:100.0% (900/1000)K\n\
         \tfinish: 0:00:00 speed: 9,800 (9,100) want: 10,240 K/sec\n\n\
         3: cs:Connected st:Primary/Secondary ds:UpToDate/UpToDate C r---\n\
         \x20   ns:0 nr:0 dw:0 dr:0 al:0 bm:0 lo:0 pe:0 ua:0 ap:0\n\tresync: used:0/61 hits:0 misses:0 starving:0 dirty:0 changed:0\n\
         \tact_log: used:0/257 hits:0 misses:0 starving:0 dirty:0 changed:0\n";
    let read = whole(old);
    let [Part::Drbd(status)] = read.parts.as_slice() else {
        panic!("{:?}", read.parts);
    };
    let sync = status.devices[0].sync.unwrap();
    assert_eq!(sync.want_kib_per_second, Some(10_240.0));
    assert_eq!(sync.done_percent.map(|done| done.value), Some(100.0));
    assert_eq!(status.devices[1].roles[0], Role::Primary);
    says(
        old,
        &["The controller of this end, the target, asks for 10,240 KiB/s"],
    );
    says(
        "version: 9.1.13 (api:2/proto:110-121)\nGIT-hash: 5 build by x@y, 2023-01-01\nTransports (api:18): tcp (9.1.13) lb-tcp (9.1.13)\n",
        &[
            "DRBD 9.1.13: 0 device(s)",
            "`drbdsetup status --json --verbose --statistics`",
            "! No resource",
        ],
    );
    let verify = " 0: cs:VerifyS ro:Primary/Secondary ds:UpToDate/UpToDate C r-----\n    ns:0 nr:0 oos:0\n\
         \t[=====>..............] verified: 34.0% (408632/614344)K\n\
         \tfinish: 0:00:15 speed: 25,712 (34,588 -- 25,712) want: 30,000 K/sec (stalled)\n\t 33% sector pos: 415744/1228688\n";
    says(
        &proc_drbd(verify),
        &[
            "33.485 % compared",
            "both ends compare their data (VerifyS)",
            "stalled",
            "! candidates",
        ],
    );
}

/// Version 9 with three nodes, one of them diskless, one not connected.
const STATUS_9: &str = "r0 node-id:0 role:Primary suspended:no\n  volume:0 minor:0 disk:UpToDate quorum:yes\n\
      \x20     size:1048576 read:10 written:20 al-writes:1 bm-writes:0 upper-pending:0 lower-pending:0\n\
      \x20 node-b node-id:1 connection:Connected role:Secondary congested:no ap-in-flight:0 rs-in-flight:512\n\
      \x20   volume:0 replication:SyncSource peer-disk:Inconsistent done:12.50 resync-suspended:no\n\
      \x20       received:0 sent:100 out-of-sync:917504 pending:0 unacked:0\n\
      \x20 node-c connection:Connecting\n\nr1 role:Secondary\n  disk:Diskless\n  node-b role:Primary\n    peer-disk:UpToDate\n";

#[test]
fn statuses_of_drbdsetup_are_read() {
    let read = whole(STATUS_9);
    let [Part::Drbd(status)] = read.parts.as_slice() else {
        panic!("{:?}", read.parts);
    };
    let rows: Vec<_> = status
        .devices
        .iter()
        .map(|one| {
            (
                one.name.as_str(),
                one.connection.name(),
                one.disks[0].name(),
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("r0/0 to node-b", "SyncSource", "UpToDate"),
            ("r1/0 to node-b", "Established", "Diskless"),
            ("r0/0 to node-c", "Connecting", "UpToDate"),
        ]
    );
    assert_eq!(status.devices[0].sync.unwrap().left_mib, Some(896.0));
    let json = r#"[{"name":"r0","node-id":0,"role":"Secondary","suspended":false,"devices":[{"volume":0,"disk-state":"Inconsistent"}],
        "connections":[{"name":"b","connection-state":"Connected","peer-role":"Primary","peer_devices":[
        {"volume":0,"replication-state":"SyncTarget","peer-disk-state":"UpToDate","out-of-sync":524288,"percent-in-sync":"50.00",
         "resync-suspended":"user,peer","want":40.00,"db1/dt1 [MiB/s]":38.50,"estimated-seconds-to-finish":13,"percent-resync-done":25.00}]},
        {"name":"c","connection-state":"StandAlone","peer-role":"Unknown","peer_devices":[
        {"volume":0,"replication-state":"Off","peer-disk-state":"DUnknown","out-of-sync":512000,"percent-in-sync":51.2}]}]}]"#;
    let read = whole(json);
    let [Part::Drbd(status)] = read.parts.as_slice() else {
        panic!("{:?}", read.parts);
    };
    let [sync, alone] = status.devices.as_slice() else {
        panic!("{:?}", status.devices);
    };
    assert_eq!(sync.sync.unwrap().want_kib_per_second, Some(40_960.0));
    assert_eq!(sync.sync.unwrap().kib_per_second, Some(39_424.0));
    assert!(sync.paused.user && sync.paused.peer && !sync.paused.after);
    assert_eq!(alone.connection, ConnectionState::StandAlone);
    assert_eq!(alone.disks[1], DiskState::DUnknown);
    says(
        "# No currently configured DRBD found.\n",
        &["No resource is configured"],
    );
}

/// `drbdsetup show` of one end.
fn show(own: &str, peer: &str, most: &str) -> String {
    format!(
        "resource home {{\n    net {{\n        max-buffers 2048; # default\n    }}\n    _remote_host {{\n        address ipv4 {peer}:7789;\n    }}\n    \
         _this_host {{\n        address ipv4 {own}:7789;\n        volume 0 {{\n            device minor 1;\n            disk \"/dev/vda\";\n            \
         meta-disk internal;\n            disk {{\n                c-plan-ahead 20; # 1/10 seconds\n                c-fill-target 2048s; # bytes\n                \
         c-max-rate {most}; # bytes/second\n                c-min-rate 250k; # bytes/second\n                resync-rate 250k; # bytes/second\n            }}\n        }}\n    }}\n}}\n"
    )
}

#[test]
fn nodes_that_are_out_for_one_reason_are_one_finding() {
    let heading = "NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON              \n";
    let row = |name: &str, reason: &str| {
        format!(
            "{name:<11}    1     main*     drained 1       1:1:1    100        0      1   (null) {reason:<20}\n"
        )
    };
    let text = format!(
        "{heading}{}{}{}",
        row("n1", "HDFS mount lost"),
        row("n2", "admin: fan"),
        row("n3", "HDFS mount lost")
    );
    says(
        &text,
        &[
            "2 nodes of partition main are drained, reason \"HDFS mount lost\" (n1,n3)",
            "1 node of partition main is drained, reason \"admin: fan\" (n2)",
        ],
    );
}

#[test]
fn each_volume_of_a_resource_has_its_own_settings() {
    // Addresses and buffers are the resource's, wherever they stand.
    let text = "resource home {\n    _this_host {\n        volume 0 {\n            device minor 1;\n            disk {\n                \
        c-max-rate 1M; # bytes/second\n            }\n        }\n        volume 1 {\n            device minor 2;\n            disk {\n                \
        c-max-rate 2M; # bytes/second\n            }\n        }\n        address ipv4 192.0.2.1:7789;\n    }\n    net {\n        max-buffers 40;\n    }\n}\n\
        resource other {\n    _this_host {\n        volume 0 {\n            device minor 3;\n        }\n    }\n}\n";
    let read = whole(text);
    let [Part::DrbdSettings(held)] = &read.parts[..] else {
        panic!("{:?}", read.parts);
    };
    let told: Vec<_> = held
        .iter()
        .map(|one| {
            (
                one.resource.as_str(),
                one.minor,
                one.max_rate_kib_s,
                one.max_buffers,
                one.addresses[0].is_some(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("home", Some(1), Some(1024.0), Some(40.0), true),
            ("home", Some(2), Some(2048.0), Some(40.0), true),
            ("other", Some(3), None, None, false),
        ]
    );
}

#[test]
fn a_limit_is_named_with_both_ends_settings_and_only_then() {
    let sync = |cs: &str, behind: &str| {
        whole(&proc_drbd(&format!(
            " 1: cs:{cs} C r-----\n    ns:0 nr:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:408632\n\t[==>...] sync'ed: 34.0% (408632/614344)K\n\tfinish: 0:01:43 speed: 3,940 (3,900) {behind}K/sec"
        )))
    };
    let source = || {
        sync(
            "SyncSource ro:Primary/Secondary ds:UpToDate/Inconsistent",
            "",
        )
    };
    let target = || {
        sync(
            "SyncTarget ro:Secondary/Primary ds:Inconsistent/UpToDate",
            "want: 4,080 ",
        )
    };
    let (a, b) = ("192.0.2.1", "192.0.2.2");
    let one = said_of(vec![source(), whole(&show(a, b, "4096k"))]);
    assert!(one.contains("what limits it is not known, as the state of the other end is not in the input; the candidates are: c-max-rate (4,096 KiB/s, 96 % reached); c-fill-target (1,024 KiB, if a request takes 259.9 ms)"), "{one}");
    assert!(!one.contains("limits it:"), "{one}");
    let both = said_of(vec![
        source(),
        whole(&show(a, b, "4M")),
        target(),
        whole(&show(b, a, "4M")),
    ]);
    assert!(both.contains("c-max-rate limits it: 3,940 KiB/s are 96 % of its 4,096 KiB/s; the target asks for 4,080 KiB/s"), "{both}");
    // Another device of the same hosts has other settings.
    let other = |sync: Transcript| {
        let mut sync = sync;
        for part in &mut sync.parts {
            if let Part::Drbd(status) = part {
                status.devices[0].name = "7".into();
            }
        }
        sync
    };
    let elsewhere = said_of(vec![
        other(source()),
        whole(&show(a, b, "4M")),
        target(),
        whole(&show(b, a, "4M")),
    ]);
    assert!(elsewhere.contains("the candidates are"), "{elsewhere}");
    assert!(!elsewhere.contains("limits it:"), "{elsewhere}");
    let neither = said_of(vec![
        other(source()),
        whole(&show(a, b, "4M")),
        other(target()),
        whole(&show(b, a, "4M")),
    ]);
    assert!(!neither.contains("limits it:"), "{neither}");
    // Ends that do not agree are not both ends.
    let apart = said_of(vec![
        source(),
        whole(&show(a, b, "4M")),
        target(),
        whole(&show(b, a, "100M")),
    ]);
    assert!(apart.contains("the candidates are"), "{apart}");
}

#[test]
fn messages_of_drbd_are_told_once_each() {
    let log = "Nov 22 02:14:19 node1 kernel: [  15.6] block drbd0: Split-Brain detected but unresolved, dropping connection!\n\
         Nov 22 02:14:19 node1 kernel: [  15.7] block drbd0: helper command: /sbin/drbdadm split-brain minor-0\n\
         Nov 22 02:14:20 node1 kernel: [  16.7] drbd home: conn( WFReportParams -> Disconnecting )\n";
    let read = whole(log);
    let reading = explain(vec![read], Given::default());
    let [finding] = reading.explained[0].findings.as_slice() else {
        panic!("{reading:?}");
    };
    assert_eq!(finding.severity, Severity::Limit);
    assert!(
        finding
            .sentence
            .contains("Both ends were written to while they were apart")
    );
}

const COUNTERS: &str = "\n    ns:0 nr:0 dw:0 dr:0 al:8 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:4096";

#[test]
fn what_drbd_refuses_is_forced_only_where_no_end_ever_had_data() {
    let refused = |state: &str| {
        format!(
            "[ 1.1] block drbd1: State change failed: Need access to UpToDate data\n[ 1.2] block drbd1:   state = {{ {state} r----- }}\n\
             [ 1.3] block drbd1:  wanted = {{ {state} r----- }}\n1: State change failed: (-2) Need access to UpToDate data\n"
        )
    };
    says(
        &refused("cs:Connected ro:Secondary/Secondary ds:Inconsistent/Inconsistent"),
        &["neither end has up-to-date data", "primary --force"],
    );
    for state in [
        "cs:WFConnection ro:Secondary/Unknown ds:Outdated/DUnknown",
        "cs:WFConnection ro:Secondary/Unknown ds:Inconsistent/DUnknown",
        "cs:Connected ro:Secondary/Secondary ds:Inconsistent/Outdated",
    ] {
        says(
            &refused(state),
            &[
                "reaches nobody who has: bring the peer that has them back, and never force this end",
                "! primary --force",
            ],
        );
    }
    let alone = "1: State change failed: (-2) Need access to UpToDate data\n";
    says(
        alone,
        &[
            "the states of the disks are not in the input",
            "never force this end",
            "Only where both ends are connected and Inconsistent",
        ],
    );
    let said = said_of(vec![whole(alone)]);
    assert!(said.find("never force") < said.find("primary --force"));
}

#[test]
fn suspended_requests_and_this_ends_disk_are_said_before_the_connection() {
    let of = |state: &str| said_of(vec![whole(&proc_drbd(&format!("{state}{COUNTERS}")))]);
    let said = of(" 1: cs:WFConnection ro:Primary/Unknown ds:UpToDate/DUnknown C s-----");
    assert!(
        said.find("are held back").unwrap() < said.find("Check that the peer is up").unwrap(),
        "{said}"
    );
    let said = of(" 1: cs:StandAlone ro:Secondary/Unknown ds:Outdated/DUnknown   r-----");
    assert!(said.contains("This end's data are old"), "{said}");
    assert!(!said.contains("--discard-my-data"), "{said}");
    let said = of(" 1: cs:StandAlone ro:Primary/Unknown ds:Failed/DUnknown   r-----");
    assert!(said.contains("This end has no disk"), "{said}");
    assert!(!said.contains("--discard-my-data"), "{said}");
    let said = of(" 1: cs:WFConnection ro:Secondary/Unknown ds:Inconsistent/DUnknown C r-----");
    assert!(
        said.contains("it reaches nobody who has up-to-date data"),
        "{said}"
    );
    says(
        "home role:Primary suspended:quorum\n  disk:UpToDate quorum:no blocked:upper\n  nodeB connection:Connecting\n  nodeC connection:Connecting\n",
        &["This end has lost its quorum", "! resume-io"],
    );
}

#[test]
fn a_split_brain_that_is_solved_leaves_nothing_to_discard() {
    let line = "Nov 25 10:00:01 n1 kernel: block drbd1: Split-Brain detected, 1 primaries, automatically solved. Sync from";
    says(
        &format!("{line} peer node\n"),
        &[
            "it copies from the peer, and this node's writes of that time are dropped",
            "The connection stays",
            "! --discard-my-data",
        ],
    );
    says(
        &format!("{line} this node\n"),
        &["it copies from this node, and the peer's writes"],
    );
}

#[test]
fn clients_without_a_disk_and_what_was_destroyed_are_no_faults() {
    let client = "home role:Secondary\n  disk:Diskless client:yes\n  nodeB role:Primary\n    peer-disk:UpToDate\n";
    says(client, &["with no data", "! attach"]);
    says(&client.replace("yes", "no"), &["`drbdadm attach home`"]);
    let events = "2026-11-23T23:59:58.1+00:00 exists resource name:home role:Secondary suspended:no\n\
         2026-11-23T23:59:58.1+00:00 exists connection name:home peer-node-id:1 conn-name:b connection:Connected role:Primary\n\
         2026-11-23T23:59:58.1+00:00 exists device name:home volume:0 minor:0 disk:UpToDate\n\
         2026-11-23T23:59:58.1+00:00 exists peer-device name:home peer-node-id:1 conn-name:b volume:0 replication:Established peer-disk:UpToDate\n\
         2026-11-24T02:00:18.1+00:00 destroy peer-device name:home peer-node-id:1 conn-name:b volume:0\n\
         2026-11-24T02:00:18.1+00:00 destroy connection name:home peer-node-id:1 conn-name:b\n";
    says(events, &["1 device(s)", "does not try to connect"]);
    let end = "2026-11-24T02:00:18.1+00:00 destroy device name:home volume:0\n\
         2026-11-24T02:00:18.1+00:00 destroy resource name:home\n";
    says(&format!("{events}{end}"), &["No resource is configured"]);
    says(
        &format!(
            "{events}{end}{events}{end}{}",
            &events[..events.find("2026-11-24").unwrap()]
        ),
        &["1 device(s)", "nothing to synchronise (Established)"],
    );
}

#[test]
fn of_several_peers_all_are_asked_who_has_the_data() {
    let third = |of_c: &str| {
        format!(
            "data role:Secondary\n  disk:Inconsistent\n  nodeB role:Secondary\n    peer-disk:Inconsistent\n  nodeC {of_c}\n"
        )
    };
    for of_c in [
        "role:Secondary\n    peer-disk:UpToDate",
        "role:Secondary\n    replication:SyncTarget peer-disk:UpToDate done:12.30",
        "connection:Connecting",
        "role:Primary\n    peer-disk:Inconsistent",
    ] {
        says(&third(of_c), &["! primary --force"]);
    }
    says(
        &third("role:Secondary\n    peer-disk:Inconsistent"),
        &["primary --force data"],
    );
    says(
        "home role:Secondary\n  disk:UpToDate\n  nodeB role:Primary\n    peer-disk:UpToDate\n  nodeC role:Secondary\n    peer-disk:UpToDate\n",
        &["! No end is primary"],
    );
    says(
        "home role:Primary\n  disk:UpToDate\n  nodeB role:Secondary\n    peer-disk:UpToDate\n  nodeC connection:StandAlone\n",
        &[
            "`drbdadm connect --discard-my-data home:PEER`",
            "`home:nodeC`",
        ],
    );
}

/// An array of `/proc/mdstat`.
fn mdstat(level: &str, members: &str, geometry: &str) -> String {
    format!(
        "Personalities : [raid1]\nmd0 : active {level} {members}\n      1000 blocks super 1.2 {geometry}\n\nunused devices: <none>\n"
    )
}

#[test]
fn more_members_lost_than_the_level_survives_are_not_replaced() {
    for (level, geometry) in [
        ("raid5", "level 5, 512k chunk, algorithm 2 [4/2] [UU__]"),
        ("raid6", "level 6, 512k chunk, algorithm 2 [5/2] [UU___]"),
        ("raid1", "[2/0] [__]"),
    ] {
        says(
            &mdstat(level, "sda[0] sdb[1]", geometry),
            &[
                &format!(
                    "more than {level} survives. Add, create and zero nothing: compare `mdadm --examine`"
                ),
                "! --add",
            ],
        );
    }
    says(
        &mdstat(
            "raid10",
            "sda[0] sdc[2]",
            "512K chunks 2 near-copies [4/2] [U_U_]",
        ),
        &["which may be more than raid10 survives", "! --add"],
    );
    says(
        &mdstat("raid0", "sda[0] sdb[1](F)", "512k chunks"),
        &["more than raid0 survives"],
    );
    says(
        &mdstat(
            "raid6",
            "sda[0] sdb[1]",
            "level 6, 512k chunk, algorithm 2 [4/2] [UU__]",
        ),
        &["Replace the disk, `mdadm /dev/md0 --add DEVICE`"],
    );
    says(
        &mdstat(
            "raid1",
            "sda[0] sdb[2]",
            "[2/1] [U_]\n      [=>...]  recovery =  5.1% (50/1000) finish=7.2min speed=100K/sec",
        ),
        &[
            "1 missing ([U_]), which a spare replaces",
            "! Replace the disk",
            "which is not the limit, if it is unchanged",
        ],
    );
    says(
        "md3 : inactive sdh[0](S) sdi[1](S)\n      3145728 blocks super 1.2\n",
        &[
            "md3: inactive: not assembled (a container of external metadata is always so); its members here: sdh, sdi",
            "! spare:",
        ],
    );
    let mismatch = "sda[0] sdb[1] sdc[2]";
    let parity = mdstat(
        "raid5",
        mismatch,
        "level 5, 512k chunk, algorithm 2 [3/3] [UUU]",
    );
    says(
        &parity.replace("\n\nunused", "\nmismatch_cnt = 8\n\nunused"),
        &["data and parity differ", "! copies differ"],
    );
}

#[test]
fn stripes_are_told_to_a_file_system_by_mounting_it() {
    says(
        "@@ a\n65536\n262144\n/dev/sdb1 /data xfs rw,noquota 0 0\n",
        &[
            "Mount it with `-o sunit=128,swidth=512`",
            "is for a new file system: it erases",
        ],
    );
    says(
        "@@ a\n65536\n262144\n/dev/sdb1 /data ext4 rw,stripe=16 0 0\n",
        &[
            "Mount it with `-o stripe=64`, or `tune2fs -E stride=16,stripe_width=64 /dev/sdb1`",
            "! mkfs",
        ],
    );
}

#[test]
fn arrays_are_read_with_all_that_md_prints() {
    let text = "Personalities : [raid1] [raid6] [raid5] [raid4]\n\
         md127 : active raid5 sdd1[4](F) sdc1[2] sdb1[1] sda1[0] sde1[5](S)\n\
         \x20     2929893888 blocks super 1.2 level 5, 512k chunk, algorithm 2 [4/3] [UUU_]\n\
         \x20     [=>...................]  recovery =  5.1% (50000000/976631296) finish=77.2min speed=199900K/sec\n\
         \x20     bitmap: 3/8 pages [12KB], 65536KB chunk\n\
         md1 : active (auto-read-only) raid1 sdg1[1] sdf1[0]\n\
         \x20     1048512 blocks super 1.2 [2/2] [UU]\n\
         \x20     \tresync=PENDING\n\
         md2 : active raid1 sdg2[1] sdf2[0](W)\n\
         \x20     1048512 blocks super external:/md0/1 [2/2] [UU]\n\
         \x20     \tresync=DELAYED\n\
         md3 : inactive sdh[0](S)\n\
         \x20     3145728 blocks super external:imsm\n\nunused devices: sdz1[0]\n";
    says(
        text,
        &[
            "md127: raid5 of 4, 3 up: 1 missing ([UUU_])",
            "faulty: sdd1; spare: sde1",
            "recovery 5.1 % done, 926,631,296 KiB left at 199,900 KiB/s",
            "sync_speed_max's default (200,000 KiB/s) limits it",
            "md1: raid1 of 2, 2 up; resync is PENDING: it begins with the first write",
            "md2: raid1 of 2, 2 up; resync is DELAYED: another array",
            "md3: inactive",
        ],
    );
}

#[test]
fn volumes_in_json_are_read_with_what_stands_around_them() {
    let json = "  WARNING: Device for PV abc not found or rejected by a filter.\n\
         {\n \"report\": [ {\"lv\": [\n\
         {\"lv_name\":\"r\",\"vg_name\":\"vg0\",\"lv_attr\":\"rwi-a-r-p-\",\"lv_size\":\"67108864\",\"segtype\":\"raid1\",\"copy_percent\":\"40.00\",\"raid_sync_action\":\"recover\",\"devices\":\"r_rimage_0(0),r_rimage_1(0)\"},\n\
         {\"lv_name\":\"thin\",\"vg_name\":\"vg0\",\"lv_attr\":\"twi-aotz--\",\"lv_size\":\"1\",\"segtype\":\"thin-pool\",\"data_percent\":\"12.5\",\"copy_percent\":\"\"}\n\
         ]}, {\"vg\": [{\"vg_name\":\"vg0\",\"pv_count\":\"2\",\"lv_count\":\"2\",\"vg_attr\":\"wz-pn-\",\"vg_size\":\"10\",\"vg_free\":\"1\"}]},\n\
         {\"pv\": [{\"pv_name\":\"/dev/sda\",\"vg_name\":\"\",\"pv_size\":\"1\",\"pv_free\":\"1\",\"pe_start\":\"1048576\"}]} ]\n}\n";
    says(
        json,
        &[
            "1 volume group(s), 2 logical volume(s), 1 physical volume(s)",
            "vg0: a physical volume of the group is missing (partial)",
            "! the thin pool's data",
            "raid1 over 2 images, 40 % in sync, recover; a device of it is missing (partial)",
        ],
    );
    says(
        &json.replace(
            "\"data_percent\":\"12.5\"",
            "\"data_percent\":\"12.5\",\"metadata_percent\":\"97.21\"",
        ),
        &["the thin pool's data are used to 12.5 %, its metadata to 97.21 %"],
    );
    says(
        &json
            .replace("\"raid1\"", "\"raid0\"")
            .replace("r-p-", "r---"),
        &["striped over 0 devices without a copy"],
    );
    says(
        "  LV   VG  Attr       LSize   Pool Origin Data%  Meta%  Move Log Cpy%Sync Convert\n  pool vg0 twi-aotzD- 100.00g             100.00 17.21\n  \
         snap vg0 swi-I-s---  10.00g      root   100.00\n",
        &[
            "vg0/pool (100.00g): the thin pool's data are used to 100 %, its metadata to 17.21 %",
            "vg0/snap (10.00g): the snapshot is invalid",
        ],
    );
    // Cut off: what is whole is read.
    let cut = &json[json.find('{').unwrap()..json.find("{\"lv_name\":\"thin\"").unwrap() + 20];
    let read = read("x", cut.as_bytes()).unwrap();
    assert!(matches!(read.parts.as_slice(), [Part::Volumes(held)] if held.volumes.len() == 1));
    says(
        "  PV         VG  Fmt  Attr PSize  PFree\n  /dev/sda1  vg0 lvm2 a--  96.00m 8.00m\n  /dev/sdb       lvm2 ---  96.00m 96.00m\n",
        &["2 physical volume(s)"],
    );
}

/// A block of iostat with one disk this busy.
fn block(busy: &str) -> String {
    format!(
        "Device r/s w/s wMB/s wrqm/s w_await aqu-sz %util\nsda 1.00 100.00 5.00 1.00 9.00 1.00 {busy}\n\n"
    )
}

#[test]
fn the_time_since_boot_has_no_verdict() {
    let banner = "Linux 6.1.0 (host) \t01/01/2026 \t_x86_64_\t(4 CPU)\n\n";
    says(
        &format!("{banner}{}", block("95.00")),
        &["no verdict on it", "! disk-busy"],
    );
    says(
        &format!("{banner}{}{}", block("5.00"), block("96.00")),
        &["no verdict on it", "sda 96 % of the time"],
    );
    says(
        &format!("{}{}", block("95.00"), block("5.00")),
        &["! disk-busy"],
    );
    says(
        &block("95.00"),
        &[
            "The disk is busy: sda 95 % of the time, which does not say that it is full",
            "! the limit",
            "! no verdict",
        ],
    );
    let queued = block("95.00").replace("9.00 1.00 95", "9.00 4.00 95");
    says(
        &queued,
        &["the disk is the limit, further writes will queue"],
    );
    says(
        &queued.replace("sda 1.00 100.00", "sda 900.00 100.00"),
        &["further reads will queue"],
    );
    says(
        &format!("$ iostat -dxmy 1 1\n{banner}{}", block("95.00")),
        &["disk-busy", "! no verdict"],
    );
    // Decimal commas, and -h, which puts the device last and units behind the figures.
    says(&block("95.00").replace('.', ","), &["sda 95 % of the time"]);
    says(
        "     r/s     w/s     wkB/s   w_await aqu-sz  %util Device\n    1.00   100.00      1.2M     9.00   1.00  95.0% sda\n",
        &["disk-busy", "sda 95 %"],
    );
    let json = r#"{"sysstat": {"hosts": [{"nodename": "h", "statistics": [
        {"disk": [{"disk_device": "sda", "r/s": 1.00, "w/s": 1.00, "util": 99.00}]},
        {"disk": [{"disk_device": "sda", "r/s": 1.00, "w/s": 1.00, "util": 98.00}]},
        {"disk": [{"disk_device": "sda", "r/s": 1.00, "w/s""#;
    let read = read("x", json.as_bytes()).unwrap();
    assert!(read.not_understood.is_empty());
    let said = said_of(vec![read]);
    assert!(
        said.contains("sda 98 % of the time") && !said.contains("sda 99 %"),
        "{said}"
    );
}

/// A lock line of glusterd 10, at this second of 02:09.
fn lock(second: f64) -> String {
    format!(
        "[2026-11-23 02:{:02.0}:{:09.6} +0000] W [glusterd-locks.c:545:glusterd_mgmt_v3_lock] (-->/usr/x.so(+0xb25f3) [0x7fa3379675f3] ) 0-management: Lock for home0 held by e27deb6d-3352-4ee8-aa41-f40bd917b771 \n",
        9.0 + (second / 60.0).floor(),
        second % 60.0
    )
}

#[test]
fn a_lock_is_stuck_only_after_a_minute_without_success() {
    let all = |seconds: &[f64]| {
        seconds
            .iter()
            .map(|second| lock(*second))
            .collect::<String>()
    };
    says(
        &all(&[0.0, 25.0, 61.0]),
        &[
            "stuck for 61 s",
            "A peer probably does not answer although it is \"Connected\": the lock of volume home0 was",
            "(3 lines)",
        ],
    );
    // Without the history of commands nothing is known of their success, and the timer frees a lock after 180 s.
    says(
        &all(&[0.0, 61.0]),
        &[
            "cmd_history.log) is not in the input",
            "! no command that succeeded",
        ],
    );
    says(&all(&[0.0, 3600.0]), &["look again after", "! stuck for"]);
    let own = "[2012-12-13 15:40:07.881363] E [a.c:1:f] 0-glusterd: Unable to get lock for uuid: c3ce6b9c, lock held by: c3ce6b9c\n";
    says(
        &format!("{own}{own}"),
        &["left it behind", "! two commands met"],
    );
    says(
        &all(&[0.001, 0.004]),
        &[
            "all within 3.0 ms: two commands met, which is normal",
            "! stuck",
        ],
    );
    // A command on the volume succeeded in between.
    let history = "[2026-11-23 02:09:30.000000 +0000]  : volume set home0 a b : SUCCESS\n";
    says(&format!("{}{history}", all(&[0.0, 61.0])), &["! stuck for"]);
    // The history is another file, and tells that the lock was held for a moment.
    let soon = history.replace("02:09:30", "02:09:01");
    let apart = |log: &str, history: &str| said_of(vec![whole(log), whole(history)]);
    let said = apart(&lock(0.0), &soon);
    assert!(
        said.contains("free again within 1 s: two commands met"),
        "{said}"
    );
    let said = apart(&all(&[0.0, 61.0]), history);
    assert!(!said.contains("stuck for"), "{said}");
    // Each time that the timer frees it, the next command takes it and is stuck as well.
    let timer = "[2026-11-23 02:12:00.000000 +0000] I [glusterd-locks.c:702:gd_mgmt_v3_unlock_timer_cbk] 0-management: unlock timer is cancelled for volume_type home0_vol\n";
    says(
        &format!("{}{timer}{}", all(&[0.0, 170.0]), all(&[200.0, 270.0])),
        &[
            "stuck for 180 s from 2026-11-23 02:09:00.000000",
            "(2 line(s); the longest of 2 times, the last from 2026-11-23 02:12:20.000000 +0000 on), until",
        ],
    );
    let other = history.replace("home0", "home1");
    says(
        &format!("{}{other}", all(&[0.0, 61.0])),
        &["stuck for 61 s", ", with no command that succeeded. Run"],
    );
}

#[test]
fn a_repeated_line_and_a_cut_graph_of_glusterd_are_read() {
    let repeated = "The message \"E [MSGID: 106118] [a.c:1:f] 0-management: Locking failed on 192.0.2.2. [{x=1}] \" repeated 3 times \
         between [2026-11-23 02:09:00.000000 +0000] and [2026-11-23 02:09:05.000000 +0000]\n";
    says(
        &format!("{}{repeated}", lock(0.0)),
        &["glusterd's log: 2 line(s)", "! log-errors"],
    );
    // What follows a graph without its end is read as it is.
    let cut = "Final graph:\n+-----+\n  1: volume management\nNumber of Peers: 1\n\nHostname: n2\nUuid: a\nState: Peer in Cluster (Disconnected)\n";
    says(
        &format!("{}{cut}", lock(0.0)),
        &["peer n2 is not connected"],
    );
}

#[test]
fn entries_in_split_brain_are_counted_and_only_what_was_read_is_well() {
    let brick = |name: &str, entries: &str, count: u64| {
        format!("Brick {name}\n{entries}Status: Connected\nNumber of entries: {count}\n\n")
    };
    let split = "/file1 - Is in split-brain\n<gfid:aaca219f-0e25-4576-8689-3bfd93ca70c2> - Is in split-brain\n/f3\n";
    says(
        &format!("{}{}", brick("gl1:/b1", split, 3), brick("gl2:/b1", "", 0)),
        &[
            "gl1:/b1 has 2 entries in split brain",
            "delete nothing on a brick",
            "3 entries are to be healed",
            "! bricks and daemons run",
            "! no peer is disconnected",
        ],
    );
    says(
        &format!(
            "UUID Hostname State\na n2 Disconnected\n{}",
            brick("gl1:/b1", "/f\n", 1)
        ),
        &["peer n2 is not connected; 1 entries are to be healed"],
    );
}

#[test]
fn gluster_xml_is_read_on_one_line_and_with_holes() {
    let xml = "<?xml version=\"1.0\"?><cliOutput><healInfo><bricks><brick hostUuid=\"-\"><name>h:/b1</name><status>Transport endpoint is not connected</status>\
         <totalNumberOfEntries>-</totalNumberOfEntries></brick><brick><name>h:/b2</name><status>Connected</status><totalNumberOfEntries>3</totalNumberOfEntries>\
         <numberOfEntriesInSplitBrain>1</numberOfEntriesInSplitBrain></brick></bricks></healInfo><opRet>0</opRet><opErrno>0</opErrno><opErrstr/></cliOutput>\n";
    says(
        xml,
        &[
            "h:/b2 has 1 entries in split brain",
            "what h:/b1 has to heal is not known (Transport endpoint is not connected)",
        ],
    );
    let failed = "<cliOutput>\n<opRet>-1</opRet>\n<opErrno>30800</opErrno>\n<opErrstr>Volume x does not exist</opErrstr>\n</cliOutput>\n";
    says(failed, &["gluster answers: Volume x does not exist"]);
    let peers = "<cliOutput><peerStatus><peer><uuid>a</uuid><hostname>n2</hostname><connected>0</connected><stateStr>Peer in Cluster</stateStr></peer></peerStatus></cliOutput>\n";
    says(peers, &["peer n2 is not connected"]);
    let text =
        "Number of Peers: 1\n\nHostname: n2\nUuid: a\nState: Peer in Cluster (Disconnected)\n";
    says(text, &["peer n2 is not connected"]);
}

#[test]
fn fio_and_iozone_are_read_with_their_traps() {
    let fio = r#"note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1
{
  "fio version" : "fio-3.33", "timestamp" : 1, "global options" : {"direct" : "1", "ioengine" : "psync"},
  "jobs" : [
    {"jobname" : "q", "groupid" : 0, "error" : 0, "job options" : {"rw" : "randwrite", "bs" : "4k", "iodepth" : "32"},
     "read" : {"total_ios" : 0, "bw_bytes" : 0, "iops" : 0.0, "clat_ns" : {"N" : 0}},
     "write" : {"total_ios" : 1200, "bw_bytes" : 491520, "bw" : 480, "iops" : 120.0, "clat_ns" : {"mean" : 8333333.0, "N" : 1200, "percentile" : {"99.000000" : 12000000}}},
     "sync" : {"total_ios" : 0, "lat_ns" : {"N" : 5, "mean" : 2000000.0}}}
  ]
}
"#;
    says(
        fio,
        &[
            "q: write of 4k, depth 32: 120 IOPS, 0.5 MB/s, 8.333 ms each, 99 % within 12.000 ms",
            "5 syncs, 2.000 ms each",
            "the engine psync makes one request at a time, so iodepth 32 had no effect",
        ],
    );
    says(
        &fio.replace(", \"ioengine\" : \"psync\"", ""),
        &[
            "no ioengine is set, which is psync on Linux: it makes one request at a time, so the depth was 1 and not 32",
        ],
    );
    says(
        "{\"fs\": \"ext4\", \"opts\": \"\", \"cut\": \"log\", \"before\": \"none\", \"s\": 0.06, \"new\": \"EMPTY\"}\n",
        &["empty files without fsync: new", "! with fsync none"],
    );
    let failed = r#"{"fio version":"fio-3.33","jobs":[{"jobname":"q","error":22}]}"#;
    says(&format!("{failed}\n{failed}\n"), &["ended with error 22"]);
    let iozone = "\tIozone: Performance Test of File I/O\n\t        Version $Revision: 3.506 $\n\t\tCompiled for 64 bit mode.\n\n\
         \tCommand line used: iozone -a\n\tOutput is in kBytes/sec\n\
         \x20                                                             random    random     bkwd    record    stride\n\
         \x20             kB  reclen    write  rewrite    read    reread    read     write\n\
         \x20             64       4   353721   817619  2006158  2892445\n\
         \x20         524288   16384  1193046  1290012  5120000  5200000  5100000  1200000\n\niozone test complete.\n";
    says(
        iozone,
        &[
            "Largest file, 512 MiB in records of 16.0 MiB: write 1221.7 MB/s",
            "through the page cache",
        ],
    );
    says(
        &iozone.replace("-a", "-a -I"),
        &["with O_DIRECT", "! page cache"],
    );
}

#[test]
fn summaries_of_copies_are_read() {
    says(
        "sent 1,048,576,000 bytes  received 35 bytes  99,864,384.29 bytes/sec\ntotal size is 1,048,320,000  speedup is 1.00\n",
        &["rsync moved 1000 MiB at 99.9 MB/s"],
    );
    let scp = whole("file.bin                  100%  200MB  33.5MB/s   00:06\n");
    let given = Given {
        rtt: Some(linerate_model::units::Nanos::from_millis(60)),
        ..Given::default()
    };
    let text = report(&explain(vec![scp], given));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("allows 35.0 MB/s at this RTT"), "{text}");
    says(
        "summary:  200 MiByte in  1.5sec - average of  133 MiB/s, 98% full\n",
        &[
            "mbuffer passed 200 MiB at 139.5 MB/s",
            "98 % full: what reads from it is the limit",
        ],
    );
    says(
        "        Sent  200 MByte / 200 MByte (100%) of /t/out\n",
        &["iperf3 sent 200 MiB of 200 MiB", "! FAULT"],
    );
}

#[test]
fn a_claimed_loss_is_held_against_what_a_cut_exposes() {
    let given = Given {
        files_per_second: Some(703.0),
        files_lost: Some(300_000.0),
        ..Given::default()
    };
    let mount = whole("/dev/sdb1 /data xfs rw,relatime,noquota 0 0\n");
    let text = report(&explain(vec![mount], given));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("703 files a second over a window of 41 s are 28,823 files that a power cut exposes, but 300,000 are said to be lost, 10.4 times as many"),
        "{text}"
    );
}

#[test]
fn diskstats_with_more_fields_and_a_negative_queue_are_read() {
    let line = "   8 0 sda 1 2 3 4 100 6 800 8 -1 10 11 0 0 0 0 0 0 0 0 0\n   0 0 nvme0c0n1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
    says(
        line,
        &["/proc/diskstats: 2 device(s)", "exactly 8 sectors a write"],
    );
    // A device that was taken away and came back counts from 0: no difference between the readings.
    let again = line.replace(" 800 ", " 80 ");
    says(&format!("{line}{again}"), &["! between the two readings"]);
}

#[test]
fn what_is_hostile_is_read_or_refused() {
    let large = vec![b'a'; linerate_readers::MOST_BYTES + 1];
    assert!(matches!(read("x", &large), Err(ReadError::TooLarge { .. })));
    let huge = "99999999999999999999999999";
    for text in [
        format!(" 1: cs:SyncTarget ro:/ ds:/ C r\n ns:{huge} oos:{huge}\n[>] sync'ed: {huge}% ({huge}/0)M\nfinish: {huge}:{huge} speed: {huge} ({huge}) want: {huge} K/sec\n"),
        format!("resource r {{\n c-max-rate {huge}k;\n c-fill-target -1;\n c-plan-ahead 1e300;\n{}", "a {\n".repeat(100)),
        format!("md0 : active raid10\n {huge} blocks {huge} near-copies [{huge}/{huge}] [UU]\n[=] resync = {huge}% ({huge}/1) speed={huge}K/sec\nmismatch_cnt = {huge}\n"),
        format!("md0 : active raid1 a[0]\n 1 blocks [2/2] [UU]\n[=] resync = 1.0% (0/{0}) speed=1K/sec\nsync_speed_min = {0}\nsync_speed_max = {0}\n", u64::MAX),
        "<?xml?><a><b><c>".repeat(1000),
        format!("<cliOutput><peer>{}", "x".repeat(1 << 20)),
        "[0000-00-00 99:99:99.9] E [a:1:b] 0-m: Lock for  held by \n".to_owned(),
        format!("[2026-11-23 {huge}:0:0] W [a:1:b] 0-m: Lock for v held by u\n"),
        format!("/dev/x /m xfs sunit={0},swidth={0} 0 0\n", u64::MAX),
        format!("kB reclen write\n{0} {0} {huge}\n", u64::MAX),
        format!("summary: {huge} TiByte in 0sec - average of {huge} TiB/s, {huge}% full\nsent {huge} bytes received 0 bytes 1e300 bytes/sec\n"),
        format!("253 0 dm-0 {0} 0 0 0 {0} 0 {0} 0 0 0 0\n253 0 dm-0 0 0 0 0 0 0 0 0 0 0 0\n", u64::MAX),
        format!("{{\"fio version\":\"3\",\"jobs\":[{{\"error\":-1,\"write\":{{\"total_ios\":{huge},\"bw_bytes\":1e308,\"iops\":1e308}}}}]}}"),
        "{\"report\":[{\"lv\":[{}]}]}\n{\"report\":[]}\n{\"sysstat\":{\"hosts\":[{\"statistics\":[{\"disk\":[]}]}]}}\n".to_owned(),
        "home role:Primary\n  volume:99999999999999999999 disk:\n peer connection:\n  volume: done:x out-of-sync:-1\n".to_owned(),
        "defaults  resync  KiB/s\nc-max-rate=1 resync 5 KiB/s want ..\n".to_owned(),
        "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9} 1 2 3 4 5 6 7 8\n@@\u{e9}\n".to_owned(),
    ] {
        for text in [text.clone(), text.replace('\n', "\r\n")] {
            for bytes in [text.as_bytes().to_vec(), [text.as_bytes(), &[0xff, 0xfe, b'\n']].concat()] {
                if let Ok(read) = read("x", &bytes) {
                    assert!(!report(&explain(vec![read.clone(), read], Given::default())).is_empty());
                }
            }
        }
    }
}
