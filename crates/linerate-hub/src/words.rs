//! The words of an alert, for those who are told of it elsewhere: the same as on the pages.

use linerate_model::alert::Alert;

use crate::view::alert::AlertView;

/// An alert in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertWords {
    /// What is broken, in a few words.
    pub title: String,
    /// Why, as far as tests say: sentences.
    pub why: Vec<String>,
    /// What to do: sentences, of which those in backquotes are commands.
    pub what_to_do: Vec<String>,
}

impl AlertWords {
    /// Of an alert.
    pub fn of(alert: &Alert) -> Self {
        let view = AlertView::of(alert, &[], alert.changed);
        Self {
            title: view.title,
            why: view.why,
            what_to_do: view.what_to_do,
        }
    }
}
