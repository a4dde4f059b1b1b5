//! Where settings are changed and where their old values are kept: this machine, or files below a folder.

use std::path::{Path, PathBuf};

use linerate_kernel::inventory::Root;
use linerate_kernel::{clock, host, namespace};
use linerate_model::host::HostFacts;
use linerate_model::units::Nanos;
use linerate_tune::journal::ChangeSet;
use linerate_tune::live::Live;
use linerate_tune::rooted::Rooted;
use linerate_tune::settings::Settings;
use linerate_tune::state_folder::{Lock, StateError, StateFolder};

use super::arguments::PlaceArguments;
use crate::action::Failure;
use crate::host::{facts_below, files_below};

/// Where old values are kept, below the root.
const STATE: &str = "var/lib/linerate/tune";

/// A place to change settings in.
pub(super) struct Place {
    /// The folder that stands for `/`, as an absolute path without links; absent for this machine.
    pub(super) root: Option<PathBuf>,
    pub(super) files: Root,
    /// Old values.
    pub(super) state: StateFolder,
    /// Their folder where it was named, as an absolute path.
    pub(super) named_state: Option<PathBuf>,
    pub(super) boot_id: String,
    /// The network namespace; absent below a folder.
    pub(super) network: Option<u64>,
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Busy(_) | StateError::NoSet(_) | StateError::NoName(_) => {
                Self::Refused(error.to_string())
            }
            error => Self::File(error.to_string()),
        }
    }
}

impl Place {
    /// The place that the arguments name.
    pub(super) fn of(arguments: &PlaceArguments) -> Result<Self, Failure> {
        let files = files_below(arguments.root.as_deref())?;
        let root = arguments
            .root
            .is_some()
            .then(|| files.real_folder())
            .transpose()
            .map_err(|error| {
                let folder = files.folder().display();
                Failure::File(format!("cannot find the path of {folder}: {error}"))
            })?;
        let named_state = arguments.state.as_deref().map(|folder| {
            std::path::absolute(folder)
                .map_err(|error| Failure::Usage(format!("--state {}: {error}", folder.display())))
        });
        let named_state = named_state.transpose()?;
        let state = match &named_state {
            Some(folder) => StateFolder::at(Root::of_this_machine(), folder),
            None => StateFolder::at(files.clone(), Path::new(STATE)),
        };
        let boot_id = host::boot_id().map_err(|error| {
            Failure::File(format!(
                "cannot read /proc/sys/kernel/random/boot_id: {error}; without it old values could be restored into another boot"
            ))
        })?;
        let network = namespace::network_id().map_err(|error| {
            Failure::File(format!("cannot determine the network namespace: {error}"))
        })?;
        Ok(Self {
            network: root.is_none().then_some(network),
            root,
            files,
            state,
            named_state,
            boot_id,
        })
    }

    /// The right to change settings here. It is not given while a set waits for its confirmation: whoever changed
    /// settings then would keep that set's values as old ones.
    pub(super) fn claim(&self) -> Result<Lock, Failure> {
        let lock = self.state.lock()?;
        let waits = self
            .sets()?
            .into_iter()
            .find(|set| set.state.is_pending() && set.is_of_boot(&self.boot_id));
        match waits {
            None => Ok(lock),
            Some(set) => Err(Failure::Refused(format!(
                "nothing was changed: {0} is {1}; first: linerate tune confirm {0}, or revert {0}",
                set.snapshot.id,
                set.state.words()
            ))),
        }
    }

    pub(super) fn facts(&self) -> HostFacts {
        facts_below(&self.files)
    }

    pub(super) fn settings(&self) -> Box<dyn Settings> {
        match &self.root {
            Some(_) => Box::new(Rooted::below(self.files.clone())),
            None => Box::new(Live::default()),
        }
    }

    /// The folder that stands for `/`, as the journal has it.
    pub(super) fn root_text(&self) -> Option<String> {
        self.root.as_ref().map(|root| root.display().to_string())
    }

    /// Why a set's old values do not belong here; `None` where they do.
    pub(super) fn stranger(&self, set: &ChangeSet) -> Option<String> {
        let id = &set.snapshot.id;
        if set.snapshot.root != self.root_text() {
            let theirs = set.snapshot.root.as_deref().unwrap_or("/");
            return Some(format!("{id} is of {theirs}: --root names it"));
        }
        if set.is_of_boot(&self.boot_id) && set.snapshot.network != self.network {
            return Some(format!(
                "{id} is of another network namespace: enter it (nsenter, ip netns exec) first"
            ));
        }
        None
    }

    /// All sets, the oldest first.
    pub(super) fn sets(&self) -> Result<Vec<ChangeSet>, Failure> {
        let ids = self.state.ids()?;
        let read = ids
            .iter()
            .map(|id| self.state.read(id).map_err(Failure::from));
        read.collect()
    }

    /// Those of this root.
    pub(super) fn own_sets(&self) -> Result<Vec<ChangeSet>, Failure> {
        let mut sets = self.sets()?;
        sets.retain(|set| set.snapshot.root == self.root_text());
        Ok(sets)
    }
}

/// The monotonic clock.
pub(super) fn now() -> Nanos {
    clock::monotonic()
}

/// The wall clock, s since 1970: a label.
pub(super) fn unix_s() -> u64 {
    clock::wall().0 / 1_000_000_000
}
