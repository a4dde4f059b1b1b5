//! Where the files of a stage are, and what the kernel counts of that device.

use std::fs::{self, File};
use std::os::fd::AsFd;

use linerate_kernel::file_system::{self, FileSystem};
use linerate_kernel::inventory::Root;
use linerate_model::plain_text::PlainText;
use linerate_model::transfer::{StagePlace, StageRole};
use linerate_model::units::Bytes;

use super::ALIGNMENT;
use crate::stack::Stack;

/// Bytes of a sector in the kernel's counters (Documentation/block/stat.rst).
const SECTOR: u64 = 512;

/// What is known of a place.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) facts: StagePlace,
    pub(super) read_only: bool,
    role: StageRole,
    counted: Option<u64>,
}

impl Place {
    pub(super) fn of(descriptor: impl AsFd, path: &str, role: StageRole) -> Self {
        let found: Option<FileSystem> = file_system::of(descriptor).ok();
        let device = found.as_ref().and_then(|found| {
            let stack = Stack::read(&Root::of_this_machine()).ok()?;
            let mut devices = stack.devices().iter();
            let device =
                devices.find(|device| device.number == found.device && found.device.major > 0)?;
            Some(device.name.clone())
        });
        let mut place = Self {
            facts: StagePlace {
                path: path.into(),
                file_system: found.as_ref().and_then(|found| found.name.clone()),
                device,
                ..StagePlace::default()
            },
            read_only: found.is_some_and(|found| found.read_only),
            role,
            counted: None,
        };
        place.counted = place.count();
        place
    }

    /// The facts, with what the device has done since [`Place::of`].
    pub(super) fn now(&self, direct: bool) -> StagePlace {
        let grown = self.count().zip(self.counted);
        StagePlace {
            direct,
            device_bytes: grown
                .map(|(now, then)| Bytes(now.wrapping_sub(then).saturating_mul(SECTOR))),
            ..self.facts.clone()
        }
    }

    /// Sectors that the device has read or written.
    fn count(&self) -> Option<u64> {
        let device: &PlainText = self.facts.device.as_ref()?;
        let text = fs::read_to_string(format!("/sys/class/block/{}/stat", device.as_str())).ok()?;
        let field = match self.role {
            StageRole::Source => 2,
            StageRole::Target => 6,
        };
        text.split_ascii_whitespace().nth(field)?.parse().ok()
    }
}

/// Has a file read or written directly, where its file system can: in multiples of [`ALIGNMENT`].
pub(super) fn make_direct(file: &File) -> bool {
    let can = match file_system::direct_alignment(file) {
        Ok(Some(alignment)) => alignment.memory <= ALIGNMENT && alignment.offset <= ALIGNMENT,
        Ok(None) => false,
        // Before Linux 6.1 nobody says: it is tried.
        Err(_) => true,
    };
    can && file_system::set_direct(file, true).is_ok()
}
