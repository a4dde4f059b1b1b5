//! The report for people: the verdict, the devices as stacks, the account of what was written, who used them.

use linerate_analysis::disk::{Account, DiskRates};
use linerate_model::disk_watch::{DiskPlace, DiskPlaceKind, DiskUser};
use linerate_model::observation::Ended;
use linerate_model::plain_text::PlainText;
use linerate_model::units::{Bytes, whole};

use super::progress::{HEADING, figures};
use super::{DeviceView, DiskWatchView, title};
use crate::text::header;
use crate::text::layout::Page;
use crate::view::FindingView;
use crate::words;

/// The report is wider than that of a test: a device has eight figures.
const WIDTH: usize = 110;
/// Devices that the table lists.
const LISTED: usize = 40;
/// Processes that are named.
const USERS: usize = 5;
/// An account is worth a line from here on, bytes.
const WORTH_ADDING: u64 = 1 << 20;

pub(super) fn write(view: &DiskWatchView<'_>) -> String {
    let mut page = Page::of_width(WIDTH);
    head(&mut page, view);
    page.gap();
    for (number, finding) in view.findings.iter().enumerate() {
        let shown = FindingView {
            finding,
            is_verdict: number == 0,
        };
        let text = format!("{}: {}", finding.id, words::plain(&finding.sentence));
        page.entry(shown.label(), &text);
    }
    page.gap();
    devices(&mut page, view);
    page.gap();
    for account in &view.accounts {
        booked(&mut page, account);
    }
    users(&mut page, view);
    remarks(&mut page, view);
    page.finish()
}

fn head(page: &mut Page, view: &DiskWatchView<'_>) {
    let record = view.record;
    let span = record.end_ns.since(record.start_ns);
    let what = if record.places.is_empty() {
        "all block devices".to_owned()
    } else {
        let places: Vec<String> = record.places.iter().map(place).collect();
        places.join("; ")
    };
    let ended = match record.ended {
        Ended::TimeIsOver | Ended::ProcessEnded => "",
        Ended::Stopped => "; stopped by the user",
        Ended::Unreadable => "; until the kernel no longer reported its counters",
    };
    page.wrapped(
        "",
        &format!(
            "Watched {what}, {}, every {}{ended}",
            words::seconds(span.0),
            record.asked.interval_ns
        ),
    );
    let host = &record.host;
    let name = host.hostname.as_deref().map(str::to_owned);
    let text: Vec<String> = name.into_iter().chain(header::machine(host)).collect();
    page.wrapped("  this host  ", &text.join(", "));
}

fn place(place: &DiskPlace) -> String {
    match &place.on {
        DiskPlaceKind::Device { name } if place.path == *name => name.to_string(),
        DiskPlaceKind::Device { name } => format!("{} ({name})", place.path),
        DiskPlaceKind::FileSystem {
            kind,
            mounted_on,
            devices,
            ..
        } => format!(
            "{} ({kind} on {}, mounted on {mounted_on})",
            place.path,
            join(devices)
        ),
    }
}

fn join(names: &[PlainText]) -> String {
    let names: Vec<&str> = names.iter().map(PlainText::as_str).collect();
    names.join(", ")
}

fn devices(page: &mut Page, view: &DiskWatchView<'_>) {
    let moved = |one: &&DeviceView<'_>| {
        one.rates
            .is_none_or(|rates| rates.requests_per_s() > 0.0 || rates.queue > 0.0)
    };
    // Devices that somebody named are shown, whatever they did.
    let all = view.devices.iter();
    let listed: Vec<&DeviceView<'_>> = if view.record.places.is_empty() {
        all.filter(moved).collect()
    } else {
        all.collect()
    };
    if listed.is_empty() {
        page.line("No device read or wrote.");
        return;
    }
    page.line(&format!("{:<18} {HEADING}", "device"));
    for one in listed.iter().take(LISTED) {
        let name = format!("{}{}", "  ".repeat(one.depth), one.watched.device.name);
        let text = one
            .rates
            .as_ref()
            .map_or_else(|| "   the kernel counts nothing of it".to_owned(), figures);
        page.line(&format!("{name:<18} {text}"));
        if let Some(more) = one.rates.as_ref().and_then(others) {
            page.line(&format!("{:<18} {more}", ""));
        }
    }
    let more = listed.len().saturating_sub(LISTED);
    let idle = view.devices.len() - listed.len();
    if more > 0 {
        page.line(&format!("… and {more} more (--json has all)"));
    }
    if idle > 0 {
        page.line(&format!("{idle} more did nothing."));
    }
    page.gap();
    for one in listed.iter().take(LISTED) {
        let device = &one.watched.device;
        let carries = words::when(
            !one.watched.also_carries.is_empty() && !one.watched.device.name.is_empty(),
            &format!("; also carries {}", join(&one.watched.also_carries)),
        )
        .to_owned();
        let replaced = words::when(one.watched.replaced > 0, "; replaced while it was watched");
        let below = words::when(
            !device.below.is_empty(),
            &format!(", on {}", join(&device.below)),
        )
        .to_owned();
        page.wrapped(
            &format!("  {:<10} ", device.name),
            &format!("{}{below}{carries}{replaced}", title::title(device)),
        );
    }
    page.gap();
}

