//! How linerate gets onto a host: a POSIX shell script that finds the binary by its SHA-256, or takes it from standard
//! input, and starts the agent.
//!
//! The script is one line without single quotes and exclamation marks, so that every login shell passes it on
//! unchanged, and writes lines that begin with [`MARK`]. What else a host's start-up files write before is passed over.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};
use linerate_model::hexadecimal;

/// How the script's lines begin.
const MARK: &str = "linerate-bootstrap: ";
/// sudo's prompt on standard error.
pub(crate) const PROMPT: &str = "linerate-bootstrap-password:";

/// A linerate for one architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    path: PathBuf,
    arch: String,
    size: u64,
    sha256: String,
}

impl Binary {
    /// Reads a binary to know its size and SHA-256. `arch` is what `uname -m` prints where it runs.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn read(path: &Path, arch: &str) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut context = Context::new(&SHA256);
        let mut piece = vec![0; 64 << 10];
        let mut size = 0;
        // It ends with the file.
        loop {
            let length = file.read(&mut piece)?;
            if length == 0 {
                break;
            }
            context.update(&piece[..length]);
            size += length as u64;
        }
        let sha256 = hexadecimal::digits(context.finish().as_ref());
        Ok(Self {
            path: path.to_owned(),
            arch: arch.to_owned(),
            size,
            sha256,
        })
    }

    /// `x86_64`, `aarch64`.
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// Its length, bytes.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn open(&self) -> io::Result<File> {
        File::open(&self.path)
    }
}

/// The binaries that can be sent: this program, and those for other architectures beside it.
///
/// # Errors
/// Those of reading this program.
pub fn binaries() -> io::Result<Vec<Binary>> {
    let ours = std::env::consts::ARCH;
    // The file that runs, even where it was replaced since.
    let mut found = vec![Binary::read(Path::new("/proc/self/exe"), ours)?];
    let beside = std::env::current_exe().ok();
    for entry in beside
        .as_deref()
        .and_then(Path::parent)
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
    {
        let name = entry.file_name();
        let arch = name
            .to_str()
            .and_then(|name| name.strip_prefix("linerate-"));
        let known = |arch: &&str| ["aarch64", "x86_64"].contains(arch) && *arch != ours;
        if let Some(arch) = arch.filter(known) {
            found.push(Binary::read(&entry.path(), arch)?);
        }
    }
    Ok(found)
}

/// The script that finds or takes one of the binaries and starts the agent, with sudo where `elevated`.
pub(crate) fn script(binaries: &[Binary], elevated: bool) -> String {
    let mut cases = String::new();
    for binary in binaries {
        let Binary {
            arch, size, sha256, ..
        } = binary;
        let _ = write!(cases, "{arch}) h={sha256}; s={size};; ");
    }
    let start = if elevated { ELEVATED } else { "" };
    let body = format!(
        "{FUNCTIONS} m=$(uname -m); case \"$m\" in {cases}*) die \"its architecture is $m: put a linerate built for it \
         beside linerate, named linerate-$m\";; esac; u=$(id -u); {DIRECTORIES} {FIND} {TAKE} {start} say start; \
         exec \"$f\" agent --stdio --hash \"$h\"; die \"cannot start $f\"",
    );
    // The login shell may be any; this one is POSIX's.
    format!("exec /bin/sh -c '{body}'")
}

const FUNCTIONS: &str = concat!(
    "say() { printf \"linerate-bootstrap: %s\\n\" \"$*\"; }; die() { say \"error $*\"; exit 1; }; ",
    // The SHA-256 of a file, by whichever program there is.
    "sum() { set -- $(sha256sum <\"$1\" 2>/dev/null || shasum -a 256 <\"$1\" 2>/dev/null || ",
    "openssl dgst -sha256 -r <\"$1\" 2>/dev/null); printf \"%s\" \"$1\"; }; ",
    // Whether a file has the size of the binary.
    "whole() { test -f \"$1\" && test \"$(wc -c <\"$1\")\" -eq \"$s\"; }; ",
    // Whether it starts here: a folder may be mounted noexec.
    "starts() { \"$1\" --version >/dev/null 2>&1; }; ",
    // Whether nobody but its owner can write to a folder or file, which is no link.
    "closed() { case \"$(ls -ld \"$1\" 2>/dev/null)\" in [d-]????-??-*) ;; *) false;; esac; }; ",
);

/// Where the binary may be, the first that works.
const DIRECTORIES: &str = "set -- \"${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/linerate\" \"/var/tmp/linerate-$u\" \
                           \"/dev/shm/linerate-$u\";";

