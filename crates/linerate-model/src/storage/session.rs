//! What stands around the outputs in a pasted session, and how file systems lie on their devices.

use serde::{Deserialize, Serialize};

use crate::plain_text::PlainText;

/// What a line of a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// A heading that a script prints: `@@ mdstat`, `== drain`.
    Heading,
    /// What a program says, behind its name.
    Message,
    /// A program's help.
    Usage,
    /// Names of files or devices, with or without their attributes.
    Listing,
    /// A value, or names with their values.
    Value,
    /// A health check that Slurm gave up and killed.
    KilledCheck,
}

/// A line of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLine {
    /// From 1 on.
    pub number: usize,
    /// What it is.
    pub kind: SessionKind,
    /// Its text, at most 200 characters.
    pub text: PlainText,
}

/// Lines of a session that are the output of no tool that is read by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// In order.
    pub lines: Vec<SessionLine>,
}

/// A mounted file system, as `/proc/mounts` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Line of the input, from 1 on.
    pub line: usize,
    /// The device.
    pub device: PlainText,
    /// `xfs`, `ext4`.
    pub kind: PlainText,
    /// Its options, in order.
    pub options: Vec<PlainText>,
}

/// File systems and what they know of the stripes below them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// `minimum_io_size` and `optimal_io_size` of the device, bytes: two numbers before the first mount.
    pub io_bytes: Option<[u64; 2]>,
    /// Mounts, in order.
    pub mounts: Vec<Mount>,
}

impl Mount {
    /// The value of an option `key=value`.
    pub fn option(&self, key: &str) -> Option<&str> {
        let find = |option: &'_ PlainText| {
            option
                .as_str()
                .split_once('=')
                .is_some_and(|(name, _)| name == key)
        };
        let option = self.options.iter().find(|option| find(option))?;
        option.as_str().split_once('=').map(|(_, value)| value)
    }

    /// Whether an option without a value is set.
    pub fn has(&self, key: &str) -> bool {
        self.options.iter().any(|option| option == key)
    }
}
