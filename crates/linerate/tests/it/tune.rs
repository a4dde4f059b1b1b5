//! `linerate tune`: below folders that stand for `/`, and in network namespaces. Nothing of this machine is changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use linerate_testing::{Need, skipped};
use serde_json::Value;

use crate::harness::{
    B, Done, Folder, Host, Hosts, LONG, beside, lacks_namespaces, lacks_programs, linerate, run,
    say, start, start_with, wait_until,
};

/// TCP's own settings, which every network namespace has for itself: old value, wanted one.
const TEN: [(&str, &str, &str); 10] = [
    ("tcp_rmem", "4096 131072 6291456", "4096 131072 67108864"),
    ("tcp_wmem", "4096 16384 4194304", "4096 65536 67108864"),
    ("tcp_mtu_probing", "0", "1"),
    ("tcp_no_metrics_save", "0", "1"),
    ("tcp_slow_start_after_idle", "1", "0"),
    ("tcp_notsent_lowat", "4294967295", "131072"),
    ("tcp_fin_timeout", "60", "15"),
    ("tcp_syn_retries", "6", "4"),
    ("tcp_keepalive_time", "7200", "600"),
    ("tcp_retries2", "15", "8"),
];

/// A host in files, with ten settings, and a profile that changes all of them.
struct Files {
    folder: Folder,
}

impl Files {
    fn new() -> Self {
        let folder = Folder::new();
        let sysctls = folder.file("root/proc/sys/net/ipv4");
        std::fs::create_dir_all(&sysctls).unwrap();
        for (key, old, _) in TEN {
            std::fs::write(sysctls.join(key), format!("{old}\n")).unwrap();
        }
        folder.with("profile.toml", profile());
        Self { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.file("root")
    }

    fn state(&self) -> PathBuf {
        self.root().join("var/lib/linerate/tune")
    }

    /// `tune` with its words and the root.
    fn tune(&self, words: &str) -> Command {
        let mut command = linerate(&format!("tune {words}"));
        command.arg("--root").arg(self.root());
        command
    }

    fn apply(&self, words: &str) -> Command {
        let mut command = self.tune(&format!("apply {words}"));
        command.arg(self.folder.file("profile.toml"));
        command
    }

    fn value(&self, key: &str) -> String {
        let path = self.root().join("proc/sys/net/ipv4").join(key);
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }

    fn values(&self) -> BTreeMap<&'static str, String> {
        TEN.iter()
            .map(|(key, ..)| (*key, self.value(key)))
            .collect()
    }
}

fn profile() -> String {
    let mut text = "[sysctl]\n".to_owned();
    for (key, _, wanted) in TEN {
        writeln!(text, "\"net.ipv4.{key}\" = \"{wanted}\"").unwrap();
    }
    text
}

fn old() -> BTreeMap<&'static str, String> {
    TEN.iter()
        .map(|(key, old, _)| (*key, (*old).to_owned()))
        .collect()
}

fn wanted() -> BTreeMap<&'static str, String> {
    TEN.iter()
        .map(|(key, _, new)| (*key, (*new).to_owned()))
        .collect()
}

/// The last set of `tune status --json`.
fn last_set(command: &mut Command) -> Value {
    let status = run(command, LONG).expect(0).json();
    status["sets"].as_array().unwrap().last().unwrap().clone()
}

#[test]
fn changes_are_applied_confirmed_listed_and_reverted() {
    let _beside = beside();
    let files = Files::new();
    let plan = run(&mut files.apply("--dry-run"), LONG).expect(0).out;
    assert!(plan.contains("10 to change"), "{plan}");
    assert_eq!(files.values(), old());
    assert!(!files.state().exists());

    let told = run(&mut files.apply("--confirm-within 300s"), LONG)
        .expect(0)
        .out;
    assert!(told.contains("unless: linerate tune confirm"), "{told}");
    assert_eq!(files.values(), wanted());
    let set = last_set(&mut files.tune("status --json"));
    assert_eq!(set["state"], "applied");
    assert!(set["confirm_left_ns"].as_u64().unwrap() > 200_000_000_000);

    // A second one would take the first one's values for the old ones.
    let more = "[sysctl]\n\"net.ipv4.tcp_fin_timeout\" = 30\n";
    let more = files.folder.with("more.toml", more).display().to_string();
    let second = run(&mut files.tune(&format!("apply {more}")), LONG).expect(1);
    for part in ["nothing was changed", "linerate tune confirm"] {
        assert!(second.error.contains(part), "{}", second.error);
    }

    let confirmed = run(&mut files.tune("confirm"), LONG).expect(0).out;
    assert!(confirmed.contains("confirmed"), "{confirmed}");
    let again = run(&mut files.tune("confirm"), LONG).expect(1);
    assert!(
        again.error.contains("nothing is waiting"),
        "{}",
        again.error
    );

    let nothing = run(&mut files.apply(""), LONG).expect(0).out;
    assert!(nothing.contains("Nothing is to be changed"), "{nothing}");

    run(&mut files.tune("revert"), LONG).expect(0);
    assert_eq!(files.values(), old());
    let done = run(&mut files.tune("revert"), LONG).expect(1);
    assert!(done.error.contains("nothing to revert"), "{}", done.error);
}

