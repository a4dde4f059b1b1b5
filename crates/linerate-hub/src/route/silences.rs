//! Silences: their list, a new one, and an end before its time.

use axum::Extension;
use axum::extract::rejection::{FormRejection, JsonRejection};
use axum::extract::{Form, Json, Path, State};
use axum::response::Response;
use linerate_model::alert::{Matcher, MatcherOf, Silence};
use linerate_model::plain_text::PlainText;
use linerate_model::watch::UnixMillis;
use serde::{Deserialize, Serialize};

use super::Hub;
use super::answer::{JSON, Refusal, data, form, json_of};
use crate::access::{Caller, random};
use crate::moment::DAY;
use crate::shared::Shared;

/// The list of silences on the page of alerts.
const LIST: &str = "/alerts#silences";
/// A silence ends within this time, ms.
const LONGEST_MILLIS: u64 = 366 * DAY;
/// Silences in force at most.
const MOST: usize = 1_000;
/// Conditions of a silence at most.
const MOST_MATCHERS: usize = 16;
/// A pattern has at most so many bytes, a name and a reason as well.
const LONGEST_PATTERN: usize = 256;
pub(super) const LONGEST_WORDS: usize = 1_000;

#[derive(Serialize)]
struct Silences {
    now: UnixMillis,
    silences: Vec<Silence>,
}

/// What a program sends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    matchers: Vec<Matcher>,
    until: UnixMillis,
    why: PlainText,
    /// Without a login alone: with one it is the user.
    #[serde(default)]
    by: PlainText,
}

/// What the form of the page sends; an empty pattern is no condition.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Filled {
    alert: PlainText,
    task: PlainText,
    host: PlainText,
    from: PlainText,
    to: PlainText,
    kind: PlainText,
    finding: PlainText,
    minutes: u64,
    why: PlainText,
    by: PlainText,
}

impl Filled {
    fn wanted(self, now: UnixMillis) -> Wanted {
        use MatcherOf::{Alert, Finding, From, Host, Kind, Task, To};
        let all = [
            (Alert, self.alert),
            (Task, self.task),
            (Host, self.host),
            (From, self.from),
            (To, self.to),
            (Kind, self.kind),
            (Finding, self.finding),
        ];
        let given = all.into_iter().filter(|(_, pattern)| !pattern.is_empty());
        Wanted {
            matchers: given.map(|(of, pattern)| Matcher { of, pattern }).collect(),
            until: now.plus_millis(self.minutes.saturating_mul(60_000)),
            why: self.why,
            by: self.by,
        }
    }
}

impl Wanted {
    /// The silence, which begins now.
    fn silence(self, now: UnixMillis, caller: &Caller) -> Result<Silence, Refusal> {
        let by = caller.name.clone().unwrap_or(self.by);
        let refused = |why: &str| Err(Refusal::Query(why.to_owned()));
        let long = |matcher: &Matcher| matcher.pattern.len() > LONGEST_PATTERN;
        if self.matchers.is_empty() {
            return refused(
                "The silence has no condition: say at least one of alert, task, host, from, to, kind and finding.",
            );
        }
        if self.matchers.len() > MOST_MATCHERS || self.matchers.iter().any(long) {
            return refused("A silence has at most 16 conditions of at most 256 bytes each.");
        }
        if self.until <= now || self.until > now.plus_millis(LONGEST_MILLIS) {
            return refused("A silence ends later than now and within 366 days.");
        }
        if self.why.trim().is_empty() || by.trim().is_empty() {
            return refused("Say who makes the silence and why.");
        }
        if self.why.len() > LONGEST_WORDS || by.len() > LONGEST_WORDS {
            return refused("Who and why have at most 1,000 bytes each.");
        }
        let random = random().map_err(Refusal::Query)?;
        Ok(Silence {
            // Programs that read JSON numbers as floating point have 53 bits.
            id: u64::from_be_bytes(random) >> 12,
            matchers: self.matchers,
            since: now,
            until: self.until,
            by,
            why: self.why,
        })
    }
}

fn put(shared: &Shared, silence: &Silence) -> Result<(), Refusal> {
    shared.store().put_silence(silence)?;
    shared.live().wake();
    shared.driver().silences_changed();
    Ok(())
}

/// Keeps a new silence.
fn begun(hub: &Hub, shared: &Shared, caller: &Caller, wanted: Wanted) -> Result<Silence, Refusal> {
    let now = shared.now();
    let silence = wanted.silence(now, caller)?;
    if shared.store().silences(now)?.len() >= MOST {
        return Err(Refusal::Query(
            "1,000 silences are in force, which is the most; end one first.".to_owned(),
        ));
    }
    put(shared, &silence)?;
    let (id, until) = (silence.id, crate::moment::minute(silence.until));
    hub.access.note(
        caller,
        &format!("made the silence {id} until {until}: {}", silence.why),
    );
    Ok(silence)
}

/// Ends a silence before its time.
fn ended(hub: &Hub, shared: &Shared, caller: &Caller, id: &str) -> Result<Silence, Refusal> {
    let now = shared.now();
    let silences = shared.store().silences(now)?;
    let known = silences
        .into_iter()
        .find(|silence| silence.id.to_string() == id);
    let mut silence = known.ok_or_else(|| {
        Refusal::Absent(format!("No silence {} is in force.", PlainText::from(id)))
    })?;
    silence.until = now;
    put(shared, &silence)?;
    hub.access.note(caller, &format!("ended the silence {id}"));
    Ok(silence)
}

pub(super) async fn list(State(hub): State<Hub>) -> Response {
    data(hub, JSON, |shared| {
        let now = shared.now();
        let silences = shared.store().silences(now)?;
        json_of(&Silences { now, silences })
    })
    .await
}

pub(super) async fn make(
    State(hub): State<Hub>,
    Extension(caller): Extension<Caller>,
    wanted: Result<Json<Wanted>, JsonRejection>,
) -> Response {
    let at = hub.clone();
    data(hub, JSON, move |shared| {
        let Json(wanted) = wanted.map_err(|error| Refusal::Query(error.body_text()))?;
        json_of(&begun(&at, shared, &caller, wanted)?)
    })
    .await
}

pub(super) async fn end(
    State(hub): State<Hub>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let at = hub.clone();
    data(hub, JSON, move |shared| {
        json_of(&ended(&at, shared, &caller, &id)?)
    })
    .await
}

pub(super) async fn make_by_form(
    State(hub): State<Hub>,
    Extension(caller): Extension<Caller>,
    filled: Result<Form<Filled>, FormRejection>,
) -> Response {
    let at = hub.clone();
    form(hub, move |shared| {
        let Form(filled) = filled.map_err(|error| Refusal::Query(error.body_text()))?;
        begun(&at, shared, &caller, filled.wanted(shared.now()))?;
        Ok(LIST.to_owned())
    })
    .await
}

pub(super) async fn end_by_form(
    State(hub): State<Hub>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let at = hub.clone();
    form(hub, move |shared| {
        ended(&at, shared, &caller, &id)?;
        Ok(LIST.to_owned())
    })
    .await
}
