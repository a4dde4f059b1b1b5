//! A decrypted token, the base64 around it, a users file, and the memory of tokens.

use linerate_wire::auth::{Credentials, SeenTokens, Users, check_skew, decode_token, encode_token};

/// Feeds one input.
pub fn run(data: &[u8]) {
    let mut seen = SeenTokens::new(10, 4);
    if let Ok(credentials) = Credentials::parse(data) {
        let again = Credentials::parse(credentials.plaintext().as_bytes()).expect("ours");
        assert_eq!(again, credentials);
        let _ = check_skew(credentials.timestamp, 1_700_000_000, 10);
        if seen
            .accept(data, credentials.timestamp, credentials.timestamp)
            .is_ok()
        {
            assert!(
                seen.accept(data, credentials.timestamp, credentials.timestamp)
                    .is_err()
            );
        }
    }
    for (index, line) in data.split(|byte| *byte == b'\n').enumerate() {
        let now = i64::try_from(index).expect("small");
        let _ = seen.accept(line, now, now);
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(bytes) = decode_token(text) {
        assert_eq!(encode_token(&bytes), text.trim_end_matches(['\r', '\n']));
    }
    let (users, _) = Users::parse(text);
    let _ = users.allows("mario", &[0; 32]);
}
