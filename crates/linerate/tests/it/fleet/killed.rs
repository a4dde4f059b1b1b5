//! This end is killed: nothing runs on, and nothing is left.

use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::Duration;

use linerate_wire::agent::{Ask, FileIn, Header, Word, encode};

use super::Children;
use crate::harness::{Folder, alone, beside, linerate, start};

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

#[test]
fn an_agent_whose_input_ends_amid_commands_leaves_no_folder() {
    let _beside = beside();
    let folder = Folder::new();
    let profile = b"net.core.rmem_max = 1048576\n";
    let mut asks = Vec::new();
    for ask in 1..=6 {
        let mut words: Vec<Word> = ["tune", "plan"].map(Word::from).into();
        words.push(Word::In(0));
        let file = FileIn {
            name: "mine.conf".to_owned(),
            length: profile.len() as u64,
        };
        let ask = Ask {
            ask,
            words,
            files: vec![file],
            ..Ask::default()
        };
        asks.extend(encode(&Header::Ask(ask), profile).unwrap());
    }
    let mut seed = 23;
    for round in 0..60 {
        let mut agent = linerate("agent --stdio")
            .env("TMPDIR", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It greets.
        agent
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut [0; 1])
            .unwrap();
        let mut input = agent.stdin.take().unwrap();
        input.write_all(&asks).unwrap();
        // A moment is what is drawn here: no condition stands for it.
        let moment = Duration::from_micros(next(&mut seed) % 1500);
        std::thread::sleep(moment);
        drop(input);
        let done = agent.wait_with_output().unwrap();
        assert!(done.status.success(), "round {round}: {done:?}");
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 0, "round {round}, after {moment:?}");
    }
}
