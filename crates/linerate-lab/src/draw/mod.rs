//! Paths drawn at random, with their truth.
//!
//! A draw is a number: it decides the cause that limits the path, then every parameter within wide ranges (RTT 1 to 250
//! ms, 1 Mbit/s to 1 Gbit/s and up to 20 Gbit/s in bulk mode, MTU 1280 to 9000, 1 to 16 streams, both directions, IPv4
//! and IPv6, CUBIC, Reno and BBR). What the first finding has to be follows from arithmetic alone: windows against the
//! bandwidth-delay product, the response functions of Mathis and RFC 9438, a policer's tokens, a queue's length. The
//! rules that judge a run have no part in it. Parameters at which the arithmetic leaves doubt are not used: they are
//! drawn again, and [`Drawn::unclear`] counts how often. What the arithmetic takes for granted (the path was filled, or
//! was not) is a claim of the scenario that the path's own counters have to confirm after the run.
//!
//! Not drawn, since no arithmetic gives their truth: `unstable`, `early-slow-start-exit`, `virtualisation-limit`,
//! `sender-application`, `udp-sender-short`, `no-sack`, `udp-receiver-drop`.
//!
//! What it is not: it makes no path and judges no run.
//!
//! ```
//! let drawn = linerate_lab::draw::draw(4711).unwrap();
//! assert_eq!(drawn.scenario.seed, 4711);
//! assert!(!drawn.scenario.expect.top.is_empty());
//! ```

mod dice;
mod family;
mod hosts;
mod losses;
mod paths;
mod sketch;

use linerate_document::DocumentError;

use crate::scenario::Scenario;
use dice::Dice;
use family::FAMILIES;

/// A family whose parameters are unclear this often in turn is left for another one.
const TRIES: u32 = 200;

/// A path drawn at random.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// The family of its cause, such as `receive-window`.
    pub family: &'static str,
    /// The scenario's file.
    pub text: String,
    /// The same, read.
    pub scenario: Scenario,
    /// How many sets of parameters were drawn before it whose truth was not clear.
    pub unclear: u32,
}

/// The path of a number; the same one with every build that has the same families.
///
/// # Errors
/// None: a test reads thousands of them. It would be a defect of this module.
pub fn draw(number: u64) -> Result<Drawn, DocumentError> {
    let mut dice = Dice::of(number);
    let mut unclear = 0;
    // Ends: the last resort is clear.
    let (family, sketch) = loop {
        let families: Vec<_> = FAMILIES
            .iter()
            .map(|family| (family.weight, family))
            .collect();
        let family = dice.weighted(&families, &FAMILIES[0]);
        let clear = (0..TRIES).find_map(|_| {
            let sketch = (family.draw)(&mut dice);
            unclear += u32::from(sketch.is_none());
            sketch
        });
        if let Some(sketch) = clear {
            break (family.name, sketch);
        }
    };
    let text = sketch.text(&name(family, number), number);
    Ok(Drawn {
        family,
        scenario: Scenario::parse("the drawn path", &text)?,
        text,
        unclear,
    })
}

/// Names of all families.
pub fn families() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|family| family.name)
}

/// The scenario's name: at most 40 characters, so long numbers lose their head.
fn name(family: &str, number: u64) -> String {
    let number = number.to_string();
    let room = 40_usize.saturating_sub(family.len() + 1);
    let tail = number.len().saturating_sub(room);
    format!("{family}-{}", &number[tail..])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn two_thousand_draws_can_be_read_and_hold_each_family_by_its_weight() {
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for number in 0..2000 {
            let drawn = draw(number).unwrap_or_else(|error| panic!("{number}: {error}"));
            *counts.entry(drawn.family).or_default() += 1;
            assert!(drawn.scenario.test.duration().is_some(), "{number}");
        }
        let all: f64 = FAMILIES.iter().map(|family| family.weight).sum();
        for family in FAMILIES {
            let count = f64::from(counts.get(family.name).copied().unwrap_or(0));
            let mean = 2000.0 * family.weight / all;
            assert!(
                (count - mean).abs() <= 5.0 * mean.sqrt() + 0.25 * mean,
                "{}: {count} draws where {mean:.0} were expected",
                family.name
            );
        }
    }

    #[test]
    fn a_number_decides_everything() {
        assert_eq!(draw(7).unwrap(), draw(7).unwrap());
        assert_ne!(draw(7).unwrap().text, draw(8).unwrap().text);
    }
}
