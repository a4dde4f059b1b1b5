//! Addresses as people write them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(String);

/// A link-layer address of six bytes. Read in any case, with `:`, `-`, `.` or nothing between; written in lower case
/// with colons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mac([u8; 6]);

impl Mac {
    /// Twelve digits.
    pub fn digits(self) -> String {
        self.to_string().replace(':', "")
    }
}

impl FromStr for Mac {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || {
            AddressError(format!(
                "'{text}' is not a MAC address such as fe:16:3e:01:02:03"
            ))
        };
        let digits: String = text
            .trim()
            .chars()
            .filter(|c| ![':', '-', '.'].contains(c))
            .collect();
        if digits.len() != 12 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 6];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).map_err(|_| wrong())?;
        }
        // The first bit is a group's, which no interface has.
        if bytes[0] & 1 == 1 || bytes == [0; 6] {
            return Err(AddressError(format!(
                "'{text}' is not an interface's MAC address"
            )));
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { ":" };
            write!(f, "{separator}{byte:02x}")?;
        }
        Ok(())
    }
}

/// An address with the length of its network's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    /// With its host bits.
    pub address: IpAddr,
    /// Bits.
    pub prefix: u8,
}

impl Network {
    /// Whether an address is in the network.
    pub fn holds(self, address: IpAddr) -> bool {
        let whole = |address| Self { address, ..self }.base();
        self.address.is_ipv4() == address.is_ipv4() && whole(address) == whole(self.address)
    }

    /// The network alone: bits behind the prefix are 0.
    #[must_use]
    pub fn base(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX
                    .checked_shl(32 - u32::from(self.prefix))
                    .unwrap_or(0);
                IpAddr::V4((u32::from(address) & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.prefix))
                    .unwrap_or(0);
                IpAddr::V6((u128::from(address) & mask).into())
            }
        };
        Self { address, ..self }
    }

    /// An address that the kernel gives by itself.
    pub fn is_link_local(self) -> bool {
        matches!(self.address, IpAddr::V6(address) if address.is_unicast_link_local())
    }
}

impl FromStr for Network {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || {
            AddressError(format!(
                "'{text}' is not an address with a prefix such as 10.0.0.1/24"
            ))
        };
        let (address, prefix) = text.trim().split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        if prefix > if address.is_ipv4() { 32 } else { 128 } {
            return Err(wrong());
        }
        Ok(Self { address, prefix })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

macro_rules! as_text {
    ($($kind:ty),*) => {$(
        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?
                    .parse()
                    .map_err(serde::de::Error::custom)
            }
        }
    )*};
}
as_text!(Mac, Network);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macs_are_read_in_any_case_and_with_any_separator() {
        for text in [
            "FE:16:3E:01:02:0a",
            "fe-16-3e-01-02-0A",
            "fe16.3e01.020a",
            "fe163e01020a",
        ] {
            assert_eq!(
                text.parse::<Mac>().unwrap().to_string(),
                "fe:16:3e:01:02:0a"
            );
        }
        for text in [
            "",
            "fe:16",
            "fe:16:3e:01:02:0g",
            "ff:ff:ff:ff:ff:ff",
            "00:00:00:00:00:00",
            "fe163e01020é",
        ] {
            assert!(text.parse::<Mac>().is_err(), "{text}");
        }
    }

    #[test]
    fn networks_hold_their_addresses() {
        let network = |text: &str| text.parse::<Network>().unwrap();
        assert!(network("10.1.2.3/16").holds([10, 1, 9, 9].into()));
        assert!(!network("10.1.2.3/16").holds([10, 2, 0, 1].into()));
        assert!(network("0.0.0.0/0").holds([10, 2, 0, 1].into()));
        assert_eq!(network("fd00::1/64").base().to_string(), "fd00::/64");
        assert!(network("fe80::1/64").is_link_local());
        for text in ["10.0.0.1", "10.0.0.1/33", "x/8", "fd00::1/129"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
