//! All that ethtool's ioctl tells of a device without any privilege.

use std::collections::BTreeMap;
use std::io;

use linerate_model::host::{Channels, Coalescing, Driver, Feature, Link, Pause, Rings};

use super::{call, change, question, set_word, word};
use crate::address::array;
use crate::netlink::text;

// include/uapi/linux/ethtool.h
const ETHTOOL_GDRVINFO: u32 = 0x03;
pub(super) const ETHTOOL_GCOALESCE: u32 = 0x0e;
pub(super) const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_GPAUSEPARAM: u32 = 0x12;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GRXFHINDIR: u32 = 0x38;
pub(super) const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const ETH_SS_STATS: u32 = 1;
const STRING: usize = 32;
/// Drivers have some thousand counters at most; more is nonsense.
const MOST: usize = 65_536;
/// A driver may have got more counters since it was asked for their number (a queue was added), and before
/// Linux 6.7 the kernel copies as many as there are: room for so many more.
const SPARE: usize = 4096;
/// Bytes of `struct ethtool_drvinfo`, whose texts have 32 bytes each.
const DRIVER_LENGTH: usize = 196;
/// Where `struct ethtool_link_settings` has speed (u32, Mbit/s), duplex, autonegotiation and the number of mask words
/// (i8), and where its masks begin.
const SPEED: usize = 4;
const DUPLEX: usize = 8;
const AUTONEGOTIATION: usize = 11;
const MASK_WORDS: usize = 15;
const MASKS: usize = 48;
/// Its longest: 3 masks of 127 words.
const LINK_LENGTH: usize = MASKS + 3 * 4 * 127;

/// What is known, or why nothing is.
type Known<T> = Result<T, String>;

/// The driver and its device.
pub(crate) fn driver(name: &str) -> Known<Driver> {
    let answer = asked(name, question(ETHTOOL_GDRVINFO, DRIVER_LENGTH))?;
    let part = |at: usize| {
        let text = text(&answer[at..at + 32]);
        (!text.is_empty() && text != "N/A").then_some(text)
    };
    Ok(Driver {
        name: part(4).unwrap_or_default(),
        version: part(36),
        firmware: part(68),
        bus: part(100),
    })
}

/// Speed, duplex and modes.
pub(crate) fn link(name: &str) -> Known<Link> {
    // The first question is answered by the number of mask words, negated; the second has to name it.
    let answer = asked(name, question(ETHTOOL_GLINKSETTINGS, LINK_LENGTH))?;
    let words = array(&answer, MASK_WORDS)
        .map(i8::from_ne_bytes)
        .and_then(i8::checked_neg)
        .and_then(|words| u8::try_from(words).ok())
        .filter(|words| (1..=127).contains(words))
        .ok_or("the kernel does not name its link modes")?;
    let mut request = question(ETHTOOL_GLINKSETTINGS, LINK_LENGTH);
    request[MASK_WORDS] = words;
    Ok(parse_link(&asked(name, request)?, words))
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
pub(crate) fn rings(name: &str) -> Known<Rings> {
    words(name, ETHTOOL_GRINGPARAM, 9).map(|words| Rings {
        rx: words[5],
        rx_max: words[1],
        tx: words[8],
        tx_max: words[4],
    })
}

/// Channels.
pub(crate) fn channels(name: &str) -> Known<Channels> {
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
pub(crate) fn coalescing(name: &str) -> Known<Coalescing> {
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
pub(crate) fn pause(name: &str) -> Known<Pause> {
    words(name, ETHTOOL_GPAUSEPARAM, 4).map(|words| Pause {
        autonegotiation: words[1] != 0,
        rx: words[2] != 0,
        tx: words[3] != 0,
    })
}

/// Offloads by name.
pub(crate) fn features(name: &str) -> Known<BTreeMap<String, Feature>> {
    let features = change::all_features(name).map_err(reason)?.into_iter();
    let feature = |state: change::FeatureState| Feature {
        on: state.active,
        fixed: !state.available,
    };
    Ok(features
        .map(|(name, state)| (name, feature(state)))
        .collect())
}

/// The driver's counters by name.
pub(crate) fn statistics(name: &str) -> Known<BTreeMap<String, u64>> {
    let names = strings(name, ETH_SS_STATS).map_err(reason)?;
    if names.is_empty() {
        return Err("the driver has no counters".to_owned());
    }
    let mut request = question(ETHTOOL_GSTATS, 8 + (names.len() + SPARE) * 8);
    set_word(&mut request, 1, names.len());
    let answer = asked(name, request)?;
    if word(&answer, 1) != u32::try_from(names.len()).ok() {
        return Err("the driver's counters changed while they were read".to_owned());
    }
    Ok(names
        .into_iter()
        .zip(answer[8..].chunks_exact(8))
        .filter_map(|(name, raw)| Some((name, u64::from_ne_bytes(array(raw, 0)?))))
        .collect())
}

/// Entries of each receive queue in the table that spreads flows.
pub(crate) fn indirection(name: &str) -> Known<Vec<u32>> {
    let size = word(&asked(name, question(ETHTOOL_GRXFHINDIR, 8))?, 1)
        .and_then(|size| usize::try_from(size).ok())
        .filter(|size| (1..=MOST).contains(size))
        .ok_or("the device has no table")?;
    // The kernel refuses a size that is not the device's, so it writes no more than is here.
    let mut request = question(ETHTOOL_GRXFHINDIR, 8 + size * 4);
    set_word(&mut request, 1, size);
    let answer = asked(name, request)?;
    let mut shares = Vec::new();
    let queues = (0..size).filter_map(|entry| usize::try_from(word(&answer, 2 + entry)?).ok());
    for queue in queues.filter(|queue| *queue < MOST) {
        if shares.len() <= queue {
            shares.resize(queue + 1, 0);
        }
        shares[queue] += 1;
    }
    Ok(shares)
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
fn words(name: &str, command: u32, count: usize) -> Known<Vec<u32>> {
    raw_words(name, command, count).map_err(reason)
}

/// The same, with the kernel's own refusal.
pub(super) fn raw_words(name: &str, command: u32, count: usize) -> io::Result<Vec<u32>> {
    let mut request = question(command, count * 4);
    call(name, &mut request)?;
    Ok((0..count)
        .map(|at| word(&request, at).unwrap_or_default())
        .collect())
}

/// A question with the answer that the driver wrote into it.
fn asked(name: &str, mut request: Vec<u8>) -> Known<Vec<u8>> {
    call(name, &mut request).map_err(reason)?;
    Ok(request)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn reason(error: io::Error) -> String {
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
        assert!(features("lo").unwrap()["tx-tcp-segmentation"].on);
        assert_eq!(rings("lo").unwrap_err(), "the driver does not say");
        assert!(link("no-such-device").is_err());
        assert!(statistics("lo").is_err());
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
}
