//! Which file's line is in force at boot, in folders that stand for `/`.

use linerate_kernel::inventory::{NoKernel, Root, collect};
use linerate_model::host::{Effect, HostFacts, Owner, Setting};
use tempfile::TempDir;

/// A folder that stands for `/`, removed at the end.
struct FakeRoot(TempDir);

impl FakeRoot {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn with(self, path: &str, text: &str) -> Self {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn linked(self, path: &str, target: &str) -> Self {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
        self
    }

    fn facts(&self) -> HostFacts {
        collect(&Root::at(self.0.path()).unwrap(), &NoKernel, 0)
    }
}

fn settings(facts: &HostFacts) -> &[Setting] {
    facts.settings.known().unwrap()
}

fn effect_of<'a>(facts: &'a HostFacts, file: &str) -> &'a Effect {
    let found = settings(facts).iter().find(|line| line.file == file);
    &found.unwrap_or_else(|| panic!("nothing of {file}")).effect
}

#[test]
fn the_later_name_wins_whatever_its_folder() {
    let facts = FakeRoot::new()
        .with("etc/sysctl.d/10-a.conf", "net.core.rmem_max = 1\n")
        .with("usr/lib/sysctl.d/50-b.conf", "# b\nnet/core/rmem_max=2\n")
        .facts();
    assert_eq!(
        effect_of(&facts, "/usr/lib/sysctl.d/50-b.conf"),
        &Effect::Wins
    );
    let by = "/usr/lib/sysctl.d/50-b.conf:2".to_owned();
    assert_eq!(
        effect_of(&facts, "/etc/sysctl.d/10-a.conf"),
        &Effect::Overridden { by }
    );
    assert!(
        settings(&facts)
            .iter()
            .all(|line| line.owner == Owner::Sysctl)
    );
}

#[test]
fn a_file_of_the_same_name_hides_the_one_behind_it() {
    let root = FakeRoot::new()
        .with("usr/lib/sysctl.d/50-x.conf", "net.ipv4.tcp_sack = 0\n")
        .with("usr/lib/sysctl.d/60-y.conf", "net.ipv4.tcp_dsack = 0\n")
        .with("etc/sysctl.d/50-x.conf", "net.ipv4.tcp_ecn = 1\n")
        .linked("etc/sysctl.d/60-y.conf", "/dev/null");
    let facts = root.facts();
    let by = |by: &str| Effect::Masked { by: by.to_owned() };
    assert_eq!(
        effect_of(&facts, "/usr/lib/sysctl.d/50-x.conf"),
        &by("/etc/sysctl.d/50-x.conf")
    );
    assert_eq!(
        effect_of(&facts, "/usr/lib/sysctl.d/60-y.conf"),
        &by("/etc/sysctl.d/60-y.conf")
    );
    assert_eq!(effect_of(&facts, "/etc/sysctl.d/50-x.conf"), &Effect::Wins);
}

#[test]
fn the_old_file_is_read_last_or_where_a_link_names_it_or_not_at_all() {
    let conf = "net.core.rmem_max = 3\n";
    let last = FakeRoot::new()
        .with("etc/sysctl.conf", conf)
        .with("etc/sysctl.d/99-z.conf", "net.core.rmem_max = 1\n")
        .facts();
    assert_eq!(effect_of(&last, "/etc/sysctl.conf"), &Effect::Wins);
    let linked = FakeRoot::new()
        .with("etc/sysctl.conf", conf)
        .with("etc/sysctl.d/zz.conf", "net.core.rmem_max = 1\n")
        .linked("etc/sysctl.d/99-sysctl.conf", "../sysctl.conf")
        .facts();
    let of_conf: Vec<_> = settings(&linked)
        .iter()
        .filter(|line| line.value == "3")
        .collect();
    assert_eq!(of_conf.len(), 1, "{of_conf:?}");
    assert_eq!(of_conf[0].file, "/etc/sysctl.d/99-sysctl.conf");
    assert!(matches!(of_conf[0].effect, Effect::Overridden { .. }));
    let systemd = FakeRoot::new()
        .with("etc/sysctl.conf", conf)
        .with("usr/lib/systemd/systemd-sysctl", "")
        .facts();
    assert_eq!(effect_of(&systemd, "/etc/sysctl.conf"), &Effect::NotAtBoot);
}