/// Finds the binary: in a folder that is this user's alone, where it was verified before it got its name, or an installed
/// linerate that is the same by its hash. Nothing runs before that is known.
const FIND: &str = concat!(
    "f=; for d in \"$@\"; do b=$d/linerate-$h; ",
    "if closed \"$d\" && test -O \"$d\"; then :; else continue; fi; ",
    "if test -L \"$b\"; then continue; fi; ",
    // Without -c, touch opens it for writing, and another host that shares the folder cannot start it at that moment.
    "if test -O \"$b\" && closed \"$b\" && whole \"$b\" && starts \"$b\"; then f=$b; touch -c \"$b\" 2>/dev/null; break; fi; done; ",
    "if test -z \"$f\"; then b=$(command -v linerate); ",
    "if test -n \"$b\" && whole \"$b\" && test \"$(sum \"$b\")\" = \"$h\" && starts \"$b\"; then f=$b; fi; fi;",
);

/// Takes the binary from standard input into the first folder that has room and lets programs run.
const TAKE: &str = concat!(
    // Nobody may read what it says any more: the pipe's signal, too, ends it with its traps.
    "if test -z \"$f\"; then why=; t=; trap \"rm -f \\\"\\$t\\\"; rmdir \\\"\\$d\\\" 2>/dev/null\" EXIT; ",
    "trap \"exit 1\" HUP INT TERM PIPE; ",
    "test -n \"$(sum /dev/null)\" || die \"it has none of sha256sum, shasum and openssl to verify linerate with\"; ",
    "for d in \"$@\"; do ",
    "(umask 077; mkdir -p \"$d\") 2>/dev/null; ",
    "if test -L \"$d\"; then why=\"$why; $d is a link\"; continue; fi; ",
    "if test -d \"$d\"; then :; else why=\"$why; $d cannot be made\"; continue; fi; ",
    "if test -O \"$d\"; then :; else why=\"$why; $d is not its own\"; continue; fi; ",
    "if closed \"$d\"; then :; else why=\"$why; others can write to $d\"; continue; fi; ",
    // Hosts may share the folder, and a process of each may have this number.
    "t=$(mktemp \"$d/part-XXXXXX\" 2>/dev/null) || t=$d/part-$(uname -n)-$$; ",
    // A script that does nothing tells a folder that is full or read-only from one that is mounted noexec.
    "if (printf \"#\\041/bin/sh\\nexit 0\\n\" >\"$t\" && chmod 700 \"$t\") 2>/dev/null && test -s \"$t\"; then :; ",
    "else rm -f \"$t\"; why=\"$why; $d cannot be written or is full\"; continue; fi; ",
    "if \"$t\" 2>/dev/null; then :; else rm -f \"$t\"; why=\"$why; $d is mounted noexec\"; continue; fi; ",
    "k=$(df -Pk \"$d\" 2>/dev/null | tail -n 1 | { read -r a b c k e; printf \"%s\" \"$k\"; }); ",
    "if test \"${k:-$s}\" -lt $((s / 1024 + 64)) 2>/dev/null; then rm -f \"$t\"; why=\"$why; $d is full\"; continue; fi; ",
    "say \"want $m\"; ",
    // All of it is read whatever becomes of the file: the next folder is asked for it again.
    "head -c \"$s\" | { cat >\"$t\" 2>/dev/null || cat >/dev/null; }; ",
    "if test \"$(sum \"$t\")\" = \"$h\"; then :; else rm -f \"$t\"; why=\"$why; $d did not take all of it\"; continue; fi; ",
    "chmod 700 \"$t\"; ",
    "if \"$t\" --version >/dev/null 2>&1; then :; else die \"linerate does not start there: $(\"$t\" --version 2>&1 | ",
    "head -n 1)\"; fi; ",
    "find \"$d\" -type f -mtime +30 -exec rm -f {} + 2>/dev/null; ",
    "if mv -f \"$t\" \"$d/linerate-$h\"; then f=$d/linerate-$h; t=; break; fi; done; ",
    "test -n \"$f\" || die \"no folder there can keep linerate: ${why#; }\"; fi;",
);

/// Starts the agent as root.
const ELEVATED: &str = concat!(
    "if test \"$u\" -ne 0; then command -v sudo >/dev/null 2>&1 || die \"sudo is not installed there\"; ",
    "if sudo -n \"$f\" --version </dev/null >/dev/null 2>&1; then say start; ",
    "exec sudo -n \"$f\" agent --stdio --hash \"$h\"; fi; ",
    "say password; exec sudo -S -p linerate-bootstrap-password: \"$f\" agent --stdio --hash \"$h\"; fi;",
);

/// A line of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// It wants the binary for this architecture.
    Want(String),
    /// sudo wants a password.
    Password,
    /// The agent's frames follow.
    Start,
    /// The host cannot run linerate, and why.
    Error(String),
}

