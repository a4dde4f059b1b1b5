//! The record as a file: JSON with samples as columns of differences.

use linerate_model::record::{Kind, RecordError, RunRecord};
use serde::Deserialize;

/// The record as bytes, with a newline at the end.
pub fn to_json(record: &RunRecord) -> Vec<u8> {
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

/// Reads a record. A newer schema is refused by name before the rest is looked at; fields that this
/// build does not know are ignored; what is no record says why.
pub fn from_json(bytes: &[u8]) -> Result<RunRecord, RecordError> {
    let not_a_record = |reason: &str| {
        Err(RecordError::NotARecord {
            reason: reason.into(),
        })
    };
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => return not_a_record("it is empty"),
        Some(b'{') => {}
        Some(_) => return not_a_record("it is no JSON object"),
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
        read => read,
    }
}
