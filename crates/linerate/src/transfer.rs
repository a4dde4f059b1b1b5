//! `linerate test HOST --source --target`: files between two hosts, and the cells that tell disk and network apart; and the
//! folders that a server takes files into.

use std::any::Any;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use linerate_analysis::transfer::cell_run;
use linerate_engine::client::ClientOptions;
use linerate_engine::transfer::{self as engine, Targets, Transfer};
use linerate_kernel::directory::Directory;
use linerate_kernel::poll::{self, Interest, PollEntry};
use linerate_kernel::thread::SignalFd;
use linerate_model::plan::{End, Plan};
use linerate_model::record::{Outcome, RunRecord};
use linerate_model::transfer::{Cell, CellRun, StageRecord};
use linerate_model::units::{Bytes, Nanos};
use linerate_storage::transfer::{self as storage, Access, Filled, Source, Target};
use linerate_wire::extension::TargetAsked;

use crate::action::Failure;
use crate::successive;

/// A source that gives nothing for this long is not waited for.
const PATIENCE: Nanos = Nanos::from_millis(120_000);

// Of `linerate test`.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct TransferArguments {
    /// Send this file, or this folder with all that is in it, and say whether source, network or target limits
    #[arg(long, value_name = "PATH", requires = "target", conflicts_with_all = ["from", "udp", "reverse", "bidir", "bytes", "blocks", "time", "omit", "precision", "expect", "counter_test", "diagnose", "rfc6349", "report_elsewhere"])]
    pub(crate) source: Option<PathBuf>,
    /// The server's folder for the files of --source; `linerate serve --allow-target FOLDER` allows it
    #[arg(long, value_name = "FOLDER", requires = "source")]
    pub(crate) target: Option<String>,
    /// Read and write by the page cache, as cp does, and not past it
    #[arg(long, requires = "source")]
    pub(crate) buffered: bool,
    /// Only the transfer, and not the four tests after it that measure source, network and target alone
    #[arg(long, requires = "source")]
    pub(crate) no_cells: bool,
}

/// A transfer that is ready to be made.
pub(crate) struct Prepared {
    plan: Plan,
    path: PathBuf,
    access: Access,
    source: Source,
    target: TargetAsked,
    with_cells: bool,
}

impl TransferArguments {
    /// Lists the source, if there is one, and plans for as many bytes as it has.
    pub(crate) fn begin(&self, plan: &mut Plan) -> Result<Option<Prepared>, Failure> {
        let (Some(path), Some(target)) = (&self.source, &self.target) else {
            return Ok(None);
        };
        let access = if self.buffered {
            Access::Buffered
        } else {
            Access::Direct
        };
        let source =
            Source::of_files(path, access).map_err(|error| Failure::File(error.to_string()))?;
        plan.end = End::Bytes(Bytes(source.bytes().0.max(1)));
        Ok(Some(Prepared {
            plan: plan.clone(),
            path: path.clone(),
            access,
            source,
            target: TargetAsked {
                folder: Some(target.as_str().into()),
                direct: access == Access::Direct,
                keep: true,
            },
            with_cells: !self.no_cells,
        }))
    }
}

impl Prepared {
    /// From disk to disk.
    pub(crate) fn whole(&self) -> Transfer {
        Transfer {
            source: Arc::new(FromStorage(self.source.clone())),
            target: self.target.clone(),
        }
    }

    /// The cells, after the transfer that `record` is of, until the user stops them. None where it did not come to its end.
    pub(crate) fn cells(
        &self,
        record: &RunRecord,
        options: &ClientOptions,
        stop: &SignalFd,
    ) -> Vec<CellRun> {
        if !self.with_cells || record.outcome != Outcome::Completed {
            return Vec::new();
        }
        let mut runs: Vec<CellRun> = self.read(stop).into_iter().collect();
        for cell in [Cell::MemoryToMemory, Cell::DiskToMemory, Cell::MemoryToDisk] {
            let Some(transfer) = self.cell(cell) else {
                continue;
            };
            let options = ClientOptions {
                transfer: Some(transfer),
                ..options.clone()
            };
            match successive::follow(&self.plan, &options, stop) {
                Ok(Some(record)) => runs.push(cell_run(cell, &record)),
                Ok(None) => break,
                Err(error) => runs.push(CellRun {
                    cell,
                    outcome: Outcome::Failed {
                        error: error.into(),
                    },
                    bytes: Bytes(0),
                    time: Nanos::ZERO,
                }),
            }
        }
        runs
    }

    fn cell(&self, cell: Cell) -> Option<Transfer> {
        let source = match cell {
            Cell::DiskToMemory | Cell::Read => Source::of_files(&self.path, self.access).ok()?,
            Cell::MemoryToMemory | Cell::MemoryToDisk => self.source.in_memory().ok()?,
        };
        let folder = match cell {
            Cell::MemoryToDisk => self.target.folder.clone(),
            Cell::Read | Cell::MemoryToMemory | Cell::DiskToMemory => None,
        };
        Some(Transfer {
            source: Arc::new(FromStorage(source)),
            target: TargetAsked {
                folder,
                keep: false,
                ..self.target
            },
        })
    }

