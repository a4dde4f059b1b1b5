//! What stands around outputs in a pasted session: headings of scripts, messages of programs, listings, values; and mounts.

use linerate_model::storage::{Geometry, Mount, Session, SessionKind as Kind, SessionLine};
use linerate_model::transcript::Part;

use crate::Input;

/// Programs whose messages are known by the name before the colon.
const PROGRAMS: [&str; 32] = [
    "mdadm",
    "cat",
    "ls",
    "mount",
    "umount",
    "modprobe",
    "insmod",
    "dmsetup",
    "lvs",
    "vgs",
    "pvs",
    "lvcreate",
    "lvconvert",
    "dmeventd",
    "fio",
    "dd",
    "blockdev",
    "mkfs.xfs",
    "mkfs.ext4",
    "mke2fs",
    "xfs_info",
    "xfs_repair",
    "tune2fs",
    "e2fsck",
    "scontrol",
    "sinfo",
    "squeue",
    "slurm_update error",
    "slurm_load_partitions",
    "losetup",
    "mkfs.btrfs",
    "note",
];
/// Beginnings of what LVM, mkfs, Slurm and the shell say without a name before it.
const SENTENCES: [&str; 26] = [
    "Volume group \"",
    "Logical volume \"",
    "Physical volume \"",
    "Using default stripesize",
    "WARNING: This metadata update is NOT backed up",
    "WARNING: Failed to monitor",
    "WARNING: Device for PV",
    "WARNING: Couldn't find",
    "WARNING: VG ",
    "WARNING: PV ",
    "WARNING: Not using",
    "WARNING: Running as a non-root user",
    "Filesystem must be larger",
    "max log size ",
    "Submitted batch job ",
    "You must specify a reason",
    "Try \"",
    "sinfo rc ",
    "resume twice rc ",
    "BusyBox v",
    "Filesystem features:",
    "Default mount options:",
    "Errors behavior:",
    "Reserved block count:",
    "Journal features:",
    "Python ",
];
/// Options of ext4 in `/proc/fs/ext4/DEVICE/options`, one a line.
const EXT4_OPTIONS: [&str; 24] = [
    "rw",
    "ro",
    "bsddf",
    "minixdf",
    "nogrpid",
    "block_validity",
    "noblock_validity",
    "dioread_nolock",
    "dioread_lock",
    "nodiscard",
    "discard",
    "delalloc",
    "nodelalloc",
    "nowarn_on_error",
    "warn_on_error",
    "journal_checksum",
    "barrier",
    "nobarrier",
    "auto_da_alloc",
    "noauto_da_alloc",
    "user_xattr",
    "acl",
    "noquota",
    "noacl",
];
/// Those with a value.
const EXT4_KEYS: [&str; 12] = [
    "resuid",
    "resgid",
    "errors",
    "commit",
    "min_batch_time",
    "max_batch_time",
    "stripe",
    "data",
    "inode_readahead_blks",
    "init_itable",
    "max_dir_size_kb",
    "jqfmt",
];
/// Lines that are kept; more are read and counted nowhere.
const KEPT: usize = 10_000;

/// Lines of sessions.
#[derive(Default)]
pub(super) struct Lines {
    held: Session,
    /// What the line before was.
    before: Option<Kind>,
    /// How far the last `Usage:` is indented.
    usage_indent: usize,
    /// Below `--- Logical volume ---`.
    display: bool,
    /// Two numbers before a mount: a device's I/O sizes.
    numbers: Vec<u64>,
}

impl Lines {
    /// What no other reader knows.
    pub(super) fn take(
        &mut self,
        input: &Input<'_>,
        words: &[&str],
        parts: &mut Vec<Part>,
    ) -> bool {
        if let Some(mount) = mount(input.number, words) {
            self.mount(mount, parts);
            return true;
        }
        let Some(kind) = self.kind(input, words) else {
            self.before = None;
            return false;
        };
        self.note(input, kind);
        if let (Kind::Value, [number]) = (kind, words) {
            self.numbers.extend(number.parse::<u64>());
        }
        true
    }

    /// A message that another reader would take for its own.
    pub(super) fn is_warning(text: &str) -> bool {
        text.starts_with("WARNING: ") && SENTENCES.iter().any(|begin| text.starts_with(begin))
    }

