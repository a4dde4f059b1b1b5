//! Parameters from a seed.

use crate::path::random::Random;

/// Decides what is drawn; nothing else on a path does.
const PURPOSE: u64 = 0x6472_6177;

/// A stream of parameters that a draw's number decides.
#[derive(Debug)]
pub(super) struct Dice(Random);

impl Dice {
    pub(super) fn of(number: u64) -> Self {
        Self(Random::new(number, PURPOSE))
    }

    /// From 0 to below 1.
    pub(super) fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    /// Whether something of these odds happens.
    pub(super) fn happens(&mut self, odds: f64) -> bool {
        self.unit() < odds
    }

    /// Evenly from `least` to `most`.
    pub(super) fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.unit()
    }

    /// From `least` to `most`, both above 0, each factor of two as likely as the others.
    pub(super) fn spread(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.unit())
    }

    /// One of several, all equally likely. `first` stands for none.
    pub(super) fn of_list<T: Copy>(&mut self, list: &[T], first: T) -> T {
        let place = linerate_model::units::whole((self.unit() * list.len() as f64).floor());
        let place = usize::try_from(place).unwrap_or(0);
        list.get(place).copied().unwrap_or(first)
    }

    /// One of several by their weights.
    pub(super) fn weighted<T: Copy>(&mut self, list: &[(f64, T)], first: T) -> T {
        let all: f64 = list.iter().map(|(weight, _)| weight).sum();
        let mut left = self.unit() * all;
        for (weight, one) in list {
            if left < *weight {
                return *one;
            }
            left -= weight;
        }
        first
    }
}
