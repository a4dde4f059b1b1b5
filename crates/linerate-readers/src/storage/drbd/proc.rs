//! `/proc/drbd` (`drbd_proc.c` of 8.3, 8.4 and 9).

use linerate_model::storage::{
    ConnectionState, DiskState, Drbd, DrbdStatus, DrbdWaiting, Paused, Role,
};
use linerate_model::transcript::Part;

use crate::number::printed;

/// Lines of `/proc/drbd`.
#[derive(Default)]
pub(super) struct Lines {
    open: bool,
    /// Below `resync:` or `act_log:`, whose elements follow where `proc_details` is 2 or more.
    detailed: bool,
}

impl Lines {
    pub(super) fn take(&mut self, line: usize, words: &[&str], parts: &mut Vec<Part>) -> bool {
        match words {
            ["version:", version, api, ..] if api.starts_with("(api:") => {
                parts.push(Part::Drbd(DrbdStatus {
                    version: Some((*version).into()),
                    is_proc: true,
                    ..DrbdStatus::default()
                }));
                (self.open, self.detailed) = (true, false);
                true
            }
            ["GIT-hash:" | "srcversion:", ..] => true,
            ["Transports", api, ..] if api.starts_with("(api:") => true,
            [minor, state, ..] if is_number(minor, ':') && state.starts_with("cs:") => {
                self.detailed = false;
                self.device(line, words, parts);
                true
            }
            _ => match parts.last_mut() {
                Some(Part::Drbd(status)) if self.open => {
                    let version = status.devices.last_mut();
                    version.is_some_and(|device| self.below(device, words))
                }
                _ => false,
            },
        }
    }

    fn device(&mut self, line: usize, words: &[&str], parts: &mut Vec<Part>) {
        if !self.open || !matches!(parts.last(), Some(Part::Drbd(status)) if status.is_proc) {
            parts.push(Part::Drbd(DrbdStatus {
                is_proc: true,
                ..DrbdStatus::default()
            }));
            self.open = true;
        }
        if let Some(Part::Drbd(status)) = parts.last_mut() {
            let version = status.version.clone();
            status.devices.push(Drbd {
                version,
                ..device(line, words)
            });
        }
    }

    /// Counters and progress below a device.
    fn below(&mut self, device: &mut Drbd, words: &[&str]) -> bool {
        let Some(first) = words.first() else {
            return false;
        };
        if first.starts_with("ns:") {
            counters(device, words);
            return true;
        }
        if let ["finish:", time, "speed:", rest @ ..] = words {
            speed(device, time, rest);
            return true;
        }
        if first.starts_with("resync:") || first.starts_with("act_log:") {
            self.detailed = true;
            return true;
        }
        progress(device, words)
            || matches!(words, [share, "sector", "pos:", ..] if share.ends_with('%'))
            || matches!(words, ["blocked", "on", "activity", "log:", _])
            || self.detailed && (*first == "nn:" || is_number(first, ':') && words.len() >= 3)
    }
}

/// `12:`, digits and that mark.
fn is_number(word: &str, mark: char) -> bool {
    let digits = word.strip_suffix(mark);
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// ` 1: cs:SyncSource ro:Primary/Secondary ds:UpToDate/Inconsistent C r-----`; 8.2 and before have `st:` for `ro:`.
fn device(line: usize, words: &[&str]) -> Drbd {
    let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key));
    let pair = |key: &str| {
        let text = value(key).unwrap_or_default();
        text.split_once('/').unwrap_or((text, ""))
    };
    let roles = match pair("ro:") {
        ("", "") => pair("st:"),
        roles => roles,
    };
    let disks = pair("ds:");
    // The protocol's letter is a blank while there is no connection.
    let flags = words.last().filter(|word| {
        word.starts_with(['r', 's'])
            && word
                .chars()
                .all(|c| matches!(c, '-' | 'r' | 's' | 'a' | 'p' | 'u' | 'd' | 'b' | 'n'))
    });
    let flag = |at: usize, letter: u8| {
        flags.is_some_and(|flags| flags.as_bytes().get(at) == Some(&letter))
    };
    Drbd {
        line,
        name: words[0].trim_end_matches(':').into(),
        connection: ConnectionState::from(value("cs:").unwrap_or_default()),
        roles: [Role::from(roles.0), Role::from(roles.1)],
        disks: [DiskState::from(disks.0), DiskState::from(disks.1)],
        paused: Paused {
            after: flag(1, b'a'),
            peer: flag(2, b'p'),
            user: flag(3, b'u'),
        },
        suspended: flag(0, b's'),
        ..Drbd::default()
    }
}

/// `ns:0 nr:0 dw:0 dr:0 al:8 bm:0 lo:0 pe:1 ua:6 ap:0 ep:1 wo:f oos:408632`.
fn counters(device: &mut Drbd, words: &[&str]) {
    let value = |key: &str| {
        let text = words.iter().find_map(|word| word.strip_prefix(key))?;
        text.parse().ok()
    };
    device.out_of_sync_kib = value("oos:");
    device.waiting = DrbdWaiting {
        pending: value("pe:"),
        unacknowledged: value("ua:"),
        application: value("ap:"),
    };
}

/// `[>....................] sync'ed: 0.2% (2093220/2097148)M`, or `verified:`, and `sync'ed:100.0%` without a blank.
fn progress(device: &mut Drbd, words: &[&str]) -> bool {
    let marked = words.iter().enumerate().find_map(|(at, word)| {
        let synced = word.strip_prefix("sync'ed:").map(|rest| (false, rest));
        let verified = || word.strip_prefix("verified:").map(|rest| (true, rest));
        synced.or_else(verified).map(|found| (at, found))
    });
    let Some((at, (verifies, rest))) = marked else {
        return false;
    };
    let sync = device.sync.get_or_insert_default();
    sync.verifies = verifies;
    let text = format!("{rest}{}", words[at + 1..].concat());
    let (percent, rest) = text.split_once('%').unwrap_or((&text, ""));
    sync.done_percent = printed(percent);
    if let Some((amounts, unit)) = rest.trim_start_matches('(').split_once(')') {
        let scale = match unit {
            "M" => 1.0,
            "K" => 1.0 / 1024.0,
            "G" => 1024.0,
            _ => return true,
        };
        let (left, whole) = amounts.split_once('/').unwrap_or((amounts, ""));
        let mib = |text: &str| printed(text).map(|number| number.value * scale);
        (sync.left_mib, sync.whole_mib) = (mib(left), mib(whole));
    }
    true
}

/// `finish: 5:59:58 speed: 99,236 (82,104) want: 102,400 K/sec (stalled)`.
fn speed(device: &mut Drbd, time: &str, rest: &[&str]) {
    let sync = device.sync.get_or_insert_default();
    let rate = |text: &str| printed(&text.replace(',', "")).map(|number| number.value);
    sync.finish_s = clock(time);
    sync.kib_per_second = rest.first().and_then(|text| rate(text));
    let want = rest.iter().position(|word| *word == "want:");
    sync.want_kib_per_second = want
        .and_then(|at| rest.get(at + 1))
        .and_then(|text| rate(text));
    sync.stalled = rest.contains(&"(stalled)");
}

/// `5:59:58` in seconds.
fn clock(text: &str) -> Option<u64> {
    text.split(':').try_fold(0_u64, |sum, part| {
        sum.checked_mul(60)?.checked_add(part.parse().ok()?)
    })
}
