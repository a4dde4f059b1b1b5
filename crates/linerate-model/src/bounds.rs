//! What a record may contain, whether it is from a file or a peer. A few bytes of runs can say many millions of samples,
//! so a record's size is looked at before its samples are read.

use serde::Deserialize;

use crate::plan::MAX_STREAMS;
use crate::record::{EndRecord, RecordError};
use crate::series::{MAX_CELLS, Series};

/// The most bytes of a record's JSON.
pub const MAX_RECORD_BYTES: usize = 64 << 20;
/// The most streams of one end: those of both directions.
pub const MAX_STREAMS_OF_AN_END: usize = 2 * MAX_STREAMS as usize;
/// The most connections of an observation, and the most devices of a record of disks.
pub const MAX_CONNECTIONS: usize = 4096;

/// The cells of a series.
struct Cells(usize);

impl<'de> Deserialize<'de> for Cells {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Series::cells_of(input).map(Self)
    }
}

#[derive(Deserialize)]
struct OfStream {
    #[serde(default)]
    samples: Option<Cells>,
}

#[derive(Deserialize)]
struct OfEnd {
    #[serde(default)]
    streams: Vec<OfStream>,
    #[serde(default)]
    counters: Option<Cells>,
}

impl OfEnd {
    fn cells(&self) -> usize {
        cells(&self.streams, self.counters.as_ref())
    }
}

impl EndRecord {
    /// The cells (rows times columns) of all its series together.
    pub fn cells(&self) -> usize {
        let streams = self.streams.iter().map(|stream| stream.samples.cells());
        streams.fold(self.counters.cells(), usize::saturating_add)
    }
}

/// What a record says it holds, read without its samples: of a test its two ends, of an observation its connections, of
/// disks its devices.
#[derive(Default, Deserialize)]
pub struct Extent {
    #[serde(default)]
    client: Option<OfEnd>,
    #[serde(default)]
    server: Option<OfEnd>,
    #[serde(default)]
    connections: Vec<OfStream>,
    #[serde(default)]
    devices: Vec<OfStream>,
    #[serde(default)]
    counters: Option<Cells>,
}

impl Extent {
    /// What one end's half of a record says it holds.
    pub fn of_end<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let end = OfEnd::deserialize(input)?;
        Ok(Self {
            client: Some(end),
            ..Self::default()
        })
    }

    /// Refuses a record that holds more than this build reads.
    ///
    /// # Errors
    /// The limit that it goes beyond, by name.
    pub fn check(&self) -> Result<(), RecordError> {
        let ends = [&self.client, &self.server].into_iter().flatten();
        let streams = ends.map(|end| end.streams.len()).max().unwrap_or(0);
        limit("streams of one end", streams, MAX_STREAMS_OF_AN_END)?;
        limit("connections", self.connections.len(), MAX_CONNECTIONS)?;
        limit("devices", self.devices.len(), MAX_CONNECTIONS)?;
        limit("samples (rows times columns)", self.samples(), MAX_CELLS)
    }

    /// The cells (rows times columns) of all its series together.
    pub fn samples(&self) -> usize {
        let ends = [&self.client, &self.server].into_iter().flatten();
        let seen = cells(&self.connections, self.counters.as_ref());
        let seen = seen.saturating_add(cells(&self.devices, None));
        ends.map(OfEnd::cells).fold(seen, usize::saturating_add)
    }
}

fn cells(streams: &[OfStream], counters: Option<&Cells>) -> usize {
    let of_streams = streams.iter().filter_map(|stream| stream.samples.as_ref());
    let all = of_streams.chain(counters).map(|of| of.0);
    all.fold(0, usize::saturating_add)
}

/// Refuses a record of more bytes than [`MAX_RECORD_BYTES`].
///
/// # Errors
/// The limit, by name.
pub fn check_bytes(bytes: &[u8]) -> Result<(), RecordError> {
    limit("bytes", bytes.len(), MAX_RECORD_BYTES)
}

fn limit(what: &'static str, found: usize, most: usize) -> Result<(), RecordError> {
    if found > most {
        return Err(RecordError::TooLarge { what, found, most });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), String> {
        let extent: Extent = serde_json::from_str(text).unwrap();
        extent.check().map_err(|error| error.to_string())
    }

    #[test]
    fn a_few_bytes_that_say_many_millions_are_counted_before_they_are_read() {
        let bomb = r#"{"role":"server","streams":[
            {"samples":{"rows":4000000,"at_ns":{"first":0,"steps":[[1,3999999]]},"columns":{"a":{"first":0,"steps":[[0,3999999]]}}}},
            {"samples":{"rows":18446744073709551615,"columns":{}}}],
            "counters":{"rows":10,"columns":{"x":{"first":1}}}}"#;
        let of =
            |text: &str| Extent::of_end(&mut serde_json::Deserializer::from_str(text)).unwrap();
        assert_eq!(of(bomb).samples(), usize::MAX);
        assert!(of(bomb).check().is_err());
        let modest = r#"{"streams":[{"samples":{"rows":4,"columns":{"a":{}}}},{}]}"#;
        assert_eq!(of(modest).samples(), 8);
    }

    #[test]
    fn samples_of_all_series_together_are_bounded() {
        let series =
            |rows: usize| format!(r#"{{"samples":{{"rows":{rows},"columns":{{"a":{{}}}}}}}}"#);
        let half = MAX_CELLS / 4;
        let two = [series(half), series(half)].join(",");
        let both = |more: &str| {
            format!(
                r#"{{"client":{{"streams":[{}]}},"server":{{"streams":[{}]{more}}}}}"#,
                series(half),
                series(half)
            )
        };
        assert_eq!(check(&both("")), Ok(()));
        let error = check(&both(r#","counters":{"rows":1}"#)).unwrap_err();
        assert!(
            error.contains(&format!("{} samples", MAX_CELLS + 1)),
            "{error}"
        );
        assert!(
            error.contains(&format!("more than the {MAX_CELLS}")),
            "{error}"
        );
        assert_eq!(check(&format!(r#"{{"connections":[{two}]}}"#)), Ok(()));
        let three = format!(r#"{{"connections":[{two},{}]}}"#, series(1));
        assert!(check(&three).unwrap_err().contains("samples"));
        let endless = r#"{"counters":{"rows":18446744073709551615,"columns":{}}}"#;
        assert!(check(endless).unwrap_err().contains("samples"));
    }

    #[test]
    fn streams_and_connections_are_bounded() {
        let many = |count: usize| vec!["{}"; count].join(",");
        let end = |count| format!(r#"{{"server":{{"streams":[{}]}}}}"#, many(count));
        assert_eq!(check(&end(MAX_STREAMS_OF_AN_END)), Ok(()));
        let error = check(&end(MAX_STREAMS_OF_AN_END + 1)).unwrap_err();
        assert!(
            error.contains("257 streams of one end, more than the 256"),
            "{error}"
        );
        let seen = format!(r#"{{"connections":[{}]}}"#, many(MAX_CONNECTIONS + 1));
        assert!(check(&seen).unwrap_err().contains("4097 connections"));
    }
}
