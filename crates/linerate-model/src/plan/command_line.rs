//! The arguments of `linerate test` as far as a file that holds some must understand them: which options they are, and
//! what value each has.

use super::options::{PlanOption, named};

/// Splits a text at blanks; quotation marks keep together what stands between them.
///
/// # Errors
/// A quotation mark that is not closed.
pub fn words(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quotation mark is not closed");
    }
    words.extend(word);
    Ok(words)
}

/// The options in these words and their values, each by the name under which it was given: `-uR -b40M` is `-u`,
/// `-R` and `-b` with 40M. A word that is not an option comes by itself, as does the value of an option that is not
/// kept in a plan.
pub fn options(words: &[String]) -> impl Iterator<Item = (String, Option<&str>)> {
    let mut words = words.iter().map(String::as_str);
    let mut letters = "";
    let with_value = |name: &str| named(name).is_some_and(PlanOption::has_value);
    std::iter::from_fn(move || {
        if letters.is_empty() {
            let word = words.next().filter(|word| *word != "--")?;
            if let Some(long) = word.strip_prefix("--") {
                let (name, attached) = match long.split_once('=') {
                    Some((name, value)) => (format!("--{name}"), Some(value)),
                    None => (word.to_owned(), None),
                };
                let value = match attached {
                    None if with_value(&name) => words.next(),
                    attached => attached,
                };
                return Some((name, value));
            }
            letters = word.strip_prefix('-').unwrap_or_default();
            if letters.is_empty() {
                return Some((word.to_owned(), None));
            }
        }
        let (letter, rest) = letters.split_at(letters.chars().next().map_or(0, char::len_utf8));
        let name = format!("-{letter}");
        if !with_value(&name) {
            letters = rest;
            return Some((name, None));
        }
        letters = "";
        let value = match rest.strip_prefix('=').unwrap_or(rest) {
            "" => words.next(),
            attached => Some(attached),
        };
        Some((name, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        options(&words)
            .map(|(name, value)| match value {
                Some(value) => format!("{name}={value}"),
                None => name,
            })
            .collect()
    }

    #[test]
    fn options_are_read_as_the_program_reads_them() {
        for (line, options) in [
            ("-uR -b 40M -t 2", "-u -R -b=40M -t=2"),
            ("-Rt5 -P=4", "-R -t=5 -P=4"),
            ("--time 5 --time=6 --bidir", "--time=5 --time=6 --bidir"),
            // What an option's value looks like does not matter.
            ("-T -R -u", "-T=-R -u"),
            ("--title --bidir x", "--title=--bidir x"),
            ("-p5000 --html page.html", "-p=5000 --html page.html"),
            ("-t", "-t"),
            ("a - -u -- -R", "a - -u"),
        ] {
            assert_eq!(read(line).join(" "), options, "{line}");
        }
    }
}
