//! Sets of host names, as ClusterShell writes them: `node[01-64,70]`.
