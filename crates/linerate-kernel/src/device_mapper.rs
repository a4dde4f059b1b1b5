#![expect(unsafe_code, reason = "the device mapper answers an ioctl")]
//! Tables of mapped devices (include/uapi/linux/dm-ioctl.h). Only root may ask.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use linerate_model::block::{DeviceNumber, MappedTarget, SECTOR};
use linerate_model::units::Bytes;

/// `struct dm_ioctl`, and what follows it.
const HEADER: usize = 312;
/// Enough for hundreds of lines.
const BUFFER: usize = 1 << 16;
/// `struct dm_target_spec`.
const SPEC: usize = 40;
/// `_IOWR(DM_IOCTL, DM_TABLE_STATUS_CMD, struct dm_ioctl)`.
const TABLE_STATUS: libc::c_ulong = 0xC138_FD0C;
/// The interface's version, its minor numbers ignored.
const VERSION: u32 = 4;
/// `DM_STATUS_TABLE_FLAG`: the table, not the state.
const TABLE: u32 = 1 << 4;
/// `DM_BUFFER_FULL_FLAG`.
const BUFFER_FULL: u32 = 1 << 8;
/// `DM_NOFLUSH_FLAG`: nothing is written for the sake of the answer.
const NO_FLUSH: u32 = 1 << 11;
/// Places in `struct dm_ioctl`.
const DATA_SIZE: usize = 12;
const DATA_START: usize = 16;
const TARGET_COUNT: usize = 20;
const FLAGS: usize = 28;
const DEVICE: usize = 40;

/// The control file, open.
#[derive(Debug)]
pub struct DeviceMapper(File);

impl DeviceMapper {
    /// Opens it.
    ///
    /// # Errors
    /// `PermissionDenied` without root, `NotFound` where the kernel has no device mapper.
    pub fn open() -> io::Result<Self> {
        File::options()
            .read(true)
            .write(true)
            .open("/dev/mapper/control")
            .map(Self)
    }

    /// The table of a device.
    ///
    /// # Errors
    /// `ENXIO` where it is no mapped device; those of ioctl; `InvalidData` for an answer of another layout.
    pub fn table(&self, device: DeviceNumber) -> io::Result<Vec<MappedTarget>> {
        let mut buffer = vec![0_u8; BUFFER];
        put(&mut buffer, 0, VERSION);
        put(
            &mut buffer,
            DATA_SIZE,
            u32::try_from(BUFFER).unwrap_or(u32::MAX),
        );
        put(
            &mut buffer,
            DATA_START,
            u32::try_from(HEADER).unwrap_or(u32::MAX),
        );
        put(&mut buffer, FLAGS, TABLE | NO_FLUSH);
        let packed = (u64::from(device.minor) & 0xff)
            | (u64::from(device.major) << 8)
            | ((u64::from(device.minor) & !0xff) << 12);
        buffer[DEVICE..DEVICE + 8].copy_from_slice(&packed.to_ne_bytes());
        // SAFETY: the buffer begins with a `struct dm_ioctl` and is as long as that says.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), TABLE_STATUS, buffer.as_mut_ptr()) };
        let failed = (done < 0).then(io::Error::last_os_error);
        let table = failed.map_or_else(|| parse(&buffer), Err);
        // The table of an encrypted device holds its key.
        buffer.fill(0);
        std::hint::black_box(&buffer);
        table
    }
}

fn put(buffer: &mut [u8], at: usize, number: u32) {
    buffer[at..at + 4].copy_from_slice(&number.to_ne_bytes());
}

