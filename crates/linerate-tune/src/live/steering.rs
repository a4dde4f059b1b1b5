//! CPUs of queues and interrupts.

use linerate_kernel::setting;
use linerate_model::host::{CpuSet, Interrupt, QueueSide, dealt, in_turn};
use linerate_model::tuning::{InterfaceSetting, Object};

use super::Live;
use super::advice::advised;
use super::words::{Outcome, cpus_of};

impl Live {
    /// The CPUs of each queue of one side. Known only where sysfs shows this network namespace.
    pub(super) fn queue_sets(
        &self,
        name: &str,
        setting: InterfaceSetting,
    ) -> Outcome<Vec<(u32, CpuSet)>> {
        let interface = self.interface(name)?;
        let queues = interface.queues.ask()?.iter();
        queues
            .filter(|queue| queue.side == side(setting))
            .map(|queue| Ok((queue.index, queue.cpus.ask()?.clone())))
            .collect()
    }

    pub(super) fn write_queues(
        &self,
        object: &Object,
        name: &str,
        setting: InterfaceSetting,
        value: &str,
    ) -> Outcome<()> {
        let cpus = match value {
            "off" => CpuSet::default(),
            list => cpus_of(list)?,
        };
        let queues = self.queue_sets(name, setting)?;
        let sets = match setting {
            InterfaceSetting::RpsCpus => vec![cpus; queues.len()],
            _ => dealt(&cpus, queues.len()),
        };
        let numbers = queues.into_iter().map(|(queue, _)| queue);
        self.set_queues(object, name, setting, numbers.zip(sets))
    }

    pub(super) fn set_queues(
        &self,
        object: &Object,
        name: &str,
        setting: InterfaceSetting,
        queues: impl Iterator<Item = (u32, CpuSet)>,
    ) -> Outcome<()> {
        for (queue, cpus) in queues {
            setting::set_queue_cpus(&self.root, name, side(setting), queue, &cpus)
                .map_err(|error| advised(&error, object))?;
        }
        Ok(())
    }

    pub(super) fn write_interrupts(&self, object: &Object, name: &str, value: &str) -> Outcome<()> {
        let interface = self.interface(name)?;
        let queues = interface.queue_interrupts()?;
        let sets = in_turn(&cpus_of(value)?, queues.len());
        let all = queues.iter().zip(sets).flat_map(|(queue, cpus)| {
            let one = move |interrupt: &&Interrupt| (interrupt.number, cpus.clone());
            queue.iter().map(one).collect::<Vec<_>>()
        });
        self.set_interrupts(object, all)
    }

    pub(super) fn set_interrupts(
        &self,
        object: &Object,
        all: impl Iterator<Item = (u32, CpuSet)>,
    ) -> Outcome<()> {
        for (number, cpus) in all {
            setting::set_interrupt_cpus(&self.root, number, &cpus)
                .map_err(|error| advised(&error, object))?;
        }
        Ok(())
    }
}

const fn side(setting: InterfaceSetting) -> QueueSide {
    match setting {
        InterfaceSetting::RpsCpus => QueueSide::Rx,
        _ => QueueSide::Tx,
    }
}
