//! All that ethtool's ioctl tells of a device without any privilege.

use std::collections::BTreeMap;
use std::io;

use linerate_model::host::{Channels, Coalescing, Driver, Fact, Feature, Link, Pause, Rings};

use super::{
    DRIVER_LENGTH, ETHTOOL_GDRVINFO, ETHTOOL_GLINKSETTINGS, LINK_LENGTH, MASK_WORDS, SPEED, call,
};
use crate::address::array;
use crate::netlink::text;

// include/uapi/linux/ethtool.h
pub(super) const ETHTOOL_GCOALESCE: u32 = 0x0e;
pub(super) const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_GPAUSEPARAM: u32 = 0x12;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GRXFHINDIR: u32 = 0x38;
pub(super) const ETHTOOL_GFEATURES: u32 = 0x3a;
pub(super) const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETH_SS_STATS: u32 = 1;
pub(super) const ETH_SS_FEATURES: u32 = 4;
const STRING: usize = 32;
/// Drivers have some thousand counters at most; more is nonsense.
const MOST: usize = 65_536;
/// A driver may have got more counters since it was asked for their number (a queue was added), and before
/// Linux 6.7 the kernel copies as many as there are: room for so many more.
const SPARE: usize = 4096;
/// Where `struct ethtool_link_settings` has duplex and autonegotiation, and where its masks begin.
const DUPLEX: usize = 8;
const AUTONEGOTIATION: usize = 11;
const MASKS: usize = 48;

/// The driver and its device.
pub(crate) fn driver(name: &str) -> Fact<Driver> {
    let mut request = question(ETHTOOL_GDRVINFO, DRIVER_LENGTH);
    answered(call(name, &mut request), || {
        let part = |at: usize| {
            let text = text(&request[at..at + 32]);
            (!text.is_empty() && text != "N/A").then_some(text)
        };
        Driver {
            name: part(4).unwrap_or_default(),
            version: part(36),
            firmware: part(68),
            bus: part(100),
        }
    })
}

/// Speed, duplex and modes.
pub(crate) fn link(name: &str) -> Fact<Link> {
    // The first question is answered by the number of mask words, negated; the second has to name it.
    let mut request = question(ETHTOOL_GLINKSETTINGS, LINK_LENGTH);
    if let Err(error) = call(name, &mut request) {
        return Fact::unknown(reason(&error));
    }
    let words = array(&request, MASK_WORDS)
        .map(i8::from_ne_bytes)
        .and_then(i8::checked_neg)
        .and_then(|words| u8::try_from(words).ok())
        .filter(|words| (1..=127).contains(words));
    let Some(words) = words else {
        return Fact::unknown("the kernel does not name its link modes");
    };
    let mut request = question(ETHTOOL_GLINKSETTINGS, LINK_LENGTH);
    request[MASK_WORDS] = words;
    answered(call(name, &mut request), || parse_link(&request, words))
}

fn parse_link(answer: &[u8], words: u8) -> Link {
    let length = usize::from(words) * 4;
    let best = |mask: usize| best_speed(answer.get(MASKS + mask * length..)?.get(..length)?);
    Link {
        speed_mbps: word(answer, SPEED / 4).filter(|speed| *speed != 0 && *speed != u32::MAX),
        duplex: match answer.get(DUPLEX) {
            Some(0) => Some("half".to_owned()),
            Some(1) => Some("full".to_owned()),
            _ => None,
        },
        autonegotiation: answer.get(AUTONEGOTIATION).map(|on| *on != 0),
        best_supported_mbps: best(0),
        best_advertised_mbps: best(1),
        best_partner_mbps: best(2),
    }
}

/// The greatest speed of the link modes whose bits are set, Mbit/s.
fn best_speed(mask: &[u8]) -> Option<u32> {
    mask.iter()
        .zip((0..).step_by(8))
        .flat_map(|(byte, first)| {
            (0..8_u32)
                .filter(move |bit| byte >> bit & 1 == 1)
                .map(move |bit| first + bit)
        })
        .filter_map(speed_of_mode)
        .max()
}

