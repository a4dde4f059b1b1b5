//! A guest's interfaces: what is declared, and what has to be done for it.

use std::collections::BTreeMap;

use linerate_model::host::{Fact, HostFacts, Interface, RouteFacts};
use linerate_tune::guest::declaration::parse;
use linerate_tune::guest::{
    Action, Applied, Declaration, Effects, GuestPlan, NETWORK, Situation, State, carry_out,
    is_ours, plan,
};

const TOML: &str = r#"
ignore = ["FE-16-3E-00-00-09"]

[[interface]]
mac = "FE16.3E00.0001"
name = "data0"
addresses = ["10.0.0.1/24", "fd00::1/64"]
routes = [{ to = "10.1.0.0/16", via = "10.0.0.254" }]
mtu = 9000
"#;

fn declared(text: &str) -> Declaration {
    parse("i.toml", text).unwrap()
}

fn host(up: bool) -> HostFacts {
    let interface = |index: u32, name: &str, mac: &str| Interface {
        name: name.to_owned(),
        index,
        kind: "hardware".to_owned(),
        mac: Some(mac.to_owned()),
        up,
        mtu: Fact::Known(1500),
        parent: Fact::Known(None),
        addresses: Fact::Known(vec!["10.9.9.9/24".to_owned(), "fe80::1/64".to_owned()]),
        ..Interface::default()
    };
    let mut facts = HostFacts {
        interfaces: Fact::Known(vec![
            interface(2, "ens3", "fe:16:3e:00:00:02"),
            interface(3, "ens4", "fe:16:3e:00:00:01"),
        ]),
        routes: Fact::Known(vec![RouteFacts {
            destination: "default".to_owned(),
            gateway: Some("192.0.2.1".to_owned()),
            interface: Some("ens3".to_owned()),
            ..RouteFacts::default()
        }]),
        ..HostFacts::default()
    };
    facts.system.boot_id = Fact::Known("b1".to_owned());
    facts
}

fn situation(up: bool) -> Situation {
    Situation::of(&host(up)).unwrap()
}

/// What is done, without the files.
fn words(plan: &GuestPlan) -> Vec<String> {
    let own = |action: &&Action| action.mac().is_some();
    plan.actions
        .iter()
        .filter(own)
        .map(ToString::to_string)
        .collect()
}

/// What the next time finds.
fn applied(declaration: &Declaration, start: &str) -> State {
    let one = Applied {
        index: 3,
        declared: declaration.interfaces[0].clone(),
    };
    State {
        boot_id: "b1".to_owned(),
        start: start.to_owned(),
        applied: [(one.declared.mac, one)].into(),
    }
}

