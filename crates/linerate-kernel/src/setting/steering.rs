//! CPUs of queues and of interrupts, by sysfs and /proc/irq.

use linerate_model::host::{CpuSet, QueueSide};

use crate::KernelError;
use crate::inventory::Root;

/// Sets the CPUs that a receive queue's packets are handed to (RPS), or that send by a transmit queue (XPS); an empty
/// set switches it off.
///
/// The sysfs below `root` must be of the interface's network namespace: ask the facts of the interface first.
///
/// # Errors
/// `NotFound` for a queue that is not there; `PermissionDenied`, which root of a user namespace has as well; `EINVAL`
/// for CPUs that are not there, `ENOENT` for a device with one transmit queue.
pub fn set_queue_cpus(
    root: &Root,
    interface: &str,
    side: QueueSide,
    queue: u32,
    cpus: &CpuSet,
) -> Result<(), KernelError> {
    let (folder, file) = match side {
        QueueSide::Rx => ("rx", "rps_cpus"),
        QueueSide::Tx => ("tx", "xps_cpus"),
    };
    let path = format!("/sys/class/net/{interface}/queues/{folder}-{queue}/{file}");
    root.write(&path, &cpus.mask())
        .map_err(KernelError::of("set the CPUs of", &path))
}

/// Sets the CPUs that an interrupt may go to.
///
/// # Errors
/// `EIO` for an interrupt whose CPUs the kernel manages itself; `EINVAL` where none of them is online.
pub fn set_interrupt_cpus(root: &Root, number: u32, cpus: &CpuSet) -> Result<(), KernelError> {
    let path = format!("/proc/irq/{number}/smp_affinity_list");
    root.write(&path, &cpus.to_string())
        .map_err(KernelError::of(
            "set the CPUs of interrupt",
            &number.to_string(),
        ))
}
