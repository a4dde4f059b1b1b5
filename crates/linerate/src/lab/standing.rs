//! Paths that stay up: `up`, `exec`, `list`, `down`, and the process that holds one.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use linerate_kernel::clock;
use linerate_kernel::namespace::{self, NetworkNamespace};
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::process::{self, ChildSettings, PidFd};
use linerate_kernel::thread::{Received, SignalFd};
use linerate_lab::runner::{self, Lab};
use linerate_lab::scenario::Scenario;
use linerate_lab::star::Star;
use linerate_model::units::Nanos;
use linerate_model::words;

use super::arguments::{ExecArguments, UpArguments};
use super::programs::linerate;
use super::state::{self, Folder, Held, Note, Noted};
use super::{by_options, scenario_text, star, words as typed};
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
/// A signal this long after the first is another one: timeout(1) sends each twice, to us and to our group.
const ONCE_MORE: Nanos = Nanos::from_millis(300);

/// Starts a process that holds the path, and waits until it is up.
pub(super) fn up(arguments: &UpArguments, printer: &Printer) -> Result<(), Failure> {
    let name = &arguments.name;
    if Folder::open()?.find(name)?.is_some() {
        return Err(state::up_already(name));
    }
    let (text, about) = described(arguments)?;
    let failed = |error| Failure::Lab(format!("cannot start a process to hold {name}: {error}"));
    let mut command = linerate(["lab", "hold", name]);
    if let Some(seed) = arguments.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir("/");
    let mut holder = process::spawn_detached(&mut command, None).map_err(failed)?;
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
        let code = holder.wait().ok().and_then(|status| status.code());
        let why = why.trim().trim_start_matches("linerate: error: ");
        return Err(Failure::Inner {
            code: code.and_then(|code| u8::try_from(code).ok()).unwrap_or(3),
            why: why.to_owned(),
        });
    }
    let held = Folder::open()?.find(name)?;
    let held = held.ok_or_else(|| Failure::Lab(format!("{name} is gone already")))?;
    printer.line(&format!("{name} is up: {about}"))?;
    printer.print(&carried_and_hosts(&held))?;
    for note in &held.notes {
        printer.tell(note);
    }
    Ok(())
}

/// The text that describes what is to come up, checked, and what that says it is about.
fn described(arguments: &UpArguments) -> Result<(String, String), Failure> {
    let Some(asked) = &arguments.scenario else {
        let (text, parsed) = by_options::scenario(arguments)?;
        return Ok((text, parsed.about));
    };
    let (label, text) = scenario_text(asked)?;
    let about = if star::is_star(&text) {
        Star::parse(&label, &text)?.about
    } else {
        Scenario::parse(&label, &text)?.about
    };
    Ok((text, about))
}

/// Holds a path until it gets the command to end.
pub(super) fn hold(name: &str, seed: Option<u64>, printer: &Printer) -> Result<(), Failure> {
    let folder = Folder::open()?;
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::File(format!("cannot read the scenario: {error}")))?;
    if star::is_star(&text) {
        let signals = signals::take_stops()?;
        let (lab, held) = star::made(name, &text, seed)?;
        return stand(&folder, &held, &signals, || lab.is_running(), printer);
    }
    let mut scenario = Scenario::parse(name, &text)?;
    scenario.seed = seed.unwrap_or(scenario.seed);
    let signals = signals::take_stops()?;
    let lab = Lab::up(&scenario, runner::isolate()?)?;
    lab.begin();
    let held = Held::by_us(name, &scenario, &lab);
    stand(&folder, &held, &signals, || lab.is_running(), printer)?;
    lab.down()?;
    Ok(())
}

/// Says that it is up, and waits until a signal ends it or it ends by itself.
fn stand(
    folder: &Folder,
    held: &Held,
    signals: &SignalFd,
    is_running: impl Fn() -> bool,
    printer: &Printer,
) -> Result<(), Failure> {
    folder.keep(held)?;
    let said = printer.print(UP);
    let mut ended = said.is_err();
    while !ended && is_running() {
        let mut entries = [PollEntry::new(signals.as_fd(), Interest::READ)];
        ended = !matches!(poll::wait(&mut entries, Some(LOOK)), Ok(0));
    }
    folder.forget(held)
}