#[test]
fn an_interface_is_named_and_set_up_in_this_order() {
    let plan = plan(&declared(TOML), &situation(false));
    assert_eq!(
        words(&plan),
        [
            "rename ens4 to data0",
            "set the MTU of data0 to 9000",
            "bring data0 up",
            "add the address 10.0.0.1/24 of data0",
            "add the address fd00::1/64 of data0",
            "remove the address 10.9.9.9/24 of data0",
            "add the route 10.1.0.0/16 via 10.0.0.254 of data0",
        ]
    );
    let texts: Vec<&str> = plan
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::WriteFile { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    for part in [
        "unmanaged-devices+=mac:fe:16:3e:00:00:01\n",
        "Name=data0\n",
        "Unmanaged=yes\n",
    ] {
        assert!(
            texts.iter().any(|text| text.contains(part)),
            "{part}: {texts:?}"
        );
    }
    assert!(plan.refused.is_empty() && plan.notes.is_empty(), "{plan:?}");
}

#[test]
fn one_that_is_up_is_named_at_the_next_boot_unless_it_is_allowed() {
    let waits = plan(&declared(TOML), &situation(true));
    assert!(waits.notes[0].contains("rename_while_up"), "{waits:?}");
    assert!(words(&waits)[0].starts_with("set the MTU of ens4"));
    let allowed = format!("{TOML}rename_while_up = true\n");
    let at_once = plan(&declared(&allowed), &situation(true));
    assert_eq!(words(&at_once)[0], "rename ens4 to data0");
    let mut taken = situation(false);
    taken.names.push("data0".to_owned());
    let taken = plan(&declared(TOML), &taken);
    assert!(
        taken.notes[0].contains("another interface has this name"),
        "{taken:?}"
    );
}

#[test]
fn what_was_changed_by_hand_lives_until_the_declaration_or_the_start_changes() {
    let declaration = declared(TOML);
    let mut now = situation(true);
    now.state = applied(&declaration, "s1");
    let by_hand = plan(&declaration, &now);
    assert!(
        words(&by_hand).is_empty() && by_hand.by_hand.len() == 5,
        "{by_hand:?}"
    );
    now.start = "s1".to_owned();
    assert!(words(&plan(&declaration, &now)).is_empty());
    now.start = "s2".to_owned();
    assert_eq!(words(&plan(&declaration, &now)).len(), 5);
    now.start = String::new();
    now.boot_id = "b2".to_owned();
    assert_eq!(words(&plan(&declaration, &now)).len(), 5);
    now.boot_id = "b1".to_owned();
    let mut put_in_again = now.clone();
    for one in put_in_again.interfaces.iter_mut().flatten() {
        one.index += 10;
    }
    assert_eq!(words(&plan(&declaration, &put_in_again)).len(), 5);
    // A route that the old declaration had goes with it.
    now.routes.push(RouteFacts {
        destination: "10.1.0.0/16".to_owned(),
        gateway: Some("10.0.0.254".to_owned()),
        interface: Some("ens4".to_owned()),
        ..RouteFacts::default()
    });
    let other = TOML.replace("routes", "# routes");
    let changed = plan(&declared(&other), &now);
    assert!(
        words(&changed).contains(&"remove the route 10.1.0.0/16 via 10.0.0.254 of ens4".to_owned()),
        "{changed:?}"
    );
}

#[test]
fn the_default_route_s_interface_and_those_to_ignore_are_refused() {
    let text = "[[interface]]\nmac = \"fe:16:3e:00:00:02\"\nmtu = 9000\n";
    let refused = plan(&declared(text), &situation(true));
    assert!(
        refused.refused[0].contains("has the default route"),
        "{refused:?}"
    );
    assert!(refused.actions.is_empty());
    let allowed = format!("{text}allow_default_route = true\n");
    assert!(
        plan(&declared(&allowed), &situation(true))
            .refused
            .is_empty()
    );
    // The route is over a VLAN: what is below carries it.
    let mut facts = host(true);
    if let (Fact::Known(interfaces), Fact::Known(routes)) =
        (&mut facts.interfaces, &mut facts.routes)
    {
        interfaces.push(Interface {
            name: "ens4.7".to_owned(),
            kind: "vlan".to_owned(),
            mac: Some("fe:16:3e:00:00:01".to_owned()),
            parent: Fact::Known(Some("ens4".to_owned())),
            ..Interface::default()
        });
        routes[0].interface = Some("ens4.7".to_owned());
    }
    let below = plan(&declared(TOML), &Situation::of(&facts).unwrap());
    assert!(
        below.refused[0].contains("ens4 has the default route"),
        "{below:?}"
    );
    let ignored = TOML.replace("FE-16-3E-00-00-09", "fe163e000001");
    let ignored = plan(&declared(&ignored), &situation(false));
    assert!(ignored.refused[0].contains("to ignore") && ignored.actions.is_empty());
    facts.routes = Fact::unknown("no netlink");
    assert_eq!(Situation::of(&facts), Err("no netlink".to_owned()));
}

#[test]
fn files_that_are_there_are_left_and_those_no_longer_declared_go() {
    let mut now = situation(true);
    let first = plan(&declared(TOML), &now);
    for action in &first.actions {
        if let Action::WriteFile { path, text } = action {
            now.files.insert(path.clone(), text.clone());
        }
    }
    now.running = vec!["NetworkManager".to_owned()];
    let files = |plan: &GuestPlan| -> Vec<String> {
        let other = |action: &&Action| action.mac().is_none();
        plan.actions
            .iter()
            .filter(other)
            .map(ToString::to_string)
            .collect()
    };
    assert!(files(&plan(&declared(TOML), &now)).is_empty());
    assert_eq!(
        files(&plan(&Declaration::default(), &now)),
        [
            "remove /etc/NetworkManager/conf.d/90-linerate-interfaces.conf",
            "remove /etc/systemd/network/10-linerate-guest-fe163e000001.link",
            "remove /etc/systemd/network/10-linerate-guest-fe163e000001.network",
            "have NetworkManager read its files again"
        ]
    );
    // For as long as it must not be touched, its files stay as they are.
    now.carriers.push("ens4".to_owned());
    let refused = plan(&declared(TOML), &now);
    assert!(
        refused.actions.is_empty() && refused.refused.len() == 1,
        "{refused:?}"
    );
}

#[test]
fn files_of_persist_are_not_those_of_a_guest() {
    let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let plan = plan(&declared(TOML), &situation(true));
    let ours = plan.actions.iter().filter_map(|action| match action {
        Action::WriteFile { path, .. } if path.starts_with(NETWORK) => Some(name(path)),
        _ => None,
    });
    let ours: Vec<String> = ours.collect();
    assert!(
        ours.len() == 2 && ours.iter().all(|name| is_ours(name)),
        "{ours:?}"
    );
    // The last two are as long as a name of an interface can be (IFNAMSIZ).
    for interface in [
        "eth0",
        "guest-",
        "guest-data",
        "guest-fe163e000",
        "guest-000000000",
    ] {
        assert!(
            !is_ours(&format!("10-linerate-{interface}.link")),
            "{interface}"
        );
    }
}

#[test]
fn the_old_request_says_the_same() {
    let ini = "[global]\nactor_id = x\ndataplane-macs-to-ignore = FE-16-3E-00-00-09, fe163e00000a\n\n[interfaces]\n\
        fe:16:3e:00:00:01 = up:ipv4:10.0.0.1/24\nFE163E000003 = up : ipv6 : fd00::1/64\nfe:16:3e:00:00:04 = down\n\
        [routes]\n10.1.0.0/16 = 10.0.0.254\n[storage]\ndev = x\n";
    let request = parse("request.ini", ini).unwrap();
    assert_eq!(request.ignore.len(), 2);
    let one = &request.interfaces[0];
    assert_eq!(one.routes[0].to_string(), "10.1.0.0/16 via 10.0.0.254");
    assert_eq!(request.interfaces[1].addresses[0].to_string(), "fd00::1/64");
    assert!(!request.interfaces[2].up);
    assert!(
        request.notes[0].contains("request.ini:11: [storage]"),
        "{:?}",
        request.notes
    );
    let same = "[[interface]]\nmac = \"fe:16:3e:00:00:01\"\naddresses = [\"10.0.0.1/24\"]\n\
        routes = [{ to = \"10.1.0.0/16\", via = \"10.0.0.254\" }]\n";
    assert_eq!(declared(same).interfaces[0], *one);
}

#[test]
fn what_cannot_be_is_refused_with_its_line() {
    let mac = "[[interface]]\nmac = \"fe:16:3e:00:00:01\"\n";
    for (text, line, part) in [
        ("[[interfac]]\n".to_owned(), 1, "did you mean 'interface'?"),
        (
            format!("{mac}adresses = []\n"),
            3,
            "did you mean 'addresses'?",
        ),
        (
            "[[interface]]\nname = \"x\"\n".to_owned(),
            1,
            "needs the key 'mac'",
        ),
        (
            "[[interface]]\nmac = \"fe:16\"\n".to_owned(),
            2,
            "not a MAC address",
        ),
        (format!("{mac}name = \"eth0\"\n"), 3, "the kernel's own"),
        (format!("{mac}name = \"a b\"\n"), 3, "1 to 15 letters"),
        (
            format!("{mac}addresses = [\"10.0.0.1\"]\n"),
            3,
            "with a prefix",
        ),
        (
            format!("{mac}routes = [{{ to = \"10.1.2.3/16\" }}]\n"),
            3,
            "the network is 10.1.0.0/16",
        ),
        (
            format!("{mac}routes = [{{ to = \"default\", via = \"10.0.0.1\" }}]\n"),
            3,
            "allow_default_route",
        ),
        (
            format!("{mac}routes = [{{ via = \"10.0.0.1\" }}]\n"),
            3,
            "needs the key 'to'",
        ),
        (
            format!("{mac}mtu = 1200\naddresses = [\"fd00::1/64\"]\n"),
            3,
            "at least 1280",
        ),
        (format!("{mac}{mac}"), 3, "declared twice"),
        (format!("{mac}up = \"yes\"\n"), 3, "neither true nor false"),
    ] {
        let error = parse("i.toml", &text).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("i.toml:{line}: ")) && error.contains(part),
            "{text}: {error}"
        );
    }
    for (text, line, part) in [
        ("x = 1\n", 1, "not in a section"),
        ("[interface]\n", 1, "did you mean 'interfaces'?"),
        (
            "[interfaces]\nfe:16:3e:00:00:01 = on\n",
            2,
            "neither up nor down",
        ),
        (
            "[interfaces]\nfe:16:3e:00:00:01 = up:ipv4:fd00::1/64\n",
            2,
            "not of the family",
        ),
        ("[interfaces]\nfe:16 = up\n", 2, "not a MAC address"),
        (
            "[routes]\n10.0.0.0/8 = 10.0.0.1\n",
            2,
            "network of no interface",
        ),
        (
            "[global]\ndataplane-macs-to-ignore = a,b\n",
            2,
            "not a MAC address",
        ),
    ] {
        let error = parse("r.ini", text).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("r.ini:{line}: ")) && error.contains(part),
            "{text}: {error}"
        );
    }
}

