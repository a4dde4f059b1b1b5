//! Files that the program writes: whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use linerate_kernel::directory::{Directory, Replacement, is_same, proc_name};
use linerate_kernel::file::append_without_waiting;
use linerate_kernel::process;

use crate::action::Failure;

/// What a file is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The record of a run.
    Record,
    /// A run's report, in the form of this option without its dashes.
    Report(&'static str),
    /// Power cuts, a line of JSON each.
    PowerCuts,
}

impl Kept {
    fn name(self) -> String {
        match self {
            Self::Record => "keep the record in".to_owned(),
            Self::Report(form) => format!("write the report (--{form}) to"),
            Self::PowerCuts => "keep the power cuts in".to_owned(),
        }
    }

    /// What there is all the same.
    fn left(self) -> String {
        match self {
            Self::Record => {
                "the report on standard output is complete; another run with --json prints the samples too".to_owned()
            }
            Self::PowerCuts => "another run with --json prints them".to_owned(),
            Self::Report(form) => format!(
                "no measurement is lost, and `linerate show RECORD --{form} FILE` makes it from a saved record"
            ),
        }
    }
}

/// A file that is written whole or not at all. It is made before what it is to hold is there, so that nothing that was
/// measured is lost to a wrong path, and grows under a random name ([`Replacement`]), so that an older one is replaced
/// at once.
///
/// What holds where others may write as well, for root in `/tmp`: nothing is written into a file that another user has
/// made there, and no link is followed but by the kernel, by its rules (`fs.protected_symlinks`). In the last place a
/// link is refused where those rules refuse it, also on a kernel that has them off, and root follows none in a
/// folder without the sticky bit that anybody may write to. A link stays a link: the kernel opens its target (or makes
/// it, as `O_CREAT` does), and the new file replaces that, in the directory in which the kernel has found it.
/// What does not hold: who owns a folder on the way decides where it leads.
pub(crate) struct Keep {
    what: Kept,
    path: PathBuf,
    sink: Sink,
}

/// Where the bytes go.
enum Sink {
    /// A device or a pipe, or where this program's own output goes: written as it stands, since renaming over it would
    /// replace it.
    AsItStands(File),
    /// A regular file: the new one, and the name that it takes; none once it was written.
    Replaced(Option<(Replacement, OsString)>),
}

impl Keep {
    pub(crate) fn open(path: &Path, what: Kept) -> Result<Self, Failure> {
        let sink = Sink::of(path).map_err(|error| Failure::cannot(&what.name(), path, &error))?;
        let path = path.to_path_buf();
        Ok(Self { what, path, sink })
    }

    /// Whether it is a regular file, which can be written a second time.
    pub(crate) fn is_replaced_at_once(&self) -> bool {
        matches!(self.sink, Sink::Replaced(_))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = match &mut self.sink {
            Sink::AsItStands(file) => file.write_all(bytes),
            Sink::Replaced(new) => new.take().map_or(Ok(()), |(mut new, name)| {
                new.file().write_all(bytes)?;
                new.take(&name)
            }),
        };
        written.map_err(|error| {
            let why = format!("{error}; {}", self.what.left());
            Failure::cannot(&self.what.name(), &self.path, &why)
        })
    }
}

/// Puts a file there, whole or not at all; a link of that name is replaced, not followed.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, |file| file.write_all(bytes))
}

/// The same with what `write` writes.
pub(crate) fn replace_with(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let (folder, name) = parts(path)?;
    let mut new = Replacement::begin(folder, NEW_FILE)?;
    write(new.file())?;
    new.take(name)
}

/// The folder of a path, opened by the kernel, and the last name.
fn parts(path: &Path) -> io::Result<(Directory, &OsStr)> {
    let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
    let folder = Directory::open(path.parent().unwrap_or(Path::new("")))?;
    Ok((folder, name))
}

impl Sink {
    fn of(path: &Path) -> io::Result<Self> {
        let (folder, name) = parts(path)?;
        let there = match folder.look(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Self::begin(folder, name);
            }
            other => other?,
        };
        if !there.metadata()?.is_symlink() {
            return match as_it_stands(&there)? {
                Some(file) => Ok(Self::AsItStands(file)),
                None => Self::begin(folder, name),
            };
        }
        refuse_foreign_link(&folder, &there)?;
        let (found, is_new) = match folder.look_behind_links(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                (folder.make_behind_links(name)?, true)
            }
            other => (other?, false),
        };
        if let Some(file) = as_it_stands(&found)? {
            return Ok(Self::AsItStands(file));
        }
        let (folder, name) = place_of(&found)?;
        if is_new {
            // It was made to learn where the kernel makes it; until it is whole there is none.
            folder.remove(&name)?;
        }
        Self::begin(folder, &name)
    }

    fn begin(folder: Directory, name: &OsStr) -> io::Result<Self> {
        let new = Replacement::begin(folder, NEW_FILE)?;
        Ok(Self::Replaced(Some((new, name.to_owned()))))
    }
}

