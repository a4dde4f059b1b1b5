//! Runs every target on its seeds and on changes of them, ten seconds each or `SEEDS_SECONDS`, with stable Rust; words are filters as
//! those of a test binary, and so are `--exact`, `--list`, `--ignored` (none is) and the options with values, which change nothing:
//!
//!     SEEDS_SECONDS=600 cargo test --profile fast --workspace --test seeds -- iperf2
//!
//! Each target is a process of its own, of at most [`MEMORY_KIB`]; as many run at once as there are CPUs. A failure is
//! a panic, an input that takes longer than [`PATIENCE`], or a process that was killed: its input is then in
//! `artifacts/TARGET/`. What is printed is what a test binary prints.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use linerate_fuzz::mutate::{Random, mutated};
use linerate_fuzz::{TARGETS, Target};

/// Address space of a target's process, KiB.
const MEMORY_KIB: u64 = 2 << 20;
/// An input that takes longer fails; a busy machine makes them slower.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long each target runs, seconds, where `SEEDS_SECONDS` does not say it.
const SECONDS: &str = "10";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["--one", seconds, name] = words.as_slice() {
        return one(seconds, name);
    }
    let seconds = std::env::var("SEEDS_SECONDS").unwrap_or_else(|_| SECONDS.to_owned());
    let asked = Asked::of(&words);
    let chosen: Vec<Target> = TARGETS
        .iter()
        .copied()
        .filter(|target| asked.chooses(target))
        .collect();
    if asked.lists {
        for target in &chosen {
            println!("fuzz::{}: test", target.name);
        }
        return ExitCode::SUCCESS;
    }
    all(&seconds, &chosen)
}

/// What is asked of a test binary.
#[derive(Default)]
struct Asked<'a> {
    filters: Vec<&'a str>,
    skipped: Vec<&'a str>,
    exact: bool,
    lists: bool,
    only_ignored: bool,
}

impl<'a> Asked<'a> {
    fn of(words: &[&'a str]) -> Self {
        let mut asked = Self::default();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "--skip" => asked.skipped.extend(words.next()),
                "--test-threads" | "--format" | "--color" | "--logfile" | "-Z" => {
                    words.next();
                }
                "--exact" => asked.exact = true,
                "--list" => asked.lists = true,
                "--ignored" => asked.only_ignored = true,
                _ if word.starts_with('-') => {}
                filter => asked.filters.push(filter),
            }
        }
        asked
    }

    fn chooses(&self, target: &Target) -> bool {
        let name = format!("fuzz::{}", target.name);
        let fits = |filter: &&str| {
            if self.exact {
                name == *filter
            } else {
                name.contains(filter)
            }
        };
        let chosen = self.filters.is_empty() || self.filters.iter().any(fits);
        chosen && !self.skipped.iter().any(fits) && !self.only_ignored
    }
}

/// Runs the targets, as many at once as there are CPUs.
fn all(seconds: &str, chosen: &[Target]) -> ExitCode {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(target) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ran = started(seconds, target);
                    let result = if ran.is_ok() { "ok" } else { "FAILED" };
                    println!("test fuzz::{} ... {result}", target.name);
                    if let (Err(why), Ok(mut failed)) = (ran, failed.lock()) {
                        failed.push((target.name, why));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_default();
    for (name, why) in &failed {
        println!("\n---- fuzz::{name} stdout ----\n{why}");
    }
    println!(
        "\ntest result: {}. {} passed; {} failed; 0 ignored; 0 measured; {} filtered out",
        if failed.is_empty() { "ok" } else { "FAILED" },
        chosen.len() - failed.len(),
        failed.len(),
        TARGETS.len() - chosen.len()
    );
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs one target as a process of its own.
fn started(seconds: &str, target: &Target) -> Result<(), String> {
    let failed = |why: String| format!("target {}: {why}", target.name);
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let limited = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" --one \"$@\"");
    let ran = Command::new("sh")
        .args(["-c", &limited])
        .arg(program)
        .args([seconds, target.name])
        .output()
        .map_err(|error| failed(format!("cannot start it: {error}")))?;
    print!("{}", String::from_utf8_lossy(&ran.stdout));
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    Err(failed(format!(
        "{}, on the input {}\n{said}",
        ran.status,
        input_file(target).display()
    )))
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

/// Runs one target in this process.
fn one(seconds: &str, name: &str) -> ExitCode {
    let found = TARGETS.iter().find(|target| target.name == name);
    let (Some(target), Ok(seconds)) = (found, seconds.parse()) else {
        eprintln!("seeds: --one SECONDS TARGET is wanted, found {seconds} {name}");
        return ExitCode::FAILURE;
    };
    match feed(target, Duration::from_secs(seconds)) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("seeds: {name}: {error}");
            ExitCode::FAILURE
        }
    }
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
    let begun = Instant::now();
    while begun.elapsed() < span {
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
