//! Where a host's settings are read and written: one trait, so that the steps of a plan can be taken in a running
//! kernel, in files below a folder, and in memory.

use linerate_model::tuning::Object;
use serde::{Deserialize, Serialize};

/// Reads and writes single settings. Every call is one attempt; nothing is tried again.
pub trait Settings {
    /// The value now, in the words of a profile: what [`Settings::write`] would have to be given.
    ///
    /// # Errors
    /// Where it cannot be read: no such object, no right, no driver's answer.
    fn read(&mut self, object: &Object) -> Result<String, SettingError>;

    /// All that is needed to have it again exactly as it is now, also where the words of a profile say less: the
    /// options of a queueing discipline, the CPUs of each interrupt.
    ///
    /// # Errors
    /// As of [`Settings::read`]. What cannot be saved must not be changed.
    fn save(&mut self, object: &Object) -> Result<Saved, SettingError>;

    /// Gives it another value. That the value holds is not asked here: read it back.
    ///
    /// # Errors
    /// Where it is refused.
    fn write(&mut self, object: &Object, value: &str) -> Result<(), SettingError>;

    /// Makes it again what was saved.
    ///
    /// # Errors
    /// Where it is refused.
    fn restore(&mut self, object: &Object, saved: &Saved) -> Result<(), SettingError>;
}

/// A setting as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// In the words of a profile.
    pub value: String,
    /// What the words do not say, as the one that saved it understands it; empty where the words say all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// Why a setting was neither read nor written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {doing} {object}{}: {reason}", .value.as_ref().map(|value| format!(" = {value}")).unwrap_or_default())]
pub struct SettingError {
    /// What was attempted: read, set, restore.
    pub doing: &'static str,
    /// On what.
    pub object: Object,
    /// The value that was to be set.
    pub value: Option<String>,
    /// Why it failed, and what to do where that is known.
    pub reason: String,
}

impl SettingError {
    /// For `map_err` of a reason.
    pub(crate) fn of(
        doing: &'static str,
        object: &Object,
        value: Option<&str>,
    ) -> impl FnOnce(String) -> Self {
        let (object, value) = (object.clone(), value.map(str::to_owned));
        move |reason| Self {
            doing,
            object,
            value,
            reason,
        }
    }
}
