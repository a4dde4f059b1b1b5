//! How a report is set for the place where it is read.

/// Columns of a chart where nobody's screen is known: a file or a pipe.
const PLAIN_COLUMNS: usize = 80;
/// The widest line of text: longer ones are hard to read.
const TEXT_COLUMNS: usize = 100;
/// The fewest columns that a report is set in.
const LEAST_COLUMNS: usize = 60;
/// A chart gets no wider: more columns show no more.
const MOST_COLUMNS: usize = 200;

/// How a report is set: a fact of the place where it is read, found out by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    columns: usize,
    text_columns: usize,
    charset: Charset,
    colour: bool,
}

/// The characters that a place can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// UTF-8: blocks and arrows.
    Unicode,
    /// Letters, digits and signs of ASCII alone.
    Ascii,
}

impl Default for Style {
    fn default() -> Self {
        Self::plain()
    }
}

impl Style {
    /// For a file or a pipe: charts of 80 columns, text of 100, UTF-8, no colour, whatever the terminal; so it is
    /// the same each time.
    pub const fn plain() -> Self {
        Self {
            columns: PLAIN_COLUMNS,
            text_columns: TEXT_COLUMNS,
            charset: Charset::Unicode,
            colour: false,
        }
    }

    /// For a terminal of so many columns.
    #[must_use]
    pub fn of_columns(self, columns: usize) -> Self {
        let columns = columns.clamp(LEAST_COLUMNS, MOST_COLUMNS);
        Self {
            columns,
            text_columns: columns.min(TEXT_COLUMNS),
            ..self
        }
    }

    /// With other characters.
    #[must_use]
    pub const fn with_charset(self, charset: Charset) -> Self {
        Self { charset, ..self }
    }

    /// With or without colours (ECMA-48 escape sequences). They repeat what letters say and add nothing.
    #[must_use]
    pub const fn with_colour(self, colour: bool) -> Self {
        Self { colour, ..self }
    }

    /// The characters that may be used.
    pub const fn charset(self) -> Charset {
        self.charset
    }

    /// Whether colours may be used.
    pub const fn has_colour(self) -> bool {
        self.colour
    }

    /// Columns that a chart may take.
    pub const fn columns(self) -> usize {
        self.columns
    }

    /// Columns that text may take.
    pub(crate) const fn text_columns(self) -> usize {
        self.text_columns
    }

    /// `unicode` where it can be shown, else `ascii`.
    pub(crate) const fn pick(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        match self.charset {
            Charset::Unicode => unicode,
            Charset::Ascii => ascii,
        }
    }

    /// Text in a colour of the usual sixteen, where colours are wanted.
    pub(crate) fn coloured(self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// The whole report in the characters that can be shown.
    pub(crate) fn settle(self, text: String) -> String {
        match self.charset {
            Charset::Unicode => text,
            Charset::Ascii => ascii(&text),
        }
    }
}

/// Text in ASCII: what the report itself uses is spelled, a stranger's letters become question marks.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii() => out.push(c),
            '→' => out.push_str("->"),
            '←' => out.push_str("<-"),
            '−' | '–' => out.push('-'),
            '≥' => out.push_str(">="),
            '≤' => out.push_str("<="),
            '±' => out.push_str("+-"),
            '×' => out.push('x'),
            '…' => out.push_str("..."),
            'µ' | 'μ' => out.push('u'),
            '·' => out.push('.'),
            '’' | '‘' => out.push('\''),
            _ => out.push('?'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_spells_what_it_can() {
        assert_eq!(ascii("a → b ≥ 3 µs − 1 … é"), "a -> b >= 3 us - 1 ... ?");
        let style = Style::plain().with_charset(Charset::Ascii);
        assert!(style.settle("← ±×·".to_owned()).is_ascii());
    }

    #[test]
    fn a_screen_of_any_width_gets_a_report() {
        assert_eq!(Style::plain().of_columns(0).columns(), LEAST_COLUMNS);
        assert_eq!(Style::plain().of_columns(100_000).columns(), MOST_COLUMNS);
    }

    #[test]
    fn without_colour_there_is_no_escape() {
        assert_eq!(Style::plain().coloured("31", "x"), "x");
    }
}
