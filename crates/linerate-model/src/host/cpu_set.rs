//! Sets of CPUs as the kernel writes them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Sets that the kernel writes are no larger (`CONFIG_NR_CPUS` is at most 8192).
const MOST: u32 = 65_536;

/// CPUs, ascending; written as the kernel writes lists: `0-3,8`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuSet(Vec<u32>);

/// A text that is no list of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a list of CPUs such as 0-3,8")]
pub struct CpuSetError(String);

impl CpuSet {
    /// The CPUs, ascending.
    pub fn cpus(&self) -> &[u32] {
        &self.0
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all CPUs of `other` are in this set.
    pub fn contains_all(&self, other: &Self) -> bool {
        other.0.iter().all(|cpu| self.0.binary_search(cpu).is_ok())
    }

    /// A mask as sysfs writes it, hexadecimal words of 32 bits, the highest first: `ff,00000001`.
    pub fn of_mask(text: &str) -> Option<Self> {
        let mut cpus = Vec::new();
        for (word, digits) in (0_u32..).zip(text.trim().rsplit(',')) {
            let bits = u32::from_str_radix(digits, 16).ok()?;
            cpus.extend(
                (0..32)
                    .filter(|bit| bits >> bit & 1 == 1)
                    .map(|bit| word * 32 + bit),
            );
        }
        Some(Self(cpus))
    }

    /// As [`of_mask`](Self::of_mask) reads it.
    pub fn mask(&self) -> String {
        let words = self.0.last().map_or(1, |last| last / 32 + 1);
        let word = |word: u32| -> String {
            let own = self.0.iter().filter(|cpu| **cpu / 32 == word);
            format!(
                "{:08x}",
                own.fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32))
            )
        };
        (0..words).rev().map(word).collect::<Vec<_>>().join(",")
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut cpus: Vec<u32> = cpus.into_iter().collect();
        cpus.sort_unstable();
        cpus.dedup();
        Self(cpus)
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    fn from_str(text: &str) -> Result<Self, CpuSetError> {
        let wrong = || CpuSetError(text.to_owned());
        let mut cpus = Vec::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: u32 = first.trim().parse().map_err(|_| wrong())?;
            let last: u32 = last.trim().parse().map_err(|_| wrong())?;
            if last >= MOST {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        Ok(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        let mut separator = "";
        while let Some(first) = rest.first() {
            let run = (*first..)
                .zip(rest)
                .take_while(|(next, cpu)| next == *cpu)
                .count();
            let last = rest[run - 1];
            write!(f, "{separator}{first}")?;
            if last > *first {
                write!(f, "-{last}")?;
            }
            separator = ",";
            rest = &rest[run..];
        }
        Ok(())
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_written_as_they_are_read() {
        for (list, mask) in [
            ("", "00000000"),
            ("0-3", "0000000f"),
            ("1,35", "00000008,00000002"),
        ] {
            let set: CpuSet = list.parse().unwrap();
            assert_eq!(set.mask(), mask);
            assert_eq!(CpuSet::of_mask(mask), Some(set));
        }
    }

    #[test]
    fn lists_and_masks_are_read_and_written() {
        for (text, count) in [("", 0), ("0", 1), ("0-3,8", 5), ("1,3-4,63", 4)] {
            let set: CpuSet = text.parse().unwrap();
            assert_eq!((set.to_string().as_str(), set.count()), (text, count));
        }
        assert_eq!(
            CpuSet::of_mask("1,80000001").unwrap().to_string(),
            "0,31-32"
        );
        assert!(CpuSet::of_mask("00000000").unwrap().is_empty());
        assert_eq!(CpuSet::of_mask("xyz"), None);
        for wrong in ["a", "1-", "0-99999999"] {
            assert!(wrong.parse::<CpuSet>().is_err(), "{wrong}");
        }
    }
}
