//! The arguments of a scenario's test: read, and replaced one at a time.

use linerate_model::units::Nanos;

use super::command_line::options;
use super::types::{TestSpec, Way};

/// How long `linerate test` measures where its arguments do not say.
const DEFAULT_DURATION: Nanos = Nanos::from_millis(10_000);

impl TestSpec {
    /// How long the test takes, with what it omits; `None` where an amount of data ends it.
    pub fn duration(&self) -> Option<Nanos> {
        let amounts = ["-n", "--bytes", "-k", "--blocks"];
        if amounts.iter().any(|option| self.option(option).is_some()) {
            return None;
        }
        let seconds = |short, long| {
            let typed = self.option(short).or_else(|| self.option(long))?;
            let seconds = typed.trim_end_matches('s').parse::<f64>().ok()?;
            Some(Nanos::from_secs_f64(seconds))
        };
        let measured = seconds("-t", "--time").unwrap_or(DEFAULT_DURATION);
        Some(measured.plus(seconds("-O", "--omit").unwrap_or_default()))
    }

    /// Which way the test's data goes.
    pub fn ways(&self) -> &'static [Way] {
        let has =
            |names: &[&str]| options(&self.args).any(|(name, _)| names.contains(&name.as_str()));
        if has(&["--bidir"]) {
            &[Way::Forward, Way::Back]
        } else if has(&["-R", "--reverse"]) {
            &[Way::Back]
        } else {
            &[Way::Forward]
        }
    }

    /// The value of an option that takes one, however it is written: `-t 5`, `-t5`, `-ut5`, `--time 5`, `--time=5`.
    /// The last one of an option that is given twice counts.
    pub fn option(&self, name: &str) -> Option<&str> {
        let given = options(&self.args).filter(|(given, _)| given == name);
        given.last().and_then(|(_, value)| value)
    }

    /// Gives an option that takes a value this one, or takes it away; `names` are its spellings, the one to
    /// write first.
    pub fn replace(&mut self, names: &[&str], value: Option<&str>) {
        let mut kept = Vec::with_capacity(self.args.len() + 2);
        let mut args = std::mem::take(&mut self.args).into_iter();
        while let Some(arg) = args.next() {
            if names.contains(&arg.as_str()) {
                // Its value stands in the next word.
                drop(args.next());
            } else if names.iter().all(|name| attached(&arg, name).is_none()) {
                kept.push(arg);
            }
        }
        if let Some((name, value)) = names.first().zip(value) {
            kept.extend([(*name).to_owned(), value.to_owned()]);
        }
        self.args = kept;
    }
}

/// The value in the same word: `-t5`, `--time=5`.
fn attached<'a>(arg: &'a str, name: &str) -> Option<&'a str> {
    let rest = arg.strip_prefix(name)?;
    match rest.strip_prefix('=') {
        Some(value) => Some(value),
        None => (!name.starts_with("--") && !rest.is_empty()).then_some(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> TestSpec {
        TestSpec {
            args: text.split_whitespace().map(str::to_owned).collect(),
        }
    }

    #[test]
    fn an_option_is_replaced_however_it_was_written() {
        for typed in ["-P 2 -t 8", "-t 8 -P2", "--parallel=2 -t 8", "-t 8"] {
            let mut test = arguments(typed);
            test.replace(&["-P", "--parallel"], Some("4"));
            assert_eq!(test.args, ["-t", "8", "-P", "4"], "{typed}");
        }
    }

    #[test]
    fn an_option_is_taken_away_with_its_value() {
        let mut test = arguments("-w 64K -t 8 --window=1M");
        test.replace(&["-w", "--window"], None);
        assert_eq!(test.args, ["-t", "8"]);
        assert_eq!(test.option("-w"), None);
    }
}
