//! `drbdsetup status` and `drbdsetup events2` as text.

use linerate_model::storage::DrbdStatus;
use linerate_model::transcript::Part;

use super::fold::Fold;
use crate::Input;

/// What the last line of a status was about.
#[derive(Clone, PartialEq, Eq)]
enum About {
    Resource,
    Device(u64),
    Peer,
    PeerDevice(u64),
}

/// Where a status is.
struct Open {
    resource: String,
    indent: usize,
    peer: Option<(String, usize)>,
    about: About,
}

/// Lines of a status, or of events.
#[derive(Default)]
pub(super) struct Lines {
    fold: Fold,
    /// The part that is being made.
    part: Option<usize>,
    open: Option<Open>,
}

impl Lines {
    pub(super) fn take(
        &mut self,
        input: &Input<'_>,
        words: &[&str],
        parts: &mut Vec<Part>,
    ) -> bool {
        if let ["#", "No", "currently", "configured", ..] = words {
            self.begin(parts);
            return true;
        }
        self.event(input.number, words, parts) || self.status(input, words, parts)
    }

    /// The part is put where its first line stood.
    pub(super) fn end(&mut self, parts: &mut [Part]) {
        let part = self.part.and_then(|at| parts.get_mut(at));
        if let Some(part) = part {
            *part = Part::Drbd(std::mem::take(&mut self.fold).finish());
        }
        *self = Self::default();
    }

    fn begin(&mut self, parts: &mut Vec<Part>) {
        if self.part.is_none() {
            self.part = Some(parts.len());
            parts.push(Part::Drbd(DrbdStatus::default()));
        }
    }

    /// `2026-11-23T02:23:15.150414+00:00 change peer-device name:home peer-node-id:0 conn-name:peer volume:0 …`.
    fn event(&mut self, line: usize, words: &[&str], parts: &mut Vec<Part>) -> bool {
        let (at, words) = match words {
            [time, rest @ ..] if time.contains('T') && time.matches(':').count() >= 2 => {
                (time_of_day(time), rest)
            }
            _ => (None, words),
        };
        let [verb, kind, facts @ ..] = words else {
            return false;
        };
        let verbs = [
            "exists", "create", "change", "rename", "destroy", "call", "response",
        ];
        let kinds = [
            "resource",
            "connection",
            "device",
            "peer-device",
            "path",
            "helper",
            "-",
        ];
        let Some(facts) = pairs(facts).filter(|_| verbs.contains(verb) && kinds.contains(kind))
        else {
            return false;
        };
        self.begin(parts);
        let value = |key: &str| facts.iter().find(|(name, _)| *name == key).map(|(_, v)| *v);
        let name = value("name").unwrap_or_default();
        let peer = value("conn-name").or_else(|| value("peer-node-id"));
        let volume = value("volume").and_then(|text| text.parse().ok());
        match (*kind, peer, volume) {
            ("path" | "helper" | "-", ..) => {}
            _ if *verb == "destroy" => self.fold.destroy(name, peer, volume),
            ("resource", ..) => self.fold.resource(name, &facts),
            ("connection", Some(peer), _) => self.fold.link(line, (name, peer), &facts),
            ("device", _, Some(volume)) => self.fold.device(line, (name, volume), &facts),
            ("peer-device", Some(peer), Some(volume)) => {
                let place = (name.to_owned(), peer.to_owned(), volume);
                let row = self.fold.peer_device(line, &place, &facts);
                self.fold.change(line, row, at);
            }
            _ => {}
        }
        true
    }

