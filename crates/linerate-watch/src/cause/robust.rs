//! Medians that do not sort everything.

/// What a standard deviation is to the median absolute deviation of a normal distribution.
const NORMAL: f64 = 1.4826;

/// The median of two middle values is the lower one here: for thousands of values it makes no difference, and for
/// few it is a value that was measured. `None` of nothing. Reorders the values.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value below which about this share of the values lies. `None` of nothing. Reorders the values.
pub(super) fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a share of a place; float casts saturate"
    )]
    let place = (share * last as f64).floor() as usize;
    let (_, middle, _) = values.select_nth_unstable_by(place.min(last), f64::total_cmp);
    Some(*middle)
}

/// The mean of the two middle values where there are two. `None` of nothing. Reorders the values.
pub(crate) fn midpoint(values: &mut [f64]) -> Option<f64> {
    let upper = values.len() / 2;
    let low = median(values)?;
    if values.len() % 2 == 1 {
        return Some(low);
    }
    let (_, high, _) = values.select_nth_unstable_by(upper, f64::total_cmp);
    Some(f64::midpoint(low, *high))
}

/// The standard deviation of the normal distribution that has this median absolute value. Reorders the values.
pub(crate) fn spread(residuals: &mut [f64]) -> f64 {
    for value in residuals.iter_mut() {
        *value = value.abs();
    }
    NORMAL * midpoint(residuals).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(midpoint(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert!((spread(&mut [-1.0, 1.0, -1.0]) - NORMAL).abs() < 1e-12);
    }
}
