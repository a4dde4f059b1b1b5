//! A rate that a test is expected to show, and whether an interval of rates shows it.
//!
//! PASS only where the whole interval satisfies what is wanted, FAIL only where none of it does, else
//! INCONCLUSIVE.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::plain_text::PlainText;
use crate::units::BitRate;

/// A rate, or a share of the rate that was bought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// bit/s of payload.
    Rate(BitRate),
    /// Share of the rate of `--provisioned`, %, 0 to 1000.
    PercentOfProvisioned(f64),
}

/// What is wanted of a rate, as it was typed: `>= 9G`, `< 900M`, `9G..10G`, `>= 90%`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Wanted {
    /// `>= 9G`
    AtLeast(Amount),
    /// `> 9G`
    MoreThan(Amount),
    /// `<= 9G`
    AtMost(Amount),
    /// `< 9G`
    LessThan(Amount),
    /// `9G..10G`, both ends included.
    Within(Amount, Amount),
}

/// What a sign makes of an amount.
type Bound = fn(Amount) -> Wanted;

/// A text that wants nothing that can be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a required rate: {reason}")]
pub struct WantedError {
    text: PlainText,
    reason: String,
}

impl Wanted {
    /// Whether a rate that was bought must be known for it.
    pub fn needs_provisioned(&self) -> bool {
        let percent = |amount: &Amount| matches!(amount, Amount::PercentOfProvisioned(_));
        match self {
            Self::AtLeast(one) | Self::MoreThan(one) | Self::AtMost(one) | Self::LessThan(one) => {
                percent(one)
            }
            Self::Within(low, high) => percent(low) || percent(high),
        }
    }

    /// The wanted rates, bit/s: least and most; a missing one is no bound.
    fn bounds(&self, provisioned: Option<BitRate>) -> Option<[Option<f64>; 2]> {
        let of = |amount: &Amount| match amount {
            Amount::Rate(rate) => Some(rate.0 as f64),
            Amount::PercentOfProvisioned(percent) => Some(percent / 100.0 * provisioned?.0 as f64),
        };
        Some(match self {
            Self::AtLeast(low) | Self::MoreThan(low) => [Some(of(low)?), None],
            Self::AtMost(high) | Self::LessThan(high) => [None, Some(of(high)?)],
            Self::Within(low, high) => [Some(of(low)?), Some(of(high)?)],
        })
    }

    /// What an interval of rates, bit/s, shows; a share is one of the provisioned rate.
    pub fn judge(&self, provisioned: Option<BitRate>, [low, high]: [f64; 2]) -> Verdict {
        let Some([least, most]) = self.bounds(provisioned) else {
            return Verdict::Inconclusive;
        };
        let strict = matches!(self, Self::MoreThan(_) | Self::LessThan(_));
        let satisfies = |rate: f64| {
            let enough =
                least.is_none_or(|least| if strict { rate > least } else { rate >= least });
            enough && most.is_none_or(|most| if strict { rate < most } else { rate <= most })
        };
        // Both ends may miss a range that lies between them.
        let outside = least.is_some_and(|least| high < least || (strict && high <= least))
            || most.is_some_and(|most| low > most || (strict && low >= most));
        if satisfies(low) && satisfies(high) {
            Verdict::Pass
        } else if outside {
            Verdict::Fail
        } else {
            Verdict::Inconclusive
        }
    }
}

impl FromStr for Wanted {
    type Err = WantedError;

    fn from_str(text: &str) -> Result<Self, WantedError> {
        let fail = |reason: &str| WantedError {
            text: text.chars().take(40).collect(),
            reason: reason.to_owned(),
        };
        let trimmed = text.trim();
        let one = |rest: &str| amount(rest).map_err(|reason| fail(&reason));
        let bounds: [(&str, Bound); 4] = [
            (">=", Self::AtLeast),
            ("<=", Self::AtMost),
            (">", Self::MoreThan),
            ("<", Self::LessThan),
        ];
        for (sign, bound) in bounds {
            if let Some(rest) = trimmed.strip_prefix(sign) {
                return one(rest).map(bound);
            }
        }
        let Some((low, high)) = trimmed.split_once("..") else {
            return Err(fail(
                "say at least what: '>= 9G', '> 900M', '<= 1G', '9G..10G' or '>= 90%' of --provisioned",
            ));
        };
        match (one(low)?, one(high)?) {
            (Amount::Rate(low), Amount::Rate(high)) if low > high => {
                Err(fail("its first rate is above its second one"))
            }
            (Amount::PercentOfProvisioned(low), Amount::PercentOfProvisioned(high))
                if low > high =>
            {
                Err(fail("its first share is above its second one"))
            }
            (low, high) => Ok(Self::Within(low, high)),
        }
    }
}

