//! Sets of host names: `node[01-16]`, `a,b`. A small part of what `linerate nodes` understands.

use super::types::MOST_HOSTS;

/// The names of a set, in its order.
pub(super) fn expand(text: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for part in parts(text)? {
        expand_one(part.trim(), &mut names)?;
    }
    for (at, name) in names.iter().enumerate() {
        if !is_name(name) {
            return Err(format!(
                "'{name}' is not a name: up to 63 letters, digits, dots, dashes and underscores, a letter or digit first"
            ));
        }
        if names[..at].contains(name) {
            return Err(format!("{name} is named twice"));
        }
    }
    Ok(names)
}

/// Whether this can be the name of a host or a switch.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() <= 63
        && name.chars().all(fits)
}

/// What stands between commas outside of brackets.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' | ']' if inside == (c == '[') => {
                return Err("brackets do not match: a range is written [01-16]".to_owned());
            }
            '[' | ']' => inside = !inside,
            ',' if !inside => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err("brackets do not match: a range is written [01-16]".to_owned());
    }
    parts.push(&text[start..]);
    Ok(parts)
}

fn expand_one(part: &str, names: &mut Vec<String>) -> Result<(), String> {
    let Some((prefix, rest)) = part.split_once('[') else {
        names.push(part.to_owned());
        return at_most(names);
    };
    let (ranges, suffix) = rest.split_once(']').unwrap_or((rest, ""));
    if suffix.contains('[') {
        return Err("only one range in brackets to a name is understood here".to_owned());
    }
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.then(|| text.parse::<u32>().ok()).flatten();
            number.ok_or_else(|| format!("'{range}' is not a range such as 01-16"))
        };
        let (from, to) = (number(first)?, number(last)?);
        if from > to {
            return Err(format!("'{range}' begins above its end"));
        }
        for at in from..=to {
            names.push(format!("{prefix}{at:0width$}{suffix}", width = first.len()));
            at_most(names)?;
        }
    }
    Ok(())
}

fn at_most(names: &[String]) -> Result<(), String> {
    if names.len() > MOST_HOSTS {
        return Err(format!("a star has at most {MOST_HOSTS} hosts"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> String {
        expand(text).unwrap().join(" ")
    }

    #[test]
    fn sets_are_expanded() {
        assert_eq!(expanded("node[08-10]"), "node08 node09 node10");
        assert_eq!(expanded("a, b-[1,3-4].x"), "a b-1.x b-3.x b-4.x");
        assert_eq!(expanded("n[9-11]"), "n9 n10 n11");
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for (text, why) in [
            ("node[01-16", "brackets"),
            ("node]1[", "brackets"),
            ("node[1[2]]", "brackets"),
            ("node[3-1]", "begins above"),
            ("node[a-b]", "not a range"),
            ("node[-3]", "not a range"),
            ("node[1-2][1-2]", "only one range"),
            ("node[1-4000000000]", "at most 60"),
            ("a,,b", "not a name"),
            ("a b", "not a name"),
            ("-a", "not a name"),
            ("a,a", "twice"),
            ("", "not a name"),
        ] {
            let said = expand(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