#[test]
fn what_somebody_else_changed_is_named_and_stays() {
    let _beside = beside();
    let files = Files::new();
    run(&mut files.apply("--yes"), LONG).expect(0);
    let other = files.root().join("proc/sys/net/ipv4/tcp_fin_timeout");
    std::fs::write(other, "77\n").unwrap();
    let left = run(&mut files.tune("revert"), LONG).expect(10);
    assert!(left.out.contains("left at 77"), "{}", left.out);
    assert!(left.error.contains("--force"), "{}", left.error);
    assert_eq!(files.value("tcp_fin_timeout"), "77");
    assert_eq!(files.value("tcp_retries2"), "15");
    let forced = run(&mut files.tune("revert --force"), LONG).expect(0).out;
    assert!(forced.contains("restored over 77"), "{forced}");
    assert_eq!(files.values(), old());
}

#[test]
fn without_a_confirmation_all_goes_back_by_itself() {
    let _beside = beside();
    let files = Files::new();
    run(&mut files.apply("--confirm-within 1s"), LONG).expect(0);
    let back = wait_until(LONG, || files.values() == old());
    assert!(back, "{:?}", files.values());
    let ended = wait_until(LONG, || {
        last_set(&mut files.tune("status --json"))["state"] == "reverted"
    });
    assert!(ended);
    let set = last_set(&mut files.tune("status --json"));
    assert_eq!(set["note"], "it was not confirmed in time");
    let late = run(&mut files.tune("confirm"), LONG).expect(1);
    assert!(late.error.contains("nothing is waiting"), "{}", late.error);
}

#[test]
fn what_must_be_refused_is_refused_before_anything_is_touched() {
    let _beside = beside();
    let files = Files::new();
    let profile = |name: &str, text: &str| files.folder.with(name, text).display().to_string();
    let unknown = profile("unknown.toml", "[sysctl]\n\"net.ipv4.tcp_rmen\" = 1\n");
    let typo = profile("typo.toml", "[sysctll]\n");
    for (words, code, parts) in [
        (
            format!("apply {unknown}"),
            1,
            vec!["tcp_rmem", "unknown.toml:2", "nothing was changed"],
        ),
        (
            format!("apply {typo}"),
            5,
            vec!["typo.toml:1", "did you mean 'sysctl'"],
        ),
        ("apply --confirm-within 0s".to_owned(), 2, vec!["1s to 1h"]),
        ("apply --allow reboot".to_owned(), 2, vec!["link-flap"]),
        (
            "confirm ../../etc/passwd".to_owned(),
            1,
            vec!["not the name of a set"],
        ),
        (
            "confirm 20010101-000000".to_owned(),
            1,
            vec!["no set of changes"],
        ),
        ("revert".to_owned(), 1, vec!["nothing to revert"]),
    ] {
        let done = run(&mut files.tune(&words), LONG).expect(code);
        for part in parts {
            assert!(done.error.contains(part), "{words}: {}", done.error);
        }
    }
    let nobody = run(&mut files.apply("--probe :::"), LONG).expect(2);
    assert!(nobody.error.contains("--probe"), "{}", nobody.error);
    let port = crate::harness::free_port();
    let words = format!("--probe 127.0.0.1:{port}");
    let dead = run(&mut files.apply(&words), LONG).expect(1);
    assert!(dead.error.contains("before any change"), "{}", dead.error);
    assert_eq!(files.values(), old());
    let status = run(&mut files.tune("status"), LONG).expect(0).out;
    assert!(status.contains("No changes were made"), "{status}");
}

#[test]
fn two_at_once_are_one() {
    let _beside = beside();
    if lacks_programs("two applies at once", &["flock"]) {
        return;
    }
    let files = Files::new();
    run(&mut files.apply("--yes"), LONG).expect(0);
    run(&mut files.tune("revert"), LONG).expect(0);
    let mut holder = Command::new("flock");
    holder
        .arg(files.state().join("lock"))
        .args(["-c", "echo holds; cat"]);
    let holder = start_with(&mut holder, Stdio::piped());
    assert!(wait_until(LONG, || holder.out().contains("holds")));
    let second = run(&mut files.apply(""), LONG).expect(1);
    assert!(
        second.error.contains("another linerate"),
        "{}",
        second.error
    );
    assert_eq!(files.values(), old());
    // Whoever only looks does not wait.
    run(&mut files.tune("status"), LONG).expect(0);
}

#[test]
fn on_a_full_disk_nothing_is_touched() {
    let _beside = beside();
    let files = Files::new();
    let state = files.folder.file("small");
    std::fs::create_dir_all(&state).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=4k tmpfs {state} || exit 77; head -c 4096 /dev/zero > {state}/fill; \
         {program} tune apply {profile} --root {root} --state {state}; code=$?; ls {state} >&2; exit $code",
        state = state.display(),
        program = crate::harness::LINERATE,
        profile = files.folder.file("profile.toml").display(),
        root = files.root().display(),
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    let done = run(&mut command, LONG);
    if lacks_namespaces("a full disk", &done) {
        return;
    }
    let done = done.expect(1);
    assert!(done.error.contains("nothing was changed"), "{}", done.error);
    assert!(done.error.contains("No space left"), "{}", done.error);
    assert!(!done.error.contains(".journal\n"), "{}", done.error);
    assert_eq!(files.values(), old());
}

