//! Which paths are up: a small file for each, in a folder of the user's own. It says where the process is
//! that holds the path, and nothing hangs on it: the path lives as long as that process.

use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::PathBuf;

use linerate_kernel::directory::{Access, Directory, Replacement};
use linerate_kernel::file::lock;
use linerate_kernel::process;
use linerate_lab::runner::{Host, Lab, StandingHost, StandingSwitch, StarLab};
use linerate_lab::scenario::{Family, Mode, Scenario};
use linerate_lab::star::{Down, Expected, Star};
use serde::{Deserialize, Serialize};

use crate::action::Failure;
use crate::input;

/// The longest name of a path.
const LONGEST_NAME: usize = 64;
/// How the names of notes end.
const NOTE: &str = ".json";
/// So often a folder is locked that is gone by then.
const LOCK_TRIES: u32 = 100;

/// A path that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Held {
    pub(super) name: String,
    pub(super) scenario: String,
    /// What the scenario is about.
    pub(super) about: String,
    /// The process that holds it, and when that was started.
    pub(super) pid: u32,
    start_ticks: u64,
    /// What carries its packets, and how they are decided on.
    #[serde(default)]
    pub(super) engine: Option<String>,
    #[serde(default)]
    pub(super) mode: Option<String>,
    /// What it does not do as the scenario says.
    #[serde(default)]
    pub(super) notes: Vec<String>,
    pub(super) hosts: Vec<HeldHost>,
    /// The switches of a star; a path has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) switches: Vec<HeldSwitch>,
    /// What a mesh of tests over a star has to find first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expect: Option<Expected>,
}

/// A switch of a star.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeldSwitch {
    pub(super) name: String,
    /// A file that is its network namespace.
    pub(super) namespace: PathBuf,
}

/// A host of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeldHost {
    pub(super) name: String,
    pub(super) ipv4: String,
    pub(super) ipv6: String,
    /// A file that is its network namespace.
    pub(super) namespace: PathBuf,
    /// The CPUs of its programs.
    pub(super) cpus: Vec<usize>,
    /// Its switch in a star.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) switch: Option<String>,
    /// What of it does not work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) down: Option<Down>,
}

impl HeldHost {
    fn of(host: &Host) -> Self {
        Self {
            name: host.name().to_owned(),
            ipv4: host.address(Family::Ipv4).to_string(),
            ipv6: host.address(Family::Ipv6).to_string(),
            namespace: host.namespace_file(),
            cpus: host.cpus().to_vec(),
            switch: None,
            down: None,
        }
    }
}

impl Held {
    /// A path that this process holds.
    pub(super) fn by_us(name: &str, scenario: &Scenario, lab: &Lab) -> Self {
        let pid = std::process::id();
        Self {
            name: name.to_owned(),
            scenario: scenario.name.clone(),
            about: scenario.about.clone(),
            pid,
            start_ticks: process::start_ticks(pid).unwrap_or(0),
            engine: Some(lab.in_force().engine.to_owned()),
            mode: Some(lab.in_force().mode.word().to_owned()),
            notes: notes(lab.warnings()).chain(left_out(scenario)).collect(),
            hosts: lab.hosts().iter().map(HeldHost::of).collect(),
            switches: Vec::new(),
            expect: None,
        }
    }

    /// A star that this process holds.
    pub(super) fn star_by_us(name: &str, star: &Star, lab: &StarLab) -> Self {
        let pid = std::process::id();
        let host = |one: &StandingHost| HeldHost {
            switch: Some(one.switch().to_owned()),
            down: one.down(),
            ..HeldHost::of(one.host())
        };
        let switch = |one: &StandingSwitch| HeldSwitch {
            name: one.name().to_owned(),
            namespace: one.namespace_file(),
        };
        Self {
            name: name.to_owned(),
            scenario: star.name.clone(),
            about: star.about.clone(),
            pid,
            start_ticks: process::start_ticks(pid).unwrap_or(0),
            engine: Some("tbf".to_owned()),
            mode: Some(Mode::Packet.word().to_owned()),
            notes: notes(lab.warnings()).collect(),
            hosts: lab.hosts().iter().map(host).collect(),
            switches: lab.switches().iter().map(switch).collect(),
            expect: star.expect.clone(),
        }
    }

