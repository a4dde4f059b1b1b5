//! Records of block devices that never were.

use linerate_model::block::{BlockDevice, BlockKind, DeviceNumber};
use linerate_model::disk_watch::{DiskPlan, DiskSampling, DiskTotals, DiskWatch, WatchedDevice};
use linerate_model::observation::Ended;
use linerate_model::record::{HostFacts, Kind, SCHEMA_VERSION, Software};
use linerate_model::series::Series;
use linerate_model::units::Nanos;

/// A device of which nothing else is known.
pub fn device(name: &str, kind: BlockKind, below: &[&str]) -> BlockDevice {
    BlockDevice {
        name: name.into(),
        number: DeviceNumber { major: 8, minor: 0 },
        kind,
        below: below.iter().map(|name| (*name).into()).collect(),
        size: None,
        model: None,
        rotational: None,
        queue_requests: None,
        hardware_queues: None,
        counted: None,
        hidden: false,
    }
}

/// The device with a sample a second, the first of them before it did anything.
///
/// # Panics
/// Never: each column has as many values as there are rows.
pub fn watched(device: BlockDevice, rows: &[DiskTotals]) -> WatchedDevice {
    let rows: Vec<DiskTotals> = [DiskTotals::default()]
        .iter()
        .chain(rows)
        .copied()
        .collect();
    let at_ns = (0..rows.len() as u64).map(|second| second * 1_000_000_000);
    let mut samples = Series::new(at_ns.collect());
    for (place, column) in DiskTotals::COLUMNS.iter().enumerate() {
        let values = rows.iter().map(|row| row.cells()[place].unwrap_or(0));
        samples
            .insert(*column, values.collect())
            .expect("a value for each row");
    }
    WatchedDevice {
        device,
        samples,
        also_carries: Vec::new(),
        replaced: 0,
        thinned: 1,
    }
}

/// A record of these devices.
pub fn record(devices: Vec<WatchedDevice>) -> DiskWatch {
    DiskWatch {
        schema_version: SCHEMA_VERSION,
        kind: Kind::DiskWatch,
        software: Software::this_program(),
        started_at_unix_ms: 0,
        asked: DiskPlan {
            interval_ns: Nanos::from_millis(1000),
            ..DiskPlan::default()
        },
        ended: Ended::TimeIsOver,
        host: HostFacts::default(),
        start_ns: Nanos::ZERO,
        end_ns: Nanos::from_millis(10_000),
        places: Vec::new(),
        devices,
        replication: None,
        users: Vec::new(),
        unreadable_users: 0,
        sampling: DiskSampling::default(),
        notes: Vec::new(),
    }
}
