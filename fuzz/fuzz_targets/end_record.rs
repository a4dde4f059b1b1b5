#![no_main]
//! The server's half of a record, as a server sends it: whatever it says, the client must be able to
//! book it, explain it and show it.

use libfuzzer_sys::fuzz_target;
use linerate_model::evidence::Evidence;
use linerate_model::fixture::{self, Traffic};
use linerate_model::plan::Plan;
use linerate_model::record::EndRecord;
use linerate_report::view::RunView;
use linerate_report::{json, record, text};

fuzz_target!(|bytes: &[u8]| {
    let Ok(half) = serde_json::from_slice::<EndRecord>(bytes) else { return };
    let mut run = fixture::run(&Plan::new("server"), &Traffic::default());
    run.server = Some(half);
    let evidence = Evidence::of(&run);
    let findings = linerate_explain::explain(&evidence);
    let view = RunView::of(&run, &findings);
    let document = json::document(&view, &run);
    assert!(serde_json::from_str::<serde_json::Value>(&document).is_ok());
    assert!(!text::report(&view).is_empty());
    assert!(record::from_json(&record::to_json(&run)).is_ok());
});
