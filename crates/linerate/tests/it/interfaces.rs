//! `linerate tune interfaces` in a network namespace, with files below a folder of the test's own.

use crate::harness::{Folder, Hosts, LONG, beside, linerate, run};

const DECLARED: &str = r#"
[[interface]]
mac = "FE16.3E00.0001"
name = "data0"
addresses = ["10.0.0.1/24", "fd00::1/64"]
routes = [{ to = "10.1.0.0/16", via = "10.0.0.254" }]
mtu = 1400
"#;

#[test]
fn declared_interfaces_are_set_up_once_and_hands_are_left_alone() {
    let _beside = beside();
    let Some(hosts) = Hosts::new("declared interfaces") else {
        return;
    };
    let host = &hosts.a;
    host.ip("link add g0 address fe:16:3e:00:00:01 type veth peer name g1");
    host.ip("link set g1 up");
    let folder = Folder::new();
    let file = folder.with("interfaces.toml", DECLARED);
    let root = folder.file("root");
    std::fs::create_dir_all(root.join("etc/systemd/network")).unwrap();
    // Files that `tune persist` writes, one of them for an interface with an unlucky name.
    let persisted = ["eth0", "guest-data"].map(|name| {
        let name = format!("root/etc/systemd/network/10-linerate-{name}.link");
        folder.with(&name, "[Match]\n")
    });
    let words = |more: &str| {
        format!(
            "tune interfaces {more} --file {} --root {} --live",
            file.display(),
            root.display()
        )
    };
    let all = |more: &str, code: i32| run(&mut host.linerate(&words(more)), LONG).expect(code).out;
    let shows = |program: &str, words: &str, part: &str| {
        let out = run(host.command(program).args(words.split(' ')), LONG)
            .expect(0)
            .out;
        out.contains(part)
    };

    let planned = all("apply --dry-run", 0);
    assert!(planned.contains("would rename g0 to data0"), "{planned}");
    assert!(
        shows("ip", "link show", "g0@"),
        "a dry run changed something"
    );
    assert!(!root.join("var").exists(), "a dry run wrote something");

    let made = all("apply", 0);
    assert!(
        made.contains("rename g0 to data0") && made.contains("\n9 changes made."),
        "{made}"
    );
    assert!(shows("ip", "addr show dev data0", "inet 10.0.0.1/24"));
    assert!(shows("ip", "addr show dev data0", "inet6 fd00::1/64"));
    assert!(shows("ip", "link show dev data0", "mtu 1400"));
    assert!(shows("ip", "route", "10.1.0.0/16 via 10.0.0.254 dev data0"));
    let link = root.join("etc/systemd/network/10-linerate-guest-fe163e000001.link");
    assert!(
        std::fs::read_to_string(&link)
            .unwrap()
            .contains("Name=data0")
    );

    let again = all("apply", 0);
    assert_eq!(
        again,
        "Nothing was changed; as declared: data0 (fe:16:3e:00:00:01).\n"
    );

    host.ip("addr add 10.9.9.9/24 dev data0");
    assert!(all("apply", 0).contains("by hand"));
    assert!(shows("ip", "addr show dev data0", "10.9.9.9"));
    assert!(all("status", 1).contains("remove the address 10.9.9.9/24"));
    all("apply --start one", 0);
    assert!(!shows("ip", "addr show dev data0", "10.9.9.9"));

    host.ip("route add default via 10.0.0.77 dev data0");
    folder.with("interfaces.toml", DECLARED.replace("1400", "1450"));
    let refused = all("apply", 1);
    assert!(refused.contains("data0 has the default route"), "{refused}");
    assert!(shows("ip", "link show dev data0", "mtu 1400"));
    host.ip("route del default");
    assert!(all("apply", 0).contains("set the MTU of data0 to 1450"));
    folder.with("interfaces.toml", "ignore = []\n");
    assert!(all("apply", 0).contains("remove /etc/systemd/network/10-linerate-guest-"));
    assert!(!link.exists());
    for file in persisted {
        assert!(file.exists(), "{} is gone", file.display());
    }
}

