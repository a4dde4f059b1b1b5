//! The messages of a probe connection: 64 bytes each, which the server sends back as they came.
//!
//! A client that asked for it (`probe` in its parameters) and whose server agreed (`probe` in its hello) opens one TCP
//! connection with the test's cookie when it may create the streams, before all of these. Behind the cookie each message is
//! [`OPENING`], a number, and zeros.

/// Bytes of a message, either way.
pub const PROBE_BYTES: usize = 64;
/// What each begins with.
pub const OPENING: [u8; 8] = *b"linerate";
/// More messages than this in a second are no measurement: the server closes the connection.
pub const MOST_A_SECOND: u32 = 1000;

const NUMBER: std::ops::Range<usize> = OPENING.len()..OPENING.len() + 8;

/// The message with a number.
pub fn encode(number: u64) -> [u8; PROBE_BYTES] {
    let mut bytes = [0; PROBE_BYTES];
    bytes[..OPENING.len()].copy_from_slice(&OPENING);
    bytes[NUMBER].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// The number of a message; `None` where it is none.
pub fn number(bytes: &[u8; PROBE_BYTES]) -> Option<u64> {
    let rest = bytes.strip_prefix(&OPENING)?;
    let (number, zeros) = rest.split_first_chunk()?;
    zeros
        .iter()
        .all(|byte| *byte == 0)
        .then(|| u64::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_wire_is_written_down() {
        let bytes = encode(0x0102);
        assert_eq!(&bytes[..16], b"linerate\0\0\0\0\0\0\x01\x02");
        assert!(bytes[16..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn anything_else_is_no_message() {
        let mut other = encode(7);
        other[0] = b'L';
        assert_eq!(number(&other), None);
        let mut longer = encode(7);
        longer[PROBE_BYTES - 1] = 1;
        assert_eq!(number(&longer), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(n in any::<u64>()) {
            prop_assert_eq!(number(&encode(n)), Some(n));
        }

        #[test]
        fn no_bytes_panic(bytes in any::<[u8; 32]>()) {
            let mut all = [0; PROBE_BYTES];
            all[..32].copy_from_slice(&bytes);
            let _ = number(&all);
        }
    }
}
