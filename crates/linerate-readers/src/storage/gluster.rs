//! glusterd's log, `cmd_history.log`, and the answers of gluster's command line as text and XML.

use linerate_model::plain_text::PlainText;
use linerate_model::storage::{
    GlusterBrick, GlusterEvent, GlusterHeal, GlusterKind, GlusterLock, GlusterPeer, GlusterState,
};
use linerate_model::transcript::Part;

use crate::Input;

/// Elements of XML within each other that are kept.
const DEEPEST: usize = 32;

/// Answers of the command line.
#[derive(Default)]
pub(super) struct Lines {
    /// Names of the XML elements that are open; empty outside of a document.
    inside: Vec<String>,
    /// Text of the element that is open.
    text: String,
    /// Below `Gluster process … Online Pid`, or `UUID Hostname State`.
    table: Option<Table>,
    /// Rules that are still to come around a graph in the log.
    rules: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    Processes,
    Pool,
}

impl Lines {
    pub(super) fn take(
        &mut self,
        input: &Input<'_>,
        words: &[&str],
        parts: &mut Vec<Part>,
    ) -> bool {
        if let Some(event) = event(input) {
            match parts.last_mut() {
                Some(Part::Gluster(events)) => events.push(event),
                _ => parts.push(Part::Gluster(vec![event])),
            }
            return true;
        }
        if self.graph(input.text) {
            return true;
        }
        let begins = input.text.starts_with("<?xml") || input.text.starts_with("<cliOutput");
        if begins || !self.inside.is_empty() {
            self.xml(input, parts);
            return true;
        }
        self.answer(input, words, parts)
    }

    /// The graph that a daemon logs when it starts: a heading, and lines between two rules.
    fn graph(&mut self, text: &str) -> bool {
        if matches!(text, "Final graph:" | "Given volfile:") {
            self.rules = 2;
            return true;
        }
        let rule = text.starts_with("+--");
        let numbered = text
            .split_once(':')
            .is_some_and(|(before, _)| number(before).is_some());
        let inside = self.rules > 0 && (rule || numbered);
        self.rules = if inside {
            self.rules - u8::from(rule)
        } else {
            0
        };
        inside
    }

    /// Elements of a line of XML.
    fn xml(&mut self, input: &Input<'_>, parts: &mut Vec<Part>) {
        let mut rest = input.text;
        while let Some((text, behind)) = rest.split_once('<') {
            self.add(text);
            let (element, after) = behind.split_once('>').unwrap_or((behind, ""));
            rest = after;
            if element.starts_with('?') {
                state(parts);
                self.inside = vec!["?".to_owned()];
            } else if let Some(name) = element.strip_prefix('/') {
                self.close(name, input.number, parts);
                if name == "cliOutput" {
                    self.inside.clear();
                    self.text.clear();
                }
            } else {
                let name = element.split_whitespace().next().unwrap_or_default();
                let empty = element.ends_with('/');
                self.open(name.trim_end_matches('/'), input.number, parts);
                if empty {
                    self.close(name.trim_end_matches('/'), input.number, parts);
                }
            }
        }
        self.add(rest);
    }

    fn add(&mut self, text: &str) {
        // Text of an element is a name, a number or a message.
        if self.text.len() < 1024 {
            self.text.push_str(text);
        }
    }

    fn open(&mut self, name: &str, line: usize, parts: &mut Vec<Part>) {
        self.text.clear();
        if self.inside.len() < DEEPEST {
            self.inside.push(name.to_owned());
        }
        let held = state(parts);
        let within = |name: &str| self.inside.iter().any(|one| one == name);
        match name {
            "node" if within("volStatus") => held.bricks.push(GlusterBrick {
                line,
                ..GlusterBrick::default()
            }),
            "peer" => held.peers.push(GlusterPeer {
                line,
                ..GlusterPeer::default()
            }),
            "brick" if within("healInfo") => held.heals.push(GlusterHeal {
                line,
                ..GlusterHeal::default()
            }),
            _ => {}
        }
    }

