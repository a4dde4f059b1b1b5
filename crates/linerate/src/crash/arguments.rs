//! The command line of `linerate crash`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use linerate_model::calendar::moment;
use linerate_model::plan::values::duration;
use linerate_model::units::Nanos;
use linerate_model::watch::UnixMillis;
use linerate_storage::crash::cut::FileSystemKind;

// `linerate crash`.
#[derive(Args, Debug, Clone)]
pub(crate) struct CrashArguments {
    #[command(subcommand)]
    pub(super) command: CrashCommand,
}

#[derive(Subcommand, Debug, Clone)]
pub(super) enum CrashCommand {
    /// Find files that a power cut left empty or without their data. Exit code 1: some were found
    Scan(ScanArguments),
    /// Cut the power of file systems on an image, and show what is left of files written in different ways (as root)
    Test(TestArguments),
}

// `linerate crash scan`.
#[derive(Args, Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a switch of the command line each"
)]
pub(super) struct ScanArguments {
    /// The folder; other file systems below it are left out
    #[arg(value_name = "DIR")]
    pub(super) folder: PathBuf,
    /// Files changed since then: boot (what the last boot wrote before its end, at least 60 s), a moment such as
    /// "2026-11-25 03:40" (UTC without an offset) or @SECONDS, or a time before now such as 2h
    #[arg(long, value_name = "WHEN", default_value = "boot", value_parser = since)]
    pub(super) since: SinceWords,
    /// With --since TIME: files changed until then [default: now]
    #[arg(long, value_name = "TIME", value_parser = until)]
    pub(super) until: Option<Moment>,
    /// Read the data of files of the window as well, and report those of zeros alone
    #[arg(long)]
    pub(super) read: bool,
    /// Scan file systems that are mounted below the folder as well, except those of servers and in memory
    #[arg(long)]
    pub(super) cross_mounts: bool,
    /// Scan also where a server has the files, or memory
    #[arg(long)]
    pub(super) yes: bool,
    /// End after this time with what was found [default: none]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) limit: Option<Nanos>,
    /// List at most N files; all are counted [default: 50, with --json 100000]
    #[arg(long, value_name = "N")]
    pub(super) list: Option<usize>,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
}

// `linerate crash test`.
#[derive(Args, Debug, Clone)]
pub(super) struct TestArguments {
    /// File systems, separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "ext4,xfs,btrfs"
    )]
    pub(super) fs: Vec<FileSystemName>,
    /// Cut the power 6 to 46 s after writing as well, which takes 50 s
    #[arg(long)]
    pub(super) window: bool,
    /// Folder for the image, which has no name there; 640 MB, with --window 6 GB
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub(super) dir: PathBuf,
    /// Save the power cuts to this file as lines of JSON, which `linerate explain` reads
    #[arg(long, value_name = "FILE")]
    pub(super) keep: Option<PathBuf>,
    /// One JSON object per line, live, which `linerate explain` reads
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FileSystemName {
    Ext4,
    Xfs,
    Btrfs,
}

impl FileSystemName {
    pub(super) const fn kind(self) -> FileSystemKind {
        match self {
            Self::Ext4 => FileSystemKind::Ext4,
            Self::Xfs => FileSystemKind::Xfs,
            Self::Btrfs => FileSystemKind::Btrfs,
        }
    }
}

/// A moment, or one before now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    At(UnixMillis),
    Ago(Nanos),
}

impl Moment {
    pub(super) fn at(self, now: UnixMillis) -> UnixMillis {
        match self {
            Self::At(at) => at,
            Self::Ago(time) => UnixMillis(now.0.saturating_sub(time.0 / 1_000_000)),
        }
    }
}

/// What `--since` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SinceWords {
    Boot,
    Time(Moment),
}

fn since(text: &str) -> Result<SinceWords, String> {
    if text.eq_ignore_ascii_case("boot") {
        return Ok(SinceWords::Boot);
    }
    until(text).map(SinceWords::Time)
}

fn until(text: &str) -> Result<Moment, String> {
    let ago = || {
        let has_unit = text.ends_with(|last: char| last.is_ascii_alphabetic());
        has_unit.then(|| duration(text).ok())?.map(Moment::Ago)
    };
    moment(text).map(Moment::At).or_else(ago).ok_or_else(|| {
        "not a moment such as \"2026-11-25 03:40:12\", 2026-11-25T03:40:12+01:00 or @1795578012, and not a time before now such as 2h"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_boot_a_moment_or_a_time_before_now() {
        let now = UnixMillis(10_000_000);
        assert_eq!(since("BOOT"), Ok(SinceWords::Boot));
        let Ok(SinceWords::Time(ago)) = since("2h") else {
            panic!()
        };
        assert_eq!(ago.at(now), UnixMillis(2_800_000));
        assert_eq!(
            until("1970-01-01T00:00:01Z"),
            Ok(Moment::At(UnixMillis(1000)))
        );
        for text in ["120", "", "yesterday", "-1"] {
            assert!(since(text).is_err(), "{text}");
        }
    }
}