#[test]
fn one_folder_under_two_names_is_read_once() {
    let facts = FakeRoot::new()
        .with("usr/lib/sysctl.d/50-x.conf", "net.ipv4.tcp_sack = 0\n")
        .linked("lib", "usr/lib")
        .facts();
    assert_eq!(settings(&facts).len(), 1, "{:?}", settings(&facts));
}

#[test]
fn running_values_are_read_below_the_folder_with_dots_in_names() {
    let facts = FakeRoot::new()
        .with(
            "etc/sysctl.d/x.conf",
            "net/ipv4/conf/eth0.5/forwarding = 1\n",
        )
        .with("proc/sys/net/ipv4/conf/eth0.5/forwarding", "0\n")
        .with("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n")
        .facts();
    let value = |key: &str| facts.sysctl(key).known().cloned();
    assert_eq!(
        value("net.ipv4.conf.eth0/5.forwarding").as_deref(),
        Some("0")
    );
    assert_eq!(
        value("net.ipv4.tcp_rmem").as_deref(),
        Some("4096 131072 6291456")
    );
    assert_eq!(facts.system.first_namespace.known(), Some(&false));
}

#[test]
fn the_keys_of_interfaces_are_read_for_both_families_and_no_secret() {
    let facts = FakeRoot::new()
        .with("proc/sys/net/ipv4/conf/all/rp_filter", "2\n")
        .with("proc/sys/net/ipv6/conf/default/accept_ra", "1\n")
        .with("proc/sys/net/ipv6/conf/eth0.5/accept_ra", "0\n")
        .with("proc/sys/net/ipv6/conf/eth0.5/stable_secret", "fe80::1\n")
        .facts();
    for (key, value) in [
        ("net.ipv4.conf.all.rp_filter", "2"),
        ("net.ipv6.conf.default.accept_ra", "1"),
        ("net.ipv6.conf.eth0/5.accept_ra", "0"),
    ] {
        let found = facts.sysctls.get(key).and_then(|value| value.known());
        assert_eq!(found.map(String::as_str), Some(value), "{key}");
    }
    let secret = facts.sysctls.keys().find(|key| key.contains("secret"));
    assert_eq!(secret, None);
}

#[test]
fn profiles_and_user_data_are_read_with_their_lines() {
    let facts = FakeRoot::new()
        .with("etc/tuned/active_profile", "mine\n")
        .with(
            "etc/tuned/mine/tuned.conf",
            "[main]\ninclude=base\n[sysctl]\nnet.core.rmem_max = 2\n",
        )
        .with(
            "usr/lib/tuned/base/tuned.conf",
            "[main]\ninclude=mine\n[sysctl]\nnet.core.rmem_max = 1\n",
        )
        .with(
            "var/lib/cloud/instance/user-data.txt",
            "#cloud-config\nruncmd:\n - sysctl -w net.core.wmem_max=9\n",
        )
        .with(
            "etc/rc.local",
            "#!/bin/sh\n# echo 1 > /proc/irq/5/smp_affinity\necho 2 > /proc/irq/7/smp_affinity\n",
        )
        .facts();
    let of = |owner: Owner| {
        settings(&facts)
            .iter()
            .find(|line| line.owner == owner && line.effect == Effect::Wins)
    };
    assert_eq!(
        of(Owner::Tuned).unwrap().place(),
        "/etc/tuned/mine/tuned.conf:4"
    );
    let cloud = of(Owner::CloudInit).unwrap();
    assert_eq!(
        (cloud.key.as_str(), cloud.value.as_str(), cloud.line),
        ("net.core.wmem_max", "9", 3)
    );
    let pinnings = facts.pinnings.known().unwrap();
    assert_eq!(pinnings.len(), 1);
    assert_eq!(pinnings[0].place, "/etc/rc.local:3");
}
