//! Computes statistics of the times of repeated launches: median, quantiles, and whether the times
//! have settled.

/// Times of launches, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// Ascending.
    sorted: Vec<f64>,
}

impl Timing {
    /// The statistics of these launches.
    #[must_use]
    pub fn new(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        Timing { sorted: seconds }
    }

    /// The number of launches.
    #[must_use]
    pub fn n_launches(&self) -> usize {
        self.sorted.len()
    }

    /// The median; for an even number, the mean of the two values in the middle. 0 without
    /// launches.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The quantile for `part` from 0 to 1, interpolated linearly between two launches. 0 without
    /// launches.
    #[must_use]
    pub fn quantile(&self, part: f64) -> f64 {
        let Some(last) = self.sorted.len().checked_sub(1) else { return 0.0 };
        let at = part.clamp(0.0, 1.0) * last as f64;
        let (below, above) = (self.sorted[at.floor() as usize], self.sorted[at.ceil() as usize]);
        below + (above - below) * at.fract()
    }

    /// The shortest time; 0 without launches.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.sorted.first().copied().unwrap_or(0.0)
    }
}

/// Times of launches without pauses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sustained {
    /// The last window of launches.
    pub timing: Timing,
    /// The total time of all launches, in seconds.
    pub seconds: f64,
    /// Whether the time of a launch has settled.
    pub settled: bool,
}

impl Sustained {
    /// Whether the medians of consecutive windows have settled: the last four are within 1% of each
    /// other.
    #[must_use]
    pub fn has_settled(windows: &[Timing]) -> bool {
        const ALIKE: usize = 4;
        const WITHIN: f64 = 0.01;
        let Some(from) = windows.len().checked_sub(ALIKE) else { return false };
        let medians = windows[from..].iter().map(Timing::median);
        let (least, most) = medians.fold((f64::INFINITY, 0f64), |(a, b), m| (a.min(m), b.max(m)));
        most <= least * (1.0 + WITHIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(Timing::default().median(), 0.0);
        let timing = Timing::new(vec![3.0, 1.0, 2.0]);
        assert_eq!((timing.median(), timing.min(), timing.n_launches()), (2.0, 1.0, 3));
        let timing = Timing::new(vec![4.0, 1.0, 2.0, 3.0]);
        assert_eq!(
            (timing.median(), timing.quantile(0.25), timing.quantile(2.0)),
            (2.5, 1.75, 4.0)
        );
    }

    #[test]
    fn times_settle() {
        let windows = |medians: &[f64]| -> Vec<Timing> {
            medians.iter().map(|m| Timing::new(vec![*m])).collect()
        };
        for (medians, settled) in [
            (&[1.0, 1.0, 1.0][..], false),
            (&[1.0, 1.0, 1.0, 1.0], true),
            (&[1.0, 1.05, 1.1, 1.11, 1.1], false),
            (&[1.0, 1.05, 1.1, 1.105, 1.1, 1.1], true),
        ] {
            assert_eq!(Sustained::has_settled(&windows(medians)), settled, "{medians:?}");
        }
    }
}
