//! What tools print about disks, replication and clusters.

mod drbd;

use serde::{Deserialize, Serialize};

pub use drbd::{
    ConnectionState, DiskState, Drbd, DrbdChange, DrbdGeneration, DrbdMeasured, DrbdMessage,
    DrbdMessageKind, DrbdSettings, DrbdStatus, DrbdSync, DrbdWaiting, Paused, Role,
};

use crate::plain_text::PlainText;
use crate::transcript::Printed;

/// A device in a block of `iostat -x`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// As iostat prints it: `sda`, `nvme0n1`, `dm-0`.
    pub name: PlainText,
    /// A value for each column.
    pub values: Vec<Printed>,
}

/// A heading and the devices below it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IostatBlock {
    /// Names of the columns, without the device's.
    pub columns: Vec<PlainText>,
    /// One for each row below the heading.
    pub devices: Vec<Device>,
}

impl IostatBlock {
    /// A device's value in the first of the columns that is there.
    pub fn value(&self, device: &Device, names: &[&str]) -> Option<Printed> {
        let at = names
            .iter()
            .find_map(|name| self.columns.iter().position(|column| column == name))?;
        device.values.get(at).copied()
    }
}

/// `iostat -x`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Iostat {
    /// Blocks, in order.
    pub blocks: Vec<IostatBlock>,
}

/// A line of `/proc/diskstats` (Documentation/admin-guide/iostats.rst of the kernel).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diskstats {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// The name in the third column: `sda`.
    pub device: PlainText,
    /// The fields behind the name, at least 11.
    pub fields: Vec<u64>,
}

/// A line of glusterd's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlusterEvent {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// When, as printed.
    pub at: PlainText,
    /// `E`, `W`, `I` …
    pub level: PlainText,
    /// Who asks for the lock, and who holds it.
    pub lock: Option<[PlainText; 2]>,
    /// The text after the function's name.
    pub message: PlainText,
}

/// Nodes of a Slurm cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGroup {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// The list of names.
    pub names: PlainText,
    /// How many.
    pub count: u64,
    /// As sinfo prints it; `*` marks the default one.
    pub partition: PlainText,
    /// As sinfo prints it: `idle`, `drain*`.
    pub state: PlainText,
    /// The reason, where one is given.
    pub reason: Option<PlainText>,
}

/// A row of `vgs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeGroup {
    /// Column `VG`.
    pub name: PlainText,
    /// Physical volumes.
    pub physical: u64,
    /// Logical volumes.
    pub logical: u64,
    /// Column `Attr`, such as `wz--n-` (vgs(8)).
    pub attributes: PlainText,
    /// Size and what is free, as printed.
    pub size_free: [PlainText; 2],
}

/// A row of `lvs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogicalVolume {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// Column `LV`.
    pub name: PlainText,
    /// Column `VG`.
    pub group: PlainText,
    /// Column `Attr`, whose first letter is the type (lvs(8)).
    pub attributes: PlainText,
    /// Size, as printed.
    pub size: PlainText,
    /// The mirror log's volume.
    pub log: Option<PlainText>,
    /// Copied so far, %.
    pub copied_percent: Option<f64>,
}

/// `vgs` and `lvs`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Volumes {
    /// Rows of `vgs`.
    pub groups: Vec<VolumeGroup>,
    /// Rows of `lvs`.
    pub volumes: Vec<LogicalVolume>,
}
