//! The figures of a regular test, from its record.

use linerate_analysis::evidence::Evidence;
use linerate_model::watch::WatchFigures;
use linerate_report::{record, watch_figures};

use crate::test;

/// Reads a record, explains it, and takes the figures that an archive keeps; else why there are none.
pub(crate) fn of(json: &[u8]) -> Result<WatchFigures, String> {
    let record = record::from_json(json).map_err(|error| error.to_string())?;
    let view = test::view(&Evidence::of(&record));
    watch_figures::of(&view, None).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use linerate_model::plan::Plan;
    use linerate_testing::fixture;

    use super::*;

    #[test]
    fn a_record_has_figures_and_other_bytes_have_a_reason() {
        let run = fixture::run(&Plan::new("server"), &fixture::Traffic::default());
        let figures = of(&record::to_json(&run)).unwrap();
        assert!(figures.goodput_bps > 0.0);
        assert!(!figures.with_traffic);
        assert!(!of(b"{}").unwrap_err().is_empty());
    }
}
