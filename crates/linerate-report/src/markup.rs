//! HTML and SVG by `maud`, in which nobody's string can become a tag.
//!
//! `maud` escapes what a template is given. A document is [`finished`] once: characters that would move a reader's
//! cursor or turn the direction of writing are replaced.

use std::ops::Range;

use linerate_model::plain_text::acts_on_terminal;
use maud::{Markup, PreEscaped, html};

/// The whole text.
pub(crate) fn finished(document: Markup) -> String {
    let document = document.into_string();
    document.replace(|c| c != '\n' && is_unfit(c), "\u{fffd}")
}

/// JSON inside a script: no `<` is left in it, so that it cannot end the script.
pub(crate) fn json(json: &str) -> Markup {
    PreEscaped(json.replace('<', "\\u003c"))
}

/// A list of names, each with its text.
pub(crate) fn list(class: Option<&str>, entries: &[(impl AsRef<str>, impl AsRef<str>)]) -> Markup {
    html! {
        dl class=[class] {
            @for (name, text) in entries {
                dt { (name.as_ref()) }
                dd { (text.as_ref()) }
            }
        }
    }
}

/// A table that scrolls where it is wider than the page; the `numbers` among its columns hold figures.
pub(crate) fn table(columns: &[impl AsRef<str>], numbers: Range<usize>, rows: &Markup) -> Markup {
    html! {
        div class="wide" tabindex="0" {
            table {
                thead {
                    tr {
                        @for (at, column) in columns.iter().enumerate() {
                            th scope="col" class=[numbers.contains(&at).then_some("number")] { (column.as_ref()) }
                        }
                    }
                }
                tbody { (rows) }
            }
        }
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
        let title = "\" onload='x' <&>";
        let text = "</p><script>\u{1b}[2J\u{202e}\u{0}";
        assert_eq!(
            finished(html! { p title=(title) { (text) } }),
            "<p title=\"&quot; onload='x' &lt;&amp;&gt;\">&lt;/p&gt;&lt;script&gt;\u{fffd}[2J\u{fffd}\u{fffd}</p>"
        );
    }

    #[test]
    fn json_cannot_end_its_script() {
        let inside = json(r#"{"a":"</script><!--"}"#);
        assert!(!inside.into_string().contains('<'));
    }
}
