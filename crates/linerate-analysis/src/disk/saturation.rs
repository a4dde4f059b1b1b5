//! Whether a device was at its limit, by what it showed and not by how busy it was.

use linerate_model::disk_watch::{DiskTotals, WatchedDevice};
use serde::Serialize;

use super::rates::DiskRates;
use crate::statistics::median;

/// A queue is full in so much of the time at least.
const FULL_SHARE: f64 = 0.5;
/// Samples that are needed to say so.
const LEAST_SAMPLES: usize = 5;
/// A queue is full from this share of its places on: some are taken between two readings.
const FULL: f64 = 0.95;
/// Intervals with requests waiting that are needed to compare short queues with long ones.
const LEAST_INTERVALS: usize = 9;
/// The mean queue from which on an interval counts: with fewer requests a device waits for them.
const WAITING: f64 = 1.0;
/// How much longer the long queues are, at least.
const LONGER: f64 = 2.0;
/// A rate that changes by less is flat.
const FLAT: f64 = 1.1;
/// Loads are alike whose share of reads and whose mean size differ by no more than this, the size as a factor.
const ALIKE_SHARE: f64 = 0.1;
const ALIKE_SIZE: f64 = 1.25;
/// A device that rests for more of the time is not at its limit.
const BUSY: f64 = 0.9;
/// How much longer a request takes then, at least.
const SLOWER: f64 = 1.5;

/// What shows that a device was at its limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Saturation {
    /// Its queues had no place left.
    QueueFull {
        /// The share of the samples in which that was so, 0 to 1.
        share: f64,
        /// How many requests they hold.
        places: u64,
    },
    /// With more requests waiting it did no more: they only took longer.
    RateFlat {
        /// Requests a second with short queues, and with long ones.
        requests_per_s: [f64; 2],
        /// The same of the bytes, byte/s.
        bytes_per_s: [f64; 2],
        /// The mean queue of both.
        queue: [f64; 2],
        /// How long a request took in both, ms.
        await_ms: [f64; 2],
    },
}

impl Saturation {
    /// What shows it; `None` where nothing does, which is not the same as room.
    pub fn of(watched: &WatchedDevice) -> Option<Self> {
        queue_full(watched).or_else(|| rate_flat(watched))
    }
}

fn queue_full(watched: &WatchedDevice) -> Option<Saturation> {
    let device = &watched.device;
    let places = device
        .queue_requests?
        .saturating_mul(device.hardware_queues?);
    if places == 0 {
        return None;
    }
    // The first reading may be of the time before.
    let rows = DiskTotals::rows(&watched.samples).into_iter().skip(1);
    let depths: Vec<u64> = rows.map(|totals| totals.in_flight).collect();
    if depths.len() < LEAST_SAMPLES {
        return None;
    }
    let is_full = |depth: &&u64| **depth as f64 >= FULL * places as f64;
    let full = depths.iter().filter(is_full).count();
    let share = full as f64 / depths.len() as f64;
    (share >= FULL_SHARE).then_some(Saturation::QueueFull { share, places })
}

