//! A folder that stands for `/`, in which somebody exchanges a directory and a link that leads out of it.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use linerate_kernel::directory::Replacement;
use linerate_kernel::inventory::Root;
use linerate_kernel::{clock, poll};
use linerate_model::units::Nanos;
use linerate_testing::{Need, skipped};

use super::filter::refuse_call;

/// So long links are exchanged.
const RACE: Nanos = Nanos::from_millis(10_000);

#[expect(unsafe_code, reason = "the standard library has no renameat2")]
fn exchange(one: &Path, other: &Path) {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap();
    let (one, other) = (text(one), text(other));
    let here = libc::AT_FDCWD;
    // SAFETY: both texts end with a NUL and outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            here,
            one.as_ptr(),
            here,
            other.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}

/// What a program does below a root.
const WORK: [fn(&Root) -> io::Result<()>; 4] = [
    |root| {
        let folder = root.make_directories("/etc/place/deep/er", 0o755)?;
        let mut file = Replacement::begin(folder.share()?, 0o644)?;
        file.file().write_all(b"ours")?;
        file.take(OsStr::new("file"))?;
        folder.remove(OsStr::new("file"))
    },
    |root| root.write("/etc/place/setting", "ours"),
    |root| {
        let text = root.whole_text("/etc/place/setting")?;
        assert_ne!(text, "theirs");
        Ok(())
    },
    |root| {
        let (folder, name) = root.entry(Path::new("/etc/place/victim"))?;
        folder.make(name, 0o644)?;
        folder.remove(name)
    },
];

#[test]
fn exchanged_links_lead_nothing_out_of_a_root() {
    let above = tempfile::tempdir().unwrap();
    let [image, outside] = ["image", "outside"].map(|name| above.path().join(name));
    fs::create_dir_all(image.join("etc/place/deep")).unwrap();
    fs::create_dir_all(outside.join("deep")).unwrap();
    for file in ["setting", "victim"] {
        fs::write(outside.join(file), "theirs").unwrap();
    }
    fs::write(image.join("etc/place/setting"), "").unwrap();
    let place = image.join("etc/place");
    let links = [
        ("etc/absolute", outside.as_path()),
        ("etc/upward", Path::new("../../outside")),
    ];
    for (name, target) in &links {
        symlink(target, image.join(name)).unwrap();
    }

    let root = Root::at(&image).unwrap();
    let (mut done, mut refused) = ([0_u32; WORK.len()], 0_u32);
    let mut exchanges = 0_u32;
    let begin = clock::monotonic();
    let lasts = || clock::monotonic().since(begin) < RACE;
    std::thread::scope(|scope| {
        let attacker = scope.spawn(|| {
            let mut exchanges = 0_u32;
            while lasts() {
                // Twice the same one, so that the directory is back in its place.
                let link = image.join(links[exchanges as usize / 2 % 2].0);
                exchange(&place, &link);
                exchanges += 1;
                // Now and then the directory stays in its place for a moment, so that work is got through too.
                if exchanges.is_multiple_of(8) {
                    poll::wait(&mut [], Some(Nanos(50_000))).unwrap();
                }
            }
            exchanges
        });
        while lasts() {
            for (work, done) in WORK.iter().zip(&mut done) {
                match work(&root) {
                    Ok(()) => *done += 1,
                    Err(_) => refused += 1,
                }
            }
        }
        exchanges = attacker.join().unwrap();
    });

    let text = |path: PathBuf| fs::read_to_string(path).unwrap();
    for file in ["setting", "victim"] {
        assert_eq!(text(outside.join(file)), "theirs", "{file}");
    }
    let mut names: Vec<_> = fs::read_dir(&outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["deep", "setting", "victim"]);
    assert_eq!(fs::read_dir(outside.join("deep")).unwrap().count(), 0);
    super::say(&format!(
        "below a root: {exchanges} exchanges, done {done:?} times, refused {refused} times"
    ));
    assert!(done.iter().all(|done| *done > 0) && exchanges > 1);
    // What was written is inside, in either place that the directory has.
    let inside = [place, image.join("etc/absolute"), image.join("etc/upward")];
    let inside = inside.iter().find(|path| !path.is_symlink()).unwrap();
    assert_eq!(text(inside.join("setting")), "ours\n");
}

#[test]
fn a_kernel_that_is_too_old_is_named_and_nothing_is_opened() {
    // A filter holds for the thread that takes it.
    let seen = std::thread::spawn(|| {
        refuse_call(libc::SYS_openat2, libc::ENOSYS)?;
        let opened = Root::at(&std::env::temp_dir()).map(drop);
        let own = Root::of_this_machine().whole_text("/proc/sys/kernel/ostype");
        Ok::<_, io::Error>((opened, own.unwrap()))
    });
    match seen.join().unwrap() {
        Err(why) => skipped(Need::Seccomp, "a kernel without openat2", &why.to_string()),
        Ok((opened, own)) => {
            let error = opened.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            assert!(error.to_string().contains("Linux 5.6"), "{error}");
            assert_eq!(own, "Linux\n");
        }
    }
}
