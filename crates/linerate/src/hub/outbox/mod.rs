//! Alerts on their way to Alertmanager, webhooks and mail servers: a thread for each channel, so that a broken one blocks nothing.
//!
//! What a channel was told is kept in a file of its own; what it should know follows from the alerts. So each change is sent
//! at least once, also across a restart, and once where the channel answers.

mod body;
mod http;
mod mail;
mod mute;
mod secret;
#[cfg(test)]
pub(super) mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_archive::Archive;
use linerate_hub::live::ChannelState;
use linerate_hub::shared::Shared;
use linerate_model::alert::{Alert, AlertId, AlertKind, AlertState, Silence};
use linerate_model::counter_test::Verdict;
use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;
use linerate_watch::watched::{Channel, ChannelKind, Watched};
use serde::{Deserialize, Serialize};

use super::clock::HubClock;
use crate::keep::replace;
use mute::{Pauses, muted};

/// While an alert fires, Alertmanager gets it again after this time.
const AGAIN: Duration = Duration::from_secs(60);
/// The first try after a failed one comes after this time, the next ones after twice the time each.
const RETRY: Duration = Duration::from_secs(2);
const RETRY_AT_MOST: Duration = Duration::from_secs(300);
/// What was said of an alert that is over is forgotten after this time, ms.
const FORGET_MILLIS: u64 = 7 * 86_400_000;

/// The channels of the plan.
pub(super) struct Outbox {
    folder: PathBuf,
    clock: HubClock,
    archive: Arc<Archive>,
    shared: Arc<Shared>,
    channels: BTreeMap<PlainText, (Channel, Courier)>,
    /// The alerts that channels should know of.
    alerts: BTreeMap<AlertId, Alert>,
    pauses: Pauses,
}

/// A channel's thread, and what it has to send.
struct Courier {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Desk {
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

#[derive(Default)]
struct Wanted {
    alerts: BTreeMap<AlertId, Alert>,
    pauses: Pauses,
    ended: bool,
    woken: bool,
}

/// What a channel was told of an alert.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Said {
    state: AlertState,
    kind: AlertKind,
    cause: PlainText,
    finding: Option<String>,
    /// What its counter-test showed.
    #[serde(default)]
    verdict: Option<Verdict>,
    at: UnixMillis,
}

impl Said {
    fn of(alert: &Alert, at: UnixMillis) -> Self {
        let finding = alert.finding.as_ref();
        let tested = finding.and_then(|finding| finding.counter_test.as_ref());
        Self {
            state: alert.state,
            kind: alert.kind,
            cause: alert.cause.name.clone(),
            finding: finding.map(|finding| finding.id.clone()),
            verdict: tested.map(|test| test.verdict),
            at,
        }
    }

    /// Whether it still holds. Nobody gets another mail because the finding of a firing alert changed.
    fn is_of(&self, alert: &Alert, kind: &ChannelKind) -> bool {
        let mut now = Self::of(alert, self.at);
        if matches!(kind, ChannelKind::Mail(_)) {
            now.finding.clone_from(&self.finding);
            now.verdict = self.verdict;
        }
        now == *self
    }
}

impl Outbox {
    /// `alerts` are those of before that may still have to be sent.
    pub(super) fn new(
        folder: &Path,
        clock: HubClock,
        archive: Arc<Archive>,
        shared: Arc<Shared>,
        alerts: Vec<Alert>,
    ) -> Self {
        let told = alerts.into_iter().filter(|alert| alert.fired.is_some());
        Self {
            folder: folder.to_owned(),
            clock,
            archive,
            shared,
            channels: BTreeMap::new(),
            alerts: told.map(|alert| (alert.id, alert)).collect(),
            pauses: Pauses::default(),
        }
    }

    /// Starts the channels of a plan, and ends those that it does not have.
    pub(super) fn keep(&mut self, watched: &Watched) {
        let channels = &watched.channels;
        self.pauses = Pauses::of(watched);
        self.channels.retain(|_, (channel, courier)| {
            let stays = channels.contains(channel);
            if !stays {
                courier.end();
            }
            stays
        });
        let states = channels.iter().map(|channel| ChannelState {
            name: channel.name.clone(),
            broken: None,
            broken_since: None,
            waiting: 0,
        });
        let states: Vec<ChannelState> = states.collect();
        self.shared.live().update(|live| {
            let before = std::mem::replace(&mut live.channels, states);
            for state in &mut live.channels {
                if let Some(known) = before.iter().find(|known| known.name == state.name) {
                    *state = known.clone();
                }
            }
        });
        for (_, courier) in self.channels.values() {
            courier
                .desk
                .put(|wanted| wanted.pauses.clone_from(&self.pauses));
        }
        for channel in channels {
            if !self.channels.contains_key(&channel.name) {
                let courier = self.start(channel);
                self.channels
                    .insert(channel.name.clone(), (channel.clone(), courier));
            }
        }
    }

