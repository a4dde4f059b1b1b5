//! Settings of block devices: files of sysfs, in the running kernel and below a folder alike.

use std::io;

use linerate_kernel::inventory::{Root, scheduler};
use linerate_model::host::{HostFacts, SpeedLimit, StorageDevice};
use linerate_model::tuning::BlockSetting;

use crate::settings::Saved;

/// What a limit of md is where the array has none of its own.
const SYSTEM: &str = "system";

/// The files of one device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Device<'a> {
    root: &'a Root,
    name: &'a str,
}

impl<'a> Device<'a> {
    pub(crate) const fn new(root: &'a Root, name: &'a str) -> Self {
        Self { root, name }
    }

    /// The value now, in the words of a profile.
    pub(crate) fn read(self, setting: BlockSetting) -> Result<String, String> {
        let path = self.path(setting)?;
        let text = self.root.whole_text(&path);
        let text = text.map_err(|error| self.reason(setting, &error))?;
        let text = text.trim();
        match setting {
            BlockSetting::Scheduler => scheduler(text).map(|one| one.chosen.to_string()),
            // A file below a folder has the number alone, once it was written.
            BlockSetting::SyncSpeedMin | BlockSetting::SyncSpeedMax => {
                let (number, whose) = text.split_once(' ').unwrap_or((text, ""));
                Some(if whose == "(system)" { SYSTEM } else { number }.to_owned())
            }
            BlockSetting::NrRequests | BlockSetting::ReadAheadKb => Some(text.to_owned()),
        }
        .filter(|value| !value.is_empty())
        .ok_or_else(|| format!("{path} contains '{text}', which is not understood"))
    }

    /// What the value does not tell: a scheduler that is set again gives the queue another number of requests.
    pub(crate) fn detail(self, setting: BlockSetting) -> Result<String, String> {
        match setting {
            BlockSetting::Scheduler => self.read(BlockSetting::NrRequests),
            _ => Ok(String::new()),
        }
    }

    pub(crate) fn write(self, setting: BlockSetting, value: &str) -> Result<(), String> {
        let path = self.path(setting)?;
        let written = self.root.write(&path, value);
        written.map_err(|error| self.reason(setting, &error))
    }

    pub(crate) fn restore(self, setting: BlockSetting, saved: &Saved) -> Result<(), String> {
        self.write(setting, &saved.value)?;
        let requests = BlockSetting::NrRequests;
        if setting != BlockSetting::Scheduler || self.read(requests)? == saved.detail {
            return Ok(());
        }
        self.write(requests, &saved.detail)
    }

    fn path(self, setting: BlockSetting) -> Result<String, String> {
        // A slash in the name of a device is an exclamation mark in sysfs.
        if self.name.is_empty() || self.name.contains(['/', '\0']) || self.name.starts_with('.') {
            return Err("that is not the name of a block device".to_owned());
        }
        Ok(format!("/sys/class/block/{}/{}", self.name, setting.file()))
    }

    fn reason(self, setting: BlockSetting, error: &io::Error) -> String {
        let advice = match error.kind() {
            io::ErrorKind::PermissionDenied => "; run it as root".to_owned(),
            io::ErrorKind::ReadOnlyFilesystem => {
                "; sysfs is read-only here, the machine itself has to do it".to_owned()
            }
            io::ErrorKind::NotFound => format!(
                "; there is no device {}, or it has no {}",
                self.name,
                setting.file()
            ),
            io::ErrorKind::InvalidInput => {
                "; the kernel does not take this value for it".to_owned()
            }
            _ => String::new(),
        };
        format!("{error}{advice}")
    }
}

/// A limit as a profile has it.
fn in_words(limit: SpeedLimit) -> String {
    if limit.of_system {
        SYSTEM.to_owned()
    } else {
        limit.kib.to_string()
    }
}

fn device_of<'a>(facts: &'a HostFacts, name: &str) -> Result<&'a StorageDevice, String> {
    facts.storage.devices.ask()?;
    facts
        .storage
        .device(name)
        .ok_or_else(|| format!("there is no block device {name}"))
}

/// A setting in the words of a profile, or why it is not known.
pub(crate) fn value_of(
    facts: &HostFacts,
    name: &str,
    setting: BlockSetting,
) -> Result<String, String> {
    let device = device_of(facts, name)?;
    let queue = &device.queue;
    let array = device.array.as_ref();
    let value = match setting {
        BlockSetting::Scheduler => queue.scheduler.as_ref().map(|one| one.chosen.to_string()),
        BlockSetting::NrRequests => device
            .device
            .queue_requests
            .map(|number| number.to_string()),
        BlockSetting::ReadAheadKb => queue.read_ahead_kib.map(|kib| kib.to_string()),
        BlockSetting::SyncSpeedMin => array.and_then(|array| array.sync_speed_min).map(in_words),
        BlockSetting::SyncSpeedMax => array.and_then(|array| array.sync_speed_max).map(in_words),
    };
    value.ok_or_else(|| format!("{name} has no {}", setting.file()))
}

/// What is to be said of a scheduler that the kernel does not have now.
pub(crate) fn not_offered(facts: &HostFacts, name: &str, scheduler: &str) -> Option<String> {
    let offered = &facts
        .storage
        .device(name)?
        .queue
        .scheduler
        .as_ref()?
        .offered;
    if offered.iter().any(|one| **one == *scheduler) {
        return None;
    }
    let has: Vec<&str> = offered.iter().map(|one| &**one).collect();
    Some(format!(
        "the kernel has {} for it now; it is refused unless a module {scheduler}-iosched can be loaded",
        has.join(", ")
    ))
}
