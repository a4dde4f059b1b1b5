//! A record of block devices as text, JSON and lines of progress.

mod document;
mod page;
mod progress;
mod title;

use linerate_analysis::disk::{Account, DiskRates, accounts};
use linerate_model::disk_watch::{DiskWatch, WatchedDevice};
use linerate_model::finding::Finding;
use linerate_model::record::RecordError;

use crate::json;

pub use progress::{event, heading, line, table};

/// A record of block devices as it is shown.
#[derive(Debug)]
pub struct DiskWatchView<'a> {
    record: &'a DiskWatch,
    /// As trees, the tops first, each device once.
    devices: Vec<DeviceView<'a>>,
    accounts: Vec<Account>,
    findings: Vec<Finding>,
}

/// A device as it is shown.
#[derive(Debug)]
struct DeviceView<'a> {
    watched: &'a WatchedDevice,
    /// How many levels are above it.
    depth: usize,
    /// Over the whole time; absent where the kernel counted nothing.
    rates: Option<DiskRates>,
}

impl<'a> DiskWatchView<'a> {
    /// The view; findings are those that `linerate_explain::disk::explain` has.
    pub fn of(record: &'a DiskWatch, findings: Vec<Finding>) -> Self {
        let names: Vec<_> = record.devices.iter().map(|one| &one.device).collect();
        let devices = title::tree(&names)
            .into_iter()
            .filter_map(|(place, depth)| {
                let watched = record.devices.get(place)?;
                Some(DeviceView {
                    watched,
                    depth,
                    rates: DiskRates::of(watched),
                })
            });
        Self {
            record,
            devices: devices.collect(),
            accounts: accounts(&record.devices),
            findings,
        }
    }

    /// The report for people: at most 100 columns wide.
    pub fn text(&self) -> String {
        page::write(self)
    }

    /// The report as one JSON document, without a newline at its end.
    pub fn json(&self) -> String {
        json::lines(&document::members(self))
    }

    /// The last line of a stream of JSON: the whole document as an event named `end`.
    pub fn end_line(&self) -> String {
        json::end_line(document::members(self))
    }
}

/// The record as bytes for a file, with a newline at the end.
pub fn to_json(record: &DiskWatch) -> Vec<u8> {
    crate::record::bytes_of(record)
}

/// Reads a record. A newer schema is refused by name before the rest is looked at.
///
/// # Errors
/// What is no record of disks, is newer, or holds more than this build reads.
pub fn from_json(bytes: &[u8]) -> Result<DiskWatch, RecordError> {
    crate::record::of_other_kind(bytes)
}
