//! Settings: what runs, and every file that sets it.

use serde::{Deserialize, Serialize};

/// What becomes of a line that sets a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It is the last one at boot.
    Wins,
    /// A later line sets the key again.
    Overridden {
        /// That line: `/etc/sysctl.d/99-x.conf:3`.
        by: String,
    },
    /// A file of the same name in a directory that comes first hides its whole file.
    Masked {
        /// That file.
        by: String,
    },
    /// Nothing reads the file at boot (`/etc/sysctl.conf` without a link in `sysctl.d`, where systemd runs).
    NotAtBoot,
}

/// Who sets a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// A file of `sysctl.d(5)`, or `/etc/sysctl.conf`.
    Sysctl,
    /// The active profile of tuned.
    Tuned,
    /// cloud-init's user data.
    CloudInit,
}

/// A line of a file that sets a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The key with dots: `net.ipv4.tcp_rmem`.
    pub key: String,
    /// The value, blanks made single.
    pub value: String,
    /// Path of the file that has the line.
    pub file: String,
    /// The line, from 1 on.
    pub line: u32,
    /// Whose file it is.
    pub owner: Owner,
    /// What becomes of it at boot.
    pub effect: Effect,
}

impl Setting {
    /// `/etc/sysctl.d/10-x.conf:3`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// A line of a start-up file that pins interrupts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pinning {
    /// The file and line.
    pub place: String,
    /// The line itself.
    pub text: String,
}
