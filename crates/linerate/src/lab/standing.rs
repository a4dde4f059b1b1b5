//! Paths that stay up: `up`, `exec`, `list`, `down`, and the process that holds one.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};

use linerate_kernel::namespace::{self, NetworkNamespace};
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::process::{self, ChildSettings, PidFd};
use linerate_lab::runner::{self, Lab};
use linerate_lab::scenario::Scenario;
use linerate_model::units::Nanos;

use super::arguments::{DownArguments, ExecArguments, ListArguments, UpArguments};
use super::programs::linerate;
use super::state::{self, Folder, Held};
use super::{scenario_text, take_signals, words};
use crate::action::Failure;
use crate::printer::Printer;
use crate::signals;

/// A path is down within this time of being asked, or it is killed.
const PATIENCE: Nanos = Nanos::from_millis(5000);
/// Between two looks at whether the engine goes on.
const LOOK: Nanos = Nanos::from_millis(500);
/// What the holder says once the path is up.
const UP: &str = "up\n";
const KILL: i32 = 9;

/// Starts a process that holds the path, and waits until it is up.
pub(super) fn up(arguments: &UpArguments, printer: &Printer) -> Result<(), Failure> {
    let name = &arguments.name;
    if Folder::open()?.find(name)?.is_some() {
        return Err(Failure::Usage(format!(
            "a path named {name} is up already; `linerate lab down {name}` takes it down"
        )));
    }
    let (label, text) = match &arguments.scenario {
        Some(asked) => scenario_text(asked)?,
        None => (name.clone(), text_of(arguments)),
    };
    let parsed = Scenario::parse(&label, &text)?;
    let failed = |error| Failure::Lab(format!("cannot start a process to hold {name}: {error}"));
    let mut command = linerate(["lab", "hold", name]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir("/");
    let mut holder = process::spawn_detached(&mut command).map_err(failed)?;
    if let Some(mut input) = holder.stdin.take() {
        input.write_all(text.as_bytes()).map_err(failed)?;
    }
    let mut said = String::new();
    if let Some(out) = holder.stdout.take() {
        BufReader::new(out).read_line(&mut said).map_err(failed)?;
    }
    if said != UP {
        let mut why = String::new();
        if let Some(mut error) = holder.stderr.take() {
            error.read_to_string(&mut why).map_err(failed)?;
        }
        drop(holder.wait());
        let why = why.trim().trim_start_matches("linerate: error: ");
        return Err(Failure::Lab(why.to_owned()));
    }
    let held = Folder::open()?.find(name)?;
    let held = held.ok_or_else(|| Failure::Lab(format!("{name} is gone already")))?;
    printer.line(&format!("{name} is up: {}", parsed.about))?;
    Ok(printer.print(&hosts(&held))?)
}

/// Holds a path until it is told to end.
pub(super) fn hold(name: &str, printer: &Printer) -> Result<(), Failure> {
    let folder = Folder::open()?;
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::File(format!("cannot read the scenario: {error}")))?;
    let scenario = Scenario::parse(name, &text)?;
    let signals = take_signals()?;
    let lab = Lab::up(&scenario, runner::isolate()?)?;
    lab.begin();
    folder.keep(&Held::by_us(name, &scenario, &lab))?;
    let said = printer.print(UP);
    let mut ended = said.is_err();
    while !ended && lab.is_running() {
        let mut entries = [PollEntry::new(signals.as_fd(), Interest::READ)];
        ended = !matches!(poll::wait(&mut entries, Some(LOOK)), Ok(0));
    }
    folder.forget(name)?;
    lab.down()?;
    Ok(())
}

/// Runs a command on a host of a path.
pub(super) fn exec(arguments: &ExecArguments) -> Result<(), Failure> {
    let held = found(&Folder::open()?, &arguments.name)?;
    let host = held.hosts.iter().find(|host| host.name == arguments.host);
    let host = host.ok_or_else(|| {
        let names: Vec<&str> = held.hosts.iter().map(|host| host.name.as_str()).collect();
        Failure::Usage(format!(
            "{} has no host '{}', only {}",
            held.name,
            arguments.host,
            names.join(", ")
        ))
    })?;
    let lab = |error: &dyn std::fmt::Display| {
        Failure::Lab(format!(
            "cannot enter {} of {}: {error}",
            host.name, held.name
        ))
    };
    let holder = PidFd::open(held.pid).map_err(|error| lab(&error))?;
    let user = format!("/proc/{}/ns/user", held.pid);
    namespace::enter_user(user.as_ref()).map_err(|error| lab(&error))?;
    let network = NetworkNamespace::open(&host.namespace).map_err(|error| lab(&error))?;
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(Failure::Usage("a command is wanted".to_owned()));
    };
    // A terminal's Ctrl-C reaches the command by itself.
    let signals = take_signals()?;
    let settings = ChildSettings {
        namespace: Some(network.as_fd()),
        cpus: host.cpus.clone(),
        ..ChildSettings::default()
    };
    let mut command = Command::new(program);
    command.args(rest);
    let mut child = process::spawn_bound(&mut command, &settings).map_err(|error| {
        Failure::Lab(format!("cannot run {}: {error}", words(&arguments.command)))
    })?;
    let ended = PidFd::open(child.id()).map_err(|error| lab(&error))?;
    loop {
        let wait = |error| {
            Failure::Lab(format!(
                "cannot wait for {}: {error}",
                words(&arguments.command)
            ))
        };
        if let Some(status) = child.try_wait().map_err(wait)? {
            return ended_with(status);
        }
        let mut entries = [
            PollEntry::new(ended.as_fd(), Interest::READ),
            PollEntry::new(holder.as_fd(), Interest::READ),
            PollEntry::new(signals.as_fd(), Interest::READ),
        ];
        poll::wait(&mut entries, None).map_err(wait)?;
        if entries[1].readiness().readable {
            drop(child.kill());
            drop(child.wait());
            return Err(Failure::Lab(format!("{} was taken down", held.name)));
        }
        if let Ok(Some(signals::TERMINATE)) = signals.read() {
            ended.signal(signals::TERMINATE).map_err(wait)?;
        }
    }
}

