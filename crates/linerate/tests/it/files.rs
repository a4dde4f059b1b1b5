//! Files that are written where others may write as well.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use linerate_testing::{Need, skipped};

use crate::harness::{Folder, LONG, Server, beside, linerate, run, say, wait_until};

/// Another user (nobody).
const OTHER: u32 = 65_534;
/// So long the other user changes links.
const RACE: Duration = Duration::from_secs(10);
/// Makes a link to the first file under the name of the second and removes it again, as long as the third is there.
const ATTACK: &str = "while [ -e \"$2\" ]; do ln -s \"$0\" \"$1\"; rm -f \"$1\"; done";

#[test]
fn no_link_of_another_user_has_root_write_elsewhere() {
    let _beside = beside();
    let what = "links of another user in a folder of everybody";
    let folder = Folder::new();
    let server = Server::linerate(&["--one-off"]);
    let record = folder.file("record.json");
    run(server.client("-n 1M -o").arg(&record), LONG).expect(0);
    server.ends().expect(0);
    let secret = folder.with("secret", "theirs");
    let shared = folder.file("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o1777)).unwrap();
    let (page, lasts) = (shared.join("page.html"), folder.with("lasts", ""));

    let attacker = Command::new("sh")
        .args(["-c", ATTACK])
        .args([&secret, &page, &lasts])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .uid(OTHER)
        .gid(OTHER)
        .spawn();
    let mut attacker = match attacker {
        Ok(attacker) => attacker,
        Err(why) => return skipped(Need::Root, what, &why.to_string()),
    };
    assert!(wait_until(LONG, || page.is_symlink()), "nobody attacks");
    let (mut written, mut refused) = (0, 0);
    let begin = Instant::now();
    while begin.elapsed() < RACE {
        let mut show = linerate("show");
        show.arg(&record).arg("--html").arg(&page);
        if run(&mut show, LONG).code() == Some(0) {
            written += 1;
            // The other user may not remove ours.
            std::fs::remove_file(&page).unwrap();
        } else {
            refused += 1;
        }
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "theirs");
    }
    std::fs::remove_file(lasts).unwrap();
    attacker.wait().unwrap();
    say(&format!(
        "{what}: {written} files written, {refused} refused"
    ));
    assert!(written > 0);
    let left: Vec<_> = std::fs::read_dir(&shared)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name != "page.html")
        .collect();
    assert_eq!(left, Vec::<std::ffi::OsString>::new());
}
