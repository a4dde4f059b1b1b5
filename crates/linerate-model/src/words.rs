//! Parts of a sentence that stand there only sometimes.

/// A text where a condition holds; nothing else.
pub const fn when(condition: bool, text: &str) -> &str {
    if condition { text } else { "" }
}

/// A value in words; nothing where there is none.
pub fn with<T>(value: Option<T>, words: impl FnOnce(T) -> String) -> String {
    value.map(words).unwrap_or_default()
}
