//! Settings of an interface: what is kept beside the words of a profile, and how each is written and restored.

use linerate_kernel::KernelError;
use linerate_kernel::inventory::{Devices as _, RunningKernel};
use linerate_kernel::setting::qdisc::{self, Disciplines};
use linerate_kernel::setting::{self, CoalescingChange, Ring};
use linerate_model::host::{CpuSet, Fact, Interface};
use linerate_model::tuning::{InterfaceSetting, Object};

use super::advice::advised;
use super::words::{Outcome, pairs, pairs_text, sets, switch, whole};
use super::{Live, Saved};

impl Live {
    /// What the words of a profile do not say.
    pub(super) fn detail(
        &self,
        object: &Object,
        name: &str,
        setting: InterfaceSetting,
    ) -> Outcome<String> {
        use InterfaceSetting as S;
        let kernel = |error: KernelError| advised(&error, object);
        match setting {
            S::Qdisc => {
                let all = Disciplines::of(name).map_err(kernel)?;
                match all.unsaveable(name).map_err(kernel)? {
                    Some(why) => Err(why),
                    None => Ok(all.to_string()),
                }
            }
            S::Tso | S::Gso | S::Gro | S::Lro => {
                let group = switchable(name, setting).map_err(kernel)?;
                let on = |on: bool| if on { "on" } else { "off" }.to_owned();
                Ok(pairs_text(
                    group.into_iter().map(|(name, wanted)| (name, on(wanted))),
                ))
            }
            S::AdaptiveRx => {
                let now = self.interface(name)?.coalescing.ask().copied()?;
                Ok(pairs_text([
                    ("rx_usecs".to_owned(), now.rx_usecs.to_string()),
                    ("rx_frames".to_owned(), now.rx_frames.to_string()),
                ]))
            }
            S::Mtu => mtus_above(name).map(pairs_text),
            S::RpsCpus | S::XpsCpus => self.queue_sets(name, setting).map(|queues| {
                let one = |(queue, cpus): (u32, CpuSet)| (queue.to_string(), cpus.to_string());
                pairs_text(queues.into_iter().map(one))
            }),
            S::IrqCpus => {
                let interface = self.interface(name)?;
                let mut all = Vec::new();
                for interrupt in interface.queue_interrupts()?.concat() {
                    let cpus = interrupt.allowed.ask()?.to_string();
                    all.push((interrupt.number.to_string(), cpus));
                }
                Ok(pairs_text(all))
            }
            S::Txqueuelen | S::RxRing | S::TxRing | S::Channels | S::RxUsecs => Ok(String::new()),
        }
    }
    pub(super) fn write_interface(
        &self,
        object: &Object,
        name: &str,
        setting: InterfaceSetting,
        value: &str,
    ) -> Outcome<()> {
        use InterfaceSetting as S;
        let kernel = |error: KernelError| advised(&error, object);
        match setting {
            S::RpsCpus | S::XpsCpus => return self.write_queues(object, name, setting, value),
            S::IrqCpus => return self.write_interrupts(object, name, value),
            S::Mtu => setting::set_mtu(name, whole(value)?),
            S::Txqueuelen => setting::set_tx_queue_len(name, whole(value)?),
            S::RxRing => setting::set_ring(name, Ring::Receive, whole(value)?),
            S::TxRing => setting::set_ring(name, Ring::Transmit, whole(value)?),
            S::Channels => setting::set_channels(name, whole(value)?),
            S::AdaptiveRx => {
                let adaptive_rx = Some(switch(value)?);
                let change = CoalescingChange {
                    adaptive_rx,
                    ..CoalescingChange::default()
                };
                setting::set_coalescing(name, change)
            }
            S::RxUsecs => {
                let rx_usecs = Some(whole(value)?);
                let change = CoalescingChange {
                    rx_usecs,
                    ..CoalescingChange::default()
                };
                setting::set_coalescing(name, change)
            }
            S::Qdisc => qdisc::set_leaves(name, value),
            S::Tso | S::Gso | S::Gro | S::Lro => {
                let on = switch(value)?;
                let group = switchable(name, setting).map_err(kernel)?;
                if group.is_empty() {
                    return Err("the device has it fixed".to_owned());
                }
                // With one number in many packets; a caller that wants that asks for it by its own name.
                let wanted = group
                    .into_iter()
                    .filter(|(name, _)| !on || name != "tx-tcp-mangleid-segmentation")
                    .map(|(name, _)| (name, on));
                setting::set_features(name, &wanted.collect::<Vec<_>>())
            }
        }
        .map_err(kernel)
    }

