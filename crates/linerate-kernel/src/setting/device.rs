//! Settings of a device that its driver holds, by ethtool's ioctl.

use std::collections::BTreeMap;

use crate::KernelError;
use crate::ethtool::change;

pub use crate::ethtool::change::{CoalescingChange, FeatureState, Ring};

/// Sets the length of a descriptor ring. Most drivers take their link down for a moment.
///
/// # Errors
/// `EOPNOTSUPP` for a driver without; `EINVAL` beyond its maximum; `EPERM`.
pub fn set_ring(interface: &str, ring: Ring, descriptors: u32) -> Result<(), KernelError> {
    change::set_ring(interface, ring, descriptors)
        .map_err(KernelError::of("set the ring of", interface))
}

/// Sets the number of combined channels; those of one way stay.
///
/// # Errors
/// As of [`set_ring`]; `EINVAL` also where the table that spreads flows names a queue that would vanish.
pub fn set_channels(interface: &str, combined: u32) -> Result<(), KernelError> {
    change::set_channels(interface, combined)
        .map_err(KernelError::of("set the channels of", interface))
}

/// Changes how long the interrupts of received packets wait.
///
/// # Errors
/// As of [`set_ring`].
pub fn set_coalescing(interface: &str, wanted: CoalescingChange) -> Result<(), KernelError> {
    change::set_coalescing(interface, wanted)
        .map_err(KernelError::of("set the coalescing of", interface))
}

/// The features of a device by name.
///
/// # Errors
/// `ENODEV`; `EOPNOTSUPP` for a device without.
pub fn features(interface: &str) -> Result<BTreeMap<String, FeatureState>, KernelError> {
    change::features(interface).map_err(KernelError::of("read the features of", interface))
}

/// Asks for features by name. The device may still not do one, where another that it needs is off.
///
/// # Errors
/// `EPERM`; `EINVAL` for a name that the kernel does not know, or one that the device has fixed.
pub fn set_features(interface: &str, wanted: &[(String, bool)]) -> Result<(), KernelError> {
    change::set_features(interface, wanted)
        .map_err(KernelError::of("set the features of", interface))
}
