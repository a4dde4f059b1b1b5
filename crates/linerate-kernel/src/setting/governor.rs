//! The frequency governor of each CPU.

use std::collections::BTreeMap;
use std::io;

use crate::KernelError;
use crate::inventory::Root;

const FOLDER: &str = "/sys/devices/system/cpu";

/// The governor of each CPU that has one, by its number; empty where nothing scales the frequency.
pub fn governors(root: &Root) -> BTreeMap<u32, String> {
    root.names(FOLDER)
        .iter()
        .filter_map(|name| {
            let cpu = name.strip_prefix("cpu")?.parse().ok()?;
            let governor = root.word(&file(cpu, "scaling_governor")).ok()?;
            Some((cpu, governor))
        })
        .collect()
}

/// Gives a CPU a governor.
///
/// # Errors
/// `NotFound` for a CPU whose frequency nothing scales; `EINVAL` for a governor that it does not have: the error
/// names those that it has.
pub fn set_governor(root: &Root, cpu: u32, governor: &str) -> Result<(), KernelError> {
    let object = format!("the governor of CPU {cpu}");
    root.write(file(cpu, "scaling_governor"), governor)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => {
                let has = root
                    .word(&file(cpu, "scaling_available_governors"))
                    .unwrap_or_else(|why| format!("what it has is not known ({why})"));
                io::Error::new(
                    error.kind(),
                    format!("there is no governor {governor}; the CPU has: {has}"),
                )
            }
            _ => error,
        })
        .map_err(KernelError::of("set", &object))
}

fn file(cpu: u32, name: &str) -> String {
    format!("{FOLDER}/cpu{cpu}/cpufreq/{name}")
}
