//! What Slurm says of nodes, and what is done about one that is not well.
//!
//! `sinfo` ends with 0 and prints nothing for a node that it does not know and, for a while, when its controller has restarted. So
//! no answer about the node is no answer at all: nothing is done.

mod decide;
mod nodes;
mod reason;

pub use decide::{Case, after_drain, decide};
pub use nodes::{Node, NodeState, format, nodes};
pub use reason::{PREFIX, Reason, same_check, tag};