/// Runs a command on a host of a path.
pub(super) fn exec(arguments: &ExecArguments) -> Result<(), Failure> {
    let held = found(&Folder::open()?, &arguments.name)?;
    let place = place(&held, &arguments.host)?;
    let lab = |error: &dyn std::fmt::Display| {
        Failure::Lab(format!(
            "cannot enter {} of {}: {error}",
            place.name, held.name
        ))
    };
    let holder = PidFd::open(held.pid).map_err(|error| lab(&error))?;
    let user = format!("/proc/{}/ns/user", held.pid);
    namespace::enter_user(user.as_ref()).map_err(|error| lab(&error))?;
    let network = NetworkNamespace::open(place.namespace).map_err(|error| lab(&error))?;
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(Failure::Usage("a command is wanted".to_owned()));
    };
    let signals = signals::take_stops()?;
    let settings = ChildSettings {
        namespace: Some(network.as_fd()),
        cpus: place.cpus.to_vec(),
        ..ChildSettings::default()
    };
    let mut command = Command::new(program);
    command
        .args(rest)
        .env("LINERATE_LAB", &held.name)
        .env("LINERATE_LAB_HOST", place.name)
        .env("LINERATE_LAB_ADDRESS", place.address);
    let mut child = process::spawn_bound(&mut command, &settings).map_err(|error| {
        Failure::Lab(format!("cannot run {}: {error}", typed(&arguments.command)))
    })?;
    let ended = PidFd::open(child.id()).map_err(|error| lab(&error))?;
    let mut asked = None;
    // It ends with the command, with its path, or by the second signal.
    loop {
        let wait = |error| {
            Failure::Lab(format!(
                "cannot wait for {}: {error}",
                typed(&arguments.command)
            ))
        };
        let taken_down = || Failure::Lab(format!("{} was taken down", held.name));
        if let Some(status) = child.try_wait().map_err(wait)? {
            let mut entries = [PollEntry::new(holder.as_fd(), Interest::READ)];
            // Removing the path kills what runs on it.
            let without_path = matches!(poll::wait(&mut entries, Some(Nanos::ZERO)), Ok(1..));
            return if without_path && status.signal() == Some(KILL) {
                Err(taken_down())
            } else {
                ended_with(status)
            };
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
            return Err(taken_down());
        }
        if let Ok(Some(received)) = signals.receive() {
            pass_on(received, &ended, &mut asked).map_err(wait)?;
        }
    }
}

/// Where a command runs.
struct Where<'a> {
    name: &'a str,
    /// Its IPv4 address; a switch has none of its own.
    address: &'a str,
    namespace: &'a Path,
    cpus: &'a [usize],
}

fn place<'a>(held: &'a Held, asked: &str) -> Result<Where<'a>, Failure> {
    if let Some(host) = held.hosts.iter().find(|host| host.name == asked) {
        star::refuse_dead(held, host)?;
        return Ok(Where {
            name: &host.name,
            address: &host.ipv4,
            namespace: &host.namespace,
            cpus: &host.cpus,
        });
    }
    if let Some(switch) = held.switches.iter().find(|one| one.name == asked) {
        return Ok(Where {
            name: &switch.name,
            address: "",
            namespace: &switch.namespace,
            cpus: &[],
        });
    }
    let names: Vec<&str> = held.hosts.iter().map(|host| host.name.as_str()).collect();
    let names = if held.switches.is_empty() {
        names.join(", ")
    } else {
        star::folded(&names)
    };
    Err(Failure::Usage(format!(
        "{} has no host '{asked}', only {names}",
        held.name
    )))
}

/// What a terminal sends has reached the command as well, which may live on: a shell does. Anything else was for
/// us, so the command is asked to end, and killed when somebody asks once more.
fn pass_on(received: Received, to: &PidFd, asked: &mut Option<Nanos>) -> std::io::Result<()> {
    if received.by_kernel {
        return Ok(());
    }
    let now = clock::monotonic();
    match *asked {
        None => {
            *asked = Some(now);
            to.signal(received.signal)
        }
        Some(first) if now.since(first) >= ONCE_MORE => to.signal(KILL),
        Some(_) => Ok(()),
    }
}

