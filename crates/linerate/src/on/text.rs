//! Answers as text: equal ones once, of the others the lines that differ from those of most hosts.

use std::fmt::Write as _;

use linerate_fleet::answers::{Line, differing, fold, names};

use super::gather::Answer;

/// All answers, folded.
pub(super) fn folded(answers: &[Answer]) -> String {
    let given = answers.iter().filter_map(|answer| {
        let reply = answer.reply.as_ref().ok()?;
        Some((answer.host.clone(), (reply.code(), reply.out())))
    });
    let mut text = String::new();
    let mut majority: Option<String> = None;
    for alike in fold(given) {
        let (code, out) = alike.answer;
        let names = names(&alike.hosts);
        let code = match code {
            0 => String::new(),
            code => format!(" (exit code {code})"),
        };
        // The first one is that of most hosts; only against a true majority do differences say more than the text.
        let lines = majority.as_deref().and_then(|first| differing(first, &out));
        if majority.is_some() {
            text.push('\n');
        }
        if let Some(lines) = lines {
            let _ = writeln!(text, "{names}{code} differs from the first in these lines:");
            for line in lines {
                let (sign, line) = match line {
                    Line::First(line) => ('-', line),
                    Line::Second(line) => ('+', line),
                };
                let _ = writeln!(text, "{sign} {line}");
            }
        } else {
            let _ = writeln!(text, "{names}{code}:");
            for line in out.lines() {
                let _ = writeln!(text, "{line}");
            }
        }
        majority.get_or_insert(out);
    }
    text
}
