//! The options of a task's test: read by the table of `linerate test`'s options.

use linerate_model::plan::command_line;
use linerate_model::plan::options::{self, named};
use linerate_model::plan::{End, Plan, PlanError, Protocol};
use linerate_model::units::BitRate;

/// Options that a task does not take, and why.
const NOT_HERE: &[(&str, &str)] = &[
    ("-p", "the host's `reach` says the port"),
    ("-R", "the pairs say who sends"),
    (
        "--bidir",
        "each test has one direction: both directions are two pairs",
    ),
    ("-n", "a regular test ends by time: use -t"),
    ("-k", "a regular test ends by time: use -t"),
    ("--expect", "use the key `expect`"),
    ("-B", "the pairs say the addresses"),
    ("--bind-dev", "hosts differ in their interfaces' names"),
    ("--cport", "the ports are free ones"),
    ("-T", "the task's name is the title"),
    ("--extra-data", "the test's id is kept there"),
];

/// The test that options make.
///
/// # Errors
/// The option at fault, and what is wrong with it.
pub fn plan(words: &[String]) -> Result<Plan, PlanError> {
    let mut given = Vec::new();
    for (name, value) in command_line::options(words) {
        let Some(option) = named(&name) else {
            return Err(PlanError {
                option: "test",
                reason: format!("'{name}' is not an option that a test's plan has"),
            });
        };
        if let Some((_, why)) = NOT_HERE.iter().find(|(own, _)| option.is(own)) {
            return Err(PlanError {
                option: option.name(),
                reason: format!("not possible in a task: {why}"),
            });
        }
        if option.has_value() != value.is_some() {
            let needs = if option.has_value() {
                "needs a"
            } else {
                "has no"
            };
            return Err(PlanError {
                option: option.name(),
                reason: format!("it {needs} value"),
            });
        }
        let clashes = |(other, _): &(&options::PlanOption, &str)| {
            let clash =
                |a: &options::PlanOption, b: &options::PlanOption| a.conflicts.contains(&b.long);
            clash(option, other) || clash(other, option)
        };
        if let Some((other, _)) = given.iter().find(|other| clashes(other)) {
            return Err(PlanError {
                option: option.name(),
                reason: format!("it cannot be given beside {}", other.name()),
            });
        }
        given.push((option, value.unwrap_or("")));
    }
    options::plan("HOST", given)
}

/// How long the load of a test lasts at most, the omitted part included, ms; `None` where not time ends it.
pub fn load_millis(plan: &Plan) -> Option<u64> {
    match plan.end {
        End::TimeNs(span) => Some(span.plus(plan.omit_ns).0.div_ceil(1_000_000)),
        End::Bytes(_) | End::Blocks(_) => None,
    }
}

/// The rate of a test's streams together, each direction, where it is paced. The kernel paces TCP alone (`--fq-rate`).
pub fn rate(plan: &Plan) -> Option<BitRate> {
    let of_all = |rate: BitRate| BitRate(rate.0.saturating_mul(u64::from(plan.streams)));
    let kernel = plan
        .kernel_pacing_bps
        .filter(|_| plan.protocol == Protocol::Tcp);
    let asked = plan.rate_bps.into_iter().chain(kernel);
    // A rate of 0 is none.
    asked.filter(|rate| rate.0 > 0).min().map(of_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Plan, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        plan(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn the_load_and_its_rate_are_those_of_the_options() {
        let plan = read("-t 10 -O 5 -P 4 -b 1G --fq-rate=2G").unwrap();
        assert_eq!(load_millis(&plan), Some(15_000));
        assert_eq!(rate(&plan), Some(BitRate(4_000_000_000)));
        let plan = read("--precision 2%").unwrap();
        assert_eq!(load_millis(&plan), Some(120_000));
        assert_eq!(rate(&plan), None);
        assert_eq!(rate(&read("-u").unwrap()), Some(BitRate(1_000_000)));
        assert_eq!(rate(&read("-b 0").unwrap()), None);
    }

    #[test]
    fn options_that_have_no_place_in_a_task_are_refused() {
        for (line, said) in [
            ("-R", "-R: not possible in a task: the pairs say who sends"),
            ("-n 1G", "-n: not possible in a task"),
            ("--port 5202", "-p: not possible"),
            ("host", "test: 'host' is not an option"),
            ("--html x.html", "test: '--html' is not"),
            ("-t", "-t: it needs a value"),
            ("-4 -6", "-6: it cannot be given beside -4"),
            ("-P 900", "-P: 900 streams"),
            ("-u -C bbr", "-C: has no effect for UDP"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.starts_with(said), "{line}: {error}");
        }
    }
}
