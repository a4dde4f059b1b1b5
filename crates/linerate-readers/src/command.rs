//! Prompts, and what was typed behind them.

use linerate_model::transcript::Asked;

use crate::number::lettered;

/// What stands behind a prompt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Typed {
    /// A throughput test; whether it is iperf3, where the name tells.
    Test(Option<bool>, Box<Asked>),
    /// Anything else.
    Other,
}

/// Programs whose command line may stand without a prompt.
const TESTS: [&str; 4] = ["iperf", "iperf2", "iperf3", "pscheduler"];

/// A line that begins with a prompt or is a test's command line.
pub(crate) fn typed(line: &str) -> Option<Typed> {
    let command = match behind_prompt(line) {
        Some(command) => command,
        None if TESTS.contains(&program(line)) && line.contains(" -") => line,
        None => return None,
    };
    let command = command.strip_prefix("sudo ").unwrap_or(command).trim();
    Some(match program(command) {
        "iperf" | "iperf2" => Typed::Test(Some(false), Box::new(asked(command))),
        "iperf3" => Typed::Test(Some(true), Box::new(asked(command))),
        "pscheduler" => Typed::Test(None, Box::new(asked(command))),
        _ => Typed::Other,
    })
}

/// The name of the program, without its folder.
fn program(command: &str) -> &str {
    let word = command.split_whitespace().next().unwrap_or_default();
    word.rsplit('/').next().unwrap_or(word)
}

/// `[root@host ~]# cmd`, `user@host:~$ cmd`, `-bash-4.1# cmd`, `$ cmd`, `# cmd`.
fn behind_prompt(line: &str) -> Option<&str> {
    for mark in ["$", "#", "%", ">"] {
        if let Some(rest) = line.strip_prefix(mark) {
            return (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim());
        }
    }
    let at = line.find(['$', '#', '%', '>'])?;
    let (head, tail) = (&line[..at], &line[at + 1..]);
    let host = head.contains('@') && !head.contains(['"', '=', ',']);
    let shell = head.starts_with("-bash") || head.starts_with("bash-") || head.starts_with("sh-");
    let prompt = (host || shell) && (tail.is_empty() || tail.starts_with(' '));
    prompt.then(|| tail.trim())
}

fn asked(command: &str) -> Asked {
    let mut asked = Asked {
        command: command.into(),
        ..Asked::default()
    };
    let mut words = command.split_whitespace().skip(1).peekable();
    while let Some(word) = words.next() {
        let (name, value) = split(word);
        let mut next = || {
            value.map(str::to_owned).or_else(|| {
                words
                    .next_if(|next| !next.starts_with('-'))
                    .map(str::to_owned)
            })
        };
        option(&mut asked, name, &mut next);
    }
    asked
}

/// `--window=1M`, `-P4`.
fn split(word: &str) -> (&str, Option<&str>) {
    if word.starts_with("--") {
        return word
            .split_once('=')
            .map_or((word, None), |(name, value)| (name, Some(value)));
    }
    match word.char_indices().nth(2) {
        Some((at, _)) if word.starts_with('-') => (&word[..at], Some(&word[at..])),
        _ => (word, None),
    }
}

fn option(asked: &mut Asked, name: &str, next: &mut impl FnMut() -> Option<String>) {
    let mut number = |base| next().and_then(|text| lettered(&text, base));
    match name {
        "-u" | "--udp" => asked.udp = true,
        "--sctp" => asked.sctp = true,
        "-R" | "--reverse" => asked.reverse = true,
        "-d" | "-r" | "--bidir" | "--full-duplex" | "--dualtest" => asked.both_ways = true,
        "-b" | "--bandwidth" | "--bitrate" => {
            let Some(text) = next() else { return };
            let text = text.split('/').next().unwrap_or_default();
            asked.rate_bps = lettered(text, 1000.0);
            asked.rate_binary_bps = lettered(text, 1024.0);
        }
        "-w" | "--window" | "--window_size" | "--window-size" => {
            asked.window_bytes = number(1024.0);
        }
        "-l" | "--len" | "--length" => asked.length_bytes = number(1024.0),
        "-t" | "--time" | "--duration" => asked.time_s = number(1000.0),
        "-i" | "--interval" => asked.interval_s = number(1000.0),
        "-P" | "--parallel" => {
            asked.streams = next().and_then(|text| text.parse().ok());
        }
        "-c" | "--client" | "--dest" => asked.host = next().map(Into::into),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(line: &str) -> Asked {
        match typed(line) {
            Some(Typed::Test(_, asked)) => *asked,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn prompts_of_all_kinds_are_known() {
        for line in [
            "[ytl@pc55:~/iperf]$ iperf -c h -w 25k -t 180",
            "[root@wn ~]# iperf -w 25k -c h -t180",
            "-bash-4.1# iperf --window=25k -t 180 -c h",
            "$ iperf -w 25k -t 180 -c h",
            "user@host:~$ iperf -w 25k -t 180 -c h",
            "iperf -c h -w 25k -t 180",
        ] {
            let asked = test(line);
            assert_eq!(asked.window_bytes, Some(25_600.0), "{line}");
            assert_eq!(asked.time_s, Some(180.0), "{line}");
            assert_eq!(asked.host.as_deref(), Some("h"), "{line}");
        }
        assert_eq!(
            test("# iperf3 -c h -u -b 100M").rate_binary_bps,
            Some(104_857_600.0)
        );
        assert_eq!(typed("# vgs"), Some(Typed::Other));
        for line in [
            "iperf Done.",
            "[ 3] 0.0-1.0 sec",
            "iperf3: error - x",
            "a > b",
        ] {
            assert_eq!(typed(line), None, "{line}");
        }
    }
}