/// `enum ethtool_link_mode_bit_indices`; bits that are no speed (pause, FEC, ports) have none. Modes of more
/// than 800 Gbit/s and those behind bit 98 that this list does not know are left out.
fn speed_of_mode(bit: u32) -> Option<u32> {
    Some(match bit {
        0 | 1 | 92 | 99..=101 => 10,
        2 | 3 | 67 | 90 | 91 => 100,
        4 | 5 | 17 | 41 | 68 => 1000,
        15 | 47 => 2500,
        48 => 5000,
        12 | 18..=20 | 42..=46 => 10_000,
        21 | 22 => 20_000,
        31..=33 => 25_000,
        23..=26 => 40_000,
        34 | 35 | 40 | 52..=56 => 50_000,
        27..=30 => 56_000,
        36..=39 | 57..=61 | 75..=79 => 100_000,
        62..=66 | 80..=84 => 200_000,
        69..=73 | 85..=89 => 400_000,
        93..=98 => 800_000,
        _ => return None,
    })
}

/// Descriptor rings.
pub(crate) fn rings(name: &str) -> Fact<Rings> {
    words(name, ETHTOOL_GRINGPARAM, 9).map(|words| Rings {
        rx: words[5],
        rx_max: words[1],
        tx: words[8],
        tx_max: words[4],
    })
}

/// Channels.
pub(crate) fn channels(name: &str) -> Fact<Channels> {
    words(name, ETHTOOL_GCHANNELS, 9).map(|words| Channels {
        rx: words[5],
        rx_max: words[1],
        tx: words[6],
        tx_max: words[2],
        combined: words[8],
        combined_max: words[4],
    })
}

/// Interrupt coalescing.
pub(crate) fn coalescing(name: &str) -> Fact<Coalescing> {
    words(name, ETHTOOL_GCOALESCE, 23).map(|words| Coalescing {
        rx_usecs: words[1],
        rx_frames: words[2],
        tx_usecs: words[5],
        tx_frames: words[6],
        adaptive_rx: words[10] != 0,
        adaptive_tx: words[11] != 0,
    })
}

/// Flow control.
pub(crate) fn pause(name: &str) -> Fact<Pause> {
    words(name, ETHTOOL_GPAUSEPARAM, 4).map(|words| Pause {
        autonegotiation: words[1] != 0,
        rx: words[2] != 0,
        tx: words[3] != 0,
    })
}

/// Offloads by name.
pub(crate) fn features(name: &str) -> Fact<BTreeMap<String, Feature>> {
    let names = match strings(name, ETH_SS_FEATURES) {
        Ok(names) => names,
        Err(error) => return Fact::unknown(reason(&error)),
    };
    let blocks = names.len().div_ceil(32);
    let mut request = question(ETHTOOL_GFEATURES, 8 + blocks * 16);
    set_word(&mut request, 1, blocks);
    answered(call(name, &mut request), || {
        names
            .into_iter()
            .enumerate()
            .filter(|(_, name)| !name.is_empty())
            .filter_map(|(bit, name)| Some((name, feature(&request, bit)?)))
            .collect()
    })
}

/// `struct ethtool_get_features_block`: available, requested, active, never changed.
fn feature(answer: &[u8], bit: usize) -> Option<Feature> {
    let block = 2 + bit / 32 * 4;
    let has = |field: usize| Some(word(answer, block + field)? >> (bit % 32) & 1 == 1);
    Some(Feature {
        on: has(2)?,
        fixed: !has(0)? || has(3)?,
    })
}

/// The driver's counters by name.
pub(crate) fn statistics(name: &str) -> Fact<BTreeMap<String, u64>> {
    let names = match strings(name, ETH_SS_STATS) {
        Ok(names) => names,
        Err(error) => return Fact::unknown(reason(&error)),
    };
    if names.is_empty() {
        return Fact::unknown("the driver has no counters");
    }
    let mut request = question(ETHTOOL_GSTATS, 8 + (names.len() + SPARE) * 8);
    set_word(&mut request, 1, names.len());
    let asked = call(name, &mut request);
    if asked.is_ok() && word(&request, 1) != u32::try_from(names.len()).ok() {
        return Fact::unknown("the driver's counters changed while they were read");
    }
    answered(asked, || {
        names
            .into_iter()
            .zip(request[8..].chunks_exact(8))
            .filter_map(|(name, raw)| Some((name, u64::from_ne_bytes(array(raw, 0)?))))
            .collect()
    })
}

