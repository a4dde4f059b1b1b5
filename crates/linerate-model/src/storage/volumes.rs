//! Arrays of Linux' md driver, and LVM's volumes.

use serde::{Deserialize, Serialize};

use crate::plain_text::PlainText;
use crate::transcript::Printed;

/// What md does to all of an array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArraySync {
    /// `resync`, `recovery`, `reshape`, `check` or `repair`, as printed.
    pub action: PlainText,
    /// `DELAYED`, `PENDING` or `REMOTE`, where it does not run.
    pub waits: Option<PlainText>,
    /// Share that is done, %.
    pub done_percent: Option<Printed>,
    /// KiB done, and in all.
    pub done_whole_kib: Option<[u64; 2]>,
    /// Rate, KiB/s.
    pub kib_per_second: Option<u64>,
}

/// A member of an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayMember {
    /// The device: `sda1`.
    pub name: PlainText,
    /// Letters behind it: `F` faulty, `S` spare, `W` write-mostly, `J` journal, `R` replacement.
    pub marks: PlainText,
}

/// An array of `/proc/mdstat` (`md_seq_show` of drivers/md/md.c).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Array {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// `md0`.
    pub name: PlainText,
    /// `active`, with what stands in brackets behind it, or `inactive`.
    pub state: PlainText,
    /// `raid10`; none where it is inactive.
    pub level: Option<PlainText>,
    /// In the order in which they are printed.
    pub members: Vec<ArrayMember>,
    /// Size, KiB.
    pub size_kib: Option<u64>,
    /// Disks that it should have, and that are there.
    pub disks: Option<[u64; 2]>,
    /// `UU_U`: one letter a disk.
    pub up: PlainText,
    /// Copies of each block, where the layout says so (raid10).
    pub copies: Option<u64>,
    /// It has a write-intent bitmap.
    pub has_bitmap: bool,
    /// What is being done to all of it.
    pub sync: Option<ArraySync>,
    /// `mismatch_cnt` of sysfs, sectors.
    pub mismatches: Option<u64>,
    /// `sync_speed_min` and `sync_speed_max` of sysfs, KiB/s.
    pub speed_limits_kib_s: [Option<u64>; 2],
}

impl Array {
    /// Copies of each block that is written: 1 for stripes, `None` where the level does not tell.
    pub fn copies(&self) -> Option<u64> {
        match self.level.as_ref()?.as_str() {
            "raid0" | "linear" => Some(1),
            "raid1" => self.disks.map(|[disks, _]| disks),
            "raid10" => self.copies,
            _ => None,
        }
    }
}

/// `/proc/mdstat`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrays {
    /// In order.
    pub arrays: Vec<Array>,
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
    /// Size and what is free, as printed; bytes without a unit in JSON.
    pub size_free: [PlainText; 2],
}

/// A row of `pvs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhysicalVolume {
    /// Column `PV`.
    pub name: PlainText,
    /// Column `VG`; empty where it belongs to none.
    pub group: PlainText,
    /// Size and what is free, as printed; bytes without a unit in JSON.
    pub size_free: [PlainText; 2],
    /// Where data begin, bytes.
    pub start_bytes: Option<u64>,
}

/// A row of `lvs`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LogicalVolume {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// Column `LV`; in brackets = hidden.
    pub name: PlainText,
    /// Column `VG`.
    pub group: PlainText,
    /// Column `Attr`, whose first letter is the type (lvs(8)).
    pub attributes: PlainText,
    /// Size, as printed; bytes without a unit in JSON.
    pub size: PlainText,
    /// The mirror log's volume.
    pub log: Option<PlainText>,
    /// Copied so far, %.
    pub copied_percent: Option<f64>,
    /// What of a thin pool's data and metadata is used, %.
    #[serde(default)]
    pub used_percent: [Option<f64>; 2],
    /// `segtype`: `linear`, `striped`, `mirror`, `raid10` …
    #[serde(default)]
    pub segment: Option<PlainText>,
    /// Stripes, or images of a mirror.
    #[serde(default)]
    pub stripes: Option<u64>,
    /// `raid_sync_action`: `idle`, `resync` …
    #[serde(default)]
    pub action: Option<PlainText>,
    /// `raid_mismatch_count`.
    #[serde(default)]
    pub mismatches: Option<u64>,
    /// What it lies on, without the extents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<PlainText>,
}

/// `vgs`, `lvs` and `pvs`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Volumes {
    /// Rows of `vgs`.
    pub groups: Vec<VolumeGroup>,
    /// Rows of `lvs`.
    pub volumes: Vec<LogicalVolume>,
    /// Rows of `pvs`.
    #[serde(default)]
    pub physical: Vec<PhysicalVolume>,
}
