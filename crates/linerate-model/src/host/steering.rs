//! Which CPUs the queues and interrupts of an interface are on, in the words that profiles have for it.
//!
//! `off` where nothing is set; a list (`0-3`) where a pattern is kept over all queues; where there is none, each
//! queue's own, with ` / ` between them.

use super::{CpuSet, Interface, Interrupt, QueueSide};

/// Words in names of interrupts that are not a queue's.
const NO_QUEUE: [&str; 12] = [
    "config", "async", "mgmnt", "mgmt", "misc", "link", "lsc", "fdir", "ctrl", "cmd", "health",
    "event",
];

impl Interface {
    /// CPUs that received packets are handed to (RPS), the same for every receive queue.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn rps_cpus(&self) -> Result<String, String> {
        let mut sets = self.queue_cpus(QueueSide::Rx)?;
        sets.dedup();
        Ok(in_words(&sets))
    }

    /// CPUs that send by the transmit queues (XPS), each CPU by one of them: [`dealt`].
    ///
    /// # Errors
    /// Why it is not known.
    pub fn xps_cpus(&self) -> Result<String, String> {
        let sets = self.queue_cpus(QueueSide::Tx)?;
        let union = union(&sets);
        if sets == dealt(&union, sets.len()) {
            return Ok(in_words(&[union]));
        }
        Ok(in_words(&sets))
    }

    /// CPUs that the interrupts of the queues go to, one CPU a queue, in turn: [`in_turn`].
    ///
    /// # Errors
    /// Why it is not known.
    pub fn irq_cpus(&self) -> Result<String, String> {
        let queues = self.queue_interrupts()?;
        let mut sets = Vec::new();
        for queue in &queues {
            let mut own = Vec::new();
            for interrupt in queue {
                own.push(interrupt.allowed.ask()?.clone());
            }
            own.dedup();
            sets.push(own);
        }
        let single: Option<Vec<CpuSet>> = sets
            .iter()
            .map(|own| own.first().filter(|_| own.len() == 1).cloned())
            .collect();
        if let Some(single) = single {
            let union = union(&single);
            if single == in_turn(&union, single.len()) {
                return Ok(in_words(&[union]));
            }
        }
        Ok(in_words(&sets.concat()))
    }

    fn queue_cpus(&self, side: QueueSide) -> Result<Vec<CpuSet>, String> {
        let queues = self.queues.ask()?.iter().filter(|one| one.side == side);
        let sets: Vec<CpuSet> = queues
            .map(|queue| queue.cpus.ask().cloned())
            .collect::<Result<_, _>>()?;
        if sets.is_empty() {
            return Err("it has no queues".to_owned());
        }
        Ok(sets)
    }

    /// The interrupts of its queues, those of one queue together, by the queue's number.
    ///
    /// Where the kernel tells of none ([`Interrupt::queue`]), a queue's is known by its name: it ends in the queue's
    /// number (`eth0-TxRx-3`, `virtio0-input.0`, `mlx5_comp3@pci:…`). A device with a single interrupt has one queue.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn queue_interrupts(&self) -> Result<Vec<Vec<&Interrupt>>, String> {
        let all = self.interrupts.ask()?;
        // Where some are told, the others are of no queue.
        let told = all.iter().any(|interrupt| interrupt.queue.is_some());
        let named = |interrupt: &Interrupt| self.queue_of(&interrupt.name).filter(|_| !told);
        let mut queues: Vec<(u32, Vec<&Interrupt>)> = Vec::new();
        for interrupt in all {
            let Some(number) = interrupt.queue.or_else(|| named(interrupt)) else {
                continue;
            };
            match queues.iter_mut().find(|(queue, _)| *queue == number) {
                Some((_, own)) => own.push(interrupt),
                None => queues.push((number, vec![interrupt])),
            }
        }
        if let ([], [only]) = (queues.as_slice(), all.as_slice()) {
            return Ok(vec![vec![only]]);
        }
        if queues.is_empty() {
            return Err("no interrupt of its queues is known".to_owned());
        }
        queues.sort_by_key(|(queue, _)| *queue);
        Ok(queues.into_iter().map(|(_, own)| own).collect())
    }

    fn queue_of(&self, interrupt: &str) -> Option<u32> {
        let name = interrupt.split('@').next().unwrap_or(interrupt);
        let rest = match name.find(&self.name) {
            // `eth0` ends in a number that is no queue's.
            Some(at) => &name[at + self.name.len()..],
            None => name,
        };
        let lower = rest.to_ascii_lowercase();
        if NO_QUEUE.iter().any(|word| lower.contains(word)) {
            return None;
        }
        let digits = rest.len() - rest.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        rest[rest.len() - digits..].parse().ok()
    }
}

/// One CPU for each of `queues`, in turn: the first again after the last.
pub fn in_turn(cpus: &CpuSet, queues: usize) -> Vec<CpuSet> {
    let one = |cpu: &u32| [*cpu].into_iter().collect();
    cpus.cpus().iter().cycle().take(queues).map(one).collect()
}

