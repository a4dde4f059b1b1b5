//! Who sets a key, and whether it is what runs: H07, H08.

use std::collections::BTreeSet;

use linerate_model::audit::Advised;
use linerate_model::host::{CpuSet, Effect, Owner, Setting};

use super::old_advice::{Answers, fired, keys_in_files};
use crate::case::{Advice, Case, holds};
use crate::persist::runs;

/// Keys that bpftune changes while it runs (its tuners of TCP buffers, of net buffers and of congestion control).
pub(crate) const BPFTUNE: [&str; 8] = [
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_mem",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.netdev_max_backlog",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_max_orphans",
];

const fn name(owner: Owner) -> &'static str {
    match owner {
        Owner::Sysctl => "sysctl.d",
        Owner::Tuned => "tuned",
        Owner::CloudInit => "cloud-init",
    }
}

fn counts(line: &Setting) -> bool {
    !matches!(line.effect, Effect::Masked { .. } | Effect::NotAtBoot)
}

/// H07
pub(crate) fn owners(case: &Case<'_>) -> Answers {
    let lines = match case.facts.settings.ask() {
        Ok(lines) => lines,
        Err(why) => return vec![(None, Err(why))],
    };
    let bpftune = runs(case.facts, "bpftune");
    let mut answers: Answers = Vec::new();
    let keys: BTreeSet<&str> = keys_in_files(lines)
        .into_iter()
        .filter(|key| key.starts_with("net."))
        .collect();
    for key in &keys {
        let own: Vec<&Setting> = case.lines(key).filter(|line| counts(line)).collect();
        let mut names: BTreeSet<&str> = own.iter().map(|line| name(line.owner)).collect();
        if bpftune && BPFTUNE.contains(key) {
            names.insert("bpftune");
        }
        if names.len() < 2 {
            continue;
        }
        let list: Vec<&str> = names.into_iter().collect();
        let answer = Advice::new(format!(
            "{key} is set by {} owners: {}; the last one to run wins",
            list.len(),
            list.join(", ")
        ))
        .set_by(own.iter().map(|line| line.place()))
        .by_hand(*key, "one owner", "remove it from the others")
        .now_where_known(case.text(key).ok())
        .fires();
        answers.push((Some((*key).to_owned()), answer));
    }
    if answers.is_empty() {
        answers.push((
            None,
            holds(format!(
                "{} of files with one owner each",
                super::qdiscs::counted(keys.len(), "key")
            )),
        ));
    }
    answers
}

/// What to do about a line that does not run. A plan sets numbers, lists of them, and what other checks advise as well;
/// another name, such as a congestion control that this host may not have, is for the author of the line.
fn advised(line: &Setting) -> Advised {
    let value = &line.value;
    let settable = ["cubic", "fq"].contains(&value.as_str())
        || value.split(' ').all(|word| word.parse::<u64>().is_ok())
        || !value.is_empty() && value.parse::<CpuSet>().is_ok();
    if settable {
        Advised::sysctl(line.key.clone(), value.clone())
    } else {
        Advised::by_hand(line.key.clone(), value.clone())
    }
}

/// H08
pub(crate) fn drift(case: &Case<'_>) -> Answers {
    let lines = match case.facts.settings.ask() {
        Ok(lines) => lines,
        Err(why) => return vec![(None, Err(why))],
    };
    if case.facts.system.first_namespace.known() == Some(&false) {
        let why = "files are applied to the machine's first network namespace, and this is another";
        return vec![(None, Err(why.to_owned()))];
    }
    let mut answers: Answers = Vec::new();
    let mut unread = Vec::new();
    let mut same = 0;
    for key in keys_in_files(lines) {
        let last = case
            .facts
            .setters(key)
            .filter(|line| line.owner == Owner::Sysctl && line.effect == Effect::Wins)
            .last()
            // Settings of other parts of the kernel are no question of throughput.
            .filter(|_| key.starts_with("net.") && !key.contains('*'));
        let Some(line) = last else { continue };
        match case.text(key) {
            Ok(running) if running == line.value => same += 1,
            Ok(running) => {
                let sentence = format!(
                    "{} sets {key} = {}, but the running value is {running}: it was changed later, or the line was \
                     never applied",
                    line.place(),
                    line.value
                );
                let why = "apply the file, or change the file to the running value";
                let advice = Advice::new(sentence)
                    .set_by([line.place()])
                    .change(advised(line), why)
                    .now(running);
                answers.push((Some(key.to_owned()), advice.fires()));
            }
            Err(why) => unread.push((key, why)),
        }
    }
    if !answers.iter().any(|(_, answer)| fired(answer)) {
        match unread.first() {
            // systemd-sysctl skips keys of modules that are not loaded, too.
            Some((key, why)) if same == 0 => {
                answers.push((None, Err(format!("{key}: {why}"))));
            }
            _ => answers.push((
                None,
                holds(format!(
                    "{} of files as they run",
                    super::qdiscs::counted(same, "key")
                )),
            )),
        }
    }
    answers
}
