//! Outputs of DRBD, md, LVM, iostat, gluster, fio and others in forms that the cases do not have, and bad ones.

use linerate_explain::transcript::explain;
use linerate_model::finding::Severity;
use linerate_model::storage::{ConnectionState, DiskState, Role};
use linerate_model::transcript::{Given, Part, Transcript};
use linerate_readers::read;
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
            "`drbdsetup status --verbose --statistics`",
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
    assert!(one.contains("one end's settings do not tell what limits it; the candidates are: c-max-rate (4,096 KiB/s, 96 % reached); c-fill-target (1,024 KiB, if a request takes 259.9 ms)"), "{one}");
    assert!(!one.contains("limits it:"), "{one}");
    let both = said_of(vec![
        source(),
        whole(&show(a, b, "4M")),
        target(),
        whole(&show(b, a, "4M")),
    ]);
    assert!(both.contains("c-max-rate limits it: 3,940 KiB/s are 96 % of its 4,096 KiB/s; the target asks for 4,080 KiB/s"), "{both}");
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
