//! A mount: a file is written, synced, read back and removed. A file system that is frozen, or whose server is gone, still answers
//! `ls` and `statfs` from memory, and hangs here.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Instant;

use linerate_check::judge;
use linerate_check::settings::MountCheck;
use linerate_kernel::directory::{Access, Directory};
use linerate_kernel::{file_system, host, mount_table, process, thread};
use linerate_model::check::{FileStep, Found, Item, State};
use linerate_model::units::Nanos;

use super::cannot_tell;

/// Where the file is: a folder of our own, which stays.
const FOLDER: &str = ".linerate-check";
/// A page, which most file systems write as a whole.
const SIZE: usize = 4096;

/// A step that failed.
struct Refused(FileStep, io::Error);

pub(super) fn look(check: &MountCheck) -> Vec<Item> {
    let item = |state, found| vec![Item::new(check.path.as_str(), state, found)];
    let folder = match Directory::open(Path::new(&check.path)) {
        Ok(folder) => folder,
        Err(error) => return vec![refused(check, &Refused(FileStep::Open, error))],
    };
    // Asked of what was opened: it follows links, and an automounter has mounted it by now.
    let (mount, real) = match (
        mount_table::of_descriptor(&folder),
        Directory::path_of(&folder),
    ) {
        (Ok(Some(mount)), Ok(real)) => (mount, real),
        (Ok(None), _) => return item(State::Fail, Found::NotMounted),
        (Err(error), _) | (_, Err(error)) => {
            let why = format!("cannot read what is mounted: {error}");
            return vec![cannot_tell(&check.path, why)];
        }
    };
    if Path::new(&mount.mounted_on) != real {
        return item(State::Fail, Found::NotMounted);
    }
    if let Some(kind) = &check.kind
        && !is_kind(&mount.kind, kind)
    {
        let (expected, found) = (kind.as_str().into(), mount.kind.into());
        return item(State::Fail, Found::OtherFileSystem { expected, found });
    }
    let here = match file_system::of(&folder) {
        Ok(here) => here,
        Err(error) => return vec![refused(check, &Refused(FileStep::Open, error))],
    };
    if check.write && here.read_only {
        return item(State::Fail, Found::ReadOnly);
    }
    let mut items = Vec::new();
    if let Some(room) = check.room {
        let bytes = [here.free, here.size];
        items.push(judge::room(&check.path, bytes, Some(here.files), room));
    }
    items.push(if check.write {
        let begun = Instant::now();
        match write_and_read(&folder) {
            Ok(true) => {
                let took = Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
                judge::written(check, took)
            }
            Ok(false) => Item::new(check.path.as_str(), State::Fail, Found::Differs),
            Err(why) => refused(check, &why),
        }
    } else {
        Item::new(check.path.as_str(), State::Ok, Found::Mounted)
    });
    items
}

/// `nfs` stands for all its versions.
fn is_kind(found: &str, wanted: &str) -> bool {
    found == wanted || wanted == "nfs" && found == "nfs4"
}

/// What is not ours to do tells nothing of the file system; everything else is its failure.
fn refused(check: &MountCheck, Refused(step, error): &Refused) -> Item {
    let errno = error.raw_os_error();
    let state = match (error.kind(), step) {
        // No right, or something else under that name that somebody has put there.
        (io::ErrorKind::PermissionDenied, _) | (io::ErrorKind::NotADirectory, FileStep::Make) => {
            State::Unknown
        }
        _ => State::Fail,
    };
    let found = Found::Refused {
        step: *step,
        errno,
        error: error.to_string().into(),
    };
    Item::new(check.path.as_str(), state, found)
}

/// Whether what was read is what was written.
fn write_and_read(on: &Directory) -> Result<bool, Refused> {
    use FileStep::{Make, Read, Remove, Sync, Write};
    let at = |step| move |error| Refused(step, error);
    let folder = match on.enter(OsStr::new(FOLDER)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            on.make_directory(OsStr::new(FOLDER), 0o700)
        }
        other => other,
    };
    let folder = folder.map_err(at(Make))?;
    is_trusted(on, &folder).map_err(at(Make))?;
    let name = name();
    let name = OsStr::new(&name);
    match folder.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Refused(Remove, error));
        }
        _ => {}
    }
    let mut written = vec![0; SIZE];
    thread::random(&mut written).map_err(at(Make))?;
    let mut file = folder.make(name, 0o600).map_err(at(Make))?;
    let done = file
        .write_all(&written)
        .map_err(at(Write))
        .and_then(|()| file.sync_all().map_err(at(Sync)))
        .and_then(|()| {
            // So that it is read from where it was written to. A file system without a cache to drop reads it all the same.
            drop(file_system::evict(&file));
            let mut read = Vec::new();
            let file = folder.file(name, Access::READ).map_err(at(Read))?;
            file.take(SIZE as u64 + 1)
                .read_to_end(&mut read)
                .map_err(at(Read))?;
            Ok(read == written)
        });
    let removed = folder.remove(name).map_err(at(Remove));
    done.and_then(|same| removed.map(|()| same))
}

/// Where everybody may make folders, one of this name that is not ours proves nothing: whoever made it could have the check fail.
fn is_trusted(on: &Directory, folder: &Directory) -> io::Result<()> {
    /// Others may write.
    const BY_ALL: u32 = 0o002;
    let (above, own) = (on.metadata()?, folder.metadata()?);
    if above.mode() & BY_ALL == 0 || own.uid() == process::user() {
        return Ok(());
    }
    let why = format!("{FOLDER} belongs to user {}; remove it", own.uid());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// One name a node and boot, so that one that was cut off leaves one file at most, and no other node has the same.
fn name() -> String {
    let node = std::env::var("SLURMD_NODENAME").unwrap_or_default();
    let boot = host::boot_id().unwrap_or_default();
    let boot = boot.split('-').next().unwrap_or_default();
    format!("{}.{node}.{boot}", host::name()).replace('/', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, kind: Option<&str>) -> MountCheck {
        MountCheck {
            path: path.to_owned(),
            kind: kind.map(str::to_owned),
            write: false,
            slow: Nanos::from_millis(60_000),
            room: None,
        }
    }

    #[test]
    fn a_folder_below_a_mount_is_none_and_another_kind_is_told() {
        let found = |path: &str, kind| look(&check(path, kind)).remove(0).found;
        assert_eq!(found("/proc", Some("proc")), Found::Mounted);
        assert_eq!(found("/proc/self", None), Found::NotMounted);
        let other = Found::OtherFileSystem {
            expected: "nfs4".into(),
            found: "proc".into(),
        };
        assert_eq!(found("/proc", Some("nfs4")), other);
        let Found::Refused { step, .. } = found("/nonexistent", None) else {
            panic!()
        };
        assert_eq!(step, FileStep::Open);
    }

    #[test]
    fn nothing_is_left_of_the_file() {
        let folder = std::env::temp_dir().join(format!("linerate-look-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let on = Directory::open(&folder).unwrap();
        let same = write_and_read(&on);
        let again = write_and_read(&on);
        let left = std::fs::read_dir(folder.join(FOLDER)).unwrap().count();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(matches!((same, again), (Ok(true), Ok(true))));
        assert_eq!(left, 0);
    }
}
