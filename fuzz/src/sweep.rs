//! A sweep, with a profile beside it.

use linerate_experiment::sweep::{MOST_CELLS, Sweep};

const PROFILE: &str = "name = \"beside\"\n[sysctl]\n\"net.ipv4.tcp_sack\" = 1\n";

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let load = |name: &str| match name {
        "absent" => Err("cannot read absent".to_owned()),
        _ => Ok(PROFILE.to_owned()),
    };
    if let Ok(sweep) = Sweep::parse("fuzz.toml", text, &load) {
        assert!(sweep.cells.len() <= MOST_CELLS);
        assert!(sweep.runs() > 0);
        for cell in 0..sweep.cells.len() {
            assert!(!sweep.words_of(cell).is_empty());
        }
    }
}
