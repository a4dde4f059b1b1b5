//! What the machines boot from, and how fast QEMU runs here.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use linerate_testing::{Need, skipped};

/// The kernels, the first stages, the disk with Debian and the disk with the program.
#[derive(Debug)]
pub(crate) struct Images {
    folder: PathBuf,
    pub(crate) accelerator: &'static str,
}

/// A kernel of Debian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// For virtual machines: virtio, netem, VLANs.
    Cloud,
    /// For machines of metal: besides, drivers such as e1000e.
    Generic,
    /// The oldest that Debian's archive still has, for virtual machines: see [`Images::oldest`].
    Oldest,
}

impl Kernel {
    fn name(self) -> &'static str {
        match self {
            Self::Cloud => "cloud",
            Self::Generic => "generic",
            Self::Oldest => "oldest",
        }
    }
}

/// The images, made when they are not there yet; or the word that this is skipped.
pub(crate) fn images(what: &str) -> Option<&'static Images> {
    static IMAGES: OnceLock<Result<Images, String>> = OnceLock::new();
    match IMAGES.get_or_init(make) {
        Ok(images) => Some(images),
        Err(why) => {
            skipped(Need::Qemu, what, why);
            None
        }
    }
}

impl Images {
    pub(crate) fn kernel(&self, kernel: Kernel) -> PathBuf {
        self.folder.join(format!("kernel-{}", kernel.name()))
    }

    pub(crate) fn first_stage(&self, kernel: Kernel) -> PathBuf {
        self.folder.join(format!("initrd-{}", kernel.name()))
    }

    /// The disk that every machine's own one lies over.
    pub(crate) fn system(&self) -> PathBuf {
        self.folder.join("debian.ext4")
    }

    /// The oldest kernel; the reason where this machine's mirror has none that is older than its own.
    pub(crate) fn oldest(&self) -> Result<Kernel, String> {
        match std::fs::read_to_string(self.folder.join("oldest-missing")) {
            Ok(why) => Err(why.trim().to_owned()),
            Err(_) => Ok(Kernel::Oldest),
        }
    }

    /// The disk with the program under test.
    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join("program.ext4")
    }

    /// A fully static build of the program without its symbols, which guests have at
    /// `/opt/linerate/linerate-static`; the reason where there is none.
    pub(crate) fn fully_static(&self) -> Result<PathBuf, String> {
        let path = self.folder.join("program/linerate-static");
        if path.exists() {
            return Ok(path);
        }
        Err("there is no release/linerate (make release)".to_owned())
    }

    /// The program under test without its symbols, as it is on that disk.
    pub(crate) fn stripped(&self) -> PathBuf {
        self.folder.join("program/linerate")
    }
}

/// Where this build's products are.
fn products() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_linerate"));
    binary.ancestors().nth(2).unwrap().to_owned()
}

fn make() -> Result<Images, String> {
    let folder = products().join("vm");
    // Other test processes wait for the first.
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let lock = File::create(folder.join("lock")).unwrap();
    linerate_kernel::file::lock(&lock).unwrap();
    if !Path::new("/usr/bin/qemu-system-x86_64").exists() {
        return Err("QEMU is not installed (scripts/vm-deps.sh)".to_owned());
    }
    // Where QEMU's network is.
    done(Command::new("unshare").args(["--user", "--map-root-user", "--net", "--", "true"]))?;
    if !Path::new("/dev/net/tun").exists() {
        return Err("this machine has no /dev/net/tun for the guests' network".to_owned());
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/vm-images.sh");
    done(Command::new(script).arg(&folder))?;
    let images = Images {
        accelerator: accelerator(&folder),
        folder,
    };
    program(&images)?;
    Ok(images)
}

/// Puts the binary under test on a disk of its own, without its symbols.
fn program(images: &Images) -> Result<(), String> {
    let tree = images.folder.join("program");
    drop(std::fs::remove_dir_all(&tree));
    std::fs::create_dir_all(&tree).unwrap();
    let built = Path::new(env!("CARGO_BIN_EXE_linerate"));
    strip(built, &tree.join("linerate"))?;
    let released = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../release/linerate");
    let candidates = [built, released.as_path()];
    if let Some(path) = candidates.into_iter().find(|path| is_static(path)) {
        strip(path, &tree.join("linerate-static"))?;
    }
    // A new file: machines that still run keep theirs.
    let disk = images.folder.join("program.new");
    drop(std::fs::remove_file(&disk));
    ext4(&tree, &disk, 96)?;
    std::fs::rename(&disk, images.program()).unwrap();
    Ok(())
}

/// Makes an image with ext4 of what a folder holds.
pub(crate) fn ext4(tree: &Path, image: &Path, mib: u64) -> Result<(), String> {
    let path = std::env::var("PATH").unwrap_or_default();
    done(
        Command::new("mkfs.ext4")
            .env("PATH", format!("{path}:/usr/sbin:/sbin"))
            .args(["-q", "-F", "-m", "0", "-d"])
            .arg(tree)
            .arg(image)
            .arg(format!("{mib}M")),
    )
}

fn strip(from: &Path, to: &Path) -> Result<(), String> {
    done(Command::new("strip").arg("-o").arg(to).arg(from))
}

/// Whether an ELF file of 64 bits asks for no interpreter, which is what loads shared libraries.
fn is_static(path: &Path) -> bool {
    const INTERPRETER: u32 = 3;
    let Ok(bytes) = std::fs::read(path) else {
        return false;
    };
    let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    assert_eq!(bytes[..5], *b"\x7fELF\x02", "{}", path.display());
    let table = usize::try_from(u64::from_le_bytes(bytes[32..40].try_into().unwrap())).unwrap();
    let (size, count) = (usize::from(short(54)), usize::from(short(56)));
    (0..count)
        .map(|entry| table + entry * size)
        .all(|at| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) != INTERPRETER)
}

fn done(command: &mut Command) -> Result<(), String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{}: {}",
        command.get_program().display(),
        error.lines().last().unwrap_or("failed without a word")
    ))
}

/// KVM where a kernel says its first word on it in time, else QEMU's translator. A `/dev/kvm` that opens proves
/// nothing: on some machines of clouds it takes a guest and never runs it.
fn accelerator(folder: &Path) -> &'static str {
    const TRANSLATOR: &str = "tcg,thread=multi";
    const LONG: Duration = Duration::from_secs(5);
    let opens = File::options().read(true).write(true).open("/dev/kvm");
    if opens.is_err() {
        return TRANSLATOR;
    }
    let console = folder.join("kvm-console");
    drop(std::fs::remove_file(&console));
    let qemu = Command::new("qemu-system-x86_64")
        .args([
            "-nodefaults",
            "-machine",
            "q35",
            "-accel",
            "kvm",
            "-cpu",
            "max",
        ])
        .args([
            "-m",
            "256",
            "-display",
            "none",
            "-no-reboot",
            "-append",
            "console=ttyS0 panic=-1 no_timer_check",
        ])
        .arg("-kernel")
        .arg(folder.join("kernel-cloud"))
        .arg("-serial")
        .arg(format!("file:{}", console.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut qemu) = qemu else {
        return TRANSLATOR;
    };
    let started = Instant::now();
    let spoke = loop {
        let spoke = std::fs::metadata(&console).is_ok_and(|file| file.len() > 0);
        let ended = !matches!(qemu.try_wait(), Ok(None));
        if spoke || ended || started.elapsed() > LONG {
            break spoke;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    drop(qemu.kill());
    drop(qemu.wait());
    if spoke { "kvm" } else { TRANSLATOR }
}