#[test]
fn after_a_failure_its_interface_is_left_and_others_go_on() {
    struct Refusing(BTreeMap<String, u32>);
    impl Effects for Refusing {
        fn act(&mut self, action: &Action) -> Result<(), String> {
            *self.0.entry(action.to_string()).or_default() += 1;
            match action {
                Action::Mtu { interface, .. } if interface == "data0" => Err("no".to_owned()),
                _ => Ok(()),
            }
        }
    }
    let two = format!(
        "{TOML}\n[[interface]]\nmac = \"fe:16:3e:00:00:02\"\nallow_default_route = true\nmtu = 9000\n"
    );
    let plan = plan(&declared(&two), &situation(false));
    let mut effects = Refusing(BTreeMap::new());
    let done = carry_out(&plan, &mut effects);
    assert_eq!(done.failed, ["cannot set the MTU of data0 to 9000: no"]);
    assert!(!effects.0.contains_key("bring data0 up"));
    assert!(effects.0.contains_key("bring ens3 up"));
    assert_eq!(done.whole.len(), 1);
    assert_eq!(done.whole[0].to_string(), "fe:16:3e:00:00:02");
}

/// An interface whose address somebody changed: `ens4` has another now.
fn with_changed_address() -> HostFacts {
    let mut facts = host(false);
    if let Fact::Known(interfaces) = &mut facts.interfaces {
        let ens4 = interfaces.iter_mut().find(|one| one.name == "ens4");
        let ens4 = ens4.unwrap();
        ens4.permanent_mac = ens4.mac.replace("02:00:00:00:00:77".to_owned());
    }
    facts
}