    fn start(&self, channel: &Channel) -> Courier {
        let desk = Arc::new(Desk::default());
        desk.put(|wanted| {
            wanted.alerts.clone_from(&self.alerts);
            wanted.pauses.clone_from(&self.pauses);
        });
        let round = Round {
            channel: channel.clone(),
            file: self.folder.join(file_of(&channel.name)),
            clock: self.clock,
            archive: self.archive.clone(),
            shared: self.shared.clone(),
            said: BTreeMap::new(),
            broken_since: None,
        };
        let its = desk.clone();
        let thread = std::thread::Builder::new()
            .name("channel".to_owned())
            .spawn(move || round.run(&its));
        if let Err(error) = &thread {
            let why = format!("no thread for it: {error}");
            show(&self.shared, &channel.name, |state| {
                state.broken = Some(why.into());
            });
        }
        Courier {
            desk,
            thread: thread.ok(),
        }
    }

    /// An alert is new or changed. One that never fired is nobody's concern.
    pub(super) fn put(&mut self, alert: &Alert) {
        if alert.fired.is_none() {
            return;
        }
        for (_, courier) in self.channels.values() {
            courier.desk.put(|wanted| {
                wanted.alerts.insert(alert.id, alert.clone());
            });
        }
        if alert.state == AlertState::Resolved {
            self.alerts.remove(&alert.id);
        } else {
            self.alerts.insert(alert.id, alert.clone());
        }
    }

    /// Silences are others than before: what they muted may be due now.
    pub(super) fn wake(&self) {
        for (_, courier) in self.channels.values() {
            courier.desk.put(|_| {});
        }
    }

    /// Ends all channels; what they did not send is sent after the next start.
    pub(super) fn end(&mut self) {
        for (_, courier) in self.channels.values() {
            courier.end();
        }
        for (_, courier) in self.channels.values_mut() {
            if let Some(thread) = courier.thread.take() {
                drop(thread.join());
            }
        }
    }
}

impl Courier {
    fn end(&self) {
        self.desk.put(|wanted| wanted.ended = true);
    }
}

impl Desk {
    fn put(&self, change: impl FnOnce(&mut Wanted)) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut wanted);
        wanted.woken = true;
        self.changed.notify_all();
    }

    /// Waits until something changes, at most so long; the alerts and when they are muted, or `None` at the end.
    fn wait(&self, most: Duration) -> Option<(BTreeMap<AlertId, Alert>, Pauses)> {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = self
            .changed
            .wait_timeout_while(wanted, most, |wanted| !wanted.woken);
        let mut wanted = woken.unwrap_or_else(PoisonError::into_inner).0;
        wanted.woken = false;
        (!wanted.ended).then(|| (wanted.alerts.clone(), wanted.pauses.clone()))
    }

    fn forget(&self, alert: &Alert) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.alerts.get(&alert.id) == Some(alert) {
            wanted.alerts.remove(&alert.id);
        }
    }
}

/// The file of what a channel was told; names are free text.
fn file_of(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let safe: String = name
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .take(60)
        .collect();
    // Names that become alike stay apart by their hash.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("channel-{safe}-{hash:016x}.json")
}

fn show(shared: &Shared, name: &PlainText, change: impl FnOnce(&mut ChannelState)) {
    shared.live().update(|live| {
        if let Some(state) = live.channels.iter_mut().find(|state| state.name == *name) {
            change(state);
        }
    });
}

/// What is to be sent now. Nothing new is sent of a muted alert. Alertmanager still gets a firing one as it was sent
/// before, because it takes an alert that is no longer repeated for resolved.
fn due(
    kind: &ChannelKind,
    alerts: &BTreeMap<AlertId, Alert>,
    said: &BTreeMap<AlertId, Said>,
    is_muted: impl Fn(&Alert) -> bool,
) -> Vec<Alert> {
    let again = *kind == ChannelKind::Alertmanager;
    let one = |alert: &Alert| {
        let fires = alert.state != AlertState::Resolved;
        let said = said.get(&alert.id);
        if is_muted(alert) {
            let known = said.filter(|said| again && fires && said.state == AlertState::Firing)?;
            return Some(Alert {
                kind: known.kind,
                ..alert.clone()
            });
        }
        let is_due = match said {
            Some(said) => !said.is_of(alert, kind) || (again && fires),
            // Of what was over before anything was said there is nothing to say.
            None => fires,
        };
        is_due.then(|| alert.clone())
    };
    alerts.values().filter_map(one).collect()
}

