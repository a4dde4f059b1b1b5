//! This end is killed: nothing runs on, and nothing is left.

use std::time::Duration;

use super::Children;
use crate::harness::{alone, start};

/// Knuth's MMIX generator.
fn next(seed: &mut u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

#[test]
fn kill_9_at_random_moments_leaves_no_process_and_no_folder() {
    let _alone = alone();
    let mut seed = 19;
    let warm = Children::new();
    let profile = warm.home.with("mine.conf", "net.core.rmem_max = 1048576\n");
    drop(warm.open("n1"));
    for round in 0..12 {
        let cold = Children::new();
        let children = if round % 3 == 0 { &cold } else { &warm };
        let words = if round % 2 == 0 {
            format!("tune plan {}", profile.display())
        } else {
            "host audit --for 1000s".to_owned()
        };
        let near = start(&mut children.linerate("n[1-6]", &words));
        // A moment is what is drawn here: no condition stands for it.
        let moment = Duration::from_millis(next(&mut seed) % 1500);
        std::thread::sleep(moment);
        near.signal("KILL");
        children.assert_gone(&format!("round {round}, after {moment:?}"));
        drop(near);
    }
}
