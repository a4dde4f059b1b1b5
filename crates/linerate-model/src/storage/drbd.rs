//! What DRBD prints about replicated devices: states, counters, settings, what happened.
//!
//! Names of states: `drbd_strings.c` of DRBD 8.3, 8.4 and 9, drbdsetup(8).

use serde::{Deserialize, Serialize};

use crate::plain_text::PlainText;
use crate::transcript::Printed;
use crate::units::Nanos;

/// An enum of the names that a tool prints; what is none of them is kept as it was printed.
macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(from = "PlainText", into = "PlainText")]
        pub enum $name {
            $($(#[$of])* $variant,)*
            /// A name that is not listed here, or none (empty).
            Other(PlainText),
        }

        impl $name {
            /// As it is printed.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::Other(other.into()),
                }
            }
        }

        impl From<PlainText> for $name {
            fn from(text: PlainText) -> Self {
                Self::from(text.as_str())
            }
        }

        impl From<$name> for PlainText {
            fn from(state: $name) -> Self {
                state.name().into()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other(PlainText::from(""))
            }
        }
    };
}

named!(
    /// State of a connection and of the replication over it: 8.x has one word for both, 9 has two.
    ConnectionState {
        /// The device has no configuration.
        Unconfigured = "Unconfigured",
        /// No connection, and none is tried.
        StandAlone = "StandAlone",
        /// On its way to `StandAlone`.
        Disconnecting = "Disconnecting",
        /// On its way to the next try.
        Unconnected = "Unconnected",
        /// The peer did not answer in time.
        Timeout = "Timeout",
        /// The connection broke.
        BrokenPipe = "BrokenPipe",
        /// The connection broke.
        NetworkFailure = "NetworkFailure",
        /// The connection broke.
        ProtocolError = "ProtocolError",
        /// The peer closes the connection.
        TearDown = "TearDown",
        /// Waits for the peer (8.x).
        WfConnection = "WFConnection",
        /// Waits for the peer (9).
        Connecting = "Connecting",
        /// Waits for the peer's first packet.
        WfReportParams = "WFReportParams",
        /// Connected and replicating (8.x); the connection alone (9).
        Connected = "Connected",
        /// Connected and replicating (9).
        Established = "Established",
        /// Not replicating (9).
        Off = "Off",
        /// A whole synchronisation begins, this end is the source.
        StartingSyncS = "StartingSyncS",
        /// A whole synchronisation begins, this end is the target.
        StartingSyncT = "StartingSyncT",
        /// Bitmaps are exchanged, this end is the source.
        WfBitMapS = "WFBitMapS",
        /// Bitmaps are exchanged, this end is the target.
        WfBitMapT = "WFBitMapT",
        /// Between bitmaps and synchronisation.
        WfSyncUuid = "WFSyncUUID",
        /// Sends missing blocks.
        SyncSource = "SyncSource",
        /// Receives missing blocks.
        SyncTarget = "SyncTarget",
        /// `SyncSource`, paused.
        PausedSyncS = "PausedSyncS",
        /// `SyncTarget`, paused.
        PausedSyncT = "PausedSyncT",
        /// Compares blocks; this end asked for it.
        VerifyS = "VerifyS",
        /// Compares blocks; the peer asked for it.
        VerifyT = "VerifyT",
        /// Writes faster than the peer takes, which is behind.
        Ahead = "Ahead",
        /// Misses writes until the next synchronisation.
        Behind = "Behind",
    }
);

named!(
    /// State of a disk below a device.
    DiskState {
        /// No disk.
        Diskless = "Diskless",
        /// Metadata are being read.
        Attaching = "Attaching",
        /// On its way to `Diskless`.
        Detaching = "Detaching",
        /// Failed, on its way to `Diskless`.
        Failed = "Failed",
        /// Attached; which data it has is being settled with the peer.
        Negotiating = "Negotiating",
        /// Its data are not usable alone.
        Inconsistent = "Inconsistent",
        /// Its data are consistent and old.
        Outdated = "Outdated",
        /// Not known, as the peer is not connected.
        DUnknown = "DUnknown",
        /// Consistent; whether up to date is settled when the peer connects.
        Consistent = "Consistent",
        /// Its data are the newest.
        UpToDate = "UpToDate",
    }
);

