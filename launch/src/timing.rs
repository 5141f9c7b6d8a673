//! What repeated launches took.

/// Times of launches, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// Ascending.
    sorted: Vec<f64>,
}

impl Timing {
    /// Of these launches.
    #[must_use]
    pub fn new(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        Timing { sorted: seconds }
    }

    /// How many there were.
    #[must_use]
    pub fn n_launches(&self) -> usize {
        self.sorted.len()
    }

    /// The middle one; of an even number, the mean of the two in the middle. 0 where there were none.
    #[must_use]
    pub fn median(&self) -> f64 {
        let n = self.sorted.len();
        match n {
            0 => 0.0,
            n if n % 2 == 1 => self.sorted[n / 2],
            n => (self.sorted[n / 2 - 1] + self.sorted[n / 2]) / 2.0,
        }
    }

    /// The shortest; 0 where there were none.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.sorted.first().copied().unwrap_or(0.0)
    }
}

/// Times of launches that follow each other without a pause.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sustained {
    /// Of the last of them.
    pub timing: Timing,
    /// How long the kernel was launched for, in seconds.
    pub seconds: f64,
    /// Whether what a launch takes no longer changed.
    pub settled: bool,
}

impl Sustained {
    /// Whether medians of launches that were measured together, one after the other, no longer change: the last four
    /// lie within a hundredth of each other.
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
        assert_eq!(Timing::new(vec![4.0, 1.0, 2.0, 3.0]).median(), 2.5);
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
