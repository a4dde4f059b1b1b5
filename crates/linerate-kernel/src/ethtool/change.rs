//! What ethtool's ioctl changes of a device. What is not meant to change is read and sent back as it is.

use std::collections::BTreeMap;
use std::io;

use super::facts::{ETHTOOL_GCHANNELS, ETHTOOL_GCOALESCE, ETHTOOL_GRINGPARAM, raw_words, strings};
use super::{call, question, set_word, word};
use crate::KernelError;

// include/uapi/linux/ethtool.h
const ETHTOOL_SCOALESCE: u32 = 0x0f;
const ETHTOOL_SRINGPARAM: u32 = 0x11;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETHTOOL_SCHANNELS: u32 = 0x3d;
const ETH_SS_FEATURES: u32 = 4;
/// Words of `struct ethtool_ringparam`, `ethtool_channels` and `ethtool_coalesce`.
const RING_WORDS: usize = 9;
const CHANNEL_WORDS: usize = 9;
const COALESCE_WORDS: usize = 23;
/// Where they have what is changed.
const RX_PENDING: usize = 5;
const TX_PENDING: usize = 8;
const COMBINED: usize = 8;
const RX_USECS: usize = 1;
const RX_FRAMES: usize = 2;
const ADAPTIVE_RX: usize = 10;

/// Which descriptor ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ring {
    /// Of received packets.
    Receive,
    /// Of packets to send.
    Transmit,
}

/// What is to change of the coalescing of received packets; `None` stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoalescingChange {
    /// Whether the driver chooses the values.
    pub adaptive_rx: Option<bool>,
    /// Wait, µs.
    pub rx_usecs: Option<u32>,
    /// Packets that end the wait.
    pub rx_frames: Option<u32>,
}

/// A feature of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureState {
    /// Whether it can be switched.
    pub available: bool,
    /// Whether it was asked for.
    pub wanted: bool,
    /// Whether it is at work: asked for, and nothing that it needs is off.
    pub active: bool,
}

/// Sets the length of a descriptor ring. Most drivers take their link down for a moment.
///
/// # Errors
/// `EOPNOTSUPP` for a driver without; `EINVAL` beyond its maximum; `EPERM`.
pub fn set_ring(interface: &str, ring: Ring, descriptors: u32) -> Result<(), KernelError> {
    let at = match ring {
        Ring::Receive => RX_PENDING,
        Ring::Transmit => TX_PENDING,
    };
    let commands = [ETHTOOL_GRINGPARAM, ETHTOOL_SRINGPARAM];
    change_words(interface, commands, RING_WORDS, |mut words| {
        words[at] = descriptors;
        words
    })
    .map_err(KernelError::of("set the ring of", interface))
}

/// Sets the number of combined channels; those of one way stay.
///
/// # Errors
/// As of [`set_ring`]; `EINVAL` also where the table that spreads flows names a queue that would vanish.
pub fn set_channels(interface: &str, combined: u32) -> Result<(), KernelError> {
    let commands = [ETHTOOL_GCHANNELS, ETHTOOL_SCHANNELS];
    change_words(interface, commands, CHANNEL_WORDS, |mut words| {
        words[COMBINED] = combined;
        words
    })
    .map_err(KernelError::of("set the channels of", interface))
}

/// Changes how long the interrupts of received packets wait.
///
/// # Errors
/// As of [`set_ring`].
pub fn set_coalescing(interface: &str, wanted: CoalescingChange) -> Result<(), KernelError> {
    let commands = [ETHTOOL_GCOALESCE, ETHTOOL_SCOALESCE];
    change_words(interface, commands, COALESCE_WORDS, |words| {
        coalesced(words, wanted)
    })
    .map_err(KernelError::of("set the coalescing of", interface))
}

fn coalesced(mut words: Vec<u32>, wanted: CoalescingChange) -> Vec<u32> {
    let changes = [
        (ADAPTIVE_RX, wanted.adaptive_rx.map(u32::from)),
        (RX_USECS, wanted.rx_usecs),
        (RX_FRAMES, wanted.rx_frames),
    ];
    for (at, value) in changes {
        words[at] = value.unwrap_or(words[at]);
    }
    words
}

/// Asks for a structure of words by the first command, and sends it back changed under the second.
fn change_words(
    name: &str,
    [get, set]: [u32; 2],
    count: usize,
    change: impl FnOnce(Vec<u32>) -> Vec<u32>,
) -> io::Result<()> {
    let mut words = change(raw_words(name, get, count)?);
    words[0] = set;
    let mut request: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    call(name, &mut request)
}

/// The features of a device by name.
///
/// # Errors
/// `ENODEV`; `EOPNOTSUPP` for a device without.
pub fn features(interface: &str) -> Result<BTreeMap<String, FeatureState>, KernelError> {
    all_features(interface).map_err(KernelError::of("read the features of", interface))
}

