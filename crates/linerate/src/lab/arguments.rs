//! The command line of `linerate lab`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use linerate_lab::scenario::EngineWish;

use crate::report_files::ReportFiles;

// `linerate lab`.
#[derive(Args, Debug, Clone)]
pub(crate) struct LabArguments {
    #[command(subcommand)]
    pub(super) command: LabCommand,
}

#[derive(Subcommand, Debug, Clone)]
pub(super) enum LabCommand {
    /// Create a path, test across it, report test and path counters, and remove it
    Run(RunArguments),
    /// Create a path, or a star of many hosts, and keep it up for your own commands
    Up(UpArguments),
    /// Run a command on a host of a path or a star that is up
    Exec(ExecArguments),
    /// Show the paths and stars that are up
    List(ListArguments),
    /// Remove a path or a star
    Down {
        /// Its name
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// All paths and stars of this user
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// List the built-in paths
    Presets {
        /// Print this preset's scenario file, as a starting point for your own
        name: Option<String>,
    },
    /// Compare the lab's delay, rate and loss with the requested values
    Selfcheck {
        /// Seed of the checks with random loss [default: random, printed]
        #[arg(long, value_name = "N")]
        seed: Option<u32>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Run a folder of scenarios, or paths drawn at random, and compare the findings with the expected ones
    Grade(GradeArguments),
    /// Print the scenario of a path drawn at random, with what its first finding has to be
    Draw {
        /// Number of the draw, which decides everything
        number: u64,
    },
    /// Hold a path that `up` made
    #[command(hide = true)]
    Hold {
        /// The name
        name: String,
        /// Seed to use instead of the text's
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
    },
}

#[derive(Args, Debug, Clone)]
pub(super) struct RunArguments {
    /// A scenario's file, or the name of a preset
    pub(super) scenario: String,
    /// Seed to use instead of the scenario's
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// auto, nfqueue or netem, whatever the scenario says
    #[arg(long, value_name = "ENGINE", value_parser = engine)]
    pub(super) engine: Option<EngineWish>,
    /// First apply the remedies that this record recommends, as far as a lab can
    #[arg(long, value_name = "RECORD")]
    pub(super) remedy_of: Option<PathBuf>,
    /// Apply one remedy after the other, each followed by a test, until this is the first finding: path-full. At most five
    /// tests
    #[arg(long, value_name = "FINDING")]
    pub(super) until: Option<String>,
    /// One JSON document: the scenario, the test's document, and what the path did; with --until, each test and its remedy
    #[arg(long)]
    pub(super) json: bool,
    /// Save the test's record to this file; with --until, the last test's
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) files: ReportFiles,
    /// More arguments for `linerate test`, after those of the scenario
    #[arg(last = true, value_name = "TEST")]
    pub(super) test: Vec<OsString>,
}

impl RunArguments {
    /// All arguments for `linerate test` that do not come from the scenario.
    pub(super) fn test_arguments(&self) -> Vec<OsString> {
        let record = self.output.as_deref();
        let record = record.map(|path| ("--output".to_owned(), path));
        let mut all = Vec::new();
        for (option, file) in record.into_iter().chain(self.files.options()) {
            all.extend([option.into(), file.into()]);
        }
        all.extend(self.test.iter().cloned());
        all
    }
}

#[derive(Args, Debug, Clone, Default)]
pub(super) struct UpArguments {
    /// A name for it: up to 64 letters, digits, dots, dashes, underscores
    pub(super) name: String,
    /// The file of a scenario or a star, or the name of a preset, instead of the options below
    #[arg(long, value_name = "SCENARIO", conflicts_with_all = ["rate", "rtt", "jitter", "queue", "loss", "mode", "engine"])]
    pub(super) scenario: Option<String>,
    /// Rate of the bottleneck, bit/s (K, M, G of 1000) [default: unlimited]
    #[arg(long, value_name = "RATE")]
    pub(super) rate: Option<String>,
    /// Round-trip time, half of it each way: 60ms
    #[arg(long, value_name = "TIME")]
    pub(super) rtt: Option<String>,
    /// Delay variation
    #[arg(long, value_name = "TIME")]
    pub(super) jitter: Option<String>,
    /// The queue: bytes (1.5MB), or a multiple of rate × rtt (1x) [default: 1x]
    #[arg(long, value_name = "SIZE")]
    pub(super) queue: Option<String>,
    /// Share of packets lost, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) loss: Option<f64>,
    /// packet: each packet is handled alone; bulk: whole GSO batches, faster; auto: by the rate
    #[arg(long, value_name = "MODE")]
    pub(super) mode: Option<String>,
    /// auto, nfqueue or netem
    #[arg(long, value_name = "ENGINE")]
    pub(super) engine: Option<String>,
    /// Seed of everything random
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
}

#[derive(Args, Debug, Clone)]
pub(super) struct ListArguments {
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    /// Only the switches of this star, each as a group of hosts, as --groups reads them
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    pub(super) groups: Option<String>,
}

// A path by options.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct PathOptions {
    /// In a lab: rate of its bottleneck, bit/s (K, M, G of 1000)
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<String>,
    /// In a lab: round-trip time, half of it each way: 60ms
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Option<String>,
    /// In a lab: the queue, bytes (1.5MB) or a multiple of rate × rtt (1x)
    #[arg(long, value_name = "SIZE")]
    pub(crate) queue: Option<String>,
    /// In a lab: share of packets lost, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) loss: Option<f64>,
    /// In a lab: packet (each packet is handled alone), bulk (whole GSO batches, faster) or auto (by the rate)
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
}

