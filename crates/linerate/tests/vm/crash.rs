//! `linerate crash scan` over a Debian root that lost nothing: the system of the guests, mounted for reading.

use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use linerate_testing::{Need, skipped};
use serde_json::Value;

use crate::images::images;
use crate::say;

const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");
/// Mounts the image `$0` where the machine mounts for a while, in a mount namespace of its own, and runs a script there.
const MOUNTED: &str = "mount -o ro,noload,loop \"$0\" /mnt && cd /mnt && echo mounted || exit 77\n";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn within(image: &std::path::Path, script: &str) -> Output {
    let script = format!("{MOUNTED}{script}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).arg(image);
    command.output().unwrap()
}

fn scan(image: &std::path::Path, words: &str, code: i32) -> Value {
    let output = within(
        image,
        &format!("exec {LINERATE} crash scan . --json {words}"),
    );
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}{error}");
    let document = out.split_once('\n').unwrap().1;
    serde_json::from_str(document).unwrap_or_else(|why| panic!("{why}: {out}"))
}

#[test]
fn a_debian_root_that_lost_nothing_has_only_what_is_usually_empty() {
    let what = "a scan of a Debian root";
    if !linerate_kernel::namespace::is_root() {
        return skipped(Need::LoopDevices, what, "not root");
    }
    let Some(images) = images(what) else { return };
    let image = images.system();
    let counted = within(&image, "find . -xdev -type f -empty | wc -l");
    if counted.status.code() == Some(77) {
        return skipped(Need::LoopDevices, what, &text(&counted.stderr));
    }
    let counted = text(&counted.stdout);
    let empty: u64 = counted.split_whitespace().last().unwrap().parse().unwrap();

    // As if everything had been written just before a power cut: what packages left empty is reported, and nothing else.
    let all = scan(&image, "--since @0 --read", 1);
    let (counts, found) = (&all["counts"], &all["found"]);
    let (files, candidates) = (&counts["files"], &counts["in_window"]);
    assert_eq!(files, candidates, "{counts}");
    assert!(files.as_u64().unwrap() > 2000, "{counts}");
    for kind in ["no_data", "nul_tail", "zeros"] {
        assert_eq!(found[kind], 0, "{kind}: {}", all["files"]);
    }
    let known = counts["known_empty"].as_u64().unwrap();
    assert_eq!(found["empty"], empty - known, "{}", all["files"]);
    assert!(empty * 100 < files.as_u64().unwrap(), "{empty} of {counts}");

    // A power cut after it was made: nothing is reported, beside how many are usually empty.
    let made = image.metadata().unwrap().modified().unwrap() + Duration::from_secs(1);
    while SystemTime::now() <= made {
        std::thread::sleep(Duration::from_millis(100));
    }
    let made = made.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let since = format!("--since @{}", made.as_secs());
    let later = scan(&image, &since, 0);
    let counts = &later["counts"];
    for kind in ["empty", "no_data", "nul_tail"] {
        assert_eq!(later["found"][kind], 0, "{}", later["files"]);
    }
    assert_eq!(
        (&counts["in_window"], &counts["older"]),
        (&Value::from(0), files)
    );
    assert_eq!(counts["older_empty"], found["empty"], "{counts}");
    say(&format!(
        "a Debian root: {files} files, of which {} are empty and {known} more by their name",
        found["empty"]
    ));
}
