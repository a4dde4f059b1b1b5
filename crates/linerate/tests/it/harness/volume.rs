//! Loop devices on files, and file systems on them whose disk is as slow as a test wants it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_kernel::namespace::is_root;
use linerate_testing::Need;
use tempfile::TempDir;

use super::copies::Limit;
use super::{LONG, run};

/// The limits of all processes that are in no group of their own, and of the kernel's writing (control groups 1).
const THROTTLE: &str = "/sys/fs/cgroup/blkio";

/// A loop device on a file, which goes with this value.
pub(crate) struct Loop {
    pub(crate) device: String,
    pub(crate) file: PathBuf,
}

impl Loop {
    pub(crate) fn new(file: PathBuf, mib: u64) -> Result<Self, String> {
        let made = fs::File::create(&file).and_then(|made| made.set_len(mib << 20));
        made.map_err(|error| error.to_string())?;
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show", "--direct-io=on"]);
        let done = run(losetup.arg(&file), LONG);
        if done.code() != Some(0) {
            return Err(done.error);
        }
        let device = done.out.trim().to_owned();
        Ok(Self { device, file })
    }

    pub(crate) fn name(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        drop(run(
            Command::new("losetup").args(["-d", &self.device]),
            LONG,
        ));
        drop(fs::remove_file(&self.file));
    }
}

/// ext4 on a loop device, which goes with this value.
pub(crate) struct Volume {
    number: String,
    at: TempDir,
    /// Goes after its mount.
    device: Loop,
}

impl Volume {
    /// One of so many MiB in a folder; what there is not, and why.
    pub(crate) fn new(folder: &Path, mib: u64) -> Result<Self, (Need, String)> {
        if !is_root() {
            return Err((Need::LoopDevices, "not root".to_owned()));
        }
        // The limits of a group hold for those in it alone.
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        if !groups.lines().any(|line| line.ends_with(":blkio:/")) {
            let why = "this process is not in the root group of blkio (control groups 1)";
            return Err((Need::Throttle, why.to_owned()));
        }
        Self::made(folder, mib).map_err(|why| (Need::LoopDevices, why))
    }

    fn made(folder: &Path, mib: u64) -> Result<Self, String> {
        let at = TempDir::with_prefix_in("volume-", folder).map_err(|error| error.to_string())?;
        let device = Loop::new(at.path().with_extension("image"), mib)?;
        let numbers = fs::read_to_string(format!("/sys/class/block/{}/dev", device.name()));
        let number = numbers
            .map_err(|error| error.to_string())?
            .trim()
            .to_owned();
        let mut make = Command::new("mkfs.ext4");
        let made = run(make.args(["-q", "-m", "0", &device.device]), LONG);
        if made.code() != Some(0) {
            return Err(made.error);
        }
        let volume = Self { number, at, device };
        volume.mount()?;
        // What an earlier run left when it was killed.
        volume.lift().map_err(|error| error.to_string())?;
        Ok(volume)
    }

    fn mount(&self) -> Result<(), String> {
        let mut mount = Command::new("mount");
        let done = run(mount.arg(&self.device.device).arg(self.path()), LONG);
        if done.code() == Some(0) {
            Ok(())
        } else {
            Err(done.error)
        }
    }

    fn unmount(&self) {
        drop(run(Command::new("umount").arg(self.path()), LONG));
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> &Path {
        self.at.path()
    }

    /// Forgets what memory holds of it, names included.
    pub(crate) fn forget(&self) {
        self.unmount();
        self.mount().unwrap();
    }

    /// Makes its disk slow until the value that is returned is dropped. A process that waits for a disk cannot be killed, so that
    /// value is to be made after the processes that use it.
    pub(crate) fn slow(&self, limits: &[Limit]) -> std::io::Result<Slow<'_>> {
        let slow = Slow(self);
        limits.iter().try_for_each(|limit| self.limit(*limit))?;
        Ok(slow)
    }

    fn limit(&self, limit: Limit) -> std::io::Result<()> {
        let (file, amount) = match limit {
            Limit::Read(bytes) => ("read_bps", bytes),
            Limit::Write(bytes) => ("write_bps", bytes),
            Limit::Reads(number) => ("read_iops", number),
            Limit::Writes(number) => ("write_iops", number),
        };
        let file = format!("{THROTTLE}/blkio.throttle.{file}_device");
        fs::write(file, format!("{} {amount}", self.number))
    }

    /// Makes its disk as fast as it is.
    fn lift(&self) -> std::io::Result<()> {
        use Limit::{Read, Reads, Write, Writes};
        let all = [Read(0), Write(0), Reads(0), Writes(0)];
        all.into_iter().try_for_each(|limit| self.limit(limit))
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        self.unmount();
    }
}

/// A disk is slow while this lives.
pub(crate) struct Slow<'a>(&'a Volume);

impl Drop for Slow<'_> {
    fn drop(&mut self) {
        drop(self.0.lift());
    }
}