impl PathOptions {
    /// Whether one was given.
    pub(crate) const fn is_given(&self) -> bool {
        self.rate.is_some()
            || self.rtt.is_some()
            || self.queue.is_some()
            || self.loss.is_some()
            || self.mode.is_some()
    }
}

#[derive(Args, Debug, Clone)]
pub(super) struct ExecArguments {
    /// The name of the path or the star
    pub(super) name: String,
    /// The host: of a path sender, receiver, cross-sender, cross-receiver; of a star a host or a switch
    pub(super) host: String,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

#[derive(Args, Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a switch of the command line each"
)]
pub(super) struct GradeArguments {
    /// The folder with scenario files
    #[arg(required_unless_present = "drawn", conflicts_with = "drawn")]
    pub(super) folder: Option<PathBuf>,
    /// Instead of a folder: this many paths drawn at random, numbered from --seeds-from on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(super) drawn: Option<u64>,
    /// Runs of each scenario, each with another seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) runs: u32,
    /// Only scenarios whose name contains this, or draws of this family; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(super) only: Vec<String>,
    /// auto, nfqueue or netem, whatever the scenarios say; scenarios that netem cannot emulate are skipped
    #[arg(long, value_name = "ENGINE", value_parser = engine, conflicts_with = "kept")]
    pub(super) engine: Option<EngineWish>,
    /// Add this to the seed of each scenario; with --drawn, the first number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seeds_from: u64,
    /// Save each run to this folder: its record, and what the path did
    #[arg(long, value_name = "FOLDER")]
    pub(super) keep: Option<PathBuf>,
    /// Make only the runs missing from the --keep folder
    #[arg(long, requires = "keep")]
    pub(super) resume: bool,
    /// Run nothing: grade the runs saved earlier with --keep FOLDER
    #[arg(long, value_name = "FOLDER", conflicts_with = "keep")]
    pub(super) kept: Option<PathBuf>,
    /// Diagnose each run further (`linerate test --diagnose`), and grade what comes first then
    #[arg(long, conflicts_with_all = ["kept", "remedies"])]
    pub(super) diagnose: bool,
    /// After each run, apply the remedy found, run again, and compare measured and predicted rate
    #[arg(long)]
    pub(super) remedies: bool,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
}

/// An engine by its word.
pub(crate) fn engine(text: &str) -> Result<EngineWish, String> {
    let known = EngineWish::WORDS.iter().find(|(word, _)| *word == text);
    known
        .map(|(_, engine)| *engine)
        .ok_or_else(|| "it is none of auto, nfqueue and netem".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok();
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "it is not a share between 0 and 1".to_owned())
}
