//! The paths that come with the program.

use linerate_lab::scenario::{PRESETS, Preset};

#[test]
fn every_preset_reads_and_is_called_as_its_file() {
    for preset in PRESETS {
        let scenario = preset.scenario().unwrap();
        assert_eq!(scenario.name, preset.name);
        assert!(scenario.about.len() > 20, "{}", preset.name);
        assert!(!scenario.expect.top.is_empty(), "{}", preset.name);
        assert!(scenario.expect.goodput.is_some(), "{}", preset.name);
    }
    assert_eq!(PRESETS.len(), 12);
}

#[test]
fn a_mistyped_preset_finds_its_name() {
    assert!(Preset::named("wan-60ms").is_some());
    assert_eq!(Preset::named("wan-60"), None);
    assert_eq!(Preset::nearest("wan-60"), Some("wan-60ms"));
    assert_eq!(Preset::nearest("blackhole"), Some("black-hole"));
}
