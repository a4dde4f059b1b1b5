//! Runs every target on its seeds and on changes of them, with stable Rust: each for ten seconds of CPU time, or for `SEEDS_SECONDS`.
//!
//!     SEEDS_SECONDS=600 cargo test --profile fast --workspace --test seeds -- iperf2
//!
//! Each target is a process of its own, of at most [`MEMORY_KIB`]. A failure is a panic, an input that takes longer than
//! [`PATIENCE`], or a process that was killed: its input is then in `artifacts/TARGET/`.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use linerate_fuzz::mutate::{Random, mutated};
use linerate_fuzz::{TARGETS, Target, each_target};
use linerate_kernel::clock;
use linerate_model::units::Nanos;

/// Address space of a target's process, KiB.
const MEMORY_KIB: u64 = 2 << 20;
/// An input that takes longer fails; a busy machine makes them slower.
const PATIENCE: Duration = Duration::from_secs(20);
/// Set in the process that feeds a target: for how many seconds.
const FEEDS: &str = "LINERATE_FUZZ_FEEDS";

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            runs(stringify!($name));
        })*
    };
}

each_target!(tests);

/// Starts this test again as a process of its own, which feeds the target.
fn runs(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    if let Ok(seconds) = std::env::var(FEEDS) {
        let span = Duration::from_secs(seconds.parse().unwrap());
        println!("{}", feed(target, span).unwrap());
        return;
    }
    let seconds = std::env::var("SEEDS_SECONDS").unwrap_or_else(|_| "10".to_owned());
    let limited = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" --exact --nocapture \"$1\"");
    let ran = Command::new("sh")
        .args(["-c", &limited])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(FEEDS, seconds)
        .output()
        .unwrap();
    let said = [&ran.stdout, &ran.stderr].map(|text| String::from_utf8_lossy(text));
    // Its lines are none of this process's results.
    said.iter()
        .flat_map(|text| text.lines())
        .for_each(|line| println!("    {line}"));
    assert!(
        ran.status.success() && said[0].contains(" executions, "),
        "{}, on the input {}",
        ran.status,
        input_file(target).display()
    );
}

/// Where the input of this moment is kept.
fn input_file(target: &Target) -> PathBuf {
    folder("artifacts", target).join("seeds-input")
}

fn folder(kind: &str, target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(kind)
        .join(target.name)
}

/// Feeds every seed, then changes of them until the time is over.
fn feed(target: &Target, span: Duration) -> std::io::Result<String> {
    let seeds = seeds(target)?;
    fs::create_dir_all(folder("artifacts", target))?;
    let file = File::create(input_file(target))?;
    let executions = watched();
    let mut slowest = Duration::ZERO;
    let mut feed = |input: &[u8]| -> std::io::Result<()> {
        // Written before it is fed, so that it is there whatever ends the process.
        file.write_all_at(input, 0)?;
        file.set_len(input.len() as u64)?;
        let begun = Instant::now();
        (target.run)(input);
        slowest = slowest.max(begun.elapsed());
        executions.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };
    for seed in &seeds {
        feed(seed)?;
    }
    let mut hasher = DefaultHasher::new();
    target.name.hash(&mut hasher);
    let mut random = Random::new(hasher.finish());
    // What other processes use of the CPUs takes nothing away from it.
    let (begun, span) = (
        clock::thread_cpu(),
        Nanos::from_secs_f64(span.as_secs_f64()),
    );
    while clock::thread_cpu().since(begun) < span {
        let one = &seeds[random.below(seeds.len())];
        let other = &seeds[random.below(seeds.len())];
        feed(&mutated(&mut random, one, other))?;
    }
    fs::remove_file(input_file(target))?;
    Ok(format!(
        "{}: {} executions, the slowest took {} ms",
        target.name,
        executions.load(Ordering::Relaxed),
        slowest.as_millis()
    ))
}

/// A count of executions, and a thread that ends the process when it stands still.
fn watched() -> &'static AtomicUsize {
    static EXECUTIONS: AtomicUsize = AtomicUsize::new(0);
    std::thread::spawn(|| {
        loop {
            let before = EXECUTIONS.load(Ordering::Relaxed);
            std::thread::sleep(PATIENCE);
            if EXECUTIONS.load(Ordering::Relaxed) == before {
                eprintln!("seeds: an input took longer than {PATIENCE:?}");
                std::process::abort();
            }
        }
    });
    &EXECUTIONS
}

/// A target's seeds, those of folders within its folder as well, in the order of their names.
fn seeds(target: &Target) -> std::io::Result<Vec<Vec<u8>>> {
    let folder = folder("seeds", target);
    let missing = |error: std::io::Error| {
        std::io::Error::new(
            error.kind(),
            format!("seeds in {}: {error}", folder.display()),
        )
    };
    let mut files = Vec::new();
    let mut folders = vec![folder.clone()];
    while let Some(one) = folders.pop() {
        for entry in fs::read_dir(&one).map_err(missing)? {
            let path = entry.map_err(missing)?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort_unstable();
    if files.is_empty() {
        return Err(missing(std::io::Error::other("there is none")));
    }
    files.iter().map(fs::read).collect()
}