/// The same, with the kernel's own refusal.
pub(super) fn all_features(name: &str) -> io::Result<BTreeMap<String, FeatureState>> {
    let names = strings(name, ETH_SS_FEATURES)?;
    let blocks = names.len().div_ceil(32);
    let mut request = question(ETHTOOL_GFEATURES, 8 + blocks * 16);
    set_word(&mut request, 1, blocks);
    call(name, &mut request)?;
    Ok(names
        .into_iter()
        .enumerate()
        .filter(|(_, name)| !name.is_empty())
        .filter_map(|(bit, name)| Some((name, state(&request, bit)?)))
        .collect())
}

/// `struct ethtool_get_features_block`: available, requested, active, never changed.
fn state(answer: &[u8], bit: usize) -> Option<FeatureState> {
    let block = 2 + bit / 32 * 4;
    let has = |field: usize| Some(word(answer, block + field)? >> (bit % 32) & 1 == 1);
    Some(FeatureState {
        available: has(0)? && !has(3)?,
        wanted: has(1)?,
        active: has(2)?,
    })
}

/// Asks for features by name. The device may still not do one, where another that it needs is off.
///
/// # Errors
/// `EPERM`; `EINVAL` for a name that the kernel does not know, or one that the device has fixed.
pub fn set_features(interface: &str, wanted: &[(String, bool)]) -> Result<(), KernelError> {
    switch_features(interface, wanted).map_err(KernelError::of("set the features of", interface))
}

/// The same, with the kernel's own refusal.
pub(super) fn switch_features(name: &str, wanted: &[(String, bool)]) -> io::Result<()> {
    let names = strings(name, ETH_SS_FEATURES)?;
    let mut request = features_request(&names, wanted)
        .map_err(|unknown| io::Error::new(io::ErrorKind::InvalidInput, unknown))?;
    call(name, &mut request)
}

/// `struct ethtool_sfeatures`: command, blocks; `struct ethtool_set_features_block`: which are meant, which are to be on.
fn features_request(names: &[String], wanted: &[(String, bool)]) -> Result<Vec<u8>, String> {
    let blocks = names.len().div_ceil(32);
    let mut request = question(ETHTOOL_SFEATURES, 8 + blocks * 8);
    set_word(&mut request, 1, blocks);
    let mut set = |at: usize, bit: usize| {
        let at = (2 + bit / 32 * 2 + at) * 4 + bit % 32 / 8;
        request[at] |= 1 << (bit % 8);
    };
    for (feature, on) in wanted {
        let bit = names.iter().position(|name| name == feature);
        let bit = bit.ok_or_else(|| format!("the kernel has no feature {feature}"))?;
        set(0, bit);
        if *on {
            set(1, bit);
        }
    }
    // The bytes of a word are the machine's; bits were set in the order of the lowest first.
    if cfg!(target_endian = "big") {
        for word in request[8..].chunks_exact_mut(4) {
            word.reverse();
        }
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_s_bits_stand_in_its_block() {
        let names: Vec<String> = (0..40).map(|bit| format!("f{bit}")).collect();
        let wanted = [("f1".to_owned(), true), ("f33".to_owned(), false)];
        let request = features_request(&names, &wanted).unwrap();
        assert_eq!(request.len(), 8 + 2 * 8);
        let words: Vec<u32> = (0..6).map(|at| word(&request, at).unwrap()).collect();
        assert_eq!(words, [ETHTOOL_SFEATURES, 2, 2, 2, 2, 0]);
        assert!(
            features_request(&names, &[("fx".to_owned(), true)])
                .unwrap_err()
                .contains("fx")
        );
    }

    #[test]
    fn a_feature_is_read_from_its_block() {
        let mut answer = vec![0_u8; 8 + 32];
        // Bit 33: available and active.
        answer[8 + 16] = 2;
        answer[8 + 24] = 2;
        let on = FeatureState {
            available: true,
            wanted: false,
            active: true,
        };
        assert_eq!(state(&answer, 33), Some(on));
        let off = state(&answer, 0).unwrap();
        assert!(!off.available && !off.active);
        assert_eq!(state(&answer, 64), None);
    }

    #[test]
    fn what_is_not_meant_stays_as_it_was_read() {
        let words: Vec<u32> = (0..23).collect();
        let change = CoalescingChange {
            adaptive_rx: Some(true),
            rx_usecs: Some(50),
            rx_frames: None,
        };
        let changed = coalesced(words.clone(), change);
        assert_eq!((changed[1], changed[2], changed[10]), (50, 2, 1));
        assert_eq!(coalesced(words.clone(), CoalescingChange::default()), words);
    }

    #[test]
    fn loopback_tells_what_was_asked_of_it() {
        let tso = features("lo").unwrap()["tx-tcp-segmentation"];
        assert!(tso.available && tso.active);
        let missing = set_ring("lo", Ring::Receive, 64).unwrap_err();
        assert_eq!(missing.code(), Some(libc::EOPNOTSUPP));
    }
}