    fn status(&mut self, input: &Input<'_>, words: &[&str], parts: &mut Vec<Part>) -> bool {
        let [first, rest @ ..] = words else {
            return false;
        };
        let line = input.number;
        if !first.contains(':') {
            let Some(facts) = pairs(rest).filter(|facts| !facts.is_empty()) else {
                return false;
            };
            return self.named(input, first, &facts, parts);
        }
        let (Some(open), Some(facts)) = (&mut self.open, pairs(words)) else {
            return false;
        };
        if !facts.iter().all(|(key, _)| is_known(key)) {
            return false;
        }
        let volume = |facts: &[(&str, &str)]| facts[0].1.parse().unwrap_or(0);
        open.about = match (facts[0].0, &open.peer) {
            ("volume", Some((_, indent))) if input.indent > *indent => {
                About::PeerDevice(volume(&facts))
            }
            ("volume", _) => About::Device(volume(&facts)),
            ("disk", _) if !matches!(open.about, About::Device(_)) => About::Device(0),
            ("peer-disk" | "replication", _) if !matches!(open.about, About::PeerDevice(_)) => {
                About::PeerDevice(0)
            }
            _ => open.about.clone(),
        };
        match (&open.about, &open.peer) {
            (About::Resource, _) => self.fold.resource(&open.resource, &facts),
            (About::Device(volume), _) => {
                self.fold.device(line, (&open.resource, *volume), &facts);
            }
            (About::Peer, Some((peer, _))) => {
                self.fold.link(line, (&open.resource, peer), &facts);
            }
            (About::PeerDevice(volume), Some((peer, _))) => {
                let place = (open.resource.clone(), peer.clone(), *volume);
                self.fold.peer_device(line, &place, &facts);
            }
            _ => return false,
        }
        true
    }

    /// A line that begins with a name: a resource, or a peer below it.
    fn named(
        &mut self,
        input: &Input<'_>,
        name: &str,
        facts: &[(&str, &str)],
        parts: &mut Vec<Part>,
    ) -> bool {
        let has = |key: &str| facts.iter().any(|(name, _)| *name == key);
        if !facts.iter().all(|(key, _)| is_known(key)) {
            return false;
        }
        match &mut self.open {
            Some(open) if has("connection") || has("role") && input.indent > open.indent => {
                open.peer = Some((name.to_owned(), input.indent));
                open.about = About::Peer;
                self.fold.link(input.number, (&open.resource, name), facts);
                true
            }
            _ if has("role") => {
                self.begin(parts);
                self.fold.resource(name, facts);
                self.open = Some(Open {
                    resource: name.to_owned(),
                    indent: input.indent,
                    peer: None,
                    about: About::Resource,
                });
                true
            }
            _ => false,
        }
    }
}

/// Keys of a status (`drbdsetup_84.c`, `drbdsetup.c`).
fn is_known(key: &str) -> bool {
    [
        "role",
        "suspended",
        "write-ordering",
        "volume",
        "minor",
        "disk",
        "client",
        "backing_dev",
        "quorum",
        "open",
        "size",
        "read",
        "written",
        "al-writes",
        "bm-writes",
        "upper-pending",
        "lower-pending",
        "al-suspended",
        "blocked",
        "connection",
        "congested",
        "tls",
        "ap-in-flight",
        "rs-in-flight",
        "replication",
        "peer-disk",
        "peer-client",
        "done",
        "resync-suspended",
        "received",
        "sent",
        "out-of-sync",
        "pending",
        "unacked",
        "node-id",
        "force-io-failures",
        "local",
        "peer",
        "established",
        "eta",
        "dbdt1",
        "want",
    ]
    .contains(&key)
}

/// `key:value` words, all of them.
fn pairs<'a>(words: &[&'a str]) -> Option<Vec<(&'a str, &'a str)>> {
    words.iter().map(|word| word.split_once(':')).collect()
}

/// The seconds since midnight in `2026-11-23T02:23:15.150414+00:00`.
fn time_of_day(text: &str) -> Option<f64> {
    let (_, clock) = text.split_once('T')?;
    let clock = clock.split(['+', 'Z']).next()?;
    let mut fields = clock.splitn(3, ':');
    let mut field = || -> Option<f64> { fields.next()?.parse().ok() };
    let (hours, minutes, seconds) = (field()?, field()?, field()?);
    let all = hours * 3600.0 + minutes * 60.0 + seconds;
    (0.0..=86_400.0).contains(&all).then_some(all)
}
