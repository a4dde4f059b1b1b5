//! Hosts that hang, have no room, are too old, or are asked by two at once.

use std::path::Path;

use linerate_fleet::{Ask, Event, FleetError, Phase, Session, Trouble, each};
use linerate_model::units::Nanos;
use linerate_testing::in_namespaces;
use linerate_wire::agent::{Header, Hello, PROTOCOL, encode};

use super::{Children, long_ask, reach, whole};
use crate::harness::beside;

/// The first frame of an agent of this version.
fn hello(protocol: u32) -> Vec<u8> {
    let hello = Hello {
        protocol,
        version: "9.9".into(),
        ..Hello::default()
    };
    encode(&Header::Hello(hello), &[]).unwrap()
}

#[test]
fn a_host_that_hangs_is_given_up_in_each_phase_and_the_others_go_on() {
    let _beside = beside();
    let children = Children::new();
    let frame = children.home.with("hello", hello(PROTOCOL));
    let script = children.home.with(
        "hosts.sh",
        format!(
            "case $1 in\n\
             connecting) sleep 1000 ;;\n\
             copying) echo 'linerate-bootstrap: want {}'; sleep 1000 ;;\n\
             starting) echo 'linerate-bootstrap: start'; sleep 1000 ;;\n\
             running) echo 'linerate-bootstrap: start'; cat {}; sleep 1000 ;;\n\
             *) exec sh -c \"$2\" ;;\n\
             esac\n",
            std::env::consts::ARCH,
            frame.display()
        ),
    );
    let mut reach = reach(&format!(
        "{} sh {} {{host}}",
        children.environment(),
        script.display()
    ));
    let hosts = ["connecting", "copying", "starting", "running"].map(str::to_owned);
    // One that answers, however long a loaded machine takes.
    let well = Session::open("n1", &reach).unwrap();
    reach.connect_timeout = Nanos::from_millis(1_000);
    let errors = each(&hosts, 4, |host| -> FleetError {
        match Session::open(host, &reach) {
            Err(error) => error,
            Ok(session) => session.ask(long_ask()).unwrap().next(None).unwrap_err(),
        }
    });
    let phases = [
        Phase::Connecting,
        Phase::Copying,
        Phase::Starting,
        Phase::Running,
    ];
    for ((host, phase), error) in hosts.iter().zip(phases).zip(errors) {
        assert_eq!(&error.host, host);
        let silent =
            matches!(&error.trouble, Trouble::Silent { phase: found, .. } if *found == phase);
        assert!(silent, "{error:?}");
    }
    let found = whole(&mut well.ask(Ask::new(["nodes", "count", "a"])).unwrap()).unwrap();
    assert_eq!(found.out, "1\n");
    drop(well);
    children.assert_gone("after hosts that hang");
}

#[test]
fn a_far_end_of_another_version_is_refused_by_name() {
    let _beside = beside();
    let children = Children::new();
    let open = |bytes: &[u8]| {
        let frame = children.home.with("hello", bytes);
        let via = format!(
            "{} sh -c 'echo hi; echo \"linerate-bootstrap: start\"; cat {}' {{host}}",
            children.environment(),
            frame.display()
        );
        Session::open("n1", &reach(&via)).unwrap_err().to_string()
    };
    let error = open(&hello(PROTOCOL + 1));
    assert!(
        error.contains("n1: its linerate 9.9 speaks version 2 of"),
        "{error}"
    );
    let error = open(b"\xff\xff\xff\xff\0\0\0\0");
    assert!(error.contains("n1: it sent what no agent sends"), "{error}");
    let error = open(b"");
    assert!(
        error.contains("n1: the connection ended while starting linerate there"),
        "{error}"
    );
}

#[test]
fn a_folder_that_is_full_or_mounted_noexec_is_passed_over() {
    let setup = "mkdir -p /var/tmp /dev/shm\n\
                 mount -t tmpfs -o noexec none /mnt && mount -t tmpfs -o size=1m none /var/tmp && mount -t tmpfs none /dev/shm";
    let namespaces = ["--user", "--map-root-user", "--mount"];
    let test = "fleet::trouble::a_folder_that_is_full_or_mounted_noexec_is_passed_over";
    in_namespaces(&namespaces, test, setup, || {
        let _children = Children::new();
        let via = "env HOME=/mnt XDG_CACHE_HOME= LINERATE_HOST={host} sh -c";
        let session = Session::open("n1", &reach(via)).unwrap();
        let found = whole(&mut session.ask(Ask::new(["nodes", "count", "a"])).unwrap()).unwrap();
        assert_eq!(found.out, "1\n");
        drop(session);
        let names = |folder: &str| {
            let entries = std::fs::read_dir(folder).into_iter().flatten();
            entries
                .map(|entry| entry.unwrap().path())
                .collect::<Vec<_>>()
        };
        let kept = names("/dev/shm/linerate-0");
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert!(names("/mnt/.cache/linerate").is_empty());
        assert!(names("/var/tmp/linerate-0").is_empty());
        // Where none is left, each says why.
        let mount = std::process::Command::new("mount")
            .args(["-o", "remount,ro,noexec", "/dev/shm"])
            .status();
        assert!(mount.unwrap().success());
        let error = Session::open("n1", &reach(via)).unwrap_err().to_string();
        for words in [
            "n1: no folder there can keep linerate: ",
            "/mnt/.cache/linerate is mounted noexec; ",
            "/var/tmp/linerate-0 is full; ",
            "/dev/shm/linerate-0 cannot be written or is full",
        ] {
            assert!(error.contains(words), "{error}");
        }
    });
}

#[test]
fn an_architecture_without_a_binary_is_named() {
    let _beside = beside();
    let children = Children::new();
    let folder = children.home.path().display();
    let uname = children.home.with("uname", "#!/bin/sh\necho riscv64\n");
    executable(&uname);
    let via = format!(
        "{} PATH={folder}:/usr/bin:/bin sh -c",
        children.environment()
    );
    let error = Session::open("n1", &reach(&via)).unwrap_err().to_string();
    assert!(
        error.contains("n1: its architecture is riscv64: put a linerate"),
        "{error}"
    );
    assert!(error.contains("named linerate-riscv64"), "{error}");
}

pub(super) fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn two_who_ask_at_once_get_their_answers_or_who_is_before_them() {
    let _beside = beside();
    let children = Children::new();
    // Neither finds the binary there.
    let hosts = ["n1", "n1"].map(str::to_owned);
    let sessions = each(&hosts, 2, |host| children.open(host));
    let kept = std::fs::read_dir(children.home.file(".cache/linerate")).unwrap();
    assert_eq!(kept.count(), 1);
    let alone = |who: &str| Ask {
        exclusive: Some(who.to_owned()),
        ..long_ask()
    };
    let mut first = sessions[0].ask(alone("a mesh of root on a")).unwrap();
    assert!(matches!(first.next(None).unwrap(), Event::Err(_)));
    let busy = whole(&mut sessions[1].ask(alone("another")).unwrap())
        .err()
        .unwrap();
    assert_eq!(busy.to_string(), "n1: it is busy: a mesh of root on a");
    // Who does not have to be alone is not disturbed.
    let found = whole(&mut sessions[1].ask(Ask::new(["nodes", "count", "a"])).unwrap()).unwrap();
    assert_eq!(found.out, "1\n");
    first.cancel();
    drop(whole(&mut first).unwrap());
    let mut second = sessions[1].ask(alone("another")).unwrap();
    assert!(matches!(second.next(None).unwrap(), Event::Err(_)));
}