named!(
    /// Role of an end.
    Role {
        /// May be opened for writing.
        Primary = "Primary",
        /// May not be opened.
        Secondary = "Secondary",
        /// The peer is not connected.
        Unknown = "Unknown",
    }
);

/// Who pauses a synchronisation: flags `a`, `p`, `u` of `/proc/drbd`, `resync-suspended` of drbdsetup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// Another device has to be synchronised before (`resync-after`).
    pub after: bool,
    /// The peer.
    pub peer: bool,
    /// `pause-sync` at this end.
    pub user: bool,
}

/// A synchronisation or a verification on its way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DrbdSync {
    /// Both ends compare their data (`verified:`); else blocks are copied.
    #[serde(default)]
    pub verifies: bool,
    /// MiB that are left.
    pub left_mib: Option<f64>,
    /// MiB in all.
    pub whole_mib: Option<f64>,
    /// Time that it will take, as printed, s.
    pub finish_s: Option<u64>,
    /// Mean rate of about the last 18 s, KiB/s.
    pub kib_per_second: Option<f64>,
    /// Rate that the target's controller asks for, KiB/s: printed by `SyncTarget` and `VerifyS` alone.
    #[serde(default)]
    pub want_kib_per_second: Option<f64>,
    /// Nothing moved for a while, the kernel says.
    #[serde(default)]
    pub stalled: bool,
    /// Share that is done, as printed, %.
    pub done_percent: Option<Printed>,
}

/// Requests that wait, of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrbdWaiting {
    /// `pe`: sent to the peer and not answered.
    pub pending: Option<u64>,
    /// `ua`: of the peer and not yet answered.
    pub unacknowledged: Option<u64>,
    /// `ap`: of the application and not yet done.
    pub application: Option<u64>,
}

/// A device of DRBD with one of its peers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Drbd {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// Minor number or name.
    pub name: PlainText,
    /// The resource, where it is printed.
    #[serde(default)]
    pub resource: Option<PlainText>,
    /// DRBD's version, where it is printed.
    pub version: Option<PlainText>,
    /// State of the connection.
    pub connection: ConnectionState,
    /// Role of this end and of the peer.
    pub roles: [Role; 2],
    /// State of this end's disk and of the peer's.
    pub disks: [DiskState; 2],
    /// Who pauses the synchronisation.
    #[serde(default)]
    pub paused: Paused,
    /// Requests of the application are held back.
    #[serde(default)]
    pub suspended: bool,
    /// Whether this end and the peer are diskless clients, which are meant to have no disk.
    #[serde(default)]
    pub clients: [bool; 2],
    /// This end has too few peers to go on (`quorum:no`).
    #[serde(default)]
    pub quorum_lost: bool,
    /// Requests that wait.
    #[serde(default)]
    pub waiting: DrbdWaiting,
    /// KiB that differ.
    pub out_of_sync_kib: Option<u64>,
    /// The synchronisation.
    pub sync: Option<DrbdSync>,
}

impl Drbd {
    /// The synchronisation, where blocks are being copied and not only compared.
    pub fn copying(&self) -> Option<&DrbdSync> {
        self.sync.as_ref().filter(|sync| !sync.verifies)
    }

    /// Whether the module is version 9, where its version is printed.
    pub fn is_nine(&self) -> bool {
        let version = self.version.as_ref();
        version.is_some_and(|version| version.starts_with('9'))
    }
}

/// `/proc/drbd` or drbdsetup's status, or what `drbdsetup events2` printed, folded into the last state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DrbdStatus {
    /// The module's version, where it is printed.
    pub version: Option<PlainText>,
    /// Whether it is `/proc/drbd`, which lists no device from version 9 on.
    #[serde(default)]
    pub is_proc: bool,
    /// Each device with each of its peers.
    pub devices: Vec<Drbd>,
    /// What `events2` printed about replication, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<DrbdChange>,
}

