//! Profiles and plans: what is refused, in which order the rest would be done, and who else sets it.

use linerate_model::audit::Risk;
use linerate_model::host::{Fact, Governor, HostFacts, Interface};
use linerate_model::tuning::TuningPlan;
use linerate_tune::plan::{plan, wishes_of};
use linerate_tune::profile::{parse, parse_sysctl};

use crate::hosts::{far, folder, host};

/// The data-transfer node with a VLAN on its card.
fn with_vlan() -> HostFacts {
    let mut facts = host("dtn");
    if let Fact::Known(interfaces) = &mut facts.interfaces {
        let parent = interfaces
            .iter_mut()
            .find(|one| one.name == "eth0")
            .unwrap();
        parent.mtu = Fact::Known(1500);
        interfaces.push(Interface {
            name: "eth0.7".to_owned(),
            index: 9,
            kind: "vlan".to_owned(),
            mtu: Fact::Known(1500),
            parent: Fact::Known(Some("eth0".to_owned())),
            ..Interface::default()
        });
    }
    facts
}

fn planned(facts: &HostFacts, text: &str) -> TuningPlan {
    plan(facts, &parse("p.toml", text).unwrap())
}

fn steps(plan: &TuningPlan) -> Vec<String> {
    plan.steps
        .iter()
        .map(|step| format!("{} = {}", step.object, step.wanted))
        .collect()
}

#[test]
fn an_mtu_grows_from_below_and_shrinks_from_above() {
    let grow = "[interface.\"eth0.7\"]\nmtu = 9000\n[interface.eth0]\nmtu = 9000\nrx_ring = 2048\n[sysctl]\n\"net.ipv4.tcp_mtu_probing\" = 2\n";
    let plan = planned(&with_vlan(), grow);
    assert_eq!(
        steps(&plan),
        [
            "net.ipv4.tcp_mtu_probing = 2",
            "rx_ring of eth0 = 2048",
            "mtu of eth0 = 9000",
            "mtu of eth0.7 = 9000"
        ]
    );
    assert_eq!(plan.steps[0].risk, Risk::None);
    assert_eq!(plan.steps[3].risk, Risk::LinkFlap);
    assert_eq!(plan.steps[3].from, "p.toml:2");
    let shrink = "[interface.\"eth0.7\"]\nmtu = 1400\n[interface.eth0]\nmtu = 1400\n";
    assert_eq!(
        steps(&planned(&with_vlan(), shrink)),
        ["mtu of eth0.7 = 1400", "mtu of eth0 = 1400"]
    );
}

#[test]
fn what_the_host_cannot_be_given_is_refused_with_the_reason() {
    let text = "[interface.\"eth0.7\"]\nmtu = 9000\n[interface.eth0]\nrx_ring = 65536\nchannels = 64\n[interface.eth1]\nmtu = 9000\n[sysctl]\n\"net.ipv4.tcp_rmen\" = [4096, 131072, 1048576]\n";
    let plan = planned(&with_vlan(), text);
    assert!(plan.steps.is_empty(), "{:?}", plan.steps);
    let why: Vec<&str> = plan.refused.iter().map(|one| one.why.as_str()).collect();
    for part in [
        "eth0 below eth0.7 has or would have an MTU of 1500",
        "the receive ring of eth0 is at most 4096",
        "the number of channels of eth0 is at most 63",
        "there is no interface eth1; there are lo, eth0",
        "did you mean net.ipv4.tcp_rmem?",
    ] {
        assert!(
            why.iter().any(|each| each.contains(part)),
            "{part}: {why:?}"
        );
    }
}

