//! Values as words, and several of them as one text.

use linerate_model::host::CpuSet;

/// Why something failed, before it is said of what.
pub(super) type Outcome<T> = Result<T, String>;

pub(super) fn whole(value: &str) -> Outcome<u32> {
    value
        .parse()
        .map_err(|_| format!("'{value}' is not a whole number"))
}

pub(super) fn switch(value: &str) -> Outcome<bool> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("'{value}' is neither on nor off")),
    }
}

/// `a=1 b=2`; neither names nor values have blanks.
pub(super) fn pairs_text(pairs: impl IntoIterator<Item = (String, String)>) -> String {
    let words: Vec<String> = pairs
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    words.join(" ")
}

pub(super) fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(' ').filter_map(|word| word.rsplit_once('='))
}

pub(super) fn numbered(text: &str) -> Outcome<Vec<(u32, String)>> {
    pairs(text)
        .map(|(number, value)| Ok((whole(number)?, value.to_owned())))
        .collect()
}
pub(super) fn cpus_of(list: &str) -> Outcome<CpuSet> {
    match list.parse::<CpuSet>() {
        Ok(cpus) if !cpus.is_empty() => Ok(cpus),
        Ok(_) => Err("no CPU is named".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Sets of CPUs by a number, as they were saved.
pub(super) fn sets(detail: &str) -> Outcome<Vec<(u32, CpuSet)>> {
    let set = |text: &str| text.parse::<CpuSet>().map_err(|error| error.to_string());
    pairs(detail)
        .map(|(number, text)| Ok((whole(number)?, set(text)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_survive_as_text() {
        let text = pairs_text([
            ("a.b=c".to_owned(), "1".to_owned()),
            ("d".to_owned(), "on".to_owned()),
        ]);
        assert_eq!(
            pairs(&text).collect::<Vec<_>>(),
            [("a.b=c", "1"), ("d", "on")]
        );
        assert_eq!(pairs("").count(), 0);
        assert_eq!(numbered("0=x 7=y").unwrap()[1], (7, "y".to_owned()));
        assert!(numbered("a=x").is_err());
    }
}
