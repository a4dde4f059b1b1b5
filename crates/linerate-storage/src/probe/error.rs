//! Why there is no probe.

use std::io;
use std::path::PathBuf;

use linerate_model::units::Bytes;

/// A probe was refused, or could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The path cannot be opened as a directory.
    #[error("cannot open the directory {}: {source}", folder.display())]
    Open {
        /// The path.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The path is a device.
    #[error(
        "{} is a device: a probe writes to a new file in a directory and never to a device; name a directory on it",
        path.display()
    )]
    Device {
        /// The path.
        path: PathBuf,
    },
    /// The path is a file or something else.
    #[error("{} is not a directory: a probe makes a file of its own in a directory; name that", path.display())]
    NotDirectory {
        /// The path.
        path: PathBuf,
    },
    /// The files are in memory.
    #[error("{} is in RAM ({kind}): a probe would measure memory; name a directory on a disk", folder.display())]
    Ram {
        /// The directory.
        folder: PathBuf,
        /// What holds it.
        kind: String,
    },
    /// The files are the kernel's own.
    #[error("{} has no size ({kind}): it is not on a disk; name a directory on one", folder.display())]
    NoDisk {
        /// The directory.
        folder: PathBuf,
        /// Its kind of file system.
        kind: String,
    },
    /// The mount takes no writes.
    #[error("{} is on a read-only file system: a probe has to write; name another directory", folder.display())]
    ReadOnly {
        /// The directory.
        folder: PathBuf,
    },
    /// The files are on another host.
    #[error(
        "{} is, or may be, on another host ({kind}): a probe would load its network and its server; add --yes to do so",
        folder.display()
    )]
    Network {
        /// The directory.
        folder: PathBuf,
        /// Its kind of file system.
        kind: String,
    },
    /// Writes take room that others share.
    #[error(
        "{} is on {pool} ({device}): what is written there for the first time takes room that a probe does not give back, and where that room ends, others lose theirs; look at it by `lvs -o +data_percent`, and add --yes if there is enough",
        folder.display()
    )]
    SharedRoom {
        /// The directory.
        folder: PathBuf,
        /// What has the room.
        pool: &'static str,
        /// The device that shows it.
        device: String,
    },
    /// No useful file may be made.
    #[error(
        "{} is nearly full: of {free} free a probe takes at most a tenth and leaves 5 % of the file system and 1 GiB, so at most {most} of the {least} that it needs",
        folder.display()
    )]
    TooFull {
        /// The directory.
        folder: PathBuf,
        /// What is free.
        free: Bytes,
        /// The largest file that may be made.
        most: Bytes,
        /// The smallest that says something.
        least: Bytes,
    },
    /// A larger file was asked for than may be made.
    #[error(
        "a file of {asked} is too large for {}: a probe takes at most a tenth of what is free and leaves 5 % of the file system and 1 GiB; give --size {} or less",
        folder.display(), most.as_option()
    )]
    TooLarge {
        /// The directory.
        folder: PathBuf,
        /// The size asked for.
        asked: Bytes,
        /// The largest possible.
        most: Bytes,
    },
    /// A smaller file was asked for than says something.
    #[error("a file of {asked} is too small: the least is {least}")]
    TooSmall {
        /// The size asked for.
        asked: Bytes,
        /// The smallest possible.
        least: Bytes,
    },
    /// The file cannot be made.
    #[error("cannot make a file in {}: {source}", folder.display())]
    Make {
        /// The directory.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file system has no room, or the user's quota has none.
    #[error("cannot keep {size} for the file in {}: {source}; give a smaller --size", folder.display())]
    Allocate {
        /// The directory.
        folder: PathBuf,
        /// The size.
        size: Bytes,
        /// Why.
        source: io::Error,
    },
    /// The day's budget is used up.
    #[error(
        "today's probes wrote {written} to this disk, and its daily budget is {budget}: flash wears by writing; give a larger --budget, or probe tomorrow (UTC)"
    )]
    Budget {
        /// Written today.
        written: Bytes,
        /// What may be.
        budget: Bytes,
    },
    /// What was written today cannot be read or kept.
    #[error("cannot keep in {} how much was written today: {source}; without it there is no daily budget", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// fio cannot be run on this job file.
    #[error("{}: {why}", file.display())]
    Fio {
        /// The job file.
        file: PathBuf,
        /// What is wrong.
        why: String,
    },
}
