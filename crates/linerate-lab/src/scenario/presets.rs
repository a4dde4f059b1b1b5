//! Paths that many have, ready to use.

use super::types::Scenario;

/// A scenario that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Its text, to be copied and changed.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset { name: $name, text: include_str!(concat!("../../presets/", $name, ".toml")) }),*]
    };
}

/// All of them, from the plain to the odd.
pub const PRESETS: &[Preset] = presets![
    "lan-1g",
    "lan-10g",
    "wan-6ms",
    "wan-24ms",
    "wan-60ms",
    "wan-100ms",
    "policed",
    "shaped",
    "lossy",
    "reordering",
    "black-hole",
    "bloated",
];

impl Preset {
    /// The one of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// The one whose name is nearest to what was typed.
    pub fn nearest(name: &str) -> Option<&'static str> {
        linerate_model::nearest::nearest(name, PRESETS.iter().map(|preset| preset.name))
    }

    /// What it describes.
    ///
    /// # Errors
    /// None: a test reads them all.
    pub fn scenario(&self) -> Result<Scenario, linerate_document::DocumentError> {
        Scenario::parse(self.name, self.text)
    }
}
