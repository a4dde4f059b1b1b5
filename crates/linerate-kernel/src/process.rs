//! The process as a whole: going to the background, and local time for labels.
#![expect(
    unsafe_code,
    reason = "daemon, rlimits, localtime_r and strftime are C"
)]

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;

use linerate_model::units::Nanos;

/// The longest label that [`local_label`] makes, bytes.
const LONGEST_LABEL: usize = 256;

/// Goes to the background: a new session, `/` as the working folder, standard streams on /dev/null
/// (`daemon(3)`).
///
/// To be called while the process has one thread: the others would not come along.
pub fn go_to_background() -> io::Result<()> {
    // SAFETY: daemon takes two integers and touches no memory of ours.
    if unsafe { libc::daemon(0, 0) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Raises the number of descriptors that this process may have to what its host allows it
/// (`RLIMIT_NOFILE`, soft to hard), and gives back that number.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is to a live value of the right type.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: as above.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(limit.rlim_cur)
}

/// An instant of the wall clock in the local time zone, in a format of `strftime(3)`. Empty where the
/// format gives nothing, or more than 255 bytes.
pub fn local_label(wall: Nanos, format: &str) -> String {
    let Ok(format) = CString::new(format) else {
        return String::new();
    };
    let seconds = libc::time_t::try_from(wall.0 / 1_000_000_000).unwrap_or(0);
    let mut fields = MaybeUninit::<libc::tm>::zeroed();
    let mut label = [0_u8; LONGEST_LABEL];
    // SAFETY: both pointers are to live values of the right type; an all-zero `tm` is a valid one, so it
    // may be read even if localtime_r fails; strftime writes at most the length that it is given.
    let length = unsafe {
        libc::localtime_r(&raw const seconds, fields.as_mut_ptr());
        libc::strftime(
            label.as_mut_ptr().cast(),
            label.len(),
            format.as_ptr(),
            fields.as_ptr(),
        )
    };
    String::from_utf8_lossy(&label[..length.min(LONGEST_LABEL)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_is_allowed() {
        let raised = raise_descriptor_limit().unwrap();
        assert!(raised >= 3);
        assert_eq!(raise_descriptor_limit().unwrap(), raised);
    }

    #[test]
    fn labels_follow_their_format() {
        let wall = Nanos(1_795_000_000_000_000_000);
        assert_eq!(local_label(wall, "%Y-%%").len(), 6);
        assert_eq!(local_label(wall, "plain"), "plain");
        assert_eq!(local_label(wall, ""), "");
        assert_eq!(local_label(wall, "a\0b"), "");
        assert_eq!(local_label(wall, &"%Y".repeat(200)), "");
    }
}
