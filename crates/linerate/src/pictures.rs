//! A run as pictures: `--html` and `--svg`.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use linerate_analysis::evidence::Evidence;
use linerate_report::chart::Charts;
use linerate_report::html::{self, Sheet};
use linerate_report::svg;
use linerate_report::view::RunView;

use crate::action::Failure;
use crate::arguments::PictureArguments;
use crate::keep::{Keep, Kept};

/// The files that were asked for.
pub(crate) struct Pictures {
    html: Option<Keep>,
    svg: Option<Keep>,
    record_file: Option<PathBuf>,
}

impl Pictures {
    /// Makes the files, before a test is run for them; `record_file` is where the record is kept.
    pub(crate) fn open(
        asked: &PictureArguments,
        record_file: Option<&Path>,
    ) -> Result<Self, Failure> {
        let files = [
            ("the record", record_file),
            ("--html", asked.html.as_deref()),
            ("--svg", asked.svg.as_deref()),
        ];
        refuse_one_file_for_two(&files)?;
        let open = |path: &Option<PathBuf>, what| {
            path.as_deref()
                .map(|path| Keep::open(path, what))
                .transpose()
        };
        Ok(Self {
            html: open(&asked.html, Kept::Page)?,
            svg: open(&asked.svg, Kept::Figure)?,
            record_file: record_file.map(Path::to_path_buf),
        })
    }

    /// Draws the run.
    pub(crate) fn write(&mut self, view: &RunView, evidence: &Evidence<'_>) -> Result<(), Failure> {
        if self.html.is_none() && self.svg.is_none() {
            return Ok(());
        }
        let charts = Charts::of(view, evidence);
        if let Some(file) = &mut self.html {
            let kept = self
                .record_file
                .as_ref()
                .map(|path| path.display().to_string());
            let sheet = Sheet {
                view,
                charts: &charts,
                kept: kept.as_deref(),
            };
            file.write(html::page(&sheet).as_bytes())?;
        }
        if let Some(file) = &mut self.svg {
            file.write(svg::figure(view, &charts).as_bytes())?;
        }
        Ok(())
    }
}

/// A second thing written to a file would replace the first, be it the record that a picture is made of.
pub(crate) fn refuse_one_file_for_two(files: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let named = files
        .iter()
        .filter_map(|(name, path)| Some((name, (*path)?)));
    let mut seen: Vec<(&str, &Path)> = Vec::new();
    for (name, path) in named {
        if let Some((other, _)) = seen.iter().find(|(_, other)| is_same_file(other, path)) {
            return Err(Failure::Usage(format!(
                "{name} and {other} would be one file, {}, and replace each other: name another",
                path.display()
            )));
        }
        seen.push((name, path));
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
