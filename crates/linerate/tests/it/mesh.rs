//! `linerate mesh` over the hosts of a star, which are reached by `lab exec`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::harness::{
    Folder, LINERATE, LONG, alone, beside, linerate, run, say, start, wait_until,
};
use super::lab::noted;
use super::star::Up;

/// Six hosts of 40 Mbit/s in two racks; what `more` says comes behind.
fn racks(more: &str) -> String {
    format!(
        "name = \"racks\"\nabout = \"two racks\"\n[star]\nrate = \"40M\"\n\
         [[star.switch]]\nname = \"rack1\"\nhosts = \"node[1-3]\"\n\
         [[star.switch]]\nname = \"rack2\"\nhosts = \"node[4-6]\"\n\
         [[star.trunk]]\nbetween = [\"rack1\", \"rack2\"]\n{more}[expect]\nkind = \"none\"\n"
    )
}

/// A command of linerate that reaches the star's hosts.
fn over(star: &Up, words: &str) -> Command {
    let mut command = noted(&star.folder, &[]);
    let via = format!("{LINERATE} lab exec x {{host}} -- sh -c");
    // The words of `noted` are those of `lab`.
    let set: Vec<_> = command
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
        .collect();
    command = linerate(words);
    for (name, value) in set {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["--via", &via]);
    command
}

fn mesh(star: &Up, words: &str, test: &[&str]) -> Command {
    let mut command = over(star, words);
    command.arg("--");
    command.args(test);
    command
}