    /// Whether both are held by one process.
    fn is_same_process(&self, other: &Self) -> bool {
        (self.pid, self.start_ticks) == (other.pid, other.start_ticks)
    }

    /// Whether the process that held it still lives.
    pub(super) fn is_up(&self) -> bool {
        process::start_ticks(self.pid) == Some(self.start_ticks)
    }
}

fn notes(warnings: &[String]) -> impl Iterator<Item = String> {
    let note = |why: &String| format!("the lab itself may be the bottleneck: {why}");
    warnings.iter().map(note)
}

/// What belongs to the programs that `lab run` starts, of which a path that only stands has none.
fn left_out(scenario: &Scenario) -> Option<String> {
    let hosts = || [&scenario.sender, &scenario.receiver].into_iter();
    let all = [
        ("competing traffic", !scenario.path.cross.is_empty()),
        ("cpu", hosts().any(|host| host.cpu.is_some())),
        ("read_rate", hosts().any(|host| host.read_rate.is_some())),
    ];
    let named: Vec<&str> = all
        .into_iter()
        .filter_map(|(what, asked)| asked.then_some(what))
        .collect();
    (!named.is_empty()).then(|| {
        format!(
            "of the scenario, {} is left out: `linerate lab run` has it",
            named.join(", ")
        )
    })
}

/// What stands under a name.
#[derive(Debug)]
pub(super) enum Note {
    Absent,
    Up(Box<Held>),
    /// The process that held it has ended without a word.
    Gone,
    /// What is there is no note of ours, for this reason.
    Unreadable(String),
}

/// All that stands in the folder.
#[derive(Debug, Default)]
pub(super) struct Noted {
    pub(super) up: Vec<Held>,
    /// Names, and why what stands under them cannot be read.
    pub(super) unreadable: Vec<(String, String)>,
}