#[test]
fn what_is_set_by_queue_comes_after_the_number_of_queues() {
    let text = "[interface.eth0]\nirq_cpus = \"0-3\"\nqdisc = \"fq_codel\"\nrx_usecs = 60\n";
    assert_eq!(
        steps(&planned(&host("dtn"), text)),
        [
            "rx_usecs of eth0 = 60",
            "irq_cpus of eth0 = 0-3",
            "qdisc of eth0 = fq_codel"
        ]
    );
    let all = format!("{text}channels = 2\nrx_ring = 2048\n");
    assert_eq!(
        steps(&planned(&host("dtn"), &all)),
        [
            "rx_usecs of eth0 = 60",
            "rx_ring of eth0 = 2048",
            "channels of eth0 = 2",
            "qdisc of eth0 = fq_codel",
            // No more CPUs than there will be queues.
            "irq_cpus of eth0 = 0-1"
        ]
    );
    let plan = planned(&host("dtn"), "[interface.eth0]\nirq_cpus = \"0-4000\"\n");
    assert!(
        plan.refused[0].why.contains("the CPUs online are"),
        "{plan:?}"
    );
}

#[test]
fn irqbalance_and_start_up_files_own_interrupts() {
    let mut facts = host("dtn");
    for keeper in &mut facts.keepers {
        keeper.running = Fact::Known(keeper.name == "irqbalance");
    }
    facts.pinnings = Fact::Known(vec![linerate_model::host::Pinning {
        place: "/etc/rc.local:3".to_owned(),
        text: String::new(),
    }]);
    let plan = planned(&facts, "[interface.eth0]\nirq_cpus = \"2,3\"\n");
    assert_eq!(plan.steps[0].owners, ["irqbalance", "/etc/rc.local:3"]);
    assert_eq!(plan.steps[0].programs, ["irqbalance"]);
    assert_eq!(plan.steps[0].risk, Risk::None);
}

#[test]
fn an_mtu_that_would_end_ipv6_is_refused() {
    let mut facts = host("dtn");
    let small = "[interface.eth0]\nmtu = 1200\n";
    if let Fact::Known(interfaces) = &mut facts.interfaces {
        for one in interfaces {
            one.addresses = Fact::Known(vec!["192.0.2.1/24".to_owned()]);
        }
    }
    assert!(planned(&facts, small).refused.is_empty());
    if let Fact::Known(interfaces) = &mut facts.interfaces {
        for one in interfaces {
            one.addresses = Fact::Known(vec!["fe80::1/64".to_owned()]);
        }
    }
    assert!(planned(&facts, small).refused[0].why.contains("below 1280"));
}

#[test]
fn an_mtu_that_would_end_ipv6_above_is_refused_and_says_where() {
    let mut facts = with_vlan();
    let small = "[interface.eth0]\nmtu = 1200\n";
    let give =
        |facts: &mut HostFacts, name: &str, kind: &str, below: Option<&str>, address: &str| {
            let Fact::Known(interfaces) = &mut facts.interfaces else {
                panic!("no interfaces");
            };
            interfaces.push(Interface {
                name: name.to_owned(),
                kind: kind.to_owned(),
                parent: Fact::Known(below.map(str::to_owned)),
                addresses: Fact::Known(vec![address.to_owned()]),
                ..Interface::default()
            });
        };
    let master = |facts: &mut HostFacts, name: &str, master: &str| {
        let Fact::Known(interfaces) = &mut facts.interfaces else {
            panic!("no interfaces");
        };
        for one in interfaces.iter_mut().filter(|one| one.name == name) {
            one.master = Some(master.to_owned());
        }
    };
    // A VLAN without an address of IPv6, a tunnel, and a VRF lose nothing.
    give(&mut facts, "tunnel", "vxlan", Some("eth0"), "fd00::1/64");
    give(&mut facts, "red", "vrf", None, "fd00::2/64");
    master(&mut facts, "eth0", "red");
    assert!(planned(&facts, small).refused.is_empty());
    // A bridge of the VLAN, two storeys up, and a macvlan.
    give(&mut facts, "br0", "bridge", None, "fe80::3/64");
    master(&mut facts, "eth0.7", "br0");
    give(&mut facts, "mv0", "macvlan", Some("eth0"), "fd00::4/64");
    let refused = planned(&facts, small).refused;
    assert!(
        refused[0].why.contains("IPv6 addresses: mv0, br0."),
        "{refused:?}"
    );
    assert!(
        planned(&facts, "[interface.eth0]\nmtu = 1280\n")
            .refused
            .is_empty()
    );
}