    pub(super) fn note(&mut self, input: &Input<'_>, kind: Kind) {
        self.before = Some(kind);
        if self.held.lines.len() < KEPT {
            self.held.lines.push(SessionLine {
                number: input.number,
                kind,
                text: input.text.chars().take(200).collect(),
            });
        }
    }

    /// Puts what was kept behind everything else. Without an output, headings and values alone are no session: they are
    /// handed back.
    pub(super) fn finish(&mut self, parts: &mut Vec<Part>) -> Vec<SessionLine> {
        let held = std::mem::take(&mut self.held);
        let speaks = |line: &SessionLine| matches!(line.kind, Kind::Message | Kind::KilledCheck);
        if parts.is_empty() && !held.lines.iter().any(speaks) {
            return held.lines;
        }
        if !held.lines.is_empty() {
            parts.push(Part::Session(held));
        }
        Vec::new()
    }

    fn mount(&mut self, mount: Mount, parts: &mut Vec<Part>) {
        if !matches!(parts.last(), Some(Part::Geometry(_))) {
            let io_bytes = match self.numbers.as_slice() {
                [.., least, best] => Some([*least, *best]),
                _ => None,
            };
            parts.push(Part::Geometry(Geometry {
                io_bytes,
                mounts: Vec::new(),
            }));
        }
        if let Some(Part::Geometry(held)) = parts.last_mut() {
            held.mounts.push(mount);
        }
        self.before = None;
    }

    fn kind(&mut self, input: &Input<'_>, words: &[&str]) -> Option<Kind> {
        let (text, first) = (input.text, *words.first()?);
        let usage = self.before == Some(Kind::Usage);
        let below_heading = matches!(self.before, Some(Kind::Heading | Kind::Listing));
        if text.starts_with("--- ") && text.ends_with(" ---") {
            self.display = true;
            return Some(Kind::Value);
        }
        if heading(text) {
            self.display = false;
            return Some(Kind::Heading);
        }
        if text.contains("health_check") && text.contains("error: ") {
            return Some(Kind::KilledCheck);
        }
        if first == "Usage:" {
            self.usage_indent = input.indent;
            return Some(Kind::Usage);
        }
        if usage && (is_usage(text, first) || input.indent > self.usage_indent) {
            return Some(Kind::Usage);
        }
        if message(text) {
            return Some(Kind::Message);
        }
        if is_listing(words) || below_heading && is_name(words) {
            return Some(Kind::Listing);
        }
        if self.display && displayed(words) || is_value(text, words) {
            return Some(Kind::Value);
        }
        None
    }
}

/// `@@ mdstat`, `== long run:`.
fn heading(text: &str) -> bool {
    let rest = text.strip_prefix("@@").or_else(|| text.strip_prefix("== "));
    // Behind a line that was cut, the heading stands on that line.
    let rest = rest.or_else(|| {
        text.split_once("== ")
            .filter(|(cut, _)| cut.starts_with('"'))
            .map(|(_, rest)| rest)
    });
    rest.is_some_and(|rest| rest.contains(|c: char| c.is_ascii_alphanumeric()))
}

/// `mkfs.xfs: small data volume`, `/usr/sbin/xfs_info: line 44: …`, and sentences of known programs.
fn message(text: &str) -> bool {
    let named = text.split_once(": ").is_some_and(|(name, _)| {
        let program = name.rsplit('/').next().unwrap_or(name);
        PROGRAMS.contains(&program) || program == "q"
    });
    let contains = text.starts_with("/dev/") && text.contains(" contains a ");
    let kernel = text.starts_with('[') && text.contains("] EXT4-fs") || text.contains("] XFS (");
    let dd = text.ends_with(" records out")
        || text.ends_with(" records in")
        || text.contains(" bytes (");
    named || contains || kernel || dd || SENTENCES.iter().any(|begin| text.starts_with(begin))
}

/// Options below `Usage:`.
fn is_usage(text: &str, first: &str) -> bool {
    first.starts_with("--") || text.starts_with(['[', '(']) || first.starts_with("/*")
}

