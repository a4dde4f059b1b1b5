//! A run's report as files: `--html`, `--svg` and the other forms that the report has.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use linerate_analysis::evidence::Evidence;
use linerate_report::chart::Charts;
use linerate_report::file_format::{FILE_FORMATS, FileFormat};
use linerate_report::html::Sheet;
use linerate_report::view::RunView;

use crate::action::Failure;
use crate::keep::{Keep, Kept};

/// The files that were asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReportFiles(Vec<(&'static FileFormat, PathBuf)>);

impl ReportFiles {
    /// Whether none was asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each option with its file.
    pub(crate) fn options(&self) -> impl Iterator<Item = (String, &Path)> {
        let files = self.0.iter();
        files.map(|(format, path)| (option(format), path.as_path()))
    }

    /// Refuses files of what has none yet.
    pub(crate) fn refuse(&self, what: &str) -> Result<(), Failure> {
        let named: Vec<String> = FILE_FORMATS.iter().map(option).collect();
        if self.is_empty() {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{} are made of a test; {what} is shown as text, --json or --json-stream",
            named.join(", ")
        )))
    }
}

impl Args for ReportFiles {
    fn augment_args(command: Command) -> Command {
        command.args(FILE_FORMATS.iter().map(|format| {
            Arg::new(format.name)
                .long(format.name)
                .help(format.help)
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ReportFiles {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let asked = FILE_FORMATS
            .iter()
            .filter_map(|format| Some((format, matches.get_one::<PathBuf>(format.name)?.clone())));
        Ok(Self(asked.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn option(format: &FileFormat) -> String {
    format!("--{}", format.name)
}

/// The files, made before a test is run for them.
pub(crate) struct OpenFiles {
    files: Vec<(&'static FileFormat, Keep)>,
    record_file: Option<PathBuf>,
}

impl OpenFiles {
    /// Makes the files; `record_file` is where the record is kept.
    pub(crate) fn open(asked: &ReportFiles, record_file: Option<&Path>) -> Result<Self, Failure> {
        let mut named: Vec<(String, &Path)> = asked.options().collect();
        named.extend(record_file.map(|path| ("the record".to_owned(), path)));
        refuse_one_file_for_two(&named)?;
        let opened = asked
            .0
            .iter()
            .map(|(format, path)| Ok((*format, Keep::open(path, Kept::Report(format.name))?)));
        Ok(Self {
            files: opened.collect::<Result<_, Failure>>()?,
            record_file: record_file.map(Path::to_path_buf),
        })
    }

    /// Writes the run's report into each.
    pub(crate) fn write(&mut self, view: &RunView, evidence: &Evidence<'_>) -> Result<(), Failure> {
        if self.files.is_empty() {
            return Ok(());
        }
        let kept = self
            .record_file
            .as_ref()
            .map(|path| path.display().to_string());
        let sheet = Sheet {
            view,
            charts: &Charts::of(view, evidence),
            kept: kept.as_deref(),
        };
        for (format, file) in &mut self.files {
            file.write((format.make)(&sheet).as_bytes())?;
        }
        Ok(())
    }
}

/// A second thing written to a file would replace the first, be it the record that a report is made of.
pub(crate) fn refuse_one_file_for_two(files: &[(String, &Path)]) -> Result<(), Failure> {
    for (at, (name, path)) in files.iter().enumerate() {
        if let Some((other, _)) = files[..at]
            .iter()
            .find(|(_, other)| is_same_file(other, path))
        {
            return Err(Failure::Usage(format!(
                "{name} and {other} would be one file, {}, and replace each other: name another",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Whether both are one regular file, or will be; a device or a pipe can take what comes after one another.
fn is_same_file(one: &Path, other: &Path) -> bool {
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) => {
            one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino())
        }
        (Err(_), Err(_)) => one == other,
        _ => false,
    }
}