fn pairs(document: &Value) -> &[Value] {
    document["pairs"].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn the_host_that_sends_slowly_is_named_first_and_the_folder_holds_all() {
    let _alone = alone();
    let slow = "rate = \"400M\"\n[[star.host]]\nhosts = \"node2\"\nrate_out = \"8M\"\n";
    let Some(star) = Up::new("a mesh", &racks(slow)) else {
        return;
    };
    let kept = star.folder.file("mesh");
    let words = format!("mesh node[1-6] --json -o {}", kept.display());
    let done = run(&mut mesh(&star, &words, &["-t", "1"]), LONG).expect(1);
    let told = done.json();
    assert_eq!(told["causes"][0]["kind"], "host-out", "{}", told["causes"]);
    assert_eq!(told["causes"][0]["name"], "node2");
    assert_eq!(
        pairs(&told)
            .iter()
            .filter(|pair| pair["alone"] != true)
            .count(),
        30
    );
    assert_eq!((&told["rounds"], &told["bound"]), (&10.into(), &10.into()));
    for pair in pairs(&told) {
        let goodput = pair["goodput_bps"].as_f64().unwrap();
        let most = if pair["from"] == "node2" { 8e6 } else { 40e6 };
        assert!(goodput > 0.1 * most && goodput < most, "{pair}");
        let record = kept.join(pair["record"].as_str().unwrap());
        assert!(record.exists(), "{}", record.display());
    }
    // What is printed again is what was found; the files are there.
    let shown = run(
        &mut linerate(&format!("mesh show --json {}", kept.display())),
        LONG,
    );
    assert_eq!(shown.expect(1).json()["causes"], told["causes"]);
    let text = run(
        &mut linerate(&format!("mesh show {}", kept.display())),
        LONG,
    )
    .expect(1);
    assert!(text.out.contains("node2 sends at"), "{}", text.out);
    for name in ["report.html", "mesh.svg", "mesh.csv"] {
        assert!(kept.join(name).exists(), "{name}");
    }
    // A second mesh does not replace it, and a resumed one has nothing left to measure.
    let second = run(&mut mesh(&star, &words, &["-t", "1"]), LONG).expect(2);
    assert!(second.error.contains("--resume"), "{}", second.error);
    let resumed = run(
        &mut mesh(&star, &format!("{words} --resume"), &["-t", "1"]),
        LONG,
    );
    let again = resumed.expect(1).json();
    assert_eq!(again["causes"][0]["name"], "node2");
    assert_eq!(pairs(&again).len(), pairs(&told).len());
}

/// The pairs of a folder's mesh that were measured, and all of them.
fn progress(kept: &Path) -> (usize, usize) {
    let Ok(text) = std::fs::read_to_string(kept.join("mesh.json")) else {
        return (0, 0);
    };
    let document: Value = serde_json::from_str(&text).unwrap_or_default();
    let measured = |pair: &&Value| pair["outcome"] == "measured";
    let all = pairs(&document);
    (all.iter().filter(measured).count(), all.len())
}

#[test]
fn a_mesh_that_is_killed_is_incomplete_and_goes_on_where_it_was() {
    let _beside = beside();
    let Some(star) = Up::new("a mesh that is killed", &racks("rate = \"400M\"\n")) else {
        return;
    };
    let kept = star.folder.file("mesh");
    let words = format!("mesh node[1-6] --json -o {}", kept.display());
    let mut running = start(&mut mesh(&star, &words, &["-t", "0.5"]));
    assert!(
        wait_until(LONG, || progress(&kept).0 > 0),
        "{}",
        running.error()
    );
    running.kill();
    drop(running);
    let (before, due) = progress(&kept);
    assert!(before < due && due == 30, "{before} of {due}");
    let shown = run(
        &mut linerate(&format!("mesh show {}", kept.display())),
        LONG,
    );
    assert!(shown.expect(4).error.contains("--resume"));
    let resumed = |test: &[&str], words: &str| {
        run(&mut mesh(&star, &format!("{words} --resume"), test), LONG)
    };
    let other = resumed(&["-t", "1"], &words).expect(2);
    assert!(other.error.contains("other options"), "{}", other.error);
    let fewer = resumed(&["-t", "0.5"], &words.replace("[1-6]", "[1-5]")).expect(2);
    assert!(fewer.error.contains("other hosts"), "{}", fewer.error);
    assert_eq!(progress(&kept), (before, due));
    let done = resumed(&["-t", "0.5"], &words);
    let told = done.json();
    let tests: Vec<_> = pairs(&told)
        .iter()
        .filter(|pair| pair["alone"] != true)
        .collect();
    assert_eq!(tests.len(), 30);
    assert!(
        tests.iter().all(|pair| pair["outcome"] == "measured"),
        "{told:#}"
    );
    // The times of both runs are one clock: no host has two tests at once.
    for one in &tests {
        for other in tests.iter().filter(|other| other != &one) {
            let ends = |pair: &Value| [pair["from"].clone(), pair["to"].clone()];
            if ends(one).iter().any(|end| ends(other).contains(end)) {
                let [begin, end] = ["begin", "end"].map(|key| one["span"][key].as_u64().unwrap());
                let other = ["begin", "end"].map(|key| other["span"][key].as_u64().unwrap());
                assert!(end <= other[0] || other[1] <= begin, "{one} {other:?}");
            }
        }
    }
}

#[test]
fn a_host_that_is_dead_is_a_cause_and_never_a_rate_of_zero() {
    let _beside = beside();
    let dead = "rate = \"400M\"\n[[star.host]]\nhosts = \"node5\"\ndown = \"host\"\n";
    let Some(star) = Up::new("a mesh with a dead host", &racks(dead)) else {
        return;
    };
    let kept = star.folder.file("mesh");
    let words = format!("mesh node[2-6] --only ring --json -o {}", kept.display());
    let told = run(&mut mesh(&star, &words, &["-t", "0.5"]), LONG)
        .expect(4)
        .json();
    let (lost, measured): (Vec<_>, Vec<_>) = pairs(&told)
        .iter()
        .partition(|pair| pair["from"] == "node5" || pair["to"] == "node5");
    assert_eq!((lost.len(), measured.len()), (2, 3), "{told:#}");
    for pair in lost {
        assert_eq!(pair["outcome"], "not_run");
        assert!(pair.get("goodput_bps").is_none_or(Value::is_null), "{pair}");
        assert!(pair["why"].as_str().unwrap().contains("node5"), "{pair}");
    }
    assert!(
        measured.iter().all(|pair| pair["outcome"] == "measured"),
        "{told:#}"
    );
    let csv = std::fs::read_to_string(kept.join("mesh.csv")).unwrap();
    let row = csv.lines().find(|line| line.starts_with("node5,")).unwrap();
    let goodput = row.split(',').nth(4).unwrap();
    assert_eq!(goodput, "", "{row}");
}

#[test]
fn pairs_are_added_until_the_trunk_is_full() {
    let _alone = alone();
    let Some(star) = Up::new("the ramp over a trunk", &racks("rate = \"60M\"\n")) else {
        return;
    };
    // One pair is limited by its own 40 Mbit/s, all of them by the trunk. What else runs on this machine may hold two tests
    // back more than one, so that the ramp ends early: it is made again then.
    let grows = |attempt: u32| {
        let kept = star.folder.file(&format!("trunk{attempt}"));
        let words = "mesh trunk --from node[1-3] --to node[4-6] --json";
        let words = format!("{words} -o {}", kept.display());
        let told = run(&mut mesh(&star, &words, &["-t", "2"]), LONG)
            .expect(0)
            .json();
        let steps = told["steps"].as_array().unwrap();
        let sums: Vec<f64> = steps
            .iter()
            .map(|step| step["sum_bps"].as_f64().unwrap())
            .collect();
        say(&format!("the trunk of 60 Mbit/s: sums of {sums:?} bit/s"));
        let shown = run(
            &mut linerate(&format!("mesh show --json {}", kept.display())),
            LONG,
        );
        assert_eq!(shown.expect(0).json(), told);
        // Tests that do not begin at the same moment have the trunk alone for as long.
        assert!(
            sums[0] < 40e6 && sums.iter().all(|sum| *sum < 1.1 * 60e6),
            "{sums:?}"
        );
        *sums.last().unwrap() > 1.1 * sums[0]
    };
    assert!(
        (0..3).any(grows),
        "two pairs carried no more than one, three times"
    );
}

#[test]
fn what_a_mesh_cannot_do_is_said_before_anything_is_sent() {
    let _beside = beside();
    let empty = Folder::new();
    let refused = |words: &str, why: &str| {
        let done = run(linerate(words).current_dir(empty.path()), LONG).expect(2);
        assert!(done.error.contains(why), "{words}: {}", done.error);
    };
    refused("mesh", "no hosts");
    refused("mesh node1", "two hosts at least");
    refused("mesh node[1-3] --only sometimes", "ring, random:N");
    refused("mesh node[1-3] --only random:3", "1 to 2 others");
    refused("mesh node[1-3] --only node1:node9", "node9 is not among");
    refused("mesh node[1-3] --only node1:node1", "no pair");
    refused("mesh node[1-3] -- -R", "--both");
    refused("mesh node[1-3] -- -B 192.0.2.1", "something of one host");
    refused("mesh node[1-3] -- -o x", "plain tests");
    refused(
        "mesh trunk --from node[1-2] --to node[2-3]",
        "node2 is in --from",
    );
    let left = std::fs::read_dir(empty.path()).unwrap();
    assert_eq!(left.count(), 0, "what is refused makes no folder");
    let planned = run(&mut linerate("mesh node[01-16] --dry-run"), LONG).expect(0);
    let line = "240 tests between 16 hosts in 30 rounds (lower bound 30)";
    assert!(planned.out.starts_with(line), "{}", planned.out);
    let folder = Folder::new();
    let nothing = format!("mesh show {}", folder.path().display());
    let done = run(&mut linerate(&nothing), LONG).expect(5);
    assert!(done.error.contains("mesh.json"), "{}", done.error);
}
