//! Who holds a socket: looked for by a thread of its own, since it means reading the descriptors of every process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};

use linerate_kernel::process_sockets::{self, Process};

/// The thread that looks. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Holders {
    wanted: Sender<BTreeSet<u64>>,
    found: Receiver<BTreeMap<u64, Process>>,
    waits: bool,
}

impl Holders {
    /// `None` where the thread cannot be had: the holders are then not known.
    pub(super) fn start() -> Option<Self> {
        let (wanted, questions) = channel::<BTreeSet<u64>>();
        let (answers, found) = channel();
        let thread = std::thread::Builder::new()
            .name("socket holders".to_owned())
            .stack_size(256 << 10);
        let run = move || {
            for inodes in questions {
                if answers.send(process_sockets::holders(&inodes)).is_err() {
                    return;
                }
            }
        };
        thread.spawn(run).ok()?;
        Some(Self {
            wanted,
            found,
            waits: false,
        })
    }

    /// Asks who holds these sockets, unless the last answer is still to come.
    pub(super) fn ask(&mut self, inodes: BTreeSet<u64>) -> bool {
        if self.waits || inodes.is_empty() {
            return false;
        }
        self.waits = self.wanted.send(inodes).is_ok();
        self.waits
    }

    /// The answer, once it is there.
    pub(super) fn answer(&mut self) -> Option<BTreeMap<u64, Process>> {
        let answer = self.found.try_recv().ok()?;
        self.waits = false;
        Some(answer)
    }
}
