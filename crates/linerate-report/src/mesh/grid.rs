//! Rows and columns of a matrix, whatever it is drawn with.

use super::cell::Cell;
use super::fold::FoldedView;
use super::view::{Margin, MeshView};

/// Rows and columns: classes of hosts, or hosts.
pub(super) struct Grid<'a> {
    pub(super) view: &'a MeshView,
    pub(super) folded: Option<&'a FoldedView>,
}

impl Grid<'_> {
    pub(super) fn len(&self) -> usize {
        match self.folded {
            Some(folded) => folded.classes.len(),
            None => self.view.hosts.len(),
        }
    }

    pub(super) fn cell(&self, from: usize, to: usize) -> &Cell {
        match self.folded {
            Some(folded) => folded.cell(from, to),
            None => self.view.cell(from, to),
        }
    }

    pub(super) fn name(&self, at: usize) -> String {
        match self.folded.and_then(|folded| folded.classes.get(at)) {
            Some(class) if class.members.len() > 1 => {
                format!("{} ({})", class.names, class.members.len())
            }
            Some(class) => class.names.clone(),
            None => self.view.name(at).to_owned(),
        }
    }

    /// What a row sends, and what its column receives.
    pub(super) fn margins(&self, at: usize) -> [Margin; 2] {
        if let Some(folded) = self.folded {
            let class = folded.classes.get(at);
            class.map_or_else(Default::default, |class| [class.out, class.inbound])
        } else {
            let host = self.view.hosts.get(at);
            host.map_or_else(Default::default, |host| [host.out, host.inbound])
        }
    }
}
