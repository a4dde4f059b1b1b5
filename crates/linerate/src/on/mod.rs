//! `--on NODES`: a command that runs on other hosts, with their answers folded.

pub(crate) mod arguments;
mod gather;
mod password;
mod text;
mod words;

use linerate_fleet::FleetError;
use linerate_fleet::answers;
use linerate_report::host as report;
use linerate_tune::majority::Gathered;
use serde_json::{Value, json};

pub(crate) use arguments::{OnArguments, ReachArguments};

use crate::action::Failure;
use crate::printer::Printer;
use gather::{Answer, Gathering, Reply};
use words::Typed;

/// How answers are shown where no document is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As texts: equal ones once, of others the lines that differ.
    Text,
    /// As facts of hosts: those of most hosts, then who differs in what.
    Facts {
        /// Everything.
        all: bool,
    },
    /// As facts of hosts: only who differs in what.
    Differences {
        /// Everything.
        all: bool,
    },
}

/// Runs what was typed on hosts.
pub(crate) fn run(
    hosts: &[String],
    reach: &ReachArguments,
    kind: Kind,
    printer: &Printer,
) -> Result<(), Failure> {
    let (command, matches) = crate::arguments::matches(std::env::args_os().collect())
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let typed = Typed::of(&command, &matches)?;
    let words = match kind {
        Kind::Text => typed.words(typed.json),
        // The facts are compared here.
        Kind::Facts { .. } | Kind::Differences { .. } => vec!["host".into(), "--json".into()],
    };
    let gathering = Gathering::new(reach, words, typed.files, printer)?;
    let answers = gathering.run(hosts, reach.fan_out)?;
    match (kind, typed.json) {
        (Kind::Differences { all }, json) => differences(&answers, all, json, printer)?,
        (_, true) => documents(&answers, printer)?,
        (Kind::Facts { all }, false) => facts(&answers, all, printer)?,
        (Kind::Text, false) => printer.print(&text::folded(&answers))?,
    }
    if !typed.json {
        complain(&answers, printer);
    }
    verdict(&answers)
}

/// One document a host, one a line.
fn documents(answers: &[Answer], printer: &Printer) -> Result<(), Failure> {
    for answer in answers {
        printer.json(&document(answer).to_string())?;
    }
    Ok(())
}

fn document(answer: &Answer) -> Value {
    let host = &answer.host;
    match &answer.reply {
        Err(error) => json!({ "host": host, "error": error.trouble.to_string() }),
        Ok(reply) => {
            let (code, out) = (reply.code(), reply.out());
            match serde_json::from_str::<Value>(&out) {
                Ok(document) => json!({ "host": host, "code": code, "document": document }),
                Err(_) if out.trim().is_empty() && code != 0 => {
                    json!({ "host": host, "code": code, "error": reply.err().trim() })
                }
                Err(_) => json!({ "host": host, "code": code, "text": out }),
            }
        }
    }
}

/// Each host's facts against what most hosts have.
fn gathered(answers: &[Answer]) -> Option<Gathered> {
    let mut gathered: Option<Gathered> = None;
    for answer in answers {
        let Some(facts) = answer.facts() else {
            continue;
        };
        match &mut gathered {
            Some(gathered) => gathered.add(answer.host.clone(), &facts),
            None => gathered = Some(Gathered::new(answer.host.clone(), facts)),
        }
    }
    gathered
}

fn differences(
    answers: &[Answer],
    all: bool,
    json: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    let Some(majority) = gathered(answers).map(|gathered| gathered.judge()) else {
        return if json {
            documents(answers, printer)
        } else {
            Ok(())
        };
    };
    if !json {
        return Ok(printer.print(&report::majority_report(&majority, &answers::names, all))?);
    }
    for answer in answers {
        let way = majority
            .deviations
            .iter()
            .find(|way| way.hosts.contains(&answer.host));
        let document = match &answer.reply {
            Ok(reply) if answer.facts().is_some() => {
                let differences = way.map(|way| way.differences.as_slice());
                let found = json!({ "differences": differences.unwrap_or_default() });
                json!({ "host": answer.host, "code": reply.code(), "document": found })
            }
            _ => document(answer),
        };
        printer.json(&document.to_string())?;
    }
    Ok(())
}

/// The facts of a host that is as most are, then who differs.
fn facts(answers: &[Answer], all: bool, printer: &Printer) -> Result<(), Failure> {
    let Some(majority) = gathered(answers).map(|gathered| gathered.judge()) else {
        return Ok(());
    };
    let differs = |answer: &&Answer| {
        let mut ways = majority.deviations.iter();
        !ways.any(|way| way.hosts.contains(&answer.host))
    };
    let usual = answers
        .iter()
        .filter(|answer| answer.facts().is_some())
        .find(differs)
        .or_else(|| answers.iter().find(|answer| answer.facts().is_some()));
    if let Some((host, facts)) = usual.and_then(|answer| Some((&answer.host, answer.facts()?))) {
        if majority.hosts.len() > 1 {
            printer.line(&format!("{host}, as an example:"))?;
        }
        printer.print(&report::facts_report(&facts, all))?;
        printer.line("")?;
    }
    Ok(printer.print(&report::majority_report(&majority, &answers::names, all))?)
}

/// Says on standard error what the hosts wrote there, and who did not answer.
fn complain(answers: &[Answer], printer: &Printer) {
    let said = answers.iter().filter_map(|answer| {
        let reply = answer.reply.as_ref().ok()?;
        let err = reply.err();
        (!err.trim().is_empty()).then(|| (answer.host.clone(), err))
    });
    for alike in answers::fold(said) {
        let names = answers::names(&alike.hosts);
        for line in alike.answer.lines() {
            printer.tell(&format!("{names}: {line}"));
        }
    }
    let missing = answers.iter().filter_map(|answer| {
        let error = answer.reply.as_ref().err()?;
        Some((answer.host.clone(), without_host(error)))
    });
    for alike in answers::fold(missing) {
        let names = answers::names(&alike.hosts);
        let why = match alike.hosts.as_slice() {
            [host] => alike.answer.replace(PLACE, host),
            _ => alike.answer.replace(PLACE, "HOST"),
        };
        printer.tell(&format!("{names}: {why}"));
    }
}

/// Stands for a host in its own trouble, so that the same trouble of several hosts is one. No host name has it.
const PLACE: &str = "\u{1}";

fn without_host(error: &FleetError) -> String {
    let text = error.trouble.to_string();
    let bare = error.host.rsplit('@').next().unwrap_or(&error.host);
    let words: Vec<String> = text
        .split(' ')
        .map(|word| {
            let name = word.trim_end_matches([':', ',', '.', ';']);
            if name == bare {
                format!("{PLACE}{}", &word[name.len()..])
            } else {
                word.to_owned()
            }
        })
        .collect();
    words.join(" ")
}

/// The exit code of all of them.
fn verdict(answers: &[Answer]) -> Result<(), Failure> {
    let missing = answers
        .iter()
        .filter(|answer| answer.reply.is_err())
        .count();
    if missing > 0 {
        let all = answers.len();
        return Err(Failure::Unreachable(format!(
            "{missing} of {all} hosts did not answer"
        )));
    }
    let codes = answers
        .iter()
        .filter_map(|answer| answer.reply.as_ref().ok());
    match codes.map(Reply::code).max() {
        None | Some(0) => Ok(()),
        Some(code) => Err(Failure::Inner {
            code,
            why: String::new(),
        }),
    }
}
