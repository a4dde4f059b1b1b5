//! JSON from a peer: bounded before it is parsed, read key by key, types never trusted.
//!
//! Since 3.18 iperf3 ignores a key of the wrong type (CVE-2024-53580 was that it did not); so do we.
//! Unknown keys are ignored.

use std::borrow::Cow;

use serde_json::{Map, Value};

use linerate_model::plain_text::PlainText;

use crate::error::{ProtocolError, beginning};

/// How much a peer's JSON may cost us.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Objects and arrays inside one another.
    pub(crate) depth: usize,
    /// Values in all, counted by their separators: a parsed value costs up to 20 times its text.
    pub(crate) values: usize,
}

/// Parses one JSON object inside `bounds`. Bytes that are no UTF-8 (a title in Latin-1) are
/// replaced, and what follows the object is ignored: neither disturbs a stock peer.
pub(crate) fn object(
    message: &'static str,
    bytes: &[u8],
    bounds: Bounds,
) -> Result<Map<String, Value>, ProtocolError> {
    let fail = |reason: PlainText| ProtocolError::Json { message, reason };
    let text: Cow<'_, str> = String::from_utf8_lossy(bytes);
    check_bounds(text.as_bytes(), bounds).map_err(|reason| fail(reason.into()))?;
    match serde_json::Deserializer::from_str(&text).into_iter().next() {
        Some(Ok(Value::Object(map))) => Ok(map),
        Some(Ok(other)) => Err(fail(
            format!("{} instead of an object", kind(&other)).into(),
        )),
        Some(Err(error)) => Err(fail(beginning(&error.to_string(), 200))),
        None => Err(fail("they are empty".into())),
    }
}

/// Walks over the text once, without memory, and counts nesting and separators outside strings.
fn check_bounds(text: &[u8], bounds: Bounds) -> Result<(), &'static str> {
    let (mut depth, mut values) = (0_usize, 0_usize);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text {
        if in_string {
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                values += 1;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if depth > bounds.depth {
            return Err("they are nested too deep");
        }
        if values > bounds.values {
            return Err("they contain too many values");
        }
    }
    Ok(())
}

/// What a value is, in words.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// A whole number, not negative: `5` and `5.0` are, `-1`, `0.5` and 2^64 are not.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    let number = value.as_number()?;
    if let Some(whole) = number.as_u64() {
        return Some(whole);
    }
    let float = number.as_f64()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole and inside the range of u64"
    )]
    ((0.0..TWO_TO_64).contains(&float) && float.fract() == 0.0).then_some(float as u64)
}

/// A whole number with a sign. Debian's iperf3 3.12 prints −1 as 18446744073709551615, so what is
/// above the range of i64 is read as the negative number with the same bits.
pub(crate) fn signed(value: &Value) -> Option<i64> {
    if let Some(signed) = value.as_i64() {
        return Some(signed);
    }
    if let Some(whole) = whole(value) {
        return Some(whole.cast_signed());
    }
    let float = value.as_f64()?;
    if (TWO_TO_64..=TWO_TO_64).contains(&float) {
        return Some(-1); // the same −1 after a trip through a double
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole and inside the range of i64"
    )]
    ((-TWO_TO_64 / 2.0..0.0).contains(&float) && float.fract() == 0.0).then_some(float as i64)
}

/// Reads keys of one object; one of the wrong type is as one that is absent.
pub(crate) struct Keys<'a> {
    map: &'a Map<String, Value>,
    message: &'static str,
    place: String,
}

impl<'a> Keys<'a> {
    /// Reads from `map`; `place` stands before keys in texts (`streams[0].` or nothing).
    pub(crate) const fn new(
        map: &'a Map<String, Value>,
        message: &'static str,
        place: String,
    ) -> Self {
        Self {
            map,
            message,
            place,
        }
    }

    /// A whole number without a sign; `None` where it is absent or something else.
    pub(crate) fn count(&self, key: &str) -> Option<u64> {
        whole(self.map.get(key)?)
    }

    /// A whole number with a sign.
    pub(crate) fn integer(&self, key: &str) -> Option<i64> {
        signed(self.map.get(key)?)
    }

    /// A number. `null` is 0: iperf3 prints what is not a number so.
    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        match self.map.get(key)? {
            Value::Null => Some(0.0),
            value => value.as_f64().filter(|float| float.is_finite()),
        }
    }

    /// A string; `None` where it is absent or something else.
    pub(crate) fn text<T: for<'t> From<&'t str>>(&self, key: &str) -> Option<T> {
        self.map.get(key)?.as_str().map(T::from)
    }

    /// A flag written as `true`; `false` and absence are the same.
    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.map.get(key) == Some(&Value::Bool(true))
    }

    /// A flag written as a number.
    pub(crate) fn is_nonzero(&self, key: &str) -> bool {
        self.count(key).is_some_and(|number| number != 0)
    }

    /// The object under a key.
    pub(crate) fn object(&self, key: &str) -> Option<&'a Map<String, Value>> {
        self.map.get(key)?.as_object()
    }

    /// `found`, or the error that says which key is missing.
    pub(crate) fn required<T>(
        &self,
        key: &str,
        expected: &'static str,
        found: Option<T>,
    ) -> Result<T, ProtocolError> {
        found.ok_or_else(|| ProtocolError::MissingKey {
            message: self.message,
            key: format!("{}{key}", self.place).into(),
            expected,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whole_numbers_are_exact() {
        assert_eq!(whole(&json!(5.0)), Some(5));
        assert_eq!(whole(&json!(u64::MAX)), Some(u64::MAX));
        assert_eq!(whole(&json!(1e19)), Some(10_000_000_000_000_000_000));
        for wrong in [
            json!(-1),
            json!(0.5),
            json!(-0.5),
            json!(1e20),
            json!("5"),
            json!(null),
        ] {
            assert_eq!(whole(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn minus_one_of_debians_3_12_is_minus_one() {
        assert_eq!(signed(&json!(18_446_744_073_709_551_615_u64)), Some(-1));
        assert_eq!(signed(&json!(1.844_674_407_370_955_2e19)), Some(-1));
        assert_eq!(signed(&json!(-1)), Some(-1));
        assert_eq!(signed(&json!(-1.0)), Some(-1));
        assert_eq!(signed(&json!(7.0)), Some(7));
        assert_eq!(signed(&json!(-1e300)), None);
        assert_eq!(signed(&json!(0.5)), None);
    }

    #[test]
    fn bounds_count_only_outside_strings() {
        let bounds = Bounds {
            depth: 2,
            values: 3,
        };
        assert!(object("x", br#"{"a":"[[[[{{{{,,,,\"[[["}"#, bounds).is_ok());
        assert!(object("x", br#"{"a":[[1]]}"#, bounds).is_err());
        assert!(object("x", br#"{"a":[1,2,3]}"#, bounds).is_err());
    }

    #[test]
    fn the_end_and_the_encoding_are_forgiven() {
        let bounds = Bounds {
            depth: 2,
            values: 3,
        };
        for end in ["\0\n", " trailing", "{}", "}]"] {
            let text = format!("{{\"a\":1}}{end}");
            assert_eq!(object("x", text.as_bytes(), bounds).unwrap()["a"], 1);
        }
        assert_eq!(
            object("x", b"{\"a\":\"\xe9\"}", bounds).unwrap()["a"],
            "\u{fffd}"
        );
        for wrong in [&b""[..], b"\0\0", b"[]", b"5", b"{", b"x{}", b"null"] {
            assert!(object("x", wrong, bounds).is_err());
        }
    }
}
