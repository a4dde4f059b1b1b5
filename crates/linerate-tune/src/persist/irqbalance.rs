//! The CPUs of an interface's interrupts where irqbalance runs: a policy script that keeps irqbalance from them and sets
//! them, and the drop-in by which irqbalance learns of it.
//!
//! The numbers of interrupts change with the boot. irqbalance asks its policy script about each interrupt that it finds,
//! with the device that it is of (irqbalance(1), `--policyscript`; `get_irq_user_policy` in its `classify.c`), so that
//! the script knows the card by the place of the device on the PCI bus, and a queue's interrupt by its name, which is a
//! folder of `/proc/irq/NUMBER` (`register_handler_proc`, kernel/irq/proc.c). That it sets what it bans is what
//! irqbalance's own example does (`misc/irqbalance.policy.d/follow-affinity-hint.example`).
//!
//! A driver that asks for its interrupts when the interface comes up has no names before: the drop-in has irqbalance
//! start after the network.

use std::fmt::Write as _;

use linerate_model::host::{CpuSet, HostFacts, Interface, in_turn};

use super::{Place, runs};

const NAME: &str = "irqbalance";
const SCRIPT: &str = "/etc/linerate/irqbalance-policy";
const ARGUMENTS: &str = "/etc/linerate/irqbalance.env";
const DROP_IN: &str = "/etc/systemd/system/irqbalance.service.d/95-linerate.conf";

/// What the files do not do by themselves.
pub(super) const WARNING: &str = "irqbalance reads its policy script from its next start on: systemctl daemon-reload && systemctl restart irqbalance; \
     its unit has to hand on $IRQBALANCE_ARGS (systemctl cat irqbalance)";

/// What remains to be done where these files are removed.
pub fn after_removal(paths: &[String]) -> Option<&'static str> {
    paths.iter().any(|path| path == DROP_IN).then_some(
        "irqbalance keeps to its policy script until its next start: systemctl daemon-reload && systemctl restart irqbalance",
    )
}

/// The script's lines, the arguments and the drop-in that names them.
pub(super) fn places(
    interface: &Interface,
    cpus: &str,
    facts: &HostFacts,
) -> Result<Vec<Place>, String> {
    if !runs(facts, NAME) {
        return Err(
            "no file keeps the CPUs of interrupts, whose numbers change at boot; irqbalance's policy script does, \
             where irqbalance runs"
                .to_owned(),
        );
    }
    let keeper = facts.keepers.iter().find(|keeper| keeper.name == NAME);
    if let Some(told) = keeper.and_then(|keeper| keeper.told.known()?.clone()) {
        return Err(format!(
            "irqbalance is configured with '{told}', which is not overwritten: have it ban the interrupts of {} and \
             set them",
            interface.name
        ));
    }
    Ok(vec![
        Place {
            path: SCRIPT.to_owned(),
            first: "#!/bin/sh\n",
            head: "# For irqbalance --policyscript: $1 is the device's folder in sysfs, $2 the interrupt. What the kernel\n\
                   # manages itself refuses the write, and stays as it is.\n\
                   irq=/proc/irq/$2\n\
                   to() { echo ban=true; echo \"$1\" 2>/dev/null >\"$irq/smp_affinity_list\" || :; }\n"
                .to_owned(),
            line: script(interface, cpus)?,
        },
        Place {
            path: ARGUMENTS.to_owned(),
            line: format!("IRQBALANCE_ARGS=--policyscript={SCRIPT}"),
            ..Place::default()
        },
        Place {
            path: DROP_IN.to_owned(),
            head: "[Unit]\nWants=network-online.target\nAfter=network-online.target\n\n[Service]\n".to_owned(),
            // A later file of the environment wins over an earlier one, and any file over Environment= (systemd.exec(5)).
            line: format!("EnvironmentFile=-{ARGUMENTS}"),
            ..Place::default()
        },
    ])
}

/// One CPU for each queue, in turn, as they were set; nothing for interrupts of no queue.
fn script(interface: &Interface, cpus: &str) -> Result<String, String> {
    let device = interface
        .driver
        .known()
        .and_then(|driver| driver.bus.as_deref());
    let device = device.filter(|bus| is_pci(bus)).ok_or_else(|| {
        format!(
            "{} has no PCI address by which irqbalance could identify its interrupts",
            interface.name
        )
    })?;
    let set: CpuSet = cpus
        .parse()
        .map_err(|_| format!("'{cpus}' is not a list of CPUs, one for each queue in turn"))?;
    let queues = interface.queue_interrupts()?;
    let mut script =
        format!("case ${{1##*/}} in {device}) for at in \"$irq\"/*/; do case $at in\n");
    for (queue, cpu) in queues.iter().zip(in_turn(&set, queues.len())) {
        for interrupt in queue {
            let name = &interrupt.name;
            if name.is_empty() || name.contains(['\'', '/']) {
                return Err(format!(
                    "the name of interrupt {}, '{name}', is none for a script",
                    interrupt.number
                ));
            }
            // Writing to a String cannot fail.
            let _ = writeln!(script, "*/'{name}'/) to {cpu};;");
        }
    }
    let _ = write!(script, "esac; done;; esac # {}", interface.name);
    Ok(script)
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
