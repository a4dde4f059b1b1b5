//! The arguments of a scenario's test: read, and replaced one at a time.

use linerate_model::plan::options::{self, named};
use linerate_model::plan::{Direction, End, Plan, PlanError, command_line};
use linerate_model::units::Nanos;

use super::types::{TestSpec, Way};

impl TestSpec {
    /// The plan that the arguments make. What belongs to no plan, such as `--html`, is passed over.
    ///
    /// # Errors
    /// The option at fault.
    pub fn plan(&self) -> Result<Plan, PlanError> {
        let given = command_line::options(&self.args);
        let known = given.filter_map(|(name, value)| Some((named(&name)?, value.unwrap_or(""))));
        options::plan("HOST", known)
    }

    /// How long the test takes, with what it omits; `None` where an amount of data ends it.
    pub fn duration(&self) -> Option<Nanos> {
        let plan = self.plan().ok()?;
        match plan.end {
            End::TimeNs(measured) => Some(measured.plus(plan.omit_ns)),
            End::Bytes(_) | End::Blocks(_) => None,
        }
    }

    /// Which way the test's data goes.
    pub fn ways(&self) -> &'static [Way] {
        match self.plan().map(|plan| plan.direction) {
            Ok(Direction::Both) => &[Way::Forward, Way::Back],
            Ok(Direction::Receive) => &[Way::Back],
            Ok(Direction::Send) | Err(_) => &[Way::Forward],
        }
    }

    /// Gives an option with a value this one, or takes it away.
    pub fn replace(&mut self, name: &str, value: Option<&str>) {
        let is_it = |given: &str| named(name).is_some_and(|option| option.is(given));
        let mut args = Vec::with_capacity(self.args.len() + 2);
        for (given, own) in command_line::options(&self.args).filter(|(given, _)| !is_it(given)) {
            match own {
                // A value may look like an option.
                Some(own) if given.starts_with("--") => args.push(format!("{given}={own}")),
                Some(own) => args.extend([given, own.to_owned()]),
                None => args.push(given),
            }
        }
        if let Some(value) = value {
            args.extend([name.to_owned(), value.to_owned()]);
        }
        self.args = args;
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::plan::Protocol;

    use super::*;

    fn arguments(text: &str) -> TestSpec {
        TestSpec {
            args: text.split_whitespace().map(str::to_owned).collect(),
        }
    }

    #[test]
    fn an_option_is_replaced_however_it_was_written() {
        for typed in ["-P 2 -t 8", "-t 8 -P2", "--parallel=2 -t 8", "-t8"] {
            let mut test = arguments(typed);
            test.replace("-P", Some("4"));
            assert_eq!(test.args, ["-t", "8", "-P", "4"], "{typed}");
        }
    }

    #[test]
    fn an_option_is_taken_away_with_its_value() {
        let mut test = arguments("-w 64K -t 8 --window=1M");
        test.replace("-w", None);
        assert_eq!(test.args, ["-t", "8"]);
    }

    #[test]
    fn what_the_test_does_is_its_plan() {
        let test = arguments("-uR -t5 --omit=2 -P 4 --html x.html -b 40M");
        let plan = test.plan().unwrap();
        assert_eq!((plan.streams, plan.protocol), (4, Protocol::Udp));
        assert_eq!(test.duration(), Some(Nanos::from_millis(7000)));
        assert_eq!(test.ways(), [Way::Back]);
        assert_eq!(arguments("-n 5M").duration(), None);
        assert_eq!(arguments("-P 200").plan().unwrap_err().option, "-P");
    }
}
