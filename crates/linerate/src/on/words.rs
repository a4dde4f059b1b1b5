//! The command that hosts run: what was typed here, without the options that say where, with the files of this host that
//! it names.

use std::ffi::OsString;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use linerate_wire::agent::Word;

use super::arguments::NAMES;
use crate::action::Failure;
use crate::input;

/// Arguments that name files of this host.
const FILES: [&str; 3] = ["profiles", "from", "since"];
/// Whether the output is a document; each command knows it by this name.
const JSON: &str = "json";

/// A command to be run elsewhere.
#[derive(Debug, Default)]
pub(super) struct Typed {
    /// Its names, such as `host audit`.
    pub(super) names: Vec<String>,
    /// Its options.
    options: Vec<Word>,
    positionals: Vec<Word>,
    last: Vec<Word>,
    /// Files that go along.
    pub(super) files: Vec<(String, Vec<u8>)>,
    /// Whether a document is wanted.
    pub(super) json: bool,
}

impl Typed {
    /// What was typed, by the definition of the command line.
    ///
    /// # Errors
    /// Where a file cannot be read, or something is no text.
    pub(super) fn of(mut command: &Command, mut matches: &ArgMatches) -> Result<Self, Failure> {
        let mut typed = Self::default();
        while let Some((name, inner)) = matches.subcommand() {
            let Some(found) = command.find_subcommand(name) else {
                break;
            };
            typed.names.push(name.to_owned());
            (command, matches) = (found, inner);
        }
        for argument in command.get_arguments() {
            typed.add(argument, matches)?;
        }
        Ok(typed)
    }

    /// The words of the command; with `json`, its output is a document.
    pub(super) fn words(&self, json: bool) -> Vec<Word> {
        let mut words: Vec<Word> = self.names.iter().cloned().map(Word::Text).collect();
        words.extend(self.options.iter().cloned());
        if json {
            words.push("--json".into());
        }
        if !self.positionals.is_empty() || !self.last.is_empty() {
            words.extend(self.positionals.iter().cloned());
        }
        if !self.last.is_empty() {
            words.push("--".into());
            words.extend(self.last.iter().cloned());
        }
        words
    }

    fn add(&mut self, argument: &Arg, matches: &ArgMatches) -> Result<(), Failure> {
        let id = argument.get_id().as_str();
        let typed = matches!(
            matches.try_contains_id(id),
            Ok(true) if matches.value_source(id) == Some(ValueSource::CommandLine)
        );
        let elsewhere = argument
            .get_long()
            .is_some_and(|long| NAMES.contains(&long));
        if !typed || elsewhere {
            return Ok(());
        }
        if id == JSON {
            self.json = true;
            return Ok(());
        }
        let name = match (argument.get_long(), argument.get_short()) {
            (Some(long), _) => Some(format!("--{long}")),
            (None, Some(short)) => Some(format!("-{short}")),
            (None, None) => None,
        };
        if let (Some(name), ArgAction::SetTrue) = (&name, argument.get_action()) {
            self.options.push(name.as_str().into());
            return Ok(());
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            let value = self.value(id, value)?;
            match &name {
                Some(name) => self.options.extend([name.as_str().into(), value]),
                None if argument.is_last_set() => self.last.push(value),
                None => self.positionals.push(value),
            }
        }
        Ok(())
    }

    /// A value, or the file that it names.
    fn value(&mut self, id: &str, value: &std::ffi::OsStr) -> Result<Word, Failure> {
        if FILES.contains(&id) {
            let path = Path::new(value);
            let name = path.file_name().map_or_else(OsString::new, OsString::from);
            let bytes = input::read(path, linerate_wire::agent::MOST_BODY)?;
            self.files
                .push((name.to_string_lossy().into_owned(), bytes));
            return Ok(Word::In(self.files.len() - 1));
        }
        value.to_str().map(Word::from).ok_or_else(|| {
            Failure::Usage(format!("{} is not UTF-8 text", Path::new(value).display()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> Typed {
        let words = line.split_whitespace().map(OsString::from);
        let (command, matches) = crate::arguments::matches(words.collect()).unwrap();
        Typed::of(&command, &matches).unwrap()
    }

    fn texts(words: &[Word]) -> String {
        let texts = words.iter().map(|word| match word {
            Word::Text(text) => text.clone(),
            Word::In(at) => format!("IN{at}"),
            Word::Out(at) => format!("OUT{at}"),
        });
        texts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_command_is_what_was_typed_without_where_it_runs() {
        let line = "linerate host audit --on n[1-2] --rate 10G --via x{host} --role=guest --fan-out 3 --all --become";
        let typed = typed(line);
        assert!(!typed.json);
        let words = texts(&typed.words(false));
        assert_eq!(words, "host audit --rate 10G --role guest --all");
        assert_eq!(texts(&typed.words(true)), format!("{words} --json"));
    }

    #[test]
    fn files_of_this_host_go_along() {
        let file = tempfile::Builder::new().suffix(".conf").tempfile().unwrap();
        std::fs::write(file.path(), "a = b\n").unwrap();
        let path = file.path().display();
        let own = file.path().file_name().unwrap();
        let plan = typed(&format!(
            "linerate tune plan --on n1 {path} --json --from {path}"
        ));
        assert!(plan.json);
        let words = texts(&plan.words(false));
        assert!(words.starts_with("tune plan --from IN"), "{words}");
        assert_eq!(plan.files.len(), 2);
        let whole = |(name, bytes): &(String, Vec<u8>)| {
            Some(name.as_str()) == own.to_str() && bytes == b"a = b\n"
        };
        assert!(plan.files.iter().all(whole));
        // A folder is the host's.
        let apply = typed(&format!(
            "linerate tune apply --on n1 {path} --state /x --prove h -- -P 4"
        ));
        let words = texts(&apply.words(false));
        assert!(words.contains("--state /x"), "{words}");
        assert!(words.ends_with(" IN0 -- -P 4"), "{words}");
    }

    #[test]
    fn an_option_with_a_letter_alone_keeps_it() {
        let words = texts(&typed("linerate expect --on n1 --rate 1G --rtt 1ms -6").words(false));
        assert_eq!(words, "expect --rate 1G --rtt 1ms -6");
    }
}
