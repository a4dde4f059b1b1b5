//! What tools print about disks, replication and clusters.

mod crash;
mod drbd;
mod gluster;
mod probes;
mod session;
mod volumes;

use serde::{Deserialize, Serialize};

pub use crash::{
    BootEnd, CrashScan, Delay, Exposed, Exposure, FoundCounts, LastBoot, ScanCounts, ScanWindow,
    SuspectFile, SuspectKind, WindowSource,
};
pub use drbd::{
    ConnectionState, DiskState, Drbd, DrbdChange, DrbdGeneration, DrbdMeasured, DrbdMessage,
    DrbdMessageKind, DrbdSettings, DrbdStatus, DrbdSync, DrbdWaiting, Paused, Replication,
    ReplicationReading, Role,
};
pub use gluster::{
    GlusterBrick, GlusterEvent, GlusterHeal, GlusterKind, GlusterLock, GlusterPeer, GlusterState,
};
pub use probes::{CopySummary, CopyTool, CrashRun, FioJob, FioWay, Iozone};
pub use session::{Geometry, Mount, Session, SessionKind, SessionLine};
pub use volumes::{
    Array, ArrayMember, ArraySync, Arrays, LogicalVolume, PhysicalVolume, VolumeGroup, Volumes,
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

/// What the first block of iostat covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstBlock {
    /// Neither iostat's banner nor its command line is in the input.
    #[default]
    Unknown,
    /// The time since boot: iostat's banner stands before it, and no `-y` is seen.
    SinceBoot,
    /// An interval: `-y` is in the command line.
    Interval,
}

/// `iostat -x`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Iostat {
    /// What the first block covers.
    #[serde(default)]
    pub first: FirstBlock,
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