/// The mode of a new file; the umask takes bits away.
const NEW_FILE: u32 = 0o666;
/// Anybody may write; only owners may rename and remove.
const ANYBODY: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Refuses a link that another user may have made, or may exchange, to have this program write elsewhere. In sticky
/// folders it is the kernel's rule (`fs.protected_symlinks` in proc(5)).
fn refuse_foreign_link(folder: &Directory, link: &File) -> io::Result<()> {
    let (folder, link, user) = (folder.metadata()?, link.metadata()?, process::user());
    let is_refused = match (folder.mode() & ANYBODY, folder.mode() & STICKY) {
        (0, _) => false,
        (_, 0) => user == 0,
        _ => link.uid() != user && link.uid() != folder.uid(),
    };
    if !is_refused {
        return Ok(());
    }
    Err(io::Error::new(
        ErrorKind::PermissionDenied,
        "it is a symbolic link in a folder that anybody may write to, so another user can choose the file that it leads to; name that file itself, or another one",
    ))
}

/// The directory that a file is in, and its name there.
fn place_of(file: &File) -> io::Result<(Directory, OsString)> {
    let path = Directory::path_of(file)?;
    let moved = || {
        let why = format!(
            "the link leads to {}, which is not there any more; name the file itself",
            path.display()
        );
        io::Error::new(ErrorKind::NotFound, why)
    };
    let (folder, name) = path.parent().zip(path.file_name()).ok_or_else(moved)?;
    let folder = Directory::open_no_link(folder)?;
    // Somebody may have moved it meanwhile.
    let now = folder.look(name).map_err(|_| moved())?;
    if is_same(&now, file)? {
        Ok((folder, name.to_owned()))
    } else {
        Err(moved())
    }
}

/// What was found, open to be written, where that is no regular file, or the one that standard output or error goes to:
/// then by the same descriptor, so that neither overwrites the other.
fn as_it_stands(found: &File) -> io::Result<Option<File>> {
    let outputs = [
        io::stdout().as_fd().try_clone_to_owned(),
        io::stderr().as_fd().try_clone_to_owned(),
    ];
    // A closed one is none.
    for output in outputs.into_iter().flatten().map(File::from) {
        if is_same(&output, found)? {
            return Ok(Some(output));
        }
    }
    if found.metadata()?.is_file() {
        return Ok(None);
    }
    // What was looked at, whatever has its name by now.
    append_without_waiting(&proc_name(found.as_fd())).map(Some)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};

    use linerate_testing::{Need, skipped};
    use tempfile::TempDir;

    use super::*;

    /// A user that is not this one.
    const OTHER: u32 = 65_534;

    /// A folder that is removed at the end.
    struct Folder(TempDir);

    impl Folder {
        fn new(mode: u32) -> Self {
            let path = TempDir::new().unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Self(path)
        }

        fn file(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn keep(&self, name: &str) -> Result<(), String> {
            let written =
                Keep::open(&self.file(name), Kept::Record).and_then(|mut keep| keep.write(b"ours"));
            written.map_err(|failure| failure.to_string())
        }

        fn text(&self, name: &str) -> String {
            fs::read_to_string(self.file(name)).unwrap()
        }
    }

    #[test]
    fn a_link_stays_a_link_and_nothing_is_left_beside_it() {
        let folder = Folder::new(0o755);
        fs::create_dir(folder.file("far")).unwrap();
        fs::write(folder.file("far/file"), "old").unwrap();
        symlink("far/file", folder.file("one")).unwrap();
        symlink("one", folder.file("two")).unwrap();
        symlink("far/new", folder.file("early")).unwrap();
        symlink("none/new", folder.file("nowhere")).unwrap();
        for name in ["two", "early", "plain"] {
            folder.keep(name).unwrap();
            folder.keep(name).unwrap();
            assert_eq!(folder.text(name), "ours", "{name}");
        }
        // What is given up leaves what was there, also behind a link to nothing.
        fs::remove_file(folder.file("far/new")).unwrap();
        drop(Keep::open(&folder.file("early"), Kept::Record).unwrap());
        assert!(!folder.file("far/new").exists());
        assert!(folder.keep("nowhere").unwrap_err().contains("No such file"));
        for name in ["one", "two", "early", "nowhere"] {
            assert!(folder.file(name).is_symlink(), "{name}");
        }
        let names = |folder: &Path| fs::read_dir(folder).unwrap().count();
        assert_eq!((names(folder.0.path()), names(&folder.file("far"))), (6, 1));
    }

    #[test]
    fn a_link_of_another_user_in_a_folder_of_everybody_is_refused() {
        let folder = Folder::new(0o1777);
        let secret = Folder::new(0o755);
        fs::write(secret.file("file"), "theirs").unwrap();
        let target = secret.file("file");
        symlink(&target, folder.file("own")).unwrap();
        symlink(&target, folder.file("foreign")).unwrap();
        symlink(secret.file("new"), folder.file("dangling")).unwrap();
        let lent = ["foreign", "dangling"].map(|name| {
            lchown(folder.file(name), Some(OTHER), None)
                .and_then(|()| lchown(&folder.0, Some(OTHER - 1), None))
        });
        if let Some(error) = lent.into_iter().find_map(Result::err) {
            return skipped(Need::Root, "links of another user", &error.to_string());
        }
        for name in ["foreign", "dangling"] {
            let error = folder.keep(name).unwrap_err();
            assert!(error.contains("name that file itself"), "{error}");
        }
        assert_eq!(secret.text("file"), "theirs");
        assert!(!secret.file("new").exists());
        folder.keep("own").unwrap();
        assert_eq!(secret.text("file"), "ours");
        // Without the sticky bit others can exchange root's own link as well.
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(folder.keep("own").is_err());
        folder.keep("plain").unwrap();
    }
}
