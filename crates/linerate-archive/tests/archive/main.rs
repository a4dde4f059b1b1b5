//! The archive through its public interface.

mod appending;
mod runs;