#[test]
fn keys_of_an_interface_are_planned_and_unknown_ones_are_refused() {
    let mut facts = host("dtn");
    for key in ["all", "default", "eth0", "eth0/7"] {
        facts.sysctls.insert(
            format!("net.ipv6.conf.{key}.accept_ra"),
            Fact::Known("1".to_owned()),
        );
        facts.sysctls.insert(
            format!("net.ipv6.conf.{key}.disable_ipv6"),
            Fact::Known("0".to_owned()),
        );
    }
    let plan = planned(
        &facts,
        "[sysctl]\n\"net.ipv6.conf.eth0/7.accept_ra\" = 0\n\"net.ipv6.conf.default.accept_ra\" = 1\n\"net.ipv6.conf.eth0.acept_ra\" = 0\n",
    );
    assert_eq!(steps(&plan), ["net.ipv6.conf.eth0/7.accept_ra = 0"]);
    assert_eq!(plan.fulfilled.len(), 1);
    let why = &plan.refused[0].why;
    assert!(
        why.contains("did you mean net.ipv6.conf.eth0.accept_ra?"),
        "{why}"
    );
    // Addresses do not come back.
    if let Fact::Known(interfaces) = &mut facts.interfaces {
        for one in interfaces {
            one.addresses = Fact::Known(vec!["fe80::1/64".to_owned()]);
        }
    }
    for (key, refused) in [("eth0", "eth0,"), ("all", "lo, eth0,"), ("default", "")] {
        let off = format!("[sysctl]\n\"net.ipv6.conf.{key}.disable_ipv6\" = 1\n");
        let plan = planned(&facts, &off);
        let why = plan
            .refused
            .first()
            .map_or("", |refusal| refusal.why.as_str());
        assert!(why.contains(refused), "{key}: {why}");
        assert_eq!(why.is_empty(), refused.is_empty(), "{key}: {plan:?}");
    }
}

#[test]
fn a_congestion_control_that_is_not_there_yet_is_marked() {
    let mut facts = host("dtn");
    for (key, value) in [
        ("net.ipv4.tcp_available_congestion_control", "reno cubic"),
        ("net.ipv4.tcp_congestion_control", "cubic"),
    ] {
        facts
            .sysctls
            .insert(key.to_owned(), Fact::Known(value.to_owned()));
    }
    let wish = |name: &str| format!("[sysctl]\n\"net.ipv4.tcp_congestion_control\" = \"{name}\"\n");
    let plan = planned(&facts, &wish("bbr"));
    assert!(plan.steps[0].warnings[0].contains("reno cubic"), "{plan:?}");
    assert!(planned(&facts, &wish("reno")).steps[0].warnings.is_empty());
}

#[test]
fn the_reference_names_every_key_of_an_interface() {
    let text = std::fs::read_to_string(folder().join("../../docs/reference/profile.md"));
    let text = text
        .or_else(|_| std::fs::read_to_string("../../docs/reference/profile.md"))
        .unwrap();
    for (_, key) in linerate_model::tuning::InterfaceSetting::ALL {
        assert!(text.contains(&format!("`{key}`")), "{key}");
    }
}

#[test]
fn what_is_so_already_is_no_step() {
    let text = "name = \"x\"\n[sysctl]\n\"net.core.default_qdisc\" = \"fq\"\n[interface.eth0]\nqdisc = \"fq\"\ntso = true\nadaptive_rx = true\n[cpu]\ngovernor = \"performance\"\n";
    let plan = planned(&host("dtn"), text);
    assert_eq!((plan.steps.len(), plan.refused.len()), (0, 0), "{plan:?}");
    assert_eq!(plan.fulfilled.len(), 5);
}

