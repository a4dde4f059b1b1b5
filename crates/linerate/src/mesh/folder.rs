//! The folder of a mesh: its document, the records of its tests, its report in several forms.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use linerate_analysis::evidence::Evidence;
use linerate_model::mesh::{Mesh, TrunkRamp};
use linerate_model::record::RunRecord;
use linerate_report::chart::Charts;
use linerate_report::html::{self, Sheet};
use linerate_report::mesh::from_json;
use linerate_report::record;

use crate::action::Failure;
use crate::input;
use crate::keep::replace;
use crate::test;

/// The mesh.
pub(super) const DOCUMENT: &str = "mesh.json";
/// The ramp of a trunk.
pub(super) const TRUNK: &str = "trunk.json";
/// Records are below this folder.
const TESTS: &str = "tests";
/// Held by the process that measures.
const LOCK: &str = "lock";

/// A folder that this process writes to.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes it, and takes it for this process until it is dropped. `fresh` = it must not hold a mesh yet.
    pub(super) fn take(path: &Path, fresh: bool) -> Result<Self, Failure> {
        fs::create_dir_all(path.join(TESTS))
            .map_err(|error| Failure::cannot("make the folder", path, &error))?;
        let name = path.join(LOCK);
        let fail = |error: std::io::Error| Failure::cannot("lock", &name, &error);
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&name)
            .map_err(fail)?;
        if !linerate_kernel::file::try_lock(&lock).map_err(fail)? {
            return Err(Failure::Usage(format!(
                "another mesh measures into {}: wait for its end, or name another folder with -o",
                path.display()
            )));
        }
        if fresh
            && [DOCUMENT, TRUNK]
                .iter()
                .any(|name| path.join(name).exists())
        {
            return Err(Failure::Usage(format!(
                "{} holds a mesh already: --resume goes on with it, -o names another folder, `linerate mesh show` prints it",
                path.display()
            )));
        }
        Ok(Self {
            path: path.to_path_buf(),
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a test's record; its name below the folder.
    pub(super) fn keep(&self, name: &str, run: &RunRecord) -> Result<String, Failure> {
        let name = format!("{TESTS}/{name}.json");
        self.write(&name, &record::to_json(run))?;
        Ok(name)
    }

    /// Writes the page of a record beside it; its name below the folder.
    pub(super) fn page(&self, record: &str) -> Result<String, Failure> {
        let path = self.path.join(record);
        let bytes = input::read(&path, input::NOTED)?;
        let run = record::from_json(&bytes)
            .map_err(|error| Failure::cannot("understand", &path, &error))?;
        let evidence = Evidence::of(&run);
        let view = test::view(&evidence);
        let page = html::page(&Sheet {
            view: &view,
            charts: &Charts::whole(&view, &evidence).condensed(),
            kept: Some(record),
        });
        let name = format!("{}.html", record.trim_end_matches(".json"));
        self.write(&name, page.as_bytes())?;
        Ok(name)
    }

    /// Writes one of its files, whole or not at all.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.path.join(name);
        replace(&path, bytes).map_err(|error| Failure::cannot("write", &path, &error))
    }
}

/// The ramp of a folder; `None` where it holds none.
pub(super) fn ramp(folder: &Path) -> Result<Option<TrunkRamp>, Failure> {
    let path = folder.join(TRUNK);
    if !path.exists() {
        return Ok(None);
    }
    let bytes = input::read(&path, input::NOTED)?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| Failure::cannot("understand", &path, &error))
}

/// The mesh of a folder.
pub(super) fn mesh(folder: &Path) -> Result<Mesh, Failure> {
    let path = folder.join(DOCUMENT);
    let bytes = input::read(&path, input::NOTED)?;
    from_json(&bytes).map_err(|error| Failure::cannot("understand", &path, &error))
}
