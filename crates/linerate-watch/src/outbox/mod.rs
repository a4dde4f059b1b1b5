//! What is sent of alerts, where and when: the rules without the sending.
//!
//! An Alertmanager is sent every firing alert each minute, with an end in four minutes: should the hub die, they end. A webhook
//! and a mailbox are sent each change once. A channel that fails is tried again after 10 s, then after twice as long, up to ten
//! minutes; its newest state waits, one entry an alert, and no other channel waits for it. What is muted is not sent; where it
//! still fires when the muting ends, it is sent then.

mod payload;
mod text;

use std::collections::BTreeMap;

use linerate_model::alert::{Alert, AlertId, AlertState, Silence};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;
use serde::{Deserialize, Serialize};

use crate::watched::Watched;

pub use payload::{alertmanager, webhook};
pub use text::{body, subject};

/// How often firing alerts are sent to an Alertmanager, ms.
const AGAIN: u64 = 60_000;
/// When what was sent to an Alertmanager ends by itself, ms.
pub const ENDS_AFTER: u64 = 4 * AGAIN;
/// The first and the longest wait after a failure, ms.
const WAIT: [u64; 2] = [10_000, 600_000];

/// What a channel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelKind {
    /// `POST /api/v2/alerts` of an Alertmanager.
    Alertmanager,
    /// A `POST` of JSON.
    Webhook,
    /// A mail.
    Mail,
}

/// Why an alert is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Muted {
    /// By a silence, with this number.
    Silence(u64),
    /// A window of maintenance, and why it is.
    Maintenance(PlainText),
}

/// Whether an alert is muted: by a silence, or where each of its pairs has a host in maintenance.
pub fn muted(
    alert: &Alert,
    silences: &[Silence],
    watched: &Watched,
    now: UnixMillis,
) -> Option<Muted> {
    if let Some(silence) = silences.iter().find(|silence| silence.covers(alert, now)) {
        return Some(Muted::Silence(silence.id));
    }
    let seconds = now.0 / 1000;
    let current = watched
        .maintenance
        .iter()
        .filter(|window| (window.from_unix_s..window.until_unix_s).contains(&seconds));
    let mut windows = current.filter(|window| {
        let kept = |name: &PlainText| {
            let among = |place: &usize| {
                watched
                    .hosts
                    .get(*place)
                    .is_some_and(|host| host.name == *name)
            };
            window.hosts.is_empty() || window.hosts.iter().any(among)
        };
        alert
            .pairs
            .iter()
            .all(|pair| kept(&pair.from) || kept(&pair.to))
    });
    windows
        .next()
        .map(|window| Muted::Maintenance(window.why.clone()))
}

/// What is to be sent to a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Sending {
    /// The channel's name.
    pub channel: String,
    /// What it is.
    pub kind: ChannelKind,
    /// The alerts; one, unless the channel is an Alertmanager.
    pub alerts: Vec<Alert>,
}

/// A channel that does not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenChannel {
    /// Its name.
    pub channel: String,
    /// When it first failed.
    pub since: UnixMillis,
    /// Attempts that failed since then.
    pub attempts: u32,
    /// When it is tried next.
    pub next: UnixMillis,
    /// Why the latest attempt failed.
    pub why: PlainText,
    /// Alerts that wait for it.
    pub waiting: usize,
}