/// The folder of all of them.
#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// The user's: `$XDG_RUNTIME_DIR/linerate-lab`, else `/tmp/linerate-lab-UID`. To be asked for before the
    /// process is set apart, while the user is still itself.
    pub(super) fn open() -> Result<Self, Failure> {
        let path = match std::env::var_os("XDG_RUNTIME_DIR") {
            Some(folder) if !folder.is_empty() => PathBuf::from(folder).join("linerate-lab"),
            _ => PathBuf::from(format!("/tmp/linerate-lab-{}", process::user())),
        };
        let folder = Self(path);
        folder.directory()?;
        Ok(folder)
    }

    /// The folder, opened and then looked at, so that nobody can exchange it in between; `None` where there is none: it
    /// is made when there is something to note.
    fn directory(&self) -> Result<Option<Directory>, Failure> {
        let folder = match Directory::open_no_link(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == ErrorKind::NotADirectory => return Err(self.strange()),
            other => other.map_err(|error| Failure::cannot("open", &self.0, &error))?,
        };
        let facts = folder.metadata();
        let facts = facts.map_err(|error| Failure::cannot("look at", &self.0, &error))?;
        if facts.uid() == process::user() && facts.mode() & 0o022 == 0 {
            return Ok(Some(folder));
        }
        Err(self.strange())
    }

    fn strange(&self) -> Failure {
        Failure::File(format!(
            "{} is not a folder that only this user writes to, so it is not believed; remove it, or set XDG_RUNTIME_DIR",
            self.0.display()
        ))
    }

    /// The bytes of a note; `None` where there is none.
    fn bytes(&self, name: &str) -> Result<Option<Result<Vec<u8>, String>>, Failure> {
        let Some(folder) = self.directory()? else {
            return Ok(None);
        };
        let read = folder
            .file(&note_name(name), Access::READ)
            .and_then(|file| input::whole(file, input::NOTED));
        Ok(match read {
            Ok(bytes) => Some(Ok(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => Some(Err(error.to_string())),
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(note_name(name))
    }

    /// What is noted under this name.
    pub(super) fn look(&self, name: &str) -> Result<Note, Failure> {
        check_name(name)?;
        Ok(match self.bytes(name)? {
            None => Note::Absent,
            Some(Err(why)) => Note::Unreadable(why),
            Some(Ok(bytes)) => match serde_json::from_slice::<Held>(&bytes) {
                Ok(held) if held.is_up() => Note::Up(Box::new(held)),
                // Its process was killed: the kernel has removed all that it held.
                Ok(_) => Note::Gone,
                Err(error) => Note::Unreadable(error.to_string()),
            },
        })
    }

    /// The path of this name that is up; forgets one that is not.
    pub(super) fn find(&self, name: &str) -> Result<Option<Held>, Failure> {
        match self.look(name)? {
            Note::Absent => Ok(None),
            Note::Up(held) => Ok(Some(*held)),
            Note::Gone => self.clear(name).map(|()| None),
            Note::Unreadable(why) => Err(Failure::File(format!(
                "the note {} cannot be read: {why}; `linerate lab down {name}` removes it",
                self.file(name).display()
            ))),
        }
    }

    /// All that are up, by their names, and notes that nobody can read: they hide nothing of the others.
    pub(super) fn all(&self) -> Result<Noted, Failure> {
        let Some(folder) = self.directory()? else {
            return Ok(Noted::default());
        };
        let names = folder.names();
        let names = names.map_err(|error| Failure::cannot("read", &self.0, &error))?;
        let mut names: Vec<String> = names
            .into_iter()
            .filter_map(|name| name.strip_suffix(NOTE).map(str::to_owned))
            .collect();
        names.sort();
        let mut noted = Noted::default();
        for name in names {
            match self.look(&name) {
                Ok(Note::Up(held)) => noted.up.push(*held),
                Ok(Note::Gone) => self.clear(&name)?,
                Ok(Note::Absent) => {}
                Ok(Note::Unreadable(why)) => noted.unreadable.push((name, why)),
                Err(no_name) => noted.unreadable.push((name, no_name.to_string())),
            }
        }
        Ok(noted)
    }

    /// Says that a path is up.
    ///
    /// # Errors
    /// [`Failure::Usage`] where another one of this name is: of two that come up at once, one is noted.
    pub(super) fn keep(&self, held: &Held) -> Result<(), Failure> {
        self.locked(|folder| {
            if let Note::Up(_) = self.look(&held.name)? {
                return Err(up_already(&held.name));
            }
            let write = || {
                let mut note = Replacement::begin(folder.share()?, 0o600)?;
                note.file().write_all(&serde_json::to_vec_pretty(held)?)?;
                note.take(&note_name(&held.name))
            };
            write().map_err(|error| Failure::cannot("write", &self.file(&held.name), &error))
        })
    }

    /// Forgets a path, not another one that took its name since.
    pub(super) fn forget(&self, held: &Held) -> Result<(), Failure> {
        self.locked(|folder| {
            let noted = self.bytes(&held.name)?.and_then(Result::ok);
            let noted = noted.and_then(|bytes| serde_json::from_slice::<Held>(&bytes).ok());
            if noted.is_some_and(|noted| noted.is_same_process(held)) {
                self.remove(folder, &held.name)?;
            }
            Ok(())
        })
    }

    /// Removes what is noted under this name, unless it is a path that is up.
    pub(super) fn clear(&self, name: &str) -> Result<(), Failure> {
        self.locked(|folder| match self.look(name)? {
            Note::Up(_) | Note::Absent => Ok(()),
            Note::Gone | Note::Unreadable(_) => self.remove(folder, name),
        })
    }

    fn remove(&self, folder: &Directory, name: &str) -> Result<(), Failure> {
        match folder.remove(&note_name(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Failure::cannot("remove", &self.file(name), &error))
            }
            _ => Ok(()),
        }
    }

    /// Does something while no other process changes the folder, and removes the folder with its last note. Others
    /// wait for a few operations on small files.
    fn locked<T>(&self, work: impl FnOnce(&Directory) -> Result<T, Failure>) -> Result<T, Failure> {
        let (folder, lock) = self.lock()?;
        let result = work(&folder);
        // It stays while a path is noted in it.
        drop(fs::remove_dir(&self.0));
        drop(lock);
        result
    }

    /// The folder, made where it is absent, and its lock.
    fn lock(&self) -> Result<(Directory, fs::File), Failure> {
        for _ in 0..LOCK_TRIES {
            let made = fs::DirBuilder::new().mode(0o700).create(&self.0);
            if let Err(error) = made
                && error.kind() != ErrorKind::AlreadyExists
            {
                return Err(Failure::cannot("make the folder", &self.0, &error));
            }
            let Some(folder) = self.directory()? else {
                continue;
            };
            let failed = |error| Failure::cannot("lock the folder", &self.0, &error);
            let locked = folder.readable().map_err(failed)?;
            lock(&locked).map_err(failed)?;
            let ours = locked.metadata().map_err(failed)?;
            // The lock's previous owner may have removed the folder.
            if fs::symlink_metadata(&self.0)
                .is_ok_and(|now| (now.dev(), now.ino()) == (ours.dev(), ours.ino()))
            {
                return Ok((folder, locked));
            }
        }
        Err(Failure::File(format!(
            "cannot lock the folder {}: others remove it again and again",
            self.0.display()
        )))
    }
}

/// The file of a path's note.
fn note_name(name: &str) -> OsString {
    OsString::from(format!("{name}{NOTE}"))
}

/// Of two paths of one name there is one.
pub(super) fn up_already(name: &str) -> Failure {
    Failure::Usage(format!(
        "a path named {name} is up already; `linerate lab down {name}` takes it down"
    ))
}

/// A name is a file's as well.
pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |each: char| each.is_ascii_alphanumeric() || matches!(each, '.' | '-' | '_');
    if name.chars().all(plain)
        && name.len() <= LONGEST_NAME
        && !name.starts_with(['.', '-'])
        && !name.is_empty()
    {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "'{name}' is not a name for a path: up to {LONGEST_NAME} letters, digits, dots, dashes and underscores, a \
         letter or digit first"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in ["a", "wan-60ms", "x.1_2"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "../x", "a/b", "-x", "a b", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    /// A folder that is removed with this.
    struct Scratch(tempfile::TempDir);

    impl Scratch {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn folder(&self) -> Folder {
            Folder(self.file("linerate-lab"))
        }

        fn file(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }
    }

    fn held(name: &str, pid: u32) -> Held {
        Held {
            name: name.to_owned(),
            scenario: "x".to_owned(),
            about: String::new(),
            pid,
            start_ticks: process::start_ticks(pid).unwrap_or(0),
            engine: None,
            mode: None,
            notes: Vec::new(),
            hosts: Vec::new(),
            switches: Vec::new(),
            expect: None,
        }
    }

    #[test]
    fn what_only_programs_of_a_run_do_is_named() {
        let of = |text: &str| {
            let text = format!("name = \"a\"\n{text}");
            left_out(&Scenario::parse("a", &text).unwrap())
        };
        assert_eq!(of("[path]\nrtt = \"1ms\"\n"), None);
        let all =
            "[[path.cross]]\nkind = \"tcp\"\n[sender]\ncpu = 0.5\n[receiver]\nread_rate = \"1M\"\n";
        let named = of(all).unwrap();
        assert!(
            named.contains("competing traffic, cpu, read_rate"),
            "{named}"
        );
    }

    #[test]
    fn of_two_that_come_up_at_once_one_is_noted() {
        let scratch = Scratch::new();
        let own = std::process::id();
        let noted = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| scratch.folder().keep(&held("same", own)).is_ok()))
                .collect();
            let kept = all.into_iter().map(|each| each.join().unwrap());
            kept.filter(|kept| *kept).count()
        });
        assert_eq!(noted, 1);
    }

    #[test]
    fn a_path_forgets_only_itself() {
        let scratch = Scratch::new();
        let folder = scratch.folder();
        folder.keep(&held("one", std::process::id())).unwrap();
        // The process with the number 1 holds none of ours.
        folder.forget(&held("one", 1)).unwrap();
        assert!(matches!(folder.look("one").unwrap(), Note::Up(_)));
        let again = folder.keep(&held("one", 1)).unwrap_err().to_string();
        assert!(again.contains("up already"), "{again}");
        folder.forget(&held("one", std::process::id())).unwrap();
        assert!(matches!(folder.look("one").unwrap(), Note::Absent));
        assert!(!folder.0.exists());
    }

    #[test]
    fn a_folder_that_others_could_have_put_there_is_not_believed() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let scratch = Scratch::new();
        let folder = scratch.folder();
        let real = scratch.file("real");
        fs::create_dir(&real).unwrap();
        let mode = |mode| fs::set_permissions(&real, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o700);
        symlink(&real, &folder.0).unwrap();
        let refused = || {
            let error = folder.keep(&held("one", std::process::id())).unwrap_err();
            assert!(error.to_string().contains("not believed"), "{error}");
            assert!(folder.all().is_err() && folder.look("one").is_err());
        };
        refused();
        fs::remove_file(&folder.0).unwrap();
        fs::rename(&real, &folder.0).unwrap();
        // A note that is a link is not read and not written through.
        let own = held("one", std::process::id());
        fs::write(scratch.file("theirs"), serde_json::to_vec(&own).unwrap()).unwrap();
        symlink("../theirs", folder.file("one")).unwrap();
        assert!(matches!(folder.look("one").unwrap(), Note::Unreadable(_)));
        folder.keep(&own).unwrap();
        assert!(!folder.file("one").is_symlink());
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
        refused();
    }

    #[test]
    fn what_cannot_be_noted_leaves_nothing() {
        let scratch = Scratch::new();
        let folder = scratch.folder();
        // A folder with something in it stands where the note would.
        fs::create_dir_all(folder.file("full").join("x")).unwrap();
        folder.keep(&held("full", std::process::id())).unwrap_err();
        let left: Vec<_> = fs::read_dir(&folder.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["full.json"]);
    }

    #[test]
    fn one_bad_note_hides_no_other() {
        let scratch = Scratch::new();
        let folder = scratch.folder();
        folder.keep(&held("good", std::process::id())).unwrap();
        fs::write(folder.file("bad"), "{").unwrap();
        // No process has this number: it was killed.
        let killed = Held {
            pid: u32::MAX,
            ..held("killed", 1)
        };
        fs::write(folder.file("killed"), serde_json::to_vec(&killed).unwrap()).unwrap();
        let noted = folder.all().unwrap();
        assert_eq!(noted.up.len(), 1);
        assert_eq!(noted.unreadable.len(), 1);
        assert_eq!(noted.unreadable[0].0, "bad");
        assert!(!folder.file("killed").exists());
        let error = folder.find("bad").unwrap_err().to_string();
        assert!(error.contains("lab down bad"), "{error}");
        folder.clear("bad").unwrap();
        folder.clear("good").unwrap();
        assert!(!folder.file("bad").exists());
        assert!(folder.file("good").exists());
    }
}
