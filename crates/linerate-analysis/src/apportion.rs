//! Shares in whole numbers that add to the whole exactly.

/// Divides `total` in proportion to `weights`, in whole numbers whose sum is `total` exactly: each gets the
/// whole part of its share, and what is left goes one by one to the largest remainders, the first of equal
/// ones first (Hamilton's method). Without any weight all of it goes to the last; of nothing comes nothing.
///
/// ```
/// use linerate_analysis::apportion::apportion;
///
/// assert_eq!(apportion(&[1, 1, 1], 100), [34, 33, 33]);
/// assert_eq!(apportion(&[0, 0], 7), [0, 7]);
/// ```
pub fn apportion(weights: &[u64], total: u64) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let mut parts = vec![0; weights.len()];
    if sum == 0 {
        if let Some(last) = parts.last_mut() {
            *last = total;
        }
        return parts;
    }
    let mut remainders: Vec<(u128, usize)> = Vec::with_capacity(weights.len());
    let mut left = total;
    for (place, weight) in weights.iter().enumerate() {
        let product = u128::from(*weight) * u128::from(total);
        // At most `total`, since no weight is larger than their sum.
        parts[place] = u64::try_from(product / sum).unwrap_or(total);
        left -= parts[place];
        remainders.push((product % sum, place));
    }
    remainders.sort_by_key(|(remainder, place)| (std::cmp::Reverse(*remainder), *place));
    for (_, place) in remainders {
        if left == 0 {
            break;
        }
        parts[place] += 1;
        left -= 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_parts_add_to_the_whole(weights in proptest::collection::vec(any::<u64>(), 1..12), total in any::<u64>()) {
            let parts = apportion(&weights, total);
            let sum: u128 = parts.iter().map(|part| u128::from(*part)).sum();
            prop_assert_eq!(sum, u128::from(total));
        }

        #[test]
        fn nobody_is_off_by_a_whole_one(weights in proptest::collection::vec(0_u64..1000, 1..9), total in 0_u64..100_000) {
            let sum: u64 = weights.iter().sum();
            prop_assume!(sum > 0);
            for (part, weight) in apportion(&weights, total).iter().zip(&weights) {
                let fair = *weight as f64 * total as f64 / sum as f64;
                prop_assert!((*part as f64 - fair).abs() < 1.0);
            }
        }
    }

    #[test]
    fn the_largest_weights_do_not_wrap() {
        assert_eq!(
            apportion(&[u64::MAX, u64::MAX], u64::MAX),
            [u64::MAX / 2 + 1, u64::MAX / 2]
        );
        assert!(apportion(&[], 5).is_empty());
    }
}