/// `9G`, or `90%`.
fn amount(text: &str) -> Result<Amount, String> {
    let text = text.trim();
    if let Some(digits) = text.strip_suffix('%') {
        return match digits.trim().parse::<f64>() {
            Ok(percent) if (0.0..=1000.0).contains(&percent) => {
                Ok(Amount::PercentOfProvisioned(percent))
            }
            _ => Err(format!("'{text}' is not a percentage such as 90%")),
        };
    }
    text.parse()
        .map(Amount::Rate)
        .map_err(|error: crate::units::UnitError| error.to_string())
}

impl TryFrom<String> for Wanted {
    type Error = WantedError;

    fn try_from(text: String) -> Result<Self, WantedError> {
        text.parse()
    }
}

impl From<Wanted> for String {
    fn from(wanted: Wanted) -> Self {
        wanted.to_string()
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PercentOfProvisioned(percent) => write!(f, "{percent}%"),
            Self::Rate(rate) => f.write_str(&rate.as_option()),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(low) => write!(f, ">= {low}"),
            Self::MoreThan(low) => write!(f, "> {low}"),
            Self::AtMost(high) => write!(f, "<= {high}"),
            Self::LessThan(high) => write!(f, "< {high}"),
            Self::Within(low, high) => write!(f, "{low}..{high}"),
        }
    }
}

/// Whether a run shows what was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval satisfies it.
    Pass,
    /// None of the interval does.
    Fail,
    /// The interval does not decide.
    Inconclusive,
}

impl Verdict {
    /// PASS, FAIL, INCONCLUSIVE.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Inconclusive => "INCONCLUSIVE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rate_passes_fails_or_is_not_decided_by_its_whole_interval() {
        let rate = |low: f64, high: f64| [low * 1e6, high * 1e6];
        for (wanted, interval, verdict) in [
            (">= 900M", rate(900.0, 910.0), Verdict::Pass),
            ("> 900M", rate(900.0, 910.0), Verdict::Inconclusive),
            (">= 900M", rate(899.0, 910.0), Verdict::Inconclusive),
            (">= 900M", rate(880.0, 899.9), Verdict::Fail),
            ("> 900M", rate(880.0, 900.0), Verdict::Fail),
            ("<= 900M", rate(880.0, 900.0), Verdict::Pass),
            ("< 900M", rate(880.0, 900.0), Verdict::Inconclusive),
            ("< 900M", rate(900.0, 910.0), Verdict::Fail),
            ("800M..900M", rate(800.0, 900.0), Verdict::Pass),
            ("800M..900M", rate(799.0, 901.0), Verdict::Inconclusive),
            ("800M..900M", rate(901.0, 950.0), Verdict::Fail),
            ("800M..900M", rate(700.0, 799.0), Verdict::Fail),
        ] {
            let found = wanted.parse::<Wanted>().unwrap().judge(None, interval);
            assert_eq!(found, verdict, "{wanted} of {interval:?}");
        }
    }

    #[test]
    fn what_cannot_be_wanted_is_refused_with_an_example() {
        for wrong in [
            "", "9G", "= 9G", ">= ", ">= 9X", "10G..9G", "9G..", "..", ">= -1", ">= 1001%", "> x%",
            "90%..80%", ">=> 1",
        ] {
            let error = wrong.parse::<Wanted>().unwrap_err().to_string();
            assert!(error.contains("required rate"), "{wrong}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_wanted_reads_back_as_it_was_written(
            low in any::<u64>().prop_map(|rate| rate >> 2),
            more in 0_u64..1 << 60,
            kind in 0_u8..5,
            percent in proptest::option::of(0_u16..1000),
        ) {
            let amount = percent.map_or(Amount::Rate(BitRate(low)), |percent| {
                Amount::PercentOfProvisioned(f64::from(percent) / 10.0)
            });
            let wanted = match kind {
                0 => Wanted::AtLeast(amount),
                1 => Wanted::MoreThan(amount),
                2 => Wanted::AtMost(amount),
                3 => Wanted::LessThan(amount),
                _ => Wanted::Within(Amount::Rate(BitRate(low)), Amount::Rate(BitRate(low.saturating_add(more)))),
            };
            prop_assert_eq!(wanted.to_string().parse::<Wanted>().unwrap(), wanted);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}") {
            drop(text.parse::<Wanted>());
        }

        #[test]
        fn a_wider_interval_never_decides_more(
            low in 0.0..1e9_f64, width in 0.0..1e9_f64, more in 0.0..1e9_f64, bound in 1_u64..2_000_000_000,
        ) {
            let wanted = Wanted::AtLeast(Amount::Rate(BitRate(bound)));
            let narrow = wanted.judge(None, [low, low + width]);
            let wide = wanted.judge(None, [(low - more).max(0.0), low + width + more]);
            prop_assert!(wide == Verdict::Inconclusive || wide == narrow);
        }
    }
}