    /// Reads the source again, and drops what it gives.
    fn read(&self, stop: &SignalFd) -> Option<CellRun> {
        use std::os::fd::AsFd as _;
        let source = Source::of_files(&self.path, self.access).ok()?;
        source.start();
        let mut outlet = source.outlet();
        loop {
            match outlet.fill() {
                Ok(Filled::Bytes) => {
                    let length = outlet.bytes().len();
                    outlet.sent(length);
                }
                Ok(Filled::NotYet) => {
                    let mut entries = [
                        PollEntry::new(outlet.fd(), Interest::READ),
                        PollEntry::new(stop.as_fd(), Interest::READ),
                    ];
                    let waited = poll::wait(&mut entries, Some(PATIENCE));
                    if !matches!(waited, Ok(1..)) || entries[1].readiness().readable {
                        source.stop();
                        return None;
                    }
                }
                Ok(Filled::End) => break,
                Err(_) => return None,
            }
        }
        let read = source.record();
        Some(CellRun {
            cell: Cell::Read,
            outcome: Outcome::Completed,
            bytes: read.bytes,
            time: read.handed_over.since(read.began),
        })
    }
}

/// A folder that a server takes files into.
struct Allowed {
    /// As its operator named it.
    said: PathBuf,
    /// Without links.
    place: PathBuf,
}

impl Allowed {
    /// Whether a path is below it by its letters.
    fn names(&self, path: &Path) -> bool {
        path.starts_with(&self.said) || path.starts_with(&self.place)
    }
}

/// What a server takes: files into these folders and those below them, and where there is one, also bytes that it only checks.
pub(crate) fn targets(folders: &[PathBuf]) -> Result<Targets, Failure> {
    let folders: Result<Vec<Allowed>, Failure> = folders
        .iter()
        .map(|folder| {
            let found = folder.canonicalize();
            let place =
                found.map_err(|error| Failure::cannot("take files into", folder, &error))?;
            Ok(Allowed {
                said: folder.clone(),
                place,
            })
        })
        .collect();
    let folders = folders?;
    Ok(Targets(Arc::new(move |asked| open(asked, &folders))))
}

fn open(asked: &TargetAsked, allowed: &[Allowed]) -> Result<Arc<dyn engine::Target>, String> {
    if allowed.is_empty() {
        return Err(
            "it takes no files: `linerate serve --allow-target FOLDER` names where it may"
                .to_owned(),
        );
    }
    let Some(name) = &asked.folder else {
        let target = Target::in_memory().map_err(|error| error.to_string())?;
        return Ok(Arc::new(IntoStorage(target)));
    };
    let path = Path::new(name.as_str());
    let refused =
        || format!("{name} is not in a folder that its operator allowed (--allow-target)");
    if !path.is_absolute() {
        return Err(format!("{name} is no absolute path"));
    }
    // Nothing else is touched: to look at a path can mount what is there, or hang.
    let is_below = allowed.iter().any(|one| one.names(path));
    if !is_below || path.components().any(|part| part == Component::ParentDir) {
        return Err(refused());
    }
    let folder = Directory::open(path);
    // Where the descriptor leads, whatever links and mounts were on the way.
    let place = folder
        .as_ref()
        .ok()
        .and_then(|folder| Directory::path_of(folder).ok());
    let inside = |place: &PathBuf| allowed.iter().any(|one| place.starts_with(&one.place));
    match (folder, place) {
        (Ok(folder), Some(place)) if inside(&place) => {
            let access = if asked.direct {
                Access::Direct
            } else {
                Access::Buffered
            };
            let target = Target::in_folder(folder, &place, access, !asked.keep);
            let target = target.map_err(|error| error.to_string())?;
            Ok(Arc::new(IntoStorage(target)))
        }
        (Err(error), _) => Err(format!("{name} cannot be opened: {error}")),
        _ => Err(refused()),
    }
}

/// The storage's source, as the engine takes it.
#[derive(Debug)]
struct FromStorage(Source);

impl engine::Source for FromStorage {
    fn start(&self) {
        self.0.start();
    }

    fn outlet(&self) -> Box<dyn engine::Outlet> {
        Box::new(Outlet(self.0.outlet()))
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn record(&self) -> StageRecord {
        self.0.record()
    }
}

struct Outlet(storage::Outlet);

impl engine::Outlet for Outlet {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }

    fn fill(&mut self) -> io::Result<engine::Filled> {
        Ok(match self.0.fill()? {
            Filled::Bytes => engine::Filled::Bytes,
            Filled::NotYet => engine::Filled::NotYet,
            Filled::End => engine::Filled::End,
        })
    }

    fn bytes(&mut self) -> &[u8] {
        self.0.bytes()
    }

    fn sent(&mut self, bytes: usize) {
        self.0.sent(bytes);
    }
}

/// The storage's target, as the engine takes it.
#[derive(Debug)]
struct IntoStorage(Target);

impl engine::Target for IntoStorage {
    fn start(&self) {
        self.0.start();
    }

    fn inlet(&self) -> Box<dyn engine::Inlet> {
        Box::new(Inlet(self.0.inlet()))
    }

    fn end(&self) {
        self.0.end();
    }

    fn finished_fd(&self) -> BorrowedFd<'_> {
        self.0.finished_fd()
    }

    fn progress(&self) -> Bytes {
        self.0.progress()
    }

    fn failed(&self) -> Option<String> {
        self.0.failed()
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn keep(&self, what: Box<dyn Any + Send>) {
        self.0.keep(what);
    }

    fn record(&self) -> StageRecord {
        self.0.record()
    }
}

struct Inlet(storage::Inlet);

impl engine::Inlet for Inlet {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }

    fn room(&mut self) -> io::Result<Option<&mut [u8]>> {
        self.0.room()
    }

    fn received(&mut self, bytes: usize) -> io::Result<()> {
        self.0.received(bytes)
    }

    fn ended(&mut self) -> io::Result<()> {
        self.0.ended()
    }
}
