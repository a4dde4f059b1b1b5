//! Lines, labels and wrapping.

use crate::words;
use linerate_model::record::Role;

/// The widest line of text, in characters.
const WIDTH: usize = 100;
/// Where the text after a label begins.
pub(super) const INDENT: usize = 12;

pub(crate) struct Page {
    text: String,
    width: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self::of_width(WIDTH)
    }
}

impl Page {
    /// A page whose text is wrapped at so many characters.
    pub(crate) const fn of_width(width: usize) -> Self {
        Self {
            text: String::new(),
            width,
        }
    }

    /// A line as it stands.
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// An empty line, but never two.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// A label and its text, wrapped between words.
    pub(crate) fn entry(&mut self, label: &str, text: &str) {
        self.wrapped(&format!("{label:<INDENT$}"), text);
    }

    /// Text behind `head`, wrapped with as much indentation.
    pub(crate) fn wrapped(&mut self, head: &str, text: &str) {
        self.headed(head, head.chars().count(), text);
    }

    /// The same behind a head that takes `indent` columns: sequences that set its colour take none.
    pub(crate) fn headed(&mut self, head: &str, indent: usize, text: &str) {
        let mut head = head.to_owned();
        for line in lines(text, self.width.saturating_sub(indent)) {
            self.line(&format!("{head}{line}"));
            head = " ".repeat(indent);
        }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// A text in lines of at most `width` characters, broken between words; a longer word has a line of its own.
pub(crate) fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        match lines.last_mut() {
            Some(line) if used + 1 + length <= width => {
                line.push(' ');
                line.push_str(word);
                used += 1 + length;
            }
            _ => {
                lines.push(word.to_owned());
                used = length;
            }
        }
    }
    lines
}

/// `client`, `server`.
pub(crate) fn role(role: Role) -> &'static str {
    match role {
        Role::Client => "client",
        Role::Server => "server",
    }
}

/// `the client`, `the server`.
pub(crate) fn the(role: Role) -> &'static str {
    match role {
        Role::Client => "the client",
        Role::Server => "the server",
    }
}

/// With a large first letter.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    words::with(chars.next(), |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_wraps_under_itself() {
        let mut page = Page::default();
        page.entry("Label", &"word ".repeat(40));
        let text = page.finish();
        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
        assert!(
            text.lines()
                .nth(1)
                .is_some_and(|line| line.starts_with("            word")),
            "{text}"
        );
    }
}