/// The rounds of a channel's thread.
struct Round {
    channel: Channel,
    file: PathBuf,
    clock: HubClock,
    archive: Arc<Archive>,
    shared: Arc<Shared>,
    said: BTreeMap<AlertId, Said>,
    broken_since: Option<UnixMillis>,
}

impl Round {
    fn run(mut self, desk: &Desk) {
        self.said = std::fs::read(&self.file)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let (mut wait, mut retry) = (AGAIN, RETRY);
        while let Some((alerts, pauses)) = desk.wait(wait) {
            let now = self.clock.now();
            let silences: Vec<Silence> = self.archive.silences(now).unwrap_or_default();
            if self.round(desk, &alerts, &silences, &pauses, now) {
                let end = mute::next_end(&silences, &pauses, now);
                let left = end.map(|end| Duration::from_millis(end.since(self.clock.now())));
                (wait, retry) = (left.map_or(AGAIN, |left| left.min(AGAIN)), RETRY);
            } else {
                wait = retry;
                retry = (retry * 2).min(RETRY_AT_MOST);
            }
        }
    }

    /// Sends what is to be sent now; whether that worked.
    fn round(
        &mut self,
        desk: &Desk,
        alerts: &BTreeMap<AlertId, Alert>,
        silences: &[Silence],
        pauses: &Pauses,
        now: UnixMillis,
    ) -> bool {
        let due = due(&self.channel.kind, alerts, &self.said, |alert| {
            muted(alert, silences, pauses, now)
        });
        let result = self.send(now, &due);
        for alert in alerts.values() {
            let over = alert.state == AlertState::Resolved;
            let known = self.said.get(&alert.id);
            if over && known.is_none_or(|said| said.is_of(alert, &self.channel.kind)) {
                desk.forget(alert);
            }
        }
        let waiting = match &result {
            Ok(()) => 0,
            Err(_) => u32::try_from(due.len()).unwrap_or(u32::MAX),
        };
        self.tell(now, waiting, result.as_ref().err());
        result.is_ok()
    }

    fn send(&mut self, now: UnixMillis, due: &[Alert]) -> Result<(), String> {
        if due.is_empty() {
            return Ok(());
        }
        match &self.channel.kind {
            ChannelKind::Alertmanager => {
                let before = |alert: &Alert| self.said.get(&alert.id).map(|said| said.kind);
                let body = body::alertmanager(due, before, now);
                let url = format!("{}/api/v2/alerts", self.channel.url.trim_end_matches('/'));
                http::post(&url, &[], &body)?;
                self.remember(due, now)
            }
            ChannelKind::Webhook | ChannelKind::Mail(_) => due.iter().try_for_each(|alert| {
                self.send_one(now, alert)?;
                self.remember(std::slice::from_ref(alert), now)
            }),
        }
    }

    /// Sends what the channel gets for each alert.
    fn send_one(&self, now: UnixMillis, alert: &Alert) -> Result<(), String> {
        let secret = self.channel.secret_file.as_deref();
        if let ChannelKind::Mail(mail) = &self.channel.kind {
            return mail::send(mail, secret, alert);
        }
        let body = body::webhook(alert);
        let signature = secret.map(|file| http::signature(file, now, &body));
        let headers = signature.transpose()?.unwrap_or_default();
        http::post(&self.channel.url, &headers, &body)
    }

    fn remember(&mut self, told: &[Alert], now: UnixMillis) -> Result<(), String> {
        let before = self.said.clone();
        for alert in told {
            self.said.insert(alert.id, Said::of(alert, now));
        }
        self.said.retain(|_, said| {
            said.state != AlertState::Resolved || now.since(said.at) < FORGET_MILLIS
        });
        let same = |(id, said): (&AlertId, &Said)| {
            before.get(id).is_some_and(|known| {
                Said {
                    at: said.at,
                    ..known.clone()
                } == *said
            })
        };
        if before.len() == self.said.len() && self.said.iter().all(same) {
            return Ok(());
        }
        let bytes = serde_json::to_vec(&self.said).map_err(|error| error.to_string())?;
        replace(&self.file, &bytes)
            .map_err(|error| format!("cannot write {}: {error}", self.file.display()))
    }

    fn tell(&mut self, now: UnixMillis, waiting: u32, why: Option<&String>) {
        self.broken_since = why.map(|_| self.broken_since.unwrap_or(now));
        let since = self.broken_since;
        show(&self.shared, &self.channel.name, |state| {
            state.broken = why.map(|why| why.as_str().into());
            state.broken_since = since;
            state.waiting = waiting;
        });
    }
}