/// Entries of each receive queue in the table that spreads flows.
pub(crate) fn indirection(name: &str) -> Fact<Vec<u32>> {
    let mut request = question(ETHTOOL_GRXFHINDIR, 8);
    if let Err(error) = call(name, &mut request) {
        return Fact::unknown(reason(&error));
    }
    let size = word(&request, 1).and_then(|size| usize::try_from(size).ok());
    let Some(size) = size.filter(|size| (1..=MOST).contains(size)) else {
        return Fact::unknown("the device has no table");
    };
    // The kernel refuses a size that is not the device's, so it writes no more than is here.
    let mut request = question(ETHTOOL_GRXFHINDIR, 8 + size * 4);
    set_word(&mut request, 1, size);
    answered(call(name, &mut request), || {
        let mut shares = Vec::new();
        let queues = (0..size).filter_map(|entry| usize::try_from(word(&request, 2 + entry)?).ok());
        for queue in queues.filter(|queue| *queue < MOST) {
            if shares.len() <= queue {
                shares.resize(queue + 1, 0);
            }
            shares[queue] += 1;
        }
        shares
    })
}

/// The names of a set of strings.
pub(super) fn strings(name: &str, set: u32) -> io::Result<Vec<String>> {
    // struct ethtool_sset_info: command, reserved, mask u64, a length for each bit that stays.
    let mut request = question(ETHTOOL_GSSET_INFO, 24);
    request[8..16].copy_from_slice(&(1_u64 << set).to_ne_bytes());
    call(name, &mut request)?;
    let there = array(&request, 8).map(u64::from_ne_bytes) == Some(1 << set);
    let count = word(&request, 4).and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| there && *count <= MOST).unwrap_or(0);
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut request = question(ETHTOOL_GSTRINGS, 12 + (count + SPARE) * STRING);
    set_word(&mut request, 1, usize::try_from(set).unwrap_or(0));
    set_word(&mut request, 2, count);
    call(name, &mut request)?;
    Ok(request[12..]
        .chunks_exact(STRING)
        .take(count)
        .map(|raw| text(raw).trim().to_owned())
        .collect())
}

/// The words of a structure that has nothing else.
fn words(name: &str, command: u32, count: usize) -> Fact<Vec<u32>> {
    raw_words(name, command, count)
        .map_err(|error| reason(&error))
        .into()
}

/// The same, with the kernel's own refusal.
pub(super) fn raw_words(name: &str, command: u32, count: usize) -> io::Result<Vec<u32>> {
    let mut request = question(command, count * 4);
    call(name, &mut request)?;
    Ok((0..count)
        .map(|at| word(&request, at).unwrap_or_default())
        .collect())
}

pub(super) fn question(command: u32, length: usize) -> Vec<u8> {
    let mut request = vec![0; length];
    request[..4].copy_from_slice(&command.to_ne_bytes());
    request
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    crate::netlink::word(bytes, at * 4)
}

pub(super) fn set_word(bytes: &mut [u8], at: usize, value: usize) {
    let value = u32::try_from(value).unwrap_or(u32::MAX);
    bytes[at * 4..at * 4 + 4].copy_from_slice(&value.to_ne_bytes());
}

fn answered<T>(asked: io::Result<()>, read: impl FnOnce() -> T) -> Fact<T> {
    match asked {
        Ok(()) => Fact::Known(read()),
        Err(error) => Fact::unknown(reason(&error)),
    }
}

fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => "the driver does not say".to_owned(),
        Some(libc::EPERM) => "only root may ask the driver".to_owned(),
        _ => format!("the driver does not say: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_tells_its_features_and_no_rings() {
        let features = features("lo");
        assert!(features.known().unwrap()["tx-tcp-segmentation"].on);
        assert_eq!(rings("lo").why(), "the driver does not say");
        assert!(link("no-such-device").known().is_none());
        assert!(statistics("lo").known().is_none());
    }

    #[test]
    fn the_best_mode_is_found_among_others() {
        let mask = |bits: &[usize]| {
            let mut mask = vec![0_u8; 16];
            for bit in bits {
                mask[bit / 8] |= 1 << (bit % 8);
            }
            mask
        };
        // Autonegotiation, fibre and FEC are no speeds.
        assert_eq!(best_speed(&mask(&[6, 10, 50])), None);
        assert_eq!(best_speed(&mask(&[3, 5, 12, 6])), Some(10_000));
        assert_eq!(best_speed(&mask(&[31, 75, 50])), Some(100_000));
    }

    #[test]
    fn a_feature_is_read_from_its_block() {
        let mut answer = vec![0_u8; 8 + 32];
        // Bit 33: available and active.
        answer[8 + 16] = 2;
        answer[8 + 24] = 2;
        assert_eq!(
            feature(&answer, 33),
            Some(Feature {
                on: true,
                fixed: false
            })
        );
        assert_eq!(
            feature(&answer, 0),
            Some(Feature {
                on: false,
                fixed: true
            })
        );
        assert_eq!(feature(&answer, 64), None);
    }
}
