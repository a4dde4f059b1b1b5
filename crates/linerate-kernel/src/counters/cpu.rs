//! What the CPUs did: `/proc/stat` and `/proc/net/softnet_stat`.

use rustix::param::clock_ticks_per_second;

/// What one CPU did since boot, ms, in steps of a tick (10 ms). Guests' time is in `user` and `nice`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuCounters {
    /// Which CPU.
    pub cpu: usize,
    /// In programs.
    pub user: u64,
    /// In programs of low priority.
    pub nice: u64,
    /// In the kernel for programs.
    pub system: u64,
    /// Nothing to do.
    pub idle: u64,
    /// Nothing to do while a program waits for a disk.
    pub iowait: u64,
    /// In interrupts; 0 on kernels that do not account them.
    pub irq: u64,
    /// In softirq, network packets for the most part; with the same reserve.
    pub softirq: u64,
    /// Taken by the hypervisor for others.
    pub steal: u64,
}

impl CpuCounters {
    /// All time, ms.
    pub const fn total(&self) -> u64 {
        self.user
            + self.nice
            + self.system
            + self.idle
            + self.iowait
            + self.irq
            + self.softirq
            + self.steal
    }

    /// Time with something to do here, ms: not idle, not waiting, not taken by the hypervisor.
    pub const fn busy(&self) -> u64 {
        self.user + self.nice + self.system + self.irq + self.softirq
    }
}

/// What all CPUs did together since boot, or in a time, ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineTime {
    /// With something to do here, as [`CpuCounters::busy`].
    pub busy: u64,
    /// Taken by the hypervisor for others.
    pub stolen: u64,
    /// All time.
    pub all: u64,
}

impl MachineTime {
    pub(crate) fn of(cpus: &[CpuCounters]) -> Self {
        let sum = |of: fn(&CpuCounters) -> u64| cpus.iter().map(of).sum();
        Self {
            busy: sum(CpuCounters::busy),
            stolen: sum(|cpu| cpu.steal),
            all: sum(CpuCounters::total),
        }
    }

    /// What was added since an earlier time.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            stolen: self.stolen.saturating_sub(earlier.stolen),
            all: self.all.saturating_sub(earlier.all),
        }
    }

    /// The share that the hypervisor took, 0 to 1; `None` where no time passed.
    pub fn stolen_share(self) -> Option<f64> {
        (self.all > 0).then(|| self.stolen as f64 / self.all as f64)
    }
}

/// One CPU's packet processing since boot; 32-bit counters that wrap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Softnet {
    /// Which CPU; before Linux 5.10 the row's number, which is the same while all CPUs are online.
    pub cpu: usize,
    /// Packets processed, after the device merged them (GRO comes later).
    pub processed: u32,
    /// Packets dropped because the CPU's backlog was full (`netdev_max_backlog`).
    pub dropped: u32,
    /// Times that the softirq ended with work left (`netdev_budget`).
    pub time_squeeze: u32,
}

/// The lines `cpuN`; a line that is too short is left out.
pub(crate) fn parse_stat(text: &str) -> Vec<CpuCounters> {
    text.lines()
        .take_while(|line| line.starts_with("cpu"))
        .filter_map(stat_line)
        .collect()
}

fn stat_line(line: &str) -> Option<CpuCounters> {
    let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
    // The sum's line has no number: its name ends where the first figure begins, after two blanks.
    let cpu = line
        .strip_prefix("cpu")?
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| fields.next())??;
    let mut millis = || fields.next()?.parse::<u64>().ok().map(ticks_to_millis);
    Some(CpuCounters {
        cpu: cpu.parse().ok()?,
        user: millis()?,
        nice: millis()?,
        system: millis()?,
        idle: millis()?,
        iowait: millis()?,
        irq: millis()?,
        softirq: millis()?,
        steal: millis()?,
    })
}

fn ticks_to_millis(ticks: u64) -> u64 {
    ticks.saturating_mul(1000) / clock_ticks_per_second()
}

/// One row for each CPU online; hexadecimal columns: processed, dropped, `time_squeeze`, …, the CPU (13th).
pub(crate) fn parse_softnet(text: &str) -> Vec<Softnet> {
    text.lines()
        .enumerate()
        .filter_map(|(row, line)| softnet_line(row, line))
        .collect()
}

fn softnet_line(row: usize, line: &str) -> Option<Softnet> {
    let mut fields = line
        .split_ascii_whitespace()
        .map(|field| u32::from_str_radix(field, 16).ok());
    let (processed, dropped, time_squeeze) = (fields.next()??, fields.next()??, fields.next()??);
    let cpu = fields
        .nth(9)
        .flatten()
        .and_then(|cpu| usize::try_from(cpu).ok())
        .unwrap_or(row);
    Some(Softnet {
        cpu,
        processed,
        dropped,
        time_squeeze,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_is_read_and_the_sum_is_not() {
        let text = "cpu  30 0 20 100 0 0 4 0 0 0\ncpu0 10 0 10 50 1 2 3 4 5 6\ncpu3 20 0 10 50 0 0 1 0\nintr 99 1 2\n";
        let cpus = parse_stat(text);
        assert_eq!(cpus.len(), 2);
        assert_eq!(
            (cpus[0].cpu, cpus[0].user, cpus[0].softirq, cpus[0].steal),
            (0, 100, 30, 40)
        );
        assert_eq!(
            (cpus[1].cpu, cpus[1].total(), cpus[1].busy()),
            (3, 810, 310)
        );
        let all = MachineTime::of(&cpus);
        let one = MachineTime::of(&cpus[1..]);
        assert_eq!(all.stolen, 40);
        assert_eq!((one.busy, one.stolen, one.all), (310, 0, 810));
        assert_eq!(all.since(one), MachineTime::of(&cpus[..1]));
        assert_eq!(one.since(all), MachineTime::default());
        assert_eq!(one.since(one).stolen_share(), None);
        let share = all.stolen_share().unwrap();
        assert!((share * all.all as f64 - 40.0).abs() < 1e-9, "{share}");
    }

    #[test]
    fn short_and_foreign_lines_are_left_out() {
        assert_eq!(parse_stat("cpu0 1 2 3\ncpux 1 2 3 4 5 6 7 8\ncpu0\n"), []);
        assert_eq!(parse_stat("page 1 2\n"), []);
        assert_eq!(parse_softnet("0001\nxyz 1 2\n\n"), []);
    }

    #[test]
    fn a_softnet_row_names_its_cpu_where_the_kernel_does() {
        let new = "0032539e 00000002 0000001f 0 0 0 0 0 0 0 00000000 00000000 00000007 0 0\n";
        let softnet = Softnet {
            cpu: 7,
            processed: 0x0032_539e,
            dropped: 2,
            time_squeeze: 31,
        };
        assert_eq!(parse_softnet(new), [softnet]);
        let old = "00000001 0 0 0 0 0 0 0 0 0 0\n00000002 0 0 0 0 0 0 0 0 0 0\n";
        assert_eq!(
            parse_softnet(old)[1],
            Softnet {
                cpu: 1,
                processed: 2,
                ..Softnet::default()
            }
        );
    }
}
