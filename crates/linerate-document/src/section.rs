//! Which keys a table has.

/// A key that a table of a document may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What it holds: form, unit, range. Messages quote it; empty where they say it themselves.
    pub holds: &'static str,
    /// The value where it is absent.
    pub default: &'static str,
    /// What it means.
    pub about: &'static str,
}

impl Key {
    /// A key of which no reference is made.
    pub const fn of(name: &'static str, holds: &'static str) -> Self {
        Self {
            name,
            holds,
            default: "",
            about: "",
        }
    }
}

/// The keys of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// As messages name it: `[path]`, `an interface` …
    pub title: &'static str,
    /// What it describes.
    pub about: &'static str,
    /// Its keys, in groups that several sections can share.
    pub groups: &'static [&'static [Key]],
}

impl Section {
    /// A section of which no reference is made.
    pub const fn of(title: &'static str, groups: &'static [&'static [Key]]) -> Self {
        Self {
            title,
            about: "",
            groups,
        }
    }

    /// Its keys.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.groups.iter().copied().flatten()
    }

    /// The names of its keys.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.keys().map(|key| key.name)
    }

    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }
}