/// A command's exit code is ours, and it speaks for itself; a signal counts as a shell counts it.
fn ended_with(status: std::process::ExitStatus) -> Result<(), Failure> {
    use std::os::unix::process::ExitStatusExt as _;
    if status.success() {
        return Ok(());
    }
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    Err(Failure::Inner {
        code: code.and_then(|code| u8::try_from(code).ok()).unwrap_or(3),
        why: String::new(),
    })
}

/// Shows what is up.
pub(super) fn list(arguments: &ListArguments, printer: &Printer) -> Result<(), Failure> {
    let all = Folder::open()?.all()?;
    if arguments.json {
        return Ok(printer.line(&serde_json::json!(all).to_string())?);
    }
    for held in &all {
        printer.line(&format!(
            "{}: {} (process {})",
            held.name, held.about, held.pid
        ))?;
        printer.print(&hosts(held))?;
    }
    if all.is_empty() {
        printer.tell("no path is up; `linerate lab up NAME` makes one");
    }
    Ok(())
}

/// Takes down one, or all.
pub(super) fn down(arguments: &DownArguments, printer: &Printer) -> Result<(), Failure> {
    let folder = Folder::open()?;
    let which = match &arguments.name {
        Some(name) => vec![found(&folder, name)?],
        None => folder.all()?,
    };
    for held in which {
        take_down(&held).map_err(|error| {
            Failure::Lab(format!(
                "cannot take {} down (process {}): {error}",
                held.name, held.pid
            ))
        })?;
        folder.forget(&held.name)?;
        printer.line(&format!("{} is down", held.name))?;
    }
    Ok(())
}

fn take_down(held: &Held) -> std::io::Result<()> {
    let Ok(holder) = PidFd::open(held.pid) else {
        return Ok(());
    };
    // Between the look and the opening another may have taken its number.
    if !held.is_up() {
        return Ok(());
    }
    for (signal, patience) in [(signals::TERMINATE, PATIENCE), (KILL, PATIENCE)] {
        holder.signal(signal)?;
        let mut entries = [PollEntry::new(holder.as_fd(), Interest::READ)];
        if poll::wait(&mut entries, Some(patience))? > 0 {
            return Ok(());
        }
    }
    Err(std::io::ErrorKind::TimedOut.into())
}

fn found(folder: &Folder, name: &str) -> Result<Held, Failure> {
    state::check_name(name)?;
    folder.find(name)?.ok_or_else(|| {
        Failure::Usage(format!(
            "no path named {name} is up; `linerate lab list` shows those that are"
        ))
    })
}

fn hosts(held: &Held) -> String {
    let line =
        |host: &state::HeldHost| format!("  {:<16} {}  {}\n", host.name, host.ipv4, host.ipv6);
    held.hosts.iter().map(line).collect()
}

/// The options as a scenario's text: what is wrong with them is said in the same words.
fn text_of(arguments: &UpArguments) -> String {
    let quoted = |text: &String| format!("\"{}\"", text.replace(['\\', '"', '\n'], "?"));
    let top = [
        ("name", Some(quoted(&arguments.name))),
        ("about", Some("\"made by options\"".to_owned())),
        ("seed", arguments.seed.map(|seed| seed.to_string())),
        ("mode", arguments.mode.as_ref().map(quoted)),
    ];
    let path = [
        ("rate", arguments.rate.as_ref().map(quoted)),
        ("rtt", arguments.rtt.as_ref().map(quoted)),
        ("jitter", arguments.jitter.as_ref().map(quoted)),
        ("queue", arguments.queue.as_ref().map(quoted)),
        ("loss", arguments.loss.map(|loss| format!("{loss:?}"))),
    ];
    let lines = |pairs: &[(&str, Option<String>)]| {
        let given = pairs
            .iter()
            .filter_map(|(key, value)| Some((key, value.as_ref()?)));
        let lines: Vec<String> = given
            .map(|(key, value)| format!("{key} = {value}\n"))
            .collect();
        lines.concat()
    };
    format!("{}[path]\n{}", lines(&top), lines(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_a_scenario() {
        let arguments = UpArguments {
            name: "x".to_owned(),
            scenario: None,
            rate: Some("1G".to_owned()),
            rtt: Some("60ms".to_owned()),
            jitter: None,
            queue: Some("2x".to_owned()),
            loss: Some(1e-4),
            mode: Some("packet".to_owned()),
            seed: Some(9),
        };
        let scenario = Scenario::parse("x", &text_of(&arguments)).unwrap();
        assert_eq!(scenario.seed, 9);
        assert_eq!(scenario.path.rtt(), Nanos::from_millis(60));
        let wrong = UpArguments {
            rate: Some("fast".to_owned()),
            ..arguments
        };
        let error = Scenario::parse("x", &text_of(&wrong))
            .unwrap_err()
            .to_string();
        assert!(error.contains("rate"), "{error}");
    }
}
