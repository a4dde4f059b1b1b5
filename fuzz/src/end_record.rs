//! The server's half of a record, as a server sends it: whatever it says, the client must be able to put it into
//! the ledger, explain it and show it.

use linerate_model::bounds::Extent;
use linerate_model::plan::Plan;
use linerate_model::record::EndRecord;
use linerate_testing::fixture::{self, Traffic};

use crate::record::MOST_SAMPLES;

/// Feeds one input.
pub fn run(data: &[u8]) {
    let cells = Extent::of_end(&mut serde_json::Deserializer::from_slice(data))
        .map(|extent| extent.samples());
    if cells.is_ok_and(|cells| cells > MOST_SAMPLES) {
        return;
    }
    let Ok(half) = serde_json::from_slice::<EndRecord>(data) else {
        return;
    };
    let mut run = fixture::run(&Plan::new("server"), &Traffic::default());
    run.server = Some(half);
    crate::record::show(&run);
}
