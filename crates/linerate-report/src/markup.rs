//! HTML and SVG as text, in which nobody's string can become a tag.
//!
//! Names of tags and attributes are the program's own; text and values of attributes are escaped, and
//! characters that would move a reader's cursor or turn the direction of writing are replaced.

use std::fmt::Write as _;

use linerate_model::plain_text::acts_on_terminal;

/// An attribute: its name and its value.
pub(crate) type Attribute<'a> = (&'static str, &'a str);

/// A piece of a document.
#[derive(Debug, Default)]
pub(crate) struct Markup(String);

impl Markup {
    /// Opens a tag.
    pub(crate) fn open(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            let _ = write!(self.0, " {name}=\"");
            self.text(value);
            self.0.push('"');
        }
        self.0.push('>');
    }

    /// Closes it.
    pub(crate) fn close(&mut self, tag: &'static str) {
        let _ = write!(self.0, "</{tag}>");
    }

    /// A tag without content (SVG).
    pub(crate) fn leaf(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.open(tag, attributes);
        self.0.pop();
        self.0.push_str("/>");
    }

    /// A tag with text in it.
    pub(crate) fn element(&mut self, tag: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.open(tag, attributes);
        self.text(text);
        self.close(tag);
    }

    /// Text, escaped.
    pub(crate) fn text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' => self.0.push('\n'),
                c if is_unfit(c) => self.0.push('\u{fffd}'),
                c => self.0.push(c),
            }
        }
    }

    /// The program's own text as it is: a style, a script, a declaration.
    pub(crate) fn own(&mut self, text: &'static str) {
        self.0.push_str(text);
    }

    /// JSON inside a script: no `<` is left in it, so that it cannot end the script.
    pub(crate) fn json(&mut self, json: &str) {
        self.0.push_str(&json.replace('<', "\\u003c"));
    }

    /// Another piece.
    pub(crate) fn append(&mut self, piece: &Self) {
        self.0.push_str(&piece.0);
    }

    /// The whole text.
    pub(crate) fn finish(self) -> String {
        self.0
    }
}

/// Control characters, which XML forbids, marks that turn the direction of writing, and what is no character.
const fn is_unfit(c: char) -> bool {
    acts_on_terminal(c) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_string_becomes_a_tag() {
        let mut markup = Markup::default();
        markup.element(
            "p",
            &[("title", "\" onload='x' <&>")],
            "</p><script>\u{1b}[2J\u{202e}\u{0}",
        );
        assert_eq!(
            markup.finish(),
            "<p title=\"&quot; onload=&#39;x&#39; &lt;&amp;&gt;\">&lt;/p&gt;&lt;script&gt;\u{fffd}[2J\u{fffd}\u{fffd}</p>"
        );
    }

    #[test]
    fn json_cannot_end_its_script() {
        let mut markup = Markup::default();
        markup.json(r#"{"a":"</script><!--"}"#);
        assert!(!markup.finish().contains('<'));
    }
}