#[test]
fn unknown_keys_and_impossible_values_are_named_with_their_line() {
    for (text, parts) in [
        ("[sysctll]\n", ["p.toml:1", "did you mean 'sysctl'?"]),
        (
            "[interface.eth0]\n\nmtuu = 9000\n",
            ["p.toml:3", "did you mean 'mtu'?"],
        ),
        ("[interface.eth0]\nmtu = 12\n", ["p.toml:2", "68 to 65535"]),
        (
            "[interface.eth0]\nmtu = \"9000\"\n",
            ["p.toml:2", "not a whole number"],
        ),
        (
            "[interface.eth0]\nqdisc = \"fqq\"\n",
            ["p.toml:2", "did you mean 'fq'?"],
        ),
        (
            "[interface.eth0]\ntso = \"on\"\n",
            ["p.toml:2", "neither true nor false"],
        ),
        (
            "[interface.eth0]\nrps_cpus = \"all\"\n",
            ["p.toml:2", "neither \"off\" nor"],
        ),
        (
            "[interface.eth0]\nirq_cpus = \"off\"\n",
            ["p.toml:2", "not a list of CPUs"],
        ),
        ("[cpu]\nspeed = 3\n", ["p.toml:2", "governor"]),
        (
            "[sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 1024 9\"\n",
            ["p.toml:2", "do not ascend"],
        ),
        (
            "[sysctl]\n\"net.ipv4.tcp_wmem\" = \"1 2 99999999999\"\n",
            ["p.toml:2", "at most 2147483647"],
        ),
        (
            "[sysctl]\n\"net.core.rmem_max\" = \"64M\"\n",
            ["p.toml:2", "number of bytes"],
        ),
        (
            "[sysctl]\ntcp_rmem = 1\n",
            ["p.toml:2", "whole and in quotation marks"],
        ),
        (
            "[sysctl]\n\"net.core.netdev_max_backlog\" = 1e5\n",
            ["p.toml:2", "whole numbers"],
        ),
        ("[sysctl\n", ["p.toml:1", "invalid TOML"]),
        ("sysctl = 3\n", ["p.toml:1", "not a table"]),
    ] {
        let error = parse("p.toml", text).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{text}: {error}");
        }
    }
    let error = parse_sysctl("x.conf", "# a\nnet.core.rmem_max\n").unwrap_err();
    assert!(error.to_string().starts_with("x.conf:2: "), "{error}");
}

#[test]
fn old_keys_of_a_recipe_are_marked() {
    let text = std::fs::read_to_string(folder().join("recipes/vendor-10g-2012.conf")).unwrap();
    let mut facts = host("dtn");
    facts.sysctls.insert(
        "net.ipv4.tcp_low_latency".to_owned(),
        Fact::Known("0".to_owned()),
    );
    let plan = plan(&facts, &parse_sysctl("v.conf", &text).unwrap());
    let marked = |key: &str, check: &str| {
        let step = plan
            .steps
            .iter()
            .find(|step| step.object.to_string() == key);
        step.is_some_and(|step| step.warnings.iter().any(|text| text.starts_with(check)))
    };
    for (key, check) in [
        ("net.ipv4.tcp_timestamps", "H01"),
        ("net.ipv4.tcp_low_latency", "H02"),
        ("net.ipv4.tcp_mem", "H03"),
        ("net.core.rmem_default", "H04"),
        ("net.core.netdev_max_backlog", "H05"),
    ] {
        assert!(marked(key, check), "{key}: {:?}", plan.steps);
    }
    assert!(!marked("net.core.rmem_max", "H"));
}

#[test]
fn the_audit_s_recommendations_are_a_plan_and_after_it_none() {
    let mut facts = host("guest");
    let audit = linerate_tune::audit(&facts, None, &far()).unwrap();
    let plan = plan(&facts, &wishes_of(&audit));
    assert_eq!(
        steps(&plan),
        [
            "net.core.default_qdisc = fq",
            "net.ipv4.tcp_rmem = 4096 131072 300000000",
            "net.ipv4.tcp_wmem = 4096 16384 150000000",
            "qdisc of eth0 = fq"
        ]
    );
    for step in &plan.steps {
        let key = step.object.to_string();
        facts.sysctls.insert(key, Fact::Known(step.wanted.clone()));
    }
    let after = linerate_tune::audit(&facts, None, &far()).unwrap();
    let buffers: Vec<_> = after
        .firing()
        .filter(|one| one.check.starts_with('T'))
        .collect();
    assert!(buffers.is_empty(), "{buffers:?}");
}