/// The state of every channel.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outbox {
    channels: BTreeMap<String, Channel>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Channel {
    kind: ChannelKind,
    entries: Vec<Entry>,
    broken: Option<Broken>,
    /// When it is sent to next, where something is due.
    next: UnixMillis,
    /// Whether a sending is under way.
    #[serde(skip)]
    busy: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    alert: Alert,
    muted: bool,
    /// What was last sent; absent = nothing was.
    sent: Option<Alert>,
    /// Whether a sending was tried: one that failed may have arrived.
    tried: bool,
    /// Whether [`Self::alert`] waits to be sent.
    waits: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Broken {
    since: UnixMillis,
    attempts: u32,
    why: PlainText,
}

impl Outbox {
    /// Takes the channels that there are; what waits for others is dropped.
    pub fn handle_channels(&mut self, channels: &[(String, ChannelKind)]) {
        let kept = |name: &String, kind| {
            channels
                .iter()
                .any(|(other, its)| other == name && *its == kind)
        };
        self.channels
            .retain(|name, channel| kept(name, channel.kind));
        for (name, kind) in channels {
            self.channels
                .entry(name.clone())
                .or_insert_with(|| Channel {
                    kind: *kind,
                    entries: Vec::new(),
                    broken: None,
                    next: UnixMillis(0),
                    busy: false,
                });
        }
    }

    /// An alert changed, or whether it is muted did; call it for each open alert each minute as well. Suspects are not sent.
    pub fn handle_alert(&mut self, alert: &Alert, muted: bool) {
        if alert.fired.is_none() {
            return;
        }
        for channel in self.channels.values_mut() {
            channel.take(alert, muted);
        }
    }

    /// What is to be sent now; absent = nothing. Each is followed by [`Self::handle_sent`].
    pub fn poll_sending(&mut self, now: UnixMillis) -> Option<Sending> {
        let due = self
            .channels
            .iter_mut()
            .find(|(_, channel)| channel.due().is_some_and(|at| at <= now))?;
        let (name, channel) = due;
        channel.busy = true;
        let alerts = channel.to_send().map(|entry| entry.alert.clone());
        let most = if channel.kind == ChannelKind::Alertmanager {
            usize::MAX
        } else {
            1
        };
        let alerts: Vec<Alert> = alerts.take(most).collect();
        for entry in &mut channel.entries {
            entry.tried |= alerts.iter().any(|alert| alert.id == entry.alert.id);
        }
        Some(Sending {
            channel: name.clone(),
            kind: channel.kind,
            alerts,
        })
    }

    /// How a sending ended.
    pub fn handle_sent(
        &mut self,
        now: UnixMillis,
        sending: &Sending,
        result: Result<(), PlainText>,
    ) {
        let Some(channel) = self.channels.get_mut(&sending.channel) else {
            return;
        };
        channel.busy = false;
        match result {
            Ok(()) => channel.sent(now, &sending.alerts),
            Err(why) => channel.failed(now, why),
        }
    }

    /// When [`Self::poll_sending`] has something next; absent = nothing waits.
    pub fn poll_timeout(&self) -> Option<UnixMillis> {
        self.channels.values().filter_map(Channel::due).min()
    }

    /// The channels that do not work.
    pub fn broken(&self) -> Vec<BrokenChannel> {
        let broken = self.channels.iter().filter_map(|(name, channel)| {
            let broken = channel.broken.as_ref()?;
            Some(BrokenChannel {
                channel: name.clone(),
                since: broken.since,
                attempts: broken.attempts,
                next: channel.next,
                why: broken.why.clone(),
                waiting: channel.to_send().count(),
            })
        });
        broken.collect()
    }
}

/// Whether somebody wants to know of the difference.
fn differs(kind: ChannelKind, before: &Alert, after: &Alert) -> bool {
    let finding = |alert: &Alert| {
        let finding = alert.finding.as_ref();
        finding.map(|one| {
            (
                one.id.clone(),
                one.counter_test.as_ref().map(|test| test.verdict),
            )
        })
    };
    let changed =
        (before.state, before.kind, &before.cause) != (after.state, after.kind, &after.cause);
    changed || (kind == ChannelKind::Webhook && finding(before) != finding(after))
}

impl Channel {
    fn take(&mut self, alert: &Alert, muted: bool) {
        let kind = self.kind;
        let over = alert.state == AlertState::Resolved;
        let place = self
            .entries
            .iter()
            .position(|entry| entry.alert.id == alert.id);
        let place = match place {
            Some(place) => place,
            None if over => return,
            None => {
                self.entries.push(Entry {
                    alert: alert.clone(),
                    muted,
                    sent: None,
                    tried: false,
                    waits: false,
                });
                self.entries.len() - 1
            }
        };
        let entry = &mut self.entries[place];
        entry.alert = alert.clone();
        // The end of what may have arrived is sent even where it is muted by now.
        entry.muted = muted && !(over && entry.tried);
        entry.waits = match &entry.sent {
            None => !over || entry.tried,
            Some(sent) => differs(kind, sent, alert),
        };
        if over && !entry.tried {
            self.entries.remove(place);
        } else if self.broken.is_none() && self.entries[place].waits && !self.entries[place].muted {
            self.next = UnixMillis(0);
        }
    }

    /// What goes into the next sending.
    fn to_send(&self) -> impl Iterator<Item = &Entry> {
        let always = self.kind == ChannelKind::Alertmanager;
        self.entries
            .iter()
            .filter(move |entry| !entry.muted && (entry.waits || always))
    }

    fn due(&self) -> Option<UnixMillis> {
        (!self.busy && self.to_send().next().is_some()).then_some(self.next)
    }

    fn sent(&mut self, now: UnixMillis, alerts: &[Alert]) {
        let kind = self.kind;
        self.broken = None;
        for alert in alerts {
            let entry = self
                .entries
                .iter_mut()
                .find(|entry| entry.alert.id == alert.id);
            if let Some(entry) = entry {
                // It may have changed while it was sent.
                entry.waits = differs(kind, alert, &entry.alert);
                entry.sent = Some(alert.clone());
            }
        }
        let over: Vec<AlertId> = alerts
            .iter()
            .filter(|alert| alert.state == AlertState::Resolved)
            .map(|alert| alert.id)
            .collect();
        self.entries
            .retain(|entry| entry.waits || !over.contains(&entry.alert.id));
        let waits = self.entries.iter().any(|entry| entry.waits && !entry.muted);
        self.next = if waits { now } else { now.plus_millis(AGAIN) };
        if kind != ChannelKind::Alertmanager {
            self.next = now;
        }
    }

    fn failed(&mut self, now: UnixMillis, why: PlainText) {
        let before = self.broken.take();
        let attempts = before.as_ref().map_or(0, |broken| broken.attempts);
        let wait = WAIT[0].saturating_mul(1 << attempts.min(16)).min(WAIT[1]);
        self.next = now.plus_millis(wait);
        self.broken = Some(Broken {
            since: before.map_or(now, |broken| broken.since),
            attempts: attempts.saturating_add(1),
            why,
        });
    }
}