/// Runs `tune` with folders mounted read-only, in namespaces of its own; `None` where there are none, which is said.
fn with_read_only(folders: &[PathBuf], files: &Files, words: &str, state: &Path) -> Option<Done> {
    let mut script = String::new();
    for folder in folders {
        let folder = folder.display();
        let _ = write!(
            script,
            "mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} || exit 77; "
        );
    }
    let _ = write!(
        script,
        "{program} tune {words} --root {root} --state {state}",
        program = crate::harness::LINERATE,
        root = files.root().display(),
        state = state.display(),
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    let done = run(&mut command, LONG);
    (!lacks_namespaces("a read-only folder", &done)).then_some(done)
}

#[test]
fn a_disk_that_became_read_only_keeps_no_value_from_going_back() {
    let _beside = beside();
    let files = Files::new();
    let state = files.folder.file("state");
    let mut apply = files.apply("--confirm-within 300s");
    run(apply.arg("--state").arg(&state), LONG).expect(0);
    assert_eq!(files.values(), wanted());
    let id = journal(&state).unwrap();
    let id = id.file_stem().unwrap().to_str().unwrap();
    for words in [format!("rollback {id}"), "revert".to_owned()] {
        let Some(done) = with_read_only(std::slice::from_ref(&state), &files, &words, &state)
        else {
            return;
        };
        let told = done.expect(0).error;
        assert!(told.contains("the journal is incomplete"), "{told}");
        assert!(told.contains("Read-only"), "{told}");
        assert_eq!(files.values(), old(), "{words}");
        for (key, _, wanted) in TEN {
            let path = files.root().join("proc/sys/net/ipv4").join(key);
            std::fs::write(path, format!("{wanted}\n")).unwrap();
        }
    }
    // What waits ends with it.
    let mut revert = files.tune("revert");
    run(revert.arg("--state").arg(&state), LONG).expect(0);
    assert_eq!(files.values(), old());
}

#[test]
fn files_that_cannot_be_removed_keep_no_value_from_going_back() {
    let _beside = beside();
    let files = Files::new();
    let state = files.folder.file("state");
    let tune = |words: &str| {
        let mut command = files.tune(words);
        command.arg("--state").arg(&state);
        command
    };
    let mut apply = files.apply("--yes");
    run(apply.arg("--state").arg(&state), LONG).expect(0);
    run(&mut tune("persist"), LONG).expect(0);
    let kept = files.root().join("etc/sysctl.d/95-linerate.conf");
    let etc = files.root().join("etc");
    let Some(done) = with_read_only(&[etc], &files, "revert", &state) else {
        return;
    };
    let done = done.expect(10);
    for part in [
        "95-linerate.conf",
        "Read-only",
        "linerate tune persist --remove",
    ] {
        assert!(done.error.contains(part), "{part}: {}", done.error);
    }
    assert_eq!(files.values(), old());
    assert!(kept.exists());
    run(&mut tune("persist --remove"), LONG).expect(0);
    assert!(!kept.exists());
}

/// The one journal in a folder.
fn journal(state: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(state).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "journal"))
}

/// Its whole lines; 0 where there is none yet.
fn journal_lines(state: &Path) -> usize {
    journal(state)
        .and_then(|path| std::fs::read_to_string(path).ok())
        .map_or(0, |text| text.matches('\n').count())
}

/// Sends a signal to an apply when its journal has so many lines; gives back how many it had in the end.
fn interrupted(command: &mut Command, state: &Path, lines: usize, signal: &str) -> usize {
    let mut applying = start(command);
    let end = Instant::now() + LONG;
    // A change takes less than a millisecond: whoever sleeps misses it.
    while journal_lines(state) < lines && !applying.ended() {
        assert!(Instant::now() < end, "{}", applying.error());
    }
    if signal == "KILL" {
        applying.kill();
    } else if !applying.ended() {
        applying.signal(signal);
    }
    applying.wait(LONG);
    journal_lines(state)
}

/// Its snapshot, its arming, two lines a change, and its end.
const LINES: usize = 2 + 2 * TEN.len() + 1;

#[test]
fn killed_between_any_two_changes_the_old_state_comes_back() {
    let _beside = beside();
    let mut seen = Vec::new();
    for lines in (1..=LINES).step_by(2) {
        for signal in ["KILL", "HUP"] {
            let files = Files::new();
            let mut apply = files.apply("--confirm-within 1s");
            seen.push(interrupted(&mut apply, &files.state(), lines, signal));
            let back = wait_until(LONG, || files.values() == old());
            assert!(back, "{signal} after {lines} lines: {:?}", files.values());
        }
    }
    say(&format!(
        "lines of the journal when the apply ended: {seen:?}"
    ));
}

/// The kernel ends the apply in the midst of a line of its journal: of every line, one after the other.
#[test]
fn killed_at_every_line_and_recovered_the_old_state_comes_back() {
    let _beside = beside();
    if lacks_programs("an apply killed at every line", &["prlimit"]) {
        return;
    }
    let whole = Files::new();
    run(&mut whole.apply("--yes"), LONG).expect(0);
    let journal = std::fs::read_to_string(journal(&whole.state()).unwrap()).unwrap();
    // The middle of each line: numbers of processes and times make another journal some bytes longer or shorter.
    let mut begin = 0;
    let middles = journal.split_inclusive('\n').map(|line| {
        begin += line.len();
        begin - line.len() / 2
    });
    let mut states = BTreeMap::<String, u32>::new();
    for (number, middle) in middles.enumerate() {
        let files = Files::new();
        let mut command = Command::new("prlimit");
        command.args([
            "--core=0",
            &format!("--fsize={middle}"),
            crate::harness::LINERATE,
        ]);
        command.args([
            "tune",
            "apply",
            "--yes",
            "--confirm-within",
            "300s",
            "--root",
        ]);
        command
            .arg(files.root())
            .arg(files.folder.file("profile.toml"));
        let done = run(&mut command, LONG);
        assert_eq!(done.code(), None, "line {number}: {}", done.error);
        let left = journal_lines(&files.state());
        assert!(left.abs_diff(number) <= 1, "line {number}: {left}");
        // What waits ends too, as in a power cut.
        let status = run(&mut files.tune("status --json"), LONG).expect(0).json();
        if let Some(set) = status["sets"].as_array().unwrap().last() {
            let rollback = set["rollback"].as_str().unwrap();
            if let Some(pid) = rollback.strip_prefix("process ") {
                let killed = Command::new("kill").args(["-KILL", pid]).status().unwrap();
                assert!(killed.success());
            }
            *states.entry(set["state"].to_string()).or_default() += 1;
            let recovered = wait_until(LONG, || {
                run(&mut files.tune("recover"), LONG).expect(0);
                let set = last_set(&mut files.tune("status --json"));
                ["reverted", "ended"].contains(&set["state"].as_str().unwrap())
            });
            assert!(recovered, "line {number}");
        }
        assert_eq!(files.values(), old(), "line {number}");
    }
    say(&format!("states in which the apply was killed: {states:?}"));
    assert!(states["\"applying\""] >= 19, "{states:?}");
}

