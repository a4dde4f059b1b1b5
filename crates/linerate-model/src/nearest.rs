//! What somebody who mistyped a word probably meant.

/// The candidate that fewest changes separate from `word`, where these are few for its length.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let few = (word.chars().count() / 3).max(2);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= few || candidate.starts_with(word))
        .min()
        .map(|(_, candidate)| candidate)
}

/// What to say of a word that is none of those known: the one that was probably meant, or all of them.
pub fn hint(typed: &str, known: &[&str]) -> String {
    nearest(typed, known.iter().copied()).map_or_else(
        || format!("known here: {}", known.join(", ")),
        |meant| format!("did you mean '{meant}'?"),
    )
}

/// Insertions, deletions and substitutions that make one of the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found() {
        let keys = ["rate", "rtt", "jitter", "queue", "policer", "reorder"];
        for (typed, meant) in [
            ("rtae", Some("rate")),
            ("Queue", Some("queue")),
            ("reordering", Some("reorder")),
            ("police", Some("policer")),
            ("bandwidth", None),
        ] {
            assert_eq!(nearest(typed, keys), meant, "{typed}");
        }
        assert_eq!(hint("rtae", &keys), "did you mean 'rate'?");
        assert_eq!(hint("bandwidth", &keys[..2]), "known here: rate, rtt");
    }
}
