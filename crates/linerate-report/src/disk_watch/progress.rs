//! What disks do while they are watched: lines for a pipe, a table that overwrites itself for a terminal.

use linerate_analysis::disk::{Busy, DiskRates};
use linerate_model::block::BlockDevice;
use linerate_model::disk_watch::DiskReading;
use linerate_model::units::{Bytes, Nanos, whole};

use serde_json::json;

use super::title;
use crate::words;

/// Rows of a terminal's table that are no device.
const FRAME: usize = 4;
/// Processes that are named.
const USERS: usize = 3;

/// The heading above [`figures`], without the device's column.
pub(super) const HEADING: &str =
    " reads/s      read   r_await  writes/s   written   w_await  merged   queue  busy";

/// A device's figures in columns.
pub(super) fn figures(rates: &DiskRates) -> String {
    let number = |value: f64| format!("{value:.0}");
    let amount = |bytes: f64| {
        if bytes > 0.0 {
            format!("{}/s", Bytes(whole(bytes)))
        } else {
            "–".to_owned()
        }
    };
    let waited = |ms: Option<f64>| ms.map_or("–".to_owned(), |ms| format!("{ms:.2}"));
    let merged = rates.write.merged_share();
    format!(
        "{:>8} {:>11} {:>7}  {:>8} {:>11} {:>7}  {:>6}  {:>6}  {}",
        number(rates.read.per_s),
        amount(rates.read.bytes_per_s),
        waited(rates.read.await_ms),
        number(rates.write.per_s),
        amount(rates.write.bytes_per_s),
        waited(rates.write.await_ms),
        merged.map_or("–".to_owned(), |share| format!("{:.0} %", share * 100.0)),
        format!("{:.1}", rates.queue),
        busy(rates.busy),
    )
}

fn busy(busy: Busy) -> String {
    let percent = busy.share() * 100.0;
    match busy {
        Busy::Share(_) => format!("{percent:>3.0} %"),
        Busy::AtMost(_) => format!("≤{percent:>2.0} %"),
    }
}

fn rates_of(reading: &DiskReading, place: usize) -> Option<DiskRates> {
    let [before, now] = reading.totals.get(place)?.as_ref()?;
    DiskRates::between(before, now, Nanos(reading.to_ns.since(reading.from_ns).0))
}

/// The line above [`line`]s.
pub fn heading() -> String {
    format!("{:>10}  {:<10} {HEADING}", "time", "device")
}

/// Lines for a pipe, without the last newline: devices that did something.
pub fn line(devices: &[BlockDevice], reading: &DiskReading) -> String {
    let at = format!("{:>8.2} s", reading.to_ns.as_secs_f64());
    let moving = devices.iter().enumerate().filter_map(|(place, device)| {
        let rates = rates_of(reading, place)?;
        rates
            .is_active()
            .then(|| format!("{at}  {:<10} {}", device.name, figures(&rates)))
    });
    let lines: Vec<String> = moving.collect();
    if lines.is_empty() {
        return format!("{at}  no device did anything");
    }
    lines.join("\n")
}

/// What devices did since the reading before, as a line of JSON without its newline.
pub fn event(devices: &[BlockDevice], reading: &DiskReading) -> String {
    let rates = devices
        .iter()
        .enumerate()
        .map(|(place, device)| json!({ "device": device.name, "rates": rates_of(reading, place) }));
    let event = json!({
        "event": "interval",
        "from_ns": reading.from_ns,
        "to_ns": reading.to_ns,
        "devices": rates.collect::<Vec<_>>(),
        "users": reading.users,
    });
    event.to_string()
}

/// The table for a terminal of this width and height, line by line.
pub fn table(
    devices: &[BlockDevice],
    reading: &DiskReading,
    width: usize,
    height: usize,
) -> Vec<String> {
    let left = words::with(reading.left_ns, |left| {
        format!(", {:.0} s left", left.as_secs_f64())
    });
    let all: Vec<&BlockDevice> = devices.iter().collect();
    let mut rows: Vec<(String, bool)> = title::tree(&all)
        .into_iter()
        .filter_map(|(place, depth)| {
            let rates = rates_of(reading, place)?;
            let name = format!("{}{}", "  ".repeat(depth), devices[place].name);
            let moves = rates.is_active();
            Some((format!("{name:<18} {}", figures(&rates)), moves))
        })
        .collect();
    let room = height.saturating_sub(FRAME).max(1);
    if rows.len() > room {
        rows.retain(|(_, moves)| *moves);
    }
    let mut lines = vec![
        format!(
            "{:.0} s{left}: {} device{}",
            reading.to_ns.as_secs_f64(),
            devices.len(),
            words::when(devices.len() != 1, "s")
        ),
        format!("{:<18} {HEADING}", "device"),
    ];
    let hidden = devices.len().saturating_sub(rows.len().min(room));
    lines.extend(rows.into_iter().take(room).map(|(row, _)| row));
    if hidden > 0 {
        lines.push(format!("… and {hidden} more"));
    }
    if !reading.users.is_empty() {
        let seconds = reading.users_ns.as_secs_f64().max(f64::MIN_POSITIVE);
        let users = reading.users.iter().take(USERS).map(|user| {
            let rate = |bytes: u64| Bytes(whole(bytes as f64 / seconds));
            format!(
                "{} ({}) reads {}/s, dirties {}/s",
                user.name,
                user.pid,
                rate(user.read_bytes),
                rate(user.written_bytes)
            )
        });
        lines.push(users.collect::<Vec<_>>().join("; "));
    }
    // The last column stays free: a terminal wraps there.
    let fits = |line: String| line.chars().take(width.saturating_sub(1)).collect();
    lines.into_iter().map(fits).collect()
}
