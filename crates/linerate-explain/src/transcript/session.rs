//! Sessions: messages that report errors, health checks that were killed; how file systems lie on their stripes.
//!
//! Sources: `sunit` and `swidth` in sectors of 512 bytes: Documentation/admin-guide/xfs.rst; `stripe` in blocks and the options
//! of crash safety: Documentation/admin-guide/ext4.rst. Slurm: measured with 22.05.

use linerate_model::finding::{Finding, Severity};
use linerate_model::storage::{Geometry, Mount, Session, SessionKind};

use crate::draft::Draft;

/// Words of messages that report an error.
const WRONG: [&str; 10] = [
    "error",
    "failed",
    "Failed",
    "can't",
    "cannot",
    "Invalid",
    "not found",
    "must be",
    "Unable",
    "not the same as",
];

pub(super) fn session(held: &Session) -> (String, Vec<Finding>) {
    let title = format!("a session: {} line(s) around the outputs", held.lines.len());
    let of = |kind: SessionKind| held.lines.iter().filter(move |line| line.kind == kind);
    let mut findings = Vec::new();
    let killed = of(SessionKind::KilledCheck);
    if let Some(first) = killed.clone().next() {
        let sentence = format!(
            "{} lines say that Slurm gave up a health check and killed it (line {}). A check that hangs drains nothing: the node \
             stays as it is, and the next run may start beside it. Give each check a time limit of its own below 60 s",
            killed.count(),
            first.number
        );
        findings.push(Finding::new("nodes-out", Severity::Limit, sentence));
    }
    let wrong =
        of(SessionKind::Message).filter(|line| WRONG.iter().any(|word| line.text.contains(word)));
    if let Some(first) = wrong.clone().next() {
        findings.push(Finding::new(
            "log-errors",
            Severity::Note,
            format!(
                "{} messages of programs report errors; the first is line {}: '{}'",
                wrong.count(),
                first.number,
                first.text
            ),
        ));
    }
    (title, findings)
}

pub(super) fn geometry(held: &Geometry) -> (String, Vec<Finding>) {
    let title = format!("file systems: {} mount(s)", held.mounts.len());
    let mut findings: Vec<Finding> = held
        .mounts
        .iter()
        .flat_map(|mount| of_mount(mount, held))
        .collect();
    findings.sort_by_key(|finding| finding.severity != Severity::Limit);
    (title, findings)
}

fn of_mount(mount: &Mount, held: &Geometry) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(stripes(mount, held));
    let unsafe_options = ["nobarrier", "noauto_da_alloc", "data=writeback"];
    let set: Vec<&str> = unsafe_options
        .iter()
        .copied()
        .filter(|option| mount.has(option))
        .collect();
    let slow = mount
        .option("commit")
        .and_then(|text| text.parse::<u64>().ok())
        .filter(|seconds| *seconds > 30);
    if !set.is_empty() || slow.is_some() {
        let slow = slow.map_or_else(String::new, |seconds| format!(" commit={seconds}"));
        findings.push(Finding::new(
            "crash-exposure",
            Severity::Limit,
            format!(
                "{} ({}) is mounted with {}{slow}: after a power cut files that were written or renamed without fsync may be empty or \
                 NUL, and with nobarrier the file system itself may be damaged. Take the options away: barrier, auto_da_alloc and \
                 data=ordered are the defaults",
                mount.device,
                mount.kind,
                set.join(", ")
            ),
        ));
    }
    findings
}

/// Stripes as the file system knows them, against those of the device.
fn stripes(mount: &Mount, held: &Geometry) -> Option<Finding> {
    let number = |key: &str| mount.option(key).and_then(|text| text.parse::<u64>().ok());
    let known = match mount.kind.as_str() {
        // Sectors of 512 bytes.
        "xfs" => number("sunit")
            .zip(number("swidth"))
            .map(|(unit, width)| [unit.saturating_mul(512), width.saturating_mul(512)]),
        // Blocks, of 4 KiB unless mkfs was told otherwise; the unit is not among the options.
        "ext4" => number("stripe").map(|blocks| [0, blocks.saturating_mul(4096)]),
        _ => return None,
    };
    let name = format!("{} ({})", mount.device, mount.kind);
    let place = format!("line {}", mount.line);
    let Some([least, best]) = held.io_bytes.filter(|[_, best]| *best > 0) else {
        let [unit, width] = known?;
        let unit = if unit > 0 {
            format!(", units of {unit} bytes")
        } else {
            String::new()
        };
        let said = format!(
            "{name} writes in stripes of {width} bytes{unit}; what its device prefers is not in the input (minimum_io_size, optimal_io_size)"
        );
        return Draft::new("stripe-geometry", Severity::Note, said)
            .figure("stripe width, bytes", width, place)
            .done();
    };
    let remedy = remedy(mount, [least, best]);
    let (severity, said) = match known {
        Some([unit, width]) if width == best && (unit == 0 || unit == least) => (
            Severity::Healthy,
            format!(
                "{name} knows the stripes of its device: width {width} bytes, as optimal_io_size says"
            ),
        ),
        Some([unit, width]) => (
            Severity::Limit,
            format!(
                "{name} is laid out for stripes of {width} bytes in units of {unit}, and its device has {best} in units of {least}: writes \
                 of whole stripes are split. {remedy}"
            ),
        ),
        None => (
            Severity::Limit,
            format!(
                "{name} does not know the stripes of its device ({best} bytes in units of {least}). {remedy}"
            ),
        ),
    };
    Draft::new("stripe-geometry", severity, said)
        .figure(
            "stripe width of the file system, bytes",
            known.map(|[_, width]| width),
            &*place,
        )
        .figure("optimal_io_size of the device, bytes", best, place)
        .done()
}

/// What tells the file system the stripes of its device: never by making it anew while it holds files.
fn remedy(mount: &Mount, [least, best]: [u64; 2]) -> String {
    if mount.kind == "xfs" {
        let (unit, width) = (least / 512, best / 512);
        let made = match best.checked_div(least) {
            Some(units) if units > 0 => format!("su={least},sw={units}"),
            _ => "su=,sw=".to_owned(),
        };
        return format!(
            "Mount it with `-o sunit={unit},swidth={width}` (sectors of 512 bytes); `mkfs.xfs -d {made}` is for a new file system: \
             it erases"
        );
    }
    let (stride, width) = (least / 4096, best / 4096);
    format!(
        "Mount it with `-o stripe={width}`, or `tune2fs -E stride={stride},stripe_width={width} {}` (blocks of 4 KiB; files stay)",
        mount.device
    )
}
