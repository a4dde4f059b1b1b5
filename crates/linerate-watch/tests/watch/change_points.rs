//! Change points are those of Apache Otava: `otava.txt` has what it finds, and `scripts/change-points.py` writes that file.

use linerate_watch::change_points::{Options, Scale, change_points};

/// `SplitMix64`, as the script has it.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn below(&mut self, limit: i64) -> i64 {
        let wide = u128::from(self.bits()) * u128::try_from(limit).unwrap();
        i64::try_from(wide >> 64).unwrap()
    }
}

/// Steps under noise with dips.
fn series(seed: u64) -> Vec<f64> {
    let mut random = Random(seed);
    let length = 20 + random.below(180);
    let noise = [0, 5, 10, 30, 60][usize::try_from(random.below(5)).unwrap()];
    let mut level = 9_400_000_i64;
    let mut values = Vec::new();
    for _ in 0..length {
        if random.below(40) == 0 {
            level = level * (50 + random.below(100)) / 100;
        }
        let sum: u64 = (0..12).map(|_| random.bits() >> 48).sum();
        let spread = i64::try_from(sum).unwrap() - 6 * 65_535;
        let mut value = (level * (65_536_000 + noise * spread)).div_euclid(65_536_000);
        if random.below(100) == 0 {
            value = value.div_euclid(3);
        }
        values.push(value.max(1) as f64);
    }
    values
}

#[test]
fn indexes_are_those_of_otava() {
    let mut found = 0;
    for line in include_str!("otava.txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let logarithm = words[4] == "1";
        let options = Options {
            window: words[1].parse().unwrap(),
            chance: words[2].parse().unwrap(),
            least_change: words[3].parse().unwrap(),
            scale: if logarithm {
                Scale::Logarithm
            } else {
                Scale::Linear
            },
        };
        let mut values = series(words[0].parse().unwrap());
        if logarithm {
            values = values.into_iter().map(f64::ln).collect();
        }
        let indexes = change_points(&values, &options);
        let indexes: Vec<String> = indexes
            .iter()
            .map(|point| point.index.to_string())
            .collect();
        assert_eq!(indexes, words[5..], "{line}");
        found += indexes.len();
    }
    assert!(found > 300, "{found}");
}