    fn close(&mut self, name: &str, _line: usize, parts: &mut Vec<Part>) {
        let text = std::mem::take(&mut self.text);
        let text = text.trim();
        if self.inside.last().is_some_and(|open| open == name) {
            self.inside.pop();
        }
        let above = self.inside.last().map_or("", String::as_str);
        let held = state(parts);
        match (above, name) {
            ("cliOutput", "opRet") => held.answers += u64::from(text == "0"),
            ("cliOutput", "opErrstr") if !text.is_empty() => held.errors.push(text.into()),
            ("node", _) => {
                if let Some(brick) = held.bricks.last_mut() {
                    match name {
                        "hostname" => brick.name = text.into(),
                        "path" => brick.name = format!("{}:{text}", brick.name).into(),
                        "status" => brick.online = number(text).map(|status| status == 1),
                        _ => {}
                    }
                }
            }
            ("peer", _) => {
                if let Some(peer) = held.peers.last_mut() {
                    match name {
                        "hostname" => peer.name = text.into(),
                        "connected" => peer.connected = number(text).map(|status| status == 1),
                        _ => {}
                    }
                }
            }
            ("brick", _) => {
                if let Some(heal) = held.heals.last_mut() {
                    match name {
                        "name" => heal.brick = text.into(),
                        "status" => heal.status = text.into(),
                        "totalNumberOfEntries" | "numberOfEntries" => heal.entries = number(text),
                        "numberOfEntriesInSplitBrain" => heal.split_brain = number(text),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// Answers as text.
    fn answer(&mut self, input: &Input<'_>, words: &[&str], parts: &mut Vec<Part>) -> bool {
        let (line, text) = (input.number, input.text);
        match words {
            ["glusterfs", version] if version.starts_with(|c: char| c.is_ascii_digit()) => {}
            ["Status", "of", "volume:", _] => self.table = None,
            ["Number", "of", "Peers:", _] => state(parts).answers += 1,
            ["Task", "Status", "of", "Volume", _]
            | ["There", "are", "no", "active", "volume", "tasks"] => {}
            ["Gluster", "process", ..] => self.table = Some(Table::Processes),
            ["UUID", "Hostname", "State"] => self.table = Some(Table::Pool),
            [name @ .., _tcp, _rdma, online @ ("Y" | "N"), _pid]
                if self.table == Some(Table::Processes) =>
            {
                state(parts).bricks.push(GlusterBrick {
                    line,
                    name: name.join(" ").trim_start_matches("Brick ").into(),
                    online: Some(*online == "Y"),
                });
            }
            [_, host, state_of @ ("Connected" | "Disconnected")]
                if self.table == Some(Table::Pool) =>
            {
                state(parts)
                    .peers
                    .push(peer(line, host, *state_of == "Connected"));
            }
            ["Hostname:", host] => state(parts).peers.push(GlusterPeer {
                line,
                name: (*host).into(),
                connected: None,
            }),
            ["State:", rest @ ..] if rest.len() >= 2 => {
                let Some(peer) = state(parts).peers.last_mut() else {
                    return false;
                };
                peer.connected = Some(text.ends_with("(Connected)"));
            }
            ["Uuid:", _] if matches!(parts.last(), Some(Part::GlusterState(_))) => {}
            ["Brick", brick] if brick.contains(":/") => state(parts).heals.push(GlusterHeal {
                line,
                brick: (*brick).into(),
                ..GlusterHeal::default()
            }),
            _ => return heal(text, parts) || said(text, parts),
        }
        true
    }
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

fn peer(line: usize, name: &str, connected: bool) -> GlusterPeer {
    GlusterPeer {
        line,
        name: name.into(),
        connected: Some(connected),
    }
}

fn state(parts: &mut Vec<Part>) -> &mut GlusterState {
    if !matches!(parts.last(), Some(Part::GlusterState(_))) {
        parts.push(Part::GlusterState(GlusterState::default()));
    }
    match parts.last_mut() {
        Some(Part::GlusterState(held)) => held,
        _ => unreachable!("it was pushed above"),
    }
}

/// Lines below a brick of `heal info`.
fn heal(text: &str, parts: &mut [Part]) -> bool {
    let Some(Part::GlusterState(held)) = parts.last_mut() else {
        return false;
    };
    let Some(heal) = held.heals.last_mut() else {
        return false;
    };
    // Entries by their path or identity; one in split brain says so.
    let is_entry = text.starts_with('/') || text.starts_with("<gfid:");
    if is_entry && heal.entries.is_none() {
        if text.ends_with("Is in split-brain") {
            heal.split_brain = Some(heal.split_brain.unwrap_or(0).saturating_add(1));
        }
        return true;
    }
    let Some((key, value)) = text.split_once(": ") else {
        return false;
    };
    match key {
        "Status" => heal.status = value.into(),
        "Total Number of entries" | "Number of entries" => heal.entries = number(value),
        "Number of entries in split-brain" => heal.split_brain = number(value),
        "Number of entries in heal pending" | "Number of entries possibly healing" => {}
        _ => return false,
    }
    true
}

/// Answers in a sentence.
fn said(text: &str, parts: &mut Vec<Part>) -> bool {
    let text = match text.strip_prefix("rc ") {
        Some(rest) => rest.split_once(": ").map_or(rest, |(_, rest)| rest),
        None => text,
    };
    let for_lock = text.contains("Another transaction is in progress");
    let of_volume = text.starts_with("volume ") && text.contains(": ");
    let well = of_volume && text.contains(": success")
        || text.starts_with("Launching heal operation")
        || text.starts_with("Use heal info commands");
    let failed = of_volume && text.contains(": failed")
        || text.starts_with("Profile on Volume ")
        || text.starts_with("Locking failed on ")
        || text.starts_with("Error : Request timed out");
    if !(for_lock || well || failed) {
        return false;
    }
    let held = state(parts);
    held.refused += u64::from(for_lock);
    held.answers += u64::from(well && !text.contains("unsuccessful"));
    let known = held.errors.iter().any(|one| one == text);
    // The same answer again and again is kept once.
    if failed && !for_lock && !known && held.errors.len() < 16 {
        held.errors.push(text.into());
    }
    true
}

/// `[2012-12-13 15:40:07.881363] E [file.c:277:function] 0-glusterd: message`, from 3.7 on with `+0000` and `[MSGID: 1]`, or
/// `[…]  : volume heal home0 : FAILED : Another transaction is in progress …`.
fn event(input: &Input<'_>) -> Option<GlusterEvent> {
    if let Some(repeated) = input.text.strip_prefix("The message \"") {
        return repeats(input.number, repeated);
    }
    let (at, rest) = input.text.strip_prefix('[')?.split_once(']')?;
    let dated = at.len() >= 19 && at.as_bytes()[4] == b'-' && at.as_bytes()[7] == b'-';
    let rest = rest.trim_start();
    if !dated {
        return None;
    }
    let (level, kind, message) = if let Some(command) = rest.strip_prefix(": ") {
        ("", command_kind(command)?, command)
    } else {
        let (level, rest) = rest.split_once(" [")?;
        let (_, message) = rest.split_once("] ")?;
        (level, log_kind(message), message)
    };
    let level = level.trim();
    if level.len() > 1 {
        return None;
    }
    Some(GlusterEvent {
        line: input.number,
        at: at.into(),
        at_s: seconds(at),
        level: level.into(),
        kind,
        // What the daemon says stands behind the addresses of its callers.
        message: spoken(message).chars().take(400).collect(),
    })
}

/// `The message "E [MSGID: 1] [file.c:1:function] 0-management: text" repeated 3 times between [from] and [to]`, behind its first
/// words.
fn repeats(line: usize, text: &str) -> Option<GlusterEvent> {
    let (said, times) = text.split_once("\" repeated ")?;
    let (level, rest) = said.split_once(" [")?;
    let (_, message) = rest.split_once("] ")?;
    let (_, at) = times.strip_suffix(']')?.rsplit_once('[')?;
    Some(GlusterEvent {
        line,
        at: at.into(),
        at_s: seconds(at),
        level: level.into(),
        kind: log_kind(message),
        message: message.chars().take(400).collect(),
    })
}

/// A message without the backtrace before it: `(-->… ) 0-management: Lock for …`.
fn spoken(message: &str) -> &str {
    let message = match message.rsplit_once(" ) ") {
        Some((_, rest)) if message.starts_with("(-->") => rest,
        _ => message,
    };
    message.trim()
}

fn command_kind(command: &str) -> Option<GlusterKind> {
    let mut fields = command.split(" : ");
    let (typed, outcome) = (fields.next()?, fields.next()?.trim());
    let volume = typed.split_whitespace().nth(2).map(PlainText::from);
    match outcome {
        "SUCCESS" => Some(GlusterKind::Succeeded(volume)),
        "FAILED" => Some(GlusterKind::Failed {
            for_lock: command.contains("Another transaction is in progress"),
        }),
        _ => None,
    }
}

fn log_kind(message: &str) -> GlusterKind {
    if let Some(lock) = old_lock(message).or_else(|| new_lock(message)) {
        return GlusterKind::Held(lock);
    }
    if let Some((_, volume)) = message.split_once("unlock timer is cancelled for volume") {
        // `volume_type home0_vol`, or the name alone.
        let name = volume.split_whitespace().next_back().unwrap_or_default();
        return GlusterKind::Freed(name.strip_suffix("_vol").unwrap_or(name).into());
    }
    if let Some(peer) = silent(message) {
        return GlusterKind::Silent(peer);
    }
    let of_lock = [
        "acquire lock for",
        "release lock for",
        "Lock for vol",
        "lock all vol",
        "mgmt_v3 locks",
        "lockdown failed",
        "ocking failed on",
        "Locking Peers Failed",
        "Unlock failed on peers",
        "Failed to unlock on",
    ];
    if of_lock.iter().any(|text| message.contains(text)) {
        return GlusterKind::OfLock;
    }
    GlusterKind::Other
}

/// `bailing out frame type(glusterd mgmt v3), op(--(1)), … timeout = 600 for 192.0.2.2:24007`; without a peer up to 3.3.
fn silent(message: &str) -> Option<PlainText> {
    let (_, rest) = message.split_once("bailing out frame type(glusterd ")?;
    let (_, peer) = rest.rsplit_once(" for ")?;
    Some(peer.trim().into())
}

/// `Unable to get lock for uuid: A, lock held by: B` (3.5 and before).
fn old_lock(message: &str) -> Option<GlusterLock> {
    let (head, holder) = message.split_once("lock held by:")?;
    let asker = head.rsplit_once("uuid:").map(|(_, text)| text)?;
    let (asker, holder) = (uuid(asker)?, uuid(holder)?);
    Some(GlusterLock {
        volume: None,
        asker: Some(asker),
        holder,
    })
}

/// `Lock for home0 held by B` (from 3.6 on).
fn new_lock(message: &str) -> Option<GlusterLock> {
    let (_, rest) = message.split_once("Lock for ")?;
    let (volume, holder) = rest.split_once(" held by ")?;
    Some(GlusterLock {
        volume: Some(volume.trim_start_matches("vol ").into()),
        asker: None,
        holder: uuid(holder)?,
    })
}

fn uuid(text: &str) -> Option<PlainText> {
    let word = text.split_whitespace().next()?;
    let clean = word.trim_matches([',', '.']).to_ascii_lowercase();
    (!clean.is_empty()).then(|| clean.into())
}

/// `2026-11-23 02:09:03.683547 +0000` as seconds since 1970; without a zone it is UTC.
fn seconds(at: &str) -> Option<f64> {
    let mut words = at.split([' ', 'T']);
    let mut date = words.next()?.splitn(3, '-');
    let mut field = || -> Option<i64> { date.next()?.parse().ok() };
    let (year, month, day) = (field()?, field()?, field()?);
    let mut clock = words.next()?.splitn(3, ':');
    let mut field = || -> Option<f64> { clock.next()?.parse().ok() };
    let seconds = field()? * 3600.0 + field()? * 60.0 + field()?;
    let plausible = (1970..10_000).contains(&year) && (1..=12).contains(&month);
    if !plausible || !(1..=31).contains(&day) || !(0.0..=86_401.0).contains(&seconds) {
        return None;
    }
    // Days of the civil calendar, years from March on.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days =
        year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 719_469;
    Some(days as f64 * 86_400.0 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_since_1970() {
        assert_eq!(seconds("1970-01-01 00:00:00.5"), Some(0.5));
        assert_eq!(seconds("2000-03-01 00:00:00 +0000"), Some(951_868_800.0));
        assert_eq!(seconds("2026-11-23 02:09:03"), Some(1_795_399_743.0));
        assert_eq!(seconds("2026-13-23 02:09:03"), None);
    }
}
