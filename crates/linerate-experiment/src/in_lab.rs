//! What a profile wishes of a host, in a lab: both hosts' namespaces are made with it. Nothing is restored, as the
//! namespaces are gone after each run.

use linerate_lab::runner::INTERFACE;
use linerate_lab::scenario::{HostSpec, Scenario};
use linerate_model::tuning::{InterfaceSetting, Object};
use linerate_tune::profile::Wish;

/// What a lab cannot be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {} = {} is not possible in a lab: {reason}", .wish.from, .wish.object, .wish.value)]
pub struct NotInLab {
    /// The setting, its value, and the profile line that asks for it.
    pub wish: Wish,
    /// Why not, and what to do.
    pub reason: String,
}

/// The scenario with both of its hosts as the wishes say; the last wish for an object counts.
///
/// # Errors
/// The first wish that a lab's hosts cannot be given.
pub fn with_wishes(scenario: &Scenario, wishes: &[Wish]) -> Result<Scenario, NotInLab> {
    let mut changed = scenario.clone();
    for wish in wishes {
        for host in [&mut changed.sender, &mut changed.receiver] {
            give(host, wish).map_err(|reason| NotInLab {
                wish: wish.clone(),
                reason,
            })?;
        }
    }
    Ok(changed)
}

fn give(host: &mut HostSpec, wish: &Wish) -> Result<(), String> {
    let value = wish.value.clone();
    match &wish.object {
        // A lab's routes name the congestion control, which counts for more than the sysctl.
        Object::Sysctl { key } if key == "net.ipv4.tcp_congestion_control" => {
            host.congestion = value;
        }
        Object::Sysctl { key } if key.starts_with("net.") => {
            host.sysctl.insert(key.clone(), value);
        }
        Object::Sysctl { .. } => {
            return Err(
                "only settings of a network namespace can be set there, and they begin with net."
                    .to_owned(),
            );
        }
        Object::Interface { interface, setting } => {
            if interface != INTERFACE {
                return Err(format!("its hosts have one interface, {INTERFACE}"));
            }
            let number = || value.parse().map_err(|_| "it is not a number".to_owned());
            match setting {
                InterfaceSetting::Mtu => {
                    host.mtu = number()?;
                    if host.mtu < 576 {
                        return Err("its links have an MTU of at least 576".to_owned());
                    }
                }
                InterfaceSetting::Txqueuelen => host.txqueuelen = Some(number()?),
                _ => {
                    return Err(
                        "its interfaces are veth, which have MTU and txqueuelen alone; guests have rings and channels"
                            .to_owned(),
                    );
                }
            }
        }
        Object::Governor | Object::Block { .. } => {
            return Err("it applies to the whole machine, which a lab does not change".to_owned());
        }
    }
    Ok(())
}

/// What wishes cannot do in a lab though they are granted, in words: a figure beside them is no measurement of them.
pub fn without_meaning(wishes: &[Wish]) -> Option<String> {
    let queue = wishes.iter().any(|wish| {
        matches!(
            wish.object,
            Object::Interface {
                setting: InterfaceSetting::Txqueuelen,
                ..
            }
        )
    });
    queue.then(|| {
        format!(
            "txqueuelen: {INTERFACE} of a lab's hosts is a veth without a queue of its own (noqueue), so the kernel keeps the number and uses it nowhere"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_tune::profile;

    fn scenario() -> Scenario {
        Scenario::parse("x", "name = \"x\"\n[path]\nrtt = \"6ms\"\n").unwrap()
    }

    #[test]
    fn both_hosts_get_what_a_profile_wishes() {
        let text = "[sysctl]\n\"net.ipv4.tcp_wmem\" = [4096, 16384, 4194304]\n\"net.ipv4.tcp_congestion_control\" = \"reno\"\n[interface.eth0]\nmtu = 9000\ntxqueuelen = 10000\n";
        let wishes = profile::parse("after.toml", text).unwrap();
        let changed = with_wishes(&scenario(), &wishes).unwrap();
        for host in [&changed.sender, &changed.receiver] {
            assert_eq!((host.mtu, host.txqueuelen), (9000, Some(10000)));
            assert_eq!(host.congestion, "reno");
            assert_eq!(host.sysctl["net.ipv4.tcp_wmem"], "4096 16384 4194304");
        }
        assert!(without_meaning(&wishes).unwrap().contains("noqueue"));
    }

    #[test]
    fn what_a_lab_does_not_have_is_refused_with_its_line() {
        for (text, said) in [
            (
                "[sysctl]\n\"vm.swappiness\" = 1\n",
                "p.toml:2: vm.swappiness = 1 is not possible in a lab: only",
            ),
            ("[interface.eth1]\nmtu = 9000\n", "one interface, eth0"),
            ("[interface.eth0]\nrx_ring = 512\n", "rings"),
            ("[cpu]\ngovernor = \"performance\"\n", "whole machine"),
        ] {
            let wishes = profile::parse("p.toml", text).unwrap();
            let error = with_wishes(&scenario(), &wishes).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
