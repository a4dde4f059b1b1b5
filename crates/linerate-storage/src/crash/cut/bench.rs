//! Makes the cuts of a plan, one after the other; those after a time stand beside each other.

use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use linerate_kernel::clock;
use linerate_kernel::loop_device::LoopDevice;
use linerate_kernel::mounts::{ShutdownKind, mount_at, own_mounts, shut_down, unmount_at};
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::process::{ChildSettings, PidFd, search_path, spawn_bound};
use linerate_kernel::{KernelError, namespace};
use linerate_model::storage::CrashRun;
use linerate_model::units::Nanos;

use super::image::Images;
use super::pattern;
use super::{Before, Cut, FileSystemKind, How};
use crate::crash::CrashError;

/// Hidden by a mount that only this process sees; the Filesystem Hierarchy Standard has it for temporary mounts.
const PLACE: &str = "/mnt";
/// A program that makes a file system takes less than a second; a disk that hangs would keep it for ever.
const MAKE_LIMIT: Nanos = Nanos(60_000_000_000);

/// Where cuts are made.
#[derive(Debug)]
pub struct Bench {
    images: Images,
    place: PathBuf,
    kernel: String,
    path: std::ffi::OsString,
    made: u64,
}

impl Bench {
    /// Takes the calling thread into a mount namespace of its own, with images in `folder`.
    ///
    /// # Errors
    /// Where it is not root, may not mount, or has no room for the images of these cuts.
    pub fn set_up(folder: &Path, cuts: &[Cut]) -> Result<Self, CrashError> {
        if !namespace::is_root() {
            return Err(CrashError::NotRoot);
        }
        let images = Images::in_folder(folder)?;
        images.check_room(room(cuts))?;
        own_mounts()?;
        let place = Path::new(PLACE);
        let place = if place.is_dir() { place } else { folder };
        mount_at(
            Path::new("linerate-crash"),
            place,
            "tmpfs",
            "size=1m,mode=0700",
        )?;
        Ok(Self {
            images,
            place: place.to_owned(),
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| String::new(), |text| text.trim().to_owned()),
            path: search_path(),
            made: 0,
        })
    }

    /// Makes the cuts, and gives each to `take` when it is done, until that says that it has enough (`false`). A cut that
    /// fails is one with an error.
    pub fn run(&mut self, cuts: &[Cut], take: &mut dyn FnMut(CrashRun) -> bool) {
        self.run_and_look(cuts, take, &mut |_, _| ());
    }

    /// The same; `look` gets the folder that is mounted again after a cut, and what its files have.
    pub fn run_and_look(
        &mut self,
        cuts: &[Cut],
        take: &mut dyn FnMut(CrashRun) -> bool,
        look: &mut dyn FnMut(&Path, &Results),
    ) {
        let is_late = |cut: &&Cut| matches!(cut.before, Before::Wait(_));
        for cut in cuts.iter().filter(|cut| !is_late(cut)) {
            let begun = clock::monotonic();
            let done = self
                .written(*cut)
                .and_then(|written| self.cut(written, look));
            if !take(self.record(*cut, begun, done)) {
                return;
            }
        }
        let mut waiting: Vec<(Cut, Nanos, Result<Written, CrashError>)> = Vec::new();
        for cut in cuts.iter().filter(is_late) {
            let written = self.written(*cut);
            waiting.push((*cut, clock::monotonic(), written));
        }
        // The plan has them in the order of their times.
        for (cut, begun, written) in waiting {
            if let (Before::Wait(time), Ok(_)) = (cut.before, &written) {
                wait_until(Nanos(begun.0.saturating_add(time.0)));
            }
            let done = written.and_then(|written| self.cut(written, look));
            if !take(self.record(cut, begun, done)) {
                return;
            }
        }
    }

    fn record(&self, cut: Cut, begun: Nanos, done: Result<Results, CrashError>) -> CrashRun {
        let took = clock::monotonic().0.saturating_sub(begun.0);
        let (results, error) = match done {
            Ok(results) => (results, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        CrashRun {
            line: 0,
            file_system: cut.file_system.name().into(),
            options: cut.options.into(),
            cut: cut.how.name().into(),
            before: (&*cut.before.name()).into(),
            took_ns: Some(Nanos((took + 5_000_000) / 10_000_000 * 10_000_000)),
            kernel: (!self.kernel.is_empty()).then(|| (&*self.kernel).into()),
            error: error.map(|error| (&*error).into()),
            results: results
                .iter()
                .map(|(name, result)| ((*name).into(), (&**result).into()))
                .collect(),
        }
    }

    /// A new file system with the files written, mounted.
    fn written(&mut self, cut: Cut) -> Result<Written, CrashError> {
        let image = self.images.make(cut.file_system.image_bytes())?;
        let device = LoopDevice::attach(&image)?;
        self.make_file_system(cut.file_system, &device)?;
        let mount = self.mount(cut, &device)?;
        // From here the mount alone has the device.
        drop(device);
        let at = |source| wrong("write files to", cut, source);
        pattern::prepare(&mount.point).map_err(at)?;
        pattern::write(&mount.point).map_err(at)?;
        if cut.before == Before::OtherFsync {
            pattern::write_synced(&mount.point).map_err(at)?;
        }
        Ok(Written { cut, image, mount })
    }

    /// Cuts the power, mounts again and looks.
    fn cut(
        &mut self,
        written: Written,
        look: &mut dyn FnMut(&Path, &Results),
    ) -> Result<Results, CrashError> {
        let Written { cut, image, mount } = written;
        let image = match cut.how {
            How::Copy => {
                let copy = self.images.copy(&image)?;
                mount.end()?;
                copy
            }
            How::Log | How::NoLog => {
                let kind = match cut.how {
                    How::Log => ShutdownKind::Log,
                    _ => ShutdownKind::NoLog,
                };
                let folder = std::fs::File::open(&mount.point)
                    .map_err(|source| wrong("open", cut, source))?;
                shut_down(&folder, kind).map_err(|source| wrong("shut down", cut, source))?;
                drop(folder);
                mount.end()?;
                image
            }
        };
        let device = LoopDevice::attach(&image)?;
        let mount = self.mount(cut, &device)?;
        drop(device);
        let with_synced = cut.before == Before::OtherFsync;
        let results = pattern::results(&mount.point, with_synced)
            .map_err(|source| wrong("read files of", cut, source))?;
        look(&mount.point, &results);
        mount.end()?;
        Ok(results)
    }

    fn mount(&mut self, cut: Cut, device: &LoopDevice) -> Result<Mounted, CrashError> {
        self.made += 1;
        let point = self.place.join(self.made.to_string());
        std::fs::create_dir(&point)
            .map_err(|source| wrong("make a mount point for", cut, source))?;
        let made = Mounted { point };
        mount_at(
            device.path(),
            &made.point,
            cut.file_system.name(),
            cut.options,
        )?;
        Ok(made)
    }

    fn make_file_system(
        &self,
        kind: FileSystemKind,
        device: &LoopDevice,
    ) -> Result<(), CrashError> {
        let (program, options, package) = kind.maker();
        let cannot = |why: String| {
            let source = io::Error::other(why);
            CrashError::Kernel(KernelError {
                operation: "make a file system with",
                object: program.to_owned(),
                source,
            })
        };
        let mut command = Command::new(program);
        command
            .args(options)
            .arg(device.path())
            .env("PATH", &self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = match spawn_bound(&mut command, &ChildSettings::default()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let why = format!("it is not installed; install the package {package}");
                return Err(cannot(why));
            }
            other => other.map_err(|error| cannot(error.to_string()))?,
        };
        let ended = PidFd::open(child.id()).and_then(|pid| {
            let mut entry = [PollEntry::new(pid.as_fd(), Interest::READ)];
            poll::wait(&mut entry, Some(MAKE_LIMIT))
        });
        if !ended.is_ok_and(|ended| ended > 0) {
            drop(child.kill());
            return Err(cannot(format!("it did not end within {MAKE_LIMIT}")));
        }
        let output = child
            .wait_with_output()
            .map_err(|error| cannot(error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(cannot(format!("{}, {}", said.trim(), output.status)))
    }
}

/// Names of files, and what each has after a cut.
pub type Results = Vec<(&'static str, String)>;

struct Written {
    cut: Cut,
    image: std::fs::File,
    mount: Mounted,
}

/// A mount that ends with this.
struct Mounted {
    point: PathBuf,
}

impl Mounted {
    /// Takes the mount away.
    fn end(self) -> Result<(), CrashError> {
        Ok(unmount_at(&self.point)?)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // After `end`, nothing is mounted any more, and the folder is in memory.
        drop(unmount_at(&self.point));
        drop(std::fs::remove_dir(&self.point));
    }
}

fn wrong(operation: &'static str, cut: Cut, source: io::Error) -> CrashError {
    CrashError::Kernel(KernelError {
        operation,
        object: cut.file_system.name().to_owned(),
        source,
    })
}

/// Bytes of all images that exist at one time.
fn room(cuts: &[Cut]) -> u64 {
    let size = |cut: &Cut| cut.file_system.image_bytes();
    let late = |cut: &&Cut| matches!(cut.before, Before::Wait(_));
    let waiting: u64 = cuts.iter().filter(late).map(size).sum();
    let largest = cuts.iter().map(size).max().unwrap_or(0);
    // One more for a copy.
    waiting.max(largest) + largest
}

fn wait_until(moment: Nanos) {
    loop {
        let now = clock::monotonic();
        let Some(left) = moment.0.checked_sub(now.0).filter(|left| *left > 0) else {
            return;
        };
        std::thread::sleep(std::time::Duration::from_nanos(left));
    }
}