/// `total 0`, `lrwxrwxrwx 1 0 0 …`, names of block devices.
fn is_listing(words: &[&str]) -> bool {
    let mode = |word: &str| {
        word.len() >= 10
            && word.is_char_boundary(10)
            && word[..10].chars().all(|c| {
                matches!(
                    c,
                    'd' | 'l' | 'b' | 'c' | 'p' | 's' | '-' | 'r' | 'w' | 'x' | 't' | 'S' | 'T'
                )
            })
    };
    let device = |word: &&str| {
        ["loop", "vd", "sd", "nvme", "md", "dm-", "sr", "ram"]
            .iter()
            .any(|stem| word.starts_with(stem))
    };
    matches!(words, ["total", size] if size.bytes().all(|b| b.is_ascii_digit()))
        || words.len() >= 8 && mode(words[0])
        || words.len() >= 2 && words.iter().all(device)
        || matches!(words, [path] if path.starts_with("/sys/") && path.ends_with(':'))
}

/// The name of a file, alone on its line.
fn is_name(words: &[&str]) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    matches!(words, [name] if name.chars().all(plain) && name.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Lines of lvdisplay, vgdisplay and pvdisplay.
fn displayed(words: &[&str]) -> bool {
    matches!(
        words[0],
        "LV" | "VG"
            | "PV"
            | "#"
            | "Current"
            | "Mirrored"
            | "Segments"
            | "Allocation"
            | "Read"
            | "-"
            | "Block"
            | "Stripes"
            | "Alloc"
            | "Free"
            | "Total"
            | "Max"
            | "Cur"
            | "Open"
            | "Act"
            | "Format"
            | "Metadata"
            | "System"
            | "MAX"
            | "PE"
            | "Allocated"
    )
}

/// Numbers alone, `rc 0`, lines of dmsetup, tune2fs, time, ps, scontrol and sinfo with separators, ext4's options.
fn is_value(text: &str, words: &[&str]) -> bool {
    let digits = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let ext4 = EXT4_OPTIONS.contains(&text) || !value.is_empty() && EXT4_KEYS.contains(&key);
    match words {
        [number] if digits(number) => true,
        ["rc", ..]
        | ["RAID", "stride:" | "stripe", ..]
        | ["Block", "size:", _]
        | ["write", "back" | "through"] => true,
        ["real" | "user" | "sys", time] if time.contains('m') && time.ends_with('s') => true,
        [name, place] if place.starts_with('(') && place.contains(':') && place.ends_with(')') => {
            name.contains('-')
        }
        [name, start, length, target, ..]
            if name.ends_with(':') && digits(start) && digits(length) =>
        {
            [
                "linear",
                "striped",
                "mirror",
                "raid",
                "crypt",
                "thin",
                "thin-pool",
                "snapshot",
                "snapshot-origin",
                "error",
                "zero",
                "delay",
            ]
            .contains(target)
        }
        [path, ..] if path.starts_with("/sys/block/") => true,
        [pid, parent, age, command, ..] if digits(pid) && digits(parent) && digits(age) => {
            command.starts_with('/') || *command == "sleep"
        }
        [clock, "start", ..] if clock.matches(':').count() == 2 => true,
        [job, _, _, _, "R" | "PD" | "CG", ..] if digits(job) => true,
        [name, "features"] if name.starts_with("dm-") || name.starts_with("sd") => true,
        ["\"iops\"" | "\"bw\"", ":", ..] | ["real:", ..] | ["after" | "before"] => true,
        ["REASON" | "line", ..] => text.contains("= "),
        [first, ..]
            if first.starts_with("NodeName=")
                || first.starts_with("State=")
                || first.starts_with("Reason=") =>
        {
            true
        }
        _ => ext4 || text.contains('|') && text.split('|').take(2).any(is_node_state),
    }
}

/// A state of a Slurm node, short or long, with a mark behind it.
fn is_node_state(word: &str) -> bool {
    let word = word.trim_end_matches(['*', '~', '#', '!', '%', '$', '@', '^', '-']);
    [
        "idle",
        "down",
        "drain",
        "drained",
        "draining",
        "drng",
        "alloc",
        "allocated",
        "mix",
        "mixed",
        "maint",
        "resv",
        "fail",
        "unk",
    ]
    .contains(&word)
}

/// A line of `/proc/mounts` about xfs, ext or btrfs on a device.
fn mount(line: usize, words: &[&str]) -> Option<Mount> {
    let [
        device,
        _,
        kind @ ("xfs" | "ext4" | "ext3" | "btrfs"),
        options,
        "0" | "1",
        "0" | "1" | "2",
    ] = words
    else {
        return None;
    };
    device.starts_with('/').then(|| Mount {
        line,
        device: (*device).into(),
        kind: (*kind).into(),
        options: options.split(',').map(Into::into).collect(),
    })
}
