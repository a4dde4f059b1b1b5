//! The two boots: a kernel with its first root file system and its command line.

use std::path::{Path, PathBuf};

use linerate_experiment::boots::Running;
use linerate_experiment::prove::Side;
use serde::{Deserialize, Serialize};

use crate::action::Failure;

/// The word of a command line that says which boot it is: `linerate.boot=ID-before`.
const MARK: &str = "linerate.boot=";
/// Words that the boot loader puts there for itself.
const OF_LOADER: [&str; 3] = ["BOOT_IMAGE=", "initrd=", MARK];

/// What a host is booted with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BootEntry {
    kernel: PathBuf,
    initrd: Option<PathBuf>,
    /// What is added to the default's command line.
    options: String,
}

/// Both, and the command line of the host's default boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entries {
    before: BootEntry,
    after: BootEntry,
    default_command_line: String,
}

impl Entries {
    /// As the user wrote them.
    pub(super) fn of(before: &str, after: &str) -> Result<Self, Failure> {
        let line = Path::new("/proc/cmdline");
        let line =
            std::fs::read_to_string(line).map_err(|error| Failure::cannot("read", line, &error))?;
        if line.contains(MARK) {
            return Err(Failure::Refused(
                "this host runs in a boot of another series: restart it first, so that its default boot is known; nothing was changed".to_owned(),
            ));
        }
        let entries = Self {
            before: BootEntry::parse(before, &exists)?,
            after: BootEntry::parse(after, &exists)?,
            default_command_line: line.trim().to_owned(),
        };
        Ok(entries)
    }

    fn side(&self, side: Side) -> &BootEntry {
        match side {
            Side::Before => &self.before,
            Side::After => &self.after,
        }
    }

    /// For people.
    pub(super) fn text(&self, side: Side) -> String {
        let entry = self.side(side);
        let options = match entry.options.as_str() {
            "" => String::new(),
            options => format!(", with {options}"),
        };
        format!("{}{options}", entry.kernel.display())
    }

    /// The arguments with which kexec loads one of them.
    pub(super) fn load(&self, side: Side, id: &str) -> Vec<String> {
        let entry = self.side(side);
        let kept = self.default_command_line.split_ascii_whitespace();
        let kept = kept.filter(|word| !OF_LOADER.iter().any(|own| word.starts_with(own)));
        let mut line: Vec<&str> = kept.collect();
        line.extend(entry.options.split_ascii_whitespace());
        let mark = format!("{MARK}{id}-{}", side.word());
        line.push(&mark);
        let mut words = vec!["-a".to_owned(), "-l".to_owned()];
        words.push(entry.kernel.display().to_string());
        words.extend(
            entry
                .initrd
                .iter()
                .map(|file| format!("--initrd={}", file.display())),
        );
        words.push(format!("--command-line={}", line.join(" ")));
        words
    }
}

fn exists(path: &Path) -> bool {
    path.is_file()
}

impl BootEntry {
    /// `/boot/vmlinuz-6.1.0-41-amd64 mitigations=off`: a kernel's image, then options; `initrd=FILE` or `initrd=none` among
    /// them names another first root file system than the one beside the kernel.
    fn parse(text: &str, exists: &dyn Fn(&Path) -> bool) -> Result<Self, Failure> {
        let mut words = text.split_ascii_whitespace();
        let kernel = words.next().map(PathBuf::from).unwrap_or_default();
        if !kernel.is_absolute() || !exists(&kernel) {
            return Err(Failure::Usage(format!(
                "'{text}' does not begin with the path of a kernel's image, such as /boot/vmlinuz-6.1.0-41-amd64"
            )));
        }
        let (named, options): (Vec<&str>, Vec<&str>) =
            words.partition(|word| word.starts_with("initrd="));
        let initrd = match named.last().and_then(|word| word.strip_prefix("initrd=")) {
            Some("none") => None,
            Some(file) => Some(PathBuf::from(file)),
            None => Some(beside(&kernel, exists).ok_or_else(|| {
                Failure::Usage(format!(
                    "no initrd is beside {}: name it with initrd=FILE, or say initrd=none",
                    kernel.display()
                ))
            })?),
        };
        if let Some(missing) = initrd.iter().find(|file| !exists(file)) {
            return Err(Failure::Usage(format!(
                "{} is no file: an initrd is named with initrd=FILE",
                missing.display()
            )));
        }
        Ok(Self {
            kernel,
            initrd,
            options: options.join(" "),
        })
    }
}