    pub(super) fn restore_interface(
        &self,
        object: &Object,
        name: &str,
        setting: InterfaceSetting,
        saved: &Saved,
    ) -> Outcome<()> {
        use InterfaceSetting as S;
        let kernel = |error: KernelError| advised(&error, object);
        match setting {
            S::Qdisc => {
                let disciplines: Disciplines =
                    saved.detail.parse().map_err(|error| format!("{error}"))?;
                qdisc::restore(name, &disciplines).map_err(kernel)
            }
            S::Tso | S::Gso | S::Gro | S::Lro => {
                let wanted: Outcome<Vec<(String, bool)>> = pairs(&saved.detail)
                    .map(|(name, value)| Ok((name.to_owned(), switch(value)?)))
                    .collect();
                setting::set_features(name, &wanted?).map_err(kernel)
            }
            S::RpsCpus | S::XpsCpus => {
                // A queue that is gone in the meantime has nothing to be restored.
                let there = self.queue_sets(name, setting)?;
                let was = sets(&saved.detail)?;
                let both = was
                    .into_iter()
                    .filter(|(queue, _)| there.iter().any(|(each, _)| each == queue));
                self.set_queues(object, name, setting, both)
            }
            S::IrqCpus => {
                let interface = self.interface(name)?;
                let there = interface.interrupts.ask()?;
                let was = sets(&saved.detail)?;
                let both = was
                    .into_iter()
                    .filter(|(number, _)| there.iter().any(|one| one.number == *number));
                self.set_interrupts(object, both)
            }
            S::AdaptiveRx => restore_adaptive(name, saved, object),
            S::Mtu => {
                self.write_interface(object, name, setting, &saved.value)?;
                for (above, mtu) in pairs(&saved.detail) {
                    // It may have gone in the meantime, and then has nothing to be restored.
                    if self.interface(above).is_ok() {
                        setting::set_mtu(above, whole(mtu)?).map_err(kernel)?;
                    }
                }
                Ok(())
            }
            S::Txqueuelen | S::RxRing | S::TxRing | S::Channels | S::RxUsecs => {
                self.write_interface(object, name, setting, &saved.value)
            }
        }
    }
}

/// Interfaces that stand on one, directly or not: the kernel makes them smaller with it.
fn mtus_above(name: &str) -> Outcome<Vec<(String, String)>> {
    let all = RunningKernel
        .interfaces()
        .map_err(|error| format!("the kernel does not list interfaces: {error}"))?;
    let mut below = vec![name.to_owned()];
    let mut above = Vec::new();
    // There are no more layers than interfaces.
    for _ in 0..all.len() {
        let stands = |one: &&Interface| {
            let parent = one.parent.known().cloned().flatten();
            parent.is_some_and(|parent| below.contains(&parent))
        };
        let next: Vec<&Interface> = all.iter().filter(stands).collect();
        if next.is_empty() {
            break;
        }
        for one in &next {
            if let Fact::Known(mtu) = one.mtu {
                above.push((one.name.clone(), mtu.to_string()));
            }
        }
        below = next.into_iter().map(|one| one.name.clone()).collect();
    }
    Ok(above)
}
/// Drivers that adapt change the wait by themselves: where they did not before, it is what it was again.
fn restore_adaptive(name: &str, saved: &Saved, object: &Object) -> Outcome<()> {
    let on = switch(&saved.value)?;
    let was = |key: &str| -> Outcome<Option<u32>> {
        let found = pairs(&saved.detail).find(|(each, _)| *each == key);
        found
            .filter(|_| !on)
            .map(|(_, value)| whole(value))
            .transpose()
    };
    let change = CoalescingChange {
        adaptive_rx: Some(on),
        rx_usecs: was("rx_usecs")?,
        rx_frames: was("rx_frames")?,
    };
    setting::set_coalescing(name, change).map_err(|error| advised(&error, object))
}
/// The features behind a name of old that the device can switch, each with whether it was asked for.
fn switchable(
    interface: &str,
    setting: InterfaceSetting,
) -> Result<Vec<(String, bool)>, KernelError> {
    let belongs = |name: &str| match setting {
        InterfaceSetting::Tso => name.starts_with("tx-tcp") && name.ends_with("-segmentation"),
        InterfaceSetting::Gso => name == "tx-generic-segmentation",
        InterfaceSetting::Gro => name == "rx-gro",
        _ => name == "rx-lro",
    };
    let features = setting::features(interface)?;
    Ok(features
        .into_iter()
        .filter(|(name, state)| belongs(name) && state.available)
        .map(|(name, state)| (name, state.wanted))
        .collect())
}