impl Line {
    /// Reads a line; `None` for one that is not the script's.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let line = String::from_utf8_lossy(line);
        let (_, said) = line.trim_end().split_once(MARK)?;
        let (verb, rest) = said.split_once(' ').unwrap_or((said, ""));
        Some(match verb {
            "want" => Self::Want(rest.to_owned()),
            "password" => Self::Password,
            "start" => Self::Start,
            "error" => Self::Error(rest.to_owned()),
            _ => Self::Error(format!("its script says `{said}`")),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_binary_is_known_by_its_size_and_hash() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"abc").unwrap();
        let binary = Binary::read(file.path(), "x86_64").unwrap();
        // FIPS 180-2, appendix B.1.
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((binary.size, binary.sha256.as_str()), (3, known));
    }

    #[test]
    fn any_shell_passes_the_script_on() {
        for elevated in [false, true] {
            let script = script(&binaries().unwrap(), elevated);
            let body = script
                .strip_prefix("exec /bin/sh -c '")
                .and_then(|rest| rest.strip_suffix('\''))
                .unwrap();
            assert!(!body.contains(['\'', '!', '\n']), "{body}");
            let checked = std::process::Command::new("sh")
                .args(["-n", "-c", body])
                .output()
                .unwrap();
            assert!(checked.status.success(), "{checked:?}");
        }
    }

    /// What the script finds after `prepare` made the folder `$d` and the file `$b` of `ran` bytes and a hash.
    fn found(prepare: &str) -> (String, bool) {
        let scene = tempfile::tempdir().unwrap();
        // The shell writes the programs: a file that this process writes may be busy in a child of another thread.
        let text = format!(
            "umask 077; program() {{ printf \"#!/bin/sh\\n: >ran; # %s\\n\" \"$2\" >\"$1\"; chmod 700 \"$1\"; }}; \
             {FUNCTIONS} program good good; s=$(wc -c <good); h=$(sum good); here=$PWD; d=$here/own; mkdir \"$d\"; \
             b=$d/linerate-$h; PATH=$here/path:$PATH; mkdir path; {prepare}; set -- \"$d\"; {FIND} printf %s \"$f\""
        );
        let done = std::process::Command::new("sh")
            .args(["-c", &text])
            .current_dir(scene.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{prepare}: {done:?}");
        let found = String::from_utf8(done.stdout).unwrap();
        let found = found.replace(scene.path().to_str().unwrap(), "");
        (found, scene.path().join("ran").exists())
    }

    #[test]
    fn only_what_nobody_else_can_write_or_has_the_hash_is_run() {
        let (file, ran) = found("program \"$b\" good");
        assert!(file.starts_with("/own/linerate-") && ran, "{file}");
        let installed = ("/path/linerate".to_owned(), true);
        assert_eq!(found("program path/linerate good"), installed);
        let nothing = (String::new(), false);
        for foreign in [
            // Of another length, and of the same.
            "program \"$b\" mischief",
            "program path/linerate evil",
            "program \"$b\" good; chmod 770 \"$b\"",
            "program \"$b\" good; mv own real; ln -s real own",
            "program \"$b\" good; chmod 770 own",
            "program \"$b\" good; chmod 1707 own",
            "mv good real; ln -s \"$PWD/real\" \"$b\"",
        ] {
            assert_eq!(found(foreign), nothing, "{foreign}");
        }
    }

    #[test]
    fn the_time_of_a_found_binary_is_renewed_without_writing_to_it() {
        let prepare = r##"program "$b" good; touch -d 2001-01-01 "$b"; touch -d 2002-01-01 good;
            trap 'test "$b" -nt good || printf " is old"' EXIT; real=$(command -v touch);
            printf "#!/bin/sh\ntest \"\$1\" = -c && exec $real \"\$@\"\n" >path/touch; chmod 700 path/touch; hash -r"##;
        let (file, ran) = found(prepare);
        assert!(file.starts_with("/own/linerate-") && ran, "{file}");
        assert!(!file.ends_with(" is old"), "{file}");
    }

    #[test]
    fn lines_are_told_from_what_else_a_host_prints() {
        assert_eq!(Line::read(b"Welcome to node01!\n"), None);
        assert_eq!(Line::read(b""), None);
        let read = |line: &str| Line::read(line.as_bytes()).unwrap();
        assert_eq!(read("linerate-bootstrap: start\n"), Line::Start);
        // A start-up file wrote something without a line end before.
        assert_eq!(read("hi linerate-bootstrap: password\r\n"), Line::Password);
        assert_eq!(
            read("linerate-bootstrap: want x86_64\n"),
            Line::Want("x86_64".to_owned())
        );
        assert_eq!(
            read("linerate-bootstrap: error no room\n"),
            Line::Error("no room".to_owned())
        );
        assert!(matches!(read("linerate-bootstrap: dance"), Line::Error(_)));
    }
}
