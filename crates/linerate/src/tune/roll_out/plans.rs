//! What a roll-out would change on each host, made there and shown folded.

use std::fmt::Write as _;

use linerate_fleet::answers::{fold, names};
use linerate_model::tuning::TuningPlan;
use linerate_model::units::Nanos;
use linerate_watch::roll_out::Plan;

use super::hosts::{Hosts, Said};

/// A plan has been made by then.
const SOON: Nanos = Nanos::from_millis(60_000);

/// The plan of a host: what the roll-out needs of it, and the lines that a person sees.
#[derive(Debug)]
pub(super) struct HostPlan {
    pub(super) plan: Plan,
    lines: Vec<String>,
}

/// Asks a host for its plan. It changes nothing.
pub(super) fn of(hosts: &Hosts, host: usize) -> HostPlan {
    let dry = ["--dry-run".to_owned()];
    match hosts.apply(host, &dry, SOON) {
        Ok(said) => read(&said),
        Err(why) => HostPlan {
            lines: vec![format!("cannot be reached: {why}")],
            plan: Plan::Unreachable { why: why.into() },
        },
    }
}

fn read(said: &Said) -> HostPlan {
    let plan = serde_json::from_slice::<TuningPlan>(&said.out);
    let (0, Ok(plan)) = (said.code, plan) else {
        let why = said.why();
        let why = why.trim_start_matches("this would be refused:").trim();
        return HostPlan {
            lines: vec![format!("cannot have it: {why}")],
            plan: Plan::Refused {
                why: why.to_owned().into(),
            },
        };
    };
    let lines = plan.steps.iter().map(|step| {
        format!(
            "{} = {} (now: {}; risk: {})",
            step.object,
            step.wanted,
            step.now,
            step.risk.words()
        )
    });
    let mut lines: Vec<String> = lines.collect();
    if plan.steps.is_empty() {
        lines.push("nothing is to be changed".to_owned());
    }
    HostPlan {
        lines,
        plan: match plan.steps.len() {
            0 => Plan::AlreadySo,
            count => Plan::Changes { count },
        },
    }
}

/// The plans as text, equal ones once.
pub(super) fn folded(hosts: &Hosts, plans: &[HostPlan]) -> String {
    let plans = plans.iter().enumerate();
    let plans = plans.map(|(host, plan)| (hosts.name(host).to_owned(), plan.lines.clone()));
    let mut text = String::new();
    for alike in fold(plans) {
        let _ = writeln!(text, "{}:", names(&alike.hosts));
        for line in alike.answer {
            let _ = writeln!(text, "  {line}");
        }
    }
    text.push('\n');
    text
}
