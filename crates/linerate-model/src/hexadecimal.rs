//! Bytes as hexadecimal digits: hashes, tokens, signatures.

/// Two lower-case digits for each byte.
pub fn digits(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Exactly `N` bytes from digits of either case; absent = these are other digits, or more, or fewer.
pub fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = u8::try_from(high << 4 | low).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_their_digits() {
        let all: [u8; 256] = std::array::from_fn(|at| u8::try_from(at).unwrap());
        assert_eq!(bytes(&digits(&all)), Some(all));
        assert_eq!(digits(&[0, 0x0f, 0xa0, 0xff]), "000fa0ff");
        assert_eq!(bytes("A0fF"), Some([0xa0, 0xff]));
        for wrong in ["", "a0f", "a0ff0", "a0fg", "+0ff", "é0f"] {
            assert_eq!(bytes::<2>(wrong), None, "{wrong}");
        }
    }
}
