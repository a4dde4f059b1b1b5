//! What a record of block devices shows: [`DiskRates`], the [`Account`] from the top of a stack to its disks, and whether
//! a device was at its limit ([`saturation`](Saturation::of)).

mod account;
mod rates;
mod saturation;

pub use account::{Account, accounts};
pub use rates::{Busy, DiskRates, RequestRates};
pub use saturation::Saturation;