const NAMED: &str = "[[interface]]\nmac = \"02:00:00:00:00:02\"\nname = \"data0\"\n";

/// An empty host in files; what runs `linerate tune` on it, with the facts of a host whose eth0 is declared above.
struct InFiles {
    folder: Folder,
}

impl InFiles {
    fn new() -> Self {
        let folder = Folder::new();
        let length = folder.file("root/sys/class/net/eth0");
        std::fs::create_dir_all(&length).unwrap();
        std::fs::write(length.join("tx_queue_len"), "1000\n").unwrap();
        folder.with("profile.toml", "[interface.eth0]\ntxqueuelen = 10000\n");
        folder.with("interfaces.toml", NAMED);
        Self { folder }
    }

    fn tune(&self, words: &str, code: i32) -> String {
        let path = |name: &str| self.folder.file(name).display().to_string();
        let facts = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../linerate-tune/tests/tune/hosts/dtn.json"
        );
        let words = words
            .replace("PROFILE", &path("profile.toml"))
            .replace("DECLARED", &path("interfaces.toml"))
            .replace("FACTS", facts);
        let mut command = linerate(&format!("tune {words} --root {}", path("root")));
        let done = run(&mut command, LONG).expect(code);
        format!("{}{}", done.out, done.error)
    }

    fn links(&self) -> Vec<String> {
        let folder = self.folder.file("root/etc/systemd/network");
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter(|name| name.strip_suffix(".link").is_some())
            .collect()
    }
}

/// Of two `.link` files for one interface systemd takes one: there is never a second.
#[test]
fn whichever_comes_second_leaves_the_other_s_link_file_alone() {
    let _beside = beside();
    let apply = "apply PROFILE --from FACTS --yes";
    let (persist, declare) = ("persist --from FACTS", "interfaces apply --file DECLARED");
    let (persisted, named) = (
        "10-linerate-eth0.link",
        "10-linerate-guest-020000000002.link",
    );

    let files = InFiles::new();
    files.tune(apply, 0);
    files.tune(persist, 0);
    assert_eq!(files.links(), [persisted]);
    let refused = files.tune(declare, 1);
    for part in [persisted, "take the name out", "persist --remove"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert_eq!(files.links(), [persisted]);
    // Both ways out.
    files
        .folder
        .with("interfaces.toml", NAMED.replace("name", "# name"));
    files.tune(declare, 0);
    assert_eq!(files.links(), [persisted]);
    files.folder.with("interfaces.toml", NAMED);
    files.tune("persist --remove", 0);
    files.tune(declare, 0);
    assert_eq!(files.links(), [named]);

    let left_out = files.tune(persist, 0);
    for part in [named, "interfaces.toml", "take the name out"] {
        assert!(left_out.contains(part), "{part}: {left_out}");
    }
    assert_eq!(files.links(), [named]);
    files
        .folder
        .with("interfaces.toml", NAMED.replace("name", "# name"));
    files.tune(declare, 0);
    files.tune(persist, 0);
    assert_eq!(files.links(), [persisted]);
}

/// networkd reads as a user of its own.
#[test]
fn files_are_readable_for_others_whatever_the_umask_is() {
    let _beside = beside();
    let host = InFiles::new();
    let path = |name: &str| host.folder.file(name).display().to_string();
    let script = format!(
        "umask 077; exec {} tune interfaces apply --file {} --root {}",
        crate::harness::LINERATE,
        path("interfaces.toml"),
        path("root"),
    );
    run(std::process::Command::new("sh").args(["-c", &script]), LONG).expect(0);
    let folder = host.folder.file("root/etc/systemd/network");
    let mode = |path: &std::path::Path| {
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions())
            & 0o777
    };
    assert_eq!(mode(&folder), 0o755);
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o644);
        files += 1;
    }
    assert!(files > 0);
}
