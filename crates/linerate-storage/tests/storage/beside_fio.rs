//! Rates of the probe beside those of fio, in turn. By hand, on a quiet disk and optimised:
//! `cargo test --release -p linerate-storage --test storage -- --ignored --nocapture`.

use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;

use linerate_analysis::probe::Figures;
use linerate_kernel::event::EventFd;
use linerate_model::probe::Pattern;
use linerate_model::units::{Bytes, Nanos};
use linerate_storage::probe::{self, Request};
use linerate_testing::{Need, skipped};
use serde_json::Value;

const SIZE: Bytes = Bytes(512 << 20);
const SECONDS: u64 = 4;

fn ours(folder: &Path, pattern: Pattern) -> f64 {
    let request = Request {
        folder: folder.to_owned(),
        patterns: vec![pattern],
        time: Nanos::from_millis(SECONDS * 1000),
        precision: None,
        size: Some(SIZE),
        network: false,
        budget: Some(Bytes(u64::MAX)),
        state: folder.join("state"),
        spindles: None,
        fio: None,
    };
    let stop = EventFd::new().unwrap();
    let (probe, _) = probe::run(&request, stop.as_fd(), &mut |_| {}).unwrap();
    assert_eq!(probe.ended, None);
    Figures::of(&probe.runs[0], false).unwrap().iops
}

fn theirs(folder: &Path, words: &str) -> f64 {
    let output = Command::new("fio")
        .arg(format!("--filename={}", folder.join("fio").display()))
        .arg(format!("--size={}", SIZE.0))
        .arg(format!("--runtime={SECONDS}"))
        .args(
            "--name=it --output-format=json --eta=never --direct=1 --ioengine=io_uring".split(' '),
        )
        .args("--time_based --ramp_time=2 --refill_buffers --randrepeat=0 --overwrite=1".split(' '))
        .args(words.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let document: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let iops = |way: &str| document["jobs"][0][way]["iops"].as_f64().unwrap();
    iops("read") + iops("write")
}

fn median(mut rates: [f64; 3]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[1]
}

#[test]
#[ignore = "loads the disk for three minutes and prints ratios: a disk with other load says nothing"]
fn rates_agree_with_fio() {
    if Command::new("fio").arg("--version").output().is_err() {
        return skipped(Need::Programs, "rates beside fio", "fio is not installed");
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for (pattern, words) in [
        (Pattern::SequentialRead, "--rw=read --bs=1M --iodepth=4"),
        (Pattern::SequentialWrite, "--rw=write --bs=1M --iodepth=4"),
        (
            Pattern::RandomReadDeep,
            "--rw=randread --bs=4k --iodepth=32",
        ),
        (
            Pattern::RandomWriteDeep,
            "--rw=randwrite --bs=4k --iodepth=32",
        ),
    ] {
        let pairs: [[f64; 2]; 3] =
            std::array::from_fn(|_| [ours(folder.path(), pattern), theirs(folder.path(), words)]);
        let [ours, theirs] = [0, 1].map(|of| median(pairs.map(|pair| pair[of])));
        let line = format!(
            "{}: linerate {ours:.0} IOPS, fio {theirs:.0} IOPS, ratio {:.3}; all {pairs:.0?}",
            pattern.name(),
            ours / theirs
        );
        // Past libtest's capture, as it comes.
        writeln!(std::io::stderr(), "{line}").unwrap();
    }
}
