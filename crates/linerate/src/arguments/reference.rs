//! docs/reference/options.md is made from the definition of the options, and checked against it.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Arg, Command, CommandFactory as _};

use super::Cli;

const HEAD: &str = "# Options

Made from the program's own definition (`cargo test -p linerate -- --ignored write_the_option_reference`).
Sizes take K, M, G, T of 1024, rates of 1000. `linerate iperf3 …` takes iperf3's options instead: see
[iperf3.md](../iperf3.md).

Options that iperf3 has too bear iperf3's letters and mean the same.
";

const TAIL: &str = "
## Environment

| variable | meaning |
|---|---|
| `LINERATE_PASSWORD`, `IPERF3_PASSWORD` | password for `--username`, the first one before the second |
| `LINERATE_SESSION_TOKEN` | 36 characters of `a-z2-7`, the same at both ends: `serve` takes no connection that does not begin with it, `test` begins with it. Without `--one-off` the server runs every test that comes with it, one at a time |
| `NO_COLOR`, `TERM` | a report on a terminal is coloured unless the first is set or the second is `dumb` or not set |
| `LC_ALL`, `LC_CTYPE`, `LANG` | the first that is set: without UTF-8 in it reports are ASCII |
| `XDG_RUNTIME_DIR` | where `lab up` notes the paths that are up; else `/tmp/linerate-lab-UID` |
| `LINERATE_BECOME_PASSWORD_FILE` | `--become`: file whose first line is the password for sudo on the hosts; only you may read it |
| `LISTEN_FDS`, `LISTEN_PID` | sockets passed in by systemd (`sd_listen_fds(3)`) |

## Exit codes

| code | meaning |
|---|---|
| 0 | done; a test that you stopped with Ctrl-C is done too |
| 1 | iperf3 mode: failed; `lab selfcheck`, `lab grade`, `host audit`: something is not as it should be; `tune plan`: something cannot be done; `tune apply` and its kin: refused, nothing was touched, or with `--prove` no effect; `tune verify`: something drifted; `archive verify`: something is damaged or missing; `archive recompute`: some figures could not be computed again; `watch plan`: the plan cannot be carried out; `crash scan`: files were found |
| 2 | the arguments cannot be understood, or contradict themselves |
| 3 | the test could not be run: no such host, refused, wrong peer; a lab could not be had; a setting could not be saved, set or restored; `crash test`: no power cut could be made |
| 4 | the test ran and failed on the way; what was measured is in the report; `observe` saw no connection that was asked for; `serve --wait`: no test began; `prove`, `tune apply --prove`, `sweep`: ended before all runs were made; `tune apply --on`: stopped before all hosts had their turn; `crash scan --limit`: ended before all was seen, and found nothing until then; `crash test`: some power cuts could not be made |
| 5 | a file could not be read or written, or its layout is unknown |
| 6 | the ledger does not balance; the report says where |
| 7 | `test --expect`: FAIL, none of the 95 % interval is what was expected; `tune apply --prove`: a loss, nothing was applied |
| 8 | `test --expect`: INCONCLUSIVE, the interval does not decide, or the run was stopped; `prove` and `tune apply --prove`: cannot tell |
| 9 | `tune apply`: a change failed or something stopped working, and all old values are back; with `--on`: so on at least one host |
| 10 | `tune`: not all old values are back; the report names those that are not; `tune apply --on`: it is not known which values a host has |
| 11 | `--on`: some hosts did not answer; they are named with the reason, and what the others answered was printed |

With `--on`, where all hosts answered, the code is the highest of theirs; that of `tune apply --on` is the first of 10, 9, 11, 4
and 1 that is so of a host, else 0. `--back` ends with 0 where all old values are back.

`lab run` ends with the code of the `linerate test` in it, `lab exec` with that of its command.
";

fn usage(option: &Arg) -> String {
    let mut names = Vec::new();
    names.extend(option.get_short().map(|short| format!("-{short}")));
    names.extend(option.get_long().map(|long| format!("--{long}")));
    let value = option.get_action().takes_values().then(|| {
        let names = option.get_value_names().unwrap_or_default();
        names
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    });
    match (names.is_empty(), value) {
        (true, value) => value.unwrap_or_default(),
        (false, Some(value)) => format!("{} {value}", names.join(", ")),
        (false, None) => names.join(", "),
    }
}

fn section(out: &mut String, command: &Command, under: &str) {
    if command.has_subcommands() {
        let under = format!("{under} {}", command.get_name());
        if own_options(command).next().is_some() {
            table(out, command, &under);
        }
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            section(out, sub, &under);
        }
        return;
    }
    table(out, command, &format!("{under} {}", command.get_name()));
}

/// The options that a command has apart from its help.
fn own_options(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|option| !option.is_hide_set() && option.get_id() != "help")
}

fn table(out: &mut String, command: &Command, name: &str) {
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let _ = write!(
        out,
        "\n## {name}\n\n{about}.\n\n| option | meaning | default |\n|---|---|---|\n"
    );
    for option in command
        .get_arguments()
        .filter(|option| !option.is_hide_set())
    {
        let help = option
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default()
            .replace('|', "\\|");
        let defaults: Vec<_> = option
            .get_default_values()
            .iter()
            .map(|value| value.to_string_lossy().into_owned())
            .collect();
        let default = if option.get_action().takes_values() {
            defaults.join(" ")
        } else {
            String::new()
        };
        let _ = writeln!(out, "| `{}` | {help} | {default} |", usage(option));
    }
}

fn markdown() -> String {
    let mut command = Cli::command();
    command.build();
    let mut out = HEAD.to_owned();
    for sub in command
        .get_subcommands()
        .filter(|sub| sub.get_name() != "iperf3" && !sub.is_hide_set())
    {
        section(&mut out, sub, "linerate");
    }
    out.push_str(TAIL);
    out
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/options.md")
}

#[test]
fn the_option_reference_is_up_to_date() {
    let (written, made) = (std::fs::read_to_string(path()).unwrap(), markdown());
    let differing = made.lines().zip(written.lines()).find(|(a, b)| a != b);
    assert_eq!(
        (differing, made.len()),
        (None, written.len()),
        "run `cargo test -p linerate -- --ignored write_the_option_reference`"
    );
}

#[test]
#[ignore = "writes docs/reference/options.md"]
fn write_the_option_reference() {
    std::fs::write(path(), markdown()).unwrap();
}