fn parse(buffer: &[u8]) -> io::Result<Vec<MappedTarget>> {
    let strange = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the device mapper's answer has another layout",
        )
    };
    let number = |at: usize| {
        let bytes = buffer.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_ne_bytes(bytes)).ok()
    };
    let flags = number(FLAGS).ok_or_else(strange)?;
    let data = number(DATA_START).ok_or_else(strange)?;
    let count = number(TARGET_COUNT).ok_or_else(strange)?;
    if flags & usize::try_from(BUFFER_FULL).unwrap_or(0) != 0 {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "the table is too long",
        ));
    }
    let mut table = Vec::new();
    let mut at = data;
    for _ in 0..count.min(BUFFER / SPEC) {
        let spec = buffer.get(at..at + SPEC).ok_or_else(strange)?;
        let rest = &buffer[at + SPEC..];
        let sectors = spec[8..16]
            .try_into()
            .map(u64::from_ne_bytes)
            .map_err(|_| strange())?;
        table.push(target(text(&spec[24..40]), text(rest), sectors));
        // Counted from the first one.
        let next = spec[20..24]
            .try_into()
            .map(u32::from_ne_bytes)
            .map_err(|_| strange())?;
        at = data.saturating_add(usize::try_from(next).unwrap_or(usize::MAX));
        if at >= buffer.len() {
            break;
        }
    }
    Ok(table)
}

fn text(bytes: &[u8]) -> &str {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).unwrap_or_default()
}

/// What is kept of a line: numbers, no addresses.
fn target(name: &str, arguments: &str, sectors: u64) -> MappedTarget {
    let mut words = arguments.split(' ');
    let mut made = MappedTarget {
        target: name.into(),
        size: Bytes(sectors.saturating_mul(SECTOR)),
        raid: None,
        members: None,
        copies: None,
    };
    match name {
        "striped" => made.members = words.next().and_then(|word| word.parse().ok()),
        // The log's kind, how many arguments it has, these, then the devices.
        "mirror" => {
            let mut words = words.skip(1);
            let log: Option<usize> = words.next().and_then(|word| word.parse().ok());
            made.members = log.and_then(|log| words.nth(log)?.parse().ok());
        }
        // The level, how many parameters it has, these, then the devices.
        "raid" => {
            made.raid = words.next().map(Into::into);
            let parameters: usize = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            let parameters: Vec<&str> = words.by_ref().take(parameters).collect();
            made.members = words.next().and_then(|word| word.parse().ok());
            let after = |key: &str| {
                let at = parameters.iter().position(|word| *word == key)?;
                parameters.get(at + 1)?.parse().ok()
            };
            let is_raid10 = made
                .raid
                .as_ref()
                .is_some_and(|raid| raid.starts_with("raid10"));
            // Two where the table does not say (dm-raid.rst).
            made.copies = is_raid10.then(|| after("raid10_copies").unwrap_or(2));
        }
        _ => {}
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_line_are_kept_and_nothing_else() {
        let mirror = target(
            "mirror",
            "core 2 1024 nosync 2 253:0 0 253:1 0 1 handle_errors",
            8,
        );
        assert_eq!((mirror.members, mirror.size), (Some(2), Bytes(4096)));
        let raid = target(
            "raid",
            "raid10 3 128 region_size 1024 4 253:0 253:1 - 253:3",
            8,
        );
        assert_eq!((raid.members, raid.copies), (Some(4), Some(2)));
        let three = target(
            "raid",
            "raid10 5 128 raid10_copies 3 region_size 8 6 - - - -",
            8,
        );
        assert_eq!((three.members, three.copies), (Some(6), Some(3)));
        assert_eq!(target("striped", "18 128 8:0 0", 8).members, Some(18));
        let crypt = target("crypt", "aes-xts-plain64 0123456789abcdef 0 8:1 4096", 8);
        assert!(!format!("{crypt:?}").contains("0123456789abcdef"));
        for odd in ["", "core", "core 9 1", "raid1 99"] {
            let made = target("mirror", odd, 8);
            assert_eq!(made.members, None, "{odd}");
        }
    }

    #[test]
    fn an_answer_that_leads_nowhere_is_refused() {
        let mut buffer = vec![0; BUFFER];
        put(&mut buffer, TARGET_COUNT, 1);
        put(&mut buffer, DATA_START, 65_530);
        assert!(parse(&buffer).is_err());
        put(&mut buffer, DATA_START, 312);
        put(&mut buffer, FLAGS, BUFFER_FULL);
        assert!(parse(&buffer).is_err());
    }
}