#[test]
fn what_was_confirmed_is_persisted_verified_and_removed_as_a_whole() {
    let _beside = beside();
    let files = Files::new();
    let none = run(&mut files.tune("persist"), LONG).expect(1);
    assert!(
        none.error.contains("nothing was confirmed"),
        "{}",
        none.error
    );
    run(&mut files.apply("--yes"), LONG).expect(0);
    let kept = files.root().join("etc/sysctl.d/95-linerate.conf");
    let dry = run(&mut files.tune("persist --dry-run"), LONG)
        .expect(0)
        .out;
    assert!(dry.contains("would be written") && !kept.exists(), "{dry}");
    let verified = run(&mut files.tune("verify"), LONG).expect(0).out;
    assert!(
        verified.contains("10 confirmed, 0 drifted, 0 survive a boot"),
        "{verified}"
    );

    run(&mut files.tune("persist"), LONG).expect(0);
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(
        text.contains("net.ipv4.tcp_wmem = 4096 65536 67108864\n"),
        "{text}"
    );
    assert!(text.contains("linerate tune persist --remove"), "{text}");
    let verified = run(&mut files.tune("verify"), LONG).expect(0).out;
    assert!(verified.contains("10 survive a boot"), "{verified}");

    // Somebody sets one key by hand, and another in a file that is read later.
    std::fs::write(files.root().join("proc/sys/net/ipv4/tcp_retries2"), "9\n").unwrap();
    let later = "net.ipv4.tcp_fin_timeout = 99\nnet.ipv4.tcp_retries2 = 9\n";
    std::fs::write(files.root().join("etc/sysctl.d/99-site.conf"), later).unwrap();
    let drifted = run(&mut files.tune("verify"), LONG).expect(1).out;
    for part in [
        "drift  net.ipv4.tcp_retries2 = 8",
        "/etc/sysctl.d/99-site.conf:2",
        "/etc/sysctl.d/99-site.conf:1 sets 99 wins",
        "1 drifted",
    ] {
        assert!(drifted.contains(part), "{part}: {drifted}");
    }
    let again = run(&mut files.tune("persist"), LONG).expect(0).out;
    assert!(
        again.contains("99-site.conf:1 sets net.ipv4.tcp_fin_timeout = 99"),
        "{again}"
    );
    assert!(again.contains("8 was confirmed and 9 runs"), "{again}");

    std::fs::write(&kept, "# mine now\n").unwrap();
    let refused = run(&mut files.tune("persist"), LONG).expect(1);
    assert!(
        refused.error.contains("is not linerate's"),
        "{}",
        refused.error
    );
    let refused = run(&mut files.tune("persist --remove"), LONG).expect(1);
    assert!(
        refused.error.contains("something else has changed"),
        "{}",
        refused.error
    );
    run(&mut files.tune("persist --remove --force"), LONG).expect(0);
    assert!(!kept.exists());
    let verified = run(&mut files.tune("verify --json"), LONG).expect(1).json();
    assert_eq!(verified["files"].as_array().unwrap().len(), 0);
}

