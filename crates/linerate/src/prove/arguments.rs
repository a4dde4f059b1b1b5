//! The command line of `linerate prove`.

use std::path::PathBuf;

use clap::Args;
use linerate_experiment::prove::{Pairs, Question};
use linerate_experiment::sweep;
use linerate_lab::scenario::EngineWish;

use crate::lab::arguments::{PathOptions, engine};

/// Pairs until the question is decided, at most.
pub(crate) const MOST: u32 = 15;
/// The smallest effect that is of interest, where no other is asked for, a share.
pub(crate) const LEAST: f64 = 0.02;

// `linerate prove`.
#[derive(Args, Debug, Clone)]
pub(crate) struct ProveArguments {
    /// Profile of the runs without the change: TOML, or lines of sysctl.conf if the name ends in .conf [default: the present
    /// settings]
    #[arg(long, value_name = "FILE")]
    pub(super) before: Option<PathBuf>,
    /// Profile of the runs with the change
    #[arg(long, value_name = "FILE", required_unless_present = "of_boots")]
    pub(super) after: Option<PathBuf>,
    #[command(flatten)]
    pub(super) boots: BootsArguments,
    /// Measure from this host to a host that runs `linerate serve`. Needs root; every setting is restored
    #[arg(
        long,
        value_name = "HOST",
        required_unless_present_any = ["in_lab", "of_boots"],
        conflicts_with = "in_lab"
    )]
    pub(super) peer: Option<String>,
    /// With --peer: the folder in which `linerate tune` keeps old values. Refused while `linerate tune` changes settings
    /// there or a set of changes waits for confirmation [default: /var/lib/linerate/tune]
    #[arg(long, value_name = "FOLDER", conflicts_with = "in_lab")]
    pub(super) state: Option<PathBuf>,
    /// Measure in a lab, without root: a scenario's file, or the name of a preset
    #[arg(long, value_name = "SCENARIO", group = "in_lab", conflicts_with_all = ["rate", "rtt", "queue", "loss", "mode"])]
    pub(super) lab: Option<String>,
    /// Measure in a lab, on a path given by the options below
    #[arg(long, group = "in_lab")]
    pub(super) path: bool,
    #[command(flatten)]
    pub(super) options: PathOptions,
    /// In a lab: auto, nfqueue or netem, instead of the scenario's
    #[arg(long, value_name = "ENGINE", value_parser = engine, conflicts_with = "peer")]
    pub(super) engine: Option<EngineWish>,
    /// Number of pairs, 3 to 100 [default: 6 or more, until decided]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=100))]
    pairs: Option<u32>,
    /// Maximum number of pairs, 6 to 100
    #[arg(long = "max-pairs", alias = "most", value_name = "N", default_value_t = MOST, value_parser = clap::value_parser!(u32).range(6..=100), conflicts_with = "pairs")]
    most: u32,
    /// The smallest effect of interest: a smaller one counts as none
    #[arg(long = "min-effect", alias = "least", value_name = "PERCENT", default_value = "2%", value_parser = sweep::share)]
    least: f64,
    /// Random seed for the order of runs, the bootstrap and the lab
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Duration of each run, seconds
    #[arg(short = 't', long, value_name = "SECONDS")]
    time: Option<f64>,
    /// Streams in each direction
    #[arg(short = 'P', long, value_name = "N")]
    parallel: Option<u16>,
    /// The peer sends
    #[arg(short = 'R', long)]
    reverse: bool,
    /// Congestion control of the sender
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
    /// The server's port
    #[arg(short = 'p', long, value_name = "PORT")]
    port: Option<u16>,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    /// More arguments for `linerate test`
    #[arg(last = true, value_name = "TEST")]
    test: Vec<String>,
}

// `linerate prove --boots`.
#[derive(Args, Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches of a command line"
)]
pub(super) struct BootsArguments {
    /// Compare two boots of this host instead of profiles: it restarts into one and the other in turn, at least six times
    /// each, and ends in its default boot. Each is a kernel's image, then options for its command line:
    /// '/boot/vmlinuz-6.1.0-41-amd64 mitigations=off'. Needs root, systemd and kexec. Tests go to --peer, else over loopback
    #[arg(long, value_names = ["BEFORE", "AFTER"], num_args = 2, group = "of_boots", conflicts_with_all = ["before", "after", "in_lab", "engine", "state"])]
    pub(super) boots: Vec<String>,
    /// With --boots: restart this host now, without asking
    #[arg(long, requires = "boots")]
    pub(super) yes: bool,
    /// With --boots: no test starts earlier after a boot, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = super::boots::SETTLE_S, requires = "boots")]
    pub(super) settle: u32,
    /// What the boots of the latest series gave until now
    #[arg(long, group = "of_boots", conflicts_with_all = ["before", "after", "in_lab", "peer", "boots"])]
    pub(super) boots_show: bool,
    /// End a series of boots; the host stays in the boot that it is in
    #[arg(long, group = "of_boots", conflicts_with_all = ["before", "after", "in_lab", "peer", "boots", "boots_show"])]
    pub(super) boots_cancel: bool,
    /// Go on with a series after a boot
    #[arg(long, hide = true, group = "of_boots", conflicts_with_all = ["before", "after", "in_lab", "peer", "boots", "boots_show", "boots_cancel"])]
    pub(super) boots_resume: bool,
    /// The folder in which a series of boots is kept [default: /var/lib/linerate/boots]
    #[arg(long, value_name = "FOLDER", requires = "of_boots")]
    pub(super) boots_state: Option<PathBuf>,
}

impl BootsArguments {
    /// Whether boots are asked for.
    pub(super) fn is_asked(&self) -> bool {
        !self.boots.is_empty() || self.boots_show || self.boots_cancel || self.boots_resume
    }
}

impl ProveArguments {
    pub(super) fn question(&self) -> Question {
        Question {
            pairs: self
                .pairs
                .map_or(Pairs::UntilDecided(self.most), Pairs::Exactly),
            least: self.least,
            seed: self.seed,
        }
    }

    pub(super) fn words(&self) -> Vec<String> {
        let valued = [
            ("-t", self.time.map(|seconds| seconds.to_string())),
            ("-P", self.parallel.map(|streams| streams.to_string())),
            ("-C", self.congestion.clone()),
            ("-p", self.port.map(|port| port.to_string())),
        ];
        let mut words: Vec<String> = valued
            .into_iter()
            .filter_map(|(option, value)| Some([option.to_owned(), value?]))
            .flatten()
            .collect();
        if self.reverse {
            words.push("-R".to_owned());
        }
        words.extend(self.test.iter().cloned());
        words
    }
}