/// A command's exit code is ours, and it speaks for itself; a signal counts as a shell counts it.
fn ended_with(status: std::process::ExitStatus) -> Result<(), Failure> {
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
pub(super) fn list(json: bool, printer: &Printer) -> Result<(), Failure> {
    let noted = Folder::open()?.all()?;
    for (name, why) in &noted.unreadable {
        printer.tell(&format!(
            "the note of {name} cannot be read: {why}; `linerate lab down {name}` removes it"
        ));
    }
    let all = noted.up;
    if json {
        return Ok(printer.json(&serde_json::json!(all).to_string())?);
    }
    for held in &all {
        printer.line(&format!(
            "{}: {} (process {})",
            held.name, held.about, held.pid
        ))?;
        printer.print(&carried_and_hosts(held))?;
    }
    if all.is_empty() {
        printer.tell("no path is up; `linerate lab up NAME` makes one");
    }
    let own: Vec<u32> = all.iter().map(|held| held.pid).collect();
    let mut running = runner::other_labs();
    running.retain(|pid| !own.contains(pid));
    if all.len() + running.len() > 1 {
        printer.tell(&format!(
            "{} labs run on this machine: they share its CPUs, so what one carries makes the others late",
            all.len() + running.len()
        ));
    }
    Ok(())
}

/// Takes down one, or all.
pub(super) fn down(name: Option<&str>, printer: &Printer) -> Result<(), Failure> {
    let folder = Folder::open()?;
    let noted = match name {
        Some(name) => match folder.look(name)? {
            Note::Unreadable(why) => Noted {
                unreadable: vec![(name.to_owned(), why)],
                ..Noted::default()
            },
            _ => Noted {
                up: vec![found(&folder, name)?],
                ..Noted::default()
            },
        },
        None => folder.all()?,
    };
    // One that does not go down keeps no other one up.
    let mut result = Ok(());
    for held in noted.up {
        match end(&folder, &held) {
            Ok(0) => printer.line(&format!("{} is down", held.name))?,
            Ok(programs) => printer.line(&format!(
                "{} is down; programs that still ran on its hosts were ended: {programs}",
                held.name
            ))?,
            Err(failure) => {
                printer.tell(&failure.to_string());
                result = Err(failure);
            }
        }
    }
    for (name, why) in noted.unreadable {
        match folder.clear(&name) {
            Ok(()) => printer.line(&format!(
                "the note of {name} is removed; it could not be read ({why}), so a process that holds the path goes on if there is one"
            ))?,
            Err(failure) => {
                printer.tell(&failure.to_string());
                result = Err(failure);
            }
        }
    }
    result
}

/// Takes a path down and ends what was left running on its hosts; how many programs that were.
fn end(folder: &Folder, held: &Held) -> Result<usize, Failure> {
    use std::os::unix::fs::MetadataExt as _;
    // They can be told as long as the holder lives.
    let hosts = held.hosts.iter().map(|host| &host.namespace);
    let networks: Vec<u64> = hosts
        .chain(held.switches.iter().map(|switch| &switch.namespace))
        .filter_map(|namespace| Some(std::fs::metadata(namespace).ok()?.ino()))
        .collect();
    take_down(held).map_err(|error| {
        Failure::Lab(format!(
            "cannot take {} down (process {}): {error}",
            held.name, held.pid
        ))
    })?;
    folder.forget(held)?;
    Ok(process::kill_in_networks(&networks))
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

pub(super) fn found(folder: &Folder, name: &str) -> Result<Held, Failure> {
    state::check_name(name)?;
    folder.find(name)?.ok_or_else(|| {
        Failure::Usage(format!(
            "no path named {name} is up; `linerate lab list` shows those that are"
        ))
    })
}

fn carried_and_hosts(held: &Held) -> String {
    let carried = held.engine.as_ref().zip(held.mode.as_ref());
    let carried =
        carried.map(|(engine, mode)| format!("  {:<16} {engine}, mode {mode}\n", "carried by"));
    let line = |host: &state::HeldHost| {
        let addresses = format!("{:<16} {}  {}", host.name, host.ipv4, host.ipv6);
        let switch = words::with(host.switch.as_ref(), |switch| format!("  {switch}"));
        let down = words::with(host.down, |_| ", down".to_owned());
        format!("  {addresses}{switch}{down}\n")
    };
    carried
        .into_iter()
        .chain(held.hosts.iter().map(line))
        .collect()
}