/// What was written to the top of a stack, what reached its disks, and what should have.
fn booked(page: &mut Page, account: &Account) {
    let Some(factor) = account
        .factor()
        .filter(|_| account.top_bytes >= WORTH_ADDING)
    else {
        return;
    };
    let expected = account.expected_factor().map_or_else(
        || "how often each byte should be written is not known".to_owned(),
        |[least, most]| {
            if (most - least).abs() < 0.005 {
                format!("{least:.2} expected")
            } else {
                format!("{least:.2} to {most:.2} expected")
            }
        },
    );
    page.entry(
        "Written",
        &format!(
            "{} to {}, {} to {}: {factor:.2} times ({expected})",
            Bytes(account.top_bytes),
            join(&account.tops),
            Bytes(account.leaf_bytes),
            join(&account.leaves)
        ),
    );
}

/// Flushes, discards and mean sizes, where there are any.
fn others(rates: &DiskRates) -> Option<String> {
    let each = |ms: Option<f64>| words::with(ms, |ms| format!(", {ms:.2} ms each"));
    let mut parts = Vec::new();
    let sizes = [(rates.read, "reads"), (rates.write, "writes")];
    parts.extend(
        sizes
            .iter()
            .filter_map(|(one, kind)| Some(format!("{kind} of {}", Bytes(whole(one.mean_bytes?))))),
    );
    let flushes = rates.flushes_per_s.filter(|flushes| *flushes > 0.0);
    parts.extend(
        flushes.map(|flushes| format!("{flushes:.1} flushes/s{}", each(rates.flush_await_ms))),
    );
    let discards = rates.discard.filter(|discard| discard.per_s > 0.0);
    parts.extend(discards.map(|discard| {
        let amount = Bytes(whole(discard.bytes_per_s));
        format!(
            "{:.1} discards/s of {amount}/s{}",
            discard.per_s,
            each(discard.await_ms)
        )
    }));
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn users(page: &mut Page, view: &DiskWatchView<'_>) {
    let record = view.record;
    let seconds = record.end_ns.since(record.start_ns).as_secs_f64();
    let mut lines: Vec<String> = record
        .users
        .iter()
        .take(USERS)
        .map(|one| user(one, seconds))
        .collect();
    if lines.is_empty() {
        lines.push("none that could be asked read or wrote".to_owned());
    }
    if record.unreadable_users > 0 {
        lines.push(format!(
            "{} refused to tell: only root, with all capabilities, may ask any process",
            record.unreadable_users
        ));
    }
    for (number, line) in lines.iter().enumerate() {
        let first = words::when(number == 0, "on any disk: ");
        page.entry(
            words::when(number == 0, "Processes"),
            &format!("{first}{line}"),
        );
    }
}

fn user(user: &DiskUser, seconds: f64) -> String {
    let rate = |bytes: u64| {
        let each_second = bytes as f64 / seconds.max(f64::MIN_POSITIVE);
        format!("{} ({}/s)", Bytes(bytes), Bytes(whole(each_second)))
    };
    let mut did = Vec::new();
    if user.read_bytes > 0 {
        did.push(format!("read {}", rate(user.read_bytes)));
    }
    if user.written_bytes > 0 {
        did.push(format!("dirtied {}", rate(user.written_bytes)));
    }
    if user.cancelled_bytes > 0 {
        did.push(format!(
            "{} of it deleted before it reached a disk",
            Bytes(user.cancelled_bytes)
        ));
    }
    format!("{} ({}) {}", user.name, user.pid, did.join(", "))
}

fn remarks(page: &mut Page, view: &DiskWatchView<'_>) {
    let record = view.record;
    for note in &record.notes {
        page.entry("Note", &words::plain(&note.text));
    }
    let thinned = record.devices.iter().map(|one| one.thinned).max();
    if let Some(every) = thinned.filter(|every| *every > 1) {
        let text = format!("one of {every} samples was kept, to bound the memory");
        page.entry("Note", &text);
    }
    let span = record.end_ns.since(record.start_ns);
    let cost = record.sampling.cpu_ns as f64 / span.0.max(1) as f64;
    page.entry(
        "Sampling",
        &format!(
            "{} readings, {:.2} % of a core{}",
            record.sampling.readings,
            cost * 100.0,
            words::when(
                record.sampling.missed > 0,
                &format!(", {} came too late", record.sampling.missed)
            )
        ),
    );
}
