//! The CPUs of an interface's interrupts where irqbalance runs: a policy script that keeps irqbalance from them and sets
//! them, and the drop-in by which irqbalance is told of it.
//!
//! The numbers of interrupts change with the boot. irqbalance asks its policy script about each interrupt that it finds,
//! with the device that it is of (irqbalance(1), `--policyscript`; `get_irq_user_policy` in its `classify.c`), so that
//! the script knows them by the place of the device on the PCI bus. That it sets what it bans is what irqbalance's own
//! example does (`misc/irqbalance.policy.d/follow-affinity-hint.example`).

use linerate_model::host::{HostFacts, Interface};

use super::{Place, runs};

const NAME: &str = "irqbalance";
pub(super) const SCRIPT: &str = "/etc/linerate/irqbalance-policy";
const DROP_IN: &str = "/etc/systemd/system/irqbalance.service.d/95-linerate.conf";

/// What the files do not do by themselves.
pub(super) const WARNING: &str = "irqbalance reads its policy script from its next start on: systemctl daemon-reload && systemctl restart irqbalance; \
     IRQBALANCE_ARGS in /etc/default/irqbalance or /etc/sysconfig/irqbalance would win over the drop-in (systemctl cat irqbalance)";

/// The script's line and the drop-in's.
pub(super) fn places(
    interface: &Interface,
    cpus: &str,
    facts: &HostFacts,
) -> Result<Vec<Place>, String> {
    if !runs(facts, NAME) {
        return Err(
            "no file keeps the CPUs of interrupts, whose numbers change with the boot; where irqbalance runs, its policy \
             script would"
                .to_owned(),
        );
    }
    let keeper = facts.keepers.iter().find(|keeper| keeper.name == NAME);
    if let Some(told) = keeper.and_then(|keeper| keeper.told.known()?.clone()) {
        return Err(format!(
            "irqbalance was told '{told}', which is not overwritten: have it ban the interrupts of {} and set them",
            interface.name
        ));
    }
    let device = interface
        .driver
        .known()
        .and_then(|driver| driver.bus.as_deref());
    let device = device.filter(|bus| is_pci(bus)).ok_or_else(|| {
        format!(
            "{} has no place on the PCI bus by which irqbalance would know its interrupts",
            interface.name
        )
    })?;
    Ok(vec![
        Place {
            path: SCRIPT.to_owned(),
            first: "#!/bin/sh\n",
            head: "# For irqbalance --policyscript: $1 is the device's folder in sysfs, $2 the interrupt. What the kernel\n\
                   # manages itself refuses the write, and stays as it is.\n"
                .to_owned(),
            line: format!(
                "case ${{1##*/}} in {device}) echo ban=true; echo {cpus} 2>/dev/null >\"/proc/irq/$2/smp_affinity_list\" || :;; esac # {}",
                interface.name
            ),
        },
        Place {
            path: DROP_IN.to_owned(),
            head: "[Service]\n".to_owned(),
            line: format!("Environment=IRQBALANCE_ARGS=--policyscript={SCRIPT}"),
            ..Place::default()
        },
    ])
}

/// `0000:3b:00.0`.
fn is_pci(bus: &str) -> bool {
    let parts: Vec<&str> = bus.split([':', '.']).collect();
    let [domain, bus, device, function] = parts.as_slice() else {
        return false;
    };
    let hex = |text: &str, digits| {
        text.len() >= digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    hex(domain, 4) && hex(bus, 2) && hex(device, 2) && hex(function, 1)
}
