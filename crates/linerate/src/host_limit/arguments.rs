//! The arguments of `linerate self`.

use clap::Args;
use linerate_model::units::Nanos;

use crate::arguments::seconds;
use crate::on::OnArguments;

// `linerate self`.
#[derive(Args, Debug, Clone)]
pub(crate) struct SelfArguments {
    /// Seconds of each run, 0.5 to 60
    #[arg(short = 't', long, value_name = "SECONDS", value_parser = run_time, default_value = "2")]
    pub(super) time: Nanos,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) on: OnArguments,
}

fn run_time(text: &str) -> Result<Nanos, String> {
    let time = seconds(text)?;
    if (Nanos::from_millis(500)..=Nanos::from_millis(60_000)).contains(&time) {
        Ok(time)
    } else {
        Err("0.5 to 60 seconds are possible".to_owned())
    }
}
