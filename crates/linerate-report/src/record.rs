//! The record as a file: JSON with samples as columns of differences.

use linerate_model::bounds;
use linerate_model::record::{Kind, RecordError, RunRecord};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The record as bytes, with a newline at the end.
pub fn to_json(record: &RunRecord) -> Vec<u8> {
    bytes_of(record)
}

/// A record of any kind as bytes, with a newline at the end.
pub(crate) fn bytes_of(record: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(record).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// What kind of record the bytes say they are; `None` where they do not, or this build does not know it.
pub fn kind_of(bytes: &[u8]) -> Option<Kind> {
    #[derive(Deserialize)]
    struct Head {
        kind: Kind,
    }
    serde_json::from_slice::<Head>(bytes)
        .ok()
        .map(|head| head.kind)
}

/// Refuses a record, of a test or an observation, that holds more than this build reads ([`bounds`]), before any of its
/// samples are. What is not a record passes: the reader after this one says why.
///
/// # Errors
/// The limit, by name.
fn check_extent(bytes: &[u8]) -> Result<(), RecordError> {
    bounds::check_bytes(bytes)?;
    serde_json::from_slice::<bounds::Extent>(bytes).map_or(Ok(()), |extent| extent.check())
}

/// Reads a record of another kind than a test's. A newer schema is refused by name before the rest is looked at.
///
/// # Errors
/// What is no such record, is newer, or holds more than this build reads.
pub(crate) fn of_other_kind<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, RecordError> {
    check_extent(bytes)?;
    let not_a_record = |error: serde_json::Error| RecordError::NotARecord {
        reason: error.to_string().into(),
    };
    let version = RunRecord::version_of(&mut serde_json::Deserializer::from_slice(bytes));
    RunRecord::check_version(version.map_err(not_a_record)?)?;
    serde_json::from_slice(bytes).map_err(not_a_record)
}

/// Reads a record. A newer schema is refused by name before the rest is looked at; fields that this
/// build does not know are ignored; what is no record says why.
pub fn from_json(bytes: &[u8]) -> Result<RunRecord, RecordError> {
    check_extent(bytes)?;
    let not_a_record = |reason: &str| {
        Err(RecordError::NotARecord {
            reason: reason.into(),
        })
    };
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => return not_a_record("it is empty"),
        Some(b'{') => {}
        Some(_) => return not_a_record("it is not a JSON object"),
    }
    let read = RunRecord::read(
        || RunRecord::version_of(&mut serde_json::Deserializer::from_slice(bytes)),
        || serde_json::from_slice(bytes),
    );
    match read {
        Err(RecordError::NotARecord { .. }) if kind_of(bytes) == Some(Kind::Observation) => {
            not_a_record(
                "it is an observation of other programs' connections; `linerate show` and `explain` read it",
            )
        }
        Err(RecordError::NotARecord { .. }) if kind_of(bytes) == Some(Kind::DiskWatch) => {
            not_a_record("it is a record of disks; `linerate show` and `explain` read it")
        }
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream whose few bytes say two columns of four million samples.
    const STREAM: &str = r#"{"samples":{"rows":4000000,"at_ns":{"first":0,"steps":[[1,3999999]]},"columns":{"a":{"first":0,"steps":[[0,3999999]]}}}}"#;

    #[test]
    fn a_small_file_of_many_samples_is_refused_before_they_are_read() {
        let streams = vec![STREAM; 200].join(",");
        let text =
            format!(r#"{{"schema_version":1,"kind":"test","client":{{"streams":[{streams}]}}}}"#);
        let told = from_json(text.as_bytes()).unwrap_err().to_string();
        assert!(told.contains("1600000000 samples"), "{told}");
        assert!(
            told.contains("more than the 33554432 that are read"),
            "{told}"
        );

        let connections = [STREAM; 5].join(",");
        let text =
            format!(r#"{{"schema_version":1,"kind":"observation","connections":[{connections}]}}"#);
        let seen = crate::observation::from_json(text.as_bytes());
        assert!(matches!(
            seen,
            Err(RecordError::TooLarge {
                found: 40_000_000,
                ..
            })
        ));
    }

    #[test]
    fn a_file_of_too_many_bytes_is_refused_by_its_size() {
        let bytes = vec![b' '; bounds::MAX_RECORD_BYTES + 1];
        let told = from_json(&bytes).unwrap_err().to_string();
        assert!(
            told.contains("67108865 bytes, more than the 67108864"),
            "{told}"
        );
    }
}