#[test]
fn an_interface_is_found_by_the_address_of_its_own_first() {
    let mut facts = with_changed_address();
    let renames = |plan: &GuestPlan| {
        let rename = |one: &Action| one.to_string() == "rename ens4 to data0";
        assert!(plan.refused.is_empty(), "{plan:?}");
        plan.actions.iter().any(rename)
    };
    let own = plan(&declared(TOML), &Situation::of(&facts).unwrap());
    assert!(renames(&own) && own.notes.is_empty(), "{own:?}");
    // By the one that it has now as well, with a word on what that is worth.
    let now = TOML.replace("FE16.3E00.0001", "02:00:00:00:00:77");
    let by_now = plan(&declared(&now), &Situation::of(&facts).unwrap());
    assert!(renames(&by_now), "{by_now:?}");
    assert!(
        by_now.notes[0].contains("fe:16:3e:00:00:01 of its own"),
        "{by_now:?}"
    );
    let twice = format!("{TOML}[[interface]]\nmac = \"02:00:00:00:00:77\"\n");
    let twice = plan(&declared(&twice), &Situation::of(&facts).unwrap());
    assert!(twice.actions.is_empty(), "{twice:?}");
    for refused in &twice.refused {
        assert!(refused.contains("means ens4 too"), "{twice:?}");
    }
    assert_eq!(twice.refused.len(), 2);
    // Another that has taken its address is not meant.
    if let Fact::Known(interfaces) = &mut facts.interfaces {
        interfaces.push(Interface {
            name: "ens9".to_owned(),
            index: 9,
            mac: Some("fe:16:3e:00:00:01".to_owned()),
            permanent_mac: Some("fe:16:3e:00:00:42".to_owned()),
            ..Interface::default()
        });
    }
    let own = plan(&declared(TOML), &Situation::of(&facts).unwrap());
    assert!(renames(&own), "{own:?}");
}

#[test]
fn an_interface_to_ignore_is_left_alone_under_either_address() {
    for ignored in ["02:00:00:00:00:77", "fe:16:3e:00:00:01"] {
        let text = TOML.replace("FE-16-3E-00-00-09", ignored);
        let plan = plan(
            &declared(&text),
            &Situation::of(&with_changed_address()).unwrap(),
        );
        assert!(plan.refused[0].contains("to ignore"), "{plan:?}");
        assert!(plan.actions.is_empty(), "{plan:?}");
    }
}
