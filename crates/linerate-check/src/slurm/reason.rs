//! The reason that a drained node shows: `LR:mount/home no answer within 8 s`.
//!
//! `sinfo -R` and `sinfo -lN` show 20 columns of it, so those name the check.

use linerate_model::check::Outcome;

/// With what every reason of ours begins.
pub const PREFIX: &str = "LR:";
/// Letters of a check's name behind it.
const TAG: usize = 16;
/// Bytes of a whole reason.
const MOST: usize = 160;

/// A reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// What is given to the controller.
    pub text: String,
    /// The check that it names, as [`tag`] has it.
    pub tag: String,
}

impl Reason {
    /// Of a check that failed, with what was found in words.
    pub fn of(outcome: &Outcome, words: &str) -> Self {
        let tag = tag(&outcome.check);
        // Only what a shell, a table of columns and an e-mail leave alone.
        let plain = |c: char| c.is_ascii_alphanumeric() || " :;,./%+-_()".contains(c);
        let words: String = words
            .chars()
            .map(|c| if plain(c) { c } else { ' ' })
            .collect();
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut text = format!("{PREFIX}{tag} {}", words.join(" "));
        text.truncate(MOST);
        text.truncate(text.trim_end().len());
        Self { text, tag }
    }
}

/// What stands for a check in reasons: its name without blanks and odd characters, at most 16 letters.
pub fn tag(check: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || "/._-".contains(*c);
    check.chars().filter(plain).take(TAG).collect()
}

/// Whether a node's reason is one of ours about this check.
pub fn same_check(reason: Option<&str>, tag: &str) -> bool {
    let ours = reason.and_then(|reason| reason.strip_prefix(PREFIX));
    ours.and_then(|rest| rest.split_whitespace().next()) == Some(tag)
}

#[cfg(test)]
mod tests {
    use linerate_model::check::{CheckKind, State};
    use linerate_model::units::Nanos;

    use super::*;

    #[test]
    fn a_long_reason_with_odd_characters_fits_and_names_its_check_first() {
        let outcome = Outcome {
            check: "mount /home/very/long/path".into(),
            kind: CheckKind::Mount,
            state: State::Fail,
            items: vec![],
            took: Nanos(0),
            limit: Nanos(0),
        };
        let words = "no \"answer\"\nwithin | 8 s — é ".repeat(40);
        let reason = Reason::of(&outcome, &words);
        assert!(
            reason
                .text
                .starts_with("LR:mount/home/very/ no answer within 8 s"),
            "{}",
            reason.text
        );
        assert!(reason.text.len() <= MOST && reason.text.is_ascii());
        assert!(same_check(Some(&reason.text), &reason.tag));
        assert!(!same_check(
            Some("LR:mount/home/very/longer x"),
            &reason.tag
        ));
        assert!(!same_check(Some("mount/home/very/ x"), &reason.tag));
        assert!(!same_check(None, &reason.tag));
    }
}