/// Whether the process that would roll back is there; confirmed, it ends by itself.
fn waits(journal: &str) -> bool {
    let Some((_, rest)) = journal.split_once("\"pid\":") else {
        return false;
    };
    let pid: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

#[test]
fn a_revert_that_was_killed_is_finished_as_it_was_begun() {
    let _beside = beside();
    let key = TEN[3].0;
    for (begun, stays) in [
        ("\"requested\",\"leaves_drifted\":true", true),
        ("\"requested\"", false),
    ] {
        let files = Files::new();
        run(&mut files.apply("--yes"), LONG).expect(0);
        let theirs = files.root().join("proc/sys/net/ipv4").join(key);
        std::fs::write(&theirs, "77\n").unwrap();
        let path = journal(&files.state()).unwrap();
        let mut text = std::fs::read_to_string(&path).unwrap();
        assert!(wait_until(LONG, || !waits(&text)), "{text}");
        // As far as a revert came before it was killed.
        writeln!(text, "{{\"entry\":\"rolling_back\",\"why\":{begun}}}").unwrap();
        std::fs::write(&path, text).unwrap();
        let done = run(&mut files.tune("recover"), LONG).expect(if stays { 10 } else { 0 });
        let mut expected = old();
        if stays {
            expected.insert(key, "77".to_owned());
        }
        assert_eq!(files.values(), expected, "{}{}", done.out, done.error);
    }
    // And a revert without --force says that it leaves them.
    let files = Files::new();
    run(&mut files.apply("--yes"), LONG).expect(0);
    let theirs = files.root().join("proc/sys/net/ipv4").join(key);
    std::fs::write(&theirs, "77\n").unwrap();
    run(&mut files.tune("revert"), LONG);
    let text = std::fs::read_to_string(journal(&files.state()).unwrap()).unwrap();
    assert!(text.contains("\"leaves_drifted\":true"), "{text}");
    assert_eq!(files.value(key), "77");
}

#[test]
fn a_revert_takes_the_files_along() {
    let _beside = beside();
    let files = Files::new();
    run(&mut files.apply("--yes"), LONG).expect(0);
    run(&mut files.tune("persist"), LONG).expect(0);
    let kept = files.root().join("etc/sysctl.d/95-linerate.conf");
    assert!(kept.exists());
    run(&mut files.tune("revert"), LONG).expect(0);
    assert!(!kept.exists());
    assert_eq!(files.values(), old());
    // A revert that was killed before it came to them.
    let files = Files::new();
    run(&mut files.apply("--yes"), LONG).expect(0);
    run(&mut files.tune("persist"), LONG).expect(0);
    let path = journal(&files.state()).unwrap();
    let mut text = std::fs::read_to_string(&path).unwrap();
    assert!(wait_until(LONG, || !waits(&text)), "{text}");
    text.push_str("{\"entry\":\"rolling_back\",\"why\":\"requested\",\"leaves_drifted\":true}\n");
    std::fs::write(&path, text).unwrap();
    run(&mut files.tune("recover"), LONG).expect(0);
    assert!(!files.root().join("etc/sysctl.d/95-linerate.conf").exists());
    assert_eq!(files.values(), old());
    // Half of them written when the power went.
    let files = Files::new();
    run(&mut files.apply("--yes"), LONG).expect(0);
    run(&mut files.tune("persist"), LONG).expect(0);
    let path = journal(&files.state()).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.strip_suffix("{\"entry\":\"persisted\"}\n").unwrap(),
    )
    .unwrap();
    let told = run(&mut files.tune("recover"), LONG).expect(0).out;
    assert!(told.contains("half written"), "{told}");
    assert!(!files.root().join("etc/sysctl.d/95-linerate.conf").exists());
    assert_eq!(
        last_set(&mut files.tune("status --json"))["state"],
        "confirmed"
    );
}

