//! A fact of a host, or why it is not known.

use serde::{Deserialize, Serialize};

/// What is known of something, or why nothing is: an absent fact is never 0 or false.
///
/// In JSON a known fact is its value, an unknown one `{"unknown": "why"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact<T> {
    /// Nothing is known, for this reason.
    Unknown {
        /// Why, as part of a sentence: `the driver does not say`.
        unknown: String,
    },
    /// The value.
    Known(T),
}

impl<T> Default for Fact<T> {
    /// What an older writer did not know of.
    fn default() -> Self {
        Self::unknown("these facts do not contain it")
    }
}

impl<T> Fact<T> {
    /// Nothing is known, for this reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown {
            unknown: why.into(),
        }
    }

    /// The value, or this reason where there is none.
    pub fn of(value: Option<T>, why: &str) -> Self {
        value.map_or_else(|| Self::unknown(why), Self::Known)
    }

    /// The value, where it is known.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown { .. } => None,
        }
    }

    /// Why it is not known; empty where it is.
    pub fn why(&self) -> &str {
        match self {
            Self::Unknown { unknown } => unknown,
            Self::Known(_) => "",
        }
    }

    /// The value, or the reason as an error.
    pub fn ask(&self) -> Result<&T, String> {
        match self {
            Self::Known(value) => Ok(value),
            Self::Unknown { unknown } => Err(unknown.clone()),
        }
    }

    /// The fact that follows from this one.
    pub fn map<U>(&self, follow: impl FnOnce(&T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(follow(value)),
            Self::Unknown { unknown } => Fact::unknown(unknown.clone()),
        }
    }
}

impl<T> From<Result<T, String>> for Fact<T> {
    fn from(result: Result<T, String>) -> Self {
        match result {
            Ok(value) => Self::Known(value),
            Err(why) => Self::unknown(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_and_unknown_facts_survive_json() {
        let facts: Vec<Fact<Option<u32>>> = vec![
            Fact::Known(Some(7)),
            Fact::Known(None),
            Fact::unknown("no sysfs"),
        ];
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(text, r#"[7,null,{"unknown":"no sysfs"}]"#);
        assert_eq!(
            serde_json::from_str::<Vec<Fact<Option<u32>>>>(&text).unwrap(),
            facts
        );
    }

    #[test]
    fn an_unknown_fact_keeps_its_reason() {
        let fact: Fact<u32> = Fact::unknown("the driver does not say");
        assert_eq!(fact.map(|value| value + 1).why(), "the driver does not say");
        assert_eq!(fact.ask(), Err("the driver does not say".to_owned()));
        assert_eq!(Fact::of(Some(3), "").known(), Some(&3));
    }
}