#[test]
fn what_an_audit_says_of_cards_and_cpus_is_planned_where_no_link_goes_down() {
    let mut facts = host("dtn");
    facts.processors.governors = Fact::Known(vec![Governor {
        name: "powersave".to_owned(),
        cpus: "0-15".parse().unwrap(),
    }]);
    if let Fact::Known(interfaces) = &mut facts.interfaces {
        let card = interfaces
            .iter_mut()
            .find(|one| one.name == "eth0")
            .unwrap();
        if let Fact::Known(features) = &mut card.features {
            let tso = features.get_mut("tx-tcp-segmentation").unwrap();
            (tso.on, tso.fixed) = (false, false);
        }
        if let Fact::Known(channels) = &mut card.channels {
            channels.combined = 4;
        }
        if let Fact::Known(qdiscs) = &mut card.qdiscs {
            for leaf in qdiscs.iter_mut().filter(|one| one.leaf) {
                leaf.kind = "fq_codel".to_owned();
            }
        }
    }
    let audit = linerate_tune::audit(&facts, None, &far()).unwrap();
    let plan = plan(&facts, &wishes_of(&audit));
    let steps = steps(&plan);
    for wanted in [
        "governor = performance",
        "tso of eth0 = on",
        "qdisc of eth0 = fq",
    ] {
        assert!(
            steps.iter().any(|step| step == wanted),
            "{wanted}: {steps:?}"
        );
    }
    assert!(
        plan.steps.iter().all(|step| step.risk <= Risk::QueueReset),
        "{steps:?}"
    );
    let all: Vec<_> = audit.firing().map(|one| one.check.as_str()).collect();
    assert!(all.contains(&"N03"), "{all:?}");
}

#[test]
fn what_an_audit_says_is_off_or_without_effect_is_planned_so() {
    let with = |change: &dyn Fn(&mut Interface)| {
        let mut facts = host("dtn");
        if let Fact::Known(interfaces) = &mut facts.interfaces {
            let card = interfaces.iter_mut().find(|one| one.name == "eth0");
            change(card.unwrap());
        }
        let audit = linerate_tune::audit(&facts, None, &far()).unwrap();
        let fired: Vec<String> = audit.firing().map(|one| one.check.clone()).collect();
        (fired, steps(&plan(&facts, &wishes_of(&audit))))
    };
    let says = |steps: &[String], word: &str| steps.iter().any(|step| step.contains(word));

    let (fired, steps) = with(&|card| {
        if let Fact::Known(queues) = &mut card.queues {
            for queue in queues {
                queue.cpus = Fact::Known("0-15".parse().unwrap());
            }
        }
    });
    assert!(fired.iter().any(|check| check == "C04"), "{fired:?}");
    assert!(says(&steps, "rps_cpus of eth0 = off"), "{steps:?}");

    // A longer queue than nothing uses has no effect either way.
    let (fired, steps) = with(&|card| card.tx_queue_len = Fact::Known(10_000));
    assert!(fired.iter().any(|check| check == "N09"), "{fired:?}");
    assert!(!says(&steps, "txqueuelen"), "{steps:?}");

    // Somebody's shaper stays.
    let (_, steps) = with(&|card| {
        if let Fact::Known(qdiscs) = &mut card.qdiscs {
            for leaf in qdiscs.iter_mut().filter(|one| one.leaf) {
                leaf.kind = "cake".to_owned();
            }
        }
    });
    assert!(!says(&steps, "qdisc of"), "{steps:?}");
}

#[test]
fn other_owners_are_named() {
    let mut facts = host("dtn");
    for keeper in &mut facts.keepers {
        keeper.running = Fact::Known(true);
    }
    let text = "[sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 67108864\"\n[interface.eth0]\nmtu = 1500\n";
    let plan = planned(&facts, text);
    assert_eq!(plan.steps[0].owners, ["bpftune"]);
    assert_eq!(plan.steps[1].owners, ["tuned"]);
}