#[test]
fn no_link_of_an_image_leads_out_of_it() {
    let _beside = beside();
    let files = Files::new();
    // As an image has them: each is right for whoever has the folder as its root.
    let outside = files.folder.file("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("tcp_rmem"), "1 2 3\n").unwrap();
    let sysctls = files.root().join("proc/sys/net/ipv4");
    let inside = files.root().join("srv/ipv4");
    std::fs::create_dir_all(files.root().join("srv")).unwrap();
    std::fs::rename(&sysctls, &inside).unwrap();
    let link = |target: &Path, name: &str| {
        std::os::unix::fs::symlink(target, files.root().join(name)).unwrap();
    };
    link(Path::new("/srv/ipv4"), "proc/sys/net/ipv4");
    std::fs::create_dir_all(files.root().join("etc")).unwrap();
    link(&outside, "etc/sysctl.d");
    link(&outside, "var");
    let here = files.root().join(outside.strip_prefix("/").unwrap());
    // Nor does one that has the name of a file that is being written.
    std::fs::create_dir_all(&here).unwrap();
    let begun = here.join("95-linerate.conf.linerate-begun");
    std::os::unix::fs::symlink(outside.join("tcp_rmem"), begun).unwrap();
    // Nor does one of a file with old values, which then cannot be made.
    let lock = here.join("lib/linerate/tune/lock");
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(outside.join("lock"), &lock).unwrap();
    run(&mut files.apply("--yes"), LONG).expect(5);
    std::fs::remove_file(lock).unwrap();

    let mut plan = files.tune("plan");
    let plan = run(plan.arg(files.folder.file("profile.toml")), LONG).expect(0);
    assert!(plan.out.contains("10 to change"), "{}", plan.out);
    run(&mut files.apply("--yes"), LONG).expect(0);
    run(&mut files.tune("persist"), LONG).expect(0);
    let value = |key: &str| {
        let text = std::fs::read_to_string(inside.join(key)).unwrap();
        text.trim().to_owned()
    };
    let now = TEN.map(|(key, _, _)| value(key));
    assert_eq!(now, TEN.map(|(_, _, wanted)| wanted.to_owned()));
    assert!(here.join("95-linerate.conf").exists());
    assert!(here.join("lib/linerate/tune").exists());
    run(&mut files.tune("revert"), LONG).expect(0);
    let now = TEN.map(|(key, _, _)| value(key));
    assert_eq!(now, TEN.map(|(_, old, _)| old.to_owned()));
    assert!(!here.join("95-linerate.conf").exists());
    let names: Vec<_> = std::fs::read_dir(&outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["tcp_rmem"]);
}

#[test]
fn links_that_are_exchanged_lead_nothing_out_of_an_image() {
    let _beside = beside();
    let files = Files::new();
    run(&mut files.apply("--yes"), LONG).expect(0);
    let outside = files.folder.file("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("95-linerate.conf"), "theirs").unwrap();
    let place = files.root().join("etc/sysctl.d");
    let (link, aside) = (files.root().join("link"), files.root().join("aside"));
    std::fs::create_dir_all(&place).unwrap();
    std::os::unix::fs::symlink(&outside, &link).unwrap();

    let begin = Instant::now();
    let lasts = || begin.elapsed() < Duration::from_secs(10);
    let (mut done, mut refused, mut exchanges) = (0, 0, 0);
    std::thread::scope(|scope| {
        let attacker = scope.spawn(|| {
            let mut exchanges = 0;
            while lasts() {
                // In between there is nothing for a moment; where a directory was made then, these fail, and the next
                // turn finds all in its place again.
                drop(std::fs::rename(&place, &aside));
                drop(std::fs::rename(&link, &place));
                drop(std::fs::rename(&place, &link));
                drop(std::fs::remove_dir_all(&place));
                drop(std::fs::rename(&aside, &place));
                exchanges += 1;
            }
            exchanges
        });
        while lasts() {
            for words in ["persist --force", "persist --remove --force"] {
                match run(&mut files.tune(words), LONG).code() {
                    Some(0) => done += 1,
                    _ => refused += 1,
                }
            }
        }
        exchanges = attacker.join().unwrap();
    });
    say(&format!(
        "an image: {exchanges} exchanges, {done} times persisted or removed, {refused} refused"
    ));
    assert!(done > 0 && exchanges > 0);
    let text = std::fs::read_to_string(outside.join("95-linerate.conf")).unwrap();
    assert_eq!(text, "theirs");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn a_removal_says_what_remains_to_be_done() {
    let _beside = beside();
    let files = Files::new();
    run(&mut files.apply("--yes"), LONG).expect(0);
    let kept = "etc/systemd/system/irqbalance.service.d/95-linerate.conf";
    let text = "# Written by linerate tune persist\n";
    std::fs::create_dir_all(files.root().join(kept).parent().unwrap()).unwrap();
    std::fs::write(files.root().join(kept), text).unwrap();
    let file = serde_json::json!({ "path": format!("/{kept}"), "before": null, "text": text });
    let persisting = serde_json::json!({ "entry": "persisting", "files": [file] });
    let path = journal(&files.state()).unwrap();
    let mut lines = std::fs::read_to_string(&path).unwrap();
    // Whoever waits for the confirmation writes nothing more.
    assert!(wait_until(LONG, || !waits(&lines)), "{lines}");
    let _ = writeln!(lines, "{persisting}\n{{\"entry\":\"persisted\"}}");
    std::fs::write(&path, lines).unwrap();

    let told = run(&mut files.tune("persist --remove --dry-run --json"), LONG);
    let told = told.expect(0).json();
    let all = told["would_remove"].as_array().unwrap();
    assert!(
        all.len() == 1 && all[0].as_str().unwrap().ends_with(kept),
        "{told}"
    );
    assert!(files.root().join(kept).exists());
    let removed = run(&mut files.tune("persist --remove --json"), LONG)
        .expect(0)
        .json();
    assert_eq!(removed["removed"], told["would_remove"]);
    let warning = removed["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("systemctl restart irqbalance"),
        "{removed}"
    );
    assert!(!files.root().join(kept).exists());
    let none = run(&mut files.tune("persist --remove --json"), LONG)
        .expect(0)
        .json();
    assert_eq!(none["removed"], serde_json::json!([]));
    assert_eq!(none["warnings"], serde_json::json!([]));
}

#[test]
fn a_second_persist_keeps_what_the_first_replaced_and_cut_short_what_the_first_wrote() {
    let _beside = beside();
    let files = Files::new();
    let kept = files.root().join("etc/sysctl.d/95-linerate.conf");
    std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
    std::fs::write(&kept, "# the site's\n").unwrap();
    let text = || std::fs::read_to_string(&kept).unwrap();
    applied_alone(&files, "tcp_fin_timeout", "15");
    run(&mut files.tune("persist --force"), LONG).expect(0);
    let first = text();
    // Of the same set, and of a second one.
    run(&mut files.tune("persist"), LONG).expect(0);
    assert_eq!(text(), first);
    let id = applied_alone(&files, "tcp_retries2", "8");
    run(&mut files.tune("persist"), LONG).expect(0);
    let second = text();
    assert!(second.contains("tcp_retries2 = 8"), "{second}");

    // The power goes in the midst of one more.
    let path = files.state().join(format!("{id}.journal"));
    run(&mut files.tune("persist"), LONG).expect(0);
    let journal = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        journal.strip_suffix("{\"entry\":\"persisted\"}\n").unwrap(),
    )
    .unwrap();
    std::fs::write(
        &kept,
        second.replace("tcp_retries2 = 8", "tcp_retries2 = 9"),
    )
    .unwrap();
    run(&mut files.tune("recover"), LONG).expect(0);
    assert_eq!(text(), second);
    let set = last_set(&mut files.tune("status --json"));
    assert_eq!(set["files"].as_array().unwrap().len(), 1, "{set}");

    run(&mut files.tune("persist --remove"), LONG).expect(0);
    assert_eq!(text(), "# the site's\n");
}

/// Applies a profile of one setting, with its confirmation; gives back the set's name.
fn applied_alone(files: &Files, key: &str, value: &str) -> String {
    let text = format!("[sysctl]\n\"net.ipv4.{key}\" = \"{value}\"\n");
    let profile = files.folder.with(&format!("{key}.toml"), text);
    run(files.tune("apply --yes").arg(profile), LONG).expect(0);
    let set = last_set(&mut files.tune("status --json"));
    set["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_revert_of_one_set_keeps_the_files_of_the_others() {
    let _beside = beside();
    let (one, two) = (("tcp_fin_timeout", "15"), ("tcp_retries2", "8"));
    for reverted in [0, 1] {
        let files = Files::new();
        let ids = [one, two].map(|(key, value)| applied_alone(&files, key, value));
        run(&mut files.tune("persist"), LONG).expect(0);
        // What was confirmed since, nobody asked to persist.
        applied_alone(&files, "tcp_syn_retries", "4");
        let kept = files.root().join("etc/sysctl.d/95-linerate.conf");
        let text = || std::fs::read_to_string(&kept).unwrap();
        let line = |(key, value): (&str, &str)| format!("net.ipv4.{key} = {value}\n");
        assert!(text().contains(&line(one)) && text().contains(&line(two)));

        let words = format!("revert {} --dry-run", ids[reverted]);
        let dry = run(&mut files.tune(&words), LONG).expect(0).out;
        assert!(
            dry.contains("95-linerate.conf would be written again"),
            "{dry}"
        );
        let told = run(&mut files.tune(&format!("revert {}", ids[reverted])), LONG).expect(0);
        assert!(told.error.contains("written again"), "{}", told.error);
        let (gone, stays) = if reverted == 0 {
            (one, two)
        } else {
            (two, one)
        };
        assert!(!text().contains(&line(gone)), "{}", text());
        assert!(text().contains(&line(stays)), "{}", text());
        assert!(!text().contains("tcp_syn_retries"), "{}", text());
        assert_ne!(files.value(gone.0), gone.1);
        assert_eq!(files.value(stays.0), stays.1);

        run(
            &mut files.tune(&format!("revert {}", ids[1 - reverted])),
            LONG,
        )
        .expect(0);
        assert!(!kept.exists());
        assert_eq!(files.value("tcp_syn_retries"), "4");
    }
}

#[test]
fn a_journal_that_was_cut_within_a_character_is_read() {
    let _beside = beside();
    let files = Files::new();
    run(&mut files.apply("--yes"), LONG).expect(0);
    let path = journal(&files.state()).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // The first of the two bytes of a letter.
    bytes.extend_from_slice(b"{\"entry\":\"rolling_back\",\"why\":\"gew\xc3");
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(
        last_set(&mut files.tune("status --json"))["state"],
        "confirmed"
    );
    run(&mut files.tune("revert"), LONG).expect(0);
    assert_eq!(files.values(), old());
}

/// Ten settings of a real kernel, in a namespace of their own.
fn kernel_values(host: &Host) -> BTreeMap<&'static str, String> {
    TEN.iter()
        .map(|(key, ..)| {
            let out = host
                .command("cat")
                .arg(format!("/proc/sys/net/ipv4/{key}"))
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            (*key, text.split_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect()
}

#[test]
fn a_kernel_gets_its_old_settings_back_whatever_ends_the_apply() {
    let _beside = beside();
    let what = "settings of a kernel in a namespace";
    let Some(hosts) = Hosts::new(what) else {
        return;
    };
    let a = &hosts.a;
    a.ip("route add default via 192.0.2.2");
    if let Err(why) = a.sysctl("net.ipv4.tcp_retries2", "15") {
        return skipped(Need::NamespaceSysctls, what, &why);
    }
    let before = kernel_values(a);
    let folder = Folder::new();
    let profile = folder.with("profile.toml", profile());
    let apply = |state: &Path, words: &str| {
        let mut command = a.linerate(&format!("tune apply {words}"));
        command.arg(&profile).arg("--state").arg(state);
        command
    };
    for (number, (lines, signal)) in [(3, "KILL"), (8, "HUP"), (15, "KILL"), (23, "KILL")]
        .into_iter()
        .enumerate()
    {
        let state = folder.file(&format!("state{number}"));
        interrupted(
            &mut apply(&state, "--confirm-within 2s"),
            &state,
            lines,
            signal,
        );
        let back = wait_until(LONG, || kernel_values(a) == before);
        assert!(back, "{signal} after {lines} lines");
    }
    for (name, last, code, parts) in [
        // The kernel's bound is 127; and it takes 0x10 for 16.
        (
            "refused",
            "tcp_syn_retries\" = 200",
            9,
            [
                "cannot set net.ipv4.tcp_syn_retries",
                "all old values are back",
            ],
        ),
        (
            "rounded",
            "tcp_syn_retries\" = \"0x10\"",
            9,
            ["was set to 0x10 and reads 16", "all old values are back"],
        ),
    ] {
        let text = format!(
            "[sysctl]\n\"net.ipv4.tcp_fin_timeout\" = 15\n\"net.ipv4.tcp_wmem\" = \"4096 65536 67108864\"\n\"net.ipv4.{last}\n"
        );
        let profile = folder.with(&format!("{name}.toml"), text);
        let mut command = a.linerate("tune apply --state");
        command.arg(folder.file(name)).arg(profile);
        let failed = run(&mut command, LONG).expect(code);
        for part in parts {
            assert!(failed.error.contains(part), "{part}: {}", failed.error);
        }
        assert!(failed.out.contains("restored"), "{}", failed.out);
        assert_eq!(kernel_values(a), before);
    }
    let state = folder.file("kept");
    let done = run(&mut apply(&state, "--yes --json"), LONG)
        .expect(0)
        .json();
    assert_eq!(done["set"]["state"], "confirmed");
    let probes = done["probes"].as_array().unwrap();
    assert!(
        probes.iter().all(|probe| probe["holds"] == true),
        "{probes:?}"
    );
    assert!(
        probes
            .iter()
            .any(|probe| probe["what"] == "gateway 192.0.2.2"),
        "{probes:?}"
    );
    assert_eq!(kernel_values(a), wanted());

    // Another namespace is another host.
    let mut elsewhere = hosts.b.linerate("tune revert --state");
    let refused = run(elsewhere.arg(&state), LONG).expect(1);
    assert!(
        refused.error.contains("namespace") || refused.error.contains("nothing to revert"),
        "{}",
        refused.error
    );
    let mut revert = a.linerate("tune revert --state");
    run(revert.arg(&state), LONG).expect(0);
    assert_eq!(kernel_values(a), before);
}

/// What is above a link follows its MTU down and not up again (`macvlan_device_event` of `drivers/net/macvlan.c`), and
/// below 1280 bytes it carries no IPv6 and its addresses are gone (RFC 8200, section 5).
#[test]
fn an_address_that_a_change_costs_takes_all_back_and_is_told() {
    let _beside = beside();
    let what = "an address that is lost in an apply";
    let Some(hosts) = Hosts::new(what) else {
        return;
    };
    let a = &hosts.a;
    let mut above = a.command("ip");
    above.args("link add link a0 name above0 type macvlan mode bridge".split(' '));
    let made = above.output().unwrap();
    if !made.status.success() {
        return skipped(
            Need::VirtualLinks,
            what,
            &String::from_utf8_lossy(&made.stderr),
        );
    }
    a.ip("link set above0 up");
    let flush = || ["a0", "above0"].map(|name| a.ip(&format!("-6 address flush dev {name}")));
    let address = "address add 2001:db8::1/64 dev above0 nodad";
    flush();
    a.ip(address);
    let folder = Folder::new();
    let profile = folder.with(
        "profile.toml",
        "[interface.a0]\nmtu = 1000\n[sysctl]\n\"net.ipv4.tcp_fin_timeout\" = 15\n",
    );
    let before = kernel_values(a);
    let apply = |words: &str| {
        let mut command = a.linerate(&format!("tune apply {words}"));
        command
            .arg(&profile)
            .arg("--state")
            .arg(folder.file("state"));
        command
    };
    let refused = run(&mut apply("--allow link-flap"), LONG).expect(1);
    assert!(
        refused.error.contains("IPv6 addresses: above0"),
        "{}",
        refused.error
    );
    assert_eq!(kernel_values(a), before);

    // The plan cannot refuse what comes behind it: while the apply waits for a host that does not answer yet.
    a.ip("address del 2001:db8::1/64 dev above0");
    let refused = run(&mut apply(""), LONG).expect(1);
    assert!(
        refused.error.contains("--allow link-flap"),
        "{}",
        refused.error
    );
    let server = hosts.b.serve("");
    let b = &hosts.b;
    b.ip("link set b0 address 02:00:00:00:00:0b");
    a.ip(&format!(
        "neighbour replace {B} lladdr 02:00:00:00:00:0b dev a0 nud permanent"
    ));
    b.ip(&format!("address del {B}/30 dev b0"));
    let words = format!("--allow link-flap --probe {B}:{}", server.port);
    let mut waiting = start(&mut apply(&words));
    let waits = wait_until(LONG, || {
        let mut sockets = a.command("ss");
        let output = sockets
            .args(["-Htn", "state", "syn-sent"])
            .output()
            .unwrap();
        !output.stdout.is_empty() || waiting.ended()
    });
    assert!(waits && !waiting.ended(), "{}", waiting.error());
    a.ip(address);
    b.ip(&format!("address add {B}/30 dev b0"));
    let failed = waiting.wait(LONG).expect(9);
    let lost = "above0 lost its address 2001:db8::1/64";
    let told = failed
        .error
        .split_once("all old values are back, and still: ");
    assert!(
        told.is_some_and(|(why, still)| why.contains(lost) && still.contains(lost)),
        "{}",
        failed.error
    );
    assert!(
        failed
            .out
            .contains("mtu of a0 = 1000 (before: 1500); restored"),
        "{}",
        failed.out
    );
    assert_eq!(kernel_values(a), before);
    let mut link = a.command("ip");
    let shown = link.args(["link", "show", "dev", "a0"]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("mtu 1500"), "{shown}");
}

#[test]
fn a_link_that_is_down_when_nobody_confirms_does_not_keep_the_rollback() {
    let _beside = beside();
    let Some(hosts) = Hosts::new("a link that goes down after an apply") else {
        return;
    };
    let a = &hosts.a;
    let before = kernel_values(a);
    let folder = Folder::new();
    let profile = folder.with("profile.toml", profile());
    let mut apply = a.linerate("tune apply --confirm-within 2s --state");
    run(apply.arg(folder.file("state")).arg(&profile), LONG).expect(0);
    a.ip("link set a0 down");
    assert!(wait_until(LONG, || kernel_values(a) == before));
}

#[test]
fn values_of_an_earlier_boot_that_run_again_are_named() {
    let _beside = beside();
    let what = "values of an earlier boot";
    let Some(hosts) = Hosts::new(what) else {
        return;
    };
    let a = &hosts.a;
    if let Err(why) = a.sysctl("net.ipv4.tcp_retries2", "15") {
        return skipped(Need::NamespaceSysctls, what, &why);
    }
    let folder = Folder::new();
    let state = folder.file("state");
    let text = "[sysctl]\n\"net.ipv4.tcp_fin_timeout\" = 15\n\"net.ipv4.tcp_retries2\" = 8\n";
    let profile = folder.with("profile.toml", text);
    let mut apply = a.linerate("tune apply --yes --state");
    run(apply.arg(&state).arg(profile), LONG).expect(0);
    a.sysctl("net.ipv4.tcp_retries2", "15").unwrap();
    let path = journal(&state).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    std::fs::write(&path, text.replace(boot.trim(), "earlier")).unwrap();
    let mut revert = a.linerate("tune revert --state");
    let told = run(revert.arg(&state), LONG).expect(10).error;
    assert!(told.contains("net.ipv4.tcp_fin_timeout = 15;"), "{told}");
    assert!(!told.contains("tcp_retries2"), "{told}");
}