/// A line of `drbdsetup events2` about a device and a peer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrbdChange {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// The device, by its place.
    pub device: usize,
    /// Time of day, s, where it is printed.
    pub at_s: Option<f64>,
    /// The replication's state then.
    pub connection: ConnectionState,
    /// KiB that differed then.
    pub out_of_sync_kib: Option<u64>,
}

/// Settings of a device that bear on how fast it synchronises: `drbdsetup show`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DrbdSettings {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// The resource.
    pub resource: PlainText,
    /// Addresses of this host and of the other, where they are printed.
    pub addresses: [Option<PlainText>; 2],
    /// Minor number.
    pub minor: Option<u64>,
    /// `protocol`: A, B or C.
    pub protocol: Option<PlainText>,
    /// `c-plan-ahead`, tenths of a second; 0 = fixed rate.
    pub plan_ahead_tenths: Option<f64>,
    /// `c-fill-target`, KiB.
    pub fill_target_kib: Option<f64>,
    /// `c-max-rate`, KiB/s.
    pub max_rate_kib_s: Option<f64>,
    /// `c-min-rate`, KiB/s.
    pub min_rate_kib_s: Option<f64>,
    /// `resync-rate`, KiB/s.
    pub resync_rate_kib_s: Option<f64>,
    /// `max-buffers`, pages of 4 KiB.
    pub max_buffers: Option<f64>,
}

impl DrbdSettings {
    /// What DRBD 8.4 and 9 use where nothing is set (`drbd_limits.h`).
    pub fn defaults() -> Self {
        Self {
            plan_ahead_tenths: Some(20.0),
            fill_target_kib: Some(50.0),
            max_rate_kib_s: Some(102_400.0),
            min_rate_kib_s: Some(250.0),
            resync_rate_kib_s: Some(250.0),
            max_buffers: Some(2048.0),
            ..Self::default()
        }
    }
}

/// A resynchronisation that was measured under settings that are written beside it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DrbdMeasured {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// The settings, as written.
    pub label: PlainText,
    /// The settings, both ends': defaults where nothing is written.
    pub settings: DrbdSettings,
    /// The application wrote meanwhile.
    pub application_writes: bool,
    /// Rate of the resynchronisation, KiB/s: least and most.
    pub rate_kib_s: [f64; 2],
    /// What the target's controller asked for, KiB/s: least and most.
    pub want_kib_s: Option<[f64; 2]>,
}

/// Something that DRBD or its tools refused or reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrbdMessage {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// What it says.
    pub kind: DrbdMessageKind,
    /// The line as printed.
    pub text: PlainText,
}

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrbdMessageKind {
    /// A role or state was refused: no end has data that are up to date.
    NoUpToDateData,
    /// A state was refused for another reason.
    StateRefused,
    /// Both ends wrote while they were apart.
    SplitBrain,
    /// The same, and the kernel chose whose writes are dropped.
    SplitBrainSolved,
    /// The two ends' data have nothing in common.
    Unrelated,
    /// The tool does not know an option: an older drbd-utils or module.
    UnknownOption,
    /// Nothing is configured.
    NotConfigured,
    /// What else belongs to these messages.
    Detail,
}

/// `drbdadm show-gi`: flags of the metadata, without the drawing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrbdGeneration {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// Current, bitmap's and history's UUIDs, in hexadecimal.
    pub uuids: Vec<PlainText>,
    /// The flags, 1 = set: consistent, up to date, primary, connected, all bits set, peer out of date, crashed primary.
    pub flags: Vec<bool>,
    /// Whether the activity log has to be applied first (`need apply-al`).
    pub needs_activity_log: bool,
}

/// What DRBD said of the devices that it replicates while they were watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Replication {
    /// This end's settings of each volume soon after watching began; empty = they could not be read, and a note of the record says
    /// why.
    pub settings: Vec<DrbdSettings>,
    /// Its states, in order; readings in which nothing was synchronised are left out.
    pub readings: Vec<ReplicationReading>,
}

/// The states of devices at an instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplicationReading {
    /// Since watching began, ns.
    pub at_ns: Nanos,
    /// Those that were being synchronised.
    pub devices: Vec<Drbd>,
}