/// Each CPU to one of `queues`, in turn, so that a queue may have several, or none.
pub fn dealt(cpus: &CpuSet, queues: usize) -> Vec<CpuSet> {
    (0..queues)
        .map(|queue| {
            let own = cpus.cpus().iter().skip(queue).step_by(queues);
            own.copied().collect()
        })
        .collect()
}

fn union(sets: &[CpuSet]) -> CpuSet {
    sets.iter().flat_map(CpuSet::cpus).copied().collect()
}

fn in_words(sets: &[CpuSet]) -> String {
    let word = |set: &CpuSet| {
        if set.is_empty() {
            "off".to_owned()
        } else {
            set.to_string()
        }
    };
    sets.iter().map(word).collect::<Vec<_>>().join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Fact, Queue};

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    fn interface(interrupts: &[(&str, &str)]) -> Interface {
        let interrupt = |(number, (name, cpus)): (u32, &(&str, &str))| Interrupt {
            number,
            name: (*name).to_owned(),
            queue: None,
            allowed: Fact::Known(set(cpus)),
            effective: Fact::Known(set(cpus)),
            count: 0,
            busiest_cpu: None,
        };
        Interface {
            name: "eth0".to_owned(),
            interrupts: Fact::Known((24..).zip(interrupts).map(interrupt).collect()),
            ..Interface::default()
        }
    }

    #[test]
    fn interrupts_of_queues_are_told_from_others() {
        let names = |one: &Interface| -> Vec<Vec<String>> {
            let queues = one.queue_interrupts().unwrap();
            let names =
                |queue: Vec<&Interrupt>| queue.iter().map(|each| each.name.clone()).collect();
            queues.into_iter().map(names).collect()
        };
        let virtio = interface(&[
            ("virtio0-config", "0"),
            ("virtio0-input.0", "0"),
            ("virtio0-output.0", "0"),
            ("virtio0-input.1", "1"),
            ("virtio0-output.1", "1"),
        ]);
        assert_eq!(names(&virtio).len(), 2);
        assert_eq!(names(&virtio)[1], ["virtio0-input.1", "virtio0-output.1"]);
        assert_eq!(virtio.irq_cpus().unwrap(), "0-1");
        let mlx5 = interface(&[
            ("mlx5_async0@pci:0000:01:00.0", "0-7"),
            ("mlx5_comp0@pci:0000:01:00.0", "4"),
            ("mlx5_comp1@pci:0000:01:00.0", "5"),
        ]);
        assert_eq!(mlx5.irq_cpus().unwrap(), "4-5");
        let ixgbe = interface(&[
            ("eth0", "0-3"),
            ("eth0-TxRx-0", "0-3"),
            ("eth0-TxRx-1", "2"),
        ]);
        assert_eq!(ixgbe.irq_cpus().unwrap(), "0-3 / 2");
        assert_eq!(interface(&[("eth0", "0-3")]).irq_cpus().unwrap(), "0-3");
        assert!(interface(&[("a", "0"), ("b", "0")]).irq_cpus().is_err());
        // What the kernel tells comes before what a name looks like.
        let mut told = interface(&[("a-1", "4"), ("b", "5"), ("c", "0-7")]);
        if let Fact::Known(all) = &mut told.interrupts {
            all[0].queue = Some(1);
            all[1].queue = Some(0);
        }
        assert_eq!(names(&told), [["b"], ["a-1"]]);
    }

    #[test]
    fn patterns_over_queues_are_lists() {
        let queue = |side, index, cpus: &str| Queue {
            side,
            index,
            cpus: Fact::Known(set(cpus)),
        };
        let mut one = interface(&[]);
        one.queues = Fact::Known(vec![
            queue(QueueSide::Rx, 0, "0-3"),
            queue(QueueSide::Rx, 1, "0-3"),
            queue(QueueSide::Tx, 0, "0,2"),
            queue(QueueSide::Tx, 1, "1,3"),
        ]);
        assert_eq!(one.rps_cpus().unwrap(), "0-3");
        assert_eq!(one.xps_cpus().unwrap(), "0-3");
        one.queues = Fact::Known(vec![
            queue(QueueSide::Rx, 0, ""),
            queue(QueueSide::Rx, 1, "2"),
            queue(QueueSide::Tx, 0, ""),
            queue(QueueSide::Tx, 1, ""),
        ]);
        assert_eq!(one.rps_cpus().unwrap(), "off / 2");
        assert_eq!(one.xps_cpus().unwrap(), "off");
        assert!(Interface::default().rps_cpus().is_err());
    }

    #[test]
    fn queues_take_turns() {
        assert_eq!(in_turn(&set("0-2"), 4), ["0", "1", "2", "0"].map(set));
        assert_eq!(dealt(&set("0-4"), 2), ["0,2,4", "1,3"].map(set));
        assert_eq!(dealt(&set("0"), 3), ["0", "", ""].map(set));
        assert!(in_turn(&set(""), 4).is_empty());
    }
}
