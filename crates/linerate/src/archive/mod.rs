//! `linerate archive`: an archive of regular tests, from outside. A hub may use it at the same time.

pub(crate) mod arguments;
mod figures;
mod words;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use linerate_archive::{Archive, ArchiveError, Recomputed, Retention, RunFilter};
use linerate_kernel::directory::{Directory, Replacement};
use linerate_model::watch::UnixMillis;
use linerate_report::watch_figures;
use serde::Serialize;

use crate::action::Failure;
use crate::place::unix_ms;
use crate::printer::Printer;
use arguments::{
    ArchiveArguments, ArchiveCommand, BackupArguments, ExportArguments, FolderArguments,
};

const DAY: u64 = 24 * 60 * 60 * 1000;

pub(crate) fn run(arguments: &ArchiveArguments, printer: &Printer) -> Result<(), Failure> {
    match &arguments.command {
        ArchiveCommand::Verify(arguments) => verify(arguments, printer),
        ArchiveCommand::Export(arguments) => export(arguments, printer),
        ArchiveCommand::Forecast(arguments) => forecast(arguments, printer),
        ArchiveCommand::Recompute(arguments) => recompute(arguments, printer),
        ArchiveCommand::Backup(arguments) => backup(arguments, printer),
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        Self::File(error.to_string())
    }
}

fn verify(arguments: &FolderArguments, printer: &Printer) -> Result<(), Failure> {
    let found = Archive::open_existing(&arguments.folder)?.verify()?;
    printer.outcome(arguments.json, ("archive-verify", &found), || {
        words::verification(&found)
    })?;
    if found.is_sound() {
        return Ok(());
    }
    Err(Failure::Missed(
        "the archive is damaged, as listed above; restore what is missing from a backup".to_owned(),
    ))
}

fn forecast(arguments: &FolderArguments, printer: &Printer) -> Result<(), Failure> {
    let archive = Archive::open_existing(&arguments.folder)?;
    let rules = Retention::default();
    let now = UnixMillis(unix_ms());
    let forecast = archive.forecast(now, &rules)?;
    printer.outcome(arguments.json, ("archive-forecast", &forecast), || {
        words::forecast(&forecast, now, &rules)
    })?;
    Ok(())
}

fn recompute(arguments: &FolderArguments, printer: &Printer) -> Result<(), Failure> {
    /// With the version, which the archive's own answer does not repeat.
    #[derive(Serialize)]
    struct Document<'a> {
        version: u32,
        #[serde(flatten)]
        done: &'a Recomputed,
    }
    let version = watch_figures::VERSION;
    let archive = Archive::open_existing(&arguments.folder)?;
    let done = archive.recompute(version, |_, json| figures::of(json))?;
    let document = Document {
        version,
        done: &done,
    };
    printer.outcome(arguments.json, ("archive-recompute", &document), || {
        words::recomputed(&done, version)
    })?;
    if done.failed.is_empty() {
        return Ok(());
    }
    Err(Failure::Missed(format!(
        "{} tests keep figures of an older version, since theirs could not be computed again",
        done.failed.len()
    )))
}

fn backup(arguments: &BackupArguments, printer: &Printer) -> Result<(), Failure> {
    let archive = Archive::open_existing(&arguments.folder)?;
    let made = archive.backup(&arguments.to, UnixMillis(unix_ms()))?;
    printer.outcome(arguments.json, ("archive-backup", &made), || {
        words::backup(&made, &arguments.to)
    })?;
    Ok(())
}

fn export(arguments: &ExportArguments, printer: &Printer) -> Result<(), Failure> {
    let archive = Archive::open_existing(&arguments.folder)?;
    let days = arguments.days.map(|days| u64::from(days) * DAY);
    let filter = RunFilter {
        task: arguments.task.as_deref().map(Into::into),
        from: arguments.from.as_deref().map(Into::into),
        to: arguments.to.as_deref().map(Into::into),
        since: days.map(|days| UnixMillis(unix_ms().saturating_sub(days))),
        ..RunFilter::default()
    };
    if let Some(path) = &arguments.parquet {
        return export_to(path, printer, |out| archive.export_parquet(&filter, out));
    }
    let Some(path) = &arguments.output else {
        let mut rows = Rows {
            printer,
            failed: None,
        };
        let written = archive.export_csv(&filter, &mut rows);
        // A reader that has enough is no failure of the archive.
        return match rows.failed {
            Some(error) => Err(Failure::Output(error)),
            None => Ok(written.map(drop)?),
        };
    };
    export_to(path, printer, |out| archive.export_csv(&filter, out))
}

/// Writes a file beside its place and moves it there when it is whole.
fn export_to(
    path: &Path,
    printer: &Printer,
    export: impl FnOnce(&mut BufWriter<&mut File>) -> Result<u64, ArchiveError>,
) -> Result<(), Failure> {
    let cannot = |error: io::Error| Failure::cannot("write the export to", path, &error);
    let (mut file, name) = begin(path).map_err(cannot)?;
    let mut out = BufWriter::new(file.file());
    let rows = export(&mut out).map_err(|error| match error {
        ArchiveError::Output(error) => Failure::cannot("write the export to", path, &error),
        other => other.into(),
    })?;
    out.flush().map_err(cannot)?;
    drop(out);
    file.take(name).map_err(cannot)?;
    printer.tell(&format!("{rows} tests are in {}", path.display()));
    Ok(())
}

fn begin(path: &Path) -> io::Result<(Replacement, &OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    // Otherwise nobody would know before the end.
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let folder = Directory::open(path.parent().unwrap_or(Path::new("")))?;
    Ok((Replacement::begin(folder, 0o666)?, name))
}

/// Standard output, for rows that come one at a time with their line end.
struct Rows<'p> {
    printer: &'p Printer,
    failed: Option<io::Error>,
}

impl Write for Rows<'_> {
    fn write(&mut self, row: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(row).map_err(io::Error::other)?;
        let text = text.strip_suffix("\r\n").unwrap_or(text);
        match self.printer.row(text) {
            Ok(()) => Ok(row.len()),
            Err(error) => {
                let kind = error.kind();
                self.failed = Some(error);
                Err(kind.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