/// A third of the intervals with the shortest queues against the third with the longest.
fn rate_flat(watched: &WatchedDevice) -> Option<Saturation> {
    let waiting = DiskRates::each(watched).map(|(_, rates)| rates);
    let mut waiting: Vec<DiskRates> = waiting.filter(|rates| rates.queue >= WAITING).collect();
    if waiting.len() < LEAST_INTERVALS {
        return None;
    }
    waiting.sort_by(|one, other| one.queue.total_cmp(&other.queue));
    let third = waiting.len() / 3;
    let (short, long) = (&waiting[..third], &waiting[waiting.len() - third..]);
    let both = |value: fn(&DiskRates) -> f64| {
        [short, long].map(|part| median(&part.iter().map(value).collect::<Vec<_>>()).unwrap_or(0.0))
    };
    let queue = both(|rates| rates.queue);
    let requests_per_s = both(DiskRates::requests_per_s);
    let bytes_per_s = both(DiskRates::bytes_per_s);
    // Little's law, over all kinds of requests.
    let await_ms = both(|rates| {
        let flushes = rates.flushes_per_s.unwrap_or(0.0);
        rates.queue / (rates.requests_per_s() + flushes).max(f64::MIN_POSITIVE) * 1e3
    });
    let reads = both(|rates| rates.read.per_s / rates.requests_per_s().max(f64::MIN_POSITIVE));
    let sizes = both(|rates| rates.bytes_per_s() / rates.requests_per_s().max(f64::MIN_POSITIVE));
    let grows = |[less, more]: [f64; 2], by: f64| more >= less * by;
    let differ = |[one, other]: [f64; 2], by: f64| one >= other * by || other >= one * by;
    let is_alike = (reads[0] - reads[1]).abs() <= ALIKE_SHARE && !differ(sizes, ALIKE_SIZE);
    let is_busy = both(|rates| rates.busy.share())
        .iter()
        .all(|share| *share >= BUSY);
    if !is_alike || !is_busy {
        return None;
    }
    let is_flat = !differ(requests_per_s, FLAT) && !differ(bytes_per_s, FLAT);
    (grows(queue, LONGER) && grows(await_ms, SLOWER) && is_flat).then_some(Saturation::RateFlat {
        requests_per_s,
        bytes_per_s,
        queue,
        await_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::block::BlockKind;
    use linerate_model::disk_watch::RequestTotals;
    use linerate_testing::disks;

    /// A device with seconds of so many requests and such a mean queue, and so many under way at the end of each.
    fn device(seconds: &[(u64, f64, u64)]) -> WatchedDevice {
        let mut totals = DiskTotals::default();
        let mut rows = Vec::new();
        for (requests, queue, in_flight) in seconds {
            let ms = linerate_model::units::whole(queue * 1e3);
            totals = DiskTotals {
                read: RequestTotals {
                    ios: totals.read.ios + requests,
                    merges: 0,
                    bytes: totals.read.bytes + requests * 4096,
                    ms: totals.read.ms + ms,
                },
                in_flight: *in_flight,
                busy_ms: totals.busy_ms + 1000,
                weighted_ms: totals.weighted_ms + ms,
                ..totals
            };
            rows.push(totals);
        }
        let mut device = disks::device("sda", BlockKind::Disk, &[]);
        (device.queue_requests, device.hardware_queues) = (Some(64), Some(1));
        disks::watched(device, &rows)
    }

    #[test]
    fn a_device_that_does_no_more_with_more_waiting_is_at_its_limit() {
        let seconds: Vec<(u64, f64, u64)> = (0..12)
            .map(|second| (120, if second < 6 { 2.0 } else { 16.0 }, 8))
            .collect();
        let Some(Saturation::RateFlat {
            queue, await_ms, ..
        }) = Saturation::of(&device(&seconds))
        else {
            panic!("it is at its limit");
        };
        assert!(queue[1] > 7.0 * queue[0] && await_ms[1] > 7.0 * await_ms[0]);
    }

    #[test]
    fn another_kind_of_work_is_not_compared() {
        // Small reads, then fewer large ones: the load changed.
        let mut watched = device(&[(2000, 2.0, 2); 12]);
        let few = device(&[(120, 16.0, 2); 12]);
        let rows = |watched: &WatchedDevice| DiskTotals::rows(&watched.samples)[..12].to_vec();
        let (mut all, base) = (rows(&watched), rows(&watched)[11]);
        all.extend(rows(&few).iter().map(|row| DiskTotals {
            read: RequestTotals {
                ios: base.read.ios + row.read.ios,
                merges: 0,
                bytes: base.read.bytes + row.read.ios * 1_048_576,
                ms: base.read.ms + row.read.ms,
            },
            busy_ms: base.busy_ms + row.busy_ms,
            weighted_ms: base.weighted_ms + row.weighted_ms,
            ..*row
        }));
        watched = disks::watched(watched.device, &all);
        assert_eq!(Saturation::of(&watched), None);
    }

    #[test]
    fn a_device_that_does_more_with_more_waiting_has_room() {
        // As an SSD: twice the queue, twice the rate, always busy.
        let seconds: Vec<(u64, f64, u64)> = (1..13)
            .map(|second| (1000 * second, second as f64, second))
            .collect();
        assert_eq!(Saturation::of(&device(&seconds)), None);
    }

    #[test]
    fn a_steady_load_shows_nothing_and_a_full_queue_all() {
        let steady: Vec<(u64, f64, u64)> = (0..12).map(|_| (500, 8.0, 8)).collect();
        assert_eq!(Saturation::of(&device(&steady)), None);
        let full: Vec<(u64, f64, u64)> = (0..12).map(|_| (500, 64.0, 64)).collect();
        let full = Saturation::of(&device(&full));
        assert_eq!(
            full,
            Some(Saturation::QueueFull {
                share: 1.0,
                places: 64
            })
        );
        let short: Vec<(u64, f64, u64)> = (0..3).map(|_| (500, 64.0, 64)).collect();
        assert_eq!(Saturation::of(&device(&short)), None);
    }
}