/// Where Debian, and where Fedora and SUSE put it.
fn beside(kernel: &Path, exists: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    let name = kernel.file_name()?.to_str()?;
    let version = name.strip_prefix("vmlinuz-")?;
    let names = [
        format!("initrd.img-{version}"),
        format!("initramfs-{version}.img"),
        format!("initrd-{version}"),
    ];
    let candidates = names.iter().map(|name| kernel.with_file_name(name));
    candidates.into_iter().find(|path| exists(path))
}

/// Which boot of the series with this id a command line is of.
pub(super) fn running(command_line: &str, id: &str) -> Running {
    let words = command_line.split_ascii_whitespace();
    let mark = words.filter_map(|word| word.strip_prefix(MARK)).next_back();
    let side = mark.and_then(|mark| mark.strip_prefix(id)?.strip_prefix('-'));
    [Side::Before, Side::After]
        .into_iter()
        .find(|own| side == Some(own.word()))
        .map_or(Running::Default, Running::Side)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(path: &Path) -> bool {
        [
            "/boot/vmlinuz-6.1",
            "/boot/initrd.img-6.1",
            "/boot/vmlinuz-6.6",
            "/boot/other",
        ]
        .iter()
        .any(|known| path == Path::new(known))
    }

    fn entries() -> Entries {
        let parse = |text| BootEntry::parse(text, &boot).unwrap();
        Entries {
            before: parse("/boot/vmlinuz-6.1"),
            after: parse("/boot/vmlinuz-6.6 initrd=/boot/other mitigations=off"),
            default_command_line: "BOOT_IMAGE=/vmlinuz root=/dev/vda quiet linerate.boot=old-after"
                .to_owned(),
        }
    }

    #[test]
    fn a_boot_is_loaded_with_the_default_s_command_line_and_its_own_options() {
        let entries = entries();
        assert_eq!(
            entries.load(Side::Before, "x7"),
            [
                "-a",
                "-l",
                "/boot/vmlinuz-6.1",
                "--initrd=/boot/initrd.img-6.1",
                "--command-line=root=/dev/vda quiet linerate.boot=x7-before",
            ]
        );
        let after = entries.load(Side::After, "x7");
        assert_eq!(after[3], "--initrd=/boot/other");
        assert_eq!(
            after[4],
            "--command-line=root=/dev/vda quiet mitigations=off linerate.boot=x7-after"
        );
    }

    #[test]
    fn a_command_line_tells_which_boot_of_which_series_it_is() {
        let line = |words: &str| running(words, "x7");
        assert_eq!(
            line("quiet linerate.boot=x7-after"),
            Running::Side(Side::After)
        );
        assert_eq!(
            line("linerate.boot=x7-before quiet"),
            Running::Side(Side::Before)
        );
        for other in [
            "quiet",
            "linerate.boot=x8-after",
            "linerate.boot=x7",
            "linerate.boot=x7-",
        ] {
            assert_eq!(line(other), Running::Default, "{other}");
        }
    }

    #[test]
    fn what_cannot_be_booted_is_refused() {
        for (text, said) in [
            ("", "does not begin with the path"),
            ("vmlinuz-6.1", "does not begin with the path"),
            ("/boot/vmlinuz-9", "does not begin with the path"),
            ("/boot/vmlinuz-6.6", "no initrd is beside"),
            ("/boot/vmlinuz-6.6 initrd=/x", "/x is no file"),
        ] {
            let error = BootEntry::parse(text, &boot).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let none = BootEntry::parse("/boot/vmlinuz-6.6 initrd=none", &boot).unwrap();
        assert_eq!(none.initrd, None);
    }
}
