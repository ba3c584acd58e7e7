//! Steady state after the manner of the SNIA's performance test specification: over the last rounds, neither the values' range nor
//! what a straight line through them climbs is more than a share of their mean.

use serde::Serialize;

/// A window of rounds, measured against its mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Mean of the values.
    pub mean: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
    /// Of the least-squares line, for each round.
    pub slope_per_round: f64,
    /// Of the least-squares line, at the first round of the window.
    pub intercept: f64,
    /// (max - min) / mean.
    pub range_share: f64,
    /// What the line climbs or falls over the window / mean.
    pub slope_share: f64,
}

impl Fit {
    /// The fit of a window; `None` for fewer than two values, or where their mean is not above 0: such a window is never steady.
    pub fn of(values: &[f64]) -> Option<Fit> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        if values.len() < 2 || mean <= 0.0 || !mean.is_finite() {
            return None;
        }
        let centre = (count - 1.0) / 2.0;
        let places = || (0..values.len()).map(|place| place as f64 - centre);
        let covariance: f64 = places().zip(values).map(|(place, value)| place * (value - mean)).sum();
        let slope_per_round = covariance / places().map(|place| place * place).sum::<f64>();
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Fit {
            mean,
            min,
            max,
            slope_per_round,
            intercept: mean - slope_per_round * centre,
            range_share: (max - min) / mean,
            slope_share: slope_per_round.abs() * (count - 1.0) / mean,
        })
    }

    /// Whether both shares are within their limits.
    pub fn is_steady(&self, range_share: f64, slope_share: f64) -> bool {
        self.range_share <= range_share && self.slope_share <= slope_share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_is_found_exactly() {
        let fit = Fit::of(&[96.0, 98.0, 100.0, 102.0, 104.0]).unwrap();
        assert_eq!((fit.mean, fit.min, fit.max), (100.0, 96.0, 104.0));
        assert_eq!((fit.slope_per_round, fit.intercept), (2.0, 96.0));
        assert_eq!((fit.range_share, fit.slope_share), (0.08, 0.08));
        assert!(fit.is_steady(0.2, 0.1) && !fit.is_steady(0.2, 0.07) && !fit.is_steady(0.07, 0.1));
    }

    #[test]
    fn the_least_squares_line_is_the_textbooks() {
        // Sums of squares by hand: places -2..2, deviations from 100; the slope is (-2*-5 + -1*3 + 1*-4 + 2*8) / 10 = 1.9.
        let fit = Fit::of(&[95.0, 103.0, 98.0, 96.0, 108.0]).unwrap();
        assert!((fit.slope_per_round - 1.9).abs() < 1e-12);
        assert!((fit.intercept - 96.2).abs() < 1e-12);
        assert!((fit.slope_share - 0.076).abs() < 1e-12 && (fit.range_share - 0.13).abs() < 1e-12);
        let falling = Fit::of(&[108.0, 96.0, 98.0, 103.0, 95.0]).unwrap();
        assert!((falling.slope_per_round + 1.9).abs() < 1e-12 && (falling.slope_share - 0.076).abs() < 1e-12);
    }

    #[test]
    fn the_limits_themselves_are_still_steady() {
        let fit = Fit::of(&[90.0, 110.0, 100.0, 110.0, 90.0]).unwrap();
        assert_eq!((fit.slope_per_round, fit.range_share), (0.0, 0.2));
        assert!(fit.is_steady(0.2, 0.1));
    }

    #[test]
    fn nothing_done_is_never_steady() {
        assert_eq!(Fit::of(&[0.0; 5]), None);
        assert_eq!(Fit::of(&[1.0, f64::NAN]), None);
        assert_eq!(Fit::of(&[1.0]), None);
        assert_eq!(Fit::of(&[]), None);
    }
}
