//! What became of the files of a transfer: two rates, who held it up, and what each stage does alone.

use linerate_analysis::transfer::{Stage, Transfer};
use linerate_model::plain_text::PlainText;
use linerate_model::transfer::{Cell, Medium};
use linerate_model::units::Nanos;

use super::layout::Page;
use crate::view::RunView;
use crate::words;

pub(super) fn write(page: &mut Page, view: &RunView) {
    for (label, text) in lines(view) {
        page.entry(label, &text);
    }
}

/// Each figure with its label; none where no files were sent.
pub(crate) fn lines(view: &RunView) -> Vec<(&'static str, String)> {
    let Some(transfer) = &view.transfer else {
        return Vec::new();
    };
    let mut lines = vec![
        ("Files", files(transfer)),
        ("On disk", rates(transfer)),
        ("Held up by", time(transfer)),
    ];
    if !transfer.cells.is_empty() {
        lines.push(("Alone", cells(transfer)));
    }
    lines
}

fn files(transfer: &Transfer) -> String {
    let sums = match transfer.checksums_agree {
        Some(true) => "; checksums agree",
        Some(false) => "; CHECKSUMS DIFFER",
        None => "; not complete",
    };
    let left_out = match transfer.source.left_out {
        0 => String::new(),
        some => format!(
            "; {} links and special files were left out",
            words::count(some)
        ),
    };
    let changed = match transfer.source.changed {
        0 => String::new(),
        some => format!("; {} CHANGED WHILE THEY WERE READ", words::count(some)),
    };
    let number = match (transfer.files, transfer.checksums_agree) {
        (1, _) => "1 file".to_owned(),
        (0, None) => "no whole file".to_owned(),
        (some, None) => format!("{} whole files", words::count(some)),
        (some, _) => format!("{} files", words::count(some)),
    };
    format!(
        "{} in {number}, from {} to {}{sums}{changed}{left_out}",
        transfer.bytes,
        place(&transfer.source),
        place(&transfer.target)
    )
}

fn place(stage: &Stage) -> String {
    let Medium::Disk(place) = &stage.medium else {
        return "memory".to_owned();
    };
    let how = if place.direct { "direct" } else { "page cache" };
    let on = [&place.device, &place.file_system].into_iter().flatten();
    let on: Vec<&str> = on.map(PlainText::as_str).chain([how]).collect();
    format!("{} ({})", place.path, on.join(", "))
}

fn rates(transfer: &Transfer) -> String {
    let handed_over = format!(
        "handed over {} in {}",
        rate(transfer.handed_over_bps),
        transfer.handed_over_ns
    );
    let each_second = |time: Nanos| {
        let rate = words::whole(transfer.files as f64 / time.as_secs_f64());
        let some = (transfer.files > 1 && time.0 > 0).then_some(rate);
        words::with(some, |rate| format!(" ({} files/s)", words::count(rate)))
    };
    match transfer.on_disk_bps.zip(transfer.on_disk_ns) {
        Some((bps, time)) => format!(
            "{}{} in {time}; {handed_over}",
            rate(bps),
            each_second(time)
        ),
        None => handed_over,
    }
}

fn time(transfer: &Transfer) -> String {
    let time = &transfer.time;
    let share = |part: Nanos| words::percent(time.share(part));
    format!(
        "source {}, network {}, target {} (fsync at the end {})",
        share(time.source_ns),
        share(time.network_ns),
        share(time.target_ns),
        share(time.fsync_ns)
    )
}

fn cells(transfer: &Transfer) -> String {
    let cells = transfer.cells.iter().map(|one| {
        let name = match one.cell {
            Cell::Read => "reading",
            Cell::MemoryToMemory => "network",
            Cell::DiskToMemory => "reading and network",
            Cell::MemoryToDisk => "network and writing",
        };
        let found = one.rate_bps.map_or_else(|| "failed".to_owned(), rate);
        format!("{name} {found}")
    });
    cells.collect::<Vec<_>>().join(", ")
}

fn rate(bps: f64) -> String {
    words::rate(words::whole(bps))
}
